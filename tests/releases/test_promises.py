"""How near draws are said to be to their law: what older certificates say, against laws on finitely many points."""

import json
import math
import pathlib

import numpy as np
import pytest

import kngjax as kng
from kngjax.releases import debits
from kngjax.releases.promises import EXACT, NONE, Promise

EPSILON = 0.7
OLDER = pathlib.Path(__file__).parent / "older"


def hockey_stick(law: np.ndarray, other: np.ndarray, epsilon: float) -> float:
    """sup_S μ(S) - e^ε μ'(S)."""
    return float(np.sum(np.maximum(law - math.exp(epsilon) * other, 0.0)))


def pair_of_laws(low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """Two laws whose ratio is e^ε at the first point and e^-ε at the last; a rare third point of mass about e^-R."""
    first = np.array([1.0 - high - low, high, low])
    second = np.array([(1.0 - high - low) * math.exp(-EPSILON), 0.0, low * math.exp(EPSILON)])
    second[1] = 1.0 - second.sum()
    return first, second


# The ratio e^ε is attained at the first point: (1 - high - low)/((1 - high - low)e^-ε).
LAW, NEIGHBOUR = pair_of_laws(low=1e-6, high=0.6)


@pytest.mark.parametrize("share", [1e-3, 0.1, 0.4])
def test_a_mixture_costs_what_it_says(share):
    """The worst mixture: ρ on the points that favour the attacker, none of it beside the neighbour."""
    epsilon, delta = Promise("mixture", share).cost(EPSILON)
    worst = 0.0
    for here in np.eye(3):
        for there in np.eye(3):
            mixed = (1 - share) * LAW + share * here
            other = (1 - share) * NEIGHBOUR + share * there
            worst = max(worst, hockey_stick(mixed, other, epsilon), hockey_stick(other, mixed, epsilon))
    assert 0.5 * delta < worst <= delta
    # One neighbour's sampler may be exact and the other's not: the larger ε is needed.
    exact_against_mixed = LAW[0] / ((1 - share) * NEIGHBOUR[0])
    np.testing.assert_allclose(epsilon, math.log(exact_against_mixed), rtol=1e-9)
    assert epsilon >= math.log(exact_against_mixed)


def test_an_exact_draw_costs_epsilon_and_what_is_not_proved_costs_anything():
    assert EXACT.cost(EPSILON) == (EPSILON, 0.0)
    for promise in (NONE, Promise("mixture", 1.0)):
        epsilon, delta = promise.cost(EPSILON)
        assert epsilon == math.inf
        assert math.isnan(delta)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"kind": "mixture", "distance": 1.5}, "between 0 and 1, got 1.5"),
        ({"kind": "mixture", "distance": math.nan}, "between 0 and 1, got nan"),
    ],
)
def test_what_it_refuses(fields, text):
    with pytest.raises(ValueError, match=text):
        Promise(**fields)


def test_an_older_release_by_a_chain_of_which_something_was_proved_says_what_it_said():
    """By proposals of which a share came from the base measure, of so few records that each step drew afresh at times.

    kngjax had that sampler, `IndependenceMH`, before 0.1.0.
    """
    text = (OLDER / "mixture.json").read_text()
    release = kng.Release.from_json(text)
    assert release.to_json() == text
    certificate = release.certificate
    assert (certificate.assurance, certificate.exact, certificate.unproved) == ("mixture", False, ())
    assert certificate.explain() + "\n" == (OLDER / "mixture.txt").read_text()
    said = json.loads(text)["certificate"]["proved_of_this_release"]
    assert said == {"epsilon": certificate.epsilon, "delta": certificate.delta}
    # The log-density varied by at most 1.5.
    left = (1 - 0.05 * math.exp(-1.5)) ** certificate.sampler["num_sweeps"]
    np.testing.assert_allclose(certificate.delta, left + certificate.rounding_delta, rtol=1e-9)
    np.testing.assert_allclose(certificate.epsilon, 1.0 - math.log1p(-left), rtol=1e-9)
    assert certificate.summary().endswith("proved (1.06243, 0.0605)-differentially private under replace")
    assert debits.owed(certificate) == (certificate.cost, True)
