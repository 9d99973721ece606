"""What `check_loss` says of losses that declare what is false, and what certificates say of losses of a user's own."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import kngjax as kng
from kngjax.core.arrays import Scalar, parameter
from kngjax.losses.base import AbstractResidualLoss
from tests.losses.table import LOSSES

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
        return -self.k * self.times("interval"), self.k * self.times("interval")


class Welsch(AbstractResidualLoss):
    """½k²(1 - exp(-r²/k²)), which is not convex: its score falls beyond |r| = k/√2."""

    is_smooth: ClassVar[bool] = False

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


@pytest.mark.parametrize("name", LOSSES)
def test_nothing_that_a_public_loss_declares_is_contradicted(name):
    assert kng.check_loss(LOSSES[name], (-4.0, 4.0), np.linspace(-2.0, 5.0, 15)) == ()


FALSE = {
    "as declared": ({}, []),
    "slope": (
        {"slope": 1.001},
        ["record_score is not the derivative", "score_interval does not hold the score for eta"],
    ),
    "value": ({"value": 0.999}, ["record_score is not the derivative"]),
    "curvature": ({"curvature": 0.9}, ["record_curvature is not the derivative"]),
    "interval": ({"interval": 0.99}, ["score_interval does not hold", "score_interval for every predictor"]),
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


BIMODAL = np.concatenate([np.linspace(-2.2, -1.8, 30), np.linspace(1.8, 2.2, 20)])


@pytest.mark.parametrize("kind", [kng.KNG, kng.ExponentialMechanism])
def test_boxes_fail_for_a_loss_that_is_not_convex(kind):
    mechanism = kind(Welsch(), kng.Bounds(y=(-4.0, 4.0)), kng.Box(-4.0, 4.0), 2.0, "replace")
    with pytest.raises(RuntimeError, match="contradict"):
        kng.sample(
            mechanism,
            mechanism.prepare(None, BIMODAL),
            key=kng.research_key(0),
            sampler=kng.Exact(),
            num_draws=20,
            num_chains=1,
        )


def test_a_loss_of_a_users_own_has_typical_values_without_any_bounds():
    """From which a release is rounded: of built-in losses none is asked for where draws are on a grid."""
    mechanism = kng.ObjectivePerturbation(LogCosh(), kng.Bounds(), None, 1.0, "replace")
    centre, size = mechanism.typical_values(1)
    assert (centre.tolist(), size.tolist()) == ([0.0], [1.0])
    assert kng.release(mechanism, None, np.linspace(-1.0, 1.0, 30), progress=False).value.shape == (1,)
