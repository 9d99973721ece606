"""Certificates of older releases are read, and say no more than they said; mixtures against laws on a few points."""

import json
import math
import pathlib

import numpy as np
import pytest

import kngjax as kng
from kngjax.releases import debits
from kngjax.releases.older_certificates import Mixture

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
    epsilon, delta = Mixture(share).cost(EPSILON)
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


def test_a_mixture_without_a_share_of_the_law_costs_anything():
    assert Mixture(1.0).cost(EPSILON)[0] == math.inf


@pytest.mark.parametrize("distance", [1.5, math.nan])
def test_what_it_refuses(distance):
    with pytest.raises(ValueError, match=f"between 0 and 1, got {distance}"):
        Mixture(distance)


def older(name):
    return json.loads((OLDER / f"{name}.json").read_text())


# What they said, and what is said of them now.
ASSURANCES = {
    "with_rounding": ("exact_with_rounding", "proved"),
    "in_reals": ("exact_in_reals", "in_reals"),
    "box_tree": ("exact_in_reals", "in_reals"),
    "by_gradients": ("exact_in_reals", "in_reals"),
    "by_chain": ("none", "none"),
    "mixture": ("mixture", "none"),
}


@pytest.mark.parametrize("name", ASSURANCES)
def test_an_older_release_says_what_it_said_in_the_words_of_today(name):
    said, today = ASSURANCES[name]
    fields, release = older(name), kng.Release.from_json(json.dumps(older(name)))
    certificate = release.certificate
    assert (fields["certificate"]["assurance"], certificate.assurance) == (said, today)
    text = (OLDER / f"{name}.txt").read_text().replace(f"\nAssurance: {said}, ", f"\nAssurance: {today}, ")
    assert certificate.explain() + "\n" == text
    assert certificate.exact is (fields["certificate"]["promise"]["kind"] == "exact")
    assert certificate.to_dict()["proved_of_this_release"] == fields["certificate"]["proved_of_this_release"]
    assert certificate.rounding is None if today == "proved" else certificate.rounding is not None
    # Read once, it is written as releases are today.
    assert kng.Release.from_json(release.to_json()) == release
    assert release.value.tolist() == fields["value"]


def test_what_contradicts_itself_says_the_less():
    fields = older("with_rounding")
    fields["certificate"]["promise"]["kind"] = "none"
    certificate = kng.Release.from_json(json.dumps(fields)).certificate
    assert (certificate.assurance, certificate.exact, certificate.cost) == ("none", False, None)


def test_an_assurance_that_no_release_had_is_refused():
    fields = older("in_reals")
    fields["certificate"]["assurance"] = "certain"
    with pytest.raises(ValueError, match=r"one of proved, in_reals, none.*and not 'certain'"):
        kng.Release.from_json(json.dumps(fields))


def test_an_older_release_by_a_chain_of_which_something_was_proved_costs_what_it_cost():
    """By proposals of which a share came from the base measure, of so few records that each step drew afresh at times.

    kngjax had that sampler, `IndependenceMH`, before 0.1.0.
    """
    certificate = kng.Release.from_json((OLDER / "mixture.json").read_text()).certificate
    # The log-density varied by at most 1.5.
    left = (1 - 0.05 * math.exp(-1.5)) ** certificate.sampler["num_sweeps"]
    np.testing.assert_allclose(certificate.delta, left + certificate.rounding_delta, rtol=1e-9)
    np.testing.assert_allclose(certificate.epsilon, 1.0 - math.log1p(-left), rtol=1e-9)
    assert certificate.summary().endswith("proved (1.06243, 0.0605)-differentially private under replace")
    assert debits.owed(certificate) == (certificate.cost, True)
