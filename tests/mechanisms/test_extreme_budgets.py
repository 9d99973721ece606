"""Whatever is constructed has a guarantee, and it fits the budget that was named; or construction refuses."""

import itertools
import math

import numpy as np
import pytest

import kngjax as kng
from kngjax.accounting import conversions
from kngjax.mechanisms import irls
from kngjax.mechanisms.noise.calibration import largest_shift
from kngjax.mechanisms.noise.matrix_noise import wishart_log_delta, wishart_scale
from kngjax.owner.per_instance import facts
from tests.oracles import exact_hockey_stick as oracle
from tests.oracles.exact_hockey_stick import exact

LINE = kng.Bounds(x=([-1.0], [1.0]), y=(-1.0, 1.0), intercept=False)
NUMBERS = kng.Bounds(y=(-1.0, 1.0))
DOMAIN = kng.Box(-2.0, 2.0)
EPSILONS = (5e-324, 1e-300, 1e-14, 1e-6, 0.5, 1.0 / 3.0, 100.0)
DELTAS = (5e-324, 1e-300, 1e-30, 1e-6, 0.01, 0.5, 1.0 - 1e-12)
PURE = {
    "kng": lambda epsilon, adjacency: kng.KNG(kng.QuantileLoss(0.5), LINE, DOMAIN, epsilon, adjacency),
    "exponential": lambda epsilon, adjacency: kng.ExponentialMechanism(
        kng.SquaredLoss(), LINE, DOMAIN, epsilon, adjacency
    ),
    "k_norm": lambda epsilon, _: kng.KNormMechanism(kng.Bounds(x=([-1.0], [1.0]), intercept=False), epsilon, "replace"),
    "geometric": lambda epsilon, adjacency: kng.GeometricMechanism(kng.Bounds(y=(0.0, 1.0)), epsilon, adjacency),
    "quantile": lambda epsilon, adjacency: kng.PrivateQuantile(0.5, NUMBERS, epsilon, adjacency),
    "objective": lambda epsilon, adjacency: kng.ObjectivePerturbation(
        kng.SquaredLoss(), LINE, kng.L2Ball(2.0), epsilon, adjacency
    ),
}
APPROXIMATE = {
    "ada_ssp": lambda *budget: kng.AdaSSP(LINE, *budget),
    "ada_ops": lambda *budget: kng.AdaOPS(LINE, *budget),
    "output": lambda epsilon, delta, adjacency: kng.OutputPerturbation(
        kng.SquaredLoss(), LINE, 10.0, epsilon, delta, adjacency, max_records=100
    ),
    "posterior": lambda epsilon, delta, adjacency: kng.PosteriorSample.calibrated(
        LINE, 50.0, epsilon, delta, adjacency, 100
    ),
}
IRLS = [
    *itertools.product(["gaussian", "laplace"], ["gaussian", "laplace"], ["zcdp"], [1]),
    ("laplace", "laplace", "advanced", 60),
    ("gaussian", "wishart", "basic", 2),
    ("laplace", "wishart", "advanced", 60),
]


def made(construct, *arguments):
    """The mechanism's guarantee; None where construction refuses in words."""
    try:
        mechanism = construct(*arguments)
    except ValueError:
        return None
    return mechanism.guarantee


def assert_fits(guarantee, epsilon, delta=0.0):
    assert 0.0 <= guarantee.epsilon <= epsilon
    assert guarantee.delta <= delta
    assert guarantee.at(delta=delta) <= epsilon or guarantee.at(epsilon=epsilon) <= delta


@pytest.mark.parametrize("name", sorted(PURE))
def test_pure_mechanisms(name):
    found = [(epsilon, made(PURE[name], epsilon, "replace")) for epsilon in EPSILONS]
    for epsilon, guarantee in found:
        if guarantee is not None:
            assert_fits(guarantee, epsilon)
    assert sum(guarantee is not None for _, guarantee in found) >= 3


@pytest.mark.parametrize("name", ["ada_ssp", "ada_ops", "output", pytest.param("posterior", marks=pytest.mark.slow)])
def test_approximate_mechanisms(name):
    served, few = 0, slice(None, None, 3 if name == "posterior" else 1)
    for epsilon, delta in itertools.product(EPSILONS[few], DELTAS[few]):
        guarantee = made(APPROXIMATE[name], epsilon, delta, "add_remove")
        if guarantee is not None:
            served += 1
            assert_fits(guarantee, epsilon, delta)
    assert served >= (1 if name == "posterior" else 6)


@pytest.mark.default_cases("gaussian-gaussian-zcdp-1")
@pytest.mark.parametrize(("moment", "matrix", "accounting", "iterations"), IRLS)
def test_iterated_least_squares(moment, matrix, accounting, iterations):
    kinds = {"moment_noise": moment, "matrix_noise": matrix, "accounting": accounting, "iterations": iterations}
    served = 0
    for epsilon, delta in itertools.product(EPSILONS, DELTAS):
        guarantee = made(lambda *budget: kng.PrivateIRLS(LINE, *budget, "add_remove", **kinds), epsilon, delta)
        if guarantee is not None:
            served += 1
            assert_fits(guarantee, epsilon, delta)
    assert served >= 4


@pytest.mark.slow
def test_a_calibration_that_hides_less_than_it_says_is_refused(monkeypatch):
    """Wishart noise is no part of a composition by its own profile, so what the parts say is checked against (ε, δ)."""
    kinds = {"moment_noise": "gaussian", "matrix_noise": "wishart", "accounting": "basic", "iterations": 2}
    assert kng.PrivateIRLS(LINE, 1.0, 1e-6, "add_remove", **kinds).guarantee.epsilon == 1.0
    with monkeypatch.context() as patch:
        patch.setattr(irls, "largest_shift", lambda epsilon, delta: 1.001 * largest_shift(epsilon, delta))
        with pytest.raises(ValueError, match="not \\("):
            # Another cap, so that it is compiled anew.
            kng.PrivateIRLS(LINE, 1.0, 1e-6, "add_remove", cap=3.0, repair="ridge", **kinds)


@pytest.mark.parametrize("epsilon", [1e-12, 1e-6, 1e-3, 0.5])
@pytest.mark.parametrize("delta", [1e-300, 1e-100, 1e-30, 1e-12, 0.1])
def test_the_largest_shift_is_hidden_exactly(epsilon, delta):
    """Where shifts are tiny, ratios of Mills cancel: once δ was exceeded by 7.5 percent."""
    shift = float(largest_shift(epsilon, delta))
    assert shift > 0.0
    least, most = (
        oracle.log_delta(epsilon, lambda factor=factor: exact(factor) * exact(shift), lambda: exact(1))
        for factor in (1.0, 1.0 + 1e-6)
    )
    assert least[1] <= math.log(delta)
    assert most[0] > math.log(delta)


@pytest.mark.slow
@pytest.mark.parametrize("degrees", [1002, 20])
@pytest.mark.parametrize("epsilon", [1e-14, 1e-3, 1.0])
@pytest.mark.parametrize("delta", [1e-15, 1e-6])
def test_the_scale_of_wishart_noise_hides_exactly(epsilon, delta, degrees):
    """Against incomplete gamma functions in ball arithmetic; infinite where nothing is known to hide."""
    scale, dimension = float(wishart_scale(epsilon, delta, 1.0, 3, degrees + 2)), 3
    assert scale > 0.0
    if math.isfinite(scale):
        with oracle.precision(600):
            assert oracle.wishart_delta(epsilon, 1.0, dimension, degrees + 2, scale) <= exact(delta)
    elif epsilon >= 1e-3:
        pytest.fail("this is within reach of float64")
    found = float(np.exp(wishart_log_delta(epsilon, 1.0, dimension, degrees + 2, 40.0)))
    with oracle.precision(600):
        assert exact(found) >= oracle.wishart_delta(epsilon, 1.0, dimension, degrees + 2, 40.0)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_a_calibrated_posterior_sample_fits_the_budget_that_it_was_calibrated_to(epsilon):
    guarantee = kng.PosteriorSample.calibrated(LINE, 200.0, epsilon, 1e-5, "add_remove", 1000).guarantee
    assert epsilon * (1.0 - 1e-6) < guarantee.epsilon <= epsilon


def test_groups_beyond_the_largest_float():
    """e^{Σε} overflows, and 0·∞ is no number: nothing is promised where some δ is positive, and no δ stays none."""
    for order in (1, -1):
        told = facts.group_privacy([800.0, 5.0, 3.0][::order], [0.0, 0.0, 1e-5][::order])
        assert (float(told.epsilon), float(told.delta)) == (808.0, 1.0)
    assert float(facts.group_privacy([800.0, 800.0], [0.0, 0.0]).delta) == 0.0
    assert float(facts.group_privacy([math.inf, 1.0], [0.0, 0.1]).delta) == 1.0


@pytest.mark.slow
def test_conversions_at_extremes():
    for epsilon in (5e-324, 1e-320, 1e-300):
        with pytest.raises(ValueError, match="zCDP"):
            conversions.zcdp_rho(epsilon, 1e-9)
    assert conversions.zcdp_epsilon(conversions.zcdp_rho(1e-139, 1e-9), 1e-9) <= 1e-139
    for shift, epsilon in itertools.product((1e-12, 1e-5, 0.05, 0.2, 3.0), (0.0, 1e-3, 2.0)):
        found = conversions.gaussian_delta(shift, epsilon * shift)
        exactly = math.exp(oracle.log_delta(epsilon * shift, lambda s=shift: exact(s), lambda: exact(1))[0])
        assert exactly <= found <= exactly * (1.0 + 1e-8)
