"""Weighted draws of KNG with the check loss on a part of its domain: many in the time of one exact release.

    f(θ) ∝ exp(-c·max_j |G_j(θ)|/w_j),    G(θ) = Σ_i (1{y_i ≤ x_i'θ} - τ)·x_i,    v'θ_below ≤ v'θ ≤ v'θ_above at all v

The limit law is exp(-c·max_j |u_j|), u = diag(w)^{-1}H(θ - θ̂). Candidates are drawn from one with longer tails,
q(θ) ∝ (1 + c·max_j |u_j|/k)^{-k} with k = 2d + 4, on the same part, there by a walk of so many steps that is near q and
not exactly it. One of them is taken with probability in proportion to f/q, with G of all records. What is taken follows
f once there are many candidates that count (Rubin 1988): of fewer than thirty nothing is said.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

import kngjax as kng

DOMAIN = (-20.0, 20.0)
# On a part of the domain candidates that do not lie in it after so many tries walk there, so many steps.
_STEPS, _TRIES = 400, 20
# Of fewer coefficients there are as many candidates as of four. Those that count, on average over draws.
_FEW, _LEAST_EFFECTIVE = 4, 30.0
_NEWTON, _HALVINGS = 25, 6
# At a time: of more the products leave the cache.
_ROWS = 4096


class NotDrawn(Exception):
    """**Arguments:** `law`: a word for the row. `share`: of candidates that count."""

    def __init__(self, law: str, share: float):
        super().__init__(f"{law}: {share:.3g} of the proposals count")
        self.law, self.share = law, share


class Node(NamedTuple):
    """KNG at one level: `tau` among its records, `widths` w of the norm, `rate` c, and `epsilon`."""

    tau: float
    widths: np.ndarray
    rate: float
    epsilon: float

    @property
    def noise(self) -> float:
        """The standard deviation of a coordinate of the score with the intercept's width, in records."""
        d = len(self.widths)
        return float(self.widths[0]) / self.rate * math.sqrt((d + 1) * (d + 2) / 3.0)

    def size(self, gradients: np.ndarray) -> np.ndarray:
        """max_j |G_j|/w_j of each row."""
        return np.max(np.abs(gradients) / self.widths, axis=-1)


def node_of(bounds: Any, tau: float, epsilon: float, adjacency: str, dimension: int) -> Node:
    """The library's norm and rate. **Arguments:** `bounds`: of a record, with `dimension` features."""
    mechanism = kng.KNG(kng.QuantileLoss(tau), bounds, kng.Box(*DOMAIN), epsilon, adjacency, allow_large_epsilon=True)
    with jax.enable_x64(True):
        norm = mechanism.score_norm(dimension)
        # The norm of a coordinate's unit is 1/w_j.
        widths = np.array([1.0 / float(norm(unit)) for unit in np.eye(dimension)])
        return Node(tau, widths, epsilon / (2.0 * float(mechanism.sensitivity_for(dimension).value)), epsilon)


class Expansion(NamedTuple):
    """G(θ) is about diag(w)·u, u = matrix^{-1}(θ - centre). **Arguments:** `centre`: θ̂. `matrix`: H^{-1}diag(w)."""

    centre: np.ndarray
    matrix: np.ndarray


def gradient(x: np.ndarray, y: np.ndarray, tau: float, thetas: np.ndarray) -> np.ndarray:
    """G(θ), a row for each row of θ."""
    found = np.tile(-tau * x.sum(axis=0), (len(thetas), 1))
    for first in range(0, len(y), _ROWS):
        rows = x[first : first + _ROWS]
        found += (y[first : first + _ROWS] <= thetas @ rows.T).astype(np.float64) @ rows
    return found


def expansion(node: Node, x: np.ndarray, y: np.ndarray, start: np.ndarray) -> Expansion:
    """About the minimum of these records' check losses, with densities by their nearest neighbours.

    Newton's method stops where the gradient is a fraction of the noise: candidates need no more.
    """
    theta, size = start, float(node.size(gradient(x, y, node.tau, start[None]))[0])
    for _ in range(_NEWTON):
        curvature = _hessian(node, x, y, theta)
        if size * node.rate < 0.3:
            break
        step = np.linalg.solve(curvature, gradient(x, y, node.tau, theta[None])[0])
        trials = theta - 0.5 ** np.arange(_HALVINGS)[:, None] * step
        sizes = node.size(gradient(x, y, node.tau, trials))
        if not sizes.min() < 0.999 * size:
            break
        theta, size = trials[np.argmin(sizes)], float(sizes.min())
    return Expansion(theta, np.linalg.solve(curvature, np.diag(node.widths)))


def _hessian(node: Node, x: np.ndarray, y: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Σ xx' over the records within h of the curve, over 2h; where there are none Θ alone holds θ."""
    distances, d = np.abs(y - x @ theta), len(theta)
    ridge = np.diag(node.widths) / (50.0 * node.rate)
    if len(y) <= 5 * d:
        return ridge
    near = int(np.clip(max(0.5 * len(y) ** 0.8, node.noise), 5 * d, 0.5 * len(y) + 1))
    width = max(float(np.partition(distances, near - 1)[near - 1]), 1e-9)
    chosen = x[distances <= width]
    return chosen.T @ chosen / (2.0 * width) + ridge


class Part(NamedTuple):
    """Where θ may lie, for each of D draws.

    **Arguments:** `vertices`: v, shape (r, d). `below`, `above`: shape (D, d), or None. `start`: inside, shape (D, d).
    """

    vertices: np.ndarray
    below: np.ndarray | None
    above: np.ndarray | None
    start: np.ndarray


def candidates(
    node: Node, expansions: list[Expansion], part: Part | None, count: int, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draws from q, shape (D, count, d), and max|u| of each. **Arguments:** `expansions`: of each of D draws."""
    centres, matrices = (np.array(each) for each in zip(*expansions, strict=True))
    shape, rate = (len(centres), count, centres.shape[1]), node.rate
    u = _long_tailed(shape, rate, random)
    if part is not None:
        turned = part.vertices @ matrices
        # v'(θ - θ_below) ≥ 0 is turned·u ≥ v'(θ_below - θ̂).
        low, high = (
            np.full(turned.shape[:2], sign * np.inf) if end is None else (end - centres) @ part.vertices.T
            for end, sign in ((part.below, -1.0), (part.above, 1.0))
        )
        first = np.linalg.solve(matrices, (part.start - centres)[..., None])[..., 0]
        walkers, is_placed = np.repeat(first[:, None], count, axis=1), np.zeros(shape[:2], bool)
        for _ in range(_TRIES):
            places = u @ turned.transpose(0, 2, 1)
            is_inside = np.all((places >= low[:, None]) & (places <= high[:, None]), axis=2) & ~is_placed
            walkers[is_inside], is_placed = u[is_inside], is_placed | is_inside
            u = _long_tailed(shape, rate, random)
        u = _walked(walkers, rate, turned, low[:, None], high[:, None], random)
    return centres[:, None] + u @ matrices.transpose(0, 2, 1), np.max(np.abs(u), axis=2)


def _power(dimension: int) -> float:
    """k."""
    return 2.0 * dimension + 4.0


def _long_tailed(shape: tuple[int, ...], rate: float, random: np.random.Generator) -> np.ndarray:
    """Of density ∝ (1 + rate·max|u|/k)^{-k}: rate·max|u|/k is a ratio of gamma variables of d and k - d."""
    d, k = shape[-1], _power(shape[-1])
    radii = k / rate * random.gamma(d, size=(*shape[:-1], 1)) / random.gamma(k - d, size=(*shape[:-1], 1))
    directions = random.uniform(-1.0, 1.0, shape)
    return radii * directions / np.max(np.abs(directions), axis=-1, keepdims=True)


def _walked(
    u: np.ndarray, rate: float, rows: np.ndarray, low: Any, high: Any, random: np.random.Generator
) -> np.ndarray:
    """Hit-and-run by slices: uniform on the chord of {low ≤ rows·u ≤ high, max|u| ≤ a level drawn above this one}."""
    turned, k = rows.transpose(0, 2, 1), _power(u.shape[2])
    for _ in range(_STEPS):
        direction = random.standard_normal(u.shape)
        shrunk = random.uniform(size=(*u.shape[:2], 1)) ** (-1.0 / k)
        level = ((1.0 + rate / k * np.max(np.abs(u), axis=2, keepdims=True)) * shrunk - 1.0) * k / rate
        places, slopes = u @ turned, direction @ turned
        ends = np.concatenate([(low - places) / slopes, (-level - u) / direction], axis=2)
        others = np.concatenate([(high - places) / slopes, (level - u) / direction], axis=2)
        first = np.max(np.minimum(ends, others), axis=2)
        last = np.min(np.maximum(ends, others), axis=2)
        step = np.where(first < last, first + (last - first) * random.uniform(size=first.shape), 0.0)
        u = u + step[..., None] * direction
    return u


def weighted(
    node: Node,
    records: list[tuple[np.ndarray, np.ndarray]],
    expansions: list[Expansion],
    part: Part | None,
    counts: Sequence[int],
    random: np.random.Generator,
) -> tuple[np.ndarray, float]:
    """One θ for each of D draws, shape (D, d), and the effective share of its candidates, on average over draws.

    **Arguments:** `records`: x with the intercept, and y, of each draw. `counts`: of candidates, a coefficient; the
    next one is tried where too few count. Raises NotDrawn where none lies in Θ, or too few of
    the last number count: where a part of the law lies far from the fit, more do not help.
    """
    k, share = _power(len(node.widths)), 0.0
    for count in (each * max(len(node.widths), _FEW) for each in counts):
        thetas, sizes = candidates(node, expansions, part, count, random)
        weights = np.empty(sizes.shape)
        for draw, (x, y) in enumerate(records):
            logs = k * np.log1p(node.rate * sizes[draw] / k)
            logs -= node.rate * node.size(gradient(x, y, node.tau, thetas[draw]))
            logs[np.max(np.abs(thetas[draw]), axis=1) > DOMAIN[1]] = -np.inf
            if not np.isfinite(logs.max()):
                raise NotDrawn("outside", 0.0)
            weights[draw] = np.exp(logs - logs.max())
        weights /= weights.sum(axis=1, keepdims=True)
        share = float(np.mean(1.0 / np.sum(weights**2, axis=1))) / count
        if share * count >= _LEAST_EFFECTIVE:
            places = [random.choice(count, p=each) for each in weights]
            return thetas[np.arange(len(places)), places], share
    raise NotDrawn("few", share)
