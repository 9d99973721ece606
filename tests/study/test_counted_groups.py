"""Intervals of quantiles of groups whose sizes nobody said: groups are counted first, and small ones are refused."""

import gc
import re
import types

import numpy as np
import pandas as pd
import pytest

import kngjax as kng
from kngjax.study.grouping import GroupSize
from tests.study.test_quantile_intervals import coverage
from tests.words import words_of

BOUNDS = {"v": (0.0, 1000.0)}
ADJACENCIES = ("replace", "add_remove")


def table(sizes, median=100.0):
    values = median * np.random.default_rng(0).lognormal(0.0, 0.5, sum(sizes.values()))
    return pd.DataFrame({"v": values, "g": np.repeat(list(sizes), list(sizes.values()))})


def study(sizes, adjacency="replace", levels=None, **facts):
    return kng.Study(table(sizes), bounds=BOUNDS, levels={"g": levels or tuple(sizes)}, adjacency=adjacency, **facts)


def deviation(rate):
    return 1.0 / (np.sqrt(2.0) * np.sinh(0.5 * rate))


@pytest.mark.parametrize("rate", [0.05, 0.3, 2.0])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_a_bound_from_below_is_too_large_as_rarely_as_it_says_and_no_nearer_one_is(rate, level):
    size = GroupSize(10_000, deviation(rate))
    bound = size.at_least(level)
    noise, q = np.arange(-2000, 2001), np.exp(-rate)
    chances = (1.0 - q) / (1.0 + q) * q ** np.abs(noise)
    margin = 10_000 - bound.count
    assert bound.miss == pytest.approx(0.1 * (1.0 - level))
    assert chances[noise > margin].sum() <= bound.miss < chances[noise > margin - 1].sum()
    assert GroupSize(10_000).at_least(level) == GroupSize(10_000)


def held(count, epsilon):
    """The probability that an interval holds, over the noise of its group's count and everything that follows."""
    rate = 0.5 * 0.2 * epsilon
    q, reach, half, total, certain = np.exp(-rate), int(6.0 / rate), int(0.15 / rate), 0.0, 0.0
    for noise in range(-reach, reach + 1, 2 * half + 1):
        size = GroupSize(count + noise, deviation(rate)).at_least(0.95)
        given = {"num_records": size.count, "miss": size.miss, "spread": 500.0, "force": True}
        made = kng.QuantileInterval(0.5, kng.Bounds(y=(20.0, 2e4)), 0.4 * epsilon, "add_remove", **given)
        # Neighbouring values of the noise together.
        near = (1.0 - q) / (1.0 + q) * sum(q ** abs(noise + step) for step in range(-half, half + 1))
        total, certain = total + near * coverage(made, count), certain + near
    return total / certain


@pytest.mark.takes(3, "forty mechanisms for each count that may be released")
@pytest.mark.parametrize(("count", "epsilon"), [(300, 1.0), (3000, 0.3)])
def test_an_interval_of_counted_groups_holds_as_often_as_it_says(count, epsilon):
    assert 0.95 <= held(count, epsilon) <= 0.99


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_all_costs_what_was_asked_and_a_small_group_has_words_in_the_place_of_an_interval(adjacency, tmp_path):
    ledger = kng.Ledger.create(tmp_path / "book", kng.Budget.pure(5.0), adjacency=adjacency, dataset="people")
    one = study({"big": 3000, "tiny": 4}, adjacency, ("big", "tiny", "empty"), ledger=ledger)
    plan = one.plan()
    plan.by("g").quantile_interval("v", tau=0.5, epsilon=1.5)
    assert plan.cost.epsilon == pytest.approx(1.5, abs=1e-12)
    assert plan.cost.epsilon <= 1.5
    [found] = plan.run()
    assert found.guarantee.epsilon == plan.cost.epsilon
    assert ledger.read().spent.epsilon == plan.cost.epsilon
    assert len(ledger.releases()) == 2
    interval = found["big"].intervals()
    assert interval.level == 0.95
    assert 90.0 < interval.lower[0] < interval.upper[0] < 110.0
    assert any("less than a released count" in words for words in interval.assumptions)
    for level in ("tiny", "empty"):
        none = found[level].intervals()
        assert isinstance(none, kng.inference.NoInterval)
        assert "nothing was released of this group" in none.reason
        assert found.params.loc[level].isna().all()
        assert found[level].releases == ()
    assert "1 of 3 groups have a release" in words_of(found)
    assert found.counted.params["big"] == pytest.approx(3000, abs=200)
    assert [one.certificate.mechanism["type"] for one in found.releases] == ["GeometricMechanism", "QuantileInterval"]
    again = kng.Results.from_json(found.to_json())
    assert str(again) == str(found)
    assert again.guarantee == found.guarantee


def test_an_interval_is_for_the_count_that_was_released_and_what_it_leaves_of_epsilon():
    found = study({"a": 2000, "b": 1000}).by("g").quantile_interval("v", tau=0.5, epsilon=1)
    counts = found.releases[0].certificate.mechanism
    assert (counts["epsilon"], counts["adjacency"]) == (0.2, "replace")
    for level in ("a", "b"):
        [only] = found[level].releases
        mechanism = only.certificate.mechanism
        noise = float(found.counted.noise[level])
        assert mechanism["epsilon"] == 0.4
        assert mechanism["num_records"] == GroupSize(int(found.counted.params[level]), noise).at_least(0.95).count
        assert (mechanism["level"], mechanism["miss"]) == (0.95, pytest.approx(0.005))


def test_without_a_group_that_is_large_enough_the_rest_is_not_spent(tmp_path):
    ledger = kng.Ledger.create(tmp_path / "book", kng.Budget.pure(5.0), adjacency="replace", dataset="people")
    one = study(dict.fromkeys("abcdefgh", 30), ledger=ledger)
    found = one.by("g").quantile_interval("v", tau=0.5, epsilon=1)
    assert found.guarantee.epsilon == ledger.read().spent.epsilon == 0.2
    assert "the rest was not spent" in words_of(found)
    assert str(kng.Results.from_json(found.to_json())) == str(found)
    rows = ledger.read().num_rows
    with pytest.raises(ValueError, match=r"even a group of all records has no interval: 20 records are too few"):
        study({"a": 10, "b": 10}, ledger=ledger).by("g").quantile_interval("v", tau=0.5, epsilon=1)
    assert ledger.read().num_rows == rows
    with pytest.raises(ValueError, match="epsilon"):
        one.by("g").quantile_interval("v", tau=0.5, epsilon=-1)


def test_records_that_a_policy_drops_are_not_counted():
    """An interval is of the others alone, and would hold too rarely if these were counted."""
    frame = table({"a": 2000, "b": 2000})
    frame.loc[frame.index % 4 > 0, "v"] = np.nan
    facts = {"bounds": BOUNDS, "levels": {"g": ("a", "b")}, "adjacency": "add_remove", "missing": {"v": "drop"}}
    found = kng.Study(frame, **facts).by("g").quantile_interval("v", tau=0.5, epsilon=4)
    np.testing.assert_allclose(found.counted.params, 500, atol=30)


def test_what_is_forced_is_released_of_groups_of_three_and_more():
    found = study({"a": 500, "b": 60}).by("g").quantile_interval("v", tau=0.5, epsilon=1, force=True)
    assert "it was released by force=True" in found["b"].intervals().reason
    assert np.isfinite(found.params.loc["b"]).all()


@pytest.mark.takes(3, "three releases of forty groups")
def test_intervals_of_many_groups_hold_about_as_often_as_they_say():
    levels, hits = tuple(f"g{number}" for number in range(40)), []
    for seed in range(3):
        values = np.random.default_rng(seed).lognormal(4.0, 0.5, 16_000)
        frame = pd.DataFrame({"v": values, "g": np.repeat(levels, 400)})
        one = kng.Study(frame, bounds=BOUNDS, levels={"g": levels}, adjacency="replace")
        made = one.by("g").quantile_interval("v", tau=0.5, epsilon=2)
        hits += [found.lower[0] <= np.exp(4.0) <= found.upper[0] for found in made.intervals().values()]
    assert len(hits) == 120
    assert 0.93 <= np.mean(hits) < 1.0


def test_plans_checks_and_previews_know_both_releases():
    one = study({"a": 1200, "b": 800})
    plan = one.plan()
    plan.by("g").quantile_interval("v", tau=0.5, epsilon=1)
    rows = plan.summary().rows
    assert [row[3] for row in rows] == ["0.2", "0.8", "1"]
    assert plan.check().fits
    [preview] = plan.preview(residual=50.0)
    assert preview.noise.loc["a"].shape == (2, 1)
    with pytest.raises(ValueError, match="residual="):
        _ = one.preview().by("g").quantile_interval("v", tau=0.5, epsilon=1).noise
    wanted = preview.epsilon_for(1.0)
    again = one.preview(residual=50.0).by("g").quantile_interval("v", tau=0.5, epsilon=wanted)
    np.testing.assert_allclose(again.ratio.max().max(), 1.0, rtol=0.05)


def epsilon_in(words):
    """What a refusal names as enough, of all groups together."""
    assert "at epsilon = 1 for all groups together" in words
    return float(re.search(r"It takes at least about [\d,]+ records or epsilon = ([\d.]+);", words)[1])


@pytest.mark.parametrize("said", [None, {"a": 3000, "b": 60}])
def test_a_refused_group_names_the_epsilon_of_all_groups_that_is_about_enough(said):
    sizes = said or {"a": 50, "b": 50}

    def ask(epsilon):
        plan = study(sizes).plan()
        plan.by("g", num_records=said).quantile_interval("v", tau=0.5, epsilon=epsilon)
        plan.settled()

    with pytest.raises(
        ValueError, match="even a group of all records" if said is None else "g = b: 60 records"
    ) as told:
        ask(1)
    enough = epsilon_in(str(told.value))
    ask(enough)
    with pytest.raises(ValueError, match="too few"):
        ask(0.9 * enough)


def test_a_group_that_was_counted_and_refused_names_the_epsilon_of_all_groups():
    found = study({"a": 3000, "b": 100}).by("g").quantile_interval("v", tau=0.5, epsilon=1)
    enough = float(re.search(r"or epsilon = ([\d.]+) for all groups together", found["b"].intervals().reason)[1])
    bound = GroupSize(int(found.counted.params["b"]), float(found.counted.noise["b"])).at_least(0.95)
    given = kng.Bounds(y=(0.0, 1000.0)), 0.5 * 0.8 * enough, "add_remove"
    made = kng.QuantileInterval(0.5, *given, num_records=bound.count, miss=bound.miss)
    assert made.refusal() is None
    assert made.at_epsilon(0.9 * float(made.epsilon)).refusal() is not None


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_refusals_and_previews_of_groups_are_in_terms_of_the_epsilon_that_was_asked(adjacency):
    one = study({"a": 40, "b": 40}, adjacency, num_records=None if adjacency == "replace" else 80)
    with pytest.raises(ValueError, match=r"of 40 records at epsilon = 0\.1 noise .* epsilon = ([\d.]+) would") as told:
        one.by("g", num_records=40).variance("v", epsilon=0.1)
    enough = float(re.search(r"or epsilon = ([\d.]+) would do", str(told.value))[1])
    one.by("g", num_records=40).variance("v", epsilon=enough)
    preview = one.preview().by("g", num_records=400)
    assert "of 400 records at epsilon = 3, previewed" in preview.mean("v", epsilon=3).explain()
    wanted = preview.mean("v", epsilon=3)["a"].epsilon_for(0.5)
    np.testing.assert_allclose(preview.mean("v", epsilon=wanted)["b"].ratio.max().max(), 0.5, rtol=0.03)


def held_by(function):
    """All objects that a function's cells lead to, those of modules and classes left out."""
    waiting, seen = [cell.cell_contents for cell in function.__closure__], {}
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, type | types.ModuleType):
            continue
        seen[id(one)] = one
        if isinstance(one, types.FunctionType):
            waiting += [cell.cell_contents for cell in one.__closure__ or ()]
        else:
            waiting += gc.get_referents(one)
    return seen


def test_a_planned_analysis_holds_nothing_private():
    plan = study({"a": 1200, "b": 800}).plan()
    made = plan.by("g").quantile_interval("v", tau=0.5, epsilon=1)
    assert id(plan.facts) in held_by(made.of_size)
    assert not held_by(made.of_size).keys() & {id(plan), id(plan._study), id(plan._study._frame)}


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("epsilon", [1.0 / 3.0, 0.30000000000000004, 10.0 / 3.0])
def test_the_two_parts_of_epsilon_are_rounded_inward(adjacency, epsilon, tmp_path):
    """A ledger that has exactly the ε that is asked for pays for both, whatever its last digit is."""
    ledger = kng.Ledger.create(tmp_path / "book", kng.Budget.pure(epsilon), adjacency=adjacency, dataset="people")
    guess = {} if adjacency == "replace" else {"num_records": 8000}
    one = study({"a": 4000, "b": 4000}, adjacency, ledger=ledger, **guess)
    found = one.by("g").quantile_interval("v", tau=0.5, epsilon=epsilon, spread=50.0)
    assert found.guarantee.epsilon <= epsilon
    assert len(ledger.read().what) == 2


def test_a_bound_from_below_is_no_more_than_a_mechanism_takes():
    assert GroupSize(2**40, deviation(0.05)).at_least(0.95).count == 2**30
