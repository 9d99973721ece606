"""What `check_loss` says of losses that declare what is false, and what certificates say of losses of a user's own."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import kngjax as kng
from kngjax.core.arrays import Scalar, parameter
from kngjax.losses.base import AbstractResidualLoss

K = 0.5


class LogCosh(AbstractResidualLoss):
    """A loss of a user's own that declares nothing false, but for what rows of the table say."""

    k: Scalar = eqx.field(converter=parameter, default=K)
    shares: tuple = eqx.field(static=True, default=())

    def times(self, name):
        return dict(self.shares).get(name, 1.0)

    def residual_value(self, residual):
        scaled = residual / self.k
        return self.k**2 * (jnp.logaddexp(scaled, -scaled) - jnp.log(2.0)) * self.times("value")

    def residual_slope(self, residual):
        return self.k * jnp.tanh(residual / self.k) * self.times("slope")

    def residual_minimiser(self):
        return 1.0 - self.times("minimiser")

    def record_curvature(self, predictor, response):
        return (1.0 - jnp.square(jnp.tanh((response - predictor) / self.k))) * self.times("curvature")

    def curvature_bound(self, predictor):
        return self.times("bound")

    def score_interval(self, predictor, response):
        return -self.k * self.times("below"), self.k * self.times("above")


class Welsch(AbstractResidualLoss):
    """½k²(1 - exp(-r²/k²)), which is not convex: its score falls beyond |r| = k/√2."""

    is_smooth: ClassVar[bool] = True

    def residual_value(self, residual):
        return 0.5 * K**2 * (1.0 - jnp.exp(-jnp.square(residual / K)))

    def residual_slope(self, residual):
        return residual * jnp.exp(-jnp.square(residual / K))

    def residual_minimiser(self):
        return 0.0

    def record_curvature(self, predictor, response):
        square = jnp.square((response - predictor) / K)
        return (1.0 - 2.0 * square) * jnp.exp(-square)

    def curvature_bound(self, predictor):
        return 1.0

    def score_interval(self, predictor, response):
        return -K / np.sqrt(2.0 * np.e), K / np.sqrt(2.0 * np.e)


FALSE = {
    "as declared": ({}, []),
    "slope": (
        {"slope": 1.001},
        ["record_score is not the derivative", "score_interval does not hold the score for eta"],
    ),
    "value": ({"value": 0.999}, ["record_score is not the derivative"]),
    "curvature": ({"curvature": 0.9}, ["record_curvature is not the derivative"]),
    "below": ({"below": 0.99}, ["score_interval does not hold", "score_interval for every predictor"]),
    "above": ({"above": 0.99}, ["score_interval does not hold", "score_interval for every predictor"]),
    "bound": ({"bound": 0.9}, ["curvature_bound is exceeded"]),
    "minimiser": ({"minimiser": 0.5}, ["value_interval does not hold", "smaller than at residual_minimiser"]),
    "concave": ({"value": -1.0, "slope": -1.0, "curvature": -1.0}, ["score is not monotone", "is negative"]),
    "NaN": ({"value": np.nan}, ["not finite"]),
}


def test_what_is_false_is_said_in_words_and_nothing_else():
    wrong = {}
    for name, (shares, expected) in FALSE.items():
        found = kng.check_loss(LogCosh(K, tuple(shares.items())))
        if name == "concave":
            found = [words for words in found if "interval" not in words and "minimiser" not in words]
        missed = [words for words in expected if not any(words in sentence for sentence in found)]
        if missed or (not expected and found):
            wrong[name] = missed, found
    assert not wrong


class Boastful(LogCosh):
    """Declares more than it is."""

    is_quadratic: ClassVar[bool] = True
    is_half_square: ClassVar[bool] = True
    is_homogeneous: ClassVar[bool] = True

    def score_interval(self, predictor, response):
        """False for narrow intervals alone."""
        largest = jnp.where(predictor[1] - predictor[0] < 6.0, 0.9, 1.0) * self.k
        return -largest, largest

    def verified_score(self):
        return kng.PseudoHuberLoss(K).verified_score()


def test_what_a_loss_says_of_its_whole_form_is_tried():
    flags = ("score_interval does not hold", "is_quadratic", "is_half_square", "is_homogeneous", "verified_score")
    found = kng.check_loss(Boastful())
    assert [flag for flag in flags if any(words.startswith(flag) for words in found)] == list(flags)
    assert len(found) == len(flags)


def test_a_loss_that_is_not_convex_is_named_as_one():
    found = kng.check_loss(Welsch())
    assert any("not monotone" in words for words in found)
    assert kng.check_loss(Welsch(), (-0.2, 0.1), [0.0]) == ()


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((kng.GeometricMedianLoss(),), TypeError, "GeometricMedianLoss is none"),
        ((kng.SquaredLoss(), (0.0, np.inf)), ValueError, "finite"),
        ((kng.LogisticLoss(), (-1.0, 1.0), [0.5]), ValueError, "has a meaning for"),
    ],
)
def test_what_cannot_be_checked_is_refused(arguments, error, words):
    with pytest.raises(error, match=words):
        kng.check_loss(*arguments)


def test_a_certificate_names_what_is_taken_from_a_loss_of_a_users_own():
    bounds, y = kng.Bounds(y=(-2.0, 2.0)), np.linspace(-1.0, 1.0, 30)
    for loss, is_named in ((LogCosh(), True), (kng.PseudoHuberLoss(K), False)):
        mechanism = kng.ObjectivePerturbation(loss, bounds, kng.Box(-2.0, 2.0), 1.0, "replace")
        text = kng.release(mechanism, None, y, progress=False).certificate.explain()
        assert ("Assumed: of LogCosh, a loss that is not kngjax's: it is convex in x'theta" in text) is is_named
        assert ("score_interval for every record" in text) is is_named


class Cauchy(AbstractResidualLoss):
    """log(1 + (r/k)²), whose score falls beyond |r| = k, although it declares all that a smooth convex loss does."""

    k: Scalar = eqx.field(converter=parameter, default=2.0)

    is_smooth: ClassVar[bool] = True

    def residual_value(self, residual):
        return jnp.log1p(jnp.square(residual / self.k))

    def residual_slope(self, residual):
        return 2.0 * residual / (self.k**2 + jnp.square(residual))

    def residual_minimiser(self):
        return 0.0

    def record_curvature(self, predictor, response):
        square = jnp.square(response - predictor)
        return 2.0 * (self.k**2 - square) / jnp.square(self.k**2 + square)

    def curvature_bound(self, predictor):
        return 2.0 / self.k**2

    def score_interval(self, predictor, response):
        return -1.0 / self.k, 1.0 / self.k


def numbers(kind, loss, half, *more):
    """A mechanism of numbers in [-half, half], and Θ likewise."""
    return kind(loss, kng.Bounds(y=(-half, half)), kng.Box(-half, half), *more)


PURE = 8.0, "replace"
# A mechanism and its sampler; what is refused is decided by public facts alone.
NOT_CONVEX = {
    "KNG in the space of gradients": (numbers(kng.KNG, Cauchy(), 4.0, *PURE), kng.chains.GradientSpace()),
    "responses without bounds": (
        kng.KNG(Cauchy(100.0), kng.Bounds(), kng.Box(-4.0, 4.0), *PURE),
        kng.chains.GradientSpace(),
    ),
    "objective perturbation": (numbers(kng.ObjectivePerturbation, Cauchy(), 4.0, *PURE), None),
    "objective perturbation without a domain": (
        kng.ObjectivePerturbation(Cauchy(1e4), kng.Bounds(y=(-0.9, 0.9)), None, *PURE),
        None,
    ),
    "output perturbation": (
        kng.OutputPerturbation(Cauchy(), kng.Bounds(y=(-4.0, 4.0)), 9.0, 1.0, 1e-3, "replace"),
        None,
    ),
    "a wide domain": (
        kng.KNG(Cauchy(1e10), kng.Bounds(y=(-0.9, 0.9)), kng.Box(-1e12, 1e12), *PURE),
        kng.chains.GradientSpace(),
    ),
    "no sampler": (numbers(kng.KNG, Cauchy(), 4.0, *PURE), None),
    "exact draws": (numbers(kng.KNG, Cauchy(), 4.0, *PURE), kng.chains.Exact()),
    "a narrow trough": (numbers(kng.KNG, Welsch(), 9e4, *PURE), kng.chains.GradientSpace()),
}


@pytest.mark.parametrize("name", NOT_CONVEX)
def test_a_loss_that_is_not_convex_is_refused_before_anything_is_spent_where_a_draw_rests_on_it(name):
    (mechanism, sampler), y = NOT_CONVEX[name], np.zeros(3)
    with pytest.raises(ValueError, match=r"is not as it declares within these bounds.*not monotone") as refused:
        kng.certify(mechanism, None, y, sampler=sampler)
    assert "KNG needs no convexity" in str(refused.value)
    assert "sampler=kngjax.chains.EnsembleWalk()" in str(refused.value)
    assert "ObjectivePerturbation(" not in str(refused.value)


def test_research_refuses_it_likewise_and_a_chain_that_needs_no_convexity_serves():
    mechanism, sampler = NOT_CONVEX["KNG in the space of gradients"]
    data, key = mechanism.prepare(None, np.zeros(3)), kng.research_key(0)

    def design(key, count):
        return None, jnp.zeros(count), jnp.zeros(1)

    for call in (
        lambda: kng.sample(mechanism, data, key=key, sampler=sampler),
        lambda: kng.draw(mechanism, data, key, sampler),
        lambda: kng.simulate(design, mechanism, 2, key, num_records=3, sampler=sampler),
        lambda: kng.per_instance_privacy(NOT_CONVEX["output perturbation"][0], None, np.zeros(3)),
    ):
        with pytest.raises(ValueError, match="not monotone"):
            call()
    text = kng.certify(mechanism, None, np.zeros(3), sampler=kng.chains.EnsembleWalk()).explain()
    assert "Assumed: of Cauchy, a loss that is not kngjax's: its score lies in score_interval" in text
    assert "That it is convex is not assumed: if it is not, the density may have modes" in text
    assert "it is convex in x'theta" not in text


def test_of_a_loss_that_is_not_convex_no_noise_about_one_estimate_is_foreseen():
    """Far from all responses its gradient is next to 0 too, so that much of the law is there."""
    for loss, is_known in ((Welsch(), False), (LogCosh(), True)):
        preview = kng.preview(numbers(kng.KNG, loss, 4.0, *PURE), num_records=50)
        assert ("not known beforehand" not in preview.explain()) is is_known


def test_an_interval_of_scores_that_does_not_hold_is_refused_for_chains_too():
    """Sensitivities are made of it."""
    mechanism = numbers(kng.KNG, LogCosh(K, (("above", 0.9),)), 2.0, 1.0, "replace")
    with pytest.raises(ValueError, match="score_interval does not hold the score") as refused:
        kng.certify(mechanism, None, np.zeros(3), sampler=kng.chains.EnsembleWalk())
    # So nobody is sent to one.
    assert "EnsembleWalk" not in str(refused.value)


def test_a_loss_of_a_users_own_has_typical_values_without_any_bounds():
    """From which a release is rounded: of built-in losses none is asked for where draws are on a grid."""
    mechanism = kng.ObjectivePerturbation(LogCosh(), kng.Bounds(), None, 1.0, "replace")
    centre, size = mechanism.noise.typical_values(1)
    assert (centre.tolist(), size.tolist()) == ([0.0], [1.0])
    assert kng.release(mechanism, None, np.linspace(-1.0, 1.0, 30), progress=False).value.shape == (1,)


def test_a_loss_with_a_vector_for_a_setting_is_refused_by_name():
    class Pair(Welsch):
        def record_value(self, predictor, response):
            return jnp.asarray([1.0, 2.0]) * jnp.square(response - predictor)

    with pytest.raises(
        ValueError, match=r"loss must give one number for a record, and Pair gives an array of shape \(2,\)"
    ):
        kng.check_loss(Pair())


def test_a_loss_that_is_not_convex_is_not_sent_to_a_mechanism_that_refuses_it():
    bounds = kng.Bounds(x=(0.0, 1.0), y=(-1.0, 1.0), columns=1)
    found = kng.which(kng.KNG(Welsch(), bounds, kng.Box(-2.0, 2.0), 1.0, "replace"), 2000)
    assert "KNG needs no convexity" in found.refusal
    assert "ObjectivePerturbation" not in found.reason
