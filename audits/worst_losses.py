"""The worst losses of lattice mechanisms on pairs of neighbours that betray much, enclosed and not estimated."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from audits.lattices import lattice_law, lattice_loss
from kngjax.data.bounds import Bounds
from kngjax.draws.lattice.lattice import Lattice
from kngjax.geometry.domains import Box, L1Ball
from kngjax.losses.quantile import QuantileLoss
from kngjax.losses.squared import SquaredLoss
from kngjax.mechanisms.kng import KNG

_COARSE = Lattice(data_digits=4, theta_digits=5)
_LINE, _PLANE = Bounds(y=(-1.0, 1.0)), Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0))


def worst_losses() -> Iterator[tuple[str, float, float]]:
    """The name of each lattice mechanism, and an interval that contains the worst loss of the pairs tried, over ε."""
    # Noise that is wide beside one record, and Θ hardly any on the left: one record moves nearly all of the mass.
    mean = KNG(SquaredLoss(), _LINE, Box(-0.0002, 0.04), 0.1, "replace")
    median, decile = (KNG(QuantileLoss(tau), _LINE, Box(-1.0, 1.0), 1.0, "replace") for tau in (0.5, 0.9))
    regression = KNG(QuantileLoss(0.5), _PLANE, L1Ball(1.0), 1.0, "replace")
    for name, mechanism, pairs, sampler in (
        ("median", median, _heaps, _COARSE),
        ("9th decile", decile, _heaps, _COARSE),
        ("median regression", regression, _heaps_at_one, _COARSE),
        ("least squares", mean, _zeros, Lattice(data_digits=4, theta_digits=9)),
    ):
        epsilon = float(mechanism.epsilon)
        laws = ([lattice_law(mechanism, mechanism.intake.records(*some), sampler) for some in pair] for pair in pairs())
        losses = [lattice_loss(*pair) for pair in laws]
        yield name, max(low for low, _ in losses) / epsilon, max(high for _, high in losses) / epsilon


def _heaps() -> Iterator[Any]:
    """Numbers in two heaps, and one that goes from the left to the right."""
    for left, right in itertools.product((1, 2, 4, 8), repeat=2):
        others = np.concatenate([np.full(left, -0.9375), np.full(right, 0.875)])
        yield (None, np.append(others, -1.0)), (None, np.append(others, 1.0))


def _heaps_at_one() -> Iterator[Any]:
    """Makes the pairs of `_heaps` with a feature that is 1 for everybody."""
    for pair in _heaps():
        yield tuple((np.ones((y.size, 1)), y) for _, y in pair)


def _zeros() -> Iterator[Any]:
    """Zeros, and one response that changes its sign."""
    for number in (10_000, 20_000):
        yield (None, np.append(np.zeros(number), -1.0)), (None, np.append(np.zeros(number), 1.0))
