"""Noise on heaped numbers that a study is told of: quantiles get it, say so, and find what heaps hide."""

import datetime

import numpy as np
import pandas as pd
import pytest

import kngjax as kng
from tests.words import words_of

UNIT = 100
BOUNDS = {"wage": (100, 20_000), "education": (0, 18), "weight": (0, 2), **dict.fromkeys("abc", (0, 1))}


def heaped(count=4000):
    generator = np.random.default_rng(0)
    education = generator.uniform(0, 18, count)
    wage = np.exp(6.0 + 0.08 * education + 0.3 * generator.standard_normal(count))
    others = {name: generator.uniform(size=count) for name in "abc"}
    return pd.DataFrame({"wage": np.round(wage, -2), "education": education, "weight": 1.0, **others})


PEOPLE = heaped()


def study(**changed):
    return kng.Study(PEOPLE, **{"bounds": BOUNDS, "adjacency": "replace", "dither": {"wage": UNIT}} | changed)


def declared(results):
    """Of the only release, the noise on responses that its certificate states."""
    bounds = results.certificate.mechanism["bounds"]
    return bounds["dither"], bounds["dither_of_log"]


def test_quantiles_get_noise_and_say_so():
    median = study().median("wage", epsilon=1)
    assert declared(median) == (UNIT, False)
    assert abs(median.value - PEOPLE["wage"].median()) < 1.5 * UNIT
    assert "its own uniform noise of width 100 before it was clipped" in median.certificate.explain()
    assert "uniform noise of width 100 on each" in words_of(median.summary())
    assert kng.Results.from_json(median.to_json()).to_json() == median.to_json()
    # What lies at a bound would be a heap again.
    bounds = median.certificate.mechanism["bounds"]
    assert (bounds["y_lower"], bounds["y_upper"]) == (50.0, 20_050.0)


def test_quantile_regressions_get_noise_before_the_logarithm():
    fit = study().quantile_regression("log(wage) ~ education", tau=0.5, epsilon=4)
    assert declared(fit) == (UNIT, True)
    np.testing.assert_allclose(fit.params, [6.0, 0.08], atol=0.15)
    assert "what each response is the logarithm of got its own uniform noise" in fit.certificate.explain()
    assert kng.Results.from_json(fit.to_json()).to_json() == fit.to_json()
    assert fit.clipped["wage"] == (100.0, 20_000.0)
    bounds = fit.certificate.mechanism["bounds"]
    np.testing.assert_allclose(np.exp([bounds["y_lower"], bounds["y_upper"]]), [50.0, 20_050.0])
    plain = study().plan().quantile_regression("wage ~ education", tau=0.5, epsilon=1)
    assert (plain.parts[0].mechanism.bounds.dither, plain.parts[0].mechanism.bounds.dither_of_log) == (UNIT, False)
    assert study().preview().quantile_regression("log(wage) ~ education", tau=0.5, epsilon=4).trusted


@pytest.mark.slow
def test_heaps_hide_a_median_that_noise_on_them_shows():
    """Three in five have the same wage: without noise the gradient jumps past 0 there, and is small nowhere."""
    count = 400
    wage = np.where(np.arange(count) % 5 < 3, 1000.0, np.linspace(100.0, 20_000.0, count))
    frame, errors = pd.DataFrame({"wage": wage}), []
    for dither in ({"wage": UNIT}, None):
        one = kng.Study(frame, bounds={"wage": (100, 20_000)}, adjacency="replace", dither=dither)
        errors.append(np.mean([abs(one.median("wage", epsilon=0.6).value - 1000.0) for _ in range(8)]))
    assert errors[0] < UNIT / 2
    assert errors[1] > 3 * UNIT


def test_all_else_takes_no_noise():
    plan = study().plan()
    for analysis in (
        plan.mean("wage", epsilon=1),
        plan.linear_regression("wage ~ education", epsilon=1),
        plan.linear_regression("wage ~ education", epsilon=1, method="squared"),
        plan.sum("wage", epsilon=1),
        plan.histogram("wage", epsilon=1),
        plan.quantile_regression("wage ~ education + a + b + c", tau=0.5, epsilon=1),
        plan.quantile("education", tau=0.5, epsilon=1),
    ):
        assert all(part.mechanism.bounds.dither is None for part in analysis.parts)


def test_weighted_and_grouped_quantiles_get_it_too():
    plan = study(weights="weight").plan()
    for analysis in (
        plan.median("wage", epsilon=1),
        plan.quantile_regression("log(wage) ~ education", tau=0.5, epsilon=1),
    ):
        assert analysis.parts[0].mechanism.bounds.dither == UNIT
    grouped = study(levels={"half": (0, 1)}).plan().by("half").median("wage", epsilon=1)
    assert [one.parts[0].mechanism.bounds.dither for one in grouped.analyses] == [UNIT, UNIT]


DAYS = (datetime.date(2020, 1, 1), datetime.date(2020, 4, 1))


def wholes(bounds, count=3000, **changed):
    age = np.arange(count) % 60 + 20
    age = age if bounds is not DAYS else np.datetime64("2020-01-01") + age
    frame = pd.DataFrame({"age": age, "half": np.arange(count) % 2})
    facts = {"bounds": {"age": bounds}, "levels": {"half": (0, 1)}, "adjacency": "replace"} | changed
    return kng.Study(frame, **facts)


@pytest.mark.parametrize(
    ("facts", "has_hint"),
    [
        ({"bounds": (0, 100)}, True),
        ({"bounds": (0.0, 100.0)}, True),
        ({"bounds": DAYS}, True),
        ({"bounds": (0, 100), "dither": {"age": 1}}, False),
        ({"bounds": (0.5, 100)}, False),
        # More whole numbers than records.
        ({"bounds": (0, 3000)}, False),
        ({"bounds": (0, 2999)}, True),
    ],
)
def test_intervals_of_what_may_be_heaped_by_public_facts_name_the_remedy(facts, has_hint):
    one = wholes(**facts)
    found = one.quantile_interval("age", tau=0.5, epsilon=1, force=True)
    preview = one.preview().quantile_interval("age", tau=0.5, epsilon=1, force=True).explain()
    for text in (words_of(found), words_of(kng.Results.from_json(found.to_json())), preview):
        assert ("Study(..., dither={'age': 1})" in text) == has_hint
    assert "dither={" not in words_of(one.mean("age", epsilon=1))


def test_hints_of_groups_go_by_the_counts_of_their_records_and_never_by_values():
    """Of a count of 1,500 a group; values that are not whole have the same hint."""
    for bounds, has_hint in (((0, 1000), True), ((0, 1700), False)):
        found = wholes(bounds).by("half").quantile_interval("age", tau=0.5, epsilon=4)
        assert ("dither={'age': 1}" in words_of(found)) == has_hint
    frame = pd.DataFrame({"age": np.linspace(20.1, 79.9, 3000), "half": np.arange(3000) % 2})
    found = kng.Study(frame, bounds={"age": (0, 100)}, adjacency="replace").quantile_interval("age", tau=0.5, epsilon=1)
    assert "dither={'age': 1}" in words_of(found)


def test_the_remedy_makes_intervals_of_whole_ages_hold():
    """Of a thousand records of each age, of which 74 is the .905-quantile: without it both ends lie beside the heap."""
    held = {}
    for unit in (None, 1):
        one = wholes((0, 100), 60_000, dither=None if unit is None else {"age": unit})
        found = [one.quantile_interval("age", tau=0.905, epsilon=1).intervals() for _ in range(8)]
        held[unit] = sum(bool(interval.lower[0] <= 74.0 <= interval.upper[0]) for interval in found)
    assert held == {None: 0, 1: 8}


def test_intervals_of_two_levels_say_where_there_are_some():
    found = wholes((0, 100)).plan().quantile_interval("half", tau=0.5, epsilon=1)
    assert "histogram('half', epsilon=...).shares()" in found.response.heaps_in_words(3000)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        (0.01, TypeError, r"dither must name columns, dither=\{'carat': 0.01\}"),
        ({"wage": 0}, ValueError, "the unit that 'wage' was rounded to"),
        ({"wage": True}, ValueError, "the unit that 'wage' was rounded to"),
        ({"pay": 1}, ValueError, "'pay' has no bounds"),
        ({"region": 1}, ValueError, "'region' has no bounds"),
    ],
)
def test_what_is_no_unit_of_a_column_of_numbers_is_refused(given, error, words):
    with pytest.raises(error, match=words):
        study(dither=given, levels={"region": ("north", "south")})
