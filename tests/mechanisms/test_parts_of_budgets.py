"""What is spent in parts adds up to what is promised: budgets seen from outside, by the rates at which parts are drawn.

Costs of an exchange of records are compared with their closed form, a removal and an addition: a calibration that is
twice too loose shows in no search for neighbours, nor one that is a little too tight.
"""

import math
from fractions import Fraction

import jax
import numpy as np
import pytest

import kngjax as kng
from kngjax.accounting.exact_costs import exactly
from kngjax.core.arrays import float64
from kngjax.mechanisms import output_perturbation

BOUNDS = kng.Bounds(x=([-0.3], [0.7]), y=(-0.9, 0.7))
NUMBERS = kng.Bounds(y=(-0.3, 0.7))
EPSILONS = (0.1, 0.7, 1.0 / 3.0, 2.3)
ADJACENCIES = ("replace", "add_remove")
# Of one neighbour: how far #{y <= t} - n*tau can move, by hand.
MOVES = {"replace": lambda tau: 1.0, "add_remove": lambda tau: max(tau, 1.0 - tau)}


def levels(size):
    return np.round(np.linspace(0.1, 0.9, size), 2)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_quantiles_drawn_by_parts_of_a_budget_spend_it_and_no_more(epsilon, adjacency):
    """The log-density of one level falls by its rate from one gap to the next: 2Δ times the rates add up to ε."""
    for size in (2, 3, 7):
        mechanism = kng.PrivateQuantile(levels(size), NUMBERS, epsilon, adjacency, budget="split")
        spent = [2.0 * MOVES[adjacency](tau) * rate for tau, rate in zip(levels(size), mechanism._rates(), strict=True)]
        assert math.fsum(spent) == pytest.approx(epsilon, rel=1e-12)
        assert sum(map(Fraction, map(float, spent))) <= Fraction(epsilon) * (1 + Fraction(1, 2**51))


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(
    ("epsilon", "noise_share", "output_share"), [(0.1, 0.5, 0.01), (1.0, 0.3, 0.2), (2.3, 0.7, 0.4)]
)
def test_a_perturbed_objective_spends_epsilon_on_its_noise_its_determinant_and_its_output(
    epsilon, noise_share, output_share, adjacency
):
    loss = kng.PseudoHuberLoss(0.5)
    mechanism = kng.ObjectivePerturbation(
        loss, BOUNDS, None, epsilon, adjacency, noise_share=noise_share, output_share=output_share
    )
    # |x|² ≤ 1 + .49 and curvatures of at most 1; two minimisers are found to within τ/γ each.
    determinant = math.log1p(1.49 / float(mechanism.ridge(2)))
    noise = float(mechanism.noise_rate(2)) * float(mechanism.sensitivity_value(2))
    output = float(mechanism.output_rate(2)) * 2.0 * float(mechanism.search_tolerance(2)) / float(mechanism.ridge(2))
    assert noise == pytest.approx(noise_share * (1.0 - output_share) * epsilon, rel=1e-12)
    assert epsilon * (1.0 - 1e-12) < math.fsum([determinant, noise, output]) <= epsilon * (1.0 + 1e-15)
    whole = kng.ObjectivePerturbation(kng.SquaredLoss(), BOUNDS, kng.Box(-1.0, 1.0), epsilon, adjacency)
    determinant = math.log1p(1.49 / float(whole.ridge(2)))
    noise = float(whole.noise_rate(2)) * float(whole.sensitivity_value(2))
    assert determinant + noise == pytest.approx(epsilon, rel=1e-12)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_shares_of_an_objectives_epsilon_add_up_exactly(epsilon):
    for output_share in (0.01, 0.3, 0.7):
        mechanism = kng.ObjectivePerturbation(
            kng.PseudoHuberLoss(0.5), BOUNDS, None, epsilon, "replace", output_share=output_share
        )
        rest, output = float(mechanism._objective_epsilon), float(mechanism.output_share * mechanism.epsilon)
        assert Fraction(rest) + Fraction(output) <= Fraction(epsilon)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_minimiser_that_is_searched_for_moves_by_what_both_searches_may_err(adjacency):
    """The gradient changes by at most k|x| per record, and each of two searches stops within its tolerance."""
    mechanism = kng.OutputPerturbation(kng.PseudoHuberLoss(0.5), BOUNDS, 10.0, 1.0, 1e-6, adjacency)
    records, tolerance = {"replace": 2, "add_remove": 1}[adjacency], float(mechanism.tolerance(2))
    moved = (records * 0.5 * math.sqrt(1.49) + 2.0 * tolerance) / 10.0
    assert tolerance > 0.0
    assert float(mechanism.sensitivity_value(2)) == pytest.approx(moved, rel=1e-14)


def posterior(adjacency, epsilon, delta):
    return float(kng.PosteriorSample.calibrated(BOUNDS, 1000.0, epsilon, delta, adjacency, 1000).gamma)


def output(adjacency, epsilon, delta):
    """In the metric of the Hessian it is the posterior's."""
    mechanism = kng.OutputPerturbation(
        kng.SquaredLoss(), BOUNDS, 1000.0, epsilon, delta, adjacency, "hessian_squared", max_records=1000
    )
    return float(output_perturbation._facts(mechanism, 2)[1])


def ada_ops(adjacency, epsilon, delta):
    return np.array(jax.tree.leaves(kng.AdaOPS(BOUNDS, epsilon, delta, adjacency).plan(2)))


CALIBRATIONS = {"posterior": posterior, "output": output, "AdaOPS": ada_ops}


@pytest.mark.parametrize("name", [pytest.param("posterior", marks=pytest.mark.slow), "output", "AdaOPS"])
def test_an_exchange_is_calibrated_as_a_removal_and_an_addition(name):
    """(ε, δ) for each of the two is (2ε, (1 + e^ε)δ) for both, in their order."""
    calibrated = CALIBRATIONS[name]
    exchanged, half = calibrated("replace", 1.0, 1e-6), 1e-6 / (1.0 + math.exp(0.5))
    np.testing.assert_allclose(exchanged, calibrated("add_remove", 0.5, half), rtol=1e-7)
    # The comparison can fail.
    assert np.any(np.abs(exchanged / calibrated("add_remove", 0.5, 1e-6) - 1.0) > 1e-3)


@pytest.mark.parametrize("failure_share", [0.1, 0.3])
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_ada_ops_spends_what_its_failures_leave_of_delta(epsilon, failure_share):
    """Three stages at one order: αs²/2 of each Gaussian shift, and R, against the conversion at (1 - 2f)δ by hand."""
    mechanism = kng.AdaOPS(BOUNDS, epsilon, 1e-5, "add_remove", failure_share=failure_share)
    plan = jax.tree.map(float, mechanism.plan(2))
    # |x|² ≤ 1 + .49.
    shifts = (1.49 / plan.eigenvalue_deviation) ** 2 + plan.bound_shift**2
    excess = plan.order - 1.0
    tail = math.log((1.0 - 2.0 * failure_share) * 1e-5 * excess) + plan.order * math.log1p(1.0 / excess)
    allowed = epsilon + tail / excess
    assert allowed * (1.0 - 1e-6) < plan.budget + 0.5 * plan.order * shifts <= allowed


def test_an_exchange_moves_a_ridge_regression_twice():
    one, two = (
        kng.OutputPerturbation(kng.SquaredLoss(), BOUNDS, 10.0, 1.0, 1e-6, adjacency, max_records=100).sensitivity
        for adjacency in ("add_remove", "replace")
    )
    assert two.value == 2.0 * one.value


def quantiles(epsilon, adjacency, size):
    mechanism = kng.PrivateQuantile(levels(size), NUMBERS, epsilon, adjacency, budget="split")
    return mechanism.guarantee, [(one.guarantee, one.epsilon) for one in mechanism.densities()]


def halving(epsilon, adjacency, size):
    made = kng.QuantileProcess(levels(size), BOUNDS, kng.Box(-2.0, 2.0), epsilon, adjacency).halving(100)
    firsts = [made.mechanisms[nodes[0].index] for nodes in made.depths]
    each = [1 if place == 0 or adjacency == "add_remove" else 2 for place in range(len(firsts))]
    return made.guarantee, [
        (one.guarantee, one.epsilon) for one, twice in zip(firsts, each, strict=True) for _ in range(twice)
    ]


PARTS = {"quantiles": quantiles, "halving": halving}


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("name", PARTS)
def test_what_is_stated_is_the_sum_of_what_parts_are_drawn_at(name, adjacency):
    """To the last digit of fractions, and within what was asked for."""
    for epsilon in (*EPSILONS, 1.0):
        for size in (2, 3, 5, 7) if name == "quantiles" else (3,):
            stated, parts = PARTS[name](epsilon, adjacency, size)
            assert all(cost.exact_epsilon == exactly(float(drawn)) for cost, drawn in parts)
            assert stated.exact_epsilon == sum(cost.exact_epsilon for cost, _ in parts) <= exactly(epsilon)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_what_a_program_draws_quantiles_at_is_no_more_than_is_stated(adjacency):
    """Digits of a part are not known while it is traced."""
    for epsilon in (*EPSILONS, 1.0):
        for size in (2, 3, 5, 7):
            mechanism = kng.PrivateQuantile(levels(size), NUMBERS, epsilon, adjacency, budget="split")
            with float64():
                drawn = float(jax.jit(lambda one: one._part)(mechanism))
            assert Fraction(drawn) <= Fraction(float(mechanism._part))
            assert drawn == pytest.approx(float(mechanism._part), rel=1e-14)
