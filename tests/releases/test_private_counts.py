"""Under add_remove n is private: nothing public is made of it."""

import numpy as np
import pytest

import kngjax as kng
from kngjax.releases.routes.choice import route_for
from tests.made_once import MadeOnce

BOUNDS = kng.Bounds(x=([-1.0], [1.0]), y=(-1.0, 1.0))
NUMBERS, COLUMN = kng.Bounds(y=(-1.0, 1.0)), kng.Bounds(x=([-1.0], [1.0]), intercept=False)
BOX = kng.Box(-1.0, 1.0)
CHECK, SQUARED = kng.QuantileLoss(0.5), kng.SquaredLoss()
MECHANISMS = MadeOnce(
    {
        "median": lambda: kng.KNG(CHECK, NUMBERS, BOX, 1.0, "add_remove"),
        "median regression": lambda: kng.KNG(CHECK, BOUNDS, BOX, 1.0, "add_remove"),
        "least squares": lambda: kng.KNG(SQUARED, BOUNDS, BOX, 1.0, "add_remove"),
        "exponential": lambda: kng.ExponentialMechanism(CHECK, BOUNDS, BOX, 1.0, "add_remove"),
        "mean": lambda: kng.KNG(kng.SquaredDistanceLoss(), COLUMN, BOX, 1.0, "add_remove"),
        "quantiles": lambda: kng.PrivateQuantile([0.2, 0.7], NUMBERS, 1.0, "add_remove", budget="split"),
        "objective": lambda: kng.ObjectivePerturbation(SQUARED, BOUNDS, BOX, 1.0, "add_remove"),
        "output": lambda: kng.OutputPerturbation(SQUARED, BOUNDS, 1000.0, 1.0, 1e-6, "add_remove", max_records=10**5),
        "posterior": lambda: kng.PosteriorSample(BOUNDS, 1000.0, 1.0, "add_remove", 10**5, 1e-6),
        "AdaSSP": lambda: kng.AdaSSP(BOUNDS, 1.0, 1e-6, "add_remove"),
        "AdaOPS": lambda: kng.AdaOPS(BOUNDS, 1.0, 1e-6, "add_remove"),
        "reweighted": lambda: kng.PrivateIRLS(BOUNDS, 1.0, 1e-6, "add_remove"),
    }
)


def data(mechanism, n):
    """n records with the columns that these bounds speak of."""
    values = np.linspace(-1.0, 1.0, n)
    if mechanism.bounds.x_lower is None:
        return None, values
    return values[:, None], values if mechanism.loss.has_response else None


def public(mechanism, n, sampler=None):
    """All that is decided before the draw."""
    facts = mechanism.admit(*data(mechanism, n))
    return facts, route_for(mechanism, sampler, facts).certify()


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("name", MECHANISMS)
def test_facts_sampler_and_certificate_are_the_same_for_every_number_of_records(name):
    mechanism = MECHANISMS[name]
    facts, certificate = public(mechanism, 40)
    assert facts.num_records is None
    # One record more, a hundred copies, and so many that a lattice that knew of them would take other digits or none.
    for n in (41, 4000, 300_000):
        assert public(mechanism, n) == (facts, certificate)


def test_under_replace_they_may_differ_so_that_the_comparison_can_fail():
    mechanism = kng.KNG(CHECK, BOUNDS, BOX, 1.0, "replace")
    assert public(mechanism, 40)[0].num_records == 40
    assert public(mechanism, 40) != public(mechanism, 300_000)
