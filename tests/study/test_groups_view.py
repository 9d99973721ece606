"""Views of groups: tables of one shape whatever was refused, and plots and differences of every kind of results."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import kngjax as kng
from tests.study.people import PEOPLE, study
from tests.study.test_counted_groups import study as of_sizes
from tests.words import words_of

COLUMNS = ["g", "statistic", "estimate", "std. error", "lower", "upper", "level"]
FEW = PEOPLE[:300]


@pytest.fixture(autouse=True)
def without_windows():
    mpl.use("Agg")
    yield
    plt.close("all")


@pytest.mark.parametrize("sizes", [{"a": 2000, "b": 1500}, {"a": 2000, "b": 4}, dict.fromkeys("abcdefgh", 30)])
def test_tables_of_intervals_have_one_shape_whatever_was_refused(sizes):
    found = of_sizes(sizes).by("g").quantile_interval("v", tau=0.5, epsilon=1)
    table = found.to_frame()
    assert table.columns.tolist() == COLUMNS
    assert table["g"].tolist() == list(sizes)
    assert set(table["statistic"]) == {"0.5-quantile of v"}
    assert {str(kind) for kind in table.dtypes[2:]} == {"float64"}
    refused = [not one.releases for one in found.each]
    np.testing.assert_array_equal(table[COLUMNS[2:]].isna(), np.repeat(refused, 5).reshape(-1, 5))
    assert (table.loc[~np.array(refused), "lower"] < table.loc[~np.array(refused), "estimate"]).all()
    assert ("nothing was released of this group" in words_of(found)) == any(refused)
    pd.testing.assert_frame_equal(kng.Results.from_json(found.to_json()).to_frame(), table)


def test_what_was_forced_has_the_shape_of_an_interval_without_ends():
    found = of_sizes({"a": 2000, "b": 60}).by("g").quantile_interval("v", tau=0.5, epsilon=1, force=True)
    table = found.to_frame()
    assert table.columns.tolist() == COLUMNS
    assert table["level"].tolist() == [0.95, 0.95]
    assert np.isfinite(table["estimate"]).all()
    assert table[["std. error", "lower", "upper"]].iloc[1].tolist() == [np.inf, -np.inf, np.inf]


def ask(name):
    by = study(FEW).by("parttime", num_records=150)
    return {
        "mean": lambda: by.mean("education", epsilon=20),
        "mean with intervals": lambda: by.mean("education", epsilon=20, intervals=True),
        "quantiles": lambda: by.quantile("wage", tau=[0.25, 0.5], epsilon=20),
        "interval": lambda: study(FEW).by("parttime").quantile_interval("wage", tau=0.5, epsilon=20),
        "sum": lambda: by.sum("education", epsilon=20),
        "variance": lambda: by.variance("education", epsilon=20),
        "count": lambda: by.count("education > 9", epsilon=20),
        "histogram": lambda: by.histogram("region", epsilon=20),
        "crosstab": lambda: by.crosstab("region", "education", edges={"education": [0, 9, 18]}, epsilon=20),
        "regression": lambda: by.linear_regression("wage ~ education", epsilon=20, force=True),
    }[name]()


# What is drawn of each group, and what is said where there is no difference.
KINDS = {
    "mean": (1, "mean of education has no draws in the group 'no'.*by intervals=True"),
    "mean with intervals": (1, None),
    "quantiles": (2, "quantiles of wage has no draws in the group 'no'.*two of quantile_interval"),
    "interval": (1, "interval of the 0.5-quantile of wage has no draws.*with probability 0.9 at least"),
    "sum": (1, None),
    "variance": (1, None),
    "count": (1, None),
    "histogram": (3, None),
    "crosstab": (6, None),
    "regression": (2, "linear regression has no draws.*with the column of the groups as a term"),
}


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_results_of_groups_has_a_plot_and_a_difference_or_says_what_would_tell_it(name):
    found, (number, refused) = ask(name), KINDS[name]
    if name == "regression":
        assert len(found.plot().get_lines()) == 2
        with pytest.raises(AttributeError, match=refused):
            found.difference("no", "yes")
        return
    axes = found.plot()
    assert [one.get_text() for one in axes.get_xticklabels()] == ["no", "yes"]
    assert len(axes.containers) == number
    drawn = np.array([one[0].get_ydata() for one in axes.containers])
    np.testing.assert_array_equal(drawn.T.ravel(), found.to_frame()["estimate"])
    assert ("lower" in found.to_frame()) == axes.containers[0].has_yerr
    with pytest.raises(ValueError, match=f"{found.title} is no curve over a column: leave x and at out"):
        found.plot("education", {"region": "north"}, level=0.9)
    if refused is None:
        apart = found.difference("no", "yes")
        assert apart.columns.tolist() == ["estimate", "std. error", "lower", "upper"]
        assert len(apart) == number
        assert (apart["lower"] < apart["upper"]).all()
    else:
        with pytest.raises(AttributeError, match=refused):
            found.difference("no", "yes")


def test_a_refused_group_has_no_difference_for_its_own_reason():
    found = of_sizes({"a": 2000, "b": 4}).by("g").quantile_interval("v", tau=0.5, epsilon=1)
    with pytest.raises(AttributeError, match=r"no draws in the group 'b'.*nothing was released of this group"):
        found.difference("b", "a")
    [points] = found.plot().containers
    assert np.isnan(points[0].get_ydata()).tolist() == [False, True]


def test_summaries_say_in_short_what_explain_says_in_full():
    found = of_sizes({"a": 2000, "b": 4, "c": 3}).by("g").quantile_interval("v", tau=0.5, epsilon=1)
    row = dict(found.summary().facts)["interval"]
    assert row.startswith("g = a: holds the quantile with probability 0.95; g = b")
    assert row.endswith("too few; explain() says how, and what is assumed")
    assert len(row) < 150 + 130 * 2
    assert "ranks" not in row
    full = found.explain()
    assert "by two private order statistics, of ranks" in full
    assert found["b"].intervals().reason in full
    assert all(one in full for one in found["a"].intervals().assumptions)
    assert all(one.certificate.explain() in full for one in found.releases)
    mean = ask("mean with intervals")
    assert dict(mean.summary(0.9).facts)["interval"] == (
        "holds the mean of clipped values in the population with probability about 0.9; explain() says how, and what "
        "is assumed"
    )
    assert "by the law of the noise of the released sums" in mean.explain()
    count = ask("count")
    assert "explain()" not in dict(count.summary().facts)["interval"]


def test_explanations_tell_the_cost_of_all_releases_beside_that_of_each():
    """Of an estimate with intervals the certificate says what the estimate alone costs."""
    found = study(FEW).mean("education", epsilon=1, intervals=True)
    full = found.explain()
    assert "guarantee: pure 1-differential privacy" in full
    assert "2 releases; together they are pure 1-differential privacy" in full
    assert "which is pure 0.85-differential privacy" in full
    assert all(f"{name}: {words}" in full for name, words in found.summary().facts if name not in ("interval", "level"))
