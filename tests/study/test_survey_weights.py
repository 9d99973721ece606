"""Studies of records with weights: what they estimate, what they say of it, and what they refuse."""

import itertools

import jax
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import kngjax as kng
from tests.words import words_of

COUNT = 4000
LEVELS = {"region": ("north", "south"), "parttime": ("no", "yes")}
BOUNDS = {"wage": (0, 10), "age": (20, 60), "weight": (0, 4), "calls": (0, 6)}


def table():
    """Of two regions whose wages differ by 3; in the survey the south is a third of what it is in the country."""
    generator = np.random.default_rng(0)
    south = np.arange(COUNT) % 4 == 0
    wage = 3.0 + 3.0 * south + 0.5 * generator.standard_normal(COUNT)
    return pd.DataFrame(
        {
            "wage": wage,
            "age": generator.uniform(20, 60, COUNT),
            "region": np.where(south, "south", "north"),
            "calls": generator.poisson(1.0, COUNT).astype(float),
            "weight": np.where(south, 3.0, 1.0),
        }
    )


TABLE = table()


def study(frame=TABLE, **changed):
    facts = {"bounds": BOUNDS, "levels": LEVELS, "adjacency": "replace", "weights": "weight"}
    return kng.Study(frame, **facts | changed)


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_means_and_quantiles_are_those_of_the_weights(adjacency):
    guess = {} if adjacency == "replace" else {"num_records": COUNT}
    made = study(adjacency=adjacency, **guess)
    mean = made.mean("wage", epsilon=5)
    assert mean.value == pytest.approx(np.average(TABLE.wage, weights=TABLE.weight), abs=0.1)
    assert abs(mean.value - TABLE.wage.mean()) > 0.5
    assert "at most 4" in words_of(mean.summary())
    assert made.mean("region", epsilon=5).value == pytest.approx(0.5, abs=0.05)
    assert made.quantile("wage", tau=0.75, epsilon=5).value == pytest.approx(6.0, abs=0.3)
    # Without weights a quarter lies above 4.5 or so.
    assert made.median("wage", epsilon=5).value > 3.2


@pytest.mark.default_cases("replace")
@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_regressions_are_those_of_the_weights(adjacency):
    guess = {} if adjacency == "replace" else {"num_records": COUNT}
    fit = study(adjacency=adjacency, **guess).linear_regression("wage ~ region", epsilon=5, method="squared")
    assert fit.params["region[south]"] == pytest.approx(3.0, abs=0.3)
    certificate = fit.certificate
    assert certificate.assurance == "proved"
    assert certificate.mechanism["bounds"]["weight"] == 4.0
    assert kng.Results.from_json(fit.to_json()).summary().facts == fit.summary().facts


@pytest.mark.default_cases("add_remove")
@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_intervals_of_regressions_count_records_by_their_weights(adjacency):
    """At an ε so large that noise is small they are as wide as by Σω²s²xx' over (Σωwxx')², in NumPy."""
    guess = {} if adjacency == "replace" else {"num_records": COUNT}
    made = study(adjacency=adjacency, **guess)
    fit = made.linear_regression("wage ~ region", epsilon=90, method="squared", intervals=True)
    x = np.column_stack([np.ones(COUNT), TABLE.region == "south"])
    weights = TABLE.weight.to_numpy()
    inverse = np.linalg.inv((x * weights[:, None]).T @ x)
    theta = inverse @ x.T @ (weights * TABLE.wage.to_numpy())
    scores = x * (weights * (TABLE.wage.to_numpy() - x @ theta))[:, None]
    errors = np.sqrt(np.diag(inverse @ scores.T @ scores @ inverse))
    frame = fit.to_frame()
    np.testing.assert_allclose(frame["std. error"], errors, rtol=0.15)
    np.testing.assert_allclose(frame["estimate"], theta, atol=2.0 * errors.min())
    # Without weights they would be off by far: variances are then not those of the weighted sums.
    assert fit.releases[0].certificate.mechanism["bounds"]["weight"] == 4.0


@pytest.mark.default_cases("add_remove")
@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_quantiles_of_several_levels_are_a_release_each_of_an_equal_part_of_epsilon(adjacency, tmp_path):
    guess = {} if adjacency == "replace" else {"num_records": COUNT}
    budget = kng.Budget.pure(6.0)
    ledger = kng.Ledger.create(tmp_path / "l", budget, adjacency=adjacency, dataset="d")
    made = study(adjacency=adjacency, ledger=ledger, **guess).quantile("wage", tau=[0.25, 0.5, 0.75], epsilon=6)
    order = np.argsort(TABLE.wage)
    shares = np.cumsum(TABLE.weight.to_numpy()[order]) / TABLE.weight.sum()
    expected = [TABLE.wage.to_numpy()[order][np.searchsorted(shares, tau)] for tau in (0.25, 0.5, 0.75)]
    np.testing.assert_allclose(made.params, expected, atol=0.3)
    assert made.params.index.tolist() == [f"{tau}-quantile of wage" for tau in (0.25, 0.5, 0.75)]
    assert [one.certificate.mechanism["epsilon"] for one in made.releases] == [2.0] * 3
    assert [one.certificate.guarantee.epsilon for one in made.releases] == [2.0] * 3
    assert all(one.certificate.assurance == "proved" for one in made.releases)
    assert made.guarantee.epsilon == 6.0
    assert "each of an equal part of epsilon" in words_of(made.summary())
    assert len(ledger.releases()) == 3
    with pytest.raises(kng.ledger.BudgetExceeded):
        study(adjacency=adjacency, ledger=ledger, **guess).quantile("wage", tau=0.5, epsilon=0.01)
    again = kng.Results.from_json(made.to_json())
    assert again.params.tolist() == made.params.tolist()
    assert again.summary().facts == made.summary().facts
    with pytest.raises(ValueError, match="no interval of them together"):
        made.intervals()


def test_quantiles_that_are_little_but_noise_at_their_part_of_epsilon_are_refused():
    """At ε = .1 a median of 300 records serves, and each of ten at a tenth of it does not."""
    some, levels = study(TABLE[:300]), [0.05 + 0.1 * k for k in range(10)]
    with pytest.raises(ValueError, match=r"tau = 0\.05 would be little but noise: of 300 records at epsilon = 0.01 "):
        some.quantile("wage", tau=levels, epsilon=0.1)
    preview = some.preview(residual=100.0).quantile("wage", tau=[0.25, 0.5], epsilon=2)
    assert preview.noise.shape == (2, 2)
    assert "at epsilon = 1, previewed" in preview.explain()


def test_weighted_quantiles_never_decrease_with_their_level():
    few = study(TABLE[:40]).quantile("wage", tau=[0.45, 0.5, 0.55], epsilon=0.3, force=True)
    low, middle, high = (few.params[f"{tau}-quantile of wage"] for tau in (0.45, 0.5, 0.55))
    assert low <= middle <= high


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_sums_and_variances_are_those_of_the_weights(adjacency):
    made, wages, weights = study(adjacency=adjacency), TABLE.wage, TABLE.weight
    total = made.sum("wage", epsilon=5)
    # From nothing to 4 times 10, whatever the adjacency.
    assert total.noise["sum of wage"] == pytest.approx(2.0**0.5 * 40.0 / 5.0)
    assert total.value == pytest.approx(weights @ wages, abs=80.0)
    assert "at most 4" in words_of(total.summary())
    spread = made.variance("wage", epsilon=5)
    assert spread.sums.index.tolist()[0] == "sum of weights"
    assert spread.sums.iloc[0] == pytest.approx(weights.sum(), abs=20.0)
    expected = np.cov(wages, aweights=weights, ddof=0)
    assert spread.value == pytest.approx(expected, rel=0.02)
    assert abs(wages.var() - expected) > 0.3
    assert kng.Results.from_json(spread.to_json()).value == spread.value
    assert made.variance("wage", epsilon=5, ddof=0).ddof == 0.0
    with pytest.raises(ValueError, match="divisor is their sum"):
        made.variance("wage", epsilon=5, ddof=1)
    # A noisy total counts as that of one record of the largest weight at least.
    few = study(TABLE[:3], adjacency=adjacency).variance("wage", epsilon=0.01, force=True)
    assert 0.0 <= few.value <= 25.0
    by_region = made.by("region").variance("wage", epsilon=9)
    np.testing.assert_allclose(by_region.params, 0.25, atol=0.1)


@pytest.mark.default_cases("replace")
@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_counts_and_tables_are_sums_of_weights(adjacency):
    made, south = study(adjacency=adjacency), TABLE.weight[TABLE.region == "south"].sum()
    times = 2.0 if adjacency == "replace" else 1.0
    found = made.count("region == 'south'", epsilon=5)
    # One record more or less, or one that becomes another, changes a single sum by 4 at most.
    assert found.noise.iloc[0] == pytest.approx(2.0**0.5 * 4.0 / 5.0, rel=1e-5)
    assert found.value == pytest.approx(south, abs=10.0)
    assert found.certificate.assurance == "proved"
    assert "at most 4" in words_of(found.summary())
    # Under replace n is public, and the sum of the weights is not.
    assert made.count(epsilon=5).value == pytest.approx(TABLE.weight.sum(), abs=10.0)
    table = made.histogram("region", epsilon=5)
    assert table.noise.iloc[0] == pytest.approx(times * 2.0**0.5 * 4.0 / 5.0, rel=1e-5)
    np.testing.assert_allclose(table.params, [3000.0, south], atol=20.0)
    # Sums of weights are not whole, and nothing makes them so.
    assert table.params.dtype == float
    assert not np.all(table.params == table.params.round())
    assert kng.Results.from_json(table.to_json()).params.equals(table.params)
    assert table.nonnegative().params.equals(table.params)
    consistent = made.crosstab("region", "age", epsilon=5, edges={"age": 2}).with_total(6000)
    assert consistent.params.sum() == pytest.approx(6000.0)
    grouped = made.by("region").count("age > 40", epsilon=5)
    older = TABLE[TABLE.age > 40].groupby("region").weight.sum()
    np.testing.assert_allclose(grouped.params, older, atol=30.0)
    with pytest.raises(ValueError, match="number of records is public"):
        study(weights=None).count(epsilon=1)


def test_previews_of_sums_are_of_sums():
    """Of n records, spread evenly over their bounds; of weights that are all the largest, 4, or may be 0."""
    for weights, times in ((None, 1.0), ("weight", 4.0)):
        for column, width, moved in (("wage", 10.0, 10.0), ("age", 40.0, 40.0 if weights is None else 60.0)):
            found = study(weights=weights).preview().sum(column, epsilon=0.5)
            np.testing.assert_allclose(found.noise.iloc[0, 0], times * 2.0**0.5 * moved / 0.5)
            np.testing.assert_allclose(
                found.standard_error.iloc[0, 0], times * width / 12.0**0.5 * COUNT**0.5, rtol=1e-6
            )


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_means_of_largest_weights_have_the_noise_that_their_preview_says(adjacency):
    """2√2·W·(hi - lo)/(ε·Σw) of ages within [20, 60], at either adjacency."""
    guess = {"num_records": COUNT} if adjacency == "add_remove" else {}
    found = study(adjacency=adjacency, **guess).preview().mean("age", epsilon=0.5)
    np.testing.assert_allclose(found.noise.iloc[0, 0], 2.0 * 2.0**0.5 * 40.0 / (0.5 * COUNT))


def test_least_squares_by_adassp_are_those_of_the_weights():
    """Of all wages, whose regions differ by 3 and in how they grow with age."""
    ages = TABLE.assign(wage=TABLE.wage + 0.05 * (TABLE.age - 40.0) * (TABLE.region == "south"))
    x, w = np.column_stack([np.ones(COUNT), ages.age]), ages.weight.to_numpy()
    expected = np.linalg.solve((x.T * w) @ x, x.T @ (w * ages.wage))
    fit = study(ages).linear_regression("wage ~ age", epsilon=9, delta=1e-3, method="adassp")
    at = np.array([25.0, 55.0])
    found = np.asarray(fit.predict({"age": at})).ravel()
    np.testing.assert_allclose(found, expected[0] + expected[1] * at, atol=0.15)
    # Without weights, of which the south has three times as many, it would be .75 or so less.
    assert abs(TABLE.wage.mean() - expected[0] - 40.0 * expected[1]) > 0.5
    assert fit.certificate.assurance == "proved"
    assert "at most 4" in words_of(fit.summary())


def test_every_regression_takes_weights_or_says_that_it_does_not():
    plan = study().plan()
    planned = [
        plan.quantile_regression("wage ~ age", tau=[0.25, 0.5], epsilon=1),
        plan.linear_regression("wage ~ age + region", epsilon=1),
        plan.linear_regression("wage ~ poly(age, 4) + region", epsilon=1),
        plan.logistic_regression("region ~ age", epsilon=1),
        plan.poisson_regression("calls ~ age", epsilon=1),
        plan.linear_regression("wage ~ age", epsilon=1, method="adassp", delta=1e-6),
    ]
    mechanisms = [part.mechanism for analysis in planned for part in analysis.parts]
    kinds = [*3 * [kng.KNG], *3 * [kng.ObjectivePerturbation], kng.AdaSSP]
    assert [type(one) for one in mechanisms] == kinds
    assert all(float(one.bounds.weight) == 4.0 for one in mechanisms)
    # The middle of the wages' bounds.
    many = plan.linear_regression("wage ~ poly(age, 4) + region", epsilon=20)
    assert type(many.unweighted.parts[0].mechanism) is kng.ObjectivePerturbation
    for centred in (mechanisms[3], many.parts[0].mechanism):
        np.testing.assert_array_equal(centred.centre, [5.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="not drawn together"):
        plan.quantile("wage", tau=[0.1, 0.5], epsilon=1, budget="joint")
    for ask in (plan.by("region").mean, plan.by("region").sum, plan.by("region").variance):
        grouped = ask("wage", epsilon=1)
        assert all(one.weights is not None for one in grouped.analyses)
        mechanisms = [part.mechanism for one in grouped.analyses for part in one.parts]
        assert all(float(one.bounds.weight) == 4.0 for one in mechanisms)


def test_weights_are_clipped_to_their_bounds_and_missing_ones_count_as_the_policy_says():
    gaps = TABLE.assign(weight=[None, -5.0, 99.0, 3.0] * (COUNT // 4))
    low, high = 0.5, 2.0
    bounds = BOUNDS | {"weight": (low, high)}
    made = study(gaps, bounds=bounds, missing={"weight": 1.0})
    weights = np.tile([1.0, low, high, high], COUNT // 4)
    assert made.mean("wage", epsilon=50).value == pytest.approx(np.average(TABLE.wage, weights=weights), abs=0.02)
    with pytest.raises(kng.ReleaseFailed):
        study(gaps, bounds=bounds).mean("wage", epsilon=50)
    left_out = study(gaps, bounds=bounds, missing="drop", adjacency="add_remove").mean("wage", epsilon=50)
    weights[::4] = 0.0
    assert left_out.value == pytest.approx(np.average(TABLE.wage, weights=weights), abs=0.02)


def test_little_but_noise_with_the_largest_weights_is_refused(tmp_path):
    weighted = study(TABLE[:40])
    with pytest.raises(ValueError, match="little but noise"):
        weighted.mean("wage", epsilon=0.1)
    forced = weighted.mean("wage", epsilon=0.1, force=True)
    assert "asked for by force=True" in words_of(forced.summary())


def test_sums_that_are_little_but_noise_are_said_so_in_units_of_the_sum():
    """Noise is √2·W·10/ε, and n values between 0 and 10 are known to nW·10/√12 (20 of them, W = 4, ε = .1)."""
    plain = {"bounds": {"wage": (0, 10)}, "levels": {}, "weights": None}
    for facts, noise, room in (({}, "5.7e+02", "2.3e+02"), (plain, "1.4e+02", "58")):
        with pytest.raises(ValueError, match="little but noise") as found:
            study(TABLE[:20], **facts).sum("wage", epsilon=0.1)
        words = f"deviation {noise} is expected in a sum that is known to {room} by"
        assert words in str(found.value)
    bounds = kng.Bounds(x={"wage": (0.0, 10.0)}, intercept=False, weight=4.0)
    preview = kng.preview(kng.KNormMechanism(bounds, 0.1, "replace", statistic="sum"), num_records=20)
    assert preview.noise["wage"] == pytest.approx(2.0**0.5 * 40.0 / 0.1)
    assert "in a sum that is known to 2.3e+02" in preview.explain()


def test_columns_that_are_no_weights_are_refused_before_the_debit(tmp_path):
    ledger = kng.Ledger.create(tmp_path / "l", kng.Budget.pure(5.0), adjacency="replace", dataset="d")
    with pytest.raises(ValueError, match="public bounds"):
        study(bounds={"wage": (0, 10)})
    with pytest.raises(ValueError, match="at least 0"):
        study(bounds=BOUNDS | {"weight": (-1, 4)})
    with pytest.raises(ValueError, match="neither 0 nor a weight"):
        study(missing={"weight": 9.0})
    with pytest.raises(TypeError, match="name of a column"):
        study(weights=np.ones(COUNT))
    with pytest.raises(ValueError, match="do not have"):
        study(TABLE.drop(columns="weight"), ledger=ledger).mean("wage", epsilon=1)
    with pytest.raises(TypeError, match="which weights= names, holds neither numbers nor text"):
        study(TABLE.assign(weight=pd.Timestamp("2020-01-01")), ledger=ledger).mean("wage", epsilon=1)
    assert ledger.verify().spent is None


def exposed_people(count=COUNT):
    """Calls of people who were watched for half a year to two years, some for less or more than the bounds say."""
    generator = np.random.default_rng(3)
    frame = pd.DataFrame({"age": generator.uniform(20, 60, count), "years": generator.uniform(0.4, 2.2, count)})
    return frame.assign(calls=generator.poisson(frame["years"] * np.exp(0.02 * frame["age"] - 1.0)).astype(float))


EXPOSED = exposed_people()
EXPOSED_BOUNDS = {"age": (20, 60), "years": (0.5, 2), "calls": (0, 20)}


def exposed(frame=EXPOSED, **changed):
    return kng.Study(frame, **({"bounds": EXPOSED_BOUNDS, "adjacency": "replace"} | changed))


def of_offsets(columns, counts, exposures):
    """The coefficients of counts with the offset log e, by Newton's steps."""
    theta = np.zeros(columns.shape[1])
    for _ in range(30):
        mean = np.exp(columns @ theta) * exposures
        theta += np.linalg.solve((columns.T * mean) @ columns, columns.T @ (counts - mean))
    return theta


@pytest.mark.parametrize(("right", "most_rate"), [("age", np.int64(15)), ("age", None), ("0 + age", 40.0)])
def test_rates_by_an_exposure_are_those_of_counts_with_an_offset(right, most_rate):
    """R left out is 20 calls in half a year; a larger one is never needed."""
    fit = exposed().poisson_regression(f"calls ~ {right}", epsilon=80, exposure="years", most_rate=most_rate)
    years = EXPOSED["years"].clip(0.5, 2.0).to_numpy()
    rates = np.minimum(EXPOSED["calls"] / years, most_rate or 40.0)
    columns = EXPOSED[["age"]].to_numpy() / 60.0
    columns = columns if right.startswith("0") else np.column_stack([np.ones(COUNT), columns])
    truth = of_offsets(columns, rates * years, years)
    at = np.array([20.0, 60.0])
    basis = at[:, None] / 60.0 if right.startswith("0") else np.column_stack([np.ones(2), at / 60.0])
    np.testing.assert_allclose(fit.predict({"age": at}), np.exp(basis @ truth), rtol=0.02)
    mechanism = fit.certificate.mechanism
    assert mechanism["bounds"]["weight"] == 2.0
    assert (mechanism["bounds"]["y_lower"], mechanism["bounds"]["y_upper"]) == (0.0, most_rate or 40.0)
    # One call more than the largest rate allows of the longest exposure.
    assert mechanism["loss"]["limit"] == pytest.approx(np.log((most_rate or 40.0) + 0.5))
    told = (
        f"a record's own rate, calls / years, both clipped to their bounds, and clipped to at most {most_rate or 40:g}"
    )
    assert told in fit.certificate.explain()
    assert "calls in [0, 20], years in [0.5, 2]" in words_of(fit.summary())
    again = kng.Results.from_json(fit.to_json())
    assert again.response == fit.response
    assert again.predict({"age": at}).equals(fit.predict({"age": at}))


def test_a_tighter_rate_and_a_tighter_exposure_cost_less():
    """What previews say of it: standard errors are those of so many events, whatever the units of the exposure are."""
    ask = {"formula": "calls ~ age", "epsilon": 5, "exposure": "years"}
    tight = exposed().preview().poisson_regression(**ask, most_rate=10)
    assert "not stated" in tight.explain()
    tight, loose = (one.previews[0] for one in (tight, exposed().preview().poisson_regression(**ask)))
    assert np.all(tight.noise.values < loose.noise.values)
    quarters = exposed(bounds=EXPOSED_BOUNDS | {"years": (2, 8)}).preview().poisson_regression(**ask, most_rate=2.5)
    quarters = quarters.previews[0]
    for name in ("noise", "standard_error"):
        own = [getattr(one, name).loc["age"].item() for one in (tight, quarters)]
        assert own[0] == pytest.approx(own[1], rel=0.02)


@pytest.mark.parametrize("most_rate", [None, 12.0])
def test_no_exchange_of_cells_at_the_ends_exceeds_the_stated_sensitivity(most_rate):
    """All pairs of records of extreme, missing and senseless cells, at predictors from far below to beyond the cap."""
    cells = {"calls": (0.0, 20.0, 1e9, -3.0, np.nan), "years": (0.0, 0.5, 2.0, 1e9, -1.0, np.nan), "age": (20.0, 60.0)}
    frame = pd.DataFrame(list(itertools.product(*cells.values())), columns=list(cells))
    asked = exposed(frame, missing={"calls": 20, "years": 0.5})
    analysis = asked.plan().poisson_regression("calls ~ age", epsilon=1, exposure="years", most_rate=most_rate)
    [part] = analysis.parts
    columns, rates, weights = analysis.records(frame)
    assert np.all((weights >= 0.5) & (weights <= 2.0) & (rates >= 0.0) & (rates <= (most_rate or 40.0)))
    # A record by itself: alone it becomes what it becomes among the others.
    for row in (0, 17, 59):
        for whole, alone in zip((columns, rates, weights), analysis.records(frame[row : row + 1]), strict=True):
            assert alone.tobytes() == whole[row : row + 1].tobytes()
    x = np.column_stack([np.ones(len(columns)), columns])
    worst = 0.0
    for theta in itertools.product((-60.0, 0.0, 2.0, 500.0), repeat=2):
        scores = jax.vmap(part.mechanism.loss.record_score)(x @ np.array(theta), rates)
        gradients = x * (weights * np.asarray(scores))[:, None]
        changes = (gradients[:, None] - gradients[None]).reshape(-1, 2)
        worst = max(worst, float(np.max(jax.vmap(part.mechanism.score_norm(2))(changes))))
    stated = float(part.mechanism.sensitivity_value(2))
    assert 0.99 * stated < worst <= stated * (1.0 + 1e-6)


def test_missing_exposures_and_counts_count_as_the_policy_says():
    gaps = EXPOSED.assign(years=EXPOSED["years"].where(np.arange(COUNT) % 5 > 0), age=40.0)
    gaps["calls"] = gaps["calls"].where(np.arange(COUNT) % 5 != 1)
    kept = {"epsilon": 80, "exposure": "years", "most_rate": 20.0}
    for missing, years, calls in (({"years": 1.0, "calls": 3}, 1.0, 3.0), ({"years": "drop", "calls": 0}, 0.0, 0.0)):
        fit = exposed(gaps.assign(b="n"), missing=missing, levels={"b": ("n", "y")}).poisson_regression(
            "calls ~ b", **kept
        )
        weights = gaps["years"].clip(0.5, 2.0).fillna(years)
        counts = gaps["calls"].fillna(calls).where(weights > 0.0, 0.0)
        assert fit.predict({"b": "n"})[0] == pytest.approx(counts.sum() / weights.sum(), rel=0.02)
        assert f"a missing calls counts as {missing['calls']}" in fit.certificate.explain()
    with pytest.raises(kng.ReleaseFailed):
        exposed(gaps, missing={"calls": 0}).poisson_regression("calls ~ age", **kept)


@pytest.mark.parametrize(
    ("given", "facts", "error", "words"),
    [
        ({"exposure": "years"}, {"weights": "age"}, ValueError, "records have one weight each"),
        ({"most_rate": 3.0}, {}, ValueError, "name the column of the exposure"),
        ({"exposure": "days"}, {}, ValueError, r"bounds=\{'days': \(0.1, 10\)\}"),
        ({"exposure": 2.0}, {}, TypeError, "exposure must be the name of a column"),
        (
            {"exposure": "calls"},
            {"bounds": EXPOSED_BOUNDS | {"calls": (1, 20)}},
            ValueError,
            "response and its exposure",
        ),
        ({"exposure": "years", "most_rate": -1.0}, {}, ValueError, "most_rate must be the largest rate"),
        ({"exposure": "years", "most_rate": True}, {}, ValueError, "most_rate must be the largest rate"),
        # The rate of all, 0.01 events a year, is none of a record: fits were 20 times too small, or singular matrices.
        ({"exposure": "years", "most_rate": 0.01}, {}, ValueError, "one count in the largest exposure, 0.5, so that"),
        ({"exposure": "years"}, {"bounds": EXPOSED_BOUNDS | {"years": (0, 2)}}, ValueError, "exposures are above 0"),
        (
            {"exposure": "years"},
            {"bounds": EXPOSED_BOUNDS | {"years": (30, 730)}},
            ValueError,
            "divide the column and its bounds by 1,000",
        ),
        (
            {"exposure": "years", "most_rate": 0.5},
            {"bounds": EXPOSED_BOUNDS | {"calls": (2, 20)}},
            ValueError,
            "not above the least rate that the bounds allow, 1",
        ),
        ({"offset": "years"}, {}, TypeError, "poisson_regression has no argument 'offset': name the column"),
    ],
)
def test_what_is_no_exposure_is_refused_before_the_debit(given, facts, error, words):
    for asked in (exposed(**facts), exposed(**facts).plan(), exposed(**facts).preview()):
        with pytest.raises(error, match=words):
            asked.poisson_regression("calls ~ age", epsilon=1, **given)


def test_an_exposure_is_of_counts_as_they_are():
    bounds = EXPOSED_BOUNDS | {"calls": (1, 20)}
    with pytest.raises(ValueError, match=r"without log\(\)"):
        exposed(bounds=bounds).poisson_regression("log(calls) ~ age", epsilon=1, exposure="years")
    with pytest.raises(ValueError, match="counts are at least 0"):
        exposed(bounds=bounds | {"calls": (-1, 20)}).poisson_regression("calls ~ age", epsilon=1, exposure="years")


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_predictions_of_rates_are_counts_where_the_exposure_is_told(make):
    ask = {"formula": "calls ~ age", "epsilon": 80, "exposure": "years", "most_rate": 15}
    fit = exposed().poisson_regression(**ask, intervals=True)
    age, years = [30.0, 40.0, 50.0], np.array([0.0, 1.0, 7.0])
    rates, counts = fit.predict({"age": age}), fit.predict(make({"age": age, "years": years}))
    np.testing.assert_allclose(counts, years * rates, rtol=1e-12)
    bands = fit.predict_interval({"age": age}).to_numpy(), fit.predict_interval(make({"age": age, "years": years}))
    np.testing.assert_allclose(bands[1], years[:, None] * bands[0], rtol=1e-12)
    with pytest.raises(ValueError, match="exposures are at least 0, and some new cells of 'years'"):
        fit.predict(make({"age": age, "years": -years}))
    for ask in (fit.predict, fit.predict_interval):
        with pytest.warns(UserWarning, match=r"beyond the public bounds, age in \[20, 60\]"):
            ask(make({"age": [10.0, 30.0, 61.0], "years": years}))


def test_one_record_is_predicted_for_several_exposures():
    ask = {"formula": "calls ~ age", "epsilon": 80, "exposure": "years", "most_rate": 15}
    fit, years = exposed().poisson_regression(**ask, intervals=True), np.array([0.0, 1.0, 7.0])
    one = {"age": 30.0, "years": years}
    np.testing.assert_allclose(fit.predict(one), years * fit.predict({"age": 30.0}).item(), rtol=1e-12)
    ends = fit.predict_interval({"age": 30.0}).to_numpy()
    np.testing.assert_allclose(fit.predict_interval(one), years[:, None] * ends, rtol=1e-12)


def test_groups_take_exposures():
    frame = EXPOSED.assign(sex=np.where(np.arange(COUNT) % 2, "f", "m"))
    grouped = exposed(frame, levels={"sex": ("f", "m")}).plan().by("sex")
    made = grouped.poisson_regression("calls ~ age", epsilon=4, exposure="years", most_rate=10)
    assert all(part.mechanism.bounds.weight == 2.0 for one in made.analyses for part in one.parts)
    assert "calls / years" in " ".join(made.told)
