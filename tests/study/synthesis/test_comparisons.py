"""Distances of synthetic tables from private ones, against what they are by hand and by other libraries."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import kngjax as kng
from kngjax.data.records import Records
from kngjax.owner import nonprivate
from kngjax.study.synthesis import comparisons


def test_total_variation_is_half_the_sum_of_the_differences():
    real, drawn = np.array([0, 0, 1, 2]), np.array([0, 1, 1, 1])
    assert comparisons.total_variation(real, drawn) == pytest.approx(0.5)
    assert comparisons.total_variation(real, real[::-1]) == 0.0
    assert comparisons.total_variation(real, np.full(4, 3)) == 1.0
    codes = [
        comparisons.coded(one, other, ["a", "b"])
        for one, other in ((["a", "b"], ["a", "b"]), (["a", "b"], ["b", "a"]))
        for one, other in [(np.array(one, object), np.array(other, object))]
    ]
    assert comparisons.total_variation(*comparisons.paired(*codes)) == 1.0


def test_numbers_are_cut_at_the_deciles_of_the_private_ones():
    real = np.arange(100.0)
    code = comparisons.coded(real, real + 200.0, None)
    np.testing.assert_allclose(code.frequencies(0), 0.1)
    assert code.frequencies(1).tolist() == [0.0] * 9 + [1.0]


def test_the_ratio_is_two_of_two_samples_of_one_law_and_the_likelihoods_optimum_elsewhere():
    generator = np.random.default_rng(0)
    alike = [
        comparisons.pmse_ratio(generator.standard_normal((500, 4)), generator.standard_normal((500, 4)))
        for _ in range(60)
    ]
    # Of 4 columns of two samples about 2·χ²_4/4, whose deviation is 2·√(2/4).
    assert np.mean(alike) == pytest.approx(2.0, abs=4 * 2 * (0.5 / 60) ** 0.5)
    real, drawn = generator.standard_normal((400, 2)), 0.5 + generator.standard_normal((300, 2))
    label, columns = np.repeat([0.0, 1.0], [400, 300]), np.vstack([real, drawn])
    p = sm.Logit(label, sm.add_constant(columns)).fit(disp=0).predict()
    part = 3 / 7
    expected = np.mean((p - part) ** 2) / (2 * (1 - part) ** 2 * part / 700)
    assert comparisons.pmse_ratio(real, drawn) == pytest.approx(expected, rel=1e-3)
    # A column that says nothing more changes nothing.
    doubled = (np.column_stack([one, one[:, :1] * 3.0, np.ones(len(one))]) for one in (real, drawn))
    assert comparisons.pmse_ratio(*doubled) == pytest.approx(expected, rel=1e-3)


def test_regressions_are_those_of_statsmodels_and_intervals_overlap_as_drawn():
    generator = np.random.default_rng(1)
    x = np.column_stack([np.ones(200), generator.standard_normal((200, 2))])
    y = x @ [1.0, 2.0, -1.0] + generator.standard_normal(200) * (1.0 + np.abs(x[:, 1]))
    ours, fit = nonprivate.fit(kng.SquaredLoss(), Records(x, y)), sm.OLS(y, x).fit(cov_type="HC0")
    np.testing.assert_allclose(ours.theta, fit.params)
    np.testing.assert_allclose(ours.standard_errors, fit.bse)
    one, half = np.ones(4), 1.959964
    moved = np.array([0.0, half, 2 * half, 4 * half])
    np.testing.assert_allclose(comparisons.overlaps(0 * one, one, moved, one), [1.0, 0.5, 0.0, -1.0], atol=1e-6)
    # Fits without residuals, as of numbers that are all at one heap.
    centres, others = np.array([0.0, 0.0, 9.0, 0.0]), np.array([0.0, 1.0, 0.0, 0.0])
    expected = [1.0, 1.0, -np.inf, 0.5]
    errors = np.array([0.0, 1.0, 1.0, 1.0])
    np.testing.assert_allclose(comparisons.overlaps(0 * one, errors, centres, others), expected, atol=1e-6)


@pytest.fixture(scope="module")
def released():
    generator = np.random.default_rng(2)
    frame = pd.DataFrame({"group": generator.choice(["a", "b"], 800), "age": generator.integers(0, 5, 800)})
    frame["age"] += 4 * (frame["group"] == "b")
    plan = kng.synthesis.plan(
        [kng.synthesis.Category("group", ["a", "b"], other="b"), kng.synthesis.Ordinal("age", 0, 8, parents=["group"])],
        epsilon=60.0,
        adjacency="replace",
    )
    return kng.synthesize(plan, frame), frame


def test_a_table_at_large_epsilon_is_near_and_a_table_without_parents_is_not(released):
    table, frame = released
    near = kng.owner.utility(table, frame, formula="age ~ group")
    assert near.pmse_ratio < 3.0
    assert max(near.one_way.values()) < 0.1
    assert near.two_way["age", "group"] < 0.12
    assert min(near.overlap.values()) > 0.2
    assert max(near.moved.values()) < 4.0
    apart = kng.synthesis.plan(
        [kng.synthesis.Category("group", ["a", "b"], other="b"), kng.synthesis.Ordinal("age", 0, 8)],
        epsilon=60.0,
        adjacency="replace",
    )
    far = kng.owner.utility(kng.synthesize(apart, frame), frame, formula="age ~ group")
    assert far.pmse_ratio > 10.0 * near.pmse_ratio
    assert far.two_way["age", "group"] > 0.3
    assert far.moved["group[b]"] > 10.0


def test_the_report_is_the_owners_and_is_drawn(released):
    report = kng.owner.utility(*released)
    assert report.overlap is report.moved is None
    assert "OWNER ONLY" in repr(report)
    with mpl.rc_context({"backend": "agg"}):
        axes = report.plot()
        assert [axis.get_title() for axis in axes] == ["group", "age"]
        mpl.pyplot.close("all")


def test_a_table_of_another_maker_is_compared_as_its_own(released):
    table, frame = released
    key = kng.research_key(4)
    drawn, asked = table.draw(key=key), {"formula": "age ~ group"}
    own, other = (kng.owner.utility(*released, **asked, key=key), kng.owner.utility(*released, **asked, drawn=drawn))
    of_plan = kng.owner.utility(table.plan, frame, **asked, drawn=drawn)
    for found in (other, of_plan):
        assert (found.pmse_ratio, found.one_way, found.moved) == (own.pmse_ratio, own.one_way, own.moved)
    # Its cells are read as private ones are: by levels, within the bounds.
    other = drawn.assign(group=drawn["group"].replace("b", "c"), age=drawn["age"].replace(8, 99))
    assert kng.owner.utility(table.plan, frame, drawn=other).one_way == own.one_way
    with pytest.raises(ValueError, match="group"):
        kng.owner.utility(table.plan, frame, drawn=drawn[["age"]])
    with pytest.raises(ValueError, match="leave out drawn"):
        kng.owner.utility(table, frame, drawn=drawn, key=key)


def test_a_regression_that_the_table_does_not_have_is_refused(released):
    with pytest.raises(ValueError, match="no column of numbers"):
        kng.owner.utility(*released, formula="group ~ age")
    with pytest.raises(ValueError, match="wage"):
        kng.owner.utility(*released, formula="age ~ wage")


def test_a_table_without_records_is_not_compared(released):
    table, frame = released
    empty = kng.synthesis.plan(table.plan.columns, epsilon=60.0, adjacency="add_remove")
    with pytest.raises(ValueError, match="has no record"):
        kng.owner.utility(kng.synthesize(empty, frame.iloc[:0]), frame.iloc[:0])
