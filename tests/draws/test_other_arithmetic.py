"""Sums in another order, products fused with sums or not, and guesses of float32: enclosures hold, and cells stay.

Every product of matrices, and every sum of what comes of it, is computed one number after another in a random order;
each product is rounded by itself, or together with the sum that it goes into, as some processors do.
"""

import random
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

import kngjax as kng
from kngjax.data.schema import Schema
from kngjax.draws.boxes.box_coordinates import BoxCoordinates
from kngjax.draws.boxes.record_sums import RecordSums
from kngjax.draws.choice import proved_draw
from kngjax.draws.minima import verified_minima
from kngjax.draws.minima.newton_searches import float_search
from kngjax.draws.minima.smooth_objectives import Objective
from kngjax.draws.shells import shell_search
from kngjax.draws.shells.shell_records import ShellRecords
from tests.oracles.perturbed_problems import LAWS, table
from tests.oracles.shell_problems import LOSSES, parts, problem
from tests.oracles.smooth_minima import LOSSES as MINIMA
from tests.oracles.smooth_minima import made, true_gradient


class Otherwise(np.ndarray):
    """An array whose products of matrices, and sums, are computed otherwise than NumPy does."""

    random = np.random.default_rng(0)

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        plain = [one.view(np.ndarray) if isinstance(one, Otherwise) else one for one in inputs]
        if ufunc is np.matmul:
            return product(*plain).view(Otherwise)
        if ufunc is np.add and method == "reduce":
            return added(plain[0], options.get("axis")).view(Otherwise)
        if options.get("out"):
            options["out"] = tuple(np.asarray(one).view(np.ndarray) for one in options["out"])
        return getattr(ufunc, method)(*plain, **options)


def one_after_another(left, right):
    """Σ l·r in a random order, each product fused with its sum or not."""
    total = 0.0
    for place in Otherwise.random.permutation(len(left)).tolist():
        if Otherwise.random.random() < 0.5:
            total = total + left[place] * right[place]
        else:
            total = float(Fraction(left[place]) * Fraction(right[place]) + Fraction(total))
    return total


def product(left, right):
    first, second = left.ndim == 1, right.ndim == 1
    left, right = left[None] if first else left, right[:, None] if second else right
    shape = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    left, right = (np.broadcast_to(one, (*shape, *one.shape[-2:])) for one in (left, right))
    found = np.empty((*shape, left.shape[-2], right.shape[-1]))
    for place in np.ndindex(*found.shape):
        *batch, row, column = place
        found[place] = one_after_another(left[(*batch, row)].tolist(), right[(*batch, slice(None), column)].tolist())
    found = found[..., 0, :] if first else found
    return found[..., 0] if second else found


def added(values, axis):
    axes = tuple(range(values.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    kept = [one for one in range(values.ndim) if one not in {one % values.ndim for one in axes}]
    rows = np.moveaxis(values, kept, range(len(kept))).reshape(*(values.shape[one] for one in kept), -1)
    found = np.empty(rows.shape[:-1])
    for place in np.ndindex(*found.shape):
        row = rows[place].tolist()
        found[place] = one_after_another(row, [1.0] * len(row))
    return found


def contain(balls, truth):
    return all(abs(true - ball.mid()).upper() <= ball.rad() for ball, true in zip(balls, truth, strict=True))


def test_these_sums_are_others():
    x = np.random.default_rng(1).uniform(-1.0, 1.0, (50, 3))
    sums = {tuple((x.view(Otherwise).T @ x[:, 0]).tolist()) for _ in range(5)}
    assert len(sums) > 1
    np.testing.assert_allclose(list(sums), [x.T @ x[:, 0]] * len(sums), rtol=1e-12)
    np.testing.assert_allclose(x.reshape(5, 10, 3).view(Otherwise).sum(axis=(0, 1)), x.sum(axis=0), rtol=1e-12)


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("loss", LOSSES)
def test_balls_of_gradients_and_hessians_contain_the_truth(loss):
    found = set()
    for seed in range(3):
        mechanism, x, y = problem(40, 2, 50.0, seed, loss=loss)
        _, data, _ = parts(mechanism, x, y)
        other = ShellRecords(data.x.view(Otherwise), data.y, data.score, data.largest, data.column_sums)
        theta = np.random.default_rng(seed).normal(size=2)
        with ctx.workprec(300):
            truth = data.evaluate_in_balls([arb(one) for one in theta.tolist()])
            for _ in range(3):
                there = other.evaluate(theta)
                found.add(float(there.gradient[0].mid()))
                assert contain(there.gradient, truth.gradient)
                assert contain(there.hessian.entries(), truth.hessian.entries())
    assert len(found) > 3


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("name", MINIMA)
def test_bounds_of_gradients_hold_of_minimisers_and_boxes(name):
    for seed in range(3):
        plain = made(name, 40, 2, seed)
        other = Objective(plain.x.view(Otherwise), plain.sizes, plain.scores, plain.ridge, plain.largest)
        matrix = np.array([[1.0, 0.6], [-0.3, 0.8]])
        sums = RecordSums(other.x, other.scores, BoxCoordinates(np.array([0.2, -0.4]), matrix))
        theta = np.random.default_rng(seed).normal(size=2)
        value, bound = other.gradient(theta)
        with ctx.workprec(300):
            places = [arb(one) for one in theta.tolist()]
            ridge = [arb(plain.ridge.numerator) / plain.ridge.denominator * one for one in places]
            truth = [a - b for a, b in zip(true_gradient(plain, places, [arb(0)] * 2), ridge, strict=True)]
            assert contain([arb(a, b) for a, b in zip(value.tolist(), bound.tolist(), strict=True)], truth)
            assert contain(sums.gradient(places), truth)
            away = np.linalg.solve(matrix, theta - np.array([0.2, -0.4]))
            found = sums.over(away[None], np.full((1, 2), 1e-9))
            assert np.all(np.abs(np.array([float(one) for one in truth]) - found.gradient[0]) <= found.error[0] + 1e-12)


def perturbed(name):
    loss, bounds, domain = LAWS[name]
    mechanism = kng.ObjectivePerturbation(loss, bounds.for_dimension(2), domain, 4.0, "replace")
    x, y = table(2, 40)
    way = proved_draw(mechanism, Schema(2, 40))
    return way, x, (y > 0.0) * 1.0 if name.startswith("logistic") else y


def values_of(way, data, number):
    return [way.draw(data, random.Random(seed).getrandbits).tolist() for seed in range(number)]


@pytest.mark.parametrize("name", ["pseudo-Huber on R", "logistic on R"])
def test_cells_of_minimisers_are_the_same_whatever_the_order_and_the_fusing(name, monkeypatch):
    """And whatever float32 proposes, or nothing of use: guesses are verified, and never trusted."""
    way, x, y = perturbed(name)
    expected = values_of(way, way.prepare(x, y), 6)
    order = np.random.default_rng(3).permutation(len(y))
    assert values_of(way, way.prepare(x[order], y[order]), 6) == expected
    data = way.prepare(x, y)
    other = Objective(data.x.view(Otherwise), data.sizes, data.scores, data.ridge, data.largest)
    assert values_of(way, other, 3) == expected[:3]
    guesses = {
        "float32": lambda *given: float_search(*given).astype(np.float32).astype(np.float64),
        "no use": lambda *_: np.array([3.0, -5.0]),
    }
    for guess in guesses.values():
        monkeypatch.setattr(verified_minima, "float_search", guess)
        assert values_of(way, data, 4) == expected[:4]


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("loss", LOSSES)
def test_cells_of_shells_do_not_rest_on_what_float64_proposes(loss, monkeypatch):
    """Solutions rounded to float32, or moved by some of its units: the same cells, from the same bits."""
    mechanism, x, y = problem(60, 2, 100.0, loss=loss)
    way, records, own = parts(mechanism, x, y)
    envelope, right = way.envelope(records), shell_search.search

    def cells(number):
        return [shell_search.draw(own, envelope, way.grid, random.Random(seed).getrandbits) for seed in range(number)]

    expected = cells(8)
    for move in (0.0, 2.0**-20):

        def proposed(records, region, certificate, z, move=move):
            theta, evaluation, is_refused = right(records, region, certificate, z)
            if is_refused:
                return theta, evaluation, True
            near = theta.astype(np.float32).astype(np.float64) + move
            return near, records.evaluate(near), False

        monkeypatch.setattr(shell_search, "search", proposed)
        assert cells(8) == expected
