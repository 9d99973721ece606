"""Sums and variances of a study: of which numbers they are made, their bounds, names and refusals."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import kngjax as kng
from kngjax.study.column_estimates import CentredSquares, noise_of_variance, variance_of
from kngjax.study.responses import Response
from tests.words import words_of

ADJACENCIES = ("replace", "add_remove")
WAGES = np.random.default_rng(0).uniform(-50.0, 1100.0, 2000)
PEOPLE = pd.DataFrame({"wage": WAGES, "sex": ["f", "m"] * 1000})
CLIPPED = np.clip(WAGES, 0.0, 1000.0)


def study(frame=PEOPLE, **changed):
    facts = {"bounds": {"wage": (0, 1000)}, "levels": {"sex": ("f", "m")}, "adjacency": "replace"} | changed
    return kng.Study(frame, **facts)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_sums_and_variances_are_those_of_clipped_numbers(adjacency):
    one = study(adjacency=adjacency)
    found = one.sum("wage", epsilon=50)
    assert found.value == pytest.approx(CLIPPED.sum(), abs=500)
    assert found.params.index.tolist() == ["sum of wage"]
    np.testing.assert_allclose(found.noise, math.sqrt(2) * 1000 / 50)
    assert found.certificate.assurance == "proved"
    assert found.clipped == {"wage": (0.0, 1000.0)}
    spread = one.variance("wage", epsilon=50)
    assert spread.value == pytest.approx(CLIPPED.var(ddof=1), rel=2e-3)
    assert spread.std == math.sqrt(spread.value)
    assert spread.certificate.epsilon == 50
    # About the middle of [0, 1000] that of S/n: S has the box's half width h² under replace, and ½h² with a count.
    width, squares = (500.0**2, 12) if adjacency == "replace" else (0.5 * 500.0**2, 20)
    np.testing.assert_allclose(spread.noise, math.sqrt(squares / 3) * width / 50 / 2000, rtol=0.1)
    assert "clipped to: wage in [0, 1000]" in words_of(spread)
    assert one.variance("wage", epsilon=50, ddof=0).value == pytest.approx(CLIPPED.var(), rel=2e-3)
    names = ["sum of v of wage", "sum of v^2 - h^2/2 of wage"]
    assert spread.sums.index.tolist() == ["sum of ones"] * (adjacency == "add_remove") + names


def test_no_change_of_a_record_moves_the_sums_beyond_their_box():
    """Of corners and random records, in the columns that are added up; the box is reached within a percent."""
    response = Response("wage", bounds=(-3, 7.5))
    values = np.concatenate([[-3.0, 2.25, 7.5], np.random.default_rng(0).uniform(-3.0, 7.5, 300)])
    for has_ones, adjacency in ((False, "replace"), (True, "add_remove")):
        columns = CentredSquares(response, has_ones)
        made = kng.KNormMechanism(columns.bounds, 1.0, adjacency, statistic="sum")
        rows = columns._columns(values)
        changes = (rows[:, None] - rows[None]).reshape(-1, rows.shape[1]) if adjacency == "replace" else rows
        widths = [float(width) for width in made.noise_in_fractions(rows.shape[1], 1).weights]
        assert np.all(np.max(np.abs(changes), axis=0) <= widths)
        assert np.all(np.max(np.abs(changes), axis=0) >= 0.99 * np.array(widths))
        # Half as much as of squares that are not centred, where a record comes or goes.
        assert widths[-1] == pytest.approx(5.25**2 * (0.5 if has_ones else 1.0))
        assert made.noise_in_fractions(rows.shape[1], 1).scale_squared == Fraction(1)


@pytest.mark.parametrize("count", [5, None])
@pytest.mark.parametrize("ddof", [0.0, 1.0])
def test_the_formula_is_the_variance_whatever_the_centre(count, ddof):
    x = np.array([0.0, 250.0, 900.0, 1000.0, 40.0])
    rows = CentredSquares(Response("wage", bounds=(0, 1000)), count is None)._columns(x)
    assert variance_of(rows.sum(axis=0), 500.0, count, ddof) == pytest.approx(x.var(ddof=ddof), rel=1e-12)


def test_variances_stay_within_what_numbers_in_the_bounds_can_have():
    half = 10.0
    for sums in ([0.0, -1e9], [0.0, 1e9], [1e9, 0.0]):
        assert 0.0 <= variance_of(np.array(sums), half, 4, 1.0) <= half**2 * 4 / 3
        assert 0.0 <= variance_of(np.array([-50.0, *sums]), half, None, 1.0) <= half**2 * 2
        assert 0.0 <= variance_of(np.array(sums), half, 4, 0.0) <= half**2
    assert study(PEOPLE.iloc[:0], adjacency="add_remove").variance("wage", epsilon=1).value >= 0.0


@pytest.mark.parametrize(
    ("count", "epsilon", "least", "is_mostly_stated"),
    [
        (5, 10, 0.0, False),
        (15, 3, -1.0, False),
        (60, 1, 0.0, False),
        (60, 10, -1.0, True),
        (1000, 0.3, 0.8, False),
        (1000, 3, -1.0, True),
    ],
)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_noise_of_variances_is_stated_where_it_is_right(adjacency, count, epsilon, least, is_mostly_stated):
    """A release that noise alone brought away from the cut has seldom a figure; it was off in up to 7 of 100."""
    generator = np.random.default_rng(0)
    has_ones = adjacency == "add_remove"
    columns = CentredSquares(Response("v", bounds=(-1, 1)), has_ones)
    sums = columns._columns(generator.uniform(least, least + 0.2 if least > 0.0 else 1.0, count)).sum(axis=0)
    box, size = np.array([1.0, 1.0, 0.5] if has_ones else [2.0, 1.0]), len(sums)
    # Uniform in boxes of a random size: the K-norm mechanism.
    radii = generator.gamma(size + 1.0, 1.0 / epsilon, (800, 1))
    released = sums + radii * generator.uniform(-1.0, 1.0, (800, size)) * box
    deviations = math.sqrt((size + 1.0) * (size + 2.0) / 3.0) / epsilon * box
    known = None if has_ones else count
    true = np.std([variance_of(one, 1.0, known, 1.0) for one in released])
    found = [noise_of_variance(one, deviations, 1.0, known, 1.0) for one in released]
    stated = np.array([one for one in found if not isinstance(one, str)])
    assert np.sum(np.abs(np.log(stated / true)) > math.log(1.3)) <= 0.025 * len(released)
    assert not is_mostly_stated or len(stated) > 0.9 * len(released)


def test_missing_numbers_count_as_was_declared():
    frame = PEOPLE.assign(wage=np.where(np.arange(2000) % 2 == 0, np.nan, 100.0))
    found = study(frame, missing={"wage": 300.0})
    assert found.sum("wage", epsilon=90).value == pytest.approx(400_000, abs=400)
    assert found.variance("wage", epsilon=90, ddof=0).value == pytest.approx(10_000, abs=100)
    dropped = study(frame, missing="drop", adjacency="add_remove")
    assert dropped.sum("wage", epsilon=90).value == pytest.approx(100_000, abs=400)
    spread = dropped.variance("wage", epsilon=90)
    assert spread.value == pytest.approx(0.0, abs=100)
    assert spread.sums["sum of ones"] == pytest.approx(1000, abs=1)
    assert "left out" in spread.certificate.explain()


def test_results_go_through_json_and_pickle():
    for adjacency in ADJACENCIES:
        one = study(adjacency=adjacency)
        for found in (one.sum("wage", epsilon=1), one.variance("wage", epsilon=1)):
            again = kng.Results.from_json(found.to_json())
            assert again.value == found.value
            assert pickle.loads(pickle.dumps(again)).to_json() == found.to_json()
            pd.testing.assert_series_equal(again.params, found.params)
            ends = ["std. error", "lower", "upper", "level"]
            assert found.to_frame().columns.tolist() == ["statistic", "estimate", *ends]
            # A variance has an interval of the table's own values alone, and the summary offers no other.
            is_offered = "of='population'" in words_of(found)
            assert is_offered == ("sum" in found.labels and adjacency == "replace")
    with pytest.raises(ValueError, match="release a variance"):
        _ = study().sum("wage", epsilon=1).std


def test_what_public_facts_decide_is_refused_in_words():
    for ask, message in (
        (lambda: study().sum("age", epsilon=1), "needs public bounds"),
        (lambda: study().sum("sex", epsilon=1), "count its levels"),
        (lambda: study().variance("sex", epsilon=1), "count its levels"),
        (lambda: study().variance("age", epsilon=1), "needs public bounds"),
        (lambda: study().variance("wage", epsilon=1, ddof=-1), "ddof must be"),
        (lambda: study().variance("wage", epsilon=1, ddof=True), "ddof must be"),
        (lambda: study(PEOPLE.iloc[:1]).variance("wage", epsilon=1), "needs more records than 1"),
        (lambda: study(PEOPLE[["sex"]]).sum("wage", epsilon=1), "the data do not have"),
        (lambda: study(missing="drop").sum("wage", epsilon=1), "leaves records with missing cells out"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            ask()
