"""Laws of draws against the exact probabilities of cells, and another law is seen.

`python -m tests.draws` makes a hundred thousand draws of each, with one failure rate for all of them together.
"""

import equinox as eqx
import numpy as np
import pytest

from audits.grid_laws.cases import CASES
from audits.grid_laws.laws import FAILURE_RATE, are_right
from kngjax.draws.ada_ops_draw import NoisyAdaOPS
from kngjax.draws.ada_ssp_draw import NoisyMoments
from kngjax.draws.box_draws import BoxDraw
from kngjax.draws.exact_choice import ExactChoice
from kngjax.draws.exact_interval import ExactInterval
from kngjax.draws.irls_iterates import IteratesOnGrid
from kngjax.draws.lattice_draws import LatticeDraw
from kngjax.draws.noisy_counts import NoisyCounts
from kngjax.draws.noisy_minimizers import NoisyMinimum, NoisyRidge
from kngjax.draws.noisy_sums import NoisyMean
from kngjax.draws.perturbed_minimizers import QuadraticMinimum, SmoothMinimum
from kngjax.draws.quadratic_draws import QuadraticDraw
from kngjax.draws.ridge_posterior import NoisyPosterior
from kngjax.draws.shell_draws import ShellDraw
from tests.draws import __main__ as command
from tests.draws.cases import all_draws
from tests.made_once import MadeOnce

LAWS = MadeOnce(CASES)
# Their probabilities, their envelopes or the programs of their noise take long, and other laws are drawn likewise.
# `tests/draws/test_shell_draws.py` has draws in shells with one coefficient of each of these losses, and
# `test_quadratic_draws.py` has those of five coefficients.
DEAR = (
    "private IRLS, Wishart noise",
    "KNG, squared, by the domain",
    "KNG, squared, 5 coefficients",
    "KNG, logistic, shells, 5",
    "KNG, Poisson, shells, 5",
    "KNG, smoothed quantile, shells, 5",
)
# Parts of names: 700 draws of these take some tenths of a second, as a hundred of costly ones do. With half of the
# noise nearly all laws of default tests are seen to be wrong.
CHEAP = (
    "means",
    "sums",
    "design",
    "posterior",
    "output, squared",
    "AdaSSP",
    "counts",
    "weights",
    "choice",
    "interval",
)
COSTLY = ("shells",)
# A thousand draws tell these laws from those of three quarters of the noise; some of them take milliseconds.
TOLD = {
    "means by K-norm noise": True,
    "AdaSSP": True,
    "AdaSSP with weights": False,
    "counts, replace": True,
    "sums of weights, replace": True,
    "choice, replace": True,
    "interval, replace": True,
    "KNG, Huber, boxes, 1": False,
    "objective, squared": False,
}

# A law of each way of drawing.
LAW_OF = {
    NoisyMean: "means by K-norm noise",
    NoisyPosterior: "posterior sample",
    NoisyRidge: "output, squared",
    NoisyMinimum: "output, logistic",
    QuadraticMinimum: "objective, squared",
    SmoothMinimum: "objective, logistic",
    NoisyMoments: "AdaSSP",
    NoisyAdaOPS: "AdaOPS",
    IteratesOnGrid: "private IRLS, normal noise",
    QuadraticDraw: "KNG, squared, by noise",
    BoxDraw: "KNG, Huber, boxes, 1",
    ShellDraw: "KNG, pseudo-Huber, shells, 5",
    LatticeDraw: "KNG, quantile, lattice",
    NoisyCounts: "counts, replace",
    ExactChoice: "choice, replace",
    ExactInterval: "interval, replace",
}


def slow_unless(names, quick):
    return [name if quick(name) else pytest.param(name, marks=pytest.mark.slow) for name in names]


def any_in(words, name):
    return any(word in name for word in words)


def assert_right(name, number):
    """The failure rate is that of the whole table."""
    values = LAWS[name].p_values(number, seed=7)
    assert min(values) * len(values) * len(LAWS) >= FAILURE_RATE


@pytest.mark.parametrize("name", slow_unless(CASES, lambda name: name not in DEAR))
def test_draws_have_the_probabilities_of_their_cells(name):
    assert_right(name, 700 if any_in(CHEAP, name) else 100 if any_in(COSTLY, name) else 300)
    if name in LAW_OF.values():
        assert LAW_OF[LAWS[name].drawn_by] == name


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_three_thousand_draws_have_the_probabilities_of_their_cells(name):
    assert_right(name, 3000)


@pytest.mark.parametrize("name", slow_unless(TOLD, TOLD.get))
def test_another_epsilon_than_that_of_the_certificate_is_seen(name):
    """Three quarters of the noise, from a thousand draws."""
    law = CASES[name]()
    other = eqx.tree_at(lambda mechanism: mechanism.epsilon, law.mechanism, law.mechanism.epsilon * 4.0 / 3.0)
    object.__setattr__(law, "mechanism", other)
    assert not are_right(law.p_values(1000))


def test_no_way_of_drawing_has_no_law_by_default():
    assert set(LAW_OF) == all_draws()
    assert set(LAW_OF.values()) <= set(CASES) - set(DEAR)


def test_the_command_tells_right_laws_from_wrong_ones(capsys, monkeypatch):
    chosen = ["--draws", "200", "means by", "exponential, squared"]
    assert command.main(chosen) == 0
    printed = capsys.readouterr().out
    assert printed.count("200 draws") == 2
    assert "as exact laws have it" in printed
    monkeypatch.setattr(command, "are_right", lambda values: False)
    assert command.main(chosen) == 1
    assert "not as exact laws have it" in capsys.readouterr().out


def test_one_rate_is_that_of_all_together():
    assert are_right([0.5, 1e-4])
    assert not are_right([0.5, 1e-5])
    assert not are_right([*np.full(99, 0.5), 1e-7])
