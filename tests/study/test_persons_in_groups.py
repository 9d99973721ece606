"""Groups of a table that share persons: shares of the whole table, and one price for what all groups tell of one."""

import numpy as np
import pandas as pd
import pytest

import kngjax as kng
from kngjax.releases import group_plans
from kngjax.releases.division import Division
from kngjax.releases.release import plan_for

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
def test_mechanisms_of_groups_know_over_how_many_a_person_may_be_spread(adjacency):
    """Lattices leave room for what rounding of scores adds in each: all groups together cost what was asked for."""
    for ask in ("median", "sum"):
        made = getattr(study(table(), adjacency).by("region"), ask)("wage", epsilon=1.0, force=True)
        certificate = made.releases[0].certificate
        together, times = certificate.membership.together, 2 if adjacency == "replace" else 1
        assert certificate.mechanism["bounds"]["unit"]["groups"] == len(LEVELS)
        assert (together.unit, together.adjacency) == ("worker", adjacency)
        assert together.epsilon == 1.0 == float(certificate.guarantee.epsilon) * times


def test_errors_that_do_not_shrink_with_a_share_are_refused():
    bounds = kng.Bounds(x=(0.0, 1.0), columns=1, unit=kng.Unit("worker", most_rows=1, groups=2))
    mechanism = kng.OutputPerturbation(kng.LogisticLoss(), bounds, 10.0, 1.0, 1e-6, "add_remove")
    plan = plan_for(mechanism)
    with pytest.raises(ValueError, match="groups of persons take no OutputPerturbation"):
        group_plans.plan_of_groups([[plan], [plan]], Division(("region",), (LEVELS[:2],)), kng.Adjacency.ADD_REMOVE)
