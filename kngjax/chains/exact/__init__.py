"""Exact draws: by rejection from envelopes, and segment by segment."""
