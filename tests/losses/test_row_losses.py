"""Losses that see the row of features: sums by hand, densities by weights, sensitivities by search, and refusals."""

import types
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import kngjax as kng
from kngjax.data.records import Records, WeightedRecords
from kngjax.losses.base import AbstractRowLoss
from tests.offenders import every_case

TAU = 0.3
pytestmark = pytest.mark.float64


def scale(row):
    """σ(x) = .6 - .4 x_1, least at the highest row."""
    return 0.6 - 0.4 * row[1]


class AsymmetricLaplace(AbstractRowLoss):
    """ρ_τ((y - x'θ)/σ(x)): the check loss of a residual in units that depend on features."""

    def record_value(self, predictor, response, row):
        residual = (response - predictor) / scale(row)
        return residual * (TAU - jnp.where(residual <= 0.0, 1.0, 0.0))

    def score_interval(self, predictor, response, rows):
        return -TAU / scale(rows[1]), (1.0 - TAU) / scale(rows[1])

    def value_interval(self, predictor, response, rows):
        lowest, highest = response[0] - predictor[1], response[1] - predictor[0]
        return 0.0, jnp.maximum(TAU * highest, (TAU - 1.0) * lowest) / scale(rows[1])

    def gradient_is_piecewise_constant(self, dimension):
        return True


class Offset(AbstractRowLoss):
    """Huber-like: √(1 + (y - x'θ - sin x_1)²), whose score lies in [-1, 1] for every record."""

    def record_value(self, predictor, response, row):
        return jnp.sqrt(1.0 + jnp.square(response - predictor - jnp.sin(row[1])))

    def score_interval(self, predictor, response, rows):
        return -1.0, 1.0


class TooNarrow(AsymmetricLaplace):
    def score_interval(self, predictor, response, rows):
        return -TAU / scale(rows[0]), (1.0 - TAU) / scale(rows[0])


class Welsch(Offset):
    """No convex loss, and declared as none."""

    def record_value(self, predictor, response, row):
        return 1.0 - jnp.exp(-0.5 * jnp.square((response - predictor) / scale(row)))

    def score_interval(self, predictor, response, rows):
        return -jnp.exp(-0.5) / scale(rows[1]), jnp.exp(-0.5) / scale(rows[1])


BOX = [1.0, -1.0], [1.0, 1.0]
BOUNDS = kng.Bounds(x=(-1.0, 1.0), columns=1, y=(-4.0, 4.0))


def problem(number=40):
    random = np.random.default_rng(5)
    x = np.column_stack([np.ones(number), random.uniform(-1.0, 1.0, number)])
    return x, 0.3 + x[:, 1] + scale(x.T) * random.standard_normal(number), random.uniform(0.5, 2.0, number)


def mechanism(kind: Any = kng.KNG, loss: Any = None, bounds=BOUNDS, adjacency="replace"):
    return kind(loss or AsymmetricLaplace(), bounds, kng.Box(-3.0, 3.0), 1.0, adjacency)


def test_sums_are_those_by_hand():
    (x, y, weights), theta, loss = problem(), np.array([0.2, -0.7]), Offset()
    residual = y - x @ theta - np.sin(x[:, 1])
    root = np.sqrt(1.0 + residual**2)
    for given, w in ((Records(x, y), np.ones_like(y)), (WeightedRecords(Records(x, y), weights), weights)):
        np.testing.assert_allclose(loss.value(theta, given), w @ root, rtol=1e-12)
        scores = -w * residual / root
        np.testing.assert_allclose(loss.record_gradients(theta, given), scores[:, None] * x, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(loss.gradient(theta, given), scores @ x, rtol=1e-12)
        np.testing.assert_allclose(loss.hessian(theta, given), (x.T * (w / root**3)) @ x, rtol=1e-12)


def test_a_scale_is_a_weight_of_a_homogeneous_loss():
    """ρ_τ(r/σ) = ρ_τ(r)/σ: sensitivities and densities are those of weights 1/σ(x), which have proofs of their own."""
    (x, y, _), largest = problem(), 5.0
    weighted = kng.Bounds(x=(-1.0, 1.0), columns=1, y=(-4.0, 4.0), weight=largest)
    with every_case() as case:
        for kind in (kng.KNG, kng.ExponentialMechanism):
            for adjacency in ("replace", "add_remove"):
                with case(kind.__name__, adjacency):
                    seen = mechanism(kind, adjacency=adjacency)
                    known = mechanism(kind, kng.QuantileLoss(TAU), weighted, adjacency)
                    np.testing.assert_allclose(seen.sensitivity.value, known.sensitivity.value)
                    data = seen.prepare(x[:, 1:], y), known.prepare(x[:, 1:], y, weights=1.0 / scale(x.T))
                    for theta in (np.array([0.1, 0.2]), np.array([1.0, -0.3])):
                        found = seen.log_density(theta, data[0]), known.log_density(theta, data[1])
                        # Weights are rounded to 20 binary digits.
                        np.testing.assert_allclose(*found, rtol=1e-6)


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_no_record_moves_the_gradient_by_more_and_some_by_as_much(adjacency):
    """Of the intercept, at the narrowest scale."""
    random, loss = np.random.default_rng(1), AsymmetricLaplace()
    x = np.column_stack([np.ones(400), np.append(random.uniform(-1.0, 1.0, 398), [-1.0, 1.0])])
    gradients = np.concatenate([loss.record_gradients(np.zeros(2), Records(x, np.full(400, y))) for y in (-1.0, 1.0)])
    if adjacency == "replace":
        moved = np.max(np.abs(gradients[:, None] - gradients), axis=(0, 1))
    else:
        moved = np.max(np.abs(gradients), axis=0)
    most = np.asarray(mechanism(adjacency=adjacency).score_norm(2).weights)
    assert np.all(moved <= most * (1.0 + 1e-12))
    np.testing.assert_allclose(moved[0], most[0])


def test_check_loss_tries_rows_within_the_bounds():
    assert kng.check_loss(AsymmetricLaplace(), rows=BOX) == ()
    assert kng.check_loss(Offset(), rows=BOX) == ()
    assert kng.check_loss(Welsch(), rows=BOX) == ()
    found = kng.check_loss(TooNarrow(), rows=BOX)
    assert any(words.startswith("score_interval does not hold") and "x = (1, " in words for words in found)
    # Where no row has another scale it is as declared.
    assert kng.check_loss(TooNarrow(), rows=(BOX[0], BOX[0])) == ()


@pytest.mark.parametrize(
    ("loss", "rows", "words"),
    [
        (AsymmetricLaplace(), None, "such a loss needs it"),
        (kng.SquaredLoss(), BOX, "is for a loss that sees the row"),
        (AsymmetricLaplace(), [BOX[0]], "two rows of features"),
        (AsymmetricLaplace(), BOX[::-1], "two rows of features"),
    ],
)
def test_rows_are_given_for_losses_that_see_them(loss, rows, words):
    with pytest.raises(ValueError, match=words):
        kng.check_loss(loss, rows=rows)


@pytest.mark.parametrize(
    "fact",
    [
        "is_quadratic",
        "is_half_square",
        "is_smooth",
        "has_curvature_facts",
        "score_is_piecewise_constant",
        "is_homogeneous",
    ],
)
def test_a_class_that_declares_facts_for_other_draws_is_none(fact):
    with pytest.raises(TypeError, match=rf"sees the row of features, and what serves {fact} does not"):
        types.new_class("Wrong", (AsymmetricLaplace,), exec_body=lambda names: names.update({fact: True}))


def refused_samplers():
    x, y, _ = problem()
    x, own = x[:, 1:], mechanism()
    for sampler in (kng.chains.Exact(), kng.chains.GradientSpace(), kng.chains.LineGibbs(), kng.chains.SliceGibbs()):
        yield (
            f"{type(sampler).__name__} (serves|needs)",
            lambda sampler=sampler: kng.certify(own, x, y, sampler=sampler),
        )
    yield "follows gradients", lambda: kng.certify(own, x, y, sampler=kng.chains.NUTS(step_size=0.1))
    yield "Lattice needs whole scores", lambda: kng.certify(own, x, y, sampler=kng.draws.Lattice())
    yield "and not KNG as it is here", lambda: kng.certify(own, x, y, sampler=kng.draws.Shells())


def refused_ways():
    x, y, _ = problem()
    x, own = x[:, 1:], mechanism()
    weighted = mechanism(bounds=kng.Bounds(x=(-1.0, 1.0), columns=1, y=(-4.0, 4.0), weight=2.0))
    yield r"records \(x/sigma\(x\), y/sigma\(x\)\): see docs/weights.md", lambda: kng.certify(own, x, y)
    yield "takes weights of records", lambda: kng.certify(weighted, x, y, weights=np.ones(len(y)))
    yield "rows are spread over devices", lambda: own.prepare(kng.shard(x, y))
    yield "sees? no features but in x'theta", lambda: mechanism(kng.ObjectivePerturbation)
    yield "is none", lambda: kng.OutputPerturbation(Offset(), BOUNDS, 9.0, 1.0, 1e-3, "replace")
    yield "is not finite", lambda: mechanism(kng.ExponentialMechanism, Offset())


@pytest.mark.parametrize("refusals", [refused_samplers, refused_ways])
def test_what_does_not_know_of_rows_refuses_in_words(refusals):
    with every_case() as case:
        for words, call in refusals():
            with case(words), pytest.raises((ValueError, TypeError), match=words):
                call()


def test_an_interval_that_does_not_hold_for_all_rows_within_the_bounds_is_refused_before_a_chain_draws():
    x, y, _ = problem()
    with pytest.raises(ValueError, match="score_interval does not hold"):
        kng.certify(mechanism(loss=TooNarrow()), x[:, 1:], y, sampler=kng.chains.EnsembleWalk())


@pytest.mark.takes(4, "a chain is compiled")
def test_a_chain_releases_it_of_no_records_too_and_the_certificate_says_what_is_assumed():
    sampler = kng.chains.CoordinateWalk(num_sweeps=10)
    released = kng.release(mechanism(adjacency="add_remove"), np.zeros((0, 1)), np.zeros(0), sampler=sampler)
    assert np.all(np.abs(released.value) <= 3.0)
    text = released.certificate.explain()
    assert "Assumed: of AsymmetricLaplace, a loss that is not kngjax's: its score lies in score_interval" in text
    assert "and its other facts but convexity (is_quadratic, score_step ...) hold" in text
    assert "That it is convex is not assumed" in text


@pytest.mark.slow
def test_draws_by_chains_follow_the_density_by_quadrature():
    """Of a slope alone: x = 1 + x_1 is the only feature."""

    class Slope(Offset):
        def record_value(self, predictor, response, row):
            return jnp.sqrt(1.0 + jnp.square(response - predictor - jnp.sin(row[0])))

    x, y = problem()[0][:, 1:], problem()[1]
    bounds = kng.Bounds(x=(-1.0, 1.0), columns=1, intercept=False)
    own = kng.KNG(Slope(), bounds, kng.Box(-3.0, 3.0), 1.0, "replace")
    theta = np.linspace(-3.0, 3.0, 4001)
    residual = y - np.sin(x[:, 0]) - theta[:, None] * x[:, 0]
    # Δ = 2 in the absolute value: scores and features lie in [-1, 1].
    logs = -np.abs(-(residual / np.sqrt(1.0 + residual**2)) @ x[:, 0]) / 4.0
    mass = np.cumsum(np.exp(logs))
    data = own.prepare(x, y)
    for sampler in (kng.chains.EnsembleWalk(), kng.chains.CoordinateWalk()):
        draws = kng.sample(own, data, key=kng.research_key(3), sampler=sampler, num_draws=4000, progress=False)
        found = np.searchsorted(np.sort(draws.theta.ravel()), theta) / draws.theta.size
        assert np.max(np.abs(found - mass / mass[-1])) < 0.04
