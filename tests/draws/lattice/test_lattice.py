"""Lattice releases: scores by brute force, exact laws, the audit, and what a release says."""

import math
import random
import threading
from fractions import Fraction

import equinox as eqx
import jax
import numpy as np
import pytest

import kngjax as kng
from audits.lattices import lattice_law, lattice_loss
from kngjax.core.balls import precision
from kngjax.draws.lattice import lattice, units
from tests.draws.lattice import problems
from tests.oracles.goodness_of_fit import assert_cell_frequencies

BOUNDS, BALL = kng.Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0)), kng.L1Ball(1.0)
# Spacings 2^-4 of the records, and of θ 2^(1 - 4) in the ball of width 2.
COARSE = kng.draws.Lattice(data_digits=4, theta_digits=4)
SPACING = Fraction(1, 16)


def some_records(seed, num_records=7):
    generator = np.random.default_rng(seed)
    return generator.uniform(-1, 1, (num_records, 1)), generator.uniform(-1, 1, num_records)


def exact_records(x, y, response_spacing):
    rows = [[Fraction(1), problems.to_lattice(value, SPACING)] for value in x[:, 0]]
    return rows, [problems.to_lattice(value, response_spacing) for value in y]


def mechanism(loss, kind=kng.KNG, epsilon=1.0, adjacency="replace", **parts):
    return kind(loss, BOUNDS, BALL, epsilon, adjacency, **parts)


def brute_force(case, x, y):
    """The scores over their sensitivities, by fractions, and the points."""
    thetas = list(problems.points_of_l1_ball(Fraction(1), Fraction(1, 8), 2))
    # Responses of the quantile loss lie on the lattice of predictors, 2^-3·2^-4, others on that of features.
    rows, responses = exact_records(x, y, Fraction(1, 128) if "quantile" in case else SPACING)
    tau = Fraction(3, 10)
    score = {
        # |x_j| ≤ 1 and scores in [-.3, .7]: the intercept moves by 1, the slope by 1.4.
        "quantile": lambda theta: max(
            abs(g) / w
            for g, w in zip(problems.quantile_gradient(rows, responses, tau, theta), (1, Fraction(7, 5)), strict=True)
        ),
        # One record's loss lies in [0, .7·2].
        "quantile value": lambda theta: problems.quantile_value(rows, responses, tau, theta) / Fraction(7, 5),
        # x'θ - y lies in [-2, 2].
        "squared": lambda theta: max(abs(g) for g in problems.squared_gradient(rows, responses, theta)) / 4,
        "squared value": lambda theta: problems.squared_value(rows, responses, theta) / 2,
        # The l1 norm of a change: both entries move by at most 4 together.
        "squared l1": lambda theta: sum(abs(g) for g in problems.squared_gradient(rows, responses, theta)) / 8,
        # Their length by √32.
        "squared l2": lambda theta: math.sqrt(
            sum(g**2 for g in problems.squared_gradient(rows, responses, theta)) / 32
        ),
    }[case]
    return [[float(coordinate) for coordinate in theta] for theta in thetas], [score(theta) for theta in thetas]


CASES = {
    "quantile": mechanism(kng.QuantileLoss(0.3)),
    "quantile value": mechanism(kng.QuantileLoss(0.3), kng.ExponentialMechanism),
    "squared": mechanism(kng.SquaredLoss()),
    "squared value": mechanism(kng.SquaredLoss(), kng.ExponentialMechanism),
    "squared l1": mechanism(kng.SquaredLoss(), norm=kng.L1()),
    "squared l2": mechanism(kng.SquaredLoss(), norm=kng.L2()),
}


@pytest.mark.parametrize("case", list(CASES))
def test_scores_are_those_of_fractions_rounded_down(case):
    for seed in range(2):
        x, y = some_records(seed)
        law = lattice_law(CASES[case], CASES[case].intake.records(x, y), COARSE)
        thetas, scores = brute_force(case, x, y)
        np.testing.assert_array_equal(law.theta, thetas)
        # Sensitivities are enlarged by about 2^-30, so a score that is a whole level falls to the one below.
        levels = np.array([math.floor(4096 * score) for score in scores])
        assert np.all(np.isin(levels - law.scores, [0, 1]))


@pytest.mark.parametrize(
    ("case", "draws"),
    [("squared", 300), ("quantile value", 300), *(pytest.param(case, 3000, marks=pytest.mark.slow) for case in CASES)],
)
def test_draws_have_the_probabilities_of_brute_force(case, draws):
    x, y = some_records(11)
    # So large an epsilon that 300 draws tell its law from those of half of it and of twice as much.
    asked = eqx.tree_at(lambda made: made.epsilon, CASES[case], np.asarray(16.0))
    problem = COARSE.problem(asked, asked.intake.records(x, y))
    envelope = COARSE.envelope(problem)
    bits = random.Random(3).getrandbits
    thetas, scores = brute_force(case, x, y)
    place = {tuple(theta): number for number, theta in enumerate(thetas)}
    expected = problems.probabilities(scores, Fraction(8))
    cells = np.arange(len(thetas)) if draws > 1000 else eighths_of_scores(expected, np.array(thetas)[:, 0] > 0.0)
    counts = np.zeros(len(thetas))
    for _ in range(draws):
        counts[cells[place[tuple(problem.domain.values(envelope.draw(bits)))]]] += 1
    assert_cell_frequencies(counts, np.bincount(cells, expected, len(thetas)))


def eighths_of_scores(chances, on_the_right):
    """Cells of an eighth of all points each, those of the lowest scores first, on either side: for few draws."""
    order = np.argsort(np.argsort(-chances))
    return 8 * order // len(order) + 8 * on_the_right


def worst(mechanism, pairs, sampler):
    """The largest loss of these pairs of neighbours, enclosed."""
    losses = []
    for first, second in pairs:
        laws = [lattice_law(mechanism, mechanism.intake.records(*records), sampler) for records in (first, second)]
        losses.append(lattice_loss(*laws))
    return max(low for low, _ in losses), max(high for _, high in losses)


def quantile_pairs(tau):
    """One number more or fewer on the right; all others in two heaps, with a wide gap where the quantile lies."""
    for left in range(1, 9):
        for right in range(1, 9):
            y = np.concatenate([np.full(left, -0.96875), np.full(right, 0.90625), [-1.0]])
            moved = y.copy()
            moved[-1] = 1.0
            yield (None, y), (None, moved)


@pytest.mark.slow
@pytest.mark.parametrize("tau", [0.5, 0.9])
def test_the_loss_of_quantiles_is_nearly_epsilon_and_never_more(tau):
    median = kng.KNG(kng.QuantileLoss(tau), kng.Bounds(y=(-1.0, 1.0)), kng.Box(-1.0, 1.0), 1.0, "replace")
    low, high = worst(median, quantile_pairs(tau), kng.draws.Lattice(data_digits=5, theta_digits=5))
    assert 0.9 < low <= high <= 1.0


@pytest.mark.slow
def test_one_record_more_moves_a_value_by_what_its_rate_allows():
    """Half the range is its sensitivity, since constants cancel; but rounded down they cancel only to a level."""
    value = mechanism(kng.SquaredLoss(), kng.ExponentialMechanism, adjacency="add_remove")
    sampler, worst_range = kng.draws.Lattice(data_digits=4, theta_digits=4, max_records=64), 0
    for seed in range(6):
        x, y = np.sign(some_records(seed)[0]), np.sign(some_records(seed)[1])
        for extra_x, extra_y in ((1.0, 1.0), (1.0, -1.0), (-1.0, 1.0)):
            more = value.intake.records(np.append(x, [[extra_x]], axis=0), np.append(y, extra_y))
            laws = lattice_law(value, value.intake.records(x, y), sampler), lattice_law(value, more, sampler)
            change = laws[1].scores - laws[0].scores
            worst_range = max(worst_range, int(change.max() - change.min()))
            assert lattice_loss(*laws)[1] <= 1.0
    assert worst_range * value.epsilon / (2 * 4096 + 1) <= 1.0
    assert 2 * 4096 - 1 <= worst_range <= 2 * 4096 + 1


@pytest.mark.parametrize("size", [1e-200, 1e-61, 1e61, 1e200])
def test_sizes_that_float64_cannot_square_are_refused(size):
    """A sensitivity that underflows would take all noise away."""
    with pytest.raises(ValueError, match="rescale the columns"):
        kng.Bounds(x=(-size, size), y=(-1.0, 1.0))
    for domain in (kng.L1Ball, kng.L2Ball, lambda radius: kng.Box(-radius, radius)):
        with pytest.raises(ValueError, match="rescale the columns"):
            domain(size)


def test_the_reach_of_a_ball_neither_under_nor_overflows():
    for size in (1e-200, 1.0, 1e200):
        with jax.enable_x64(True):
            _, reach = kng.L2Ball(2.0).linear_interval(np.full(2, -size), np.full(2, size))
            reach = np.asarray(reach)
        np.testing.assert_allclose(reach / size, 2 * np.sqrt(2.0), rtol=1e-12)


def test_a_level_with_too_many_decimals_is_left_to_real_numbers():
    values = np.random.default_rng(0).uniform(size=50)
    third = kng.PrivateQuantile(1 / 3, kng.Bounds(y=(0.0, 1.0)), 1.0, "replace")
    assert kng.certify(third, None, values).assurance == "in_reals"


def test_a_bound_that_does_not_hold_stops_the_draw(monkeypatch):
    x, y = some_records(0)
    problem = COARSE.problem(CASES["squared"], CASES["squared"].intake.records(x, y))
    envelope = COARSE.envelope(problem)
    monkeypatch.setattr(type(problem.score), "at", lambda *arguments: -1)
    with pytest.raises(AssertionError, match="does not hold"):
        envelope.draw(random.Random(0).getrandbits)


def test_more_records_than_promised_fail_under_add_remove_alone():
    x, y = some_records(0)
    few = kng.draws.Lattice(max_records=5)
    median = mechanism(kng.QuantileLoss(0.5), adjacency="add_remove")
    with pytest.raises(RuntimeError, match="more records than max_records"):
        few.draw(median, median.intake.records(x, y))
    for served in (CASES["quantile"], mechanism(kng.SquaredLoss(), adjacency="add_remove")):
        assert np.all(np.isfinite(few.draw(served, served.intake.records(x, y))))


@pytest.mark.slow
@pytest.mark.parametrize("num_kinds", [1, 2, 5])
def test_ties_are_counted_and_need_no_more_boxes_than_records_that_differ(num_kinds):
    """Bounds for each record by itself would let ties cancel on every line that they jump at together."""
    kinds, times = some_records(3, num_kinds), 400 // num_kinds
    x, y = np.tile(kinds[0], (times, 1)), np.tile(kinds[1], times)
    for case in ("quantile", "quantile value"):
        law = lattice_law(CASES[case], CASES[case].intake.records(x, y), COARSE)
        _, scores = brute_force(case, x, y)
        assert np.all(np.isin([math.floor(4096 * score) for score in scores] - law.scores, [0, 1]))
    sampler = kng.draws.Lattice()
    for tied in (CASES["quantile"], mechanism(kng.QuantileLoss(0.3), epsilon=20.0)):
        envelope = sampler.envelope(sampler.problem(tied, tied.intake.records(x, y)))
        assert sum(len(members) for members in envelope._members) < 2000
        assert envelope.draw(random.Random(0).getrandbits).shape == (2,)


def test_digits_that_float64_has_not_are_refused():
    for digits in (0, 51, 63, 2.5):
        for name in ("data_digits", "theta_digits"):
            with pytest.raises((ValueError, TypeError)):
                kng.draws.Lattice(**{name: digits})
    with pytest.raises(OverflowError, match="fewer data_digits"):
        units.on_lattice([1.0], -63)
    # As many as there are: a record changes the score by at most one sensitivity.
    least_squares = mechanism(kng.SquaredLoss())
    x, y = some_records(2, 50)
    most = kng.draws.Lattice(data_digits=50, theta_digits=5)
    other = x.copy()
    other[0] = -np.sign(other[0])
    scores = [lattice_law(least_squares, least_squares.intake.records(rows, y), most).scores for rows in (x, other)]
    assert 0 < np.max(np.abs(scores[0] - scores[1])) <= 4096


def test_other_threads_compute_in_balls_while_records_are_read(monkeypatch):
    """A release by a lattice may take long, and its own threads must not wait for it."""
    waiting, scored = [], lattice.score_of

    def with_digits():
        with precision(64):
            pass

    def score_of(*given):
        other = threading.Thread(target=with_digits, daemon=True)
        other.start()
        other.join(10.0)
        waiting.append(other.is_alive())
        return scored(*given)

    monkeypatch.setattr(lattice, "score_of", score_of)
    bounds = kng.Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0), columns=1)
    kng.release(kng.KNG(kng.QuantileLoss(0.5), bounds, BALL, 1.0, "replace"), *some_records(0))
    assert waiting == [False]
