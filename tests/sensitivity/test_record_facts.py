"""What is proved of records in fractions, beside all corners and beside float64."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import kngjax as kng
from kngjax.accounting.exact_costs import root_upward
from kngjax.accounting.guarantees import Adjacency
from kngjax.core.arrays import float64
from kngjax.geometry.reach import Everywhere
from kngjax.geometry.scaled_norms import ScaledNorm
from kngjax.geometry.shapes import Shape
from kngjax.sensitivity import gradients
from kngjax.sensitivity.record_facts import (
    RecordFacts,
    changes_of_products,
    gradient_noise,
)

# Neither centred nor alike.
BOUNDS = kng.Bounds(x=(np.array([-1.0, 0.5]), np.array([2.0, 3.0])), y=(0.0, 3.0))
LOSSES = [
    kng.SquaredLoss(),
    kng.HuberLoss(0.7),
    kng.PseudoHuberLoss(1.3),
    kng.LogisticLoss(),
    kng.PoissonLoss(),
    kng.SmoothedQuantileLoss(0.3, 0.2),
    kng.ExpectileLoss(0.8),
    kng.CappedPoissonLoss(0.5),
]
DOMAINS = [None, kng.Box(np.array([-1.0, 0.25, -0.5]), np.array([0.5, 2.0, 0.0])), kng.L1Ball(2.0), kng.L2Ball(1.5)]
NORMS = [kng.L1(), kng.L2(), kng.LInf(), kng.WeightedLInf([1.0, 0.25, 7.0])]


def facts_of(loss, domain):
    bounds = kng.Bounds(x=(BOUNDS.x_lower, BOUNDS.x_upper)) if isinstance(loss, kng.LogisticLoss) else BOUNDS
    return RecordFacts.of(loss, bounds, domain, 3), bounds


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("loss", [kng.SmoothedQuantileLoss(0.3, 0.2), kng.HuberLoss(0.7)])
def test_changes_are_the_longest_between_corners(loss, adjacency):
    """All pairs of ends of the score and corners of the features, in three norms."""
    facts, _ = facts_of(loss, None)
    corners = [[s * x for x in place] for s in facts.score for place in itertools.product(*facts.features)]
    moves = corners
    if adjacency is Adjacency.REPLACE:
        moves = [[one - two for one, two in zip(*pair, strict=True)] for pair in itertools.product(corners, repeat=2)]
    changes = facts.changes(adjacency)
    for length in (lambda v: sum(map(abs, v)), lambda v: sum(one**2 for one in v), lambda v: max(map(abs, v))):
        assert max(map(length, changes)) == max(map(length, moves))
    widest = [max(abs(move[j]) for move in moves) for j in range(3)]
    assert gradient_noise(changes, None, Fraction(2)) == ScaledNorm("maximum", tuple(widest), Fraction(1, 4))


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_ends_that_are_the_same_count_once(adjacency):
    """And change nothing: of an interval without width, and of a score that is one number."""
    half, point, wide = Fraction(1, 2), (Fraction(2), Fraction(2)), (Fraction(-1), Fraction(3))
    number = 3 if adjacency is Adjacency.REPLACE else 2
    assert len(changes_of_products((-half, half), [point, wide], adjacency)) == number
    expected = {Adjacency.REPLACE: [[0, 2]], Adjacency.ADD_REMOVE: [[1, Fraction(3, 2)]]}[adjacency]
    assert changes_of_products((half, half), [point, wide], adjacency) == expected


def check_facts(loss, domain, adjacency, norms):
    """The facts in fractions are the numbers of float64."""
    facts, bounds = facts_of(loss, domain)
    if facts is None:
        assert domain is None
        assert loss.needs_response_bounds
        return
    reach = domain or Everywhere()
    with float64():
        widths = np.asarray(gradients.gradient_changes(loss, bounds, reach, adjacency, 3))
        noise = gradient_noise(facts.changes(adjacency), None, Fraction(1))
        np.testing.assert_allclose([float(weight) for weight in noise.weights], widths, rtol=1e-14)
        for norm in norms:
            noise = gradient_noise(facts.changes(adjacency), norm, Fraction(1))
            value = float(gradients.gradient_sensitivity(loss, bounds, reach, adjacency, norm, 3))
            assert float(noise.scale_squared) ** 0.5 == pytest.approx(value, rel=1e-13)
        largest = float(gradients.hessian_sensitivity(loss, bounds, reach, 3))
        assert float(facts.curvature * facts.largest_square) == pytest.approx(largest, rel=1e-14)


# Each loss with one domain, adjacency and norm, such that each of these comes up.
IN_TURN = list(zip(LOSSES, (DOMAINS * 3)[1:], list(Adjacency) * 4, NORMS * 2, strict=False))


@pytest.mark.parametrize("case", IN_TURN, ids=lambda case: type(case[0]).__name__)
def test_facts_are_those_of_float64(case):
    loss, domain, adjacency, norm = case
    check_facts(loss, domain, adjacency, [norm])


def test_losses_of_unbounded_scores_have_no_facts_without_a_domain():
    for loss in LOSSES:
        is_unbounded = loss.needs_response_bounds and not isinstance(loss, kng.CappedPoissonLoss)
        assert (facts_of(loss, None)[0] is None) is is_unbounded


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_facts_are_those_of_float64_for_every_domain_and_norm(loss):
    for domain, adjacency in itertools.product(DOMAINS, Adjacency):
        check_facts(loss, domain, adjacency, NORMS)


def test_predictors_reach_as_far_as_corners_and_never_less():
    features = [(Fraction(1), Fraction(1)), (Fraction(-2), Fraction(3))]
    sides = (Fraction(-1), Fraction(4)), (Fraction(-1, 3), Fraction(1, 7))
    assert Shape(sides).linear_interval(features) == (-2, 4 + Fraction(2, 3))
    assert Shape.ball(2.0, 1, 2).linear_interval(features) == (-6, 6)
    _, most = Shape.ball(2.0, 2, 2).linear_interval(features)
    assert 40 <= most**2 <= 40 * (1 + Fraction(1, 2**60))


def test_roots_are_rounded_up_by_next_to_nothing():
    for value in (Fraction(2), Fraction(1, 3), Fraction(10) ** 80, Fraction(7, 2**401), Fraction(49, 4), Fraction(0)):
        root = root_upward(value)
        assert value <= root**2 <= value * (1 + Fraction(1, 2**62))
    assert root_upward(Fraction(49, 4)) == Fraction(7, 2)


def test_what_is_not_known_in_fractions_has_no_facts():
    triangle = kng.geometry.FeatureHull([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    assert RecordFacts.of(kng.LogisticLoss(), kng.Bounds(hull=triangle), None, 3) is None
    assert RecordFacts.of(kng.QuantileLoss(0.5), BOUNDS, None, 3) is None
    facts, _ = facts_of(kng.LogisticLoss(), None)
    assert gradient_noise(facts.changes(Adjacency.REPLACE), kng.Ellipsoid(np.eye(3)), Fraction(1)) is None
