"""Groups of a table that share persons: shares of the whole table, and one price for what all groups tell of one."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import kngjax as kng
from kngjax.releases import group_plans

LEVELS = ("north", "south", "east")


def table(seed=0):
    random = np.random.default_rng(seed)
    ids = random.permutation(np.repeat(np.arange(60), random.integers(1, 6, 60)))
    wage = random.uniform(0.0, 1.0, len(ids))
    return pd.DataFrame({"worker": ids, "wage": wage, "region": random.choice(LEVELS, len(ids))})


def study(frame, adjacency="add_remove", **more):
    more |= {} if adjacency == "replace" else {"num_records": 60}
    facts = {"bounds": {"wage": (0, 1)}, "levels": {"region": LEVELS}, "adjacency": adjacency}
    return kng.Study(frame, person="worker", unit="worker", **facts, **more)


def test_shares_of_groups_are_of_the_whole_table(monkeypatch):
    """Those of each person add up to 1 over all groups, not within each."""
    seen, frame, split = [], table(), group_plans._of_group

    def divided(number, records):
        seen.append((number, split(number, records)))
        return seen[-1][1]

    monkeypatch.setattr(group_plans, "_of_group", divided)
    study(frame).by("region").sum("wage", epsilon=1.0, force=True)
    totals = np.zeros(60)
    for number, columns in seen:
        own = frame.worker[frame.region == LEVELS[number]]
        np.add.at(totals, own.to_numpy(), columns[-1].weights)
    np.testing.assert_array_equal(totals, np.ones(60))


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_quantiles_of_groups_pay_for_rounded_scores(adjacency):
    """All groups together cost what was asked for, hardly less, and a group by itself less than that."""
    made = study(table(), adjacency).by("region").median("wage", epsilon=1.0, force=True)
    certificate = made.releases[0].certificate
    together, own = certificate.membership.together, certificate.guarantee.exact_epsilon
    assert certificate.sampler["type"] == "Lattice"
    assert (together.unit, together.adjacency) == ("worker", adjacency)
    assert together.kind == certificate.guarantee.kind or adjacency == "replace"
    assert 1.0 - 1e-12 < together.epsilon <= 1.0
    times = 2 if adjacency == "replace" else 1
    assert together.exact_epsilon == times * own * Fraction(4096 + 2, 4096)
    # Nothing is rounded in sums.
    total = study(table(), adjacency).by("region").sum("wage", epsilon=1.0, force=True).releases[0].certificate
    assert float(total.guarantee.epsilon) * times == total.membership.together.epsilon == 1.0
