"""Offers what a statistician would write: a study of a table, regressions by formula, results with names."""
