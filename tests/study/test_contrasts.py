"""Estimates of regressions with intervals are their middles; sums of coefficients, tests and tables agree with them."""

import functools
import json

import numpy as np
import pandas as pd
import pytest

import kngjax as kng
from kngjax.inference.intervals_from_sums import CORRELATIONS
from kngjax.study.views.contrasts import sums_of
from tests.study.people import study
from tests.study.test_older_results import OLDER
from tests.words import words_of

NUMBERS = ["estimate", "std. error", "lower", "upper", "level"]
NAMES = ["intercept", "education", "region[south]", "region[west]"]
DIFFERENCE = {"region[south]": 1, "region[west]": -1}


@functools.cache
def kept(name="regression with intervals"):
    if name == "regression with intervals":
        return study().linear_regression("log(wage) ~ education + region", epsilon=8, scale=0.4, intervals=True)
    return kng.Results.from_json((OLDER / f"{name}.json").read_text(encoding="utf-8"))


def by_hand(level, rows):
    """θ̃ less quantiles of draws of its error, in own units: of education/9 - 1 the coefficient is a ninth."""
    [release] = kept().releases
    own = np.array([[1.0, -1.0, 0.0, 0.0], [0.0, 1.0 / 9.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
    ends = [np.quantile(release.errors @ (rows @ own).T, tail, axis=0) for tail in (0.5 + level / 2, 0.5 - level / 2)]
    return [rows @ own @ release.value - end for end in ends]


def test_an_estimate_is_the_middle_of_its_interval_and_sums_and_predictions_are_sums_of_these():
    fit, new = kept(), {"education": [0.0, 12.0], "region": ["north", "west"]}
    [release] = fit.releases
    lower, upper = by_hand(0.95, np.eye(4))
    alone = [1, 2, 3]
    np.testing.assert_allclose(fit.params.iloc[alone], ((lower + upper) / 2.0)[alone], rtol=1e-12)
    # The intercept is a sum of two released coefficients, whose middles do not add up to that of their sum.
    assert abs(fit.params["intercept"] - (lower + upper)[0] / 2.0) < 0.05 * (upper - lower)[0] / 2.0
    np.testing.assert_allclose(fit.params, fit.design.in_own_units(release.middle), rtol=1e-12)
    rows = np.array([[1.0, 0.0, 0.0, 0.0], [1.0, 12.0, 0.0, 1.0]])
    np.testing.assert_allclose(fit.predict(new), rows @ fit.params.to_numpy(), rtol=1e-12)
    assert np.max(np.abs(release.middle / release.value - 1.0)) > 1e-3
    with pytest.raises(ValueError, match="read-only"):
        release.middle[0] = 0.0
    words = "estimate: the middle of the interval of each released coefficient, corrected for the pull of a ridge"
    assert words in words_of(fit)
    assert json.loads(fit.to_json())["releases"][0]["parts"][0]["value"] == release.value.tolist()
    assert "estimate: " not in str(kept("regression"))


def test_bands_are_of_the_same_draws_and_hold_predictions_near_their_middles():
    cells = {"education": [0.0, 12.0, 18.0], "region": ["north", "west", "south"]}
    rows = np.array([[1.0, 0.0, 0.0, 0.0], [1.0, 12.0, 0.0, 1.0], [1.0, 18.0, 1.0, 0.0]])
    for level in (0.8, 0.95):
        band = kept().predict_interval(cells, level)
        np.testing.assert_allclose(band.to_numpy().T, by_hand(level, rows), rtol=1e-9)
        off = np.abs(kept().predict(cells) - band.mean(axis=1)) / (band["upper"] - band["lower"])
        # A tenth of half the width.
        assert off.max() < 0.05


@pytest.mark.parametrize("level", [0.95, 0.8])
def test_contrasts_are_tables_of_sums_with_their_own_errors(level):
    found = kept().contrast(DIFFERENCE, level)
    assert found.columns.tolist() == ["contrast", *NUMBERS]
    [row] = found.to_dict("records")
    rows = np.array([[0.0, 0.0, 1.0, -1.0]])
    np.testing.assert_allclose([row["lower"], row["upper"]], np.ravel(by_hand(level, rows)), rtol=1e-9)
    wide = np.ravel(by_hand(0.95, rows))
    assert row["std. error"] == pytest.approx((wide[1] - wide[0]) / 3.919928, rel=1e-6)
    assert row["estimate"] == pytest.approx(kept().params.to_numpy() @ rows[0], rel=1e-12)
    assert (row["contrast"], row["level"]) == ("region[south] - region[west]", level)
    # As rows of one coefficient each they are the table of all.
    own = kept().contrast(np.eye(4), level).drop(columns="contrast")
    pd.testing.assert_frame_equal(own, kept().to_frame(level).drop(columns="coefficient"), rtol=1e-9)


def test_wald_tests_are_of_the_draws_in_own_units():
    found = kept().wald_test(["region[south]", "region[west]"])
    [release] = kept().releases
    errors, off = release.errors[:, 2:], release.value[2:]
    inverse, centre = np.linalg.inv(np.cov(errors.T)), errors.mean(axis=0)
    lengths = np.einsum("ij,jk,ik->i", errors - centre, inverse, errors - centre)
    own = (off - centre) @ inverse @ (off - centre)
    assert found.statistic == pytest.approx(own, rel=1e-9)
    assert found.pvalue == (1 + np.sum(lengths >= own)) / (1 + len(errors))
    assert found.names == ("region[south]", "region[west]")
    assert kept().wald_test(np.eye(4)[2:]).pvalue == found.pvalue
    assert kept().wald_test(DIFFERENCE).names == ("region[south] - region[west]",)
    assert kept().wald_test("education").df_num == 1


def test_sums_are_read_from_names_weights_frames_and_numbers():
    words = {("a", 1.0): "a", ("a", -1): "-a", ("b", -2.5): "-2.5 b"}
    assert [sums_of(dict([weight]), "ab").index[0] for weight in words] == [*words.values()]
    assert sums_of({"a": 2, "b": -1}, "ab").index.tolist() == ["2 a - b"]
    frame = sums_of(pd.DataFrame({"b": [1, 0.5]}, ["one", "half"]), "ab")
    assert (frame.index.tolist(), frame.to_numpy().tolist()) == (["one", "half"], [[0.0, 1.0], [0.0, 0.5]])
    assert sums_of([[1, 0], [1, -1]], "ab").index.tolist() == ["c0", "c1"]
    assert sums_of([1, -1], "ab").to_numpy().tolist() == [[1.0, -1.0]]
    assert sums_of(["b", "a"], "ab").to_numpy().tolist() == [[0.0, 1.0], [1.0, 0.0]]


UNFIT = {
    "a name": ("schooling", "there is no coefficient 'schooling'; there are intercept, education"),
    "a key": ({"schooling": 1}, "there is no coefficient 'schooling'"),
    "a shape": ([1.0, 2.0], "a weight for each of intercept, education"),
    "infinite": ({"education": np.inf}, "weights must be finite"),
    "empty": ({}, "name each coefficient once, and one at least"),
    "twice": (["education", "education"], "name each coefficient once"),
}


@pytest.mark.parametrize("why", UNFIT)
def test_what_is_no_sum_of_coefficients_is_refused_in_words(why):
    asked, words = UNFIT[why]
    for method in ("contrast", "wald_test"):
        with pytest.raises(ValueError, match=words):
            getattr(kept(), method)(asked)


def test_without_intervals_there_are_neither():
    for method in ("contrast", "wald_test"):
        with pytest.raises(ValueError, match="ask for them beforehand, intervals=True"):
            getattr(kept("regression"), method)("education")
        with pytest.raises(AttributeError, match=f"has no {method}, which results of the kind .*regression.* have"):
            getattr(kept("table"), method)
        with pytest.raises(AttributeError, match=f"has no {method}"):
            getattr(kept("groups_of_tables"), method)("no")


@pytest.mark.parametrize("name", ["groups_of_tables", "count", "sum", "estimate_with_interval"])
def test_tables_of_all_kinds_have_the_same_columns_and_none_is_empty(name):
    table = kept(name).to_frame(0.9)
    assert table.columns.tolist()[-5:] == NUMBERS
    assert not table.isna().any(axis=None)
    # An interval of a quantile was released for its own level.
    level = 0.95 if name == "estimate_with_interval" else 0.9
    assert (table["level"] == level).all()
    assert ((table["upper"] - table["lower"]) > 0.0).all()
    assert np.allclose(table["std. error"], kept(name).to_frame(0.99)["std. error"])


def test_a_column_of_the_table_with_a_name_of_the_frame_is_called_a_column():
    frame = pd.DataFrame({"level": ["a", "b"] * 50, "release": [0, 1] * 50})
    made = kng.Study(frame, levels={"level": ("a", "b"), "release": (0, 1)}, adjacency="replace")
    cross = made.crosstab("level", "release", epsilon=1).to_frame()
    assert cross.columns.tolist() == ["column level", "release", *NUMBERS]
    by = made.by("level").histogram("release", epsilon=1).to_frame()
    assert by.columns.tolist() == ["column level", "release", *NUMBERS]


def test_standard_errors_are_told_only_where_noise_of_h_is_small_and_tables_keep_their_columns():
    """κ is written with the plan: with one above .7 tables have no number there, and the summary says why."""
    fit = kept()
    assert 0.0 < fit.to_dict()["releases"][0]["making"]["noise_of_hessian"] < 0.7
    with pytest.raises(AttributeError, match=r"column 'std\. error', noise for privacy contained"):
        _ = fit.bse
    written = fit.to_dict()
    written["releases"][0]["making"]["noise_of_hessian"] = 0.8
    rough = kng.Results.from_dict(written)
    for frame in (rough.to_frame(), rough.contrast(DIFFERENCE)):
        assert frame["std. error"].isna().all()
        assert frame[["estimate", "lower", "upper"]].notna().all(axis=None)
    assert "std. error" not in str(rough)
    assert "no standard errors are told" in str(rough)
    pd.testing.assert_frame_equal(rough.conf_int(), fit.conf_int())


def test_sums_of_coefficients_say_what_they_assume_and_coefficients_do_not():
    """Sampling variances are released of the printed coefficients alone."""
    fit = kept()
    [release] = fit.releases
    own = fit.design.own_units_matrix
    assert CORRELATIONS not in release.intervals(combinations=own).assumptions
    assert CORRELATIONS not in release.intervals(combinations=-3.0 * own[1:2]).assumptions
    assert CORRELATIONS in release.intervals(combinations=own[2:3] - own[3:4]).assumptions
