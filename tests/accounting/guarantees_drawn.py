"""Guarantees of every kind, for hypothesis, and profiles of explicit laws that share no code with the package."""

import math
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from kngjax.accounting import Guarantee

DECIMALS = st.integers(1, 4000).map(lambda number: f"{number}e-3")
LOSSES = st.one_of(
    DECIMALS,
    st.floats(1e-6, 20.0),
    st.fractions(Fraction(1, 1000), 20, max_denominator=1000),
)
FAILURES = st.one_of(st.floats(1e-12, 1e-3), st.integers(1, 99).map(lambda number: f"{number}e-7"))


STATED = st.one_of(st.just(0), FAILURES)
# One release of any kind but a composition: the name of what makes it, and its numbers.
SIMPLE = st.one_of(
    st.tuples(st.just("pure"), LOSSES),
    st.tuples(st.just("bounded_range"), LOSSES),
    st.tuples(st.just("approximate"), LOSSES, FAILURES),
    st.tuples(st.just("zcdp"), LOSSES, STATED),
    st.tuples(st.just("gaussian"), LOSSES, STATED),
)


def made(recipe, adjacency="replace"):
    """The guarantee; made outside of strategies, where type checks may not draw random numbers."""
    kind, first, *rest = recipe
    if kind in ("zcdp", "gaussian"):
        return getattr(Guarantee, kind)(first, adjacency, delta=rest[0])
    return getattr(Guarantee, kind)(first, *rest, adjacency)


def hockey_stick(first, second, epsilon):
    """sup_A P(A) - e^ε Q(A) of two laws on finitely many outcomes, in both orders."""
    first, second = np.asarray(first), np.asarray(second)
    return max(
        float(np.sum(np.maximum(one - math.exp(epsilon) * other, 0.0)))
        for one, other in ((first, second), (second, first))
    )


def product(law, count):
    """The law of independent copies."""
    many = np.ones(1)
    for _ in range(count):
        many = np.outer(many, law).ravel()
    return many
