"""Whoever is refused is told what serves: refusals, samplers and documentation say one and the same, and it is true."""

import itertools
import re

import jax
import numpy as np
import numpyro.distributions as dist
import pytest

import kngjax as kng
from kngjax.chains.advice import Density, advice, chain
from kngjax.chains.target import Target
from kngjax.core.arrays import float64
from kngjax.losses.base import AbstractPredictorLoss
from kngjax.releases import default_sampler

LOSSES = {
    "quantile": kng.QuantileLoss(0.25),
    "smoothed quantile": kng.SmoothedQuantileLoss(0.25, 0.1),
    "squared": kng.SquaredLoss(),
    "Huber": kng.HuberLoss(1.0),
    "pseudo-Huber": kng.PseudoHuberLoss(1.0),
    "logistic": kng.LogisticLoss(),
    "Poisson": kng.PoissonLoss(),
    "expectile": kng.ExpectileLoss(0.8),
    "squared distance": kng.SquaredDistanceLoss(),
    "geometric median": kng.GeometricMedianLoss(),
}
MEANS = ("squared distance", "geometric median")
DOMAINS = {
    "box": kng.Box(-2.0, 2.0),
    "l1": kng.L1Ball(2.0),
    "l2": kng.L2Ball(2.0),
    "prior": kng.BaseMeasure(dist.Uniform(-2.0, 2.0)),
}
NORMS = {
    "default": lambda d: kng.WeightedLInf(np.ones(d)),
    "l1": lambda d: kng.L1(),
    "l2": lambda d: kng.L2(),
    "l_inf": lambda d: kng.LInf(),
    "ellipsoid": lambda d: kng.Ellipsoid(np.eye(d)),
    "polytope": lambda d: kng.Polytope(np.eye(min(d, 4))),
    "exponential mechanism": lambda d: None,
}
SAMPLERS = ("Exact", "GradientSpace", "SliceGibbs", "LineGibbs", "EnsembleWalk", "NUTS")


def bounds_of(loss, dimension):
    columns = dimension if loss in MEANS else dimension - 1
    x = (np.zeros(columns), np.ones(columns)) if columns else None
    return kng.Bounds(x, None if loss in (*MEANS, "logistic") else (0.0, 1.0), intercept=loss not in MEANS)


def targets(every):
    """Densities of every loss, norm and dimension, with the loss's name; and of sensitivities at one theta.

    Each with every domain and norm, or half of them with an eighth of such pairs in turn.
    """
    rate = np.asarray(0.5)
    for number, (loss, dimension) in enumerate(itertools.product(LOSSES, (1, 3, 5, 21))):
        if not every and (number + number // 4) % 2:
            continue
        mechanism = kng.KNG(LOSSES[loss], bounds_of(loss, dimension), DOMAINS["box"], 1.0, "replace")
        x = np.full((2, dimension if loss in MEANS else dimension - 1), 0.5)
        data = mechanism.prepare(x, None if loss in MEANS else np.ones(2))
        for place, (domain, norm) in enumerate(itertools.product(DOMAINS.values(), NORMS.values())):
            if every or (place + 3 * number) % 8 == 0:
                yield loss, Target(LOSSES[loss], data, domain, norm(dimension), rate)
    mechanism = kng.KNG(
        LOSSES["squared"], bounds_of("squared", 3), DOMAINS["box"], 1.0, "replace", pointwise_sensitivity=True
    )
    yield "squared", mechanism.target(mechanism.prepare(np.ones((2, 2)), np.ones(2)))


def refusal_of(sampler, target):
    try:
        return sampler.check(target)
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_every_sampler_that_is_named_serves_and_refusals_of_samplers_say_the_same(every):
    told = {loss: set() for loss in LOSSES}
    with float64():
        for loss, target in targets(every):
            density = Density.of(target)
            text = advice(density)
            named = set(re.findall(r"(\w+)\(\)", text)) & set(SAMPLERS)
            assert named >= {chain(density).removesuffix("()")}
            for name in SAMPLERS:
                refusal = refusal_of(getattr(kng.chains, name)(), target)
                assert refusal is None or name not in named, (loss, target.domain, target.norm)
                assert refusal is None or refusal.endswith(text)
            told[loss].add(text)
    # What is proved comes first, for every loss that has it.
    for loss in LOSSES.keys() - {"geometric median"}:
        assert all(re.match(r"ObjectivePerturbation\(|under replace KNormMechanism\(", text) for text in told[loss])


@pytest.mark.parametrize("loss", LOSSES)
def test_a_mechanism_and_its_target_have_the_same_public_facts(loss):
    mechanism = kng.KNG(LOSSES[loss], bounds_of(loss, 2), DOMAINS["box"], 1.0, "replace")
    data = mechanism.prepare(np.ones((2, 2 if loss in MEANS else 1)), None if loss in MEANS else np.ones(2))
    assert advice(default_sampler.density_of(mechanism, 2)) == advice(
        Density.of(jax.eval_shape(mechanism.target, data))
    )


@pytest.mark.slow
@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss not in MEANS])
def test_the_mechanism_that_is_named_as_proved_can_be_made(loss):
    made = LOSSES["smoothed quantile" if loss == "quantile" else loss]
    mechanism = kng.KNG(LOSSES[loss], bounds_of(loss, 6), DOMAINS["box"], 1.0, "replace")
    assert f"ObjectivePerturbation({type(made).__name__}(" in advice(default_sampler.density_of(mechanism, 6))
    assert kng.ObjectivePerturbation(made, bounds_of(loss, 6), DOMAINS["box"], 1.0, "replace").guarantee.epsilon == 1.0


def test_a_loss_without_a_verified_score_is_told_of_the_delta():
    class Unverified(kng.PseudoHuberLoss):
        verified_score = AbstractPredictorLoss.verified_score

    for loss, is_told in ((Unverified(1.0), True), (LOSSES["pseudo-Huber"], False)):
        mechanism = kng.ObjectivePerturbation(loss, bounds_of("pseudo-Huber", 6), epsilon=1.0, adjacency="replace")
        found = kng.which(mechanism, num_records=1000)
        assert ("in_reals" in str(found)) is is_told
        assert ("small delta" in loss.proved_instead(6, True)) is is_told


def test_releases_without_an_exact_sampler_give_this_advice():
    mechanism = kng.KNG(LOSSES["quantile"], bounds_of("quantile", 6), DOMAINS["box"], 1.0, "replace")
    with pytest.raises(ValueError, match=r"SmoothedQuantileLoss\(tau, bandwidth\)") as refusal:
        kng.release(mechanism, np.zeros((3, 5)), np.zeros(3))
    assert str(refusal.value).endswith(advice(default_sampler.density_of(mechanism, 6)))


# By case: losses, coefficients, whether it is the exponential mechanism; what is proved, and the chains to name.
DENSITIES = {
    "quantiles of many coefficients": (
        ("quantile",),
        5,
        False,
        "ObjectivePerturbation(SmoothedQuantileLoss(",
        "LineGibbs",
    ),
    "smooth": (
        ("smoothed quantile", "pseudo-Huber", "logistic", "Poisson"),
        5,
        False,
        "ObjectivePerturbation(",
        "GradientSpace EnsembleWalk",
    ),
    "squares of many coefficients": (("squared",), 21, False, "ObjectivePerturbation(SquaredLoss()", "SliceGibbs"),
    "kinks": (("Huber", "expectile"), 5, False, "ObjectivePerturbation(", "EnsembleWalk"),
    "medians": (("geometric median",), 1, False, "PrivateQuantile(0.5", "EnsembleWalk"),
    "exponential": (("pseudo-Huber", "logistic"), 5, True, "ObjectivePerturbation(", "EnsembleWalk"),
}


@pytest.mark.parametrize("case", DENSITIES)
def test_what_is_refused_names_what_is_proved_and_the_chain(case):
    losses, dimension, is_exponential, proved, chains = DENSITIES[case]
    for loss in losses:
        kind = kng.ExponentialMechanism if is_exponential else kng.KNG
        mechanism = kind(LOSSES[loss], bounds_of(loss, dimension), DOMAINS["box"], 1.0, "replace")
        told = advice(default_sampler.density_of(mechanism, dimension))
        assert told.startswith(proved)
        assert re.findall(r"sampler=kngjax\.\w+\.(\w+)", told) == chains.split()
