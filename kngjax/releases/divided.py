"""Releases of all groups of a table by one debit: each record goes to one group at most, here and nowhere else."""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from kngjax.accounting.adjacency import Adjacency
from kngjax.accounting.exact import with_both_orders
from kngjax.accounting.guarantees import Guarantee
from kngjax.accounting.kinds import Kind
from kngjax.ledger.ledgers import Ledger, Reservation
from kngjax.mechanisms.base import AbstractMechanism
from kngjax.releases.certificate import Certificate
from kngjax.releases.debits import owed
from kngjax.releases.division import Division, Membership
from kngjax.releases.one_debit import release_by_one_debit
from kngjax.releases.release import Release, release
from kngjax.releases.totals import certify, composed

# Columns of a table, one row a record, and the group of each record; below 0 for those that are in none.
Columns = tuple[np.ndarray | None, ...]
Read = Callable[[], tuple[Columns, np.ndarray]]


def owed_together(groups: Iterable[Sequence[Certificate]], adjacency: Adjacency) -> tuple[Guarantee, bool]:
    """What a ledger debits for the releases of all groups, and whether it is proved that they cost no more.

    Those of one group add up, and of the groups the worst counts; twice under 'replace' (`Guarantee.parallel`). What
    is stated at (ε, δ) by a guarantee that can be stated anywhere is then stated at (1 + e^ε)δ, where 2ε holds.

    **Arguments:** `groups`: the certificates of each, of mechanisms for 'add_remove'. `adjacency`: of the whole table.
    """
    debits = [[owed(certificate) for certificate in group] for group in groups]
    proved = all(known for group in debits for _, known in group)
    worst = Guarantee.parallel([composed([cost for cost, _ in group]) for group in debits])
    if adjacency is Adjacency.ADD_REMOVE:
        return worst, proved
    twice = worst.to_replace()
    if worst.kind in (Kind.GAUSSIAN, Kind.ZCDP) and worst.exact_epsilon is not None:
        delta = with_both_orders(worst.exact_epsilon, worst.exact_delta)
        twice = twice.stated(delta) if delta < 1 else twice
    return twice, proved


def certify_groups(mechanisms: Sequence[Sequence[AbstractMechanism]]) -> list[list[Certificate]]:
    """The certificates of each group's releases, before anything is debited; how many records it has is private.

    Raises ValueError for a mechanism that is not for 'add_remove'.
    """
    if any(one.adjacency is not Adjacency.ADD_REMOVE for group in mechanisms for one in group):
        raise ValueError("groups need mechanisms for 'add_remove': the number of records of a group is private")
    # Mechanisms are known by identity, and many groups may share one.
    known = {mechanism: certify(mechanism, None, 0) for mechanism in {one for group in mechanisms for one in group}}
    if any(certificate.cost is None for certificate in known.values()):
        raise ValueError("groups need mechanisms that are drawn with a proof, and one of these takes a Markov chain")
    return [[known[mechanism] for mechanism in group] for group in mechanisms]


def release_groups(
    mechanisms: Sequence[Sequence[AbstractMechanism]],
    division: Division,
    adjacency: Adjacency,
    read: Read,
    arguments: Callable[..., dict[str, Any]],
    ledger: Ledger | Reservation | None,
    what: Any,
) -> list[list[Release]]:
    """A release by each mechanism of each group, paid for by one debit of what all of them cost together.

    The debit was made before, and is drawn from once. Then the table is read, once, and every record goes to the one
    group that its own levels say. The ledger keeps all releases at once, as one list, before anybody sees one. If
    anything fails after the debit, in whichever group, nothing is released and the debit stays.

    **Arguments:** `mechanisms`: those of each group, in the order of `division.groups()`, for 'add_remove'.
    `adjacency`: of the whole table. `read`: gives its columns and the place of each record's group, private. A group of
    no record is released like any other. `arguments`: X and y by name as `kngjax.release` takes them, of a mechanism
    and of columns. `ledger`: or a reservation of what all cost together (`owed_together`), made beforehand. `what`: a
    public description for the ledger. Raises as `kngjax.release`.
    """
    if len(mechanisms) != len(division):
        raise ValueError(f"{len(mechanisms)} lists of mechanisms were given for {len(division)} groups")
    certificates = certify_groups(mechanisms)
    together, _ = owed_together(certificates, adjacency)
    sizes = [len(group) for group in mechanisms]

    def draw() -> list[Release]:
        drawn = _draw(mechanisms, read, arguments)
        members = [Membership(division, group, together) for group in division.groups()]
        return [_with(one, member) for draws, member in zip(drawn, members, strict=True) for one in draws]

    def owed_by(drawn: list[Release] | None) -> tuple[Guarantee, bool]:
        groups = certificates if drawn is None else [[one.certificate for one in part] for part in _split(drawn, sizes)]
        return owed_together(groups, adjacency)

    refusal = None
    try:
        released = release_by_one_debit(draw, owed_by, ledger, what)
    except Exception as error:
        refusal = error.with_traceback(None)
    # Frames of a traceback hold their local variables.
    del read, draw
    if refusal is not None:
        raise refusal
    return _split(released, sizes)


def _split(released: list[Release], sizes: list[int]) -> list[list[Release]]:
    remaining = iter(released)
    return [[next(remaining) for _ in range(size)] for size in sizes]


def _draw(
    mechanisms: Sequence[Sequence[AbstractMechanism]], read: Read, arguments: Callable[..., dict[str, Any]]
) -> list[list[Release]]:
    """Private until all of them are kept: whether a later one fails may depend on the data."""
    columns, places = read()
    drawn = []
    for number, group in enumerate(mechanisms):
        own = tuple(None if column is None else column[places == number] for column in columns)
        drawn.append([release(mechanism, **arguments(mechanism, *own)) for mechanism in group])
    return drawn


def _with(released: Release, membership: Membership) -> Release:
    certificate = dataclasses.replace(released.certificate, membership=membership)
    return Release._of(released.value, certificate, released.names, released.published)
