"""Mechanisms of which each sees the records of one group alone: what they cost together. Imports no JAX."""

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
# Of a share of a person's votes nothing is known of these.
_OF_NO_SHARE = (Kind.APPROXIMATE, Kind.PROFILE)


def in_parallel(parts: Iterable[Any], shared: bool = False) -> Any:
    """The guarantee of mechanisms M_k for 'add_remove', each applied to the records of one group: `Guarantee.parallel`.

    A public function of one record alone says which group that record is in, if any. One record more or less then
    changes one group, k, and given what was released before, the outputs of all others have the same law with and
    without it. So all together are as private as M_k, also if later settings depend on earlier outputs, as long as each
    keeps to its guarantee here; and whichever k it is, the worst of the parts holds (`worst_of`).

    Of parts within distances of laws with better guarantees (`Guarantee.within`) the two largest distances add up. Two
    data sets that differ in one record, by either adjacency, differ in two groups at most; let these two follow the
    laws nearby, and all other groups what they do. That is one law for both data sets and for what lies between them,
    within the two distances of what is released on each. It may be another law for another pair, which no proof minds.
    Of persons, whose rows may lie in all groups, all distances add up; and their shares of a vote, which add up to 1
    over all groups, are why the worst of the parts holds of them too (`docs/proofs/persons.md`).

    Under 'replace' the price is `to_replace()` of it. A record may leave group j and enter group k, a removal and an
    addition in parts that are drawn independently: ε_j + ε_k, which mechanisms attain. It may also be exchanged within
    group j, of which a guarantee for 'add_remove' says 2ε_j. The larger of both over all groups is 2ε for the largest
    ε, and likewise (2ε, (1 + e^ε)δ), 4ρ (2ρ between two groups) and 2μ (√2 μ between them). If parts state less than
    2ε_j for an exchange within a group, as counts do, that saves nothing of ε where all groups have the same.

    Parts for 'replace' are refused. Under it the number of records that a mechanism is given is public, and that of one
    group is not: one that publishes it has ε = 0 by itself, and if one record is exchanged, sizes (2, 1) may become
    (1, 2), which two such parts tell for certain.

    Of another unit than a record, with rows in several groups, shares p_k of its votes add up to 1 at most over all
    groups. Mechanisms of pure or bounded-range ε, zCDP and Gaussian DP that protect persons have p_kε, p_k²ρ and p_kμ
    for a change of p_k (`docs/proofs/persons.md`), and Σp_k max ε_k ≤ max ε_k, Σp_k² ≤ 1: the worst of the parts holds
    as above, and `to_replace()` of it. All groups may change, so all distances add up; and nothing follows of parts
    that state an (ε, δ) or a table alone, of which no such law is known. Without shares, where each group has a
    person's votes once more, parts are refused: they compose.

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
    if not of_records and any(part.kind in _OF_NO_SHARE for part, _ in worst.parts or ((worst, 1),)):
        raise ValueError(
            f"rows of one {unit} may lie in several groups, and what a share of its votes changes is not known of what "
            "states epsilon and delta alone: compose the groups, Guarantee.composed"
        )
    return worst.within(distance).of(unit)


def worst_of(guarantees: Iterable[Any]) -> Any:
    """A guarantee that every mechanism has which has one of these, all for one adjacency.

    That of all if they are one. The largest ε where each states one at δ = 0: ε-bounded range is ε-DP, and ε-DP also
    with every larger ε. Of Gaussian DP and zCDP the largest μ or ρ, stated at the largest δ of any; of others too where
    each has a ρ and one states no ε. Else the largest ε at the largest δ; raises ValueError where one has none there.
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
