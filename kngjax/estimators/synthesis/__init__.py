"""Synthetic tables: columns that are drawn one after the other from released tables and quantile curves."""
