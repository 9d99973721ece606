"""Exact draws by rejection from an envelope: each decision is the one that real arithmetic makes.

In Θ, a proposal z of shell k is accepted with probability exp(-(‖z‖ - t_{k-1}) - E_k)·det R^{-2}/det H(θ(z)), and a
proposal θ of a piece with probability exp(T_g - ‖G(θ)‖) if ‖G(θ)‖ ≥ t_K: neither exceeds 1 by the certificate. What is
proposed is a function of uniform numbers, of which more digits are drawn while any decision is open. A draw ends with
probability 1 for all data: with more digits every decision but for a set of no volume is made, see `refine`.
"""

import functools
import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from flint import arb

from kngjax.draws.grid_cells import Grid
from kngjax.draws.linear_algebra import times
from kngjax.draws.noises import StandardNormalNoise, draw_noise
from kngjax.draws.shells.matrices import matrix, upward
from kngjax.draws.shells.sets_in_balls import between, length, uniform_point, unit_vector
from kngjax.draws.shells.shell_envelope import ShellEnvelope
from kngjax.draws.shells.shell_records import ShellRecords
from kngjax.draws.shells.solutions import enclose, middles, refine, search
from kngjax.draws.uniforms import Bits, Uniform, chosen, decided
from kngjax.geometry.scaled_norms import ScaledNorm
from kngjax.geometry.shapes import Shape

_DIGITS_OF_FLOATS = 64


class ShellProblem(NamedTuple):
    """exp(-‖G(θ)‖) on Θ. Private."""

    records: ShellRecords
    gauge: ScaledNorm
    region: Shape

    def __repr__(self) -> str:
        return "<ShellProblem; OWNER ONLY>"


def draw(problem: ShellProblem, envelope: ShellEnvelope, grid: Grid, bits: Bits) -> list[int]:
    """Returns the cell of one draw."""
    component, shells = _components(problem, envelope, bits), len(envelope.heights)
    while True:
        number = component()
        if number < shells:
            attempt = _of_shell(problem, envelope, grid, number, bits)
        else:
            attempt = _of_piece(problem, envelope, grid, number - shells, bits)
        found = decided(attempt)
        if found:
            return found


def _components(problem: ShellProblem, envelope: ShellEnvelope, bits: Bits) -> Callable[[], int]:
    """Draws of numbers with probabilities in proportion to the masses."""

    @functools.cache
    def sums(digits: int) -> list[arb]:
        return list(itertools.accumulate(envelope.masses(problem.gauge, problem.region)))

    return lambda: chosen(sums, bits)


# An attempt says the cell, or that the proposal was refused, or None for what is still open.
_REFUSED: list[int] = []
Attempt = Callable[[int], list[int] | None]


def _of_shell(problem: ShellProblem, envelope: ShellEnvelope, grid: Grid, number: int, bits: Bits) -> Attempt:
    records, gauge, region = problem
    certificate = envelope.certificate
    assert certificate is not None
    share, noise, acceptance = Uniform(bits), draw_noise(gauge, bits), Uniform(bits)
    # A float64 number next to θ(z): where it lies changes no decision, but whether it can be made.
    near: np.ndarray | None = None
    inner, outer = (arb(float(t)) for t in envelope.edges[number : number + 2])
    height = arb(float(envelope.heights[number]))

    def attempt(digits: int) -> list[int] | None:
        nonlocal near
        level = between(inner, outer, len(gauge.weights), share.ball(digits))
        # The part of log U that is left for the determinant; refused where that does not matter.
        left = acceptance.ball(digits).log() + (level - inner)
        if left > 0:
            return _REFUSED
        unit = unit_vector(gauge.kind, noise.balls(digits))
        z = [level * a * one for a, one in zip(gauge.ball_scales, unit, strict=True)]
        if not all(one.is_finite() for one in z):
            return None
        if near is None:
            near, evaluation, is_refused = search(records, region, certificate, z)
            if is_refused:
                return _REFUSED
            place = [arb(float(t)) for t in near]
        if digits > _DIGITS_OF_FLOATS:
            place, evaluation, is_refused = refine(records, region, near, z, digits)
            if is_refused:
                return _REFUSED
        solution = enclose(records, certificate, place, evaluation, z)
        if solution is None:
            return None
        odds = solution.log_ratio - height
        inside = region.contains(solution.theta)
        if inside is False or left > odds:
            return _REFUSED
        return grid.cell(solution.theta) if inside and left <= odds else None

    return attempt


def _of_piece(problem: ShellProblem, envelope: ShellEnvelope, grid: Grid, number: int, bits: Bits) -> Attempt:
    records, gauge, region = problem
    certificate, acceptance, last = envelope.certificate, Uniform(bits), number == len(envelope.radii) - 1
    floor, edge = arb(float(envelope.floors[number])), arb(float(envelope.edges[-1]))
    ends = [arb(float(radius)) for radius in envelope.radii[number : number + 2]]
    # Signs take their bits here, and all else where digits are asked for.
    point, share = uniform_point(region, bits), Uniform(bits)
    direction = None if last else StandardNormalNoise(len(gauge.weights), bits)

    def place(digits: int) -> list[arb]:
        if direction is None:
            return point(digits)
        assert certificate is not None
        radius = between(ends[0], ends[1], len(gauge.weights), share.ball(digits))
        unit = unit_vector("length", direction.balls(digits))
        step = times(matrix(certificate.factor.T), [radius * one for one in unit])
        return [arb(float(t)) + s for t, s in zip(certificate.theta, step, strict=True)]

    def attempt(digits: int) -> list[int] | None:
        theta = place(digits)
        if not all(one.is_finite() for one in theta):
            return None
        inside = region.contains(theta)
        if inside is False:
            return _REFUSED
        beyond = True
        if last and certificate is not None and ends[0] > 0:
            inverse = matrix(certificate.factor).transpose().inv()
            away = [t - arb(float(c)) for t, c in zip(theta, certificate.theta, strict=True)]
            distance = length(times(inverse, away))
            if distance < ends[0]:
                return _REFUSED
            beyond = bool(distance >= ends[0])
        level = gauge(_gradient(records, theta, digits))
        odds, log_uniform = floor - level, acceptance.ball(digits).log()
        if level < edge or log_uniform > odds:
            return _REFUSED
        beyond = beyond and (edge == 0 or level >= edge)
        return grid.cell(theta) if inside and beyond and log_uniform <= odds else None

    return attempt


def _gradient(records: ShellRecords, theta: list[arb], digits: int) -> list[arb]:
    """G at a θ that balls contain: predictors change by no more than Σ_l max|x_il||δ_l|."""
    if digits > _DIGITS_OF_FLOATS:
        return records.evaluate_in_balls(theta, with_hessian=False).gradient
    centre = middles(theta)
    away = [(t - arb(float(c))).abs_upper() for t, c in zip(theta, centre, strict=True)]
    moved = sum((size * arb(float(x)) for size, x in zip(away, records.largest, strict=True)), arb(0))
    return records.evaluate(centre, with_hessian=False, moved=upward(moved)).gradient
