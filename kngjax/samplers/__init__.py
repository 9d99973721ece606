"""Samplers: they know a `Target` (a log-density, its domain, the structure of its loss), never a mechanism."""
