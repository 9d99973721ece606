"""Intervals of quantiles of columns: asked of a study, a plan, a preview and groups."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats

import kngjax as kng
from tests.words import words_of

FACTS = {"bounds": {"wage": (20, 20_000)}, "levels": {"region": ("north", "south")}}


def people(number=1500):
    generator = np.random.default_rng(0)
    wages = generator.lognormal(6.0, 0.6, number)
    return pd.DataFrame({"wage": wages, "region": generator.choice(["north", "south"], number)})


def test_a_study_gives_an_interval_with_names_and_prints_it():
    study = kng.Study(people(), adjacency="replace", **FACTS)
    fit = study.quantile_interval("wage", tau=0.5, epsilon=2, level=0.99)
    assert fit.params.index.tolist() == ["0.5-quantile of wage, lower end", "0.5-quantile of wage, upper end"]
    interval = fit.intervals()
    assert isinstance(interval, kng.inference.Interval)
    assert interval.level == 0.99
    assert 300.0 < fit.params.iloc[0] == interval.lower[0] < 403.4 < interval.upper[0] == fit.params.iloc[1] < 500.0
    assert "interval: holds the quantile with probability 0.99" in words_of(fit)
    again = kng.Results.from_json(fit.to_json())
    assert str(again) == str(fit)
    assert "interval:" not in words_of(study.median("wage", epsilon=2))


def test_a_summary_says_why_an_interval_of_rounded_numbers_is_wider_than_its_ends():
    study = kng.Study(people().round({"wage": 0}), adjacency="replace", dither={"wage": 4}, **FACTS)
    fit = study.quantile_interval("wage", tau=0.5, epsilon=2)
    assert fit.intervals().lower[0] == pytest.approx(fit.params.iloc[0] - 2.0)
    assert "wider for the dither than the released ends; explain() says how" in " ".join(str(fit).split())


def test_plans_previews_and_groups_know_it():
    study = kng.Study(people(), adjacency="replace", **FACTS)
    plan = study.plan()
    plan.quantile_interval("wage", tau=0.5, epsilon=1)
    assert plan.summary().rows[0][1:4] == ("QuantileInterval by Direct", "proved", "1")
    assert study.preview(residual=300.0).quantile_interval("wage", tau=0.5, epsilon=1).noise.shape == (2, 1)
    grouped = study.by("region", num_records=700).quantile_interval("wage", tau=0.5, epsilon=4)
    assert isinstance(grouped["south"].intervals(), kng.inference.Interval)
    assert "of 700" in grouped["south"].intervals().method


@pytest.mark.parametrize("facts", [{"adjacency": "replace"}, {"adjacency": "add_remove", "num_records": 1500}])
def test_of_groups_it_takes_sizes_that_somebody_said_as_they_are_and_less_of_released_ones(facts):
    study = kng.Study(people(), **facts, **FACTS)
    for said in (600, {"north": 600, "south": 650}):
        [part] = (
            study.plan().by("region", num_records=said).quantile_interval("wage", tau=0.5, epsilon=4).analyses[0].parts
        )
        assert part.mechanism.num_records == 600
    counts = study.histogram("region", epsilon=1.0)
    made = study.plan().by("region", num_records=counts).quantile_interval("wage", tau=0.5, epsilon=4)
    mechanisms = [analysis.parts[0].mechanism for analysis in made.analyses]
    # ln(1/(a(1 + q)))/c - 1, rounded up, of a = .005: q^(k + 1)/(1 + q) ≤ a.
    rate = 0.5 if facts["adjacency"] == "replace" else 1.0
    margin = np.ceil(np.log(1.0 / (0.005 * (1.0 + np.exp(-rate)))) / rate) - 1.0
    np.testing.assert_array_equal([one.num_records for one in mechanisms], counts.params - margin)
    assert {(one.level, round(one.miss, 12)) for one in mechanisms} == {(0.95, 0.005)}
    assert study.by("region", num_records=counts.nonnegative())._sizes == study.by("region", num_records=counts)._sizes


def test_released_counts_are_of_the_groups_records_with_noise_that_is_known():
    frame = people().assign(born="north", weight=2.0)
    own = {"bounds": FACTS["bounds"] | {"weight": (0, 5)}, "levels": {"region": ("north", "south")}}
    own["levels"]["born"] = own["levels"]["region"]
    study = kng.Study(frame, adjacency="replace", **own)
    weighted = kng.Study(frame, adjacency="replace", weights="weight", **own)
    counts = study.histogram("region", epsilon=1.0)
    refused = {
        "counts by region, in this order, and not a histogram of born": study.histogram("born", epsilon=1.0),
        "not a number of records where wage > 500": study.count("wage > 500", epsilon=1.0),
        "sums of weights": weighted.histogram("region", epsilon=1.0),
        r"without with_total\(\)": counts.with_total(15_000),
        r"counts.params.clip\(lower=1\).to_dict\(\)": {"north": 0, "south": 700},
    }
    for words, given in refused.items():
        with pytest.raises(ValueError, match=words):
            study.by("region", num_records=given)
    # As the last one advises.
    said = counts.params.clip(lower=1).to_dict()
    assert study.by("region", num_records=said)._sizes[0].count == counts.params["north"]


def coverage(mechanism, count):
    """At least the probability that the interval of so many records holds the quantile, summed over all ranks.

    An end of target rank r has the rank r + R, P(R = a) in proportion to q^|a|(|a| + (1 + q)/(1 - q)), and misses where
    so many or more of the records, of which each is below the quantile with probability τ, lie on the wrong side; q is
    e^(-ε/Δ), as both ends move together.
    """
    lower, upper = np.array(mechanism.ranks()) / mechanism.num_records * count
    rate = np.exp(-float(mechanism.epsilon) / mechanism.sensitivity_for(2).value)
    moves = np.arange(-400, 401)
    chances = rate ** np.abs(moves) * (np.abs(moves) + (1.0 + rate) / (1.0 - rate))
    chances /= chances.sum()
    below = scipy.stats.binom(count, float(mechanism.tau))
    return 1.0 - chances @ below.cdf(lower + moves) - chances @ below.sf(upper + moves - 1.0)


@pytest.mark.parametrize("count", [150, 500, 3000])
def test_an_interval_of_a_group_holds_as_often_as_it_says_whatever_the_sizes(count):
    """Of groups of 500 and 3,000 an equal share of 1,750 was taken for granted, and 60 of 100 intervals held."""

    def of(at_least):
        return kng.QuantileInterval(0.5, kng.Bounds(y=(20.0, 2e4)), 0.5, "add_remove", num_records=at_least, force=True)

    # Counts that were released at an epsilon of a quarter, half of it for each group, less four times their noise.
    released = int(count - 4.0 * np.sqrt(2.0) / 0.125)
    assert coverage(of(released), count) >= 0.95
    assert coverage(of(count), count) >= 0.95
    if count == 500:
        assert coverage(of(1750), count) < 0.75


def test_it_is_refused_and_forced_as_the_mechanism_says():
    few = kng.Study(people(300), adjacency="replace", **FACTS)
    with pytest.raises(ValueError, match=r"300 records are too few for a 95% interval of the 0\.95-quantile"):
        few.quantile_interval("wage", tau=0.95, epsilon=0.5)
    fit = few.quantile_interval("wage", tau=0.95, epsilon=0.5, force=True)
    assert isinstance(fit.intervals(), kng.inference.NoInterval)
    assert "interval: none: it was released by force=True" in words_of(fit)
    unknown = kng.Study(people(300), adjacency="add_remove", **FACTS)
    with pytest.raises(ValueError, match="one that there are at least"):
        unknown.quantile_interval("wage", tau=0.5, epsilon=1)
