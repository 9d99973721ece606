"""Sums, means and variances of a study have intervals by the law of their noise, and others say in words why not."""

import numpy as np
import pandas as pd
import pytest

import kngjax as kng
from tests.study.people import PEOPLE, study
from tests.words import words_of

SHARP = 60.0
EDUCATION = PEOPLE["education"]


def test_a_mean_of_a_public_number_has_an_interval_of_the_table_and_of_the_population():
    found = study(PEOPLE).mean("education", epsilon=SHARP)
    own, population = found.conf_int(1.0 - 1e-12).iloc[0], found.conf_int(1.0 - 1e-12, of="population").iloc[0]
    assert own["lower"] <= EDUCATION.mean() <= own["upper"]
    assert population["lower"] < own["lower"]
    assert own["upper"] < population["upper"]
    scale = float(found.noise.iloc[0]) / np.sqrt(2.0)
    half = found.conf_int(0.9).iloc[0]
    np.testing.assert_allclose(half["upper"] - half["lower"], 2.0 * scale * np.log(10.0), rtol=1e-9)
    assert "holds the mean of the table's own clipped values with probability 0.95" in words_of(found)
    assert found.to_frame()["lower"].iloc[0] == found.conf_int().iloc[0, 0]
    kept = kng.Results.from_json(found.to_json())
    assert kept.conf_int().equals(found.conf_int())


def test_a_sum_has_one_of_the_table_and_where_n_is_public_of_the_population():
    for adjacency in ("replace", "add_remove"):
        found = study(PEOPLE, adjacency=adjacency).sum("education", epsilon=SHARP)
        own = found.conf_int(1.0 - 1e-12).iloc[0]
        assert own["lower"] <= EDUCATION.sum() <= own["upper"]
    with pytest.raises(ValueError, match="where the number of records is public"):
        found.conf_int(of="population")
    of_public = study(PEOPLE).sum("education", epsilon=SHARP).conf_int(of="population").iloc[0]
    mean = study(PEOPLE).mean("education", epsilon=SHARP).conf_int(of="population").iloc[0]
    np.testing.assert_allclose(of_public / len(PEOPLE), mean, rtol=0.01)


@pytest.mark.parametrize("of", [{"of": "people"}, {"level": 0.0}, {"level": 1.5}])
def test_other_levels_and_words_are_refused(of):
    found = study(PEOPLE).sum("education", epsilon=SHARP)
    with pytest.raises(ValueError, match="level must lie" if "level" in of else "intervals are of the"):
        found.conf_int(**of)


def test_where_noise_depends_on_the_records_words_say_so():
    found = study(PEOPLE, adjacency="add_remove", num_records=len(PEOPLE)).mean("education", epsilon=1.0)
    with pytest.raises(ValueError, match="depends on the records"):
        found.conf_int()
    assert "lower" not in found.to_frame()
    assert "std. error" not in words_of(found)


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_means_with_intervals_hold_the_mean_of_the_population_for_the_epsilon_asked(adjacency):
    """At a large ε they are those without privacy; one release or two cost what was asked, and no more."""
    found = study(PEOPLE, adjacency=adjacency).mean("education", epsilon=SHARP, intervals=True)
    assert found.guarantee.epsilon <= SHARP
    assert found.guarantee.epsilon == pytest.approx(SHARP)
    assert found.guarantee.delta == 0.0
    usual = 3.92 * EDUCATION.std() / np.sqrt(len(EDUCATION))
    ends = found.conf_int().iloc[0]
    assert ends["upper"] - ends["lower"] == pytest.approx(usual, rel=0.07)
    assert found.value == pytest.approx(EDUCATION.mean(), abs=0.02)
    assert 0.5 * (ends["lower"] + ends["upper"]) == pytest.approx(EDUCATION.mean(), abs=0.02)
    own = found.conf_int(of="table").iloc[0]
    assert own["lower"] - 0.01 <= EDUCATION.mean() <= own["upper"] + 0.01
    assert own["upper"] - own["lower"] < 0.3 * usual
    text = words_of(found)
    assert "in the population with probability about 0.95" in text
    assert "std. error" in text
    assert found.to_frame()["lower"].iloc[0] == ends["lower"]
    kept = kng.Results.from_json(found.to_json())
    assert kept.conf_int(0.9).equals(found.conf_int(0.9))
    assert found.intervals().lower[0] == ends["lower"]


def test_a_mean_of_a_public_number_gives_its_variance_a_part_where_that_pays():
    """Of 4,000 records at ε = .04 nε² is 6.4: all of ε is for the mean, and the bound of the variance is free."""
    found = study(PEOPLE).mean("education", epsilon=1.0, intervals=True)
    shares = [part.certificate.mechanism["epsilon"] for part in found.releases[0].parts]
    assert shares == pytest.approx([0.85, 0.15])
    assert found.noise.iloc[0] == pytest.approx(np.sqrt(2.0) * 18.0 / (len(PEOPLE) * 0.85), rel=1e-6)
    plain = study(PEOPLE).mean("education", epsilon=1.0)
    of = {"of": "population"}
    assert found.conf_int().diff(axis=1).iloc[0, 1] < 0.6 * plain.conf_int(**of).diff(axis=1).iloc[0, 1]
    few = study(PEOPLE).mean("education", epsilon=0.04, intervals=True, force=True)
    assert few.certificate.epsilon == 0.04
    assert few.conf_int().equals(few.conf_int(of="population"))
    assert "values at the bounds alone" in few.explain()
    share = study(PEOPLE).mean("parttime", epsilon=1.0, intervals=True)
    assert share.certificate.epsilon == 1.0
    assert share.conf_int().equals(share.conf_int(of="population"))
    other = study(PEOPLE).mean("education", epsilon=1.0, intervals=kng.Sandwich(share=0.3))
    assert other.releases[0].parts[0].certificate.mechanism["epsilon"] == pytest.approx(0.7)


def test_variances_have_an_interval_of_the_table_alone():
    for adjacency in ("replace", "add_remove"):
        found = study(PEOPLE, adjacency=adjacency).variance("education", epsilon=SHARP)
        lower, upper = found.conf_int(1.0 - 1e-3).iloc[0]
        assert lower - 0.05 <= EDUCATION.var() <= upper + 0.05
        assert 0.0 < upper - lower < 0.5
        half = found.conf_int(0.68).iloc[0]
        assert half["upper"] - half["lower"] == pytest.approx(2.0 * found.noise.iloc[0], rel=0.25)
        assert "std. error" in words_of(found)
        with pytest.raises(ValueError, match="fourth powers"):
            found.conf_int(of="population")


def test_groups_have_intervals_of_their_means_and_of_differences():
    by = study(PEOPLE).by("parttime", num_records=2000)
    found = by.mean("education", epsilon=SHARP, intervals=True)
    assert found.guarantee.epsilon <= SHARP
    own = PEOPLE.groupby("parttime")["education"]
    error = np.sqrt((own.var() / own.size()).sum())
    row = found.difference("yes", "no").iloc[0]
    true = own.mean()["yes"] - own.mean()["no"]
    assert row["estimate"] == pytest.approx(true, abs=0.05)
    assert row["std. error"] == pytest.approx(error, rel=0.1)
    assert row["upper"] - row["lower"] == pytest.approx(3.92 * row["std. error"], rel=1e-4)
    assert row["lower"] < true < row["upper"]
    wide = found.difference("yes", "no", level=0.99).iloc[0]
    assert wide["std. error"] == row["std. error"]
    assert wide["upper"] > row["upper"]
    assert found.conf_int().shape == (2, 2)
    own_of_table = found.difference("yes", "no", of="table").iloc[0]
    assert own_of_table["std. error"] < 0.3 * error
    with pytest.raises(AttributeError, match="no draws"):
        by.mean("education", epsilon=SHARP).difference("yes", "no")
    with pytest.raises(KeyError, match="no group"):
        found.difference("yes", "maybe")


def test_what_no_mean_with_intervals_is_made_of_is_refused_before_the_debit(tmp_path):
    ledger = kng.Ledger.create(tmp_path / "book", kng.Budget.pure(5.0), adjacency="add_remove", dataset="made up")
    one = study(PEOPLE, adjacency="add_remove", ledger=ledger, num_records=len(PEOPLE))
    for ask, error, words in (
        (lambda: one.mean("parttime", epsilon=1.0, intervals=True), ValueError, "shares"),
        (lambda: one.mean("education", epsilon=1.0, intervals=0.3), TypeError, "intervals must be"),
        (lambda: one.mean("education", epsilon=1e-4, intervals=True), ValueError, "little but noise"),
    ):
        with pytest.raises(error, match=words):
            ask()
    weighted = study(PEOPLE.assign(w=1.0), bounds={"education": (0, 18), "w": (0, 2)}, adjacency="replace", weights="w")
    with pytest.raises(ValueError, match="weights have no intervals"):
        weighted.mean("education", epsilon=1.0, intervals=True)
    assert not ledger.read().what


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_shares_are_of_rows_with_their_intervals(adjacency):
    one = study(PEOPLE, adjacency=adjacency)
    found = one.crosstab("region", "parttime", epsilon=SHARP)
    shares, expected = found.shares(), pd.crosstab(PEOPLE["region"], PEOPLE["parttime"], normalize="index").stack()
    np.testing.assert_allclose(shares["share"], expected, atol=0.002)
    sizes = PEOPLE.groupby("region").size().loc[shares.index.get_level_values(0)].to_numpy()
    np.testing.assert_allclose(shares["std. error"], np.sqrt(expected * (1 - expected) / sizes), rtol=0.03)
    assert ((shares["lower"] < expected) & (expected < shares["upper"])).all()
    own = found.shares(of="table")
    assert (own["std. error"] < 0.1 * shares["std. error"]).all()
    difference = found.difference(("south", "yes"), ("north", "yes"), shares=True).iloc[0]
    parts = shares.loc[[("south", "yes"), ("north", "yes")]]
    assert difference["estimate"] == pytest.approx(parts["share"].iloc[0] - parts["share"].iloc[1])
    assert difference["std. error"] == pytest.approx(np.hypot(*parts["std. error"]), rel=0.06)
    regions = one.histogram("region", epsilon=SHARP)
    n, each = len(PEOPLE), PEOPLE.groupby("region").size() / len(PEOPLE)
    np.testing.assert_allclose(regions.shares()["std. error"], np.sqrt(each * (1 - each) / n), rtol=0.03)
    counts = regions.difference("south", "north").iloc[0]
    # Two counts of a fixed number of records vary against each other, and Poisson counts do not.
    north, south = each["north"], each["south"]
    spread = north + south - ((north - south) ** 2 if adjacency == "replace" else 0.0)
    assert counts["std. error"] == pytest.approx(np.sqrt(n * spread), rel=0.05)
    for refused in (found.nonnegative(), one.count("parttime == 'yes'", epsilon=1.0)):
        with pytest.raises(ValueError, match="share"):
            refused.shares()


def test_groups_of_tables_differ_by_counts_and_by_shares():
    found = study(PEOPLE).by("region").histogram("parttime", epsilon=SHARP)
    of = pd.crosstab(PEOPLE["region"], PEOPLE["parttime"])
    counts, shares = found.difference("south", "north"), found.difference("south", "north", shares=True)
    np.testing.assert_allclose(counts["estimate"], of.loc["south"] - of.loc["north"], atol=3)
    np.testing.assert_allclose(counts["std. error"], np.sqrt(of.loc["south"] + of.loc["north"]), rtol=0.06)
    parts = of.div(of.sum(axis=1), axis=0)
    np.testing.assert_allclose(shares["estimate"], parts.loc["south"] - parts.loc["north"], atol=0.003)
    assert counts.index.tolist() == ["no", "yes"]
