"""A private choice: its law, its price under each adjacency, and that a record moves its own losses alone."""

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest

import kngjax as kng
from kngjax.accounting.adjacency import Adjacency
from kngjax.data.schema import Schema
from kngjax.draws.choice import proved_draw
from kngjax.draws.exact_choice import choose
from kngjax.mechanisms.private_choice import PrivateChoice
from kngjax.sensitivity import loss_changes

EPSILON = 1.5
FACTS = Schema(3)


def mechanism(number=3, epsilon=EPSILON, adjacency="replace", missing=1.0):
    bounds = kng.Bounds({f"candidate {k}": (0.0, 1.0) for k in range(number)}, intercept=False, missing=missing)
    return PrivateChoice(bounds, epsilon, adjacency)


def law(sums, adjacency, epsilon=EPSILON):
    """P(k) ∝ exp(-c Σ l_k), written down once more."""
    rate = epsilon / (2.0 if adjacency == "replace" else 1.0)
    weights = np.exp(-rate * (np.asarray(sums) - np.min(sums)))
    return weights / weights.sum()


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_choices_have_the_law_of_the_sums(adjacency):
    losses = np.array([[0.5, 1.0, 0.0], [0.5, 0.25, 0.5], [0.0, 0.5, 1.0]])
    reached = np.cumsum(law(losses.sum(axis=0), adjacency))
    way = proved_draw(mechanism(adjacency=adjacency), FACTS)
    data = way.prepare(losses, None)
    assert data == [2**20 * 1, int(2**20 * 1.75), int(2**20 * 1.5)]
    # A uniform number right below where a candidate's share ends chooses it, and right above the next one.
    for share, chosen in ((0.0, 0), (reached[0], 1), (reached[1], 2)):
        for nudge in (-1e-12, 1e-12) if share else (0.0,):
            value = way.draw_alone(data, bits_of(share + nudge))
            assert value.tolist() == np.eye(3)[chosen - (nudge < 0)].tolist()


def bits_of(share):
    """The binary digits of a number in [0, 1), as they are asked for."""
    left = [Fraction(share)]

    def bits(number):
        scaled = left[0] * 2**number
        left[0] = scaled - int(scaled)
        return int(scaled)

    return bits


def exact_probabilities(sums, rate):
    weights = [math.exp(-float(rate) * (total - min(sums))) for total in sums]
    return [weight / sum(weights) for weight in weights]


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_the_price_is_epsilon_and_no_less(adjacency):
    """The worst pair of neighbours comes within a tenth of ε, and none exceeds it, by the rate that is drawn from."""
    rate = loss_changes.choice_rate(Fraction(EPSILON), adjacency)
    records = list(itertools.product((0, 1), repeat=2))
    most = 0.0
    for base in ((0, 0), (30, 0), (0, 30), (5, 4)):
        if adjacency is Adjacency.REPLACE:
            pairs = [(np.add(base, one), np.add(base, other)) for one in records for other in records]
        else:
            pairs = [(np.array(base), np.add(base, one)) for one in records]
        for sums in pairs:
            one, other = (exact_probabilities(list(map(int, total)), rate) for total in sums)
            ratios = [abs(math.log(p / q)) for p, q in zip(one, other, strict=True)]
            assert max(ratios) <= EPSILON + 1e-9
            most = max(most, *ratios)
    assert most > 0.9 * EPSILON


def test_a_choice_is_certain_where_real_arithmetic_is():
    assert choose([0, 10**9], Fraction(1), random.Random(0).getrandbits) == 0
    assert choose([10**9, 0], Fraction(1), random.Random(0).getrandbits) == 1
    counts = np.bincount([choose([5, 5, 5], Fraction(1), bits_of((k + 0.5) / 30)) for k in range(30)])
    assert counts.tolist() == [10, 10, 10]
    # The bits of the largest uniform numbers.
    assert choose([3, 3], Fraction(1), lambda number: 2**number - 1) == 1
    assert choose([3, 3], Fraction(1), lambda number: 0) == 0


def test_a_release_has_a_certificate_and_is_paid(tmp_path, monkeypatch):
    monkeypatch.setattr("secrets.randbits", random.Random(0).getrandbits)
    ledger = kng.Ledger.create(tmp_path / "choices", kng.Budget.pure(2.0), adjacency="replace", dataset="choices")
    losses = np.column_stack([np.full(200, 0.9), np.full(200, 0.1), np.full(200, np.nan)])
    release = kng.release(mechanism(), losses, ledger=ledger)
    assert release.value.tolist() == [0.0, 1.0, 0.0]
    assert release.certificate.assurance == "proved"
    assert release.certificate.guarantee.rho == EPSILON**2 / 8
    assert "[-1, 1], an interval of length 2" in release.certificate.explain()
    assert "[0, 1], an interval of length 1" in loss_changes.explain_loss_changes(Adjacency.ADD_REMOVE).derivation
    assert kng.Release.from_json(release.to_json()) == release
    assert len(ledger.releases()) == 1
    # Losses beyond the bounds are clipped: one record has no more say than that.
    way = proved_draw(mechanism(2), FACTS)
    assert way.prepare(np.array([[1e9, -5.0]]), None) == [2**20, 0]
    assert way.prepare(np.array([[0.3, 0.7], [0.1, 0.2]]), None) == [
        round(0.3 * 2**20) + round(0.1 * 2**20),
        round(0.7 * 2**20) + round(0.2 * 2**20),
    ]
    # Of no record all candidates are alike.
    assert proved_draw(mechanism(adjacency="add_remove"), FACTS).prepare(np.zeros((0, 3)), None) == [0, 0, 0]


def test_other_bounds_and_samplers_are_refused():
    for bounds in (kng.Bounds({"a": (0.0, 2.0)}, intercept=False), kng.Bounds({"a": (-1.0, 1.0)}, intercept=False)):
        with pytest.raises(ValueError, match="lie in"):
            PrivateChoice(bounds, 1.0, "replace")
    with pytest.raises(ValueError, match="intercept"):
        PrivateChoice(kng.Bounds({"a": (0.0, 1.0)}), 1.0, "replace")
    with pytest.raises(ValueError, match="adjacency"):
        mechanism(adjacency=None)
    with pytest.raises(ValueError, match="leave the sampler out"):
        mechanism().densities()
