"""Releases on a public lattice, with every rounding included in the proof."""

from kngjax.releases.lattice.sampler import Lattice

__all__ = ["Lattice"]
