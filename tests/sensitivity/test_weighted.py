"""Sensitivities of records with weights: reached by the worst neighbours, never exceeded, the same in fractions."""

import itertools
import pathlib
import re
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kngjax as kng
from kngjax.accounting.guarantees import Adjacency
from kngjax.core.arrays import float64
from kngjax.data.records import Records, WeightedRecords
from kngjax.geometry.reach import SinglePoint
from kngjax.sensitivity import gradients, in_fractions, pointwise, weighted
from kngjax.sensitivity.record_facts import RecordFacts

LARGEST = 2.5
LOSSES = {
    "quantile": kng.QuantileLoss(0.8),
    "squared": kng.SquaredLoss(),
    "pseudo-Huber": kng.PseudoHuberLoss(0.4),
    "Huber": kng.HuberLoss(0.4),
    "logistic": kng.LogisticLoss(),
    "Poisson": kng.PoissonLoss(),
    "smoothed quantile": kng.SmoothedQuantileLoss(0.3, 0.2),
    "expectile": kng.ExpectileLoss(0.8),
    "mean": kng.SquaredDistanceLoss(),
}
ADJACENCIES = tuple(Adjacency)
DOMAIN = kng.Box([-0.5, -1.0], [1.0, 1.5])
X_ENDS, Y_ENDS = (-0.5, 2.0), (-1.0, 3.0)


def bounds_of(name, weight=LARGEST):
    if name == "mean":
        return kng.Bounds(x=(np.array([-0.5, 1.0]), np.array([2.0, 4.0])), intercept=False, weight=weight)
    y = (0.0, 1.0) if name == "logistic" else (0.0, 4.0) if name == "Poisson" else Y_ENDS
    return kng.Bounds(x=(np.array([X_ENDS[0]]), np.array([X_ENDS[1]])), y=y, weight=weight)


@jax.jit
def _record_gradients(loss, theta, data):
    return loss.record_gradients(theta, data)


@jax.jit
def _curvatures(loss, predictors, responses):
    return jax.vmap(loss.record_curvature)(predictors, responses)


def contributions(name, loss, theta, bounds, generator):
    """w·∇ℓ(θ; z) at one θ for extreme and for random records, shape (records, 2), and w·ρ''(η, y)·|x|²."""
    (low, high), count = bounds.features(2), 60
    corners = np.array(list(itertools.product(*np.transpose([low, high]).tolist())))
    inside = np.asarray(low) + (np.asarray(high) - np.asarray(low)) * generator.uniform(size=(count, 2))
    x = np.concatenate([corners, inside])
    ends = (0.0, 0.0) if bounds.y_lower is None else (float(bounds.y_lower), float(bounds.y_upper))
    found, sizes = [], []
    for y, w in itertools.product([*ends, generator.uniform(*ends)], [0.0, LARGEST, generator.uniform(0.0, LARGEST)]):
        data = WeightedRecords(Records(x, np.full(len(x), y)), np.full(len(x), w))
        found.append(np.asarray(_record_gradients(loss, jnp.asarray(theta), data)))
        if name != "mean":
            curvature = np.asarray(_curvatures(loss, x @ theta, data.rows.y))
            sizes.append(w * curvature * np.sum(x * x, axis=1))
    return np.concatenate(found), np.max(sizes, initial=0.0)


def thetas(generator):
    lower, upper = (np.asarray(side) for side in (DOMAIN.lower, DOMAIN.upper))
    corners = np.array(list(itertools.product(*np.transpose([lower, upper]).tolist())))
    return np.concatenate([corners, lower + (upper - lower) * generator.uniform(size=(4, 2))])


@pytest.mark.default_cases("squared-add_remove", "logistic-replace", "mean-replace")
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("name", LOSSES)
def test_changes_are_reached_and_never_exceeded(name, adjacency):
    """Over records and weights of one θ at a time; where a loss reaches its ends at infinity it comes near them."""
    loss, bounds, generator = LOSSES[name], bounds_of(name), np.random.default_rng(0)
    with float64():
        claimed = np.asarray(gradients.gradient_changes(loss, bounds, DOMAIN, adjacency, 2))
        most, curvature = np.zeros(2), 0.0
        for theta in thetas(generator):
            found, size = contributions(name, loss, theta, bounds, generator)
            if adjacency is Adjacency.REPLACE:
                change = found.max(axis=0) - found.min(axis=0)
            else:
                change = np.abs(found).max(axis=0)
            most, curvature = np.maximum(most, change), max(curvature, size)
        assert np.all(most <= claimed * (1.0 + 1e-12))
        # What is claimed for all θ at once is reached at different ones where one record's gradient has no sign.
        sharp = {"quantile": 1.0, "Huber": 1.0, "squared": 0.5, "pseudo-Huber": 0.9, "expectile": 0.5, "mean": 1.0}
        assert np.all(most >= sharp.get(name, 0.3) * claimed * (1.0 - 1e-12))
        if name not in ("mean", "quantile"):
            largest = float(gradients.hessian_sensitivity(loss, bounds, DOMAIN, 2))
            assert 0.2 * largest <= curvature <= largest * (1.0 + 1e-12)
            assert largest == pytest.approx(
                LARGEST * float(gradients.hessian_sensitivity(loss, bounds_of(name, None), DOMAIN, 2)), rel=1e-12
            )


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("norm", [None, kng.L1(), kng.L2(), kng.LInf()], ids=["default", "l1", "l2", "linf"])
def test_the_worst_neighbours_of_a_quantile_spend_all_of_epsilon(norm, adjacency):
    """Two records at a corner, of weights W: the norm of what they change is Δ; of any weights it is no more."""
    loss, bounds = LOSSES["quantile"], bounds_of("quantile")
    with float64():
        value = float(gradients.gradient_sensitivity(loss, bounds, DOMAIN, adjacency, norm, 2))
        measure = norm or kng.WeightedLInf(gradients.gradient_changes(loss, bounds, DOMAIN, adjacency, 2))
        found = [
            w * score * np.array([1.0, x]) for w in (0.0, LARGEST) for score in (-0.8, 0.2) for x in (*X_ENDS, 0.3)
        ]
        pairs = itertools.product(found, found if adjacency is Adjacency.REPLACE else [np.zeros(2)])
        assert max(float(measure(one - other)) for one, other in pairs) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_mean_of_weights_that_differ_cancels_theta_but_where_it_leaves_the_bounds(adjacency):
    """By hand: x in [-.5, 2] and [1, 4], and a Θ within, below, above or around them, or none of it there."""
    loss, bounds = LOSSES["mean"], bounds_of("mean")
    around = {
        (0.0, 0.5): (2.5, 4.0),
        (-3.0, 0.5): (5.0, 7.0),
        (0.0, 9.0): (9.5, 8.0),
        (-1.0, 6.0): (6.5, 5.0),
        (7.0, 8.0): (8.5, 7.0),
        (-0.5, 2.0): (2.5, 4.5),
    }
    with float64():
        for (low, high), most in around.items():
            domain = kng.Box(low, high)
            changes = np.asarray(gradients.gradient_changes(loss, bounds, domain, adjacency, 2))
            if adjacency is Adjacency.ADD_REMOVE:
                most = tuple(max(high - lower, upper - low) for lower, upper in ((-0.5, 2.0), (1.0, 4.0)))
            np.testing.assert_array_equal(changes, LARGEST * np.array(most), str((low, high)))
            exact = in_fractions.gradient_changes(
                loss, in_fractions.Ranges.of(bounds, domain.exact_shape(2)), adjacency
            )
            assert [float(one) for one in exact] == changes.tolist()
        ends = weighted.gradient_range_at(loss, jnp.array([0.5, 2.0]), bounds, adjacency)
        np.testing.assert_allclose(ends, [[-LARGEST * 1.5, -LARGEST * 2.0], [LARGEST, LARGEST]])
        score = pointwise.PointwiseSensitivity(loss, bounds, adjacency)
        expected = [LARGEST * 2.5, LARGEST * 3.0] if adjacency is Adjacency.REPLACE else [LARGEST * 1.5, LARGEST * 2.0]
        np.testing.assert_allclose(score.changes(jnp.array([0.5, 2.0])), expected)
    assert weighted.why_no_points(loss, bounds, adjacency) is not None
    assert weighted.range_depends_on_theta(loss, bounds, adjacency)
    mechanism = kng.KNG(loss, bounds, kng.Box([-0.5, 1.0], [2.0, 4.0]), 1.0, adjacency)
    assert "its weight, from 0 to 2.5" in mechanism.sensitivity.derivation


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("name", ["quantile", "squared", "mean"])
def test_fractions_are_the_floats(name, adjacency):
    loss, bounds = LOSSES[name], bounds_of(name)
    ranges = in_fractions.Ranges.of(bounds, DOMAIN.exact_shape(2))
    assert ranges.weight == Fraction(LARGEST)
    with float64():
        changes = np.asarray(gradients.gradient_changes(loss, bounds, DOMAIN, adjacency, 2))
        value = float(gradients.value_sensitivity(loss, bounds, DOMAIN, adjacency, 2))
    exact = in_fractions.gradient_changes(loss, ranges, adjacency)
    np.testing.assert_allclose([float(one) for one in exact], changes, rtol=1e-14)
    assert float(in_fractions.value_sensitivity(loss, ranges, adjacency)) == pytest.approx(value, rel=1e-14)
    without = in_fractions.Ranges.of(bounds_of(name, None), DOMAIN.exact_shape(2))
    assert in_fractions.value_sensitivity(loss, ranges, adjacency) == Fraction(
        LARGEST
    ) * in_fractions.value_sensitivity(loss, without, adjacency)


@pytest.mark.parametrize("name", ["pseudo-Huber", "Huber", "logistic", "Poisson", "expectile", "smoothed quantile"])
def test_facts_of_one_record_have_its_weight(name):
    loss = LOSSES[name]
    known, plain = (RecordFacts.of(loss, bounds_of(name, weight), DOMAIN, 2) for weight in (LARGEST, None))
    assert known.curvature == Fraction(LARGEST) * plain.curvature
    assert known.score == tuple(Fraction(LARGEST) * end for end in plain.score)
    assert plain.score[0] < 0 < plain.score[1]
    for adjacency in ADJACENCIES:
        with float64():
            changes = np.asarray(gradients.gradient_changes(loss, bounds_of(name), DOMAIN, adjacency, 2))
        exact = [float(max(sizes)) for sizes in zip(*known.changes(adjacency), strict=True)]
        np.testing.assert_allclose(exact, changes, rtol=1e-12)


def test_a_score_of_one_sign_may_be_0_by_its_weight():
    """s in [1, 3] is w·s in [0, 3W], and not [W, 3W]."""
    assert weighted.of_weighted_in_fractions((Fraction(1), Fraction(3)), Fraction(2)) == (0, 6)
    assert weighted.of_weighted_in_fractions((Fraction(-3), Fraction(-1)), Fraction(2)) == (-6, 0)
    bounds = kng.Bounds(x=(np.array([1.0]), np.array([2.0])), y=(-9.0, -5.0), weight=2.0)
    reach = SinglePoint(jnp.zeros(2))
    with float64():
        low, high = weighted.score_range(LOSSES["squared"], bounds, reach, Adjacency.REPLACE, 2)
        assert (float(low), float(high)) == (0.0, 18.0)
        np.testing.assert_array_equal(
            gradients.gradient_changes(LOSSES["squared"], bounds, reach, Adjacency.REPLACE, 2), [18.0, 36.0]
        )


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_loss_of_worst_neighbours_spends_all_of_epsilon(adjacency):
    """The range over Θ of what two records change the loss by is 2Δ, and of one record more as well."""
    loss, bounds, theta = LOSSES["quantile"], bounds_of("quantile"), np.linspace(-1.0, 1.0, 401)
    line = kng.Bounds(y=(-1.0, 1.0), weight=LARGEST)
    with float64():
        value = float(gradients.value_sensitivity(loss, line, kng.Box([-1.0], [1.0]), adjacency, 1))

    def weighed(w, y):
        return w * np.where(y > theta, 0.8 * (y - theta), -0.2 * (y - theta))

    changes = [weighed(w, y) for w in (0.0, LARGEST) for y in (-1.0, -0.3, 1.0)]
    pairs = itertools.product(changes, changes if adjacency is Adjacency.REPLACE else [np.zeros(401)])
    most = max(np.ptp(one - other) for one, other in pairs)
    assert most <= 2.0 * value * (1.0 + 1e-12)
    if adjacency is Adjacency.ADD_REMOVE:
        assert most == pytest.approx(2.0 * value, rel=1e-12)
    assert "times its weight" in gradients.explain_value_sensitivity(bounds, adjacency, value)


def test_ranges_are_asked_for_in_one_place():
    """So that none of them lacks the weight: the losses answer to `kngjax.sensitivity.weighted` alone."""
    root = pathlib.Path(kng.__file__).parent
    asked = re.compile(r"(?<!weighted)\.(gradient_range|gradient_range_at|score_range|range_depends_on_theta)\(")
    found = [
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if path.parent.name != "losses" and asked.search(path.read_text(encoding="utf-8"))
    ]
    assert found == ["sensitivity/weighted.py"]
