"""KNG with smooth losses of many coefficients: the law of draws beside quadrature, and what one record changes."""

import random
from unittest import mock

import numpy as np
import pytest

import kngjax as kng
from kngjax.chains.exact.exact import Exact
from kngjax.draws import shell_draws
from kngjax.draws.choice import proved_draw
from kngjax.draws.shell_draws import ShellDraw
from kngjax.draws.shells import shell_search, shells
from kngjax.draws.shells.shell_records import ShellRecords
from tests.oracles.goodness_of_fit import assert_cell_frequencies, assert_two_samples_agree
from tests.oracles.shell_problems import LOSSES, gradients, log_density, moderate, parts, problem, scores


def drawn_by(mechanism, x, y, number, seed):
    """As `draw` makes them, from one envelope: it is a function of the records alone."""
    way, records, own = parts(mechanism, x, y)
    envelope, bits = way.envelope(records), random.Random(seed).getrandbits
    return way, np.array([way.grid.values(shell_search.draw(own, envelope, way.grid, bits)) for _ in range(number)])


def chances_of_cells(mechanism, loss, x, y, unit, low, high):
    """P(k) for low ≤ k < high with one coefficient, by Gauss and Legendre's rule of four nodes in two parts of each."""
    nodes, weights = np.polynomial.legendre.leggauss(4)
    radius = float(mechanism.domain.radius)
    edges = np.clip(np.linspace(low - 0.5, high - 0.5, 2 * (high - low) + 1) * unit, -radius, radius)
    middles, half = (edges[1:] + edges[:-1]) / 2, (edges[1:] - edges[:-1]) / 2
    places = (middles[:, None] + half[:, None] * nodes).reshape(-1, 1)
    values = np.concatenate([log_density(mechanism, loss, x, y, part) for part in np.array_split(places, 100)])
    masses = (np.exp(values - values.max()).reshape(-1, 4) @ weights * half).reshape(-1, 2).sum(axis=1)
    return masses / masses.sum()


def check_one_coefficient(loss, n, epsilon, radius, number, monkeypatch, digits):
    mechanism, x, y = problem(n, 1, moderate(loss, epsilon), domain=kng.L1Ball(radius), skew=0.1, loss=loss)
    monkeypatch.setattr(shell_draws, "_DIGITS", digits)
    way, drawn = drawn_by(mechanism, x, y, number, n)
    unit = 2.0 ** way.grid.exponents[0]
    places = drawn[:, 0] / unit
    np.testing.assert_array_equal(places, np.round(places))
    reach = int(np.ceil(radius / unit)) + 1
    chances = chances_of_cells(mechanism, loss, x, y, unit, -reach, reach + 1)
    counts = np.array([np.sum(places == k) for k in range(-reach, reach + 1)])
    assert counts.sum() == number
    # Several cells tell the law.
    assert np.sum(counts > 20) > 4
    assert_cell_frequencies(counts, chances)


# By shells and solutions; where the domain's end cuts the law; and nearly uniform on the domain with few records.
ONE = [(150, 10.0, 3.0, 0), (150, 10.0, 0.54, 0), (8, 1.0, 0.125, 3)]
RADII = {("Poisson", 3.0): 1.0, ("logistic", 0.54): 0.74, ("quantile", 0.54): 0.58}
OTHERS = [loss for loss in LOSSES if loss != "pseudo-Huber"]


@pytest.mark.parametrize(("n", "epsilon", "radius", "digits"), ONE[1:2])
def test_draws_of_one_coefficient_have_the_law_by_quadrature(n, epsilon, radius, digits, monkeypatch):
    check_one_coefficient("pseudo-Huber", n, epsilon, radius, 300, monkeypatch, digits)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "epsilon", "radius", "digits"), ONE)
def test_many_draws_of_one_coefficient_have_the_law_by_quadrature(n, epsilon, radius, digits, monkeypatch):
    check_one_coefficient("pseudo-Huber", n, epsilon, radius, 2500, monkeypatch, digits)


def check_eighths(loss, n, epsilon, radius, number):
    """Between the eighths of the law: cells of the grid are much finer."""
    radius = RADII.get((loss, radius), radius)
    mechanism, x, y = problem(n, 1, moderate(loss, epsilon), domain=kng.L1Ball(radius), skew=0.1, loss=loss)
    _, drawn = drawn_by(mechanism, x, y, number, n)
    places = (np.arange(40_000) + 0.5) / 20_000 * radius - radius
    values = np.concatenate([log_density(mechanism, loss, x, y, part[:, None]) for part in np.array_split(places, 100)])
    sums = np.cumsum(np.exp(values - values.max()))
    eighths = np.interp(np.arange(1, 8) / 8 * sums[-1], sums, places + radius / 40_000)
    counts = np.bincount(np.searchsorted(eighths, drawn[:, 0]), minlength=8)
    assert_cell_frequencies(counts, np.full(8, 0.125))


@pytest.mark.parametrize(
    ("n", "epsilon", "radius", "digits", "loss"), [(*ONE[0], "logistic"), (*ONE[0], "quantile"), (*ONE[0], "Poisson")]
)
def test_draws_of_other_losses_have_the_law_by_quadrature(n, epsilon, radius, digits, loss):
    check_eighths(loss, n, epsilon, radius, 160)


@pytest.mark.slow
@pytest.mark.parametrize("loss", OTHERS)
@pytest.mark.parametrize(("n", "epsilon", "radius", "digits"), ONE)
def test_many_draws_of_other_losses_have_the_law_by_quadrature(n, epsilon, radius, digits, loss):
    check_eighths(loss, n, epsilon, radius, 2000)


def weighted_points(middles, widths, bounds, number):
    """A product of Gauss and Legendre's rules about these middles, within the box of the bounds."""
    nodes, weights = np.polynomial.legendre.leggauss(number)
    sides = [(max(m - w, low), min(m + w, high)) for m, w, (low, high) in zip(middles, widths, bounds, strict=True)]
    places = [(low + high) / 2 + (high - low) / 2 * nodes for low, high in sides]
    return np.stack(np.meshgrid(*places, indexing="ij"), axis=-1).reshape(-1, 2), np.outer(weights, weights).ravel()


def check_two_coefficients(loss, sides, number, n=600, epsilon=10.5):
    """In 9 cells between terciles."""
    domain = kng.Box([low for low, _ in sides], [high for _, high in sides])
    mechanism, x, y = problem(n, 2, moderate(loss, epsilon), skew=0.2, domain=domain, loss=loss)
    _, drawn = drawn_by(mechanism, x, y, number, 5)
    ends = np.array(sides)
    assert np.all((drawn >= ends[:, 0] - 1e-3) & (drawn <= ends[:, 1] + 1e-3))
    # Cells that cut between nodes are summed to about one part in as many, and chi-square grows with its square.
    nodes = 100 if number < 1000 else 600
    points, weights = weighted_points(drawn.mean(axis=0), 10.0 * drawn.std(axis=0), sides, nodes)
    values = np.concatenate([log_density(mechanism, loss, x, y, part) for part in np.array_split(points, 100)])
    masses = np.exp(values - values.max()) * weights
    # Quantiles of what is drawn: they take four of eight degrees of freedom at most.
    thirds = np.quantile(drawn, [1 / 3, 2 / 3], axis=0)

    def cells(thetas):
        return 3 * np.digitize(thetas[:, 0], thirds[:, 0]) + np.digitize(thetas[:, 1], thirds[:, 1])

    chances = np.bincount(cells(points), masses, minlength=9) / masses.sum()
    assert_cell_frequencies(np.bincount(cells(drawn), minlength=9), chances)


WIDE, CUT = ((-1.5, 1.5), (-1.5, 1.5)), ((-1.5, 0.318), (-1.5, 1.5))
TWO = [(loss, WIDE) for loss in LOSSES] + [("pseudo-Huber", CUT), ("logistic", ((-1.5, 0.37), (-1.5, 1.5)))]


@pytest.mark.parametrize(("loss", "sides"), [TWO[4]])
def test_two_coefficients_have_the_law_by_quadrature(loss, sides):
    check_two_coefficients(loss, sides, 250)


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "sides"), TWO)
def test_many_draws_of_two_coefficients_have_the_law_by_quadrature(loss, sides):
    check_two_coefficients(loss, sides, 2500)


@pytest.mark.slow
@pytest.mark.parametrize("enough", [np.inf, -np.inf], ids=["worst records", "fourth moments"])
@pytest.mark.parametrize(("loss", "side", "n"), [("pseudo-Huber", 100.0, 120), ("logistic", 30.0, 60)])
def test_many_draws_of_a_wide_domain_have_the_law_by_quadrature(loss, side, n, enough, monkeypatch):
    """Where most proposals are refused at once: one in seventy is accepted, or one in two with fourth moments."""
    monkeypatch.setattr(shell_draws, "_ENOUGH_LOG_EXCESS", enough)
    check_two_coefficients(loss, ((-side, side), (-side, side)), 1500, n, 3.0)


CASES = [
    ("pseudo-Huber", 3, kng.L1()),
    ("quantile", 3, kng.L2()),
    ("logistic", 5, None),
    ("Poisson", 5, None),
    ("pseudo-Huber", 5, None),
    ("quantile", 5, None),
]


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "d", "norm"), CASES)
def test_draws_agree_with_those_of_float64(loss, d, norm):
    epsilon = min(moderate(loss, 40.0 * d * d / 25.0), 100.0)
    side = 0.6 if loss == "Poisson" else 2.0
    mechanism, x, y = problem(3000, d, epsilon, norm=norm, skew=0.1, domain=kng.Box([-side] * d, [side] * d), loss=loss)
    # Together they tell laws apart as 120 of these and 2000 of the others do, whose draws cost most.
    _, drawn = drawn_by(mechanism, x, y, 140, d)
    others = np.asarray(
        kng.sample(mechanism, mechanism.prepare(x, y), sampler=Exact(), num_draws=850, key=kng.research_key(d)).theta
    )
    others = others.reshape(-1, d)
    for axis in range(d):
        assert_two_samples_agree(drawn[:, axis], others[:, axis])
    assert_two_samples_agree(*(np.linalg.norm(gradients(loss, x, y, one), axis=1) for one in (drawn, others)))


@pytest.mark.parametrize("loss", LOSSES)
def test_releases_of_five_coefficients_are_drawn_so(loss):
    mechanism, x, y = problem(24_000, 5, 50.0, domain=kng.L2Ball(0.8 if loss == "Poisson" else 3.0), loss=loss)
    way = proved_draw(mechanism, mechanism.intake.check_schema(x, y))
    assert isinstance(way, ShellDraw)
    certificate = kng.certify(mechanism, x, y)
    assert (certificate.assurance, certificate.rounding) == ("proved", None)
    assert certificate.sampler == way.settings
    assert certificate.sampler["type"] == "ShellDraw"


def test_which_releases_take_it_is_public():
    def way(n, d, epsilon, loss="logistic", **changes):
        mechanism, x, y = problem(n, d, epsilon, loss=loss, **changes)
        return ShellDraw.of(mechanism, mechanism.intake.check_schema(x, y))

    assert way(1500, 1, 1.0) is not None
    assert way(1499, 1, 1.0) is None
    assert way(600, 2, 10.0) is not None
    assert way(10, 3, 0.1) is not None
    assert way(600, 2, 10.0, norm=kng.Ellipsoid(np.eye(2))) is None
    mechanism, x, y = problem(3000, 1, 1.0)
    hidden = kng.KNG(mechanism.loss, mechanism.bounds, mechanism.domain, 1.0, "add_remove")
    assert ShellDraw.of(hidden, hidden.intake.check_schema(x, y)) is None
    # Few coefficients are drawn by boxes, which end where the estimate lies outside of Θ too, and five as before.
    for dimension in (3, 4):
        many, *data = problem(24_000, dimension, 1.0, loss="logistic")
        assert proved_draw(many, many.intake.check_schema(*data)).settings["type"] == "BoxDraw"
    assert proved_draw(mechanism, mechanism.intake.check_schema(x, y)).settings["type"] == "BoxDraw"
    mechanism, x, y = problem(37_500, 5, 1.0, loss="logistic")
    assert proved_draw(mechanism, mechanism.intake.check_schema(x, y)).settings["type"] == "ShellDraw"
    hidden = kng.KNG(mechanism.loss, mechanism.bounds, mechanism.domain, 1.0, "add_remove")
    assert proved_draw(hidden, hidden.intake.check_schema(x, y)) is None
    for loss in (kng.HuberLoss(0.3), kng.SmoothedQuantileLoss(0.5, 0.3, kernel="gaussian"), kng.QuantileLoss(0.5)):
        other = kng.KNG(loss, mechanism.bounds, mechanism.domain, 1.0, "replace")
        assert ShellDraw.of(other, other.intake.check_schema(x, y)) is None


@pytest.mark.parametrize("loss", [kng.PseudoHuberLoss(0.01), kng.SmoothedQuantileLoss(0.5, 0.01)])
def test_how_wide_responses_may_be_does_not_enter(loss):
    """However narrowly a loss bends beside their bounds, and beside the width of Θ."""
    bounds = kng.Bounds(x=([-1.0] * 5, [1.0] * 5), y=(-100.0, 100.0), intercept=False)
    mechanism = kng.KNG(loss, bounds, kng.L1Ball(500.0), 1.0, "replace")
    for count, serves in ((37_500, True), (37_499, False)):
        facts = mechanism.intake.check_schema(np.zeros((count, 5)), np.zeros(count))
        assert (ShellDraw.of(mechanism, facts) is not None) is serves


def rows(count, dimension=5):
    return np.zeros((count, dimension)), np.zeros(count)


def asked(adjacency, count, loss=None, **promised):
    bounds = kng.Bounds(x=([-1.0] * 5, [1.0] * 5), intercept=False)
    mechanism = kng.KNG(loss or kng.LogisticLoss(), bounds, kng.L1Ball(5.0), 1.0, adjacency)
    return kng.certify(mechanism, *rows(count), sampler=kng.draws.Shells(**promised))


def test_promises_serve_where_public_facts_do_not_and_stand_in_the_certificate():
    """A column that is not rare: 100·d² in the place of 1500·d²; and a number of records under add_remove."""
    assert asked("replace", 37_500).sampler["type"] == "ShellDraw"
    certificate = asked("replace", 2500, is_even=True)
    assert (certificate.assurance, certificate.sampler["is_even"]) == ("proved", True)
    assert "no column is rare" in certificate.explain()
    assert "costs time, and no privacy" in certificate.explain()
    for count, promised in ((7, {"least_records": 37_500}), (10**6, {"least_records": 2500, "is_even": True})):
        certificate = asked("add_remove", count, **promised)
        assert {**certificate.sampler, **promised} == certificate.sampler
        assert f"at least {promised['least_records']} records" in certificate.explain()
    # Under replace n is public, and a larger number is not believed.
    for count, promised in ((37_499, {"least_records": 10**9}), (2499, {"is_even": True})):
        with pytest.raises(ValueError, match="too few records"):
            asked("replace", count, **promised)


@pytest.mark.parametrize(
    ("adjacency", "count", "first", "advised"),
    [
        ("add_remove", 9, {}, {"least_records": 37_500}),
        ("add_remove", 9, {"least_records": 2500}, {"least_records": 2500, "is_even": True}),
        ("replace", 2500, {}, {"is_even": True}),
    ],
)
def test_advice_can_be_followed_word_for_word(adjacency, count, first, advised):
    with pytest.raises(ValueError, match="too few records") as refused:
        asked(adjacency, count, **first)
    arguments = ", ".join(f"{name}={value}" for name, value in advised.items())
    assert f"sampler=kngjax.draws.Shells({arguments})" in str(refused.value)
    assert asked(adjacency, count, **advised).assurance == "proved"


@pytest.mark.parametrize("loss", [kng.HuberLoss(0.3), kng.SmoothedQuantileLoss(0.5, 0.3, kernel="gaussian")])
def test_other_losses_are_refused_whatever_is_promised(loss):
    with pytest.raises(ValueError, match="leave the sampler out"):
        asked("replace", 10**6, loss, is_even=True)


@pytest.mark.parametrize("settings", [{"least_records": True}, {"least_records": 0}, {"is_even": 1}])
def test_promises_are_of_their_types(settings):
    with pytest.raises((ValueError, TypeError), match=next(iter(settings))):
        kng.draws.Shells(**settings)


def test_research_draws_take_no_promise():
    mechanism, x, y = problem(40, 5, 1.0, loss="logistic")
    with pytest.raises(ValueError, match="release alone"):
        kng.sample(mechanism, mechanism.prepare(x, y), sampler=kng.draws.Shells(), num_draws=2, key=kng.research_key(0))


@pytest.mark.parametrize("count", [0, 1, 12])
def test_records_that_may_be_added_or_removed_end_in_values_of_the_domain(count):
    """Of fewer than was promised too: it costs time, and Θ is so small here that all of it can be tried."""
    bounds = kng.Bounds(x=(np.full(5, -0.3), np.full(5, 0.7)), intercept=False)
    mechanism = kng.KNG(kng.LogisticLoss(), bounds, kng.L2Ball(0.3), 5.0, "add_remove")
    generator = np.random.default_rng(4)
    x, y = generator.uniform(-0.3, 0.7, (count, 5)), (generator.uniform(size=count) < 0.4) * 1.0
    facts = mechanism.intake.check_schema(np.ones((9, 5)), np.ones(9))
    way = ShellDraw.requested(mechanism, kng.draws.Shells(least_records=10_000), facts)
    value = way.draw_alone(
        way.prepare(x, y) if count else ShellRecords.of(x, y, way.score), random.Random(1).getrandbits
    )
    assert np.linalg.norm(value) <= 0.3 + 1e-9


def test_poisson_regressions_of_large_counts_take_more_records():
    """From as many times more as the largest score is above 2."""

    def way(count, most):
        bounds = kng.Bounds(x=([-1.0] * 5, [1.0] * 5), y=(0.0, most), intercept=False)
        mechanism = kng.KNG(kng.PoissonLoss(), bounds, kng.L1Ball(0.5), 1.0, "replace")
        return ShellDraw.of(mechanism, mechanism.intake.check_schema(np.zeros((count, 5)), np.zeros(count)))

    # e^.5 is the largest score of y = 0, and 10 - e^-.5 that of y = 10.
    assert way(37_500, 1.0) is not None
    assert way(37_499, 1.0) is None
    least = int(37_500 * (10.0 - np.exp(-0.5)) / 2.0)
    assert way(least + 1, 10.0) is not None
    assert way(least, 10.0) is None


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_no_neighbours_are_told_apart_by_more_than_epsilon_and_some_nearly_by_that(loss, epsilon):
    """Records with the extreme scores at the ends of Θ: the exponents differ by ε/2 at most, and nearly."""
    bounds = kng.Bounds(x=([-1.0], [1.0]), y=(0.0, 5.0) if loss == "Poisson" else None, intercept=False)
    domain = kng.Box([-1.0], [2.0])
    mechanism = kng.KNG(LOSSES[loss], bounds, domain, epsilon, "replace")
    ends = {"logistic": (0.0, 1.0), "Poisson": (0.0, 5.0)}.get(loss, (-1e9, 1e9))
    with mock.patch.object(shells, "GRADIENTS_UNASKED", 0):
        way = ShellDraw.of(mechanism, mechanism.intake.check_schema(np.ones((10**6, 1)), np.zeros(10**6)))
    assert way is not None
    (scale,) = (float(one) for one in way.noise.ball_scales)
    changes = [
        abs(scores(loss, sign * theta, y) * sign - scores(loss, other * theta, z) * other)
        for theta in (-1.0, 2.0)
        for sign in (-1.0, 1.0)
        for other in (-1.0, 1.0)
        for y in ends
        for z in ends
    ]
    loss_of_privacy = 2.0 * max(changes) / scale
    # A score of one sign goes with some responses, which the sensitivity does not use.
    least = 0.45 if loss in ("logistic", "Poisson") else 0.9
    assert least * epsilon < loss_of_privacy <= epsilon * (1.0 + 1e-12)


def hard_records(kind, n, d, loss, generator):
    x = generator.uniform(-1.0, 1.0, (n, d))
    if kind == "zeros":
        x[:, 1] = 0.0
    elif kind == "collinear":
        x[:, 1] = x[:, 0]
    elif kind == "nearly collinear":
        x[:, 1] = np.clip(x[:, 0] * (1.0 + 1e-14), -1.0, 1.0)
    elif kind == "all zeros":
        x[:] = 0.0
    y = generator.uniform(size=n) < 0.5 if loss == "logistic" else np.round(generator.uniform(0.0, 2.0, n))
    if kind == "separable" and loss == "logistic":
        y = x[:, 0] > 0.0
    if kind == "huge" and loss in ("pseudo-Huber", "quantile"):
        return x, np.where(y > 0.5, 1e300, -1e300)
    return x, y * 1.0


@pytest.mark.default_cases(12)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", ["zeros", "collinear", "nearly collinear", "all zeros", "separable", "huge"])
def test_records_of_all_kinds_end_in_a_value_of_the_domain(kind, loss, monkeypatch):
    """Where Θ is so small that all of it can be tried."""
    monkeypatch.setattr(shells, "GRADIENTS_UNASKED", 0)
    generator = np.random.default_rng(11)
    x, y = hard_records(kind, 60, 5, loss, generator)
    bounds = kng.Bounds(x=([-1.0] * 5, [1.0] * 5), y=(0.0, 2.0) if loss == "Poisson" else None, intercept=False)
    mechanism = kng.KNG(LOSSES[loss], bounds, kng.L2Ball(0.3), 0.3, "replace")
    way = ShellDraw.of(mechanism, mechanism.intake.check_schema(x, y))
    assert way is not None
    data = way.prepare(x, y)
    for seed in range(2):
        assert np.linalg.norm(way.draw(data, random.Random(seed).getrandbits)) <= 0.3 + 1e-6
