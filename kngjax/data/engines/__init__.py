"""Engines on which tables rest: files, DuckDB, Polars, Spark, Dask and Ray, each behind the same methods."""
