"""Bounds what one record can change of sums and of counts: plain sums over records, in which n stands nowhere.

A record x adds x to Σx, so that coordinate j of it changes between neighbouring data sets by at most

    replace:     u_j - l_j              (x is exchanged for x', both within the bounds)
    add_remove:  max(|l_j|, |u_j|)      (x comes or goes)

A record in cell k adds 1 to the count of cell k alone. A record with a weight w in [0, W] adds w·x, and w·x_j lies
between min(0, W·l_j) and max(0, W·u_j), which then replace l_j and u_j.
"""

import functools
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from jaxtyping import Array, Float

from kngjax.accounting.adjacency import Adjacency
from kngjax.core.compiling import Compiled
from kngjax.data import weights
from kngjax.data.bounds import Bounds
from kngjax.geometry.abstract_norms import AbstractNorm
from kngjax.geometry.blocks import Block
from kngjax.sensitivity import weighted
from kngjax.sensitivity.change_sets import change_points, changes_within, longest_change
from kngjax.sensitivity.record_facts import Interval, changes_of_products, feature_intervals

_compiled = functools.partial(Compiled, static_argnames=("adjacency", "dimension"))


@_compiled
def sum_changes(bounds: Bounds, adjacency: Adjacency, dimension: int) -> Float[Array, " dimension"]:
    """Bounds the change of each coordinate of Σx between neighbouring data sets, shape (d,)."""
    return changes_within(weighted.of_weighted(bounds.features(dimension), bounds), adjacency)


@_compiled
def sum_sensitivity(
    bounds: Bounds, adjacency: Adjacency, norm: AbstractNorm | None, dimension: int
) -> Float[Array, ""]:
    """Δ of Σx in the norm (None: the one whose ball is the box of changes, in which it is 1)."""
    changes, points = sum_changes(bounds, adjacency, dimension), None
    if norm is not None:
        blocks = bounds.feature_blocks(dimension)
        points = change_points(blocks, weighted.of_weighted((1.0, 1.0), bounds), adjacency)
    return longest_change(norm, changes, points)


def sum_changes_in_fractions(bounds: Bounds, adjacency: Adjacency, dimension: int) -> list[Fraction]:
    """`sum_changes` of bounds without a hull, of which float64's numbers are taken as they are."""
    return changes_of_products([Fraction(1)], _ends_in_fractions(bounds, dimension), adjacency)[0]


def _ends_in_fractions(bounds: Bounds, dimension: int) -> list[Interval]:
    largest = weighted.largest_in_fractions(bounds)
    return [weighted.of_weighted_in_fractions(ends, largest) for ends in feature_intervals(bounds, dimension)]


def blocks_of_sum(
    bounds: Bounds, adjacency: Adjacency, exclusive: tuple[tuple[int, ...], ...], dimension: int
) -> tuple[tuple[Block, ...], list[Fraction]]:
    """The blocks and the weights w of a norm in which a record changes Σx by at most 1, without rounding.

    A record has at most one column of an exclusive group that is not 0, between l ≤ 0 ≤ u; let m_j = max(|l_j|, |u_j|).

    - add_remove: the group changes by a·e_l with |a| ≤ m_l, and Σ_j |z_j|/m_j ≤ 1.
    - replace: it changes by a·e_l - b·e_k. Where l = 0 for the whole group, or u = 0, a and b have one sign: for l ≠ k
      Σ_j (z_j/m_j)⁺ ≤ 1 and Σ_j (z_j/m_j)⁻ ≤ 1, and for l = k |a - b| ≤ m_l, an exchange with w = m.
    - replace, with both signs: Σ_j |z_j|/m_j ≤ 2, and w = 2m.

    Other columns are blocks by themselves, with their largest change as w. Each norm is 1 of some change.
    """
    weights, blocks = sum_changes_in_fractions(bounds, adjacency, dimension), list[Block]()
    ends = _ends_in_fractions(bounds, dimension)
    # Of one column alone an interval is narrower than a cross-polytope.
    groups = [group for group in exclusive if len(group) > 1]
    for group in groups:
        has_one_sign = any(all(ends[j][side] == 0 for j in group) for side in (0, 1))
        is_exchange = adjacency is Adjacency.REPLACE and has_one_sign
        factor = 1 if is_exchange or adjacency is Adjacency.ADD_REMOVE else 2
        for j in group:
            weights[j] = factor * max(map(abs, ends[j]))
        blocks.append(Block("exchange" if is_exchange else "sum", group))
    others = sorted(set(range(dimension)) - {j for group in groups for j in group})
    return (*blocks, *(Block("sum", (j,)) for j in others)), weights


def explain_sum_sensitivity(
    norm: AbstractNorm, changes: np.ndarray, value: float, adjacency: Adjacency, bounds: Bounds
) -> str:
    """The derivation of the sensitivity of Σx in words."""
    widths = ", ".join(f"{change:.6g}" for change in changes)
    exchange = adjacency is Adjacency.REPLACE
    most = "u_j - l_j, the width of the bounds" if exchange else "max(|l_j|, |u_j|), the largest size within the bounds"
    what = "the sum of the records"
    if weighted.most(bounds) is not None:
        what = f"the sum of the records times their weights, each from 0 to {weighted.largest(bounds):.6g},"
        most = "M_j - m_j" if exchange else "max(|m_j|, |M_j|)"
        most = f"{most}, where a record times its weight lies in [m_j, M_j]"
    return (
        f"{adjacency.event} moves coordinate j of {what} by at most {most}: w = ({widths}). In the "
        f"{type(norm).__name__} norm no such change is longer than {value:.6g}."
    )


def explain_blocks_of_sum(blocks: tuple[Block, ...], weights: Sequence[Fraction], adjacency: Adjacency) -> str:
    """The derivation in words of the sensitivity of Σx of records with exclusive columns, which is 1."""
    widths = ", ".join(f"{float(weight):.6g}" for weight in weights)
    groups = [block for block in blocks if len(block.columns) > 1]
    sums = {"sum": "the sum of |z_j|/w_j", "exchange": "the sums of the positive and of the negative z_j/w_j"}
    norms = "".join(f", of {sums[block.kind]} over columns {block.columns}" for block in groups)
    kept = (
        "a record keeps one column of each group, that which is largest in size, and 0 in the others; "
        if groups
        else ""
    )
    return (
        f"{kept}{adjacency.event} changes the sum of the records by a z with a norm of at most 1, the largest of "
        f"|z_j|/w_j of columns by themselves{norms}: w = ({widths})."
    )


def count_sensitivity(counted: int, adjacency: Adjacency, units: int = 1) -> int:
    """Δ_1: the largest sum of the sizes of the changes of all counts, of records that each lie in one cell.

    One record more adds 1 to one count, so Δ_1 = 1. An exchanged record leaves its cell for another, and two counts
    change by 1 each: Δ_1 = 2. If a single cell is counted, one count changes: Δ_1 = 1.

    With weights that are whole numbers from 0 to m of some unit, Δ_1 is m times as large, in that unit. An exchanged
    record that stays in its cell changes one count by at most m.

    **Arguments:** `counted`: how many cells are counted, at least 1. `units`: m, 1 without weights.
    """
    if adjacency is Adjacency.ADD_REMOVE or counted == 1:
        return units
    return 2 * units


def explain_count_sensitivity(counted: int, adjacency: Adjacency, bounds: Bounds) -> str:
    """The derivation of the sensitivity of counts in words."""
    value = count_sensitivity(counted, adjacency)
    if adjacency is Adjacency.ADD_REMOVE:
        why = "each record lies in one cell, so one record more or less changes one count by 1"
    elif counted == 1:
        why = "an exchanged record comes to the only cell that is counted, or leaves it, which changes its count by 1"
    else:
        why = "each record lies in one cell, so an exchanged one takes 1 from one count and adds 1 to another"
    without = f"{why}: the sizes of all changes add up to at most {value}."
    if bounds.weight is None:
        return without
    step, most = weights.unit(bounds.weight), weights.most_units(bounds.weight)
    if bounds.of_persons:
        return (
            f"without weights {without} A row counts as its weight, a multiple of {step:g}, and those of one "
            f"{bounds.protects} add up to at most {most * step:.6g}: the sizes of all changes by one {bounds.protects} "
            f"then add up to at most {value * most * step:.6g}."
        )
    return (
        f"without weights {without} A record counts as its weight, a multiple of {step:g} of at most "
        f"{most * step:.6g}, and not as 1: with weights they add up to at most {value * most * step:.6g}."
    )
