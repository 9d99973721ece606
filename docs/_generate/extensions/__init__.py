"""What Sphinx calls; all else of `docs/_generate/` knows nothing of Sphinx."""
