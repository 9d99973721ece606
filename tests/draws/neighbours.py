"""Measures the worst neighbours of draws: their loss over what is allowed, in fractions, balls or by exact laws.

A ratio above 1 would break the guarantee; one far below 1 would mean that there is more noise than the certificate
says. `audits.grid_laws.neighbours` has those of sums and minimisers with noise, in squares.
"""

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
from flint import arb, ctx

import kngjax as kng
from audits.lattices import lattice_law, lattice_loss
from kngjax.accounting.exact_costs import exactly
from kngjax.core.balls import ball_of
from kngjax.data.schema import Schema
from kngjax.draws import exact_choice, noisy_counts
from kngjax.draws.choice import proved_draw
from kngjax.draws.shell_draws import ShellDraw
from kngjax.losses.verified_scores import fraction_of
from kngjax.mechanisms import private_choice
from kngjax.mechanisms.output_perturbation import TOLERANCE

LINE = kng.Bounds(x=([-0.3], [0.7]), y=(-1.3, 0.9), intercept=False)
LEAST, MOST = -1.9, 2.1
UNIT = kng.Bounds(y=(0.0, 1.0))
COARSE = kng.draws.Lattice(data_digits=6, theta_digits=6, max_records=999)


def _way(mechanism: Any, count: int | None = None) -> Any:
    way = proved_draw(mechanism, Schema(mechanism.dimension or 1, count))
    assert way is not None
    return way


def _no_bits(number: int) -> int:
    return 0


def of_counts(adjacency: str) -> Fraction:
    """A record in one cell for one in another, or for none: P(z) ∝ exp(-rate·Σ|z - c|), beyond both counts."""
    rates: list[Fraction] = []
    way = _way(kng.GeometricMechanism(kng.Bounds(y=(0.0, 2.0)), 0.3, adjacency))
    tables = [[0, 1, 1, 0], [0, 1, 1, 2] if adjacency == "replace" else [0, 1, 1]]
    counts = [np.asarray(way.prepare(np.array(one, float), None).counts) for one in tables]
    with mock.patch.object(noisy_counts, "draw_two_sided_geometric", lambda rate, bits: rates.append(rate) or 0):
        way.draw(way.prepare(np.zeros(1), None), _no_bits)
    assert len(rates) == 3
    return max(rates) * int(np.abs(counts[0] - counts[1]).sum()) / exactly(0.3)


def of_choices(adjacency: str) -> float:
    """The record speaks for a candidate that all others speak against: P(k) ∝ exp(-rate·Σ losses)."""
    rates: list[Fraction] = []
    bounds = kng.Bounds({"a": (0.0, 1.0), "b": (0.0, 1.0)}, intercept=False)
    way = _way(private_choice.PrivateChoice(bounds, 1.1, adjacency))
    rows = [(0.0, 1.0)] * 60
    tables = [[*rows, (1.0, 0.0)], [*rows, (0.0, 1.0)] if adjacency == "replace" else rows]
    sums = [way.prepare(np.array(one), None) for one in tables]
    with mock.patch.object(exact_choice, "choose", lambda data, rate, bits: rates.append(rate) or 0):
        way.draw(sums[0], _no_bits)
    (rate,) = rates
    with ctx.workprec(300):
        # log P of each of two, exactly, from what it is behind.
        laws = [[-(1 + ball_of(rate * (one[k] - one[1 - k])).exp()).log() for k in (0, 1)] for one in sums]
        return max(float(abs(a - b)) for a, b in zip(*laws, strict=True)) / 1.1


def log_pairs(mechanism: Any, values: np.ndarray, digits: int) -> np.ndarray:
    """log P of each pair of places between multiples of 2^-digits, by the rate and the score of the draw."""
    way = _way(mechanism, len(values) if mechanism.num_records is None else None)
    pairs, number = way.prepare(None, values), 2**digits
    step = 2 ** (-digits - way.exponent)
    places = [place * step + step // 2 for place in range(number)]
    found = np.full((number, number), -np.inf)
    for first, second in itertools.combinations_with_replacement(range(number), 2):
        log_area = math.log(0.5 if first == second else 1.0)
        found[first, second] = log_area - float(pairs._rate) * pairs.score(places[first], places[second])
    return found - np.log(np.sum(np.exp(found)))


def of_intervals(adjacency: str) -> float:
    """A value that crosses the median of others at both ends and in the middle; or one more below them."""
    replaces = adjacency == "replace"
    known = None if replaces else 6
    mechanism = kng.QuantileInterval(0.5, UNIT, 9.9, adjacency, force=True, num_records=known)
    if replaces:
        shared = [0.0] * 2 + [0.5] * 12 + [1.0] * 15
        tables = [*shared, 0.0], [*shared, 0.75]
    else:
        shared = [0.5] * 23 + [1.0] * 7
        tables = shared, [*shared, 0.25]
    one, other = (log_pairs(mechanism, np.array(table), 2) for table in tables)
    kept = np.triu_indices(4)
    return float(np.max(np.abs(one[kept] - other[kept]))) / 9.9


def of_lattice_points(make: Callable[[str], Any], heaps: tuple[int, int], adjacency: str) -> float:
    """Values heaped near both ends, and one more that comes at the lower end, or goes from there to the upper one.

    **Arguments:** `heaps`: how many values are near the lower end and near the upper one.
    """
    mechanism = make(adjacency)
    shared = [-0.38] * heaps[0] + [1.28] * heaps[1]
    tables = [*shared, -0.4], [*shared, 1.3] if adjacency == "replace" else shared
    laws = []
    for table in tables:
        x = None if mechanism.bounds.x_lower is None else np.full((len(table), 1), 0.7)
        laws.append(lattice_law(mechanism.densities()[0], mechanism.intake.records(x, np.array(table)), COARSE))
    return lattice_loss(*laws)[1] / float(mechanism.epsilon)


def of_reweighted_moments(kind: str, which: int, adjacency: str) -> Fraction:
    """Opposite responses for the moment, orthogonal rows for the matrix, both about 0, or one record that comes.

    **Arguments:** `which`: the moment, 0, or the matrix, 1. In squares.
    """
    side = np.full(2, 0.7)
    bounds = kng.Bounds(x=(-side, side), y=(-1.3, 1.3), intercept=False)
    mechanism = kng.PrivateIRLS(
        bounds, 0.8, 1e-6, adjacency, iterations=3, cap=5.0, moment_share=0.3, moment_noise=kind, matrix_noise=kind
    )
    way, spent = _way(mechanism), mechanism._budget()[0]
    moves = [
        way.moments(np.array([[0.7], [sign * 0.7], [response]]), None)[which]
        for sign, response in ((1.0, 1.3), (1.0, -1.3), (-1.0, 1.3))
    ]
    move = moves[0] if adjacency == "add_remove" else moves[0] - moves[1 + which]
    noise = (way.moment, way.matrix.diagonal)[which].noise
    stated = exactly(float((spent.shifts if kind == "gaussian" else spent.epsilons)[which]))
    if kind == "gaussian":
        return (move**2).sum() / noise.scale_squared / stated**2
    entries = move if which == 0 else move[np.triu_indices(2)]
    return abs(entries).sum() ** 2 / noise.scale_squared / stated**2


def of_perturbed_objectives(share: float, centre: list[float] | None, adjacency: str) -> float:
    """A record whose score is largest at one end of Θ, beside others that pull there and have no Hessian.

    P(θ < t) = P(b ≥ -slope(t)), b a Laplace number, by balls; losses are those of cells and of both ends.
    """
    mechanism = kng.ObjectivePerturbation(
        kng.SquaredLoss(), LINE, kng.Box(LEAST, MOST), 0.7, adjacency, noise_share=share, centre=centre
    )
    law, (middle,) = (way := _way(mechanism)).law, way.centre
    largest, response = Fraction(0.7), Fraction(1.3)

    def distribution(records: list[tuple[int, Fraction, Fraction]]) -> Callable[[arb], arb]:
        rate = 1 / (ball_of(law.noise.scale_squared).sqrt() * ball_of(law.noise.weights[0]))

        def below(t: arb) -> arb:
            slope = ball_of(law.ridge) * (t - ball_of(middle))
            for number, x, y in records:
                slope += number * ball_of(x) * (ball_of(x) * t - ball_of(y))
            place = rate * slope
            return place.exp() / 2 if place < 0 else 1 - (-place).exp() / 2

        return below

    with ctx.workprec(400):
        others = (10**7, Fraction(1, 10**5), Fraction(1))
        laws = [distribution(data) for data in ([others], [others, (1, largest, -response)])]
        least, most = Fraction(LEAST), Fraction(MOST)
        ends = [ball_of(least + (most - least) * k / 1024) for k in range(1025)]
        masses = [[law(upper) - law(lower) for lower, upper in itertools.pairwise(ends)] for law in laws]
        masses = [[law(ends[0]), *inner, 1 - law(ends[-1])] for law, inner in zip(laws, masses, strict=True)]
        return max(float(abs((one / two).log())) for one, two in zip(*masses, strict=True)) / 0.7


def of_perturbed_minimisers(adjacency: str) -> float:
    """Huber's loss: a record far off moves the minimiser by k/λ from 0, or by twice that when it changes sides.

    δ(ε) of the normal laws about both places, which searches know to a tolerance, over δ.
    """
    epsilon, delta, spare = Fraction(3, 2), Fraction(1, 10**4), exactly(TOLERANCE)
    bounds = kng.Bounds(x=([-1.0], [1.0]), intercept=False)
    mechanism = kng.OutputPerturbation(kng.HuberLoss(0.3), bounds, 2.0, 1.5, 1e-4, adjacency)
    way, far = _way(mechanism), np.array([1e6])
    others = -far if adjacency == "replace" else far[:0]
    (one,), (other,) = (way.location(way.prepare(np.ones((len(y), 1)), y)) for y in (far, others))
    exact = Fraction(0.3) / 2 * (2 if adjacency == "replace" else 1)
    assert abs(abs(one - other) - exact) <= 2 * spare * Fraction(0.3)
    with ctx.workprec(400):
        # The searches' errors point away from each other.
        move = ball_of(exact * (1 + 2 * spare)) / ball_of(way.noise.scale_squared).sqrt()
        near, far_off = ((-(sign * move / 2 - ball_of(epsilon) / move) / arb(2).sqrt()).erfc() / 2 for sign in (1, -1))
        return float((near - ball_of(epsilon).exp() * far_off) / ball_of(delta))


def of_means(adjacency: str) -> Fraction:
    """A record at one corner of the bounds for one at the other, or one that comes, at the farthest corner of Θ.

    The gradient is nθ - Σx. In squares.
    """
    lower, upper = np.array([-0.3, 0.1]), np.array([0.7, 0.9])
    bounds = kng.Bounds(x=(lower, upper), intercept=False)
    mechanism = kng.KNG(kng.SquaredDistanceLoss(), bounds, kng.Box([-0.7, -0.2], [0.3, 0.9]), 0.4, adjacency)
    way, shared = _way(mechanism, 4), np.array([[0.1, 0.3]] * 3)
    others = [lower] if adjacency == "replace" else []
    one, other = (way.prepare(np.vstack([shared, *rows]), None) for rows in ([upper], others))
    moves = []
    for theta in itertools.product(*way.body.shape.sides):
        change = (one.gram - other.gram) @ np.array(theta, object) - (one.moment - other.moment)
        moves += [(move / weight) ** 2 for move, weight in zip(change, way.noise.weights, strict=True)]
    return max(moves) / way.noise.scale_squared / (exactly(0.4) / 2) ** 2


def of_capped_scores(adjacency: str) -> Fraction:
    """A record whose mean is beyond the cap and whose count is 0 comes, or takes the place of one at the other corner.

    At the end of Θ where the mean is so large. In squares: means are rounded downward.
    """
    limit, (least, most), epsilon = 0.1, (0.0, 0.3), 0.4
    bounds = kng.Bounds(x=([-0.3], [0.7]), y=(least, most), intercept=False)
    way = _way(kng.KNG(kng.CappedPoissonLoss(limit), bounds, kng.Box(-0.7, 0.3), epsilon, adjacency), 9)
    with ctx.workprec(200):
        capped, other = (fraction_of(arb(eta).exp().lower()) for eta in (limit, -0.3 * 0.3))
    (weight,), move = way.noise.weights, Fraction(0.7) * capped
    move += Fraction(0.3) * other if adjacency == "replace" else 0
    return (move / weight) ** 2 / way.noise.scale_squared / (exactly(epsilon) / 2) ** 2


def of_shells(adjacency: str) -> Fraction:
    """A record with the score k, in the place of one with -k or of none, at the corner of the bounds. In squares."""
    bounds = kng.Bounds(x=(np.array([-0.5, 0.1]), np.array([0.3, 0.7])))
    mechanism = kng.KNG(kng.PseudoHuberLoss(0.1), bounds, kng.L1Ball(2.1), 0.3, adjacency)
    facts = mechanism.intake.check_schema(np.zeros((10**6, 2)), np.zeros(10**6))
    way = ShellDraw.requested(mechanism, kng.draws.Shells(least_records=10**6), facts)
    number = 2 if adjacency == "replace" else 1
    changes = [number * Fraction(0.1) * size for size in map(Fraction, (1.0, 0.5, 0.7))]
    scales = [weight**2 * way.noise.scale_squared for weight in way.noise.weights]
    return max(change**2 / scale for change, scale in zip(changes, scales, strict=True)) / Fraction(3, 20) ** 2


def _median(adjacency: str) -> Any:
    return kng.PrivateQuantile(0.3, kng.Bounds(y=(-0.4, 1.3)), 1.1, adjacency)


def _regression(kind: type, adjacency: str) -> Any:
    bounds = kng.Bounds(x=([-0.3], [0.7]), y=(-0.4, 1.3), intercept=False)
    return kind(kng.QuantileLoss(0.3), bounds, kng.Box(-0.7, 1.9), 3.3, adjacency)


_exponential = partial(_regression, kng.ExponentialMechanism)
_BOTH = "replace", "add_remove"
# What is drawn, and its worst pair's loss over what is allowed; and how much of that it is at least.
WORST: dict[str, tuple[Callable[[], Any], float]] = {
    **{f"counts, {a}": (partial(of_counts, a), 1.0) for a in _BOTH},
    **{f"choice, {a}": (partial(of_choices, a), 0.99) for a in _BOTH},
    "interval, replace": (partial(of_intervals, "replace"), 0.99),
    # One value more changes no two ranks of the interval by all that joint levels allow.
    "interval, add_remove": (partial(of_intervals, "add_remove"), 0.9),
    **{f"one quantile, {a}": (partial(of_lattice_points, _median, (10, 60), a), 0.99) for a in _BOTH},
    **{
        f"KNG, quantile, {a}": (partial(of_lattice_points, partial(_regression, kng.KNG), (30, 60), a), 0.99)
        for a in _BOTH
    },
    # A constant cancels of every loss, so that both ends of a loss are not reached by one exchange.
    **{
        f"exponential, {a}": (
            partial(of_lattice_points, partial(_regression, kng.ExponentialMechanism), (60, 0), a),
            least,
        )
        for a, least in (("replace", 0.7), ("add_remove", 0.99))
    },
    **{
        f"private IRLS, {kind}, {what}, {a}": (partial(of_reweighted_moments, kind, which, a), 1.0)
        for kind in ("gaussian", "laplace")
        for which, what in enumerate(("moment", "matrix"))
        for a in _BOTH
        # Of the sum of entries an exchange moves less than twice what a record that comes does.
        if (kind, what, a) != ("laplace", "matrix", "replace")
    },
    "objective, half for the noise": (partial(of_perturbed_objectives, 0.5, None, "add_remove"), 0.99),
    "objective, a fifth for the noise": (partial(of_perturbed_objectives, 0.2, [-1.5], "add_remove"), 0.99),
    **{f"output, Huber, {a}": (partial(of_perturbed_minimisers, a), 1.0 - 1e-8) for a in _BOTH},
    **{f"KNG, means, {a}": (partial(of_means, a), 1.0) for a in _BOTH},
    # At one θ two records do not have the extremes of both scores.
    **{
        f"KNG, capped Poisson, {a}": (partial(of_capped_scores, a), least)
        for a, least in (("replace", 0.85), ("add_remove", 1.0 - 1e-9))
    },
    **{f"KNG, pseudo-Huber, shells, {a}": (partial(of_shells, a), 1.0) for a in _BOTH},
}
