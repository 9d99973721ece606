"""Plans releases of all groups of a table by one debit: each record goes to one group at most."""

import dataclasses
import functools
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from kngjax.accounting.adjacency import Adjacency
from kngjax.accounting.exact_costs import with_both_orders
from kngjax.accounting.guarantees import Guarantee
from kngjax.accounting.kinds import Kind
from kngjax.data.passes import Passes
from kngjax.data.persons import Shares
from kngjax.draws.lattice.lattice import Lattice
from kngjax.draws.lattice.scores import RESOLUTION
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

    Those of one group add up, and of the groups the worst counts; twice under 'replace' (`Guarantee.parallel`). What
    is stated at (ε, δ) by a guarantee that can be stated anywhere is then stated at (1 + e^ε)δ, where 2ε holds.

    **Arguments:** `groups`: what is owed in each, by mechanisms for 'add_remove'; nothing in those without a release.
    `adjacency`: of the whole table.
    """
    debits = [group for group in map(list, groups) if group]
    proved = all(known for group in debits for _, known in group)
    worst = Guarantee.parallel([composed([cost for cost, _ in group]) for group in debits])
    return (worst if adjacency is Adjacency.ADD_REMOVE else _exchanged(worst)), proved


def _exchanged(cost: Guarantee) -> Guarantee:
    """`to_replace`, with what can be stated anywhere stated at (1 + e^ε)δ; of a sum each part by itself."""
    if cost.parts and Guarantee.counted(cost.parts) == cost:
        return Guarantee.counted((_exchanged(part), count) for part, count in cost.parts)
    twice = cost.to_replace()
    if cost.kind in (Kind.GAUSSIAN, Kind.ZCDP) and cost.exact_epsilon is not None:
        delta = with_both_orders(cost.exact_epsilon, cost.exact_delta)
        return twice.stated(delta) if delta < 1 else twice
    return twice


def plan_of_groups(plans: Sequence[Sequence[Plan]], division: Division, adjacency: Adjacency) -> Plan:
    """Plans the releases of every group, paid for by one debit of what all of them cost together.

    The table is read once, and every record goes to the one group that its own levels say. A group of no record is
    released like any other, and how many it has is private. Without a plan a group has no release.

    **Arguments:** `plans`: of each group, in the order of `division.groups()`, of mechanisms for 'add_remove'.
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
    together, proved = owed_together([[_owed(plan, len(plans)) for plan in group] for group in plans], adjacency)
    members = tuple(
        dataclasses.replace(one, membership=Membership(division, group, together))
        for group, own in zip(division.groups(), plans, strict=True)
        for plan in own
        for one in plan.certificates
    )
    drawing = functools.partial(_drawn, plans, members)
    return Plan(members, together, proved, drawing, functools.partial(_joined, plans))


def factor_of_shares(groups: int) -> Fraction:
    """(R + G - 1)/R, by which ε grows where the rows of one person lie in G groups, each drawn on a lattice.

    A share p of a person's vote changes a group's score by at most p·R, and that rounded down by ⌈p·R⌉ at most: whole
    numbers whose sum over G groups is less than R + G.
    """
    return Fraction(RESOLUTION + groups - 1, RESOLUTION)


def _owed(plan: Plan, groups: int) -> Owed:
    """What a group's releases cost, of persons with the price of rounded scores."""
    cost, proved = plan.owed
    if not any(one.is_of_persons and one.sampler["type"] == Lattice.__name__ for one in plan.certificates):
        return cost, proved
    if not cost.parts:
        return _of_shares(cost, groups), proved
    return Guarantee.counted((_of_shares(part, groups), count) for part, count in cost.parts), proved


def _of_shares(cost: Guarantee, groups: int) -> Guarantee:
    if cost.kind is not Kind.BOUNDED_RANGE or cost.exact_epsilon is None:
        return cost
    return Guarantee.bounded_range(cost.exact_epsilon * factor_of_shares(groups), cost.adjacency).of(cost.unit)


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
        return Shares(column.weights[places], column.persons)
    return None if column is None else column[places]


def _of_member(one: Release, member: Certificate) -> Release:
    """Says in a release's certificate of which group it is; a certificate that was not planned is kept, and refused."""
    if dataclasses.replace(one.certificate, membership=member.membership) != member:
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
