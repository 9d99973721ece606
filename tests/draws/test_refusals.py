"""Public facts refuse before a bit is drawn or anything is spent; values make a release fail in one constant text."""

import numpy as np
import pytest

import kngjax as kng
from kngjax.core.errors import FAILED
from tests.draws.cases import ROWS, Records, drawn_with, ledger_of
from tests.held_by_errors import records_held
from tests.offenders import every_case


@pytest.fixture
def no_bits():
    """Nothing may be drawn."""

    def refuse(number):
        raise AssertionError("bits were drawn")

    with drawn_with(refuse):
        yield


def wrong_shapes(row, records):
    """Records that do not fit, and what the refusal says."""
    bounds = row.made(row.adjacencies[0]).bounds
    if records.x is not None:
        yield (
            records._replace(x=np.column_stack([records.x, records.x])),
            f"X has {2 * bounds.columns} columns and bounds.x is for {bounds.columns}",
        )
    if records.x is not None and records.y is not None:
        yield records._replace(y=records.y[:-1]), "X and y have different numbers of rows"
    if records.y is not None:
        yield records._replace(y=np.column_stack([records.y, records.y])), r"y must have shape \(n,\), not 2 axes"
    if records.weights is not None:
        yield Records(None, None), "the bounds are for records with weights"
    else:
        yield Records(None, None), "X is missing" if records.x is not None else "y is missing"


@pytest.mark.parametrize("name", ROWS)
def test_what_public_facts_refuse_costs_nothing_and_draws_nothing(name, tmp_path, no_bits):
    row = ROWS[name]
    records = row.records()
    for adjacency in row.adjacencies:
        mechanism = row.made(adjacency)
        ledger = ledger_of(tmp_path, adjacency, kng.Budget.approximate(1e9, 0.5))
        head = ledger.head()
        for given, words in wrong_shapes(row, records):
            with pytest.raises(ValueError, match=words):
                row.release_of(mechanism, given, ledger=ledger)
        if adjacency == "replace":
            with pytest.raises(ValueError, match=r"empty|too few"):
                row.release_of(mechanism, row.records(0), ledger=ledger)
        with pytest.raises(TypeError, match="its randomness comes from the operating system"):
            kng.release(mechanism, records.x, records.y, key=kng.research_key(0), ledger=ledger)
        if records.weights is None:
            with pytest.raises((ValueError, TypeError), match="weight"):
                row.release_of(mechanism, records._replace(weights=np.ones(row.count)), ledger=ledger)
        assert ledger.head() == head


@pytest.mark.parametrize("name", ROWS)
def test_what_the_budget_does_not_allow_draws_nothing(name, tmp_path, no_bits):
    row = ROWS[name]
    for adjacency in row.adjacencies:
        ledger = ledger_of(tmp_path, adjacency, kng.Budget.approximate(1e-3, 1e-12))
        with pytest.raises(kng.ledger.BudgetExceeded):
            row.release_of(row.made(adjacency), row.records(), ledger=ledger)
        assert not ledger.releases()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ROWS)
def test_values_that_are_no_numbers_make_a_release_fail_in_one_constant_text(name, value):
    row = ROWS[name]
    records = row.records()
    spoiled = records.changed(np.copy)
    place = spoiled.y if spoiled.x is None else spoiled.x
    place[3] = value
    with pytest.raises(kng.ReleaseFailed) as failed:
        row.release(row.adjacencies[0], spoiled)
    assert str(failed.value) == FAILED
    assert failed.value.__cause__ is None
    assert failed.value.__context__ is None


@pytest.mark.parametrize("name", ROWS)
def test_an_adjacency_must_be_one_of_the_two(name):
    with pytest.raises(ValueError, match="adjacency"):
        ROWS[name].make("neighbours", 1.0)


@pytest.mark.parametrize("name", ["mean", "KNG, logistic, shells"])
def test_what_needs_the_number_of_records_refuses_to_do_without(name):
    """The mechanism refuses, or a release of it does, before anything is drawn."""
    row = ROWS[name]
    records = row.records()
    with pytest.raises(ValueError, match=r"add_remove|no exact sampler|how many records there are is not public"):
        kng.certify(row.make("add_remove", 1.0), records.x, records.y)


@pytest.mark.parametrize("name", ROWS)
def test_no_error_of_a_release_holds_the_records(name, tmp_path):
    """Of refusals, of a budget that does not allow it, of values, and of a wrong argument."""
    row = ROWS[name]
    adjacency, records = row.adjacencies[-1], row.records(29)
    mechanism, spoiled = row.made(adjacency), records.changed(np.copy)
    place = spoiled.y if spoiled.x is None else spoiled.x
    place[3] = np.nan
    poor = ledger_of(tmp_path, adjacency, kng.Budget.approximate(1e-3, 1e-12))
    asks = {
        "shapes": lambda: row.release_of(mechanism, next(iter(wrong_shapes(row, records)))[0]),
        "budget": lambda: row.release_of(mechanism, records, ledger=poor),
        "values": lambda: row.release_of(mechanism, spoiled),
        "ledger": lambda: row.release_of(mechanism, records, ledger="ledger"),
        "key": lambda: kng.release(mechanism, records.x, records.y, key=kng.research_key(0)),
        "certificate": lambda: kng.certify(mechanism, records.x, records.y, weights=records.weights, sampler=3),
    }
    with every_case() as case:
        for way, ask in asks.items():
            with case(way):
                with pytest.raises((ValueError, TypeError, kng.ledger.BudgetExceeded, kng.ReleaseFailed)) as caught:
                    ask()
                assert records_held(caught.value, 29) == []
