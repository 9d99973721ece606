"""Lists the draws of which every rounding is proved: a row has a mechanism, its records and the class that draws.

Bounds, radii and budgets are no multiples of powers of two, and lie unevenly about 0: a test of a rounding, or of one
side of a domain, sees nothing where they are round or symmetric. Exact probabilities of each row's cells are in
`audits.grid_laws.cases`, by the class that draws.
"""

import contextlib
import dataclasses
import functools
import inspect
import pathlib
import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

import kngjax as kng
from kngjax.data.weights import with_weights
from kngjax.draws.ada_ops_draw import NoisyAdaOPS
from kngjax.draws.ada_ssp_draw import NoisyMoments
from kngjax.draws.base import PROVED, AbstractDraw
from kngjax.draws.box_draws import BoxDraw
from kngjax.draws.exact_choice import ExactChoice
from kngjax.draws.exact_interval import ExactInterval
from kngjax.draws.irls_iterates import IteratesOnGrid
from kngjax.draws.lattice_draws import LatticeDraw
from kngjax.draws.noisy_counts import NoisyCounts
from kngjax.draws.noisy_minimizers import NoisyMinimum, NoisyRidge
from kngjax.draws.noisy_sums import NoisyMean
from kngjax.draws.perturbed_minimizers import QuadraticMinimum, SmoothMinimum
from kngjax.draws.quadratic_draws import QuadraticDraw
from kngjax.draws.ridge_posterior import NoisyPosterior
from kngjax.draws.shell_draws import ShellDraw
from kngjax.mechanisms.block_sums import BlockSums
from kngjax.mechanisms.private_choice import PrivateChoice
from kngjax.releases.draw_choice import draw_for

BOTH, REPLACE = ("replace", "add_remove"), ("replace",)
LOWER, UPPER = np.array([-0.3, 0.1]), np.array([0.7, 0.9])
RESPONSE = (-0.4, 1.3)
DELTA = 1e-6
NUM_RECORDS, PROMISED = 30, 99
CANDIDATES = {f"candidate {k}": (0.0, 1.0) for k in range(3)}


@dataclasses.dataclass(frozen=True)
class Row:
    """Describes one way in which releases are drawn.

    **Arguments:** `drawn_by`: the class that draws. `make(adjacency, size)`: the mechanism, for columns that are `size`
    times as wide. `adjacencies`: of which it is made. `sizes`: other sizes that it serves. `responses`: those of a
    binary response, of cells, or of counts. `most_weight`: of weights that records keep. `certain`: so many releases
    differ from so many others but for a probability that is negligible. `count`: how many records it takes here.
    `sampler`: what is asked for.
    """

    drawn_by: type
    make: Callable[..., Any]
    adjacencies: tuple[str, ...] = BOTH
    sizes: tuple[float, ...] = ()
    responses: tuple[float, ...] = ()
    most_weight: float | None = None
    certain: int = 1
    count: int = NUM_RECORDS
    sampler: Any = None

    def records(self, count: int | None = None, size: float = 1.0, seed: int = 3) -> "Records":
        """Records within the bounds, whose sums in float64 depend on their order; some weights are too large."""
        mechanism = self.made(self.adjacencies[0], size)
        generator, x, y, weights = np.random.default_rng(seed), None, None, None
        count = self.count if count is None else count
        if mechanism.bounds.x_lower is not None:
            x = generator.uniform(mechanism.bounds.x_lower, mechanism.bounds.x_upper, (count, mechanism.bounds.columns))
        if self.responses:
            y = generator.choice(self.responses, count)
        elif mechanism.loss.has_response:
            y = generator.uniform(*RESPONSE, count)
        if self.most_weight is not None:
            weights = generator.uniform(0.0, 1.2 * self.most_weight, count)
        return Records(x, y, weights)

    def made(self, adjacency: str, size: float = 1.0) -> Any:
        """Makes the mechanism, once, as some compile a program."""
        return _made(self, adjacency, size)

    def release(self, adjacency: str, records: "Records", seed: int = 0, size: float = 1.0) -> kng.Release:
        """Releases a value with bits of this seed in the place of the operating system's."""
        with seeded(seed):
            return self.release_of(self.made(adjacency, size), records)

    def usual(self, adjacency: str) -> kng.Release:
        """Releases a value of the usual records by the usual bits, once for all tests."""
        return _usual(self, adjacency)

    def release_of_new(self, adjacency: str, records: "Records", seed: int = 0) -> kng.Release:
        """Releases a value by a mechanism that is made now, and not before."""
        with seeded(seed):
            return self.release_of(self.make(adjacency, 1.0), records)

    def release_of(self, mechanism: Any, records: "Records", **settings: Any) -> kng.Release:
        """Releases a value by this mechanism."""
        return kng.release(
            mechanism, records.x, records.y, weights=records.weights, sampler=self.sampler, progress=False, **settings
        )

    def way(self, adjacency: str, records: "Records") -> Any:
        """Finds the draw of a release of these records."""
        mechanism = self.made(adjacency)
        facts = mechanism.intake.check_schema(with_weights(records.x, records.weights), records.y)
        return draw_for(mechanism, self.sampler, facts)

    def certify(self, adjacency: str, records: "Records") -> Any:
        """Makes the certificate that a release of these records would have."""
        return kng.certify(self.made(adjacency), records.x, records.y, weights=records.weights, sampler=self.sampler)


class Records(NamedTuple):
    """X, y and weights, each of them None where there are none."""

    x: Any
    y: Any
    weights: Any = None

    def changed(self, change: Callable[[Any], Any]) -> "Records":
        """Changes X, y and weights alike, as far as there are any."""
        return Records(*(None if part is None else change(part) for part in self))


@functools.cache
def _made(row: Row, adjacency: str, size: float) -> Any:
    return row.make(adjacency, size)


@functools.cache
def _usual(row: Row, adjacency: str) -> kng.Release:
    return row.release(adjacency, row.records())


def ledger_of(folder: pathlib.Path, adjacency: str, budget: kng.Budget) -> kng.Ledger:
    """Creates a ledger for records of this adjacency."""
    return kng.Ledger.create(folder / f"{adjacency}.ledger", budget, adjacency=adjacency, dataset="people")


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """While it lasts the operating system's random bits are those of this seed."""
    with drawn_with(random.Random(seed).getrandbits):
        yield


@contextlib.contextmanager
def drawn_with(bits: Callable[[int], int]) -> Iterator[None]:
    """While it lasts these are the operating system's random bits."""
    with mock.patch("secrets.randbits", bits):
        yield


def plane(size: float = 1.0, **more: Any) -> kng.Bounds:
    """Bounds two columns without an intercept, and a response."""
    return kng.Bounds(x=(size * LOWER, size * UPPER), y=RESPONSE, intercept=False, **more)


def around_zero(size: float = 1.0) -> kng.Bounds:
    """Bounds two columns alone, either of which may be 0."""
    return kng.Bounds(x=(size * np.array([LOWER[0], 0.0]), size * UPPER), intercept=False)


def columns(size: float = 1.0) -> kng.Bounds:
    """Bounds two columns alone."""
    return kng.Bounds(x=(size * LOWER, size * UPPER), intercept=False)


def line(size: float = 1.0) -> kng.Bounds:
    """Bounds one column without an intercept, and a response."""
    return kng.Bounds(x=(size * LOWER[:1], size * UPPER[:1]), y=RESPONSE, intercept=False)


def counted(size: float, lower: np.ndarray, upper: np.ndarray) -> kng.Bounds:
    """Bounds columns without an intercept, and a response of counts."""
    return kng.Bounds(x=(size * lower, size * upper), y=(0.0, 2.3), intercept=False)


def theta(size: float = 1.0) -> kng.Box:
    """Bounds two coefficients of such columns by a box that lies unevenly about 0."""
    return kng.Box([-0.7 / size, -0.2 / size], [0.3 / size, 0.9 / size])


def _output(adjacency: str, size: float, loss: Any, bounds: kng.Bounds, ridge: float, **more: Any) -> Any:
    return kng.OutputPerturbation(loss, bounds, ridge * size**2, 1.1, 1e-3, adjacency, **more)


def _kng(loss: Any, adjacency: str, bounds: kng.Bounds, domain: Any, epsilon: float = 1.1, **more: Any) -> Any:
    return kng.KNG(loss, bounds, domain, epsilon, adjacency, **more)


def _shells(adjacency: str, size: float) -> Any:
    """Five coefficients of which no box is made, at an ε so large that some hundred records do."""
    bounds = kng.Bounds(x=(np.full(5, -0.3), np.full(5, 0.7)), intercept=False)
    return _kng(kng.LogisticLoss(), adjacency, bounds, kng.L2Ball(0.7), 99.9)


_FAR = (1e-50, 2.0**50)
_HUBER, _CHECK, _SQUARED = kng.HuberLoss(0.3), kng.QuantileLoss(0.3), kng.SquaredLoss()
_NUMBERS = kng.Bounds(y=RESPONSE)

ROWS: dict[str, Row] = {
    "mean": Row(NoisyMean, lambda a, s: kng.KNormMechanism(columns(s), 1.1, a), REPLACE, _FAR),
    "sum": Row(NoisyMean, lambda a, s: kng.KNormMechanism(columns(s), 1.1, a, statistic="sum"), BOTH, _FAR),
    "sum in blocks": Row(NoisyMean, lambda a, s: BlockSums(around_zero(s), 1.1, a, [(0, 1)]), BOTH, _FAR),
    "AdaSSP": Row(NoisyMoments, lambda a, s: kng.AdaSSP(plane(s), 1.1, DELTA, a), BOTH, _FAR),
    "AdaSSP with weights": Row(
        NoisyMoments, lambda a, s: kng.AdaSSP(plane(s, weight=3.3), 1.1, DELTA, a), most_weight=3.3
    ),
    "AdaOPS": Row(NoisyAdaOPS, lambda a, s: kng.AdaOPS(plane(s), 1.1, DELTA, a), BOTH, _FAR),
    "posterior sample": Row(
        NoisyPosterior,
        lambda a, s: kng.PosteriorSample(plane(s), 100.0 * s**2, 2.1, a, PROMISED, DELTA),
        BOTH,
        _FAR,
    ),
    "output, squared": Row(
        NoisyRidge, lambda a, s: _output(a, s, _SQUARED, plane(s), 120.0, max_records=PROMISED), BOTH, (1e-29, 1e29)
    ),
    "output, squared, hessian": Row(
        NoisyPosterior,
        lambda a, s: _output(a, s, _SQUARED, plane(s), 900.0, metric="hessian", max_records=PROMISED),
        BOTH,
        (1e-29, 1e29),
    ),
    "output, Huber": Row(NoisyMinimum, lambda a, s: _output(a, s, _HUBER, columns(s), 2.1), BOTH, (1e-40, 1e40)),
    "objective, squared": Row(
        # A value on the corner of the domain is drawn again and again.
        QuadraticMinimum,
        lambda a, s: kng.ObjectivePerturbation(_SQUARED, plane(s), theta(s), 1.1, a),
        BOTH,
        _FAR,
        certain=20,
    ),
    "objective, logistic": Row(
        SmoothMinimum,
        lambda a, s: kng.ObjectivePerturbation(kng.LogisticLoss(), columns(s), None, 1.1, a),
        BOTH,
        _FAR,
        responses=(0.0, 1.0),
    ),
    "objective, capped Poisson": Row(
        SmoothMinimum,
        lambda a, s: kng.ObjectivePerturbation(kng.CappedPoissonLoss(0.3), counted(s, LOWER, UPPER), None, 1.1, a),
        BOTH,
        _FAR,
        responses=(0.0, 1.0, 2.3),
    ),
    "private IRLS": Row(
        IteratesOnGrid, lambda a, s: kng.PrivateIRLS(plane(s), 1.1, DELTA, a, iterations=2), BOTH, _FAR
    ),
    "private IRLS, Laplace": Row(
        IteratesOnGrid,
        lambda a, s: kng.PrivateIRLS(
            plane(s), 1.1, DELTA, a, iterations=2, power=1.5, moment_noise="laplace", matrix_noise="laplace"
        ),
        BOTH,
        _FAR,
    ),
    "private IRLS, Wishart": Row(
        IteratesOnGrid,
        lambda a, s: kng.PrivateIRLS(
            plane(s), 1.1, DELTA, a, iterations=2, power=1.5, accounting="basic", matrix_noise="wishart"
        ),
        REPLACE,
    ),
    "counts": Row(
        NoisyCounts,
        lambda a, s: kng.GeometricMechanism(kng.Bounds(y=(0.0, 2.0)), 1.1, a),
        responses=(0.0, 1.0, 2.0),
        certain=20,
    ),
    "sums of weights": Row(
        NoisyCounts,
        lambda a, s: kng.GeometricMechanism(kng.Bounds(y=(0.0, 2.0), weight=3.3), 1.1, a),
        responses=(0.0, 1.0, 2.0),
        most_weight=3.3,
    ),
    "choice": Row(
        ExactChoice,
        lambda a, s: PrivateChoice(kng.Bounds(CANDIDATES, intercept=False), 1.1, a),
        certain=99,
    ),
    "interval": Row(
        ExactInterval,
        lambda a, s: kng.QuantileInterval(
            0.4, _NUMBERS, 1.1, a, force=True, num_records=None if a == "replace" else NUM_RECORDS
        ),
    ),
    "KNG, squared": Row(QuadraticDraw, lambda a, s: _kng(_SQUARED, a, plane(s), theta(s)), BOTH, _FAR),
    "KNG, means": Row(
        QuadraticDraw, lambda a, s: _kng(kng.SquaredDistanceLoss(), a, columns(), theta()), BOTH
    ),
    "KNG, Huber, boxes": Row(
        BoxDraw, lambda a, s: _kng(_HUBER, a, line(s), kng.Box(-0.7 / s, 0.3 / s)), BOTH, (1e-30, 2.0**30), False
    ),
    "KNG, capped Poisson, boxes": Row(
        BoxDraw,
        lambda a, s: _kng(
            kng.CappedPoissonLoss(0.1), a, counted(s, LOWER[:1], UPPER[:1]), kng.Box(-0.7 / s, 0.3 / s)
        ),
        BOTH,
        (1e-30, 2.0**30),
        responses=(0.0, 1.0, 2.3),
    ),
    "KNG, logistic, shells": Row(ShellDraw, _shells, REPLACE, (), responses=(0.0, 1.0), count=400),
    "KNG, quantile, lattice": Row(LatticeDraw, lambda a, s: _kng(_CHECK, a, plane(s), theta(s)), BOTH, ()),
    "KNG, squared, lattice": Row(
        LatticeDraw, lambda a, s: _kng(_SQUARED, a, plane(s), theta(s)), sampler=kng.draws.Lattice(theta_digits=20)
    ),
    "exponential, lattice": Row(
        LatticeDraw,
        lambda a, s: kng.ExponentialMechanism(_CHECK, line(s), kng.Box(-0.7 / s, 0.3 / s), 1.1, a),
    ),
    "one quantile": Row(LatticeDraw, lambda a, s: kng.PrivateQuantile(0.3, _NUMBERS, 1.1, a)),
    "two quantiles, split": Row(
        LatticeDraw, lambda a, s: kng.PrivateQuantile([0.3, 0.6], _NUMBERS, 1.1, a, budget="split")
    ),
}  # fmt: skip


def concrete(kind: type) -> set[type]:
    """All classes below this one that are not abstract and have none below."""
    below = set[type]().union(*map(concrete, kind.__subclasses__()))
    return below if inspect.isabstract(kind) or below else {kind}


def all_draws() -> set[type]:
    """Every class of the package by which a release is drawn with all roundings in its proof; pages define others."""
    return {one for one in concrete(AbstractDraw) if one.assurance == PROVED and one.__module__.startswith("kngjax.")}
