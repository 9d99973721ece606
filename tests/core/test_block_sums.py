"""Sums over records in float64: errors within the proved bound, and every loss and sampler goes through them."""

from fractions import Fraction

import jax
import jax.extend.core
import jax.numpy as jnp
import numpy as np
import pytest

import kngjax as kng
from audits.climbing import climbing_pair
from kngjax.chains.lines import line_segments
from kngjax.core import arrays
from kngjax.core.arrays import ROWS_A_BLOCK, cumulative_sums, record_sums, record_sums_on_host, weighted_gram
from kngjax.data import exact_sums
from kngjax.data.records import Records
from kngjax.losses.base import AbstractLoss
from kngjax.losses.extended import TangentExtension
from kngjax.mechanisms.joint_quantiles import accumulate
from kngjax.mechanisms.private_quantile import _gap_draws

UNIT = Fraction(1, 2**53)
# Two levels of blocks and a rest.
COUNT = 2 * ROWS_A_BLOCK + 300
GENERATOR = np.random.default_rng(0)


def relative_error(found, terms):
    """|found - Σ t|/Σ |t|, exactly."""
    exact = [Fraction(float(term)) for term in terms]
    return abs(Fraction(float(found)) - sum(exact)) / sum(map(abs, exact))


def of_a_sum(count, block, factors=1):
    blocks = -(-count // block)
    return (block + 2 * (int(np.sqrt(blocks)) + 1) + 1 + factors) * UNIT


@pytest.mark.slow
def test_sums_of_climbing_records_err_by_no_more_than_is_proved(monkeypatch):
    monkeypatch.setattr(arrays, "ROWS_A_BLOCK", 8)
    column = climbing_pair(14)[0]
    allowed = of_a_sum(len(column), 8)
    one_after_another = np.cumsum(column)[-1]
    assert relative_error(one_after_another, column) > allowed
    assert relative_error(record_sums(jnp.ones(len(column)), column), column) <= allowed
    assert relative_error(record_sums(column, np.ones((len(column), 2)))[1], column) <= allowed
    assert relative_error(weighted_gram(column, np.ones((len(column), 2)))[0, 1], column) <= of_a_sum(len(column), 8, 2)
    # log 2^15/log 8 levels of eight.
    assert relative_error(cumulative_sums(column)[-1], column) <= 8 * 5 * UNIT


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("count", [8, 73, 700])
def test_nothing_is_left_out(monkeypatch, count):
    monkeypatch.setattr(arrays, "ROWS_A_BLOCK", 8)
    weights, rows = GENERATOR.integers(-9, 10, count) * 1.0, GENERATOR.integers(-9, 10, (count, 3)) * 1.0
    np.testing.assert_array_equal(
        jax.vmap(record_sums, (0, None))(np.stack([weights, -weights]), rows)[1], -weights @ rows
    )
    np.testing.assert_array_equal(weighted_gram(weights, rows), (rows * weights[:, None]).T @ rows)
    np.testing.assert_array_equal(cumulative_sums(rows), np.cumsum(rows, axis=0))
    np.testing.assert_array_equal(record_sums_on_host(weights, rows), weights @ rows)
    np.testing.assert_array_equal(jax.grad(lambda weights: record_sums(weights, rows)[0])(weights), rows[:, 0])


@pytest.mark.slow
@pytest.mark.parametrize("stride", [1, 512])
def test_sums_on_the_host_err_by_one_block_of_rows(stride):
    column = climbing_pair(17, stride)[0]
    found = record_sums_on_host(column, np.ones((len(column), 1)))[0]
    assert relative_error(found, column) <= (ROWS_A_BLOCK + 1) * UNIT
    in_sequence = np.cumsum(column[::stride] if stride == 1 else column.reshape(-1, 512).sum(axis=1))[-1]
    assert abs(found - float(exact_sums.column_sums(column[:, None])[0])) <= abs(in_sequence - found)


def test_sums_on_the_host_pass_on_what_is_no_number():
    assert np.isnan(record_sums_on_host(np.ones(2), np.array([[np.nan], [1.0]])))
    assert record_sums_on_host(np.ones(0), np.zeros((0, 2))).tolist() == [0.0, 0.0]


LOSSES = {
    type(loss): loss
    for loss in (
        kng.SquaredLoss(),
        kng.QuantileLoss(0.3),
        kng.SmoothedQuantileLoss(0.3, 0.4),
        kng.ExpectileLoss(0.3),
        kng.HuberLoss(0.8),
        kng.PseudoHuberLoss(0.8),
        kng.LogisticLoss(),
        kng.PoissonLoss(),
        kng.CappedPoissonLoss(2.0),
        kng.SquaredDistanceLoss(),
        kng.GeometricMedianLoss(),
        TangentExtension(kng.LogisticLoss(), np.asarray(-1.0), np.asarray(1.0)),
    )
}


def concrete(kind):
    own = [] if kind.__abstractmethods__ or not kind.__module__.startswith("kngjax.") else [kind]
    return set(own).union(*map(concrete, kind.__subclasses__()))


def longest_sum(function, *arguments):
    """The most terms that one operation of a traced function may add, loops of so many turns among them."""
    return _longest(jax.make_jaxpr(function)(*arguments).jaxpr)


def _longest(jaxpr):
    longest = 0
    for equation in jaxpr.eqns:
        shape, given = getattr(equation.invars[0].aval, "shape", ()) if equation.invars else (), equation.params
        match equation.primitive.name:
            case "dot_general":
                terms = np.prod([shape[axis] for axis in given["dimension_numbers"][0][0]], initial=1)
            case "reduce_sum":
                terms = np.prod([shape[axis] for axis in given["axes"]], initial=1)
            case "cumsum":
                terms = shape[given["axis"]]
            case "scan":
                terms = given["length"]
            case name:
                assert "reduce_window" not in name
                assert not name.startswith("scatter-add") or shape[0] <= ROWS_A_BLOCK
                terms = 0
        inner = [_longest(part) for part in jax.extend.core.jaxprs_in_params(given)]
        longest = max(longest, int(terms), *inner, 0)
    return longest


def test_long_sums_are_seen():
    x = np.ones((COUNT, 2))
    for plain in (lambda x: x.sum(axis=0), lambda x: x.T @ x, jax.jit(lambda x: jnp.cumsum(x, axis=0)), jnp.std):
        assert longest_sum(plain, x) >= COUNT
    assert longest_sum(lambda x: record_sums(x[:, 0], x), x) == ROWS_A_BLOCK


def test_every_loss_is_looked_at():
    assert concrete(AbstractLoss) == set(LOSSES)


@pytest.mark.slow
@pytest.mark.parametrize("kind", LOSSES, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("dimension", [1, 2])
def test_no_sum_of_a_loss_is_longer_than_a_block(kind, dimension):
    loss, theta = LOSSES[kind], np.zeros(dimension)
    records = Records(np.ones((COUNT, dimension)), np.ones(COUNT))

    def everything(x, y):
        data = Records(x, y)
        return loss.gradient(theta, data), loss.value(theta, data), loss.hessian(theta, data), loss.summarise(data)

    found = longest_sum(everything, jnp.asarray(records.x), jnp.asarray(records.y))
    assert 0 < found <= ROWS_A_BLOCK


def test_no_sum_over_the_gaps_of_a_quantile_is_longer_than_a_block():
    edges = np.linspace(0.0, 1.0, COUNT)
    half = jnp.full((3, 2), 0.5)
    found = longest_sum(lambda edges: _gap_draws(edges, half[0, 0], half[0, 0], half), edges)
    assert found <= ROWS_A_BLOCK


@pytest.mark.parametrize(("add", "nothing"), [(np.add, 0.0), (np.logaddexp, -np.inf)])
@pytest.mark.parametrize("count", [1, 8, 9, 73, 9000])
def test_partial_sums_of_gaps_never_fall_and_stay_where_nothing_is_added(add, nothing, count):
    # Logarithms far below the sum so far, which np.logaddexp may round down.
    terms = GENERATOR.uniform(0.0, 1.0, (2, count)) - (36.0 if add is np.logaddexp else 0.0)
    terms[:, 1::100] += 36.0
    terms[:, ::3] = nothing
    found = accumulate(add, nothing, terms, most=8)
    np.testing.assert_allclose(found, add.accumulate(terms, axis=-1), rtol=1e-14)
    assert np.all(found[:, 1:] >= found[:, :-1])
    np.testing.assert_array_equal(found[:, 3::3], found[:, 2 : count - 1 : 3])


@pytest.mark.slow
def test_partial_sums_of_gaps_err_by_no_more_than_two_roots_of_their_number():
    column = climbing_pair(14)[0]
    allowed = 2 * (int(np.sqrt(len(column))) + 2) * UNIT
    assert relative_error(np.cumsum(column)[-1], column) > allowed
    assert relative_error(accumulate(np.add, 0.0, column)[-1], column) <= allowed


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [kng.KNG, kng.ExponentialMechanism])
def test_no_sum_of_a_line_is_longer_than_a_block(mechanism):
    bounds, domain = kng.Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0), columns=1), kng.Box(-2.0, 2.0)
    built = mechanism(kng.QuantileLoss(0.3), bounds, domain, 1.0, "replace")
    x = GENERATOR.uniform(-1.0, 1.0, (COUNT, 1))
    target, theta = built.target(built.prepare(x, x[:, 0])), np.zeros(2)
    assert longest_sum(lambda target: line_segments(target, theta, np.ones(2)), target) <= ROWS_A_BLOCK
