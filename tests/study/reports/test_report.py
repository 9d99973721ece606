"""What a report says of a guarantee is never less than what follows from it."""

import math
from statistics import NormalDist

import pytest

import kngjax as kng
from kngjax.study.reports.report import _percent, most_power

NORMAL = NormalDist()
GUARANTEES = {
    "pure": kng.Guarantee.pure(1, "replace"),
    "bounded range": kng.Guarantee.bounded_range(2, "replace"),
    "approximate": kng.Guarantee.approximate(1, "1e-3", "replace"),
    "gaussian": kng.Guarantee.gaussian(1, "add_remove", delta="1e-6"),
    "zcdp": kng.Guarantee.zcdp("0.5", "replace"),
    "composed": kng.Guarantee.composed([kng.Guarantee.bounded_range("0.5", "replace")] * 4),
}


@pytest.mark.parametrize("alarms", [0.01, 0.05, 0.5])
def test_of_gaussian_privacy_no_test_has_more_power_than_the_best_one(alarms):
    best = NORMAL.cdf(1.0 - NORMAL.inv_cdf(1.0 - alarms))
    assert best <= most_power(GUARANTEES["gaussian"], alarms) <= best + 0.02


def test_of_pure_privacy_the_power_is_that_of_randomised_response():
    assert most_power(GUARANTEES["pure"], 0.05) == pytest.approx(0.05 * math.e)
    # Beyond 1/(1 + e) the other error decides.
    assert most_power(GUARANTEES["pure"], 0.5) == pytest.approx(1.0 - 0.5 / math.e)


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_power_lies_between_false_alarms_and_certainty_and_falls_with_the_cost(guarantee):
    one = GUARANTEES[guarantee]
    found = [most_power(one, alarms) for alarms in (0.01, 0.05, 0.1)]
    assert found == sorted(found)
    assert all(alarms < power <= 1.0 for alarms, power in zip((0.01, 0.05, 0.1), found, strict=True))
    twice = kng.Guarantee.composed([one, one])
    assert most_power(twice, 0.05) >= found[1]


def test_percentages_are_rounded_up():
    assert _percent(0.41301) == "41.4%"
    assert _percent(0.05) == "5%"
    assert _percent(0.9999) == "100%"
