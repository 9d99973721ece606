"""What public facts say of an analysis: the column for noise, and refusals before anything is spent."""

import math
import re

import numpy as np
import numpyro
import pandas as pd
import pytest

import kngjax as kng
from tests.words import words_of

BOUNDS = {"wage": (20, 20_000), "education": (0, 18), "age": (0, 100)}
LEVELS = {"region": ("north", "south"), "ill": ("no", "yes")}
FORMULA = "log(wage) ~ education + region"
LINE = "log(wage) ~ education"
FIVE = "log(wage) ~ education * region + age"


@pytest.fixture
def ledger(tmp_path):
    return kng.Ledger.create(tmp_path / "people", kng.Budget.pure(9.0), adjacency="replace", dataset="people")


def people(count):
    generator = np.random.default_rng(0)
    education, region = generator.uniform(0, 18, count), generator.choice(LEVELS["region"], count)
    wage = np.exp(5.0 + 0.1 * education + 0.5 * generator.standard_normal(count))
    frame = {"wage": wage, "education": education, "region": region, "age": generator.uniform(0, 99, count)}
    return pd.DataFrame(frame | {"ill": generator.choice(LEVELS["ill"], count)})


def study(count, **changed):
    facts = {"bounds": BOUNDS, "levels": LEVELS, "adjacency": "replace"} | changed
    return kng.Study(people(count), **facts)


def test_what_is_little_but_noise_is_refused_before_the_debit(ledger):
    rows, few = ledger.read().num_rows, study(60, ledger=ledger)
    with pytest.raises(
        ValueError, match=r"little but noise: of 60 records .* records or epsilon = .* would do"
    ) as told:
        few.quantile_regression(FORMULA, tau=0.5, epsilon=1)
    assert ledger.read().num_rows == rows
    # What it says would do does.
    words = str(told.value).split(" records or epsilon = ")
    count, epsilon = int(words[0].split()[-1].replace(",", "")), float(words[1].split()[0])
    assert few.preview().quantile_regression(FORMULA, tau=0.5, epsilon=epsilon).hopeless is None
    assert study(count).preview().quantile_regression(FORMULA, tau=0.5, epsilon=1).hopeless is None
    assert few.preview().quantile_regression(FORMULA, tau=0.5, epsilon=0.8 * epsilon).hopeless is not None
    with pytest.raises(ValueError, match="little but noise"):
        few.mean("age", epsilon=0.05)
    assert ledger.read().num_rows == rows
    found = few.mean("age", epsilon=0.05, force=True)
    assert len(ledger.releases()) == 1
    assert "is little but noise, and was asked for by force=True" in words_of(found.summary())
    again = kng.Results.from_json(found.to_json())
    assert str(again.summary()) == str(found.summary())
    np.testing.assert_allclose(found.noise, math.sqrt(2) * 100 / (60 * 0.05))


def test_a_sum_that_is_refused_is_released_by_the_argument_that_its_refusal_names():
    few = study(60)
    with pytest.raises(ValueError, match=r"sum of age would be little but noise: .*force=True"):
        few.sum("age", epsilon=0.05)
    found = few.sum("age", epsilon=0.05, force=True)
    assert "is little but noise, and was asked for by force=True" in words_of(found.summary())
    assert str(kng.Results.from_json(found.to_json()).summary()) == str(found.summary())


def test_previews_of_counts_say_that_their_noise_is_exact():
    plan = study(400).plan()
    plan.histogram("region", epsilon=1)
    plan.mean("age", epsilon=1)
    counts, mean = plan.preview()
    assert "noise of standard deviation 2.8 on each count, exactly" in counts.explain()
    # An exchanged record leaves one count and enters another: Δ = 2.
    expected = 1.0 / (np.sqrt(2.0) * np.sinh(1.0 / 4.0))
    np.testing.assert_allclose(counts.noise, [[expected]], rtol=1e-12)
    assert mean.hopeless is None


@pytest.mark.default_cases("robust_large", "quantiles")
@pytest.mark.parametrize(
    ("ask", "epsilon", "is_of_odds"),
    [
        (lambda one, epsilon: one.linear_regression(FORMULA, epsilon=epsilon), 0.05, False),
        (lambda one, epsilon: one.linear_regression(LINE, epsilon=epsilon), 4.0, False),
        (lambda one, epsilon: one.quantile_regression(FIVE, tau=[0.25, 0.5], epsilon=epsilon), 1.0, False),
        (lambda one, epsilon: one.quantile_regression(LINE, tau=[0.1, 0.5], epsilon=epsilon), 1.0, False),
        (lambda one, epsilon: one.logistic_regression("ill ~ education", epsilon=epsilon), 1.0, True),
    ],
    ids=["robust_small", "robust_large", "smoothed", "quantiles", "logistic"],
)
def test_what_noise_asks_for_is_what_a_preview_there_shows(ask, epsilon, is_of_odds):
    """Thresholds, bandwidths and the mechanism are those of the ε, or the n, that is asked for."""
    said = {"design": people(500), "residual": numpyro.distributions.Bernoulli(0.5) if is_of_odds else 0.5}
    one = study(20_000).preview(**said)
    found = ask(one, epsilon)
    wanted = found.epsilon_for(2.0)
    np.testing.assert_allclose(ask(one, wanted).ratio.max().max(), 2.0, rtol=0.03)
    count = found.num_records_for(0.5)
    there = kng.Study(pd.DataFrame(index=range(count)), bounds=BOUNDS, levels=LEVELS, adjacency="replace")
    np.testing.assert_allclose(ask(there.preview(**said), epsilon).ratio.max().max(), 0.5, rtol=0.03)


def test_thresholds_stop_where_the_loss_is_least_squares():
    """So that noise falls with ε, however large ε is."""
    plan = study(4000).plan()
    few, many = (plan.linear_regression("age ~ education", epsilon=epsilon) for epsilon in (50.0, 100.0))
    assert [float(one.parts[0].mechanism.loss.k) for one in (few, many)] == [100.0, 100.0]


def test_a_frame_that_lost_records_is_refused():
    frame = people(400)
    one = kng.Study(frame, bounds=BOUNDS, levels=LEVELS, adjacency="replace")
    one._frame = frame[:100]
    with pytest.raises(ValueError, match="another number of records"):
        one.mean("age", epsilon=1)
    plan = one.plan()
    plan.mean("age", epsilon=1)
    with pytest.raises(ValueError, match="another number of records"):
        plan.run()


def test_a_plan_with_one_hopeless_part_debits_nothing(ledger):
    rows, plan = ledger.read().num_rows, study(60, ledger=ledger).plan()
    plan.mean("age", epsilon=1)
    plan.quantile_regression(FORMULA, tau=0.5, epsilon=1)
    first, second = plan.preview()
    assert first.hopeless is None
    assert second.hopeless is not None
    with pytest.raises(ValueError, match="little but noise"):
        plan.run()
    assert ledger.read().num_rows == rows


def test_means_quantiles_and_ridges_are_checked_too():
    few = study(30)
    for ask in (
        lambda one: one.mean("age", epsilon=0.05),
        lambda one: one.median("age", epsilon=0.05),
        lambda one: one.logistic_regression("ill ~ education", epsilon=1),
    ):
        with pytest.raises(ValueError, match="little but noise"):
            ask(few)
    with pytest.raises(ValueError, match="a ridge would take"):
        study(300).linear_regression(LINE, epsilon=1, method="adassp", delta=1e-6)
    with pytest.raises(ValueError, match="little but noise"):
        study(60).quantile_regression(FORMULA, tau=0.5, epsilon=1)


def test_an_intercept_far_from_0_is_no_reason_to_refuse():
    """Where the ridge pulls to the middle of the response's bounds, as that of a study does."""
    count, generator = 400, np.random.default_rng(1)
    region = generator.choice(["north", "south", "east", "west"], count)
    pay = np.exp(11.3 + 0.4 * (region == "south") + 0.1 * generator.standard_normal(count))
    education = generator.uniform(0, 18, count)
    one = kng.Study(
        pd.DataFrame({"pay": pay, "region": region, "education": education}),
        bounds={"pay": (20_000, 500_000), "education": (0, 18)},
        levels={"region": ("north", "south", "east", "west")},
        adjacency="replace",
    )
    formula = "log(pay) ~ education + region"
    (part,) = one.plan().linear_regression(formula, epsilon=1).parts
    made, (low, high) = part.mechanism, np.log([20_000, 500_000])
    np.testing.assert_array_equal(made.centre, [0.5 * (low + high), 0.0, 0.0, 0.0, 0.0])
    design = one.plan().linear_regression(formula, epsilon=1).design
    to_zero = kng.ObjectivePerturbation(made.loss, made.bounds, made.domain, made.epsilon, "replace")
    refused = kng.preview(to_zero, num_records=count, design=design, simulate=False)
    assert "a ridge would move a coefficient by" in refused.hopeless
    assert "far from where the ridge pulls to" in refused.hopeless
    fit = one.linear_regression(formula, epsilon=1)
    assert fit.params["intercept"] + 9 * fit.params["education"] == pytest.approx(11.3, abs=0.4)


def test_results_have_a_column_for_noise():
    many = study(4000)
    found = many.mean("age", epsilon=0.5)
    np.testing.assert_allclose(found.noise["mean of age"], math.sqrt(2) * 100 / (4000 * 0.5), rtol=1e-12)
    assert "exact, whatever the records are" in words_of(found.summary())
    fit = many.quantile_regression(FORMULA, tau=[0.4, 0.5], epsilon=4)
    assert fit.noise is None
    assert "how columns and responses lie, which is private" in fit.noise_in_words
    assert fit.noise_in_words in words_of(fit.summary())
    for one in (found, fit):
        again = type(one).from_json(one.to_json())
        assert (again.noise is one.noise is None) or np.array_equal(again.noise, one.noise)
        assert again.noise_in_words == one.noise_in_words
        assert str(again.summary()) == str(one.summary())


SPREAD = pd.DataFrame({"v": np.random.default_rng(4).normal(40.0, 10.0, 2000)})
STATED = {
    "mean": lambda one: one.mean("v", epsilon=1),
    "sum": lambda one: one.sum("v", epsilon=1),
    "variance": lambda one: one.variance("v", epsilon=1),
    "noisy variance": lambda one: one.variance("v", epsilon=0.3),
    "count": lambda one: one.count("v > 40", epsilon=1),
}


@pytest.mark.takes(4, "forty releases")
@pytest.mark.default_cases("mean-add_remove", "noisy variance-replace")
@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
@pytest.mark.parametrize("name", STATED)
def test_noise_that_is_stated_is_that_of_many_releases_within_a_factor(name, adjacency):
    said = {"num_records": 2000} if adjacency == "add_remove" else {}
    one = kng.Study(SPREAD, bounds={"v": (0, 100)}, adjacency=adjacency, **said)
    made = [STATED[name](one) for _ in range(40)]
    measured = np.std([float(np.ravel(found.params)[0]) for found in made])
    stated = [float(np.ravel(found.noise)[0]) for found in made if found.noise is not None]
    assert len(stated) >= 30
    assert max(stated) < 1.3 * measured < 1.3**2 * min(stated)


def interactions():
    """As of a trial: the columns fill their bounds, and half of the patients have each treatment."""
    generator, count = np.random.default_rng(5), 4000
    frame = pd.DataFrame({"arm": generator.choice(["a", "b"], count), "visit": generator.integers(1, 6, count)})
    frame["sbp"] = 120 - 8.0 * (frame["arm"] == "b") + generator.normal(0, 15, count)
    one = kng.Study(frame, bounds={"visit": (1, 5), "sbp": (80, 220)}, levels={"arm": ("a", "b")}, adjacency="replace")
    return one.linear_regression("sbp ~ arm * visit", epsilon=5)


def top_coded():
    income = np.minimum(np.exp(np.random.default_rng(1).normal(10, 1, 20_000)), 50_000)
    one = kng.Study(pd.DataFrame({"v": income}), bounds={"v": (0, 200_000)}, adjacency="replace")
    return one.quantile("v", tau=0.9, epsilon=1)


def of_groups(method):
    """Three records of 20,000 in one group, none in another."""
    frame = pd.DataFrame({"v": np.random.default_rng(2).normal(50, 10, 20_000)})
    frame["g"] = ["big"] * 19_997 + ["tiny"] * 3
    levels = {"g": ("big", "tiny", "empty")}
    one = kng.Study(frame, bounds={"v": (0, 100)}, levels=levels, adjacency="replace")
    return getattr(one.by("g"), method)("v", epsilon=1)


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (interactions, "it depends on how columns and responses lie"),
        (top_coded, "is large beside ties"),
        (lambda: of_groups("mean"), "sizes of the groups are not known: give num_records="),
        (lambda: of_groups("median"), "is large beside ties"),
    ],
    ids=["interactions", "top-coded", "mean of groups", "median of groups"],
)
def test_noise_that_goes_by_what_nobody_said_is_not_stated(made, why):
    found = made()
    assert found.noise is None
    assert found.noise_in_words.startswith("not stated: ")
    assert why in found.noise_in_words
    assert why in words_of(found.summary())


def test_an_estimate_on_the_edge_of_theta_says_so_in_the_place_of_noise():
    """The wages' logarithms lie about 5, and Θ ends at 1."""
    one = study(2000)
    tight, wide = (one.linear_regression(FIVE, epsilon=8, domain=kng.Box(-end, end)) for end in (1.0, 40.0))
    assert tight.noise is None
    assert "lies on the edge of Theta" in tight.noise_in_words
    assert tight.noise_in_words in words_of(tight.summary())
    assert kng.Results.from_json(tight.to_json()).noise_in_words == tight.noise_in_words
    # As it advises.
    assert "edge" not in wide.noise_in_words


def test_variances_of_groups_have_noise_by_the_sizes_that_were_released():
    found = of_groups("variance")
    assert np.isfinite(found.noise["big"])
    assert found.noise[["tiny", "empty"]].isna().all()
    assert "by the sums that were released" in found.noise_in_words
    assert "not stated: the" in found.noise_in_words


def test_a_poisson_regression_says_below_which_mean_count_it_is_little_but_noise():
    """Noise goes by the mean, which is private: a tenth of the bound is taken for it, and what rarer counts would give
    is what a preview of them says."""
    columns = [f"x{place}" for place in range(11)]
    few = kng.Study(
        pd.DataFrame(np.zeros((5190, 12)), columns=[*columns, "visits"]),
        bounds=dict.fromkeys(columns, (0, 10)) | {"visits": (0, 20)},
        adjacency="replace",
    )
    asked = {"formula": f"visits ~ {' + '.join(columns)}", "epsilon": 1}
    words = few.facts.expecting(few.plan().poisson_regression(**asked)).expected.words
    (least,) = map(float, re.findall(r"where the mean is below ([\d.]+) it is little but noise", words))
    assert 0.3 < least < 2.0
    for factor, is_noise in ((0.8, True), (1.25, False)):
        preview = few.preview(residual=numpyro.distributions.Poisson(factor * least))
        assert (preview.poisson_regression(**asked).hopeless is not None) == is_noise


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_means_of_groups_have_noise_by_counts_that_were_released_and_none_beside_little_counts(adjacency):
    """A mean's error has density ∝ exp(-εn|x|/2w) of bounds w apart, at ε/2 of the group under replace."""
    sizes = {"big": 5000, "small": 300, "tiny": 5}
    frame = pd.DataFrame({"g": np.repeat(list(sizes), list(sizes.values()))}).assign(v=40.0)
    facts = {"bounds": {"v": (0, 100)}, "levels": {"g": (*sizes, "empty")}, "adjacency": adjacency}
    one = kng.Study(frame, **facts)
    counts = one.histogram("g", epsilon=2)
    with pytest.raises(ValueError, match="little but noise"):
        one.by("g", num_records=counts).mean("v", epsilon=1)
    found = one.by("g", num_records=counts).mean("v", epsilon=1, force=True)
    each = 0.5 if adjacency == "replace" else 1.0
    for level in ("big", "small"):
        expected = math.sqrt(2.0) * 2.0 * 100.0 / (each * counts.params[level])
        assert found.noise[level] == pytest.approx(expected, rel=1e-6)
        assert expected == pytest.approx(math.sqrt(2.0) * 200.0 / (each * sizes[level]), rel=0.3)
    assert found.noise[["tiny", "empty"]].isna().all()
    assert "exact if records are as many as the released counts say" in found.noise_in_words
    assert "number of records of this group has so much noise itself" in found.noise_in_words
    # Counts that were said have no noise, and of an equal share nobody said anything.
    assert "as num_records says" in one.by("g", num_records=2000).mean("v", epsilon=1).noise_in_words


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
@pytest.mark.parametrize(("size", "epsilon"), [(5, 12.0), (60, 1.0), (300, 1.0), (1000, 1.0), (5000, 1.0)])
def test_noise_of_groups_is_right_within_three_tenths(size, epsilon, adjacency):
    """Of 400 estimates the root of the mean square is known to 6 %, of Laplace's law."""
    levels, values = tuple(f"g{place}" for place in range(80)), np.random.default_rng(1).normal(30, 15, size)
    values = np.clip(values, 0.0, 100.0)
    frame = pd.DataFrame({"g": np.repeat(levels, size), "v": np.tile(values, len(levels))})
    one = kng.Study(frame, bounds={"v": (0, 100)}, levels={"g": levels}, adjacency=adjacency, num_records=None)
    by = one.by("g", num_records=one.histogram("g", epsilon=epsilon))
    for method, truth in (("mean", values.mean()), ("variance", values.var(ddof=1))):
        ratios = []
        for _ in range(5):
            found = getattr(by, method)("v", epsilon=epsilon, force=True)
            if found.noise is not None:
                ratios.extend(((found.params - truth) / found.noise).dropna())
        if len(ratios) > 100:
            assert 1.0 / 1.3 < math.sqrt(np.mean(np.square(ratios))) < 1.3


def test_a_variance_of_few_records_is_refused_as_a_mean_is(ledger):
    frame = pd.DataFrame({"age": [90.0, 0.3, 50.0, 0.0, 4.0]})
    few = kng.Study(frame, bounds=BOUNDS, adjacency="replace", ledger=ledger)
    rows = ledger.read().num_rows
    with pytest.raises(ValueError, match=r"little but noise.* (\d+) records or epsilon = ([\d.]+) would do") as told:
        few.variance("age", epsilon=0.1)
    assert ledger.read().num_rows == rows
    count, epsilon = re.search(r"alone. (\d+) records or epsilon = ([\d.]+) would", str(told.value)).groups()
    assert few.plan().variance("age", epsilon=float(epsilon)).force is False
    few.variance("age", epsilon=float(epsilon))
    study(int(count)).variance("age", epsilon=0.1)
    with pytest.raises(ValueError, match="little but noise"):
        few.variance("age", epsilon=0.9 * float(epsilon))
    found = few.variance("age", epsilon=0.1, force=True)
    assert "is little but noise, and was asked for by force=True" in words_of(found.summary())
    assert found.noise is None
    cut = [one for one in (few.variance("age", epsilon=0.1, force=True) for _ in range(9)) if one.value == 0.0]
    assert "the released sums make less than 0, and it is cut there" in cut[0].noise_in_words


def test_previews_of_counts_say_how_large_noise_is_beside_the_error_of_sampling():
    asked = study(400).preview()
    for found, share in ((asked.count("age > 50", epsilon=1), 0.5), (asked.crosstab("region", "ill", epsilon=1), 0.25)):
        error = math.sqrt(400 * share * (1 - share))
        np.testing.assert_allclose(found.standard_error, error)
        np.testing.assert_allclose(found.ratio, found.noise / error)
    found = asked.count("age > 50", epsilon=1)
    wanted = float(found.ratio.iloc[0, 0]) / 3
    np.testing.assert_allclose(asked.count("age > 50", epsilon=found.epsilon_for(wanted)).ratio, wanted, rtol=2e-3)
    many = study(found.num_records_for(wanted)).preview()
    np.testing.assert_allclose(many.count("age > 50", epsilon=1).ratio, wanted, rtol=1e-2)
    unknown = study(50, adjacency="add_remove").preview().count(epsilon=1)
    assert unknown.noise.shape == (1, 1)
    with pytest.raises(ValueError, match="num_records=10_000"):
        _ = unknown.ratio


def test_draws_from_anywhere_are_spoken_of_beside_the_noise_that_leaves_them_out(fine_previews):
    """As of 397 professors' salaries by sex, of which one draw in twenty says nothing."""
    few = kng.Study(
        people(397), bounds={"wage": (20, 20_000)}, levels={"region": ("north", "south")}, adjacency="replace"
    )
    found = words_of(few.quantile_regression("wage ~ region", tau=0.5, epsilon=1).summary())
    assert re.search(r"with probability [1-5]% a draw comes from anywhere in the domain", " ".join(found.split()))
    many = words_of(few.quantile_regression("wage ~ region", tau=0.5, epsilon=2).summary())
    assert "from anywhere" not in many


def test_coefficients_in_own_units_have_noise_in_own_units():
    """Of x on [0, 18] the basis has x/9 - 1: its coefficient is a ninth in own units, and so is its noise."""
    many = study(4000)
    even = {"education": np.linspace(0.0, 18.0, 500)}
    fit = many.preview(design=even).linear_regression("log(wage) ~ education", epsilon=1)
    (preview,) = fit.previews
    basis = np.sqrt(np.diag(preview.expected.noise.covariance))
    np.testing.assert_allclose(fit.noise.loc["education"], basis[1] / 9, rtol=1e-12)
    np.testing.assert_allclose(fit.noise.loc["intercept"], np.hypot(*basis), rtol=1e-2)
    wide = many.preview(design=even, residual=3.0).linear_regression("log(wage) ~ education", epsilon=1)
    assert np.all(wide.standard_error > fit.standard_error)
    narrow = {"education": np.array([9.0, 11.0])}
    for design in (narrow, pd.DataFrame(narrow)):
        known = many.preview(design=design).linear_regression("log(wage) ~ education", epsilon=1)
        assert np.all(known.noise.loc["education"] > 4 * fit.noise.loc["education"])
        np.testing.assert_allclose(many.preview(design=design).mean("age", epsilon=1).noise, np.sqrt(2) * 100 / 4000)
    assert fit.epsilon_for(0.5) > 0
    assert fit.num_records_for(0.5) > 0
    assert fit.trusted


def test_without_a_number_of_records_nothing_is_said():
    one = study(50, adjacency="add_remove")
    found = one.mean("age", epsilon=0.001)
    assert found.noise is None
    assert "not checked" in words_of(found.summary())
    assert "num_records=10_000" in repr(one.preview().mean("age", epsilon=1))
    guessed = study(50, adjacency="add_remove", num_records=50)
    with pytest.raises(ValueError, match="little but noise"):
        guessed.mean("age", epsilon=0.001)
    np.testing.assert_allclose(guessed.mean("age", epsilon=9).noise, math.sqrt(2) * 100 / (50 * 4.5))


def test_previews_need_no_column():
    """The frame of this study has a length, and nothing else."""
    facts = {"bounds": BOUNDS, "levels": LEVELS, "adjacency": "replace"}
    empty = kng.Study(pd.DataFrame(index=range(4000)), **facts)
    for terms, number in (("poly(education, 2)", 3), ("I(age > 50)", 2), ("bs(age, knots=[40], degree=1)", 3)):
        assert "not stated" in repr(empty.preview().linear_regression(f"wage ~ {terms}", epsilon=20))
        made_up = {"education": np.linspace(0.0, 18.0, 50), "age": np.linspace(0.0, 100.0, 50)}
        shown = empty.preview(design=made_up).linear_regression(f"wage ~ {terms}", epsilon=20)
        assert terms in repr(shown)
        assert shown.noise.shape == (number, 1)
        assert shown.noise.notna().all(axis=None)


WITHHELD = {
    "robust": (lambda one: one.linear_regression(LINE, epsilon=2), {"design": people(200)}, "design=rows"),
    "median": (lambda one: one.median("age", epsilon=1), {"residual": 20.0}, "preview.residual=, the law of values"),
    "quantiles": (
        lambda one: one.quantile_regression(LINE, tau=0.5, epsilon=2),
        {"design": people(200), "residual": 0.5},
        "design=rows.*residual=",
    ),
    "logistic": (
        lambda one: one.logistic_regression("ill ~ education", epsilon=2),
        {"design": people(200), "residual": numpyro.distributions.Bernoulli(0.3)},
        "design=rows.*residual=",
    ),
    "poisson": (
        lambda one: one.poisson_regression("age ~ education", epsilon=9),
        {"design": people(200), "residual": numpyro.distributions.Poisson(40.0)},
        "design=rows.*residual=",
    ),
}


@pytest.mark.default_cases("robust", "median", "quantiles")
@pytest.mark.parametrize("name", WITHHELD)
def test_figures_that_would_be_a_guess_are_withheld_until_all_that_is_advised_is_given(name):
    ask, described, why = WITHHELD[name]
    one = study(20_000)
    found = ask(one.preview())
    assert re.search(f"Its noise is not stated: .*{why}", found.explain())
    assert "standard_error" not in found.explain()
    for figure in ("noise", "standard_error", "ratio"):
        with pytest.raises(ValueError, match="not stated"):
            getattr(found, figure)
    with pytest.raises(ValueError, match="not stated"):
        found.epsilon_for(0.5)
    # Whatever is left out of the description is asked for.
    for left_out in described:
        rest = {key: value for key, value in described.items() if key != left_out}
        assert f"{left_out}=" in ask(one.preview(**rest)).withheld
    known = ask(one.preview(**described))
    assert known.withheld is None
    assert np.all(known.noise > 0.0)
    assert "standard_error" in known.explain()


def test_a_standard_deviation_does_not_describe_responses_of_two_levels():
    found = WITHHELD["logistic"][0](study(20_000).preview(design=people(200), residual=0.4))
    assert "preview(residual=, the law of responses, Bernoulli(0.1) or Poisson(2.0))" in found.withheld
    assert found.hopeless is None


def test_previews_of_groups_are_of_sizes_that_were_said():
    one = study(4000)
    asked = one.preview().by("region")
    with pytest.raises(ValueError, match="give num_records= to by"):
        _ = asked.mean("age", epsilon=2).noise
    said = one.preview().by("region", num_records={"north": 3000, "south": 1000}).mean("age", epsilon=2)
    made = one.by("region", num_records={"north": 3000, "south": 1000}).mean("age", epsilon=2)
    np.testing.assert_allclose(said.noise.to_numpy().ravel(), np.ravel(made.noise), rtol=1e-12)
    assert said["north"].noise.index.tolist() == ["mean of age"]
    wanted = said.epsilon_for(0.5)
    sizes = {"north": 3000, "south": 1000}
    again = one.preview().by("region", num_records=sizes).mean("age", epsilon=wanted)
    np.testing.assert_allclose(again.ratio.max().max(), 0.5, rtol=0.03)
    # The noise of counts is exact, of any groups, and is that of ε/2 for one of them.
    counts = asked.histogram("ill", epsilon=1)
    np.testing.assert_allclose(counts.noise, 1.0 / (math.sqrt(2.0) * math.sinh(0.25)), rtol=1e-12)
    assert len(asked.linear_regression(LINE, epsilon=4).explain().splitlines()) > 3
