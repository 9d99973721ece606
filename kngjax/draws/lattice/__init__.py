"""Releases on a public lattice, with every rounding included in the proof."""
