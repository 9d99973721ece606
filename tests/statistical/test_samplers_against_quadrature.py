"""Every sampler draws from its density: goodness of fit against quadrature in one and two dimensions.

Every draw is the end of a chain of its own, so the draws are independent and plain tests apply.
"""

import equinox as eqx
import jax
import numpy as np
import numpyro.distributions as dist
import pytest

import kngjax as kng
from kngjax.releases.default_sampler import default_sampler
from tests.statistical import problems
from tests.statistical.problems import POINTS, Quadrature, assert_follows, problem

NUM_DRAWS = 500

# The sampler and how many sweeps follow its warm-up: a kernel that was adapted until the last moment is off its law.
SAMPLERS = {
    "exact": (kng.chains.Exact(), 1),
    "line_gibbs": (kng.chains.LineGibbs(num_warmup=20), 1),
    "line_gibbs_ensemble": (kng.chains.LineGibbs(directions="ensemble", num_warmup=24), 1),
    "gradient_space": (kng.chains.GradientSpace(num_warmup=300), 1),
    "ensemble_walk": (kng.chains.EnsembleWalk(num_warmup=200), 1),
    "coordinate_walk": (kng.chains.CoordinateWalk(num_warmup=4000), 1),
    "coordinate_walk_public": (kng.chains.CoordinateWalk(tuning="public", smallest_scale=1e-3, num_warmup=6000), 1),
    "nuts": (kng.chains.NUTS(num_warmup=100, max_tree_depth=5), 5),
    "hmc": (kng.chains.HMC(num_warmup=200, num_steps=8), 200),
}
PIECEWISE = {"line_gibbs", "line_gibbs_ensemble"}
GRADIENT = {"nuts", "hmc"}


def serves(sampler: str, loss: str, mechanism: str, dimension: int) -> bool:
    if sampler == "exact":
        return loss == "squared" or (loss == "quantile" and dimension == 1)
    if sampler in PIECEWISE:
        return loss == "quantile"
    if sampler == "gradient_space":
        return loss != "quantile" and mechanism == "kng"
    return not (sampler in GRADIENT and loss == "quantile" and mechanism == "kng")


def is_quick(sampler: str, loss: str, mechanism: str, dimension: int) -> bool:
    """The cases of every run: exact draws at d = 1. The power of these tests is tried with a chain at d = 2."""
    return sampler == "exact" and dimension == 1 and mechanism == "kng"


LOSSES = ("quantile", "squared", "pseudo_huber", "logistic")


def is_half(sampler: str, loss: str, mechanism: str, dimension: int) -> bool:
    """The half of the table that has each sampler with each loss: by KNG or by the exponential mechanism, in turn.

    Both meet every sampler and every loss; where only one of them is served it is that one.
    """
    other = ("exponential", 1) if mechanism == "kng" else ("kng", 2)
    turn = (list(SAMPLERS).index(sampler) + LOSSES.index(loss)) % 2
    return turn == (mechanism == "exponential") or not serves(sampler, loss, *other)


def cases():
    """Each sampler on each loss: KNG in two dimensions, where dependence shows, the exponential mechanism in one."""
    for mechanism, dimension in (("kng", 1), ("exponential", 1), ("kng", 2), ("exponential", 2)):
        for loss in LOSSES:
            for sampler in SAMPLERS:
                case = (sampler, loss, mechanism, dimension)
                is_tabled = (dimension == 2) == (mechanism == "kng") and is_half(*case)
                # NumPyro's two samplers share the losses between them.
                is_shared = sampler in GRADIENT and (sampler == "nuts") == bool(LOSSES.index(loss) % 2)
                if serves(*case) and (is_quick(*case) or (is_tabled and not is_shared)):
                    marks = [] if is_quick(*case) else [pytest.mark.slow]
                    # Walks of many steps, of few and small programs.
                    marks += [pytest.mark.runs_long] * (sampler.startswith("coordinate_walk") and not is_quick(*case))
                    yield pytest.param(*case, marks=marks)


def independent_draws(mechanism, data, sampler: str, seed: int, number: int = NUM_DRAWS) -> np.ndarray:
    """One draw from each of many chains, shape (draws, dimension)."""
    method, thinning = SAMPLERS[sampler]
    key = kng.research_key(seed)
    draws = kng.sample(
        mechanism, data, key=key, sampler=method, num_draws=1, num_chains=number, thinning=thinning, progress=False
    )
    return draws.theta[:, 0]


@pytest.mark.parametrize(("sampler", "loss", "mechanism", "dimension"), list(cases()))
def test_draws_follow_the_density(sampler, loss, mechanism, dimension):
    built, data = problem(loss, mechanism, dimension)
    theta = independent_draws(built, data, sampler, seed=7)
    assert_follows(theta, Quadrature(built, data, -2.0, 2.5, POINTS[dimension]))


L1, L2 = kng.L1Ball(1.2), kng.L2Ball(1.0)
BINDING = [
    ("exact", "squared", L1),
    ("exact", "squared", L2),
    # These bar what lies outside of Θ, whatever its shape: each on one ball, or on both with two losses.
    ("line_gibbs_ensemble", "quantile", L1),
    ("ensemble_walk", "pseudo_huber", L2),
    ("coordinate_walk", "quantile", L1),
    ("nuts", "pseudo_huber", L2),
    ("gradient_space", "poisson", L1),
    ("gradient_space", "smoothed_quantile", L2),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sampler", "loss", "domain"),
    [pytest.param(*case, id=f"{case[0]}-{case[1]}-{type(case[2]).__name__}") for case in BINDING],
)
def test_draws_follow_the_density_where_the_domain_binds(sampler, loss, domain):
    built, data = problem(loss, "kng", 2, domain=domain)
    theta = independent_draws(built, data, sampler, seed=8)
    assert_follows(theta, Quadrature(built, data, -1.2, 1.2, POINTS[2]))


@pytest.mark.slow
@pytest.mark.runs_long
@pytest.mark.parametrize(
    ("loss", "sampler"),
    [
        ("quantile", kng.chains.LineGibbs()),
        ("logistic", kng.chains.EnsembleWalk(num_sweeps=300)),
        ("pseudo_huber", kng.chains.NUTS(step_size=0.1, num_sweeps=120, max_tree_depth=4)),
    ],
    ids=["LineGibbs", "EnsembleWalk", "NUTS"],
)
def test_what_a_release_draws_follows_the_density(loss, sampler):
    """`draw` is the release as a pure function: vmapped over keys it gives independent releases."""
    built, data = problem(loss, "kng", 2)
    keys = jax.random.split(kng.research_key(9), NUM_DRAWS)
    centre = np.array([0.3, 1.0])
    draw = jax.jit(jax.vmap(kng.draw, in_axes=(None, None, 0, None, None)))
    theta, succeeded = draw(built, data, keys, sampler, centre)
    assert np.all(succeeded)
    assert_follows(np.asarray(theta), Quadrature(built, data, -2.0, 2.5, POINTS[2]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "epsilon"),
    [(kng.GeometricMedianLoss(), 2.0), (kng.SquaredDistanceLoss(), 1.0)],
    ids=["median", "mean"],
)
def test_what_is_released_of_a_location_follows_the_density(loss, epsilon):
    """By the default samplers, on a ball that binds: a chain for the median, rejection for the mean."""
    mechanism = kng.KNG(loss, kng.Bounds(x=(-1.0, 2.0), intercept=False), kng.L2Ball(1.0), epsilon, "add_remove")
    x = np.random.default_rng(11).uniform([-1.0, 0.0], [2.0, 1.0], (12, 2))
    data, (sampler, _) = mechanism.prepare(x), default_sampler(mechanism, 2)
    if isinstance(sampler, kng.chains.EnsembleWalk):
        sampler = kng.chains.EnsembleWalk(num_sweeps=300)
    draw = jax.jit(jax.vmap(kng.draw, in_axes=(None, None, 0, None, None)))
    theta, succeeded = draw(mechanism, data, jax.random.split(kng.research_key(12), NUM_DRAWS), sampler, x.mean(axis=0))
    assert np.all(succeeded)
    assert_follows(np.asarray(theta), Quadrature(mechanism, data, -1.0, 1.0, POINTS[2]))
    bolder = Quadrature(
        eqx.tree_at(lambda m: m.epsilon, mechanism, np.asarray(2.0 * epsilon)), data, -1.0, 1.0, POINTS[2]
    )
    with pytest.raises(AssertionError):
        assert_follows(np.asarray(theta), bolder)


# The losses that no sampler names.
OTHERS = [name for name in problems.LOSSES if name not in LOSSES]


@pytest.mark.slow
@pytest.mark.parametrize("loss", OTHERS)
@pytest.mark.parametrize("mechanism", ["kng", "exponential"])
def test_a_loss_of_one_file_is_drawn_from_its_density(mechanism, loss):
    """Such as the expectile loss: a curvature that jumps, and the law's own skewness."""
    built, data = problem(loss, mechanism, 1)
    theta = independent_draws(built, data, "ensemble_walk", seed=13)
    assert_follows(theta, Quadrature(built, data, -2.0, 2.5, POINTS[1]))


@pytest.mark.slow
def test_a_proper_base_measure_is_part_of_the_density():
    built, data = problem("quantile", "kng", 1, epsilon=0.3, domain=kng.BaseMeasure(dist.Normal(0.0, 1.0)))
    theta = independent_draws(built, data, "ensemble_walk", seed=10)
    assert_follows(theta, Quadrature(built, data, -7.0, 7.0, POINTS[1]))


@pytest.mark.slow
@pytest.mark.runs_long
@pytest.mark.parametrize(
    ("sampler", "loss"),
    [("gradient_space", "logistic"), ("gradient_space", "pseudo_huber")],
)
def test_a_normal_base_measure_moves_the_law_of_independence_samplers(sampler, loss):
    domain = kng.BaseMeasure(dist.Normal(0.0, 0.4))
    built, data = problem(loss, "kng", 2, domain=domain)
    theta = independent_draws(built, data, sampler, seed=11)
    assert_follows(theta, Quadrature(built, data, -2.5, 2.5, POINTS[2]))


@pytest.mark.parametrize(
    ("sampler", "loss", "dimension"),
    [("ensemble_walk", "pseudo_huber", 2), pytest.param("line_gibbs", "quantile", 2, marks=pytest.mark.slow)],
)
@pytest.mark.takes(3.0, "compiles a chain of several coefficients from its start to its end")
def test_half_of_the_noise_is_noticed(sampler, loss, dimension):
    """The power of these tests: draws at twice the epsilon pass for their law, and not for that at epsilon."""
    built, data = problem(loss, "kng", dimension)
    doubled, _ = problem(loss, "kng", dimension, epsilon=6.0)
    theta = independent_draws(doubled, data, sampler, seed=7, number=300)
    assert_follows(theta, Quadrature(doubled, data, -2.0, 2.5, POINTS[dimension]))
    with pytest.raises(AssertionError):
        assert_follows(theta, Quadrature(built, data, -2.0, 2.5, POINTS[dimension]))
