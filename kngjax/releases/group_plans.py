"""Plans releases of all groups of a table by one debit: each record goes to one group at most."""

import dataclasses
import functools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from kngjax.accounting.adjacency import Adjacency
from kngjax.accounting.exact_costs import with_both_orders
from kngjax.accounting.guarantees import Guarantee
from kngjax.accounting.kinds import Kind
from kngjax.accounting.parallel import in_parallel
from kngjax.data.passes import Passes
from kngjax.data.persons import Shares
from kngjax.releases.certificate import Certificate
from kngjax.releases.division import Division, Membership
from kngjax.releases.plan import Plan
from kngjax.releases.release import Release
from kngjax.releases.totals import composed

# Columns of a table, one row a record, and the place of each record's group; below 0 for those that are in none.
Records = tuple[tuple[Any, ...], np.ndarray]
# What a ledger debits, and whether it is proved to cost no more.
Owed = tuple[Guarantee, bool]


def owed_together(groups: Iterable[Sequence[Owed]], adjacency: Adjacency) -> Owed:
    """States what a ledger debits for the releases of all groups, and whether it is proved that they cost no more.

    The costs within a group add up, and the worst group counts, twice under 'replace' (`Guarantee.parallel`). There a
    guarantee that can be stated at any δ, and is stated at (ε, δ), is stated at (1 + e^ε)δ, where 2ε holds.

    **Arguments:** `groups`: what is owed in each, by mechanisms for 'add_remove'; nothing in those without a release.
    `adjacency`: of the whole table.
    """
    debits = [group for group in map(list, groups) if group]
    proved = all(known for group in debits for _, known in group)
    worst = in_parallel([composed([cost for cost, _ in group]) for group in debits], shared=True)
    return (worst if adjacency is Adjacency.ADD_REMOVE else _exchanged(worst)), proved


def _exchanged(cost: Guarantee) -> Guarantee:
    """Converts to replace, stating at (1 + e^ε)δ what can be stated anywhere; for a sum each part by itself."""
    if cost.parts and Guarantee.counted(cost.parts) == cost:
        return Guarantee.counted((_exchanged(part), count) for part, count in cost.parts)
    twice = cost.to_replace()
    if cost.kind in (Kind.GAUSSIAN, Kind.ZCDP) and cost.exact_epsilon is not None:
        delta = with_both_orders(cost.exact_epsilon, cost.exact_delta)
        return twice.stated(delta) if delta < 1 else twice
    return twice


def plan_of_groups(plans: Sequence[Sequence[Plan]], division: Division, adjacency: Adjacency) -> Plan:
    """Plans the releases of every group, paid for by one debit of what all of them cost together.

    The table is read once, and each record goes to the group that its own levels name. The size of a group is private:
    an empty group is released like any other. A group without a plan has no release.

    **Arguments:** `plans`: those of each group, in the order of `division.groups()`, of mechanisms for 'add_remove'.
    `adjacency`: of the whole table. The records of the plan are `Records`.

    Raises ValueError for a mechanism that is not for 'add_remove', and for one that is drawn without a proof.
    """
    if len(plans) != len(division):
        raise ValueError(f"{len(plans)} lists of plans were given for {len(division)} groups")
    every = [one for group in plans for plan in group for one in plan.certificates]
    if any(one.guarantee.adjacency is not Adjacency.ADD_REMOVE for one in every):
        raise ValueError("groups need mechanisms for 'add_remove': the number of records of a group is private")
    if any(one.cost is None for one in every):
        raise ValueError("groups need mechanisms that are drawn with a proof, and one of these takes a Markov chain")
    _require_room(every, len(plans))
    together, proved = owed_together([[plan.owed for plan in group] for group in plans], adjacency)
    members = tuple(
        _member(one, Membership(division, group, together))
        for group, own in zip(division.groups(), plans, strict=True)
        for plan in own
        for one in plan.certificates
    )
    drawing = functools.partial(_drawn, plans, members)
    return Plan(members, together, proved, drawing, functools.partial(_joined, plans))


def _member(certificate: Certificate, membership: Membership) -> Certificate:
    proofs = (*certificate.proofs, "docs/proofs/groups.md")
    return dataclasses.replace(certificate, membership=membership, proofs=proofs)


def _require_room(certificates: Sequence[Certificate], number: int) -> None:
    """Raises ValueError for rows of persons in more groups than their mechanisms know of."""
    units = [(one.mechanism.get("bounds") or {}).get("unit") or {} for one in certificates]
    of_rows = [unit.get("most_rows") is not None for unit in units]
    if any(of_rows) and any(one.mechanism["type"] == "OutputPerturbation" for one in certificates):
        # How far a search may be off does not shrink with a share.
        raise ValueError("groups of persons take no OutputPerturbation: take ObjectivePerturbation or KNG")
    if any(of_rows) and not all(of_rows):
        # A number of each person in each group, and no share of one.
        raise ValueError(
            "groups of persons have no intervals: what they rest on counts a person once more in each group that has "
            "rows of one. Leave intervals out, or ask for one group after another as a table of its own"
        )
    if any(unit.get("most_rows") is not None and (unit.get("groups") or 1) < number for unit in units):
        raise ValueError(f"rows of one person may lie in {number} groups: Unit(..., groups={number}) says so")


def _drawn(
    plans: Sequence[Sequence[Plan]], members: Sequence[Certificate], records: Records | Passes, progress: bool | None
) -> list[Release]:
    groups = [functools.partial(_of_group, number) for number in range(len(plans))]
    each = records.divided(groups) if isinstance(records, Passes) else (of_group(records) for of_group in groups)
    made = [one for group, own in zip(plans, each, strict=True) for plan in group for one in plan.draw(own, None)]
    return [_of_member(one, member) for one, member in zip(made, members, strict=True)]


def _of_group(number: int, records: Records) -> tuple[Any, ...]:
    columns, places = records
    return tuple(_some(column, places == number) for column in columns)


def _some(column: Any, places: np.ndarray) -> Any:
    if isinstance(column, Shares):
        return column.some(places)
    return None if column is None else column[places]


def _of_member(one: Release, member: Certificate) -> Release:
    """Says in a release's certificate of which group it is; a certificate that was not planned is kept, and refused."""
    if member.membership is None or _member(one.certificate, member.membership) != member:
        return one
    return Release._of(one.value, member, one.names, one.published)


def _joined(plans: Sequence[Sequence[Plan]], releases: Iterable[Release]) -> list[Any]:
    waiting = iter(releases)
    return [
        joined
        for group in plans
        for plan in group
        for joined in plan.joined([next(waiting) for _ in plan.certificates])
    ]
