"""Audits with neighbours by person: what holds of persons passes, and rows that each count as one are seen."""

import numpy as np
import pytest

import kngjax as kng
from audits.replay import replayed_sensitivity
from kngjax.audit import black_box, density_ratio
from kngjax.data import persons

UNIT = kng.Unit("patient", most_rows=1)
SUM = kng.KNormMechanism(kng.Bounds((-1.0, 1.0), None, False, columns=1, unit=UNIT), 1.0, "add_remove", statistic="sum")
KEY = kng.research_key(0)


def visits(m):
    """Of 20 patients and of one more, who has m rows: the table, and the one without that patient."""
    x, ids = np.ones((20 + m, 1)), [*range(20), *[99] * m]
    return (x, None, ids), (x[:20], None, ids[:20])


def count_each_row(monkeypatch):
    monkeypatch.setattr(
        persons, "shares", lambda codes, *_: persons.Shares(np.ones(len(codes)), len(set(codes)), codes)
    )


@pytest.mark.parametrize("m", [1, 8])
def test_draws_tell_of_a_person_no_more_than_epsilon(m):
    found = black_box(SUM, *visits(m), key=KEY, num_draws=20_000)
    assert found.passed
    assert found.epsilon_lower_bound > 0.8
    assert "of 21 and 20 patients" in found.explain()


def test_draws_tell_of_rows_that_count_as_one_each(monkeypatch):
    count_each_row(monkeypatch)
    assert black_box(SUM, *visits(8), key=KEY, num_draws=20_000).epsilon_lower_bound > 2.0


def test_what_is_no_pair_of_neighbours_by_person_is_refused():
    whole, without = visits(8)
    fewer = whole[0][:-1], None, whole[2][:-1]
    with pytest.raises(ValueError, match="1 persons are in the first alone and 1 in the second alone"):
        black_box(SUM, whole, fewer, key=KEY, num_draws=1000)
    with pytest.raises(TypeError, match="identifiers"):
        black_box(SUM, whole[:2], without[:2], key=KEY, num_draws=1000)
    with pytest.raises(TypeError, match="no rows of persons"):
        density_ratio(kng.KNG(kng.SquaredDistanceLoss(), SUM.bounds, kng.Box(-1.0, 1.0), 1.0, "add_remove"))


@pytest.mark.takes(4, "chains are compiled")
@pytest.mark.default_cases("squared")
@pytest.mark.parametrize("name", ["quantile", "squared"])
def test_replays_are_of_all_rows_of_a_person(name, monkeypatch):
    loss = {"quantile": kng.QuantileLoss(0.9), "squared": kng.SquaredLoss()}[name]
    bounds = kng.Bounds((np.full(7, -1.0), 1.0), (-1.0, 1.0), unit=UNIT)
    mechanism = kng.KNG(loss, bounds, kng.Box(-1.0, 1.0), 1.0, "add_remove")
    x, y, ids = np.ones((30, 7)), np.full(30, -1.0), np.append(np.arange(20), np.full(10, 20))
    pair = (x, y, ids), (x[:20], y[:20], ids[:20])
    walk = kng.chains.EnsembleWalk(num_warmup=20)
    found = replayed_sensitivity(mechanism, *pair, key=KEY, num_points=40, sampler=walk)
    assert found.passed
    assert found.ratio > 0.8
    count_each_row(monkeypatch)
    assert replayed_sensitivity(mechanism, *pair, key=KEY, num_points=40, sampler=walk).ratio > 2.0
