"""Curves drawn jointly: the law of the chain against sums over a grid, releases that name it, and who is refused."""

import numpy as np
import pytest

import kngjax as kng

LEVELS = [0.3, 0.7]
BOUNDS = kng.Bounds(y=(0.0, 1.0))
Y = np.linspace(0.02, 0.98, 60) ** 1.3
WIDTH, EPSILON = 0.1, 2.0


def process(**changes):
    given = {"levels": LEVELS, "bounds": BOUNDS, "domain": kng.Box(-0.5, 1.5), "epsilon": EPSILON}
    return kng.QuantileProcess(**given | {"adjacency": "add_remove", "order": "joint", "bandwidth": WIDTH} | changes)


@pytest.fixture(scope="module")
def drawn():
    asked = process()
    return asked.sample(asked.prepare(None, Y), key=kng.research_key(0), num_draws=900)


def scores(first, second, totals):
    """Σ_k |H_k - π_k T| of one coefficient, by its definition."""
    below = [1.0 / (1.0 + np.exp(-(theta - Y) / WIDTH)) for theta in (first, second)]
    sums = [np.sum(below[0]), np.sum(below[1] - below[0]), np.sum(1.0 - below[1])]
    return sum(abs(one - share * totals) for one, share in zip(sums, [0.3, 0.4, 0.3], strict=True))


def test_its_density_is_the_written_one_and_curves_do_not_cross():
    asked = process()
    data = asked.prepare(None, Y)
    here, there = (([[0.2], [0.7]], [55.0]), ([[0.3], [0.5]], [63.0]))
    found = asked.log_density(*map(np.array, here), data) - asked.log_density(*map(np.array, there), data)
    expected = -EPSILON / 2.0 * (scores(0.2, 0.7, 55.0) - scores(0.3, 0.5, 63.0))
    assert found == pytest.approx(expected, abs=1e-9)
    assert asked.log_density(np.array([[0.7], [0.2]]), np.array([55.0]), data) == -np.inf
    assert asked.log_density(np.array([[0.2], [1.6]]), np.array([55.0]), data) == -np.inf


@pytest.mark.slow
def test_the_chain_has_the_law_of_sums_over_a_grid(drawn):
    theta, totals = np.linspace(-0.5, 1.5, 161), np.linspace(40.0, 80.0, 81)
    below = 1.0 / (1.0 + np.exp(-(theta[:, None] - Y) / WIDTH))
    sums = np.sum(below, axis=1)
    parts = [sums[:, None], sums[None, :] - sums[:, None], len(Y) - sums[None, :]]
    weight, mean_total = 0.0, 0.0
    for total in totals:
        score = sum(np.abs(part - share * total) for part, share in zip(parts, [0.3, 0.4, 0.3], strict=True))
        mass = np.exp(-EPSILON / 2.0 * score) * (theta[:, None] <= theta[None, :])
        weight, mean_total = weight + mass, mean_total + total * np.sum(mass)
    total_mass = np.sum(weight)
    margins = [np.sum(weight, axis=1) / total_mass, np.sum(weight, axis=0) / total_mass]
    assert drawn.acceptance > 0.7
    for level, margin in enumerate(margins):
        mean = np.sum(margin * theta)
        deviation = np.sqrt(np.sum(margin * (theta - mean) ** 2))
        # Some 900 draws of a chain that stays at one in four proposals: about 500 independent ones.
        assert abs(np.mean(drawn.curves[:, level, 0]) - mean) < 4.0 * deviation / np.sqrt(500)
        assert np.std(drawn.curves[:, level, 0]) == pytest.approx(deviation, rel=0.15)
    assert abs(np.mean(drawn.totals) - mean_total / total_mass) < 4.0 * np.std(drawn.totals) / np.sqrt(500)
    assert np.all(np.diff(drawn.curves[:, :, 0], axis=1) >= 0.0)


def test_a_chain_is_named_and_not_called_proved(tmp_path):
    asked, chain = process(), kng.GradientSpace()
    careful = kng.Ledger.create(tmp_path / "one", kng.Budget.pure(9.0), adjacency="add_remove", dataset="made up")
    with pytest.raises(ValueError, match="halving"):
        kng.release(asked, None, Y, ledger=careful)
    with pytest.raises(kng.BudgetExceeded, match="nothing is proved"):
        kng.release(asked, None, Y, ledger=careful, sampler=chain)
    assert not careful.releases()
    certificate = asked.certify(None, Y, sampler=chain)
    assert certificate.assurance == "none"
    assert certificate.cost is None
    assert "Not proved: that this value" in certificate.explain()
    assert certificate.sampler["type"] == "GradientSpace"
    assert certificate.guarantee.epsilon == EPSILON
    assert len(certificate.rounding.exponents) == 3


@pytest.mark.slow
def test_a_release_of_a_chain_is_read_from_its_json():
    asked, chain = process(), kng.GradientSpace()
    made = kng.release(asked, None, Y, sampler=chain)
    assert made.certificate == asked.certify(None, Y, sampler=chain)
    assert "not proved" in repr(made)
    assert (made.value.shape, made.totals.shape) == ((2, 1), (1,))
    assert made.quantiles(np.zeros((1, 0)), 0.5).shape == (1,)
    again = kng.QuantileCurves.from_json(made.to_json())
    assert again == made
    np.testing.assert_array_equal(again.totals, made.totals)


def test_exact_draws_are_certified_as_proved():
    certificate = process().certify(None, Y, sampler=kng.Exact())
    assert (certificate.assurance, certificate.exact) == ("exact_in_reals", True)
    assert (certificate.guarantee.epsilon, certificate.cost.epsilon) == (EPSILON, EPSILON)
    assert certificate.unproved == ()


@pytest.mark.slow
def test_a_release_by_exact_draws_is_proved_and_a_ledger_takes_it(tmp_path):
    asked, exact = process(), kng.Exact()
    careful = kng.Ledger.create(
        tmp_path / "one", kng.Budget.approximate(9.0, 1e-5), adjacency="add_remove", dataset="a"
    )
    made = kng.release(asked, None, Y, ledger=careful, sampler=exact)
    certificate = made.certificate
    assert certificate == asked.certify(None, Y, sampler=exact)
    assert (certificate.assurance, certificate.exact) == ("exact_in_reals", True)
    assert (certificate.guarantee.epsilon, made.cost.epsilon) == (EPSILON, EPSILON)
    assert certificate.unproved == ()
    assert any("public limit" in line for line in certificate.assumptions)
    assert len(careful.releases()) == 1
    assert (made.value.shape, made.totals.shape) == ((2, 1), (1,))
    assert len(certificate.rounding.exponents) == 3


@pytest.mark.slow
def test_a_search_that_ends_without_a_draw_fails_without_a_cause():
    """Of few records on a vast domain the envelope has e^26 times the mass of the density."""
    hard = process(epsilon=1.0, domain=kng.Box(-1e9, 1e9))
    with pytest.raises(kng.ReleaseFailed) as failed:
        kng.release(hard, None, np.linspace(0.02, 0.98, 200) ** 1.3, sampler=kng.Exact(max_proposals=1))
    assert failed.value.__cause__ is None


REFUSED = {
    "another sampler": ({}, kng.NUTS(), TypeError, "GradientSpace"),
    "a number of records": ({}, kng.Exact(least_records=100), ValueError, "least_records"),
    "none": ({}, None, ValueError, "halving"),
    "no proposal": ({}, kng.GradientSpace(num_sweeps=0), ValueError, "num_sweeps"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_who_draws_otherwise_is_refused_before_a_value_is_looked_at(name):
    changes, sampler, error, words = REFUSED[name]
    with pytest.raises(error, match=words):
        kng.release(process(**changes), None, Y, sampler=sampler)


MAKES_NONE = {
    "bandwidth by halving": ({"order": "halving"}, "order='joint'"),
    "a number of records": ({"max_records": 100}, "max_records"),
    "no bandwidth": ({"bandwidth": None}, r"bandwidth is missing: .*public_bandwidth\(.*or take order='halving'"),
    "no width": ({"bandwidth": -1.0}, "bandwidth"),
    "a cone without interior": ({"bounds": kng.Bounds(x=([-1.0], [1.0]), intercept=False)}, "keep their order"),
}


@pytest.mark.parametrize(
    ("norm", "error", "words"),
    [("L2", TypeError, "norm"), (kng.WeightedLInf([1.0, 1.0]), ValueError, "one a coefficient")],
)
def test_a_norm_that_does_not_fit_is_refused_when_the_process_is_made(norm, error, words):
    with pytest.raises(error, match=words):
        process(norm=norm)


@pytest.mark.parametrize("name", MAKES_NONE)
def test_what_makes_no_joint_process_is_refused_in_words(name):
    changes, words = MAKES_NONE[name]
    with pytest.raises(ValueError, match=words):
        process(**changes)


def test_levels_that_are_little_but_noise_are_refused():
    with pytest.raises(ValueError, match="too few lie beyond"):
        process(adjacency="replace", epsilon=0.01).certify(None, Y, sampler=kng.GradientSpace())


def test_what_counts_as_little_but_noise_does_not_depend_on_the_units_of_the_norm():
    bounds = kng.Bounds(x=([-1.0], [1.0]), y=(0.0, 1.0))
    for adjacency, records in (("add_remove", 1.0), ("replace", 2.0)):
        # A coordinate of noise of the density exp(-c·max|v_j|) has the variance (d + 1)(d + 2)/(3c²).
        weights = np.array([0.3**2 * 2 + 0.7**2, 0.7**2 + 0.3**2 * 2])
        expected = 2.0 * records / EPSILON * np.sqrt(3.0 * 4.0 / 3.0) * np.sqrt(weights)
        for norm in (None, kng.LInf(), kng.WeightedLInf([0.1, 0.1]), kng.WeightedLInf([8.0, 8.0])):
            made = process(bounds=bounds, adjacency=adjacency, norm=norm)
            np.testing.assert_allclose(made._joint().noises, expected, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("records", [np.zeros(0), np.zeros(40), np.ones(40)], ids=["none", "at 0", "beyond the domain"])
def test_data_that_fit_badly_make_no_failure(records):
    made = kng.release(process(domain=kng.Box(0.4, 0.6)), None, records, sampler=kng.GradientSpace(num_sweeps=20))
    assert (made.value.shape, made.totals.shape) == ((2, 1), (1,))
    assert np.all((made.value >= 0.4) & (made.value <= 0.6))
    assert np.all(np.isfinite(made.totals))


def test_halving_has_neither_totals_nor_research_draws():
    asked = process(order="halving", bandwidth=None, epsilon=20.0, adjacency="replace")
    with pytest.raises(ValueError, match="joint"):
        asked.prepare(None, Y)
    with pytest.raises(AttributeError, match="joint"):
        _ = kng.release(asked, None, Y).totals
