"""What the site has besides its hand-written pages, made at every build from the code and its docstrings."""
