"""Geometric medians of records with weights: Δ is W times as much, and the worst neighbours spend all of it."""

import itertools
import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kngjax as kng
from kngjax.accounting.guarantees import Adjacency
from kngjax.core.arrays import float64
from kngjax.data.records import Records, WeightedRecords
from kngjax.owner import nonprivate
from kngjax.sensitivity import gradients

LARGEST, EPSILON = 2.5, 1.5
LOSS = kng.GeometricMedianLoss()
ADJACENCIES = tuple(Adjacency)
BOX = kng.Box([-1.0, -1.0], [1.0, 1.0])
# Unit vectors of rational numbers.
TRIPLES = [(3, 4, 5), (5, 12, 13), (8, 15, 17), (-3, 4, 5), (20, -21, 29), (1, 0, 1), (0, -1, 1)]
DIRECTIONS = [(Fraction(a, c), Fraction(b, c)) for a, b, c in TRIPLES]


def made(adjacency="replace", kind=kng.KNG, dimension=2, weight=LARGEST, norm=None, epsilon=EPSILON):
    bounds = kng.Bounds(x=(np.full(dimension, -2.0), np.full(dimension, 2.0)), intercept=False, weight=weight)
    parts = {} if norm is None else {"norm": norm}
    return kind(LOSS, bounds, kng.Box([-1.0] * dimension, [1.0] * dimension), epsilon, adjacency, **parts)


def rows(x, weights=None):
    plain = Records(np.asarray(x, np.float64), np.zeros(len(x)))
    return plain if weights is None else WeightedRecords(plain, np.asarray(weights, np.float64))


@jax.jit
def sums(theta, data):
    """ℓ_n, ∇ℓ_n, ∇²ℓ_n, ∇²ℓ_n by autodiff, and the gradient of each record."""
    by_autodiff = jax.hessian(LOSS.value)(theta, data)
    found = LOSS.value(theta, data), LOSS.gradient(theta, data), LOSS.hessian(theta, data), by_autodiff
    return (*found, LOSS.record_gradients(theta, data))


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_worst_neighbours_change_the_gradient_by_all_of_the_sensitivity_in_fractions(adjacency):
    largest, weights = Fraction(LARGEST), [Fraction(0), Fraction(1, 3), Fraction(LARGEST)]
    unit = [(s * a, s * b) for a, b in DIRECTIONS for s in (1, -1)]
    contributions = [(w * a, w * b) for w in weights for a, b in unit]
    nothing = [(Fraction(0), Fraction(0))]
    others = contributions if adjacency is Adjacency.REPLACE else nothing
    squares = [
        (one[0] - other[0]) ** 2 + (one[1] - other[1]) ** 2 for one, other in itertools.product(contributions, others)
    ]
    expected = (2 if adjacency is Adjacency.REPLACE else 1) * largest
    assert max(squares) == expected**2
    with float64():
        found = float(gradients.gradient_sensitivity(LOSS, made().bounds, BOX, adjacency, None, 2))
    assert Fraction(found) == expected


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(("norm", "times"), [(kng.L1(), math.sqrt(2.0)), (kng.LInf(), 1.0)], ids=["l1", "linf"])
def test_other_norms_are_as_long_over_the_ball(norm, times, adjacency):
    ends = 2.0 * LARGEST if adjacency is Adjacency.REPLACE else LARGEST
    assert made(adjacency, norm=norm).sensitivity.value == pytest.approx(times * ends, rel=1e-12)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_worst_neighbours_spend_half_of_epsilon_and_their_normalisers_the_rest(adjacency):
    """log f moves by (ε/2Δ)·|‖∇‖ - ‖∇'‖| before it is normalised: ε/2 at θ = 0, and nowhere more."""
    mechanism, left, right = made(adjacency), [-1.5, 0.0], [1.5, 0.0]
    if adjacency is Adjacency.REPLACE:
        pair = rows([left, left], [LARGEST] * 2), rows([left, right], [LARGEST] * 2)
    else:
        pair = rows([left], [LARGEST]), rows([left, right], [LARGEST] * 2)
    change = jax.jit(lambda theta: mechanism.log_density(theta, pair[0]) - mechanism.log_density(theta, pair[1]))
    with float64():
        assert abs(float(change(jnp.zeros(2)))) == pytest.approx(0.5 * EPSILON, rel=1e-12)
        thetas = np.random.default_rng(0).uniform(-1.0, 1.0, (200, 2))
        assert np.max(np.abs(jax.vmap(change)(thetas))) <= 0.5 * EPSILON * (1.0 + 1e-12)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_loss_of_the_worst_neighbours_varies_by_twice_its_sensitivity(adjacency):
    """By hand, for x in [-2, 2]² and Θ = [-1, 1]²: ℓ lies in W·[0, √18], for which Δ is the whole or half."""
    mechanism = made(adjacency, kng.ExponentialMechanism)
    whole = LARGEST * math.sqrt(18.0)
    value = mechanism.sensitivity.value
    assert value == pytest.approx(whole if adjacency is Adjacency.REPLACE else 0.5 * whole, rel=1e-12)
    theta = np.stack(np.meshgrid(*[np.linspace(-1.0, 1.0, 21)] * 2), axis=-1)
    losses = [
        w * np.linalg.norm(theta - x, axis=-1) for w in (0.0, LARGEST) for x in ([2, 2], [-2, -2], [1, 1], [0, 0])
    ]
    others = losses if adjacency is Adjacency.REPLACE else [np.zeros((21, 21))]
    most = max(np.ptp(one - other) for one, other in itertools.product(losses, others))
    # Within Θ's own reach of the farthest record: ℓ itself varies over Θ by less than between its bounds.
    assert 0.6 * 2.0 * value * math.sqrt(8.0 / 18.0) <= most <= 2.0 * value


def test_the_certificate_says_what_a_weight_does():
    assert (
        "one record's gradient has Euclidean length 1 times its weight, which is at most 2.5, so exchanging one record "
        "moves the gradient by at most 5." in made().sensitivity.derivation
    )
    assert "by at most 2.5." in made("add_remove").sensitivity.derivation
    assert made(weight=None).sensitivity.value == 2.0


@pytest.mark.default_cases("2")
@pytest.mark.parametrize("dimension", [1, 2])
def test_whole_weights_are_repeated_records(dimension):
    generator = np.random.default_rng(dimension)
    x, times = generator.uniform(-1.0, 1.0, (31, dimension)), generator.integers(0, 4, 31)
    repeated = np.repeat(x, times, axis=0)
    theta = jnp.asarray(generator.uniform(-0.3, 0.3, dimension))
    weighted, plain = rows(x, times), rows(repeated)
    with float64():
        first, second, once = (sums(theta, data) for data in (weighted, plain, rows(x)))
        np.testing.assert_allclose(first[0], second[0], rtol=1e-12)
        np.testing.assert_allclose(first[1], second[1], rtol=1e-12)
        np.testing.assert_allclose(first[4], times[:, None] * np.asarray(once[4]), rtol=1e-12)
        if dimension == 2:
            np.testing.assert_allclose(first[2], first[3], rtol=1e-9)
            np.testing.assert_allclose(first[2], second[2], rtol=1e-12)
    found, expected = nonprivate.minimiser(LOSS, weighted), nonprivate.minimiser(LOSS, plain)
    np.testing.assert_allclose(found, expected, atol=1e-7)


def test_a_weighted_median_in_one_dimension_is_the_middle_of_the_minimisers():
    x = np.array([[5.0], [1.0], [3.0], [2.0]])
    np.testing.assert_array_equal(nonprivate.minimiser(LOSS, rows(x, [1.0, 1.0, 1.0, 4.0])), [2.0])
    np.testing.assert_array_equal(nonprivate.minimiser(LOSS, rows(x, [1.0, 1.0, 1.0, 1.0])), [2.5])
    np.testing.assert_array_equal(nonprivate.minimiser(LOSS, rows(x, [2.0, 0.0, 2.0, 0.0])), [4.0])
    # Weights that are all 0 tell nothing.
    assert np.all(np.isfinite(nonprivate.minimiser(LOSS, rows(x, np.zeros(4)))))
    assert np.all(np.isfinite(nonprivate.minimiser(LOSS, rows(np.column_stack([x, x]), np.zeros(4)))))


def test_there_is_no_proved_route_and_weights_are_asked_for():
    """The same as without weights."""
    mechanism, x = made(epsilon=6.0), np.zeros((9, 2))
    with pytest.raises(ValueError, match=r"of KNG with GeometricMedianLoss .*SquaredDistanceLoss.* one column"):
        kng.release(mechanism, x, weights=np.ones(9))
    with pytest.raises(ValueError, match="give them"):
        kng.release(mechanism, x, sampler=kng.chains.EnsembleWalk())
    certificate = kng.certify(mechanism, x, weights=np.ones(9), sampler=kng.chains.EnsembleWalk())
    assert certificate.assurance == "none"


@pytest.mark.slow
def test_a_chain_that_is_asked_for_takes_weights():
    """Its release says that nothing of it is proved."""
    x, given = np.random.default_rng(1).normal(0.3, 0.1, (400, 2)), np.full(400, LARGEST)
    x[:100], given[100:] = x[:100] - 0.8, 0.1
    mechanism = made(epsilon=6.0)
    released = kng.release(mechanism, x, weights=given, sampler=kng.chains.EnsembleWalk(num_sweeps=200, num_warmup=100))
    assert released.certificate.assurance == "none"
    # Three quarters of the records lie about .3, and nine tenths of the weight about -.5.
    np.testing.assert_allclose(released.value, [-0.5, -0.5], atol=0.15)


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_chains_have_the_law_of_quadrature(adjacency):
    x, given = np.random.default_rng(2).uniform(-1.0, 1.0, (9, 1)), np.linspace(0.0, LARGEST, 9)
    mechanism = made(adjacency, dimension=1, epsilon=3.0)
    draws = kng.sample(
        mechanism,
        rows(x, given),
        key=kng.research_key(1),
        sampler=kng.chains.EnsembleWalk(),
        num_draws=400,
        thinning=10,
    )
    theta = np.linspace(-1.0, 1.0, 4001)
    change = 2.0 * LARGEST if adjacency is Adjacency.REPLACE else LARGEST
    density = np.exp(-3.0 / (2.0 * change) * np.abs(np.sign(theta[:, None] - x[:, 0]) @ given))
    mean = (theta * density).sum() / density.sum()
    deviation = math.sqrt(((theta - mean) ** 2 * density).sum() / density.sum())
    assert abs(draws.theta.mean() - mean) < 6.0 * deviation / math.sqrt(400)
