"""Planted bugs, each of which an audit must catch: what the audits are worth.

A mutation replaces a part of the library for as long as one audit runs; the audit must be silent without it and raise
the alarm with it. They run on coarse lattices, so that a loss is enclosed and not estimated.
"""

import contextlib
import dataclasses
import functools
import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from kngjax.accounting.guarantees import Adjacency
from kngjax.audit.lattices import lattice_law, lattice_loss
from kngjax.core import randomness
from kngjax.data import records
from kngjax.data.bounds import Bounds
from kngjax.geometry.domains import Box, L1Ball
from kngjax.losses.quantile import QuantileLoss
from kngjax.losses.squared import SquaredLoss
from kngjax.mechanisms.exponential import ExponentialMechanism
from kngjax.mechanisms.kng import KNG
from kngjax.releases import release
from kngjax.releases.lattice import lattice as lattices
from kngjax.releases.lattice import sums
from kngjax.releases.lattice.check_scores import QuantileScore
from kngjax.releases.lattice.lattice import Lattice
from kngjax.releases.lattice.scores import GradientNorm
from kngjax.releases.lattice.units import DomainLattice
from kngjax.samplers.exact.exact import Exact
from kngjax.sensitivity import in_fractions

_COARSE = Lattice(data_digits=4, theta_digits=5)
_LINE, _PLANE = Bounds(y=(-1.0, 1.0)), Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0))


@dataclasses.dataclass(frozen=True)
class Mutation:
    """A planted bug and the audit that must catch it.

    **Arguments:** `name`: the bug in words. `plant`: a context in which it is there. `alarm`: the audit; True if it
    found something.
    """

    name: str
    plant: Callable[[], contextlib.AbstractContextManager[Any]]
    alarm: Callable[[], bool]

    def caught(self) -> bool:
        """Whether the audit is silent without the bug and raises the alarm with it."""
        if self.alarm():
            return False
        with self.plant():
            return self.alarm()


def _loses(mechanism: Any, pairs: Callable[[], Iterator[Any]]) -> bool:
    """Whether the loss of one of these pairs of neighbours is certainly above ε."""
    return any(_loss(mechanism, pair)[0] > float(mechanism.epsilon) for pair in pairs())


def _loss(mechanism: Any, pair: Any, sampler: Lattice = _COARSE) -> tuple[float, float]:
    return lattice_loss(*(lattice_law(mechanism, mechanism.records(*some), sampler) for some in pair))


def _heaps() -> Iterator[Any]:
    """Numbers in two heaps, and one that goes from the left to the right."""
    for left, right in itertools.product((1, 2, 4, 8), repeat=2):
        others = np.concatenate([np.full(left, -0.9375), np.full(right, 0.875)])
        yield (None, np.append(others, -1.0)), (None, np.append(others, 1.0))


def _heaps_at_one() -> Iterator[Any]:
    """The same with a feature that is 1 for everybody."""
    for pair in _heaps():
        yield tuple((np.ones((y.size, 1)), y) for _, y in pair)


def _zeros() -> Iterator[Any]:
    """Zeros, and one response that changes its sign."""
    for number in (10_000, 20_000):
        yield (None, np.append(np.zeros(number), -1.0)), (None, np.append(np.zeros(number), 1.0))


def _outliers() -> Iterator[Any]:
    """One record far outside of the bounds."""
    x, others = np.linspace(-1.0, 1.0, 41)[:, None], np.full(40, 0.875)
    for far in (-50.0, 50.0):
        yield (x, np.append(others, 0.5)), (x, np.append(others, far))


def _quantile(tau: float) -> KNG:
    return KNG(QuantileLoss(tau), _LINE, Box(-1.0, 1.0), 1.0, "replace")


def _median_regression() -> KNG:
    return KNG(QuantileLoss(0.5), _PLANE, L1Ball(1.0), 1.0, "replace")


def _least_squares() -> KNG:
    return KNG(SquaredLoss(), _PLANE, L1Ball(0.5), 1.0, "replace")


def _exponential() -> ExponentialMechanism:
    return ExponentialMechanism(SquaredLoss(), _PLANE, L1Ball(0.5), 1.0, "replace")


def _two_alike() -> bool:
    """Whether two releases of the same data are the same, on the lattice or in real numbers.

    Rounding, whose offset is random, moves two values of one draw by less than two cells from each other.
    """
    values = np.linspace(-1.0, 1.0, 9)
    for sampler in (Lattice(), Exact()):
        one, other = (release.release(_quantile(0.5), None, values, sampler=sampler) for _ in range(2))
        rounding = one.certificate.rounding
        apart = 0.0 if rounding is None else 2.0 ** (1 + max(rounding.exponents))
        if np.all(np.abs(one.value - other.value) <= apart):
            return True
    return False


def _off_lattice() -> bool:
    """Whether a value lies off the public lattice, so that its digits may tell of the data."""
    mechanism, values = _quantile(0.5), np.linspace(-1.0, 0.7, 9)
    drawn = _COARSE.draw(mechanism, mechanism.records(None, values))
    return bool(np.any(drawn != np.round(drawn * 16) / 16))


def _wrong_law() -> bool:
    """Whether the most likely points of a median are not those between the two middle records."""
    mechanism = _quantile(0.5)
    law = lattice_law(mechanism, mechanism.records(None, np.array([-0.75, -0.5, 0.5, 0.75])), _COARSE)
    best = law.theta[law.scores == np.min(law.scores), 0]
    return not (best.min() == -0.5 and best.max() == 0.4375)


def _order_matters() -> bool:
    """Whether scores change when the records change places, which no exact sum knows of."""
    generator, mechanism = np.random.default_rng(0), _least_squares()
    x, y = generator.uniform(-1.0, 1.0, (300, 1)), generator.uniform(-1.0, 1.0, 300)
    fine, orders = Lattice(data_digits=20, theta_digits=4), (slice(None), slice(None, None, -1))
    one, other = (lattice_law(mechanism, mechanism.records(x[order], y[order]), fine) for order in orders)
    return not np.array_equal(one.scores, other.scores)


def _patched(owner: Any, name: str, change: Callable[..., Any]) -> Callable[[], Any]:
    """A context in which `owner.name` is `change(original, ...)`."""
    declared, original = vars(owner)[name], getattr(owner, name)

    def changed(*arguments: Any, **named: Any) -> Any:
        return change(original, *arguments, **named)

    @contextlib.contextmanager
    def plant() -> Iterator[None]:
        setattr(owner, name, changed)
        try:
            yield
        finally:
            setattr(owner, name, declared)

    return plant


def _add_remove(original: Any, loss: Any, ranges: Any, adjacency: Any) -> Any:
    return original(loss, ranges, Adjacency.ADD_REMOVE)


def _printed(original: Any, loss: Any, ranges: Any, adjacency: Any) -> Any:
    return [2 * (1 - in_fractions.level(loss)) * max(map(abs, ends)) for ends in ranges.features]


def _summed(original: Any, self: Any, sizes: Any) -> Any:
    return np.sum(np.stack([original(self, np.asarray(sizes) * keep) for keep in np.eye(2, dtype=int)]), axis=0)


def _in_float32(original: Any, left: Any, right: Any) -> Any:
    total = np.zeros((left.shape[1], right.shape[1]), np.float32)
    for row, other in zip(left, right, strict=True):
        total = total + np.outer(row, other).astype(np.float32)
    return np.array(total.astype(np.int64).tolist(), object)


def _one_record_more(original: Any, self: Any, point: Any, rows: Any, sums: Any) -> int:
    return original(self, point, rows, sums - 16)


def _scaled_by_the_data(original: Any, bounds: Any, X: Any, y: Any, **others: Any) -> Any:
    return original(bounds, X, y / np.max(np.abs(y)), **others)


def _unclipped(original: Any, bounds: Any, X: Any, y: Any, **others: Any) -> Any:
    return records.Records(original(bounds, X, y, **others).x, np.asarray(y, np.float64))


def _seeded(original: Any, self: Any, mechanism: Any, records: Any) -> Any:
    return original(self, mechanism, records, random.Random(1).getrandbits)


def worst_losses() -> Iterator[tuple[str, float, float]]:
    """The name of each lattice mechanism, and an interval that contains the worst loss of the pairs tried, over ε."""
    # Noise that is wide beside one record, and Θ hardly any on the left: one record moves nearly all of the mass.
    mean = KNG(SquaredLoss(), _LINE, Box(-0.0002, 0.04), 0.1, "replace")
    for name, mechanism, pairs, sampler in (
        ("median", _quantile(0.5), _heaps, _COARSE),
        ("9th decile", _quantile(0.9), _heaps, _COARSE),
        ("median regression", _median_regression(), _heaps_at_one, _COARSE),
        ("least squares", mean, _zeros, Lattice(data_digits=4, theta_digits=9)),
    ):
        epsilon = float(mechanism.epsilon)
        losses = [_loss(mechanism, pair, sampler) for pair in pairs()]
        yield name, max(low for low, _ in losses) / epsilon, max(high for _, high in losses) / epsilon


def mutations() -> tuple[Mutation, ...]:
    """All planted bugs."""
    changes = functools.partial(_patched, in_fractions, "gradient_changes")
    return (
        Mutation(
            "noise halved",
            _patched(lattices, "rate_of", lambda original, mechanism: 2 * original(mechanism)),
            lambda: _loses(_quantile(0.5), _heaps),
        ),
        Mutation("bound 2(1-tau) of the paper", changes(_printed), lambda: _loses(_quantile(0.9), _heaps)),
        Mutation("factor 2 of an exchange missing", changes(_add_remove), lambda: _loses(_quantile(0.5), _heaps)),
        Mutation(
            "l1 norm with the sensitivity of l_inf",
            _patched(GradientNorm, "__call__", _summed),
            lambda: _loses(_median_regression(), _heaps_at_one),
        ),
        Mutation("sums in float32", _patched(sums, "products", _in_float32), _order_matters),
        Mutation("one record too many", _patched(QuantileScore, "at", _one_record_more), _wrong_law),
        Mutation(
            "responses scaled by their largest",
            _patched(records, "prepare", _scaled_by_the_data),
            lambda: _loses(_exponential(), _outliers),
        ),
        Mutation(
            "clipping of y skipped",
            _patched(records, "prepare", _unclipped),
            lambda: _loses(_exponential(), _outliers),
        ),
        Mutation("seeded lattice", _patched(Lattice, "draw", _seeded), _two_alike),
        Mutation(
            "seeded key", _patched(randomness, "secure_key", lambda original: randomness.research_key(0)), _two_alike
        ),
        Mutation(
            "value off its lattice",
            _patched(DomainLattice, "values", lambda original, self, point: original(self, point) + 1e-9),
            _off_lattice,
        ),
    )
