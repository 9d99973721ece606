"""Sums over records: those of fractions, in any order, and what one record changes in them is its own."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as numpy_arrays

import kngjax as kng
from audits import figures
from audits.climbing import climbing_pair, largest_change
from kngjax.core import arrays
from kngjax.core.arrays import block_sums
from kngjax.core.errors import UnfitShape
from kngjax.data import exact_sums
from kngjax.data.records import Records
from kngjax.mechanisms import irls

GENERATOR = np.random.default_rng(0)
COLUMNS = {
    "normal": GENERATOR.normal(size=(1301, 3)),
    "heavy tails": GENERATOR.lognormal(0.0, 8.0, (700, 2)),
    "vanishing": np.exp(-GENERATOR.uniform(0.0, 700.0, (300, 2))),
    "tenths": np.full((2000, 2), 0.1),
    "whole numbers": GENERATOR.integers(-9, 10, (5000, 2)).astype(float),
    "the ends of float64": GENERATOR.choice([1.7e308, -1.7e308, 5e-324, -5e-324, 0.0, 1.0], (60, 2)),
    # As products are: few digits, but for the bounds that they are clipped to.
    "clipped": np.clip(np.rint(GENERATOR.normal(size=(2500, 2)) * 2.0**20) * 2.0**-20, -0.3, 0.7),
    "nothing": np.zeros((5, 2)),
    "no records": np.zeros((0, 2)),
}


def fractions(columns):
    return [[Fraction(float(number)) for number in row] for row in columns]


@pytest.mark.slow
@pytest.mark.parametrize("name", list(COLUMNS))
def test_sums_are_those_of_fractions(name):
    x = COLUMNS[name]
    rows, places = fractions(x), range(x.shape[1])
    assert exact_sums.column_sums(x).tolist() == [sum(row[i] for row in rows) for i in places]
    table = exact_sums.gram(x)
    assert table.tolist() == [[sum(row[i] * row[j] for row in rows) for j in places] for i in places]
    assert exact_sums.square_sum(x) == sum(table[i, i] for i in places)


@settings(max_examples=40, deadline=None)
@given(numpy_arrays.arrays(np.float64, (17, 2), elements=st.floats(allow_nan=False, allow_infinity=False)))
def test_sums_of_any_floats_are_exact(x):
    rows = fractions(x)
    assert exact_sums.gram(x)[0, 1] == sum(row[0] * row[1] for row in rows)
    assert exact_sums.column_sums(x)[1] == sum(row[1] for row in rows)


@pytest.mark.parametrize("order", ["C", "F"])
def test_sums_of_columns_are_those_of_fractions_in_any_blocks(monkeypatch, order):
    monkeypatch.setattr(exact_sums, "_LONG", 333)
    for name, x in COLUMNS.items():
        found = exact_sums.column_sums(np.asarray(x, order=order))
        assert found.tolist() == [sum(map(Fraction, column.tolist())) for column in x.T], name


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_numbers_without_a_sum_end_it(number):
    with pytest.raises(ValueError, match="sums are of finite numbers"):
        exact_sums.column_sums(np.array([[1.0], [number], [2.0]]))


def test_sums_of_rows_with_whole_weights_are_those_of_fractions():
    x = np.column_stack([COLUMNS["normal"], COLUMNS["tenths"][:1301]])[:300]
    units = np.random.default_rng(3).integers(0, 2**20, 300)
    rows = fractions(x)
    wanted = [sum(int(m) * row[j] for m, row in zip(units, rows, strict=True)) for j in range(x.shape[1])]
    assert exact_sums.weighted_sums_of(x, units).tolist() == wanted
    assert exact_sums.weighted_sums_of(x, 0 * units).tolist() == [0] * x.shape[1]


def test_the_parts_of_a_sum_add_up():
    x = np.column_stack([COLUMNS["normal"], COLUMNS["tenths"][:1301]])
    records = [Records(part, part[:, 0]) for part in (x, x[:400], x[400:401], x[401:])]
    loss = kng.SquaredLoss()
    whole, *parts = (loss.sums(part) for part in records)
    for added in (parts[0] + parts[1] + parts[2], parts[2] + (parts[0] + parts[1])):
        assert (added.count, added.squares) == (1301, whole.squares)
        assert (added.gram.tolist(), added.moment.tolist()) == (whole.gram.tolist(), whole.moment.tolist())
    summary = whole.summary()
    assert float(summary.moment[3]) == float(sum(Fraction(float(a)) * Fraction(0.1) for a in x[:, 0]))
    with pytest.raises(UnfitShape):
        _ = whole + loss.sums(Records(x[:, :2], x[:, 0]))


BOX = ([-1.0, -1.0], 1.0)
MEANS, REGRESSION = kng.Bounds(BOX, intercept=False), kng.Bounds(BOX, (-1.0, 1.0))
DOMAIN = kng.Box(-1.0, 1.0)
MECHANISMS = {
    "K-norm": lambda: kng.KNormMechanism(MEANS, 1.0, "replace"),
    "KNG of means": lambda: kng.KNG(kng.SquaredDistanceLoss(), MEANS, DOMAIN, 1.0, "add_remove"),
    "KNG": lambda: kng.KNG(kng.SquaredLoss(), REGRESSION, DOMAIN, 1.0, "replace"),
    "exponential": lambda: kng.ExponentialMechanism(kng.SquaredLoss(), REGRESSION, DOMAIN, 1.0, "replace"),
    "AdaSSP": lambda: kng.AdaSSP(REGRESSION, 1.0, 1e-6, "replace"),
    "AdaOPS": lambda: kng.AdaOPS(REGRESSION, 1.0, 1e-6, "replace"),
    "posterior sample": lambda: kng.PosteriorSample(REGRESSION, 1.0, 1e-3, "replace", 10**6, 1e-6),
    "output perturbation": lambda: kng.OutputPerturbation(
        kng.SquaredLoss(), REGRESSION, 1.0, 1.0, 1e-6, "replace", max_records=10**6
    ),
    "objective perturbation": lambda: kng.ObjectivePerturbation(kng.SquaredLoss(), REGRESSION, DOMAIN, 1.0, "replace"),
}


@pytest.mark.slow
@pytest.mark.parametrize("streamed", [False, True], ids=["in memory", "streamed"])
@pytest.mark.parametrize("name", list(MECHANISMS))
def test_one_record_changes_sums_by_its_own_share(name, streamed):
    """Of climbing pairs, against sums that add one row, and against those that add 512 rows, at a time."""
    mechanism = MECHANISMS[name]()
    for stride in (1, 512):
        pair = climbing_pair(15 if stride == 1 else 17, stride)
        data = []
        for column in pair:
            x, y = np.column_stack([column, column]), column if mechanism.loss.has_response else None
            if streamed:
                cuts = np.array_split(np.arange(len(x)), 3)
                data.append((kng.stream([(x[cut], None if y is None else y[cut]) for cut in cuts]), None))
            else:
                data.append((x, y))
        # Half of a spacing of the total's for each.
        assert abs(largest_change(mechanism, *data) - 1.0) <= np.spacing(float(len(pair[0])))


def test_climbing_pairs_climb():
    """The test above can fail: by one record after another sums change by more than twice the last place."""
    column, other = climbing_pair(15)
    found = np.column_stack([column, column]).sum(axis=0) - np.column_stack([other, other]).sum(axis=0)
    assert abs(found[0] - 1.0) > 1e3 * np.spacing(float(len(column)))
    in_blocks = [values.reshape(-1, 512).sum(axis=1)[:, None] * np.ones(2) for values in climbing_pair(17, 512)]
    found = in_blocks[0].sum(axis=0) - in_blocks[1].sum(axis=0)
    assert abs(found[0] - 1.0) > 10 * np.spacing(float(2**18))


def summed(column, block):
    return float(block_sums(jnp.sum, (column,), block))


def bound(size, block):
    """k·u of the docstring, for terms of sizes that add up to `size` ones."""
    return (block + 2 * np.ceil(np.sqrt(2 * size / block)) + 2) * 2.0**-53 * size


@pytest.mark.slow
def test_blocks_err_by_no_more_than_is_proved():
    for block in (4, 64):
        column, other = climbing_pair(16, block)
        change = summed(column, block) - summed(other, block)
        assert abs(change - 1.0) <= 2 * bound(2**16, block)
    one_by_one = float(jax.lax.fori_loop(0, 2**17, lambda i, total: total + jnp.asarray(climbing_pair(16)[0])[i], 0.0))
    assert abs(one_by_one - float(sum(map(Fraction, climbing_pair(16)[0])))) > 2 * bound(2**16, 4)


@pytest.mark.slow
@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 63, 64, 65, 1000])
def test_blocks_leave_nothing_out(count):
    column = np.arange(1.0, count + 1.0)
    assert summed(column, 8) == count * (count + 1) / 2


@pytest.mark.slow
def test_weighted_moments_are_summed_in_blocks(monkeypatch):
    """Of private IRLS, whose weights depend on θ: the same bound, of blocks of four rows here."""
    monkeypatch.setattr(irls, "_ROWS", 4)
    mechanism = kng.PrivateIRLS(kng.Bounds(x=([-1.0], [1.0]), y=(-1.0, 1.0), intercept=False), 1.0, 1e-6, "replace")
    weight = float(mechanism._largest_weight)
    found = []
    for column in climbing_pair(16, 4):
        data = Records(column[:, None], np.ones(len(column)))
        found.append(mechanism._moments(np.zeros(1), jnp.asarray(True), data))
    change = float(found[0][0][0] - found[1][0][0])
    assert abs(change - weight) <= 2 * weight * bound(2**16, 4)


@pytest.mark.slow
def test_gradients_of_minimisers_are_summed_in_blocks(monkeypatch):
    """They take the loss's own: of blocks of four rows here, for the Hessian too and for the value."""
    monkeypatch.setattr(arrays, "ROWS_A_BLOCK", 4)
    loss, found = kng.HuberLoss(10.0), []
    for column in climbing_pair(16, 4):
        gradients = Records(column[:, None], np.ones(len(column)))
        # Of x_i = 1 and Σ k|r_i| of large residuals, less a constant of each.
        values = Records(np.ones((len(column), 1)), 20.0 + column)
        found.append((loss.gradient(np.zeros(1), gradients)[0], loss.value(np.zeros(1), values)))
    (first, value), (other, other_value) = np.array(found)
    assert abs(other - first - 1.0) <= 2 * bound(2**16, 4)
    assert abs(value - other_value - 10.0) <= 2 * bound(2**16, 4) * 2 * 200.0


@pytest.mark.slow
def test_the_table_of_figures_has_climbing_pairs():
    figure = figures._climbing(quick=True)
    assert figure.passed, figure
