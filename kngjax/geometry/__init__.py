"""Norms, polytopes, balls, hulls and domains with their base measures."""
