"""Computes what mechanisms cost together, each of which sees the records of one group. Imports no JAX."""

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from kngjax.accounting.adjacency import RECORD, Adjacency, one_unit
from kngjax.accounting.exact_costs import exactly, inward
from kngjax.accounting.kinds import Kind

_PRIVATE_SIZES = (
    "a part for 'replace' may publish how many records its group has, which is private although the number of all "
    "records is not: two groups whose sizes go from (2, 1) to (1, 2) when one record is exchanged tell where it went. "
    "State the mechanism of each group for 'add_remove', and take to_replace() of all together"
)


def in_parallel(parts: Iterable[Any], shared: bool = False) -> Any:
    """The guarantee of mechanisms M_k for 'add_remove', each applied to the records of one group: `Guarantee.parallel`.

    The worst of the parts holds (`worst_of`), and `to_replace()` of it under 'replace'. The two largest distances of
    laws that are near others add up, or all of them for persons. Proof: `docs/proofs/groups.md`.

    Raises ValueError for parts for 'replace', which may publish the size of a group. For another unit than a record it
    refuses parts whose rows do not share votes, and parts that state an (ε, δ) alone.

    **Arguments:** `shared`: whether rows share votes over all groups, as a study and a quantile process make them.
    """
    every = tuple(parts)
    if not every:
        raise ValueError("groups need at least one guarantee each; there are none here")
    if any(part.adjacency is not Adjacency.ADD_REMOVE for part in every):
        raise ValueError(_PRIVATE_SIZES)
    if (unit := one_unit(every)) != RECORD and not shared:
        raise ValueError(
            f"rows of one {unit} may lie in several groups, which then all change: take Guarantee.composed, or ask a "
            f"Study by(...), in whose groups the rows of one {unit} share votes over the whole table"
        )
    if len(every) == 1:
        return every[0]
    apart = [part.apart() for part in every]
    distances, of_records = sorted((near for _, near in apart), reverse=True), unit == RECORD
    distance = sum(distances[:2] if of_records else distances, Fraction(0))
    worst = worst_of([ideal for ideal, _ in apart] if distance else every)
    if not of_records and any(part.kind is Kind.APPROXIMATE for part, _ in worst.parts or ((worst, 1),)):
        raise ValueError(
            f"rows of one {unit} may lie in several groups, and what a share of its votes changes is not known of what "
            "states epsilon and delta alone: compose the groups, Guarantee.composed"
        )
    return worst.within(distance).of(unit)


def worst_of(guarantees: Iterable[Any]) -> Any:
    """Returns a guarantee that each of these guarantees implies, all for one adjacency.

    If all are equal, it is theirs. If each states an ε at δ = 0, it is the largest ε. For Gaussian DP or zCDP it is the
    largest μ or ρ, stated at the largest δ; also for others if each has a ρ and one states no ε. Else it is the largest
    ε at the largest δ. Raises ValueError if one has no ε there.
    """
    every = tuple(dict.fromkeys(guarantees))
    first, *others = every
    if not others:
        return first
    kind_of, adjacency = type(first), first.adjacency
    kinds = {one.kind for one in every}
    delta: Fraction = max(one.exact_delta for one in every)
    losses, rhos = [one.exact_epsilon for one in every], [one.exact_rho for one in every]
    if delta == 0 and None not in losses:
        is_ranged = kinds == {Kind.BOUNDED_RANGE}
        return (kind_of.bounded_range if is_ranged else kind_of.pure)(max(losses), adjacency)
    if None not in rhos and (None in losses or kinds <= {Kind.GAUSSIAN, Kind.ZCDP}):
        kind = Kind.GAUSSIAN if kinds == {Kind.GAUSSIAN} else Kind.ZCDP
        return kind_of(kind, adjacency, None, delta, max(rhos)).stated(delta)
    found = [one.at(delta=inward(delta)) if one.exact_epsilon is None else one.exact_epsilon for one in every]
    if math.inf in found:
        raise ValueError(
            f"nothing finite holds of all groups at delta = {float(delta):g}: state each guarantee at a delta, "
            "guarantee.stated(delta)"
        )
    # Where δ = 0 an ε was missing, and none is finite there without a ρ.
    return kind_of.approximate(max(map(exactly, found)), delta, adjacency)
