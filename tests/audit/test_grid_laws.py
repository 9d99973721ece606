"""Laws of draws on grids against exact probabilities: every kind of draw, and bugs that must be seen."""

import inspect
import itertools

import equinox as eqx
import numpy as np
import pytest
from flint import acb, arb, ctx

from kngjax.audit.grid_laws import cells, densities
from kngjax.audit.grid_laws.cases import CASES
from kngjax.audit.grid_laws.laws import are_right
from kngjax.audit.grid_laws.neighbours import worst_ratios
from kngjax.mechanisms import grid_draws
from tests.audit import grid_laws
from tests.oracles.goodness_of_fit import FAILURE_RATE

# Five thousand draws take some seconds. `python -m tests.audit.grid_laws` draws a hundred thousand of all.
QUICK = (
    "means by K-norm noise",
    "posterior sample",
    "output, squared",
    "output, squared, hessian",
    "output, squared, hessian_squared",
    "AdaOPS",
    "KNG, squared, by noise",
    "KNG, means",
    "KNG, quantile, lattice",
    "exponential, quantile, lattice",
    "exponential, squared, lattice",
    "one quantile",
    "counts, add_remove",
    "counts, replace",
    "sums of weights, add_remove",
    "sums of weights, replace",
    "choice, add_remove",
    "choice, replace",
    "interval, add_remove",
    "interval, replace",
)


def assert_right(name, number):
    values = CASES[name]().p_values(number, seed=7)
    assert min(values) * len(values) >= FAILURE_RATE


@pytest.mark.parametrize(
    "name",
    [
        "means by K-norm noise",
        "KNG, Huber, boxes, 1",
        "counts, replace",
        "sums of weights, replace",
        "choice, add_remove",
        "interval, add_remove",
    ],
)
def test_draws_have_the_probabilities_of_their_cells(name):
    assert_right(name, 300)


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_five_thousand_draws_have_the_probabilities_of_their_cells(name):
    assert_right(name, 5000)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CASES if name not in QUICK])
def test_a_thousand_draws_have_the_probabilities_of_their_cells(name):
    assert_right(name, 1000)


def concrete(kind):
    """All classes below it that are not abstract."""
    below = [found for child in kind.__subclasses__() for found in concrete(child)]
    return below if inspect.isabstract(kind) or below else [kind]


@pytest.mark.slow
def test_no_way_of_drawing_on_a_grid_is_left_out():
    routes = {make().route for make in CASES.values()}
    assert set(concrete(grid_draws.AbstractGridDraw)) <= routes


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(
    "name",
    [
        "means by K-norm noise",
        "KNG, Huber, boxes, 1",
        "AdaSSP",
        "AdaSSP with weights",
        "objective, squared",
        "counts, replace",
        "sums of weights, replace",
        "choice, replace",
        "interval, replace",
    ],
)
def test_another_epsilon_than_that_of_the_certificate_is_seen(name):
    """Three quarters of the noise, from a thousand draws."""
    law = CASES[name]()
    other = eqx.tree_at(lambda mechanism: mechanism.epsilon, law.mechanism, law.mechanism.epsilon * 4.0 / 3.0)
    object.__setattr__(law, "mechanism", other)
    assert not are_right(law.p_values(1000))


def test_no_neighbour_is_farther_than_noise_hides_and_the_worst_are_as_far():
    ratios = dict(worst_ratios())
    assert max(ratios.values()) <= 1
    assert min(ratios.values()) > 0.99


def integral(score, low, high):
    """∫ exp(-|g|) by FLINT, between the ends and the root of g."""

    def piece(start, end):
        sign = 1 if score(acb((start + end) / 2), False).real > 0 else -1
        return acb.integral(lambda z, analytic: (-sign * score(z, analytic)).exp(), start, end).real

    root = cells._inverse(lambda t: np.array([float(score(acb(x), False).real) for x in t]), np.zeros(1), low, high)[0]
    ends = [low, *([root] if low < root < high else []), high]
    return sum((piece(a, b) for a, b in itertools.pairwise(ends)), arb(0))


def test_probabilities_of_levels_are_those_of_integrals_in_balls():
    """Of a pseudo-Huber loss with one coefficient; of two straight lines by a closed form."""
    kind = densities.SMOOTH["pseudo-Huber"]
    x, y = densities.records(kind, 12, 1, 12)
    (score,) = densities.scores(kind, x, y, 1.5, 4.0)
    edges = cells.cell_edges(0.0, 99, -2, -0.5, 1.5)

    def in_balls(eta, analytic):
        residuals = [(eta * row - response, row) for row, response in zip(x[:, 0].tolist(), y.tolist(), strict=True)]
        total = sum((r / (1 + (r / arb(0.3)) ** 2).sqrt(analytic=analytic) * row for r, row in residuals), acb(0))
        return total * 4 / (4 * arb(0.3))

    with ctx.workprec(80):
        masses = [
            integral(in_balls, low, high) for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
        ]
        whole = sum(masses, arb(0))
        expected = [float(mass / whole) for mass in masses]
    np.testing.assert_allclose(cells.level_masses([score], [edges]), expected, rtol=1e-11)
    # exp(-max(|2a|, |b|)) over a ∈ [0, 1], b ∈ [0, 2] is that over a square of side 2, halved; below 1/2 and 1 of one
    # of side 1. ∫∫ exp(-max) over a square of side s is 2(1 - (1 + s)e^-s).
    found = cells.level_masses([lambda a: 2.0 * a, lambda b: b], [np.array([0.0, 0.5, 1.0]), np.array([0.0, 1.0, 2.0])])
    small, large = (2.0 * (1.0 - (1.0 + s) * np.exp(-s)) for s in (1.0, 2.0))
    assert found[0, 0] == pytest.approx(small / large, rel=1e-12)
    np.testing.assert_allclose(found, found.T, rtol=1e-12)


def test_counts_that_are_off_are_seen_and_others_are_not():
    generator, chances = np.random.default_rng(0), np.array([0.4, 0.3, 0.2, 0.0999, 0.0001, 0.0])
    assert cells.chi_square(generator.multinomial(5000, chances), chances) > 1e-6
    for wrong in (chances[[1, 0, 2, 3, 4, 5]], [0.44, 0.26, 0.2, 0.0999, 0.0001, 0.0]):
        assert cells.chi_square(generator.multinomial(5000, wrong), chances) < 1e-6
    assert cells.chi_square(np.array([2000, 1500, 1000, 499, 0, 1]), chances) == 0.0
    with pytest.raises(ValueError, match="too few draws"):
        cells.chi_square(np.array([9, 0, 0, 0, 0, 0]), chances)
    assert are_right([0.5, 1e-4])
    assert not are_right([0.5, 1e-5])


def test_the_command_tells_right_laws_from_wrong_ones(capsys, monkeypatch):
    chosen = ["--draws", "200", "means by", "exponential, squared"]
    assert grid_laws.main(chosen) == 0
    printed = capsys.readouterr().out
    assert printed.count("200 draws") == 2
    assert "as exact laws have it" in printed
    monkeypatch.setattr(grid_laws, "are_right", lambda values: False)
    assert grid_laws.main(chosen) == 1
    assert "not as exact laws have it" in capsys.readouterr().out
