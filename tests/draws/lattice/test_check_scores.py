"""Bounds of check scores on boxes and on rays: beside the score at every lattice point, in whole numbers."""

import itertools
import math

import numpy as np
import pytest

import kngjax as kng
from kngjax.draws.lattice import check_records, surroundings
from kngjax.draws.lattice.cone_scores import ConeScore
from kngjax.draws.lattice.envelope import LatticeEnvelope
from kngjax.draws.lattice.lattice import Problem
from kngjax.draws.lattice.scores import RESOLUTION, WEIGHT_UNITS

TWO = kng.Bounds(x=([-0.4], [1.0]), y=(-1.0, 1.0))
THREE = kng.Bounds(x=([-0.4, 0.1], [1.0, 0.9]), y=(-1.0, 1.0))
LOSS = kng.QuantileLoss(0.3)
# So large an epsilon that the law is narrow, and most of Θ lies beyond its core.
MECHANISMS = {
    "box": kng.KNG(LOSS, TWO, kng.Box(-1.0, 1.0), 100.0, "replace"),
    "l1 ball, l1": kng.KNG(kng.QuantileLoss(0.5), TWO, kng.L1Ball(1.0), 100.0, "add_remove", norm=kng.L1()),
    "l2 ball, linf": kng.KNG(LOSS, TWO, kng.L2Ball(1.0), 40.0, "replace", norm=kng.LInf()),
    "box, l1": kng.KNG(kng.QuantileLoss(0.8), TWO, kng.Box(-1.0, 0.7), 10.0, "replace", norm=kng.L1()),
    "box, l2": kng.KNG(LOSS, TWO, kng.Box(-1.0, 1.0), 40.0, "add_remove", norm=kng.L2()),
    "three": kng.KNG(kng.QuantileLoss(0.5), THREE, kng.Box(-1.0, 1.0), 100.0, "add_remove"),
    "three, l1": kng.KNG(LOSS, THREE, kng.L2Ball(1.0), 100.0, "replace", norm=kng.L1()),
    "three, l2": kng.KNG(kng.QuantileLoss(0.8), THREE, kng.L1Ball(1.0), 100.0, "replace", norm=kng.L2()),
    "three, linf": kng.KNG(LOSS, THREE, kng.L1Ball(1.0), 100.0, "add_remove", norm=kng.LInf()),
    "value": kng.ExponentialMechanism(LOSS, TWO, kng.L2Ball(1.0), 30.0, "add_remove"),
    "value of three": kng.ExponentialMechanism(LOSS, THREE, kng.Box(-1.0, 1.0), 30.0, "replace"),
}
OF_GRADIENTS = [name for name in MECHANISMS if not name.startswith("value")]
# Kinds of records that differ, how often each is there, and whether their features are nearly equal, or three in four
# quite equal.
TABLES = {"one": (1, 60, ""), "near": (3, 40, "near"), "some": (9, 12, ""), "equal": (24, 5, "equal")}


def problem_of(name: str, table: str) -> Problem:
    mechanism, (kinds, copies, features) = MECHANISMS[name], TABLES[table]
    generator = np.random.default_rng(kinds)
    x = generator.uniform(-0.4, 1.0, (kinds, mechanism.bounds.columns))
    if features == "near":
        x = 0.8 + 0.1 * x
    if features == "equal":
        x[:18] = x[:3].repeat(6, axis=0)
    times = generator.integers(1, copies + 1, kinds)
    y = np.repeat(generator.uniform(-1.2, 1.2, kinds), times)
    digits = {1: 5, 2: 3}[mechanism.bounds.columns]
    sampler = kng.draws.Lattice(data_digits=digits, theta_digits=digits, max_records=2**12)
    return sampler.problem(mechanism, mechanism.intake.records(np.repeat(x, times, axis=0), y))


def points_of(domain) -> np.ndarray:
    """Every k in Θ."""
    sides = [range(low, high + 1) for low, high in zip(domain.low.tolist(), domain.high.tolist(), strict=True)]
    return np.array([point for point in itertools.product(*sides) if domain.contains(np.array(point))])


def gradients_of(score, points) -> np.ndarray:
    """Σ_i X_i(D·1{Y_i ≤ X_i'k} - N) in whole numbers, by the formula alone."""
    x, y, counts = (
        part.astype(np.int64) for part in (score._records.features, score._records.responses, score._records.counts)
    )
    slopes = np.where(y <= points @ x.T, int(score._records.rise), int(score._records.fall)) * counts
    return slopes @ x


def losses_of(score, points) -> np.ndarray:
    """Σ_i D·ρ_τ(Y_i - X_i'k)."""
    x, y, counts = (
        part.astype(np.int64) for part in (score._records.features, score._records.responses, score._records.counts)
    )
    residuals = y - points @ x.T
    return np.sum(
        -residuals * np.where(residuals <= 0, int(score._records.rise), int(score._records.fall)) * counts, axis=1
    )


def scores_of(score, points) -> np.ndarray:
    """⌊R·‖G‖⌋, or that of the loss."""
    unit, norm = RESOLUTION * WEIGHT_UNITS, score._records.norm
    if norm is None:
        return losses_of(score, points).astype(object) * unit // score._records.weight
    sizes = np.abs(gradients_of(score, points)).astype(object)
    if norm._is_length:
        squares = np.sum((sizes * norm._scales * unit) ** 2, axis=1)
        return np.array([math.isqrt(square // int(norm.weights) ** 2) for square in squares], object)
    if norm._scales is not None:
        return np.sum(sizes * norm._scales, axis=1) * unit // int(norm.weights)
    return np.max(sizes * unit // norm.weights, axis=1)


def assert_bounds_hold(boxes, inverse, points, levels):
    """Every point lies in one box, at least as high as its bound."""
    turned = points @ inverse.T
    inside = np.all((boxes.low <= turned[:, None]) & (turned[:, None] <= boxes.high), axis=2)
    np.testing.assert_array_equal(np.sum(inside, axis=1), 1)
    place = np.argmax(inside, axis=1)
    assert np.all(levels >= boxes.lower[place])
    return place


def assert_law_is_that_of_scores(drawn, points, levels):
    """What `draw` multiplies for a point is exp(-c·score): in whole numbers, of the exponents.

    A box comes with its number of points times exp(-c·lower), a point of it with one over that number, and stays with
    exp(-c·(score - lower)), where `at` takes the score of the records that the box left open and the sums of others.
    """
    boxes = drawn._boxes
    place = assert_bounds_hold(boxes, drawn._coordinates.inverse, points, levels)
    found = [drawn._score.at(point, boxes.runs[box], boxes.sums[box]) for point, box in zip(points, place, strict=True)]
    np.testing.assert_array_equal(found, levels)
    sizes = np.prod((boxes.high - boxes.low + 1).astype(object), axis=1)
    assert sorted(np.concatenate(drawn._members).tolist()) == list(range(len(sizes)))
    for level, members, counted in zip(drawn._law._levels, drawn._members, drawn._points, strict=True):
        assert set(boxes.lower[members].tolist()) == {level}
        assert counted == list(itertools.accumulate(sizes[members]))
    assert drawn._law._counts == [counted[-1] for counted in drawn._points]


@pytest.mark.default_cases("some-l1 ball, l1", "near-three, l2", "one-three", "equal-value of three")
@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("table", TABLES)
def test_no_lattice_point_falls_below_the_bound_of_its_box(table, name):
    """After each halving, until boxes are single points."""
    problem = problem_of(name, table)
    points = points_of(problem.domain)
    levels = scores_of(problem.score, points)
    for most in (1, 100):
        drawn = LatticeEnvelope(*problem, 1.0, most)
        assert_law_is_that_of_scores(drawn, points, levels)


@pytest.mark.parametrize(
    ("tables", "name"),
    [
        (["equal"], "box"),
        (["some"], "three, l1"),
        *(pytest.param(list(TABLES), name, marks=pytest.mark.slow) for name in OF_GRADIENTS),
    ],
    ids=str,
)
def test_no_lattice_point_beyond_a_core_falls_below_what_rays_say(tables, name, monkeypatch):
    """Of cores so small that most of Θ lies beyond them, whatever the law; rays of many cells and of few."""
    monkeypatch.setattr(surroundings, "_TRIES", 1)
    positive, said, beyond = 0, [], surroundings._beyond
    monkeypatch.setattr(surroundings, "_beyond", lambda *given: said.append(beyond(*given)) or said[-1])
    for table, (reach, cells) in itertools.product(tables, ((1, 500), (3, 1))):
        monkeypatch.setattr(surroundings, "_reach", lambda score, *others, reach=reach: [reach] * len(score.origin))
        monkeypatch.setattr(surroundings, "_MOST_CELLS", cells)
        problem = problem_of(name, table)
        points = points_of(problem.domain)
        score = problem.score.near(problem.domain, float(problem.rate))
        said.clear()
        boxes = surroundings.first_boxes(score, problem.domain, float(problem.rate))
        assert len(boxes.runs) > 1
        assert np.all(boxes.lower[1:] >= said[0])
        assert_bounds_hold(boxes, score.coordinates.inverse, points, scores_of(problem.score, points))
        positive += int(np.sum(boxes.lower[1:] > 0))
    assert positive > 0


@pytest.mark.default_cases("three, l1")
@pytest.mark.parametrize("name", ["three, l1", "three, l2", "three, linf"])
def test_rays_hold_and_say_something_beside_a_column_of_zeros(name, monkeypatch):
    """They go along it for nothing: how far a point is there must not weigh on its bound, which holds all the same."""
    monkeypatch.setattr(surroundings, "_TRIES", 1)
    monkeypatch.setattr(surroundings, "_reach", lambda score, *_: [1] * len(score.origin))
    mechanism, generator = MECHANISMS[name], np.random.default_rng(5)
    x = np.column_stack([np.zeros(40), generator.uniform(0.1, 0.9, 40)])
    sampler = kng.draws.Lattice(data_digits=3, theta_digits=3, max_records=2**12)
    problem = sampler.problem(mechanism, mechanism.intake.records(x, generator.uniform(-0.4, 0.4, 40)))
    points, score = points_of(problem.domain), problem.score.near(problem.domain, float(problem.rate))
    levels = scores_of(problem.score, points)
    boxes = surroundings.first_boxes(score, problem.domain, float(problem.rate))
    assert_bounds_hold(boxes, score.coordinates.inverse, points, levels)
    assert_law_is_that_of_scores(LatticeEnvelope(*problem, 1.0, 60), points, levels)
    # The same of a point, however far along the column.
    places = points @ score.coordinates.inverse.T
    found = score.beyond(places, places)
    for others in {tuple(point) for point in points[:, [0, 2]].tolist()}:
        assert len(set(found[np.all(points[:, [0, 2]] == others, axis=1)].tolist())) == 1


def ratios_of(score, points) -> np.ndarray:
    """(ℓ(p) - ℓ(k₀))/‖p - k₀‖_*."""
    centre = score.coordinates.matrix @ score.origin
    rises = losses_of(score, points) - losses_of(score, centre[None])
    # In units of each |G_j| in the norm; the largest is dual to the sum, and the length to itself.
    norm = score._records.norm
    away = np.abs(points - centre) / norm.factors
    order = 2 if norm._is_length else 1 if norm._scales is None else np.inf
    dual = np.linalg.norm(away, order, axis=1)
    return np.maximum(rises, 0) / dual


@pytest.mark.default_cases("some-box, l2", "near-l1 ball, l1", "equal-three, linf")
@pytest.mark.parametrize("name", OF_GRADIENTS)
@pytest.mark.parametrize("table", list(TABLES)[1:])
def test_the_ray_through_a_point_is_bounded_by_the_change_of_the_loss_and_the_dual_norm(table, name):
    """Not by more and not by less, at every p; and that is below the score of p and of what is farther."""
    problem = problem_of(name, table)
    score = problem.score.near(problem.domain, float(problem.rate))
    centre, points = score.coordinates.matrix @ score.origin, points_of(problem.domain)
    points = points[np.any(points != centre, axis=1)]
    turned = points @ score.coordinates.inverse.T
    found = score.beyond(turned, turned)
    np.testing.assert_allclose(found.astype(float), ratios_of(score, points), rtol=1e-9, atol=1.0)
    assert np.all(scores_of(score, points) >= found)
    for times in (2, 3):
        farther = centre + times * (points - centre)
        within = [problem.domain.contains(point) for point in farther]
        assert np.all(scores_of(score, farther[within]) >= found[within])


@pytest.mark.default_cases("box, l2", "three, linf")
@pytest.mark.parametrize("name", OF_GRADIENTS)
def test_rays_through_a_cell_are_bounded_by_the_lowest_of_its_points(name):
    generator = np.random.default_rng(9)
    for table in TABLES:
        problem = problem_of(name, table)
        score = problem.score.near(problem.domain, float(problem.rate))
        dimension, positive = len(score.origin), 0
        lows = score.origin + generator.integers(-9, 9, (60, dimension))
        sides = (
            generator.integers(0, 7, (60, dimension)) * (np.arange(60) % dimension == np.arange(dimension)[:, None]).T
        )
        highs = lows + sides
        for low, high, bound in zip(lows, highs, score.beyond(lows, highs), strict=True):
            turned = np.stack(np.meshgrid(*map(np.arange, low, high + 1)), axis=-1).reshape(-1, dimension)
            points = (turned[np.any(turned != score.origin, axis=1)]) @ score.coordinates.matrix.T
            assert len(points) == 0 or bound <= np.min(ratios_of(score, points)) * (1.0 + 1e-9) + 1.0
            positive += bound > 0
        assert positive > 0


@pytest.mark.default_cases("l2 ball, linf")
@pytest.mark.parametrize("name", ["l1 ball, l1", "l2 ball, linf", "three, l1", "three, linf"])
def test_rays_begin_in_a_ball(name):
    """Records whose fit lies far outside of Θ: rays within Θ, which is convex, are all that is asked for faces."""
    mechanism, generator = MECHANISMS[name], np.random.default_rng(3)
    seen = 0
    for _ in range(20):
        x = generator.uniform(-0.4, 1.0, (30, mechanism.bounds.columns))
        y = 3.0 * (x @ generator.normal(size=mechanism.bounds.columns) + generator.normal())
        problem = kng.draws.Lattice(max_records=2**12).problem(mechanism, mechanism.intake.records(x, y))
        score = problem.score.near(problem.domain, float(problem.rate))
        centre = score.coordinates.matrix @ score.origin
        assert problem.domain.contains(centre)
        seen += np.any(centre != 0)
    assert seen > 10


@pytest.mark.parametrize("dimension", [2, 3, 4])
def test_halves_of_a_face_leave_nothing_out_between_whole_numbers(dimension):
    generator = np.random.default_rng(dimension)
    low = generator.integers(-9, 9, (5, dimension))
    high = low + generator.integers(0, 4, (5, dimension))
    lows, highs = surroundings._halved(low, high, np.ones(dimension))
    points = low[:, None] + generator.uniform(0.0, 1.0, (5, 300, dimension)) * (high - low)[:, None]
    points = points.reshape(-1, 1, dimension)
    assert np.all(np.any(np.all((lows <= points) & (points <= highs), axis=2), axis=1))


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("tau", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("norm", [None, kng.L1(), kng.L2(), kng.LInf()])
def test_rays_of_a_heap_are_tight(norm, tau, monkeypatch):
    """With all responses in one heap no ray of a line may say more, and all of them together say as much."""
    monkeypatch.setattr(surroundings, "_TRIES", 1)
    monkeypatch.setattr(surroundings, "_reach", lambda *_: [3])
    mechanism = kng.KNG(
        kng.QuantileLoss(tau), kng.Bounds(y=(-1.0, 1.0)), kng.Box(-1.0, 1.0), 50.0, "replace", norm=norm
    )
    sampler = kng.draws.Lattice(data_digits=6, theta_digits=8)
    problem = sampler.problem(mechanism, mechanism.intake.records(None, np.full(41, 0.25)))
    score = problem.score.near(problem.domain, float(problem.rate))
    boxes = surroundings.first_boxes(score, problem.domain, float(problem.rate))
    points = points_of(problem.domain)
    levels = scores_of(problem.score, points)
    assert_bounds_hold(boxes, score.coordinates.inverse, points, levels)
    assert len(boxes.runs) > 1
    assert np.min(boxes.lower) >= 0.999 * np.min(levels)


@pytest.mark.parametrize("name", ["KNG", "zeros"])
def test_boxes_are_the_same_in_however_many_passes(name, monkeypatch):
    """Passes are made side by side, each of some of the boxes."""
    generator = np.random.default_rng(5)
    x = np.column_stack([np.ones(300), generator.uniform(-1.0, 1.0, 300)])
    y = x @ [0.5, 0.25] + 0.1 * generator.standard_normal(300)
    y[: 200 if name == "zeros" else 0] = 0.0
    mechanism = kng.KNG(kng.QuantileLoss(0.5), kng.Bounds(x=([-1.0], [1.0])), kng.Box(-2.0, 2.0), 1.0, "replace")
    sampler = kng.draws.Lattice(data_digits=10, theta_digits=10)
    problem = sampler.problem(mechanism, mechanism.intake.records(x[:, 1:], y))
    found = []
    for runs in (2**30, 200):
        monkeypatch.setattr(check_records, "_RUNS_A_PASS", runs)
        envelope = sampler.envelope(problem)
        assert isinstance(envelope._score, ConeScore) == (name == "zeros")
        found.append(envelope._boxes)
    one, many = found
    for part in ("low", "high", "lower", "middle", "sums"):
        np.testing.assert_array_equal(getattr(one, part), getattr(many, part))
    assert all(np.array_equal(*runs) for runs in zip(one.runs, many.runs, strict=True))
    assert len(one.runs) > 20
