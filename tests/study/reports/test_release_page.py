"""What a report says of a guarantee is never less than what follows from it."""

import json
import math
from statistics import NormalDist

import pytest

import kngjax as kng
from kngjax.study.reports.page_contents import document_of, numbers_of, privacy_of
from kngjax.study.reports.release_page import _percent, most_power, report
from tests.study.reports.pages_made import NAMED, Outline, study_of

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


def words_of(adjacency, level=0.95, **asked):
    """The words of a report of counts, or of what is asked."""
    study = study_of(adjacency)
    result = study.mean(NAMED, **asked) if asked else study.histogram("region", epsilon=0.5)
    written = {"labels": list(result.labels), "result": json.loads(result.to_json())}
    analyses = [written | {"numbers": numbers_of(result, level)}]
    privacy = privacy_of(result.guarantee, adjacency)
    seen = Outline(report(document_of({"privacy": privacy, "analyses": analyses}, None), [result], result.guarantee))
    return " ".join(text for tag, text in seen.texts if tag != "script")


def test_a_test_is_of_neighbours_which_under_add_remove_have_one_record_more():
    assert "whether one record had one value or another" in words_of("replace")
    said = words_of("add_remove")
    assert "whether one record is in the data or not" in said
    assert "one value or another" not in said


def test_an_interval_is_said_in_full_and_at_the_level_of_its_numbers():
    said = words_of("replace", level=0.8, epsilon=1)
    assert "with probability 0.8" in said
    assert "0.95" not in said
    assert "explain()" not in said


def test_percentages_are_rounded_up():
    assert _percent(0.41301) == "41.4%"
    assert _percent(0.05) == "5%"
    assert _percent(0.9999) == "100%"
