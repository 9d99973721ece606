"""Noise that is drawn in real arithmetic and rounded once, without error, to a public grid."""
