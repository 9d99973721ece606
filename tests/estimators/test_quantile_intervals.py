"""Intervals of quantiles of columns: asked of a study, a plan, a preview and groups."""

import numpy as np
import pandas as pd
import pytest

import kngjax as kng

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
    assert isinstance(interval, kng.Interval)
    assert interval.level == 0.99
    assert 300.0 < fit.params.iloc[0] == interval.lower[0] < 403.4 < interval.upper[0] == fit.params.iloc[1] < 500.0
    assert "interval: 0.99: [" in str(fit)
    again = kng.EstimateResults.from_json(fit.to_json())
    assert str(again) == str(fit)
    assert "interval:" not in str(study.median("wage", epsilon=2))


def test_plans_previews_groups_and_functions_know_it():
    study = kng.Study(people(), adjacency="replace", **FACTS)
    plan = study.plan()
    plan.quantile_interval("wage", tau=0.5, epsilon=1)
    assert "QuantileInterval, exact_with_rounding: pure 1-" in repr(plan)
    assert study.preview().quantile_interval("wage", tau=0.5, epsilon=1).noise.shape == (2, 1)
    grouped = study.by("region", num_records=700).quantile_interval("wage", tau=0.5, epsilon=4)
    assert isinstance(grouped["south"].intervals(), kng.Interval)
    assert "of 700" in grouped["south"].intervals().method
    called = kng.quantile_interval("wage", people(), tau=0.5, epsilon=1, adjacency="replace", **FACTS)
    assert "QuantileInterval" in str(called)


def test_it_is_refused_and_forced_as_the_mechanism_says():
    few = kng.Study(people(300), adjacency="replace", **FACTS)
    with pytest.raises(ValueError, match=r"300 records are too few for a 95% interval of the 0\.95-quantile"):
        few.quantile_interval("wage", tau=0.95, epsilon=0.5)
    fit = few.quantile_interval("wage", tau=0.95, epsilon=0.5, force=True)
    assert isinstance(fit.intervals(), kng.NoInterval)
    assert "interval: none: it was released by force=True" in str(fit)
    unknown = kng.Study(people(300), adjacency="add_remove", **FACTS)
    with pytest.raises(ValueError, match="one that there are at least"):
        unknown.quantile_interval("wage", tau=0.5, epsilon=1)
