"""Previews of intervals of means and quantiles: figures against released results, laws in closed form and advice."""

import datetime
import re
from statistics import NormalDist

import numpy as np
import numpyro
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import kngjax as kng
from kngjax.mechanisms.interval_ranks import Ranks

FACTS = {"bounds": {"v": (0.0, 100.0)}, "levels": {"g": ("a", "b")}, "adjacency": "replace"}
COUNT = 3000


def study(values=None, **changed):
    values = np.linspace(0.0, 100.0, COUNT) if values is None else values
    return kng.Study(pd.DataFrame({"v": values, "g": np.tile(["a", "b"], len(values) // 2)}), **FACTS | changed)


def figure(words, text):
    return float(re.search(words + r" ([\d.,]+\d)", text)[1].replace(",", ""))


@pytest.mark.parametrize("described", ["evenly", "design", "number", "law"])
def test_means_are_previewed_with_the_standard_error_that_results_print(described):
    """Of releases whose noise is a fifth and more of the error, of 12 groups in all, by their median."""
    random = np.random.default_rng(0)
    values = np.linspace(0.0, 100.0, COUNT) if described == "evenly" else random.normal(50.0, 8.0, COUNT)
    one = study(values)
    said = {
        "evenly": {},
        "design": {"design": {"v": random.normal(50.0, 8.0, 4000)}},
        "number": {"residual": 8},
        "law": {"residual": numpyro.distributions.Normal(50.0, 8.0)},
    }[described]
    text = one.preview(**said).by("g", num_records=COUNT // 2).mean("v", epsilon=0.5, intervals=True).explain()
    released = [one.by("g").mean("v", epsilon=0.5, intervals=True).to_frame()["std. error"].median() for _ in range(6)]
    expected = figure("the standard error will be about", text)
    assert expected == pytest.approx(np.median(released), rel=0.1)
    assert figure("interval", text) == pytest.approx(3.92 * expected, rel=0.01)
    if described == "evenly":
        # Noise alone: T/n has the deviation √(20/3)·h/(nε/2).
        of_noise = np.sqrt(20.0 / 3.0) * 50.0 / (0.25 * COUNT / 2)
        assert figure("over their bounds, and", text) == pytest.approx(of_noise, rel=0.12)
    else:
        without = 8.0 / np.sqrt(COUNT / 2)
        assert figure("as were described,", text) == pytest.approx(expected / without, rel=0.05)


@pytest.mark.parametrize("dither", [None, {"v": 2.0}])
def test_intervals_are_previewed_with_their_ranks_and_their_width_under_a_law(dither):
    one = study(dither=dither)
    asked = one.preview(residual=10.0).by("g", num_records=1400).quantile_interval("v", tau=0.25, epsilon=0.5)
    released = one.by("g", num_records=1400).quantile_interval("v", tau=0.25, epsilon=0.5)
    lower, upper = released["a"].certificate.sampler["ranks"]
    assert f"rank {lower} and {upper} of 1,400" in asked.explain()
    law = NormalDist(0.0, 10.0)
    width = law.inv_cdf(upper / 1400) - law.inv_cdf(lower / 1400) + (0.0 if dither is None else 2.0)
    assert figure("given it is about", asked.explain()) == pytest.approx(width, rel=0.01)
    # Without privacy the ranks have no noise: P(Binomial(n, τ) ≤ r) ≤ .025 on either side.
    without = kng.QuantileInterval(0.25, kng.Bounds(y=(0.0, 100.0)), 100.0, "add_remove", num_records=1400).ranks()
    assert isinstance(without, Ranks)
    times = (upper - lower) / (without.upper - without.lower)
    assert figure("quantile,", asked.explain()) == pytest.approx(times, rel=0.02)


def test_groups_that_have_no_interval_say_what_takes_one_in_terms_of_what_is_asked():
    one = study()
    small = one.preview().by("g", num_records={"a": 1400, "b": 30}).quantile_interval("v", tau=0.5, epsilon=1)
    assert "no interval: 30 records are too few" in small["b"].explain()
    enough = figure("records or epsilon =", small["b"].explain())
    again = one.preview().by("g", num_records={"a": 1400, "b": 30}).quantile_interval("v", tau=0.5, epsilon=enough)
    assert "no interval" not in again.explain()
    counted = one.preview().by("g").quantile_interval("v", tau=0.5, epsilon=0.1).explain()
    assert "an equal share" in counted
    assert "there would be no interval, and an interval takes at least about a count of" in counted
    enough = figure("or epsilon =", counted)
    assert "near the values of rank" in one.preview().by("g").quantile_interval("v", tau=0.5, epsilon=enough).explain()


def test_without_a_number_of_records_no_figure_is_told():
    one = study(adjacency="add_remove").preview().by("g")
    for found in (
        one.mean("v", epsilon=1, intervals=True),
        one.quantile_interval("v", tau=0.5, epsilon=1),
    ):
        assert "not previewed" in found.explain()
        assert "1,000,000" not in found.explain()
        assert "an equal share" not in found.explain()


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_described_values_of_a_mean_are_read_from_any_table_and_dates_are_days(make):
    days = [datetime.date(2020, 1, 1) + datetime.timedelta(day) for day in range(90)]
    first = (days[0] - datetime.date(1970, 1, 1)).days
    texts = []
    for bounds, cells in (((days[0], days[-1]), days), ((first, first + 89), [first + day for day in range(90)])):
        one = study(adjacency="add_remove", num_records=COUNT, bounds={"v": bounds})
        texts.append(one.preview(design=make({"v": cells})).mean("v", epsilon=1, intervals=True).explain())
    assert "of values such as were described" in texts[0]
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"design": {"v": [40.0, np.nan]}}, "column 'v' of design= has cells that are no number"),
        ({"design": {"v": ["40", "much"]}}, "column 'v' of design= has cells that are no number"),
        ({"design": {"v": []}}, "column 'v' of design= has cells that are no number, or none"),
        ({"residual": 0}, "residuals must scatter by a positive finite number"),
        ({"residual": -1.0}, "residuals must scatter by a positive finite number"),
        ({"residual": np.nan}, "residuals must scatter by a positive finite number"),
    ],
)
def test_what_describes_no_values_has_no_figure(said, words):
    with pytest.raises(ValueError, match=words):
        study(adjacency="add_remove", num_records=COUNT).preview(**said).mean("v", epsilon=1, intervals=True)


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_a_scale_may_be_a_number_of_any_kind(adjacency):
    one = study(adjacency=adjacency, num_records=None if adjacency == "replace" else COUNT)
    texts = []
    for scale in (8, 8.0, np.int64(8), np.float32(8)):
        asked = one.preview(residual=scale)
        mean = asked.mean("v", epsilon=1, intervals=True)
        texts.append(mean.explain() + asked.quantile_interval("v", tau=0.5, epsilon=1).explain())
    assert len(set(texts)) == 1
