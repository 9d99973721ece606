"""The order in which curves are drawn: a balanced tree of levels, of public numbers alone."""

import functools
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

# Relative levels have so many decimals: whole scores are multiples of them, and few leave room for many records. What
# that moves a level by is below 5·10⁻⁵ of the records of its node.
_DECIMALS = 4


class Node(NamedTuple):
    """Holds a level, which is drawn from the records between the nearest levels that were drawn before.

    **Arguments:** `index`: of the level, in increasing order. `depth`: how many levels were drawn before on the way to
    it. `below`, `above`: the nearest ones among these, by index; None where there is none. `rank`: how many levels that
    were drawn at lower depths are below it. `relative`: t, its level among the records between those two.
    """

    index: int
    depth: int
    below: int | None
    above: int | None
    rank: int
    relative: Fraction


def depth_of(number: int) -> int:
    """Returns L = ⌈log₂(m + 1)⌉, the least depth of a tree of m levels."""
    return number.bit_length()


def tree_of(levels: Sequence[Fraction]) -> tuple[tuple[Node, ...], ...]:
    """Makes the nodes of a tree of the least depth, by depth and then by level.

    The tree minimises the most unbalanced relative level, by |t - ½|, since one record's gradient is as long as
    max(t, 1 - t).
    """
    ends = [Fraction(0), *levels, Fraction(1)]

    def relative(first: int, last: int, index: int) -> Fraction:
        # Places in `ends`, of which those of the neighbours are beside the interval's.
        low, high = ends[first], ends[last + 2]
        least = Fraction(1, 10**_DECIMALS)
        return min(max(round((ends[index + 1] - low) / (high - low), _DECIMALS), least), 1 - least)

    @functools.cache
    def best(first: int, last: int, depth: int) -> tuple[Fraction, int]:
        """Computes how unbalanced the tree of these levels is at its worst node, and which level is its first."""
        most = 2 ** (depth - 1) - 1
        found = []
        for index in range(max(first, last - most), min(last, first + most) + 1):
            own = abs(relative(first, last, index) - Fraction(1, 2))
            parts = [
                best(*part, depth - 1)[0] for part in ((first, index - 1), (index + 1, last)) if part[0] <= part[1]
            ]
            found.append((max([own, *parts]), own, index))
        worst, _, index = min(found)
        return worst, index

    nodes: list[tuple[int, int, int, int, Fraction]] = []

    def divide(first: int, last: int, depth: int) -> None:
        if first > last:
            return
        _, index = best(first, last, depth_of(len(levels)) - depth)
        nodes.append((depth, index, first - 1, last + 1, relative(first, last, index)))
        divide(first, index - 1, depth + 1)
        divide(index + 1, last, depth + 1)

    divide(0, len(levels) - 1, 0)
    depths = {index: depth for depth, index, *_ in nodes}
    made = [
        Node(
            index,
            depth,
            below if below >= 0 else None,
            above if above < len(levels) else None,
            sum(depths[other] < depth for other in range(index)),
            t,
        )
        for depth, index, below, above, t in sorted(nodes)
    ]
    return tuple(
        tuple(node for node in made if node.depth == depth) for depth in range(max(node.depth for node in made) + 1)
    )
