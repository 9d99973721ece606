"""Intervals by persons who have several rows, and by units that are one record each: sizes, costs, and refusals."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

import kngjax as kng
from kngjax.inference.covariances import BY_PERSON

PERSONS = 4000
LEVELS = {"region": ("north", "south", "west")}
BOUNDS = {"x": (-1, 1), "between": (-1, 1), "y": (-5, 5)}


def panel(seed=0):
    """Persons with 1 to 8 rows, in random order, whose effects have half of the variance of the errors."""
    random = np.random.default_rng(seed)
    person = random.permutation(np.repeat(np.arange(PERSONS), random.integers(1, 9, PERSONS)))
    effect, between = random.standard_normal(PERSONS) / 2, random.uniform(-1, 1, PERSONS)
    x = random.uniform(-1, 1, len(person))
    y = 1.0 + 0.5 * x - 0.3 * between[person] + effect[person] + random.standard_normal(len(person)) / 2
    region = random.choice(LEVELS["region"], len(person))
    return pd.DataFrame(
        {"patient": person, "x": x, "between": between[person], "y": np.clip(y, -5, 5), "region": region}
    )


PANEL = panel()


def study(frame=PANEL, **changed):
    facts = {"bounds": BOUNDS, "levels": LEVELS, "adjacency": "replace", "person": "patient", "unit": "patient"}
    return kng.Study(frame, **facts | changed)


def clustered(x, y, codes, votes):
    """Least squares with weights min(m, k)/m, and standard errors over persons, in NumPy."""
    sizes = np.bincount(codes)[codes]
    weights = np.minimum(sizes, votes) / sizes
    inverse = np.linalg.inv((x * weights[:, None]).T @ x)
    theta = inverse @ x.T @ (weights * y)
    scores = x * (weights * (y - x @ theta))[:, None]
    sums = np.stack([np.bincount(codes, column) for column in scores.T], axis=1)
    return theta, *(np.sqrt(np.diag(inverse @ one.T @ one @ inverse)) for one in (sums, scores))


@pytest.mark.default_cases("replace-1", "add_remove-3")
@pytest.mark.parametrize("votes", [1, 3])
@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_with_little_noise_they_are_those_of_a_sandwich_over_persons(adjacency, votes):
    guess: dict[str, Any] = {} if adjacency == "replace" else {"num_records": PERSONS}
    made = study(adjacency=adjacency, most_rows=votes, **guess)
    fit = made.linear_regression("y ~ x + between", epsilon=95, method="squared", intervals=True)
    x = np.column_stack([np.ones(len(PANEL)), PANEL.x, PANEL.between])
    theta, errors, by_rows = clustered(x, PANEL.y.to_numpy(), PANEL.patient.to_numpy(), votes)
    frame = fit.to_frame()
    np.testing.assert_allclose(frame["std. error"], errors, rtol=0.15)
    np.testing.assert_allclose(frame["estimate"], theta, atol=3.0 * errors.min())
    # Taking rows for independent would be seen.
    assert by_rows[2] < 0.75 * errors[2]
    [release] = fit.releases
    assert release.intervals().assumptions[0] == BY_PERSON


def test_levels_of_a_category_that_one_person_has_several_of_are_in_h():
    fit = study().linear_regression("y ~ region", epsilon=95, method="squared", intervals=True)
    x = np.column_stack([np.ones(len(PANEL)), PANEL.region == "south", PANEL.region == "west"])
    _, errors, _ = clustered(x, PANEL.y.to_numpy(), PANEL.patient.to_numpy(), 1)
    np.testing.assert_allclose(fit.to_frame()["std. error"], errors, rtol=0.15)
    assert len(fit.releases[0].parts[1].certificate.mechanism["exclusive"]) > 0


def units_of(release):
    """The units of all guarantees and bounds that a release writes."""
    found, waiting = set(), [json.loads(release.to_json())]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            if "adjacency" in one and "kind" in one:
                found.add(one.get("unit", "record"))
            if "x_lower" in one:
                found.add((one.get("unit") or {}).get("name", "record"))
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
    return found


ASKED = {
    "regression": lambda made: made.linear_regression("y ~ x + region", epsilon=2, scale=0.7, intervals=True),
    "mean": lambda made: made.mean("y", epsilon=1, intervals=True),
}
OF_RECORDS = {
    "regressions of groups": lambda made: made.by("region").linear_regression(
        "y ~ x", epsilon=20, scale=0.7, intervals=True
    ),
    "median regression": lambda made: made.quantile_regression("y ~ x", tau=0.5, epsilon=2, scale=0.7, intervals=True),
    "intervals of quantiles of groups": lambda made: made.by("region").quantile_interval("y", tau=0.5, epsilon=5),
    "means of groups": lambda made: made.by("region").mean("y", epsilon=5, intervals=True),
}


@pytest.mark.parametrize("name", ASKED)
def test_every_part_protects_persons(name, tmp_path):
    ledger = kng.Ledger.create(tmp_path / "a", kng.Budget.pure(30), adjacency="replace", dataset="a", unit="patient")
    results = ASKED[name](study(ledger=ledger))
    assert results.guarantee.unit == "patient"
    for release in results.releases:
        assert units_of(release) == {"patient"}
    assert ledger.read().what


@pytest.mark.parametrize("name", ASKED | OF_RECORDS)
def test_every_part_protects_a_unit_that_is_one_record(name):
    results = (ASKED | OF_RECORDS)[name](study(person=None))
    assert results.guarantee.unit == "patient"
    for release in results.releases:
        assert units_of(release) == {"patient"}


def test_a_mean_by_persons_has_an_interval_of_the_population_and_one_of_the_table():
    """With little noise that of the population goes by the variance of persons' means, and rows would be seen."""
    sums = np.bincount(PANEL.patient, PANEL.y) / np.bincount(PANEL.patient)
    wanted = 2 * 1.96 * sums.std() / np.sqrt(PERSONS)
    found = study().mean("y", epsilon=60, intervals=True).conf_int()
    lower, upper = found.loc["mean of y"]
    assert upper - lower == pytest.approx(wanted, rel=0.05)
    assert lower < sums.mean() < upper
    assert abs(PANEL.y.std() / np.sqrt(len(PANEL)) * 3.92 / wanted - 1.0) > 0.1
    plain = study().mean("y", epsilon=1)
    # The noise is that of a mean of as many records as there are persons: Laplace noise of scale 10/N.
    lower, upper = plain.conf_int(0.9).iloc[0]
    assert upper - lower == pytest.approx(2 * np.log(10.0) * 10.0 / PERSONS, rel=1e-6)
    # Without variances it goes by the widest law within the bounds, of N independent numbers.
    lower, upper = plain.conf_int(of="population").iloc[0]
    spread = 3.92 * np.sqrt((5.0 - sums.mean()) * (5.0 + sums.mean()) / PERSONS)
    assert upper - lower == pytest.approx(spread, rel=0.05)


REFUSED = {
    "the curvature of quantiles": (OF_RECORDS["median regression"], {}, "QuantileLoss has no intervals by persons"),
    "ranks": (lambda made: made.quantile_interval("y", tau=0.5, epsilon=1), {}, "ranks that make its level are those"),
    "ranks in groups": (OF_RECORDS["intervals of quantiles of groups"], {}, "ranks that make its level are those"),
    # A person may have rows in several groups, and (b'g)² of each is no share of one.
    "a regression of groups": (OF_RECORDS["regressions of groups"], {}, "groups of persons have no intervals"),
    "a mean of groups": (OF_RECORDS["means of groups"], {}, "need a public number of these, each with one vote"),
    "a private number": (
        lambda made: made.mean("y", epsilon=1, intervals=True),
        {"adjacency": "add_remove", "num_records": PERSONS},
        "need a public number of these, each with one vote",
    ),
    "several votes": (
        lambda made: made.mean("y", epsilon=1, intervals=True),
        {"most_rows": 2},
        "need a public number of these, each with one vote",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_take_rows_for_independent_is_refused_in_words_and_for_nothing(name, tmp_path):
    ask, facts, words = REFUSED[name]
    adjacency = facts.get("adjacency", "replace")
    ledger = kng.Ledger.create(tmp_path / "a", kng.Budget.pure(9), adjacency=adjacency, dataset="a", unit="patient")
    with pytest.raises(ValueError, match=words):
        ask(study(ledger=ledger, **facts))
    assert not ledger.read().what


def test_counts_by_persons_have_intervals_of_the_table_alone():
    counts = study().histogram("region", epsilon=1)
    sizes = np.bincount(PANEL.patient)[PANEL.patient]
    votes = (1.0 / sizes)[PANEL.region == "south"].sum()
    lower, upper = counts.conf_int(0.999).loc["south"]
    assert lower < votes < upper < lower + 50.0
    with pytest.raises(ValueError, match=r"how votes vary from patient .* of='persons'"):
        counts.conf_int(of="population")


def test_a_release_of_arrays_has_them_and_a_design_that_was_released_before_none():
    bounds = kng.Bounds(([-1.0], [1.0]), (-5.0, 5.0), unit=kng.Unit("patient", most_rows=1))
    made = kng.ObjectivePerturbation(kng.SquaredLoss(), bounds, kng.Box(-5.0, 5.0), 90.0, "replace")
    plan = kng.WithIntervals(made)
    certificates = plan.certify(PANEL[["x"]], PANEL.y, person=PANEL.patient)
    assert [one.num_records for one in certificates] == [PERSONS] * 3
    release = kng.release(plan, PANEL[["x"]], PANEL.y, person=PANEL.patient)
    x = np.column_stack([np.ones(len(PANEL)), PANEL.x])
    _, errors, _ = clustered(x, PANEL.y.to_numpy(), PANEL.patient.to_numpy(), 1)
    ends = release.intervals()
    np.testing.assert_allclose((ends.upper - ends.lower) / 3.92, errors, rtol=0.15)


def test_previews_are_those_of_as_many_records_as_there_are_persons():
    """The noise of one vote is that of a record, of robust regressions and of means; the ridge is another one."""
    own, other = study().preview(), study(PANEL.head(PERSONS), person=None).preview()
    for ask in (
        lambda made: made.mean("y", epsilon=1).noise,
        lambda made: made.linear_regression("y ~ x", epsilon=2, scale=0.7, intervals=True).width,
    ):
        np.testing.assert_allclose(ask(own), ask(other), rtol=0.05)
