"""Weights of records: what is public of them, and what becomes of each one by itself."""

from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest

import kngjax as kng
from kngjax.data import exact_sums, records, weights
from kngjax.data.records import Records, WeightedRecords
from kngjax.data.weights import WeightedTable, with_weights

X, Y = np.array([[0.5], [-3.0], [0.25], [1.0]]), np.array([0.0, 1.0, 5.0, -5.0])
BOUNDS = {"x": (np.array([-1.0]), 1.0), "y": (-2.0, 2.0)}


def prepared(given, X=X, y=Y, **facts):
    return records.prepare_rows(kng.Bounds(**BOUNDS, **{"weight": 3.0} | facts), WeightedTable(X, given), y)


@pytest.mark.parametrize("largest", [3.0, 0.3, 1.0, 2.0**21, 7.1e-9, 2.0])
def test_weights_are_clipped_and_rounded_each_by_itself(largest):
    unit = weights.unit(largest)
    assert 2**19 <= largest / unit <= 2**20
    raw = largest * np.array([-1.0, -1e-9, 0.0, 0.3, 0.7, 1.0 - 1e-12, 1.0, 1.0 + 1e-12, 50.0, 1e300])
    made = weights.clipped(raw, largest)
    assert np.all((made >= 0.0) & (made <= largest))
    assert np.all(made / unit == np.rint(made / unit))
    np.testing.assert_allclose(made, np.clip(raw, 0.0, largest), atol=unit)
    # Each of them alone, and beside others in another order.
    assert [weights.clipped(np.array([one]), largest)[0] for one in raw] == made.tolist()
    assert np.array_equal(weights.clipped(raw[::-1], largest), made[::-1])


@pytest.mark.parametrize("largest", [1e-310, 1e-60, 9e-13, 1.1e12, 1e60, 1e300])
def test_an_absurd_largest_weight_is_refused_with_what_to_do(largest):
    with pytest.raises(ValueError, match=r"out of range, 1e-12 to 1e\+12.* divide all of them, and it, by one public"):
        kng.Bounds(y=(0.0, 1.0), weight=largest)
    frame = pd.DataFrame({"v": [0.5], "w": [1.0]})
    with pytest.raises(ValueError, match="divide all of them"):
        kng.Study(frame, bounds={"v": (0, 1), "w": (0, largest)}, weights="w", adjacency="replace").mean("v", epsilon=1)


@pytest.mark.parametrize("largest", [1e-12, 1e12])
def test_the_unit_of_weights_does_not_matter_within_the_range(largest):
    made = kng.KNG(kng.QuantileLoss(0.5), kng.Bounds(y=(0.0, 1.0), weight=largest), kng.Box(0.0, 1.0), 1.0, "replace")
    values = np.linspace(0.0, 1.0, 400)
    released = kng.release(made, None, values, weights=largest * (values > 0.5))
    assert released.certificate.assurance == "proved"
    assert released.value[0] == pytest.approx(0.75, abs=0.15)


def test_whole_weights_are_kept_as_they_are():
    whole = np.arange(11.0)
    np.testing.assert_array_equal(weights.clipped(whole, 10.0), whole)


def test_records_with_weights_are_no_records_without():
    made = prepared([1.0, -2.0, 9.0, 0.5])
    assert isinstance(made, WeightedRecords)
    assert not isinstance(made, Records)
    np.testing.assert_array_equal(made.weights, [1.0, 0.0, 3.0, 0.5])
    np.testing.assert_array_equal(made.rows.x, [[1, 0.5], [1, -1], [1, 0.25], [1, 1]])
    np.testing.assert_array_equal(made.rows.y, [0.0, 1.0, 2.0, -2.0])
    assert (made.num_records, made.dimension) == (4, 2)
    # What takes rows without knowing of weights finds none.
    assert not hasattr(made, "x")
    assert not hasattr(made, "y")
    assert "OWNER ONLY" in repr(made)
    assert "OWNER ONLY" in repr(WeightedTable(X, [1.0]))


CELLS = {
    "list": lambda values: list(values),
    "pandas": lambda values: pd.Series(values),
    "polars": lambda values: pl.Series(values),
    "whole numbers": lambda values: np.asarray(values, int),
    "text": lambda values: [str(value) for value in values],
}


@pytest.mark.parametrize("kind", CELLS)
def test_weights_are_read_from_cells_as_columns_are(kind):
    made = prepared(CELLS[kind]([1.0, 2.0, 0.0, 3.0]), missing_weight=0)
    np.testing.assert_array_equal(made.weights, [1.0, 2.0, 0.0, 3.0])


HOSTILE = [np.nan, np.inf, -np.inf, 1e400]


@pytest.mark.parametrize("bad", HOSTILE)
def test_a_weight_that_is_no_number_fails_or_counts_as_the_policy_says(bad):
    given = np.array([1.0, bad, 2.0, 3.0])
    with pytest.raises(ValueError, match="missing_weight") as raised:
        prepared(given)
    assert "nan" not in str(raised.value).lower().replace("missing, nan", "")
    np.testing.assert_array_equal(prepared(given, missing_weight=0.5).weights, [1.0, 0.5, 2.0, 3.0])
    np.testing.assert_array_equal(prepared([1, "many", None, 3], missing_weight=0.0).weights, [1.0, 0.0, 0.0, 3.0])


def test_dropped_records_take_their_weights_along():
    gaps = np.array([[0.5], [np.nan], [0.25], [1.0]])
    made = prepared([0.5, 1.0, 2.0, 3.0], X=gaps, missing="drop")
    np.testing.assert_array_equal(made.weights, [0.5, 2.0, 3.0])
    assert made.num_records == 3


MISFITS = {
    "too few": ([1.0, 2.0], "one number a record"),
    "too many": (np.ones(5), "one number a record"),
    "a column": (np.ones((4, 1)), "must have shape"),
    "a frame": (pd.DataFrame({"w": np.ones(4)}), "must have shape"),
    "one number": (2.0, "must have shape"),
    "text": (np.array(["a", "b", "c", "d"]), "missing_weight"),
    "dates": (np.array(["2020-01-01"] * 4, "datetime64[D]"), "convert it to numbers"),
    "complex": (np.ones(4, complex), "complex"),
    "masked": (np.ma.masked_array(np.ones(4), mask=[0, 1, 0, 0]), "masked"),
    "no table": (object(), "weights"),
}


@pytest.mark.parametrize("case", MISFITS)
def test_what_types_and_shapes_refuse_is_refused_before_a_value_is_looked_at(case):
    given, words = MISFITS[case]
    mechanism = kng.KNG(kng.SquaredLoss(), kng.Bounds(**BOUNDS, weight=3.0), kng.Box(-1.0, 1.0), 1.0, "replace")
    with pytest.raises((TypeError, ValueError), match=words):
        mechanism.intake.check_schema(with_weights(X, given), Y)


def test_what_takes_plain_records_refuses_bounds_with_weights():
    with pytest.raises(TypeError, match="takes no weights"):
        records.prepare(kng.Bounds(**BOUNDS, weight=3.0), WeightedTable(X, np.ones(4)), Y)
    mechanism = kng.KNG(kng.HuberLoss(1.0), kng.Bounds(**BOUNDS, weight=3.0), kng.Box(-1.0, 1.0), 1.0, "replace")
    with pytest.raises(TypeError, match="HuberLoss with these settings takes no weights"):
        mechanism.intake.records(WeightedTable(X, np.ones(4)), np.ones(4))


def test_weights_in_another_order_than_the_rows_are_refused():
    mechanism = kng.KNG(kng.SquaredLoss(), kng.Bounds(**BOUNDS, weight=3.0), kng.Box(-1.0, 1.0), 1.0, "replace")
    shuffled = pd.Series(np.ones(4), index=[3, 1, 0, 2])
    with pytest.raises(ValueError, match="X and weights have different pandas indices"):
        mechanism.intake.check_schema(with_weights(pd.DataFrame({"x": X[:, 0]}), shuffled), Y)
    with pytest.raises(ValueError, match="y and weights have different pandas indices"):
        mechanism.intake.check_schema(with_weights(X, shuffled), pd.Series(Y))


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_weights_and_their_maximum_come_together_or_not_at_all(adjacency, tmp_path):
    """Both ways are refused before the ledger is debited."""
    ledger = kng.Ledger.create(tmp_path / "l", kng.Budget.pure(5.0), adjacency=adjacency, dataset="d")
    parts = kng.SquaredLoss(), kng.Box(-1.0, 1.0), 1.0, adjacency
    for weight, given, words in ((3.0, None, "give them"), (None, np.ones(4), "public maximum")):
        loss, domain, epsilon, how = parts
        mechanism = kng.KNG(loss, kng.Bounds(**BOUNDS, weight=weight), domain, epsilon, how)
        for call in (kng.release, kng.certify):
            more = {"ledger": ledger} if call is kng.release else {}
            with pytest.raises(ValueError, match=words):
                call(mechanism, X, Y, weights=given, **more)
        with pytest.raises(ValueError, match=words):
            mechanism.prepare(X, Y, weights=given)
    with pytest.raises(ValueError, match="given twice"):
        kng.release(mechanism, WeightedTable(X, np.ones(4)), Y, weights=np.ones(4))
    assert ledger.verify().spent is None


def test_a_value_fails_with_the_constant_text_and_stays_spent(tmp_path):
    ledger = kng.Ledger.create(tmp_path / "l", kng.Budget.pure(5.0), adjacency="replace", dataset="d")
    mechanism = kng.KNG(kng.SquaredLoss(), kng.Bounds(**BOUNDS, weight=3.0), kng.Box(-1.0, 1.0), 1.0, "replace")
    with pytest.raises(kng.ReleaseFailed) as raised:
        kng.release(mechanism, X, Y, weights=[1.0, np.nan, 1.0, 1.0], ledger=ledger)
    assert raised.value.__cause__ is None
    assert ledger.verify().spent.epsilon == 1
    assert any("weights that are missing" in one for one in kng.certify(mechanism, X, Y, weights=Y).assumptions)


@pytest.mark.parametrize("bad", [0, -1.0, np.nan, np.inf, [1.0, 2.0], 1e61])
def test_a_maximum_that_is_none_is_refused(bad):
    with pytest.raises(ValueError, match="weight"):
        kng.Bounds(**BOUNDS, weight=bad)


def test_facts_of_weights_are_checked_and_shown():
    for bad in ("3", True, None.__class__):
        with pytest.raises(TypeError, match="weight must be a number"):
            kng.Bounds(**BOUNDS, weight=bad)
    for bad, words in ((4.0, "outside"), (-0.1, "outside"), (np.nan, "outside")):
        with pytest.raises(ValueError, match=words):
            kng.Bounds(**BOUNDS, weight=3.0, missing_weight=bad)
    with pytest.raises(TypeError, match="missing_weight"):
        kng.Bounds(**BOUNDS, weight=3.0, missing_weight="drop")
    with pytest.raises(ValueError, match="public maximum"):
        kng.Bounds(**BOUNDS, missing_weight=1.0)
    made = kng.Bounds(x=(0.0, 1.0), weight=3.0, missing_weight=1.0)
    assert "weight=3.0" in repr(made)
    assert (made.for_dimension(3).weight, made.for_dimension(3).missing_weight) == (3.0, 1.0)
    (words,) = made.explain_weights()
    assert "clipped to at most 3" in words
    assert "count as 1.0" in words
    assert kng.Bounds(x=(0.0, 1.0)).explain_weights() == ()


def test_products_lie_within_their_bounds_to_the_last_bit():
    """Bounds and weights whose products round: by the same rounding as their ends."""
    generator = np.random.default_rng(0)
    for largest in (0.1, 3.3, 7.0):
        lower, upper = np.sort(generator.normal(size=(2, 3)), axis=0)
        bounds = kng.Bounds(x=(lower, upper), y=(-0.7, 0.3), weight=largest)
        x = np.concatenate([lower + (upper - lower) * generator.uniform(size=(50, 3)), [lower, upper]])
        given = np.concatenate([generator.uniform(0.0, largest, 50), [largest, largest]])
        made = records.prepare_rows(bounds, WeightedTable(x, given), generator.uniform(-2.0, 2.0, 52)).products()
        box = bounds.of_products(4)
        assert (box.dimension, box.intercept, box.weight) == (4, False, None)
        assert np.all((made.x >= box.x_lower) & (made.x <= box.x_upper))
        assert np.all((made.y >= box.y_lower) & (made.y <= box.y_upper))
    far = records.prepare_rows(
        kng.Bounds(weight=9.0), WeightedTable(None, [9.0, 1.0]), np.array([1e308, -1e308])
    ).products()
    assert np.all(np.isfinite(far.y))


@pytest.mark.parametrize("kind", ["rounded", "any floats", "none", "zero"])
def test_weighted_sums_are_those_of_fractions(kind):
    generator = np.random.default_rng(1)
    count = 0 if kind == "none" else 40
    columns = generator.normal(size=(count, 3)) * np.array([1.0, 1e-9, 1e5])
    given = generator.uniform(0.0, 5.0, count) * (kind != "zero")
    if kind == "rounded":
        given = weights.clipped(given, 5.0)
    if kind == "any floats":
        given[0] = 1e-30
    found = exact_sums.weighted_gram_of(columns, given)
    for j in range(3):
        for k in range(3):
            terms = (Fraction(w) * Fraction(row[j]) * Fraction(row[k]) for w, row in zip(given, columns, strict=True))
            assert found[j, k] == sum(terms, Fraction(0))
