"""Mechanisms: what is drawn from. Each knows its sensitivity and its guarantee, and no sampler."""
