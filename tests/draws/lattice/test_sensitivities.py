"""What scores are divided by: brute force in fractions over extreme records, both ways; far from 0 above all."""

import itertools
import math
from fractions import Fraction

import equinox as eqx
import numpy as np
import pytest

import kngjax as kng
from audits.lattice_search import search_lattices
from audits.lattices import lattice_law, lattice_loss, lattice_spread
from kngjax.accounting.exact_costs import root_upward
from kngjax.core.arrays import float64
from kngjax.draws.lattice import problems as wholes
from kngjax.draws.lattice.scores import WEIGHT_UNITS, GradientNorm
from kngjax.sensitivity import gradients, in_fractions
from tests.draws.lattice import problems

# No multiples of any spacing, in x, y and Θ.
BOUNDS = kng.Bounds(x=(-0.3, 0.7), y=(-0.4, 1.3))
COLUMNS = kng.Bounds(x={"one": (-0.3, 0.7), "two": (0.1, 0.9)}, intercept=False)
DOMAINS = {"box": kng.Box([-0.7, -0.2], [0.3, 0.9]), "l1": kng.L1Ball(0.9), "l2": kng.L2Ball(0.9)}
NORMS = (None, kng.L1(), kng.L2(), kng.LInf(), kng.WeightedLInf([0.3, 0.7]))
LOSSES = {"quantile": kng.QuantileLoss(0.3), "squared": kng.SquaredLoss(), "distance": kng.SquaredDistanceLoss()}
ADJACENCIES = ("replace", "add_remove")


def corners(mechanism, plan):
    """Extreme records after rounding, by the brute force's own rounding: features and response."""
    bounds = mechanism.bounds
    lower, upper = (
        np.broadcast_to(np.asarray(side), (bounds.columns or 1,)) for side in (bounds.x_lower, bounds.x_upper)
    )
    spacings = [Fraction(2) ** place for place in plan.exponents]
    one = [Fraction(1)] if bounds.intercept else []
    sides = [
        [problems.to_lattice(end, spacing) for end in ends]
        for *ends, spacing in zip(lower, upper, spacings[len(one) :], strict=True)
    ]
    responses = [Fraction(0)]
    if mechanism.loss.has_response:
        responses = [problems.to_lattice(end, Fraction(2) ** plan.response) for end in (bounds.y_lower, bounds.y_upper)]
        if isinstance(mechanism.loss, kng.QuantileLoss) and isinstance(mechanism, kng.KNG):
            responses = [Fraction(-1000), Fraction(1000)]
    return [([*one, *columns], y) for columns in itertools.product(*sides) for y in responses]


def points(plan):
    """Every θ of the lattice: multiples of its spacings in Θ."""
    domain = plan.domain
    sides = [range(int(low), int(high) + 1) for low, high in zip(domain.low, domain.high, strict=True)]
    for point in itertools.product(*sides):
        if domain.contains(np.array(point)):
            yield [k * Fraction(2) ** e for k, e in zip(point, domain.exponents, strict=True)]


def record_gradient(loss, record, theta):
    x, y = record
    if isinstance(loss, kng.SquaredDistanceLoss):
        return [coordinate - value for coordinate, value in zip(theta, x, strict=True)]
    if isinstance(loss, kng.SquaredLoss):
        return problems.squared_gradient([x], [y], theta)
    return problems.quantile_gradient([x], [y], Fraction(3, 10), theta)


def record_value(loss, record, theta):
    x, y = record
    if isinstance(loss, kng.SquaredDistanceLoss):
        return sum((coordinate - value) ** 2 for coordinate, value in zip(theta, x, strict=True)) / Fraction(2)
    if isinstance(loss, kng.SquaredLoss):
        return problems.squared_value([x], [y], theta)
    return problems.quantile_value([x], [y], Fraction(3, 10), theta)


def changes(mechanism, records, thetas):
    """Every change of the gradient by these records, at every θ."""
    at_every_theta = [[record_gradient(mechanism.loss, record, theta) for record in records] for theta in thetas]
    if mechanism.adjacency == "add_remove":
        return [gradient for gradients in at_every_theta for gradient in gradients]
    pairs = (pair for gradients in at_every_theta for pair in itertools.combinations(gradients, 2))
    return [[a - b for a, b in zip(one, other, strict=True)] for one, other in pairs]


def scores_times_features(mechanism, records, thetas):
    """By how much s·x_j changes for scores and features that vary freely of each other, as the proof lets them."""
    scores = [record_gradient(mechanism.loss, record, theta)[0] for theta in thetas for record in records]
    products = [[s * x[j] for s in (min(scores), max(scores)) for x, _ in records] for j in range(2)]
    if mechanism.adjacency == "replace":
        return [max(column) - min(column) for column in products]
    return [max(map(abs, column)) for column in products]


def found_in_norm(norm, vectors):
    if isinstance(norm, kng.L1):
        return max(sum(map(abs, vector)) for vector in vectors)
    if isinstance(norm, kng.L2):
        return max(root_upward(Fraction(sum(v**2 for v in vector))) for vector in vectors)
    weights = [Fraction(0.3), Fraction(0.7)] if isinstance(norm, kng.WeightedLInf) else [1, 1]
    return max(max(abs(v) / w for v, w in zip(vector, weights, strict=True)) for vector in vectors)


def mechanism_of(kind, loss, domain, adjacency, **parts):
    bounds = COLUMNS if loss == "distance" else BOUNDS
    return kind(LOSSES[loss], bounds, DOMAINS[domain], 1.0, adjacency, **parts)


def plan_of(mechanism, data_digits, theta_digits=2):
    return kng.draws.Lattice(data_digits, theta_digits, max_records=64).plan(mechanism, 2, None)


def settings(domains):
    return itertools.product(LOSSES, domains, ADJACENCIES)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("digits", [2, 4])
@pytest.mark.parametrize("domains", [("box",), ("l1", "l2")], ids=["box", "balls"])
def test_no_extreme_record_changes_a_gradient_by_more_and_in_a_box_one_changes_it_by_that(domains, digits):
    for loss, domain, adjacency in settings(domains):
        mechanism = mechanism_of(kng.KNG, loss, domain, adjacency)
        plan = plan_of(mechanism, digits)
        records, thetas = corners(mechanism, plan), list(points(plan))
        vectors = changes(mechanism, records, thetas)
        own = in_fractions.gradient_changes(mechanism.loss, plan.ranges, mechanism.adjacency)
        for norm in NORMS:
            if norm is None:
                found, bounds = [max(abs(vector[j]) for vector in vectors) for j in range(2)], own
            else:
                found = [found_in_norm(norm, vectors)]
                whole = norm.in_fractions(2)
                bounds = [in_fractions.gradient_sensitivity(mechanism.loss, plan.ranges, mechanism.adjacency, whole)]
            assert all(bound >= most for bound, most in zip(bounds, found, strict=True)), (loss, domain, adjacency)
            if loss == "quantile" or (loss, domain) == ("distance", "box"):
                assert bounds == found, (domain, adjacency, digits, norm)
            with_norm = eqx.tree_at(lambda made: made.norm, mechanism, norm, is_leaf=lambda part: part is None)
            _assert_divides(with_norm, plan, bounds, norm)
        if (loss, domain) == ("squared", "box"):
            assert own == scores_times_features(mechanism, records, thetas)


def _assert_divides(mechanism, plan, bounds, norm):
    """The whole numbers that scores are divided by are these, rounded up."""
    divisor = wholes.divisor_of(mechanism, plan)
    assert isinstance(divisor, GradientNorm)
    factor, extra = (10, 0) if isinstance(mechanism.loss, kng.QuantileLoss) else (1, plan.unit)
    places = [0, 0] if isinstance(mechanism.loss, kng.SquaredDistanceLoss) else plan.exponents
    units = [Fraction(2) ** (place + extra) for place in places]
    if isinstance(norm, kng.L1 | kng.L2):
        assert divisor.weights == math.ceil(factor * bounds[0] / min(units) * WEIGHT_UNITS)
        return
    weights = [Fraction(0.3), Fraction(0.7)] if isinstance(norm, kng.WeightedLInf) else [1, 1]
    expected = bounds if norm is None else [bounds[0] * weight for weight in weights]
    assert divisor.weights.tolist() == [
        math.ceil(factor * change / unit * WEIGHT_UNITS) for change, unit in zip(expected, units, strict=True)
    ]


@pytest.mark.default_cases("box-2")
@pytest.mark.parametrize("digits", [2, 4])
@pytest.mark.parametrize("domains", [("box",), ("l1", "l2")], ids=["box", "balls"])
def test_no_extreme_record_changes_a_loss_by_more_and_in_a_box_one_changes_it_by_that(domains, digits):
    for loss, domain, adjacency in settings(domains):
        mechanism = mechanism_of(kng.ExponentialMechanism, loss, domain, adjacency)
        plan = plan_of(mechanism, digits)
        records, thetas = corners(mechanism, plan), list(points(plan))
        values = [record_value(mechanism.loss, record, theta) for record in records for theta in thetas]
        bound = in_fractions.value_sensitivity(mechanism.loss, plan.ranges, mechanism.adjacency)
        # The least loss, 0 or at a record inside of the bounds, is not at a corner.
        half = 1 if adjacency == "replace" else 2
        assert bound >= (max(values) - min(values)) / half
        if domain == "box":
            assert bound == max(values) / half
        unit, factor = (plan.unit, 10) if loss == "quantile" else (2 * plan.unit, 2)
        divisor = wholes.divisor_of(mechanism, plan)
        assert divisor == math.ceil(factor * bound / Fraction(2) ** unit * WEIGHT_UNITS)


def test_the_least_loss_counts_where_it_is_not_zero():
    """y in [2, 3] and x'θ in [-1, 1]: residuals in [1, 4]."""
    far = kng.ExponentialMechanism(kng.SquaredLoss(), kng.Bounds(y=(2.0, 3.0)), kng.Box(-1.0, 1.0), 1.0, "replace")
    assert in_fractions.value_sensitivity(far.loss, plan_of_line(far).ranges, far.adjacency) == Fraction(15, 2)


def plan_of_line(mechanism, data_digits=4, theta_digits=4):
    return kng.draws.Lattice(data_digits, theta_digits).plan(mechanism, 1, 9)


@pytest.mark.default_cases("replace-few")
@pytest.mark.parametrize("pairs", [slice(2, 4), slice(None)], ids=["few", "all"])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_they_are_those_of_real_numbers_to_rounding(adjacency, pairs):
    """Of bounds and Θ on the lattice, by `kngjax.sensitivity.gradients`: neither less nor more."""
    line, plane = (
        kng.Bounds(x=(-0.25, 0.75), y=(-0.5, 1.5)),
        kng.Bounds(x={"one": (-0.25, 0.75), "two": (0.5, 2.0)}, intercept=False),
    )
    domains = (kng.Box([-0.75, -0.25], [0.5, 1.0]), kng.L1Ball(0.75), kng.L2Ball(0.75))
    squared = [(LOSSES["squared"], domain) for domain in domains]
    every = [*squared, (LOSSES["quantile"], domains[0]), (LOSSES["distance"], domains[2])]
    for loss, domain in every[pairs]:
        bounds = plane if isinstance(loss, kng.SquaredDistanceLoss) else line
        mechanism = kng.KNG(loss, bounds, domain, 1.0, adjacency)
        plan = kng.draws.Lattice(12, 12, max_records=64).plan(mechanism, 2, None)
        with float64():
            facts = (loss, bounds, domain, mechanism.adjacency)
            floats = np.asarray(gradients.gradient_changes(*facts, 2))
            in_norms = [float(gradients.gradient_sensitivity(*facts, norm, 2)) for norm in (kng.L1(), kng.L2())]
            value = float(gradients.value_sensitivity(*facts, 2))
        ours = in_fractions.gradient_changes(loss, plan.ranges, mechanism.adjacency)
        np.testing.assert_allclose([float(change) for change in ours], floats, rtol=1e-12)
        for norm, in_norm in zip((kng.L1(), kng.L2()), in_norms, strict=True):
            whole = norm.in_fractions(2)
            found = float(in_fractions.gradient_sensitivity(loss, plan.ranges, mechanism.adjacency, whole))
            np.testing.assert_allclose(found, in_norm, rtol=1e-12)
        if isinstance(loss, kng.QuantileLoss):
            # KNG leaves its responses open.
            plan = plan._replace(responses=tuple(int(end / 2.0**plan.response) for end in (-0.5, 1.5)))
        found = float(in_fractions.value_sensitivity(loss, plan.ranges, mechanism.adjacency))
        np.testing.assert_allclose(found, value, rtol=1e-12)


def far_from_zero(exponent):
    """Where float64 rounds the ends of x'θ inward, by half of its last place, and y is 1 wide."""
    last_place = 2.0 ** (exponent - 52)
    low, half = 2.0**exponent + 64 * last_place + 16, 16 * last_place
    size = (16 - 0.51) / 16
    bounds, domain = kng.Bounds(x=(-size, size), y=(low - half, low + 1 + half)), kng.Box([low, -half], [low + 1, half])
    mechanism = kng.ExponentialMechanism(kng.SquaredLoss(), bounds, domain, 1.0, "replace")
    X, y = np.full((40_000, 1), size), np.full(40_000, low + 1 + half)
    other = y.copy()
    other[-1] = low - half
    return mechanism, (X, y), (X, other)


@pytest.mark.parametrize("exponent", [46, 48])
def test_the_loss_stays_within_epsilon_far_from_zero(exponent):
    mechanism, *pair = far_from_zero(exponent)
    sampler = kng.draws.Lattice(data_digits=50, theta_digits=2)
    laws = [lattice_law(mechanism, mechanism.intake.records(*records), sampler) for records in pair]
    low, high = lattice_loss(*laws)
    # 1.0104 and 1.0209 if the sensitivity is that of float64.
    assert 0.99 < low <= high <= 1.0
    assert lattice_spread(*laws) <= 2


def test_timestamps_with_default_digits_have_no_smaller_sensitivity_than_a_corner():
    """θ_1 and y about 10^5 to 10^6, some 1 wide."""
    generator, found = np.random.default_rng(0), 0
    for offset, width in zip(
        generator.integers(100_000, 900_000, 8), generator.choice([0.5, 1.0, 2.0], 8), strict=True
    ):
        low, high = float(offset), float(offset + width)
        bounds, domain = kng.Bounds(x=(-0.3, 0.7), y=(low, high)), kng.Box([low, -0.1], [high, 0.1])
        mechanism = kng.ExponentialMechanism(kng.SquaredLoss(), bounds, domain, 1.0, "replace")
        plan = kng.draws.Lattice().plan(mechanism, 2, 100)
        ends = list(itertools.product(*plan.domain.range.sides))
        most = max(record_value(mechanism.loss, record, theta) for record in corners(mechanism, plan) for theta in ends)
        divisor = wholes.divisor_of(mechanism, plan)
        assert divisor >= 2 * most / Fraction(2) ** (2 * plan.unit) * WEIGHT_UNITS
        found += divisor == math.ceil(2 * most / Fraction(2) ** (2 * plan.unit) * WEIGHT_UNITS)
    assert found == 8


@pytest.mark.parametrize(("number", "seed"), [(2, 7), pytest.param(60, 5, marks=pytest.mark.slow)])
def test_no_random_setting_loses_more_than_epsilon(number, seed):
    """Red within 60 settings for sensitivities of float64: a spread of 1.002."""
    found = search_lattices(number, seed)
    assert found.pairs > 4 * number
    assert found.refused <= 0.6 * number
    assert found.loss <= 1.0
    assert Fraction(99, 100) < found.spread <= 1


def test_a_divisor_is_the_least_whole_number_that_is_no_smaller_than_the_change():
    for change, unit in ((Fraction(1, 3), 0), (Fraction(2, 7), -3), (Fraction(5, 3), 4), (Fraction(3), 0)):
        least = wholes._whole(change, unit)
        assert Fraction(least, WEIGHT_UNITS) * Fraction(2) ** unit >= change
        assert Fraction(least - 1, WEIGHT_UNITS) * Fraction(2) ** unit < change
