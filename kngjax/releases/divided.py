"""Releases of all groups of a table by one debit: each record goes to one group at most, here and nowhere else."""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from kngjax.accounting.adjacency import Adjacency
from kngjax.accounting.exact import with_both_orders
from kngjax.accounting.guarantees import Guarantee
from kngjax.accounting.kinds import Kind
from kngjax.core.errors import holding_no_records
from kngjax.data.admission import Facts
from kngjax.ledger.ledgers import Ledger, Reservation
from kngjax.mechanisms.base import AbstractMechanism
from kngjax.releases.certificate import Certificate
from kngjax.releases.debits import owed
from kngjax.releases.division import Division, Membership
from kngjax.releases.one_debit import release_by_one_debit
from kngjax.releases.plans import AbstractDrawing
from kngjax.releases.release import Release, release
from kngjax.releases.totals import certify, composed

# Columns of a table, one row a record, and the group of each record; below 0 for those that are in none.
Columns = tuple[np.ndarray | None, ...]
Read = Callable[[], tuple[Columns, np.ndarray]]
# What of one group is released: a value, or several that belong together.
Drawn = AbstractMechanism | AbstractDrawing
# What a ledger debits, and whether it is proved to cost no more.
Owed = tuple[Guarantee, bool]


def owed_together(groups: Iterable[Sequence[Owed]], adjacency: Adjacency) -> Owed:
    """States what a ledger debits for the releases of all groups, and whether it is proved that they cost no more.

    Those of one group add up, and of the groups the worst counts; twice under 'replace' (`Guarantee.parallel`). What
    is stated at (ε, δ) by a guarantee that can be stated anywhere is then stated at (1 + e^ε)δ, where 2ε holds.

    **Arguments:** `groups`: what is owed in each, by mechanisms for 'add_remove'. `adjacency`: of the whole table.
    """
    debits = [list(group) for group in groups]
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


def certify_groups(drawn: Sequence[Sequence[Drawn]]) -> list[list[list[Certificate]]]:
    """The certificates of what each group releases, before anything is debited; how many records it has is private.

    Raises ValueError for a mechanism that is not for 'add_remove', and for one that is drawn without a proof.
    """
    if any(_mechanism(one).adjacency is not Adjacency.ADD_REMOVE for group in drawn for one in group):
        raise ValueError("groups need mechanisms for 'add_remove': the number of records of a group is private")
    # Many groups may share one.
    every = {id(one): one for group in drawn for one in group}
    known = {key: _certified(one) for key, one in every.items()}
    if any(certificate.cost is None for certificates in known.values() for certificate in certificates):
        raise ValueError("groups need mechanisms that are drawn with a proof, and one of these takes a Markov chain")
    return [[known[id(one)] for one in group] for group in drawn]


def owed_of_groups(
    drawn: Sequence[Sequence[Drawn]], certificates: Sequence[Sequence[Sequence[Certificate]]], adjacency: Adjacency
) -> Owed:
    """States what a ledger debits for releases of all groups (`owed_together`). **Arguments:** of `certify_groups`."""
    costs = [
        [_owed(one, own) for one, own in zip(group, known, strict=True)]
        for group, known in zip(drawn, certificates, strict=True)
    ]
    return owed_together(costs, adjacency)


def _mechanism(one: Drawn) -> AbstractMechanism:
    return one.mechanism if isinstance(one, AbstractDrawing) else one


def _certified(one: Drawn) -> list[Certificate]:
    if isinstance(one, AbstractDrawing):
        return one.certify(Facts(one.mechanism.dimension or 1, None))
    return [certify(one, None, 0)]


def _owed(one: Drawn, certificates: Sequence[Certificate]) -> Owed:
    return one.owed(certificates) if isinstance(one, AbstractDrawing) else owed(*certificates)


@holding_no_records
def release_groups(
    drawn: Sequence[Sequence[Drawn]],
    division: Division,
    adjacency: Adjacency,
    read: Read,
    arguments: Callable[..., dict[str, Any]],
    ledger: Ledger | Reservation | None,
    what: Any,
) -> list[list[list[Release]]]:
    """Releases values of every group, paid for by one debit of what all of them cost together.

    The debit was made before, and is drawn from once. Then the table is read, once, and every record goes to the one
    group that its own levels say. The ledger keeps all releases at once, as one list, before anybody sees one. If
    anything fails after the debit, in whichever group, nothing is released and the debit stays.

    **Arguments:** `drawn`: what each group releases, in the order of `division.groups()`, by mechanisms for
    'add_remove'. `adjacency`: of the whole table. `read`: gives its columns and the place of each record's group,
    private. A group of no record is released like any other. `arguments`: X and y by name as `kngjax.release` takes
    them, of a mechanism and of columns. `ledger`: or a reservation of what all cost together (`owed_of_groups`), made
    beforehand. `what`: a public description for the ledger. Raises as `kngjax.release`.
    """
    if len(drawn) != len(division):
        raise ValueError(f"{len(drawn)} lists of mechanisms were given for {len(division)} groups")
    certificates = certify_groups(drawn)
    together, _ = owed_of_groups(drawn, certificates, adjacency)

    def draw() -> list[Release]:
        groups = _draw(drawn, read, arguments)
        members = [Membership(division, group, together) for group in division.groups()]
        return [_with(one, member) for draws, member in zip(groups, members, strict=True) for one in draws]

    def owed_by(made: list[Release] | None) -> Owed:
        known = certificates if made is None else _like([one.certificate for one in made], certificates)
        return owed_of_groups(drawn, known, adjacency)

    return _like(release_by_one_debit(draw, owed_by, ledger, what), certificates)


def _like(every: list[Any], certificates: list[list[list[Certificate]]]) -> list[list[list[Any]]]:
    remaining = iter(every)
    return [[[next(remaining) for _ in own] for own in group] for group in certificates]


def _draw(
    drawn: Sequence[Sequence[Drawn]], read: Read, arguments: Callable[..., dict[str, Any]]
) -> list[list[Release]]:
    """Private until all of them are kept: whether a later one fails may depend on the data."""
    columns, places = read()
    made = []
    for number, group in enumerate(drawn):
        own = tuple(None if column is None else column[places == number] for column in columns)
        made.append([value for one in group for value in _released(one, arguments(_mechanism(one), *own))])
    return made


def _released(one: Drawn, given: dict[str, Any]) -> list[Release]:
    if isinstance(one, AbstractDrawing):
        return one.draw(given["X"], given["y"], None)
    return [release(one, **given)]


def _with(released: Release, membership: Membership) -> Release:
    certificate = dataclasses.replace(released.certificate, membership=membership)
    return Release._of(released.value, certificate, released.names, released.published)
