"""Persons of rows: whose rows are whose, and the shares of a vote that rows have, which depend on these rows alone."""

import datetime
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import kngjax as kng
from kngjax.data import persons, records, weights

X, Y = np.arange(6.0)[:, None] / 10.0, np.arange(6.0)
UNIT = kng.Unit("patient", most_rows=1)
BOUNDS = {"x": (np.array([-1.0]), 1.0), "y": (-2.0, 9.0)}
MISSING = "missing, NaN"


def shares_of(codes, k):
    """Shares of rows that are all alike, in the order of the table."""
    return persons.shares(codes, k, np.zeros(len(codes), np.uint64))


def prepared(given, unit=UNIT, X=X, y=Y, **facts):
    table = persons.with_persons(X, given)
    return records.prepare_rows(kng.Bounds(**BOUNDS, unit=unit, **facts), table, y, may_be_empty=True)


def units_of(codes, k=1):
    """Whole units of each row's share, which are checked to be whole."""
    found = shares_of(np.asarray(codes), k).weights / weights.unit(k)
    assert np.array_equal(found, np.rint(found))
    return found.astype(np.int64)


@pytest.mark.takes(4, "twelve million rows")
@pytest.mark.default_cases("1")
@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_shares_add_up_exactly_whatever_m_is(k):
    """For every m up to 5000, of one table; and each is at most one record's weight, as clipping leaves it."""
    codes = np.repeat(np.arange(5000), np.arange(1, 5001))
    shares = shares_of(codes, k)
    one = round(1.0 / weights.unit(k))
    sums = np.bincount(codes, shares.weights * one)
    assert np.array_equal(sums, np.minimum(np.arange(1, 5001), k) * float(one))
    assert shares.persons == 5000
    assert shares.weights.max() == 1.0
    assert shares.weights.min() >= 0.0
    assert np.array_equal(weights.clipped(shares.weights, float(k)), shares.weights)
    # As equal as whole units allow.
    last = shares.weights[codes == 4999] * one
    assert last.max() - last.min() <= 1.0


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("m", [2**19 - 1, 2**19 + 1, 2**20 + 3])
def test_more_rows_than_units_share_one_vote_too(k, m):
    whole = units_of(np.zeros(m, int), k)
    assert whole.sum() == k * round(1.0 / weights.unit(k))
    assert set(np.unique(whole)) <= {0, 1, 2, 3}


@pytest.mark.parametrize("k", [1, 2, 5])
def test_shares_depend_on_the_rows_of_a_person_alone(k):
    """Not on who else there is, nor on how rows of persons are mixed, nor on the order or names of persons."""
    random = np.random.default_rng(0)
    codes = random.integers(0, 40, 700)
    whole = units_of(codes, k)
    for person in range(40):
        alone = units_of(np.zeros(np.sum(codes == person), int), k)
        assert np.array_equal(whole[codes == person], alone)
    kept = codes != 17
    assert np.array_equal(units_of(codes[kept], k), whole[kept])
    # Others' rows move; each person's stay in their order.
    order = np.argsort(random.permutation(40)[codes], kind="stable")
    assert np.array_equal(units_of(codes[order], k), whole[order])
    assert np.array_equal(units_of(random.permutation(40)[codes], k), whole)


def test_rows_without_a_person_have_no_share():
    shares = shares_of(np.array([0, -1, 0, 1, -1]), 1)
    np.testing.assert_array_equal(shares.weights, [0.5, np.nan, 0.5, 1.0, np.nan])
    assert shares.persons == 2
    assert shares_of(np.full(3, -1), 1).persons == 0
    assert shares_of(np.zeros(0, int), 1).persons == 0


SAME = [7, 8, 7, 7, 9, 8]
TEXT = [f"A{one}" for one in SAME]
COLUMNS = {
    "list": SAME,
    "list of text": TEXT,
    "list of bytes": [one.encode() for one in TEXT],
    "NumPy": np.array(SAME, np.uint8),
    "NumPy text": np.array(TEXT),
    "NumPy objects": np.array(TEXT, object),
    "far numbers": np.array(SAME, np.uint64) + np.uint64(2**63),
    "neighbours beyond float64": [2**53 + one for one in SAME],
    "pandas": pd.Series(SAME),
    "pandas Int64": pd.Series(SAME, dtype="Int64"),
    "pandas text": pd.Series(TEXT),
    "pandas string": pd.Series(TEXT, dtype="string"),
    "pandas category": pd.Series(TEXT, dtype="category"),
    "pandas category of numbers": pd.Series(SAME, dtype="category"),
    "polars": pl.Series(SAME),
    "polars text": pl.Series(TEXT),
    "polars category": pl.Series(TEXT, dtype=pl.Categorical),
    "pyarrow": pa.chunked_array([SAME[:2], SAME[2:]]),
    "pyarrow text": pa.chunked_array([TEXT]),
    "pyarrow category": pa.chunked_array([pa.array(TEXT).dictionary_encode()]),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_identifiers_of_every_library_say_the_same(kind):
    made = prepared(COLUMNS[kind])
    np.testing.assert_array_equal(made.weights * 2**19, [174762, 262144, 174763, 174763, 2**19, 262144])
    assert (made.num_records, made.rows.persons, made.products().num_records) == (3, 3, 3)
    assert persons.count_of(persons.Identifiers(COLUMNS[kind])) == 3


GAPS = {
    "list": [7, None, 7, 7, 9, ""],
    "NaN among objects": np.array([7, np.nan, 7, 7, 9, None], object),
    "pandas Int64": pd.Series([7, None, 7, 7, 9, None], dtype="Int64"),
    "pandas string": pd.Series(["a", None, "a", "a", "b", ""], dtype="string"),
    "pandas category": pd.Series(["a", None, "a", "a", "b", None], dtype="category"),
    "polars": pl.Series([7, None, 7, 7, 9, None]),
    "pyarrow": pa.chunked_array([["a", None, "a", "a", "b", ""]]),
    "other things": np.array([7, 7.0, 7, 7, 9, decimal.Decimal(7)], object),
    "a date": np.array([7, datetime.date(2020, 1, 1), 7, 7, 9, True], object),
}


@pytest.mark.parametrize("kind", GAPS)
def test_rows_without_an_identifier_fail_or_count_for_nothing(kind):
    """As persons of their own, or as one, they would change with nobody's rows."""
    with pytest.raises(ValueError, match=MISSING) as raised:
        prepared(GAPS[kind])
    assert not any(character.isdigit() for character in str(raised.value))
    made = prepared(GAPS[kind], kng.Unit("patient", most_rows=1, missing="drop"))
    np.testing.assert_array_equal(made.weights > 0, [True, False, True, True, True, False])
    assert made.weights.sum() == made.num_records == 2


def test_only_equal_cells_are_one_person():
    """Letter by letter: a number is no text, and truth no number."""
    cells = np.array([1, "1", True, "1 ", b"1", 1], object)
    made = prepared(cells, kng.Unit("patient", most_rows=1, missing="drop"))
    np.testing.assert_array_equal(made.weights, [0.5, 1.0, 0.0, 1.0, 1.0, 0.5])
    np.testing.assert_array_equal(prepared(["a", "A", "á", "a\u0301", "a ", "aa"]).weights, np.ones(6))
    # Which -hash- alike in Python.
    assert np.array_equal(prepared([-1, -2, 0, 2**61 - 1, 1, 2**61]).weights, np.ones(6))


def test_shares_are_of_the_rows_that_are_left():
    gaps = X.copy()
    gaps[2] = np.nan
    made = prepared(SAME, X=gaps, missing="drop")
    np.testing.assert_array_equal(made.weights, [0.5, 0.5, 0.5, 1.0, 0.5])
    # A person of whom no row is left is none.
    everything = np.full_like(X, np.nan)
    everything[4] = 0.0
    assert prepared(SAME, X=everything, missing="drop").num_records == 1
    assert prepared(SAME, X=np.full_like(X, np.nan), missing="drop").num_records == 0
    with pytest.raises(ValueError, match="drop"):
        kng.KNG(kng.SquaredLoss(), kng.Bounds(**BOUNDS, unit=UNIT, missing="drop"), kng.Box(-1, 1), 1.0, "replace")


MISFITS = {
    "floats": (np.array(SAME, float), "after rounding"),
    "whole floats of pandas": (pd.Series([7, None, 7, 7, 9, 8]), "after rounding"),
    "bools": (np.array([True, False] * 3), "after rounding"),
    "bools of polars": (pl.Series([True, False] * 3), "after rounding"),
    "dates": (np.array(["2020-01-01"] * 6, "datetime64[D]"), "."),
    "dates of pandas": (pd.to_datetime(pd.Series(["2020-01-01"] * 6)), "."),
    "dates of polars": (pl.Series([datetime.date(2020, 1, 1)] * 6), "."),
    "decimals": (pl.Series([decimal.Decimal(1)] * 6), "."),
    "durations": (np.ones(6, "timedelta64[s]"), "after rounding"),
    "masked": (np.ma.masked_array(SAME, mask=[0, 1, 0, 0, 0, 0]), "person is a masked array"),
    "another order": (pd.Series(SAME, index=range(5, -1, -1)), "different pandas indices"),
    "complex": (np.ones(6, complex), "."),
    "too few": ([1, 2], "."),
    "a column": (np.ones((6, 1), int), "must have shape"),
    "no table": (object(), "."),
}


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
@pytest.mark.parametrize("case", MISFITS)
def test_types_that_cannot_identify_are_refused_before_a_value_is_looked_at(case, adjacency, monkeypatch, tmp_path):
    given, words = MISFITS[case]
    mechanism = kng.KNG(kng.SquaredLoss(), kng.Bounds(**BOUNDS, unit=UNIT), kng.Box(-1.0, 1.0), 1.0, adjacency)
    ledger = kng.Ledger.create(tmp_path / "l", kng.Budget.pure(5.0), adjacency=adjacency, dataset="d", unit="patient")

    def read(_):
        raise AssertionError("identifiers were read")

    monkeypatch.setattr(persons, "codes_of", read)
    with pytest.raises((TypeError, ValueError), match=words) as raised:
        kng.release(mechanism, pd.DataFrame({"x": X[:, 0]}), Y, person=given, ledger=ledger)
    assert "read" not in str(raised.value)
    assert "2020" not in str(raised.value)
    assert ledger.verify().spent is None


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_identifiers_come_with_bounds_for_persons_or_not_at_all(adjacency):
    parts = kng.SquaredLoss(), kng.Box(-1.0, 1.0), 1.0, adjacency
    cases = [
        (UNIT, {}, "say which rows are of one"),
        (UNIT, {"weights": np.ones(6)}, "say which rows are of one"),
        (None, {"person": SAME}, "bounds are for records"),
        (kng.Unit("patient"), {"person": SAME}, "bounds are for records"),
        (UNIT, {"person": SAME, "weights": np.ones(6)}, "not both"),
    ]
    for unit, given, words in cases:
        loss, domain, epsilon, how = parts
        mechanism = kng.KNG(loss, kng.Bounds(**BOUNDS, unit=unit), domain, epsilon, how)
        for call in (kng.release, kng.certify):
            with pytest.raises(ValueError, match=words):
                call(mechanism, X, Y, **given)
        with pytest.raises(ValueError, match=words):
            mechanism.prepare(X, Y, **given)


def test_a_missing_identifier_fails_in_a_constant_text_after_the_debit(tmp_path):
    """How many persons there are is public under replace; that a row has none is not."""
    ledger = kng.Ledger.create(tmp_path / "l", kng.Budget.pure(5.0), adjacency="replace", dataset="d", unit="patient")
    mechanism = kng.KNG(kng.SquaredLoss(), kng.Bounds(**BOUNDS, unit=UNIT), kng.Box(-1.0, 1.0), 1.0, "replace")
    with pytest.raises(kng.ReleaseFailed) as raised:
        kng.release(mechanism, X, Y, person=[7, None, 7, 7, 9, 8], ledger=ledger)
    assert raised.value.__cause__ is None
    assert not any(character in str(raised.value) for character in "789")
    assert ledger.verify().spent.epsilon == 1
    certificate = kng.certify(mechanism, X, Y, person=SAME)
    assert certificate.num_records == 3
    assert "rows without an identifier, without a policy" in certificate.explain()


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_nothing_public_tells_how_many_rows_a_person_has(adjacency):
    """Certificates of tables with as many persons are the same, whatever rows these have, and in which order."""
    facts, box = kng.Bounds(**BOUNDS, unit=UNIT), kng.Box(-1.0, 1.0)
    mechanisms = [
        kng.KNG(kng.QuantileLoss(0.5), facts, box, 1.0, adjacency),
        kng.KNG(kng.SquaredLoss(), facts, box, 1.0, adjacency),
        kng.ExponentialMechanism(kng.SquaredLoss(), facts, box, 1.0, adjacency),
        kng.ObjectivePerturbation(kng.PseudoHuberLoss(0.5), facts, box, 1.0, adjacency),
        kng.AdaSSP(facts, 1.0, 1e-6, adjacency),
    ]
    tables = [(np.arange(50), 50), (np.repeat(np.arange(50), 7), 350), (np.append(np.arange(49), [60] * 400), 449)]
    for mechanism in mechanisms:
        made = [kng.certify(mechanism, np.zeros((n, 1)), np.zeros(n), person=ids) for ids, n in tables]
        told = [{name: one for name, one in part.to_dict().items() if name != "created"} for part in made]
        assert told[0] == told[1] == told[2]
        assert made[0].num_records == (50 if adjacency == "replace" else None)


@pytest.mark.parametrize("bad", [0, -1, 1001])
def test_votes_are_between_1_and_1000(bad):
    with pytest.raises(ValueError, match="between 1 and 1000"):
        kng.Unit("patient", most_rows=bad)


def test_facts_of_units_are_checked():
    with pytest.raises(TypeError, match="whole number"):
        kng.Unit("patient", most_rows=True)
    with pytest.raises(ValueError, match="name whom they are of"):
        # A certificate would say that one record comes or goes, which costs two changes of a person.
        kng.Unit("record", most_rows=1)
    with pytest.raises(ValueError, match="give most_rows=1 too"):
        kng.Unit("patient", missing="drop")
    with pytest.raises(ValueError, match="shares of a vote"):
        kng.Bounds(**BOUNDS, unit=UNIT, weight=3.0)
    assert kng.Bounds(**BOUNDS, unit=kng.Unit("patient", most_rows=4)).weight == 4.0
    assert "OWNER ONLY" in repr(persons.Identifiers(SAME))
    assert "OWNER ONLY" in repr(shares_of(np.zeros(3, int), 1))


class _Quoted(str):
    """Stands for the text of parsers of XML, which has a class of its own."""


@pytest.mark.parametrize("other", ["b", "\ud800", 5, b"b", None, 1.5])
def test_identifiers_are_the_same_persons_whatever_another_cell_is(other):
    """Arrow reads columns of nothing but text, and one cell decides whether a column is such."""
    # Narwhals knows by the first hundred cells whether a column is of text.
    column = [*["a"] * 100, _Quoted("a"), np.str_("a"), _Quoted("c"), pa.scalar("c"), "", None, other]
    codes = persons.codes_of(pd.Series(column, dtype=object))
    assert codes[:-1].tolist() == [0] * 102 + [1, -1, -1, -1]


@pytest.mark.parametrize("kind", ["array", "chunks", "pandas", "dictionary"])
def test_identifiers_that_are_no_utf8_are_those_of_their_own_row_alone(kind):
    column = pa.array([b"a", b"\xff", b"b", b"a"]).view(pa.string())
    if kind == "dictionary":
        column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 0]), column)
    made = pa.chunked_array([column]) if kind in ("chunks", "pandas") else column
    made = pd.Series(pd.arrays.ArrowExtensionArray(made)) if kind == "pandas" else made
    assert persons.codes_of(made).tolist() == [0, 1, 2, 0]


def test_whole_numbers_of_arrow_are_identifiers_beside_a_missing_one():
    column = pa.array([2**53 + 1, 2**53, None, 2**53 + 1])
    persons.require_identifiers(column)
    assert persons.codes_of(column).tolist() == [0, 1, -1, 0]
