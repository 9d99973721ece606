"""The shared path of studies, plans and jobs: what a reservation that was made beforehand pays for."""

import inspect

import numpy as np
import pytest

import kngjax as kng
from kngjax.core.errors import FAILED_OF_FIT, FAILED_OF_FRAME
from kngjax.sklearn.base import AbstractPrivateEstimator
from tests.study.people import PEOPLE, study


@pytest.fixture
def ledger(tmp_path):
    return kng.Ledger.create(tmp_path / "people", kng.Budget.pure(3), adjacency="replace", dataset="people")


@pytest.fixture
def mean():
    """Of wages, planned, and what it costs."""
    analysis = study().plan().mean("wage", epsilon=1)
    [step] = analysis.steps()
    return analysis, step.owed(len(PEOPLE))[0]


def test_a_reservation_pays_for_one_failure_and_nothing_after_it(ledger, mean):
    """Whether records can be read tells something of them."""
    analysis, cost = mean
    reservation = ledger.reserve(cost)
    with pytest.raises(kng.ReleaseFailed):
        analysis.release(PEOPLE.assign(wage=np.nan), [reservation])
    for frame in (PEOPLE, PEOPLE.assign(wage=np.nan)):
        with pytest.raises(kng.ledger.LedgerError, match="drawn from already"):
            analysis.release(frame, [reservation])
    with pytest.raises(kng.ledger.LedgerError, match="drawn from already"):
        kng.release(analysis.parts[0].mechanism, PEOPLE[["wage"]], ledger=reservation)


def test_what_failures_say_names_what_their_users_have():
    for text in (FAILED_OF_FRAME, FAILED_OF_FIT):
        assert not any(word in text for word in ("prepare", "Loss", "Bounds", "mechanism"))
        assert "missing=" in text
    assert {"missing", "levels"} <= inspect.signature(kng.Study).parameters.keys()
    assert {"missing", "missing_y", "levels"} <= AbstractPrivateEstimator.__annotations__.keys()


def test_reservations_of_another_price_or_number_are_refused_before_records_are_read(ledger, mean):
    analysis, cost = mean
    cheap = ledger.reserve(kng.Guarantee.pure("0.001", "replace"))
    for frame in (PEOPLE, PEOPLE.assign(wage=np.nan)):
        with pytest.raises(ValueError, match="made for another guarantee"):
            analysis.release(frame, [cheap])
        with pytest.raises(ValueError, match="2 reservations were given for 1 releases"):
            analysis.release(frame, [cheap, cheap])
    right = ledger.reserve(cost)
    [release] = analysis.release(PEOPLE, [right])
    assert ledger.releases() == {right.number: release.to_json()}


def test_as_many_records_are_drawn_from_as_were_certified(mean):
    plan = mean[0].parts[0].plan_for(5)
    with pytest.raises(RuntimeError, match="another number of records than its releases are certified for"):
        plan.draw((None, np.linspace(20.0, 60.0, 4), None), False)
