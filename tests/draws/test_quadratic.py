"""Draws about quadratic losses in balls: the law of every envelope, beside quadrature, and what decides it."""

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest

import kngjax as kng
from kngjax.draws import uniforms
from kngjax.draws.grid_cells import Grid
from kngjax.draws.quadratic import choices, envelopes
from kngjax.draws.quadratic.bodies import body_of
from kngjax.draws.quadratic.choices import draw_quadratic
from kngjax.draws.quadratic.envelopes import QuadraticEnvelope, QuadraticLaw, Rejected
from kngjax.draws.quadratic.tilted_noises import tilted_noise
from kngjax.draws.uniforms import Uniform, decided
from kngjax.geometry.scaled_norms import ScaledNorm
from tests.oracles.goodness_of_fit import assert_cell_frequencies

DOMAINS = {"box": kng.Box([-0.75, -0.25], [0.5, 1.0]), "l1": kng.L1Ball(0.875), "l2": kng.L2Ball(0.875)}
NORMS = {
    "maximum": lambda z: np.max(np.abs(z), axis=-1),
    "sum": lambda z: np.sum(np.abs(z), axis=-1),
    "length": lambda z: np.linalg.norm(z, axis=-1),
}
WEIGHTS, SCALE = (Fraction(3, 2), Fraction(2, 3)), Fraction(5, 4)
GRAMS = {
    "regular": ([[6, 2], [2, 5]], [1, 2]),
    "outside": ([[9, 2], [2, 7]], [14, -6]),
    "singular": ([[8, 4], [4, 2]], [3, 2]),
    "one column": ([[8, 0], [0, 0]], [3, 1]),
    "none": ([[0, 0], [0, 0]], [0, 0]),
}
GRID = Grid((-2, -2))


def law_of(data, domain, kind):
    gram, moment = GRAMS[data]
    body = body_of(DOMAINS[domain].exact_shape(2))
    gram = [[Fraction(number) for number in row] for row in gram]
    return QuadraticLaw(gram, [Fraction(number) for number in moment], ScaledNorm(kind, WEIGHTS, SCALE**2), body)


def inside(domain, theta):
    if domain == "box":
        return np.all((theta >= [-0.75, -0.25]) & (theta <= [0.5, 1.0]), axis=-1)
    return (np.sum(np.abs(theta), axis=-1) if domain == "l1" else np.linalg.norm(theta, axis=-1)) <= 0.875


def cells_of(domain, theta):
    """The cell of the quarter's multiple nearest to each θ, or of the one next to it that lies in Θ."""
    cells = np.floor(4.0 * theta + 0.5)
    if domain == "box":
        return np.clip(cells, [-3, -1], [2, 4])
    return np.where(inside(domain, cells / 4.0)[:, None], cells, np.sign(cells) * np.maximum(np.abs(cells) - 1, 0))


def chances_of(data, domain, kind, number=240):
    """Of cells in [-5, 5]², by the midpoint rule."""
    axis = (np.arange(number) + 0.5) / number * 2.0 - 1.0
    theta = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    theta = theta[inside(domain, theta)]
    gram, moment = (np.array(part, float) for part in GRAMS[data])
    scores = NORMS[kind]((theta @ gram - moment) / [float(weight) for weight in WEIGHTS]) / float(SCALE)
    return table_of(cells_of(domain, theta), np.exp(scores.min() - scores))


def table_of(cells, weights=None):
    table = np.histogram2d(*np.transpose(cells), bins=[np.arange(-5.5, 6.0)] * 2, weights=weights)[0].ravel()
    return table if weights is None else table / table.sum()


def accepted(envelope, law, number, bits, most=10**9):
    """Cells of so many accepted proposals, and how many were made."""
    found, made = [], 0
    while len(found) < number and made < most:
        cell = decided(envelope.propose(GRID, bits))
        made += 1
        if not isinstance(cell, Rejected):
            found.append(law.body.inward(cell, GRID))
    return found, made


def draws(law, number, bits):
    """Of envelopes that are fitted once."""
    made = choices.Choice(law).envelopes()
    return [draw_quadratic(law, GRID, bits, made) for _ in range(number)]


def envelopes_of(data, law):
    """Those of `envelope_arguments`."""
    return (QuadraticEnvelope(law, *arguments) for arguments in envelope_arguments(data, law))


def envelope_arguments(data, law):
    """Rows that can be drawn, none to all, with tilts of several directions and lengths."""
    sets = [[], [0], [1], [1, 0]] if data == "regular" else [[], [0]]
    length_of = {"maximum": sum, "sum": max, "length": lambda sizes: math.hypot(*map(float, sizes))}[law.noise.kind]
    generator = random.Random(3)
    for rows in sets:
        for length in (Fraction(0), Fraction(1, 4)):
            h = [Fraction(generator.randint(-8, 8)) for _ in range(2)]
            size = Fraction(length_of([abs(one) for one in h])) or Fraction(1)
            tilt = [length * one / size / (SCALE * weight) for one, weight in zip(h, WEIGHTS, strict=True)]
            yield rows, tilt, Fraction(generator.randint(1, 5))


# Each domain with each data, and each norm with each of both.
SOME = [
    (data, domain, list(NORMS)[(first + second) % 3])
    for (first, data), (second, domain) in itertools.product(enumerate(GRAMS), enumerate(DOMAINS))
]


@pytest.mark.default_cases(6)
@pytest.mark.parametrize(("data", "domain", "kind"), SOME)
def test_draws_have_the_probabilities_of_quadrature(data, domain, kind):
    law, bits = law_of(data, domain, kind), random.Random(7).getrandbits
    # Without records all 36 cells are about as likely, and proposals are accepted at once.
    number = 1000 if data == "none" else 300
    assert_cell_frequencies(table_of(draws(law, number, bits)), chances_of(data, domain, kind))


def test_draws_have_the_same_probabilities_where_digits_leave_most_open(monkeypatch):
    """Two digits leave most proposals neither accepted nor rejected nor placed: more are drawn, and nothing else."""
    monkeypatch.setattr(uniforms, "_FIRST_DIGITS", 2)
    monkeypatch.setattr(uniforms, "GUARD_DIGITS", 8)
    law, bits = law_of("singular", "l1", "maximum"), random.Random(12).getrandbits
    envelope = QuadraticEnvelope(law, [0], [Fraction(1, 8), Fraction(0)], Fraction(2))
    found, _ = accepted(envelope, law, 300, bits)
    assert_cell_frequencies(table_of(found), chances_of("singular", "l1", "maximum"))


def test_a_choice_that_fails_changes_nothing(monkeypatch):
    """Failures and warnings would be outputs that depend on the data."""
    law, bits = law_of("singular", "box", "maximum"), random.Random(13).getrandbits
    monkeypatch.setattr(choices, "_TRIALS", 1)
    monkeypatch.setattr(choices.Choice, "_untried", lambda *arguments: math.exp(np.log(np.zeros(1))[0] * -1.0) / 0)
    monkeypatch.setattr(choices.Choice, "_fit", lambda *arguments: math.log(0.0))
    assert_cell_frequencies(table_of(draws(law, 300, bits)), chances_of("singular", "box", "maximum"))


@pytest.mark.parametrize(
    ("data", "domain", "kind"), [("regular", "box", "maximum"), ("singular", "l2", "sum"), ("none", "l1", "length")]
)
def test_numbers_that_are_told_lead_to_one_cell_however_many_digits_are_asked_for(data, domain, kind, monkeypatch):
    """Uniform numbers of 4096 binary digits: of ever more of them at a time, and of what few digits guess nothing."""
    law, told, found = law_of(data, domain, kind), random.Random(21), []

    def tell(uniform, bits):
        number, left = told.getrandbits(4096), 4096
        uniform._number = uniform._digits = 0

        def take(more):
            nonlocal left
            left -= more
            return (number >> left) % 2**more

        uniform._bits = take

    monkeypatch.setattr(Uniform, "__init__", tell)
    for digits, guard in ((4, 4), (64, 64), (2048, 64)):
        told.seed(22)
        signs = random.Random(23).getrandbits
        monkeypatch.setattr(uniforms, "_FIRST_DIGITS", digits)
        monkeypatch.setattr(uniforms, "GUARD_DIGITS", guard)
        found.append([draw_quadratic(law, Grid((-30, -12)), signs, choices.Choice(law).envelopes()) for _ in range(12)])
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("kind", NORMS)
def test_theta_solves_what_float64_cannot(kind):
    """With noise of next to no size it is A^{-1}b, to more digits than float64 has."""
    # The determinant is 2^-70.
    gram = [[Fraction(1), Fraction(1)], [Fraction(1), 1 + Fraction(1, 2**70)]]
    theta = [Fraction(1, 3), Fraction(-1, 7)]
    moment = [sum(a * t for a, t in zip(row, theta, strict=True)) for row in gram]
    body = body_of(DOMAINS["l1"].exact_shape(2))
    law = QuadraticLaw(gram, moment, ScaledNorm(kind, WEIGHTS, Fraction(1, 2**1000)), body)
    grid, envelopes = Grid((-80, -80)), choices.Choice(law).envelopes()
    cell = draw_quadratic(law, grid, random.Random(2).getrandbits, envelopes)
    assert cell == grid.cell(theta)


@pytest.mark.slow
@pytest.mark.parametrize(("data", "domain", "kind"), list(itertools.product(GRAMS, DOMAINS, NORMS)))
def test_thousands_of_draws_have_the_probabilities_of_quadrature(data, domain, kind):
    law, bits = law_of(data, domain, kind), random.Random(9).getrandbits
    number = 2000 if (data, domain, kind) in SOME else 600
    assert_cell_frequencies(table_of(draws(law, number, bits)), chances_of(data, domain, kind, 1200))


@pytest.mark.parametrize("kind", ["maximum", "length"])
def test_tilts_are_taken_as_proved_for_all_rows_and_for_some(kind, monkeypatch):
    """One proof that ‖h‖_* < 1 without the other would leave noise without the tilt that it is accepted for."""
    law, wholes = law_of("singular", "box", kind), []

    def whole_alone(noise, tilt, *arguments):
        wholes.append(len(tilt) == 2)
        return tilted_noise(noise, tilt, *arguments) if wholes[-1] else None

    monkeypatch.setattr(envelopes, "tilted_noise", whole_alone)
    envelope = QuadraticEnvelope(law, [0], [Fraction(1, 8), Fraction(0)], Fraction(2))
    assert any(wholes)
    assert (envelope._tilt, envelope._slopes) == ([0], [0])


def check_envelopes(data, domain, kind, number):
    law, bits, chances = law_of(data, domain, kind), random.Random(8).getrandbits, chances_of(data, domain, kind)
    for envelope in envelopes_of(data, law):
        found, _ = accepted(envelope, law, number, bits)
        assert_cell_frequencies(table_of(found), chances)


def test_what_any_envelope_accepts_has_one_law():
    check_envelopes("singular", "box", "maximum", 300)


@pytest.mark.default_cases(9)
@pytest.mark.parametrize(("data", "domain", "kind"), list(itertools.product(["regular", "outside"], DOMAINS, NORMS)))
def test_bounds_of_envelopes_are_the_least_that_hold_on_all_of_the_domain(data, domain, kind):
    """M beside sup v'θ + rρ(θ_N) - p'b over many θ, which nothing in the logarithm of a probability exceeds."""
    law = law_of(data, domain, kind)
    gram, moment = (np.array(part, float) for part in GRAMS[data])
    scales, theta = np.array([float(SCALE * weight) for weight in WEIGHTS]), fine_points(domain)
    z = theta @ gram - moment
    fall = {"box": np.zeros_like(theta), "l1": np.abs(theta), "l2": theta**2 / 2.0}[domain]
    for rows, given, pull in envelope_arguments("regular", law):
        envelope = QuadraticEnvelope(law, rows, given, pull)
        rest = [axis for axis in range(2) if axis not in rows]
        p = np.array(list(map(float, given)))
        if rows and kind != "sum":
            p[rest] = 0.0
        own, falls = p @ gram, float(envelope._pull) * np.sum(fall[:, rest], axis=1)
        own[rest] = 0.0
        most = np.max(theta @ own + falls) - p @ moment
        assert most - 1e-9 <= float(envelope._most) <= most + 1e-3
        noise = NORMS[kind]((z / scales)[:, rows]) if rows else 0.0
        slopes = (p @ gram)[rest]
        logs = noise - NORMS[kind](z / scales) + z[:, rows] @ p[rows] - theta[:, rest] @ slopes + falls
        assert np.max(logs) <= float(envelope._most) + 1e-9


def fine_points(domain, number=301):
    """θ all over Θ, its boundary included."""
    axis = np.linspace(-1.0, 1.0, number)
    square = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    if domain == "box":
        return np.array([-0.125, 0.375]) + square * 0.625
    norms = NORMS["sum" if domain == "l1" else "length"](square)
    largest = np.max(np.abs(square), axis=1)
    return 0.875 * square * np.divide(largest, norms, out=np.zeros_like(norms), where=norms > 0.0)[:, None]


@pytest.mark.slow
@pytest.mark.parametrize(("data", "domain", "kind"), list(itertools.product(["regular", "singular"], DOMAINS, NORMS)))
def test_what_any_envelope_of_any_norm_accepts_has_one_law(data, domain, kind):
    check_envelopes(data, domain, kind, 300)
