"""The tree of levels: its depth, its nodes' neighbours and relative levels, and how balanced it is."""

from fractions import Fraction

import numpy as np
import pytest

from kngjax.releases.curves.levels import depth_of, tree_of


def fractions(*levels):
    return [Fraction(level) for level in levels]


@pytest.mark.parametrize("number", [1, 2, 3, 4, 7, 8, 19, 49])
def test_it_has_all_levels_once_and_the_least_depth(number):
    generator = np.random.default_rng(number)
    levels = sorted(Fraction(int(level), 1000) for level in generator.choice(np.arange(1, 1000), number, replace=False))
    tree = tree_of(levels)
    assert len(tree) == depth_of(number) == int(np.ceil(np.log2(number + 1)))
    nodes = [node for depth in tree for node in depth]
    assert sorted(node.index for node in nodes) == list(range(number))
    ends = [Fraction(0), *levels, Fraction(1)]
    for node in nodes:
        earlier = sorted(other.index for other in nodes if other.depth < node.depth)
        assert node.rank == sum(index < node.index for index in earlier)
        assert node.below == max([index for index in earlier if index < node.index], default=None)
        assert node.above == min([index for index in earlier if index > node.index], default=None)
        low = Fraction(0) if node.below is None else levels[node.below]
        high = Fraction(1) if node.above is None else levels[node.above]
        exact = (ends[node.index + 1] - low) / (high - low)
        assert abs(node.relative - exact) <= Fraction(1, 20000) or node.relative in (
            Fraction(1, 10**4),
            1 - Fraction(1, 10**4),
        )
        assert 0 < node.relative < 1
    # Two nodes of a depth never have the same records.
    assert all(len({node.rank for node in depth}) == len(depth) for depth in tree)


def test_relative_levels_are_those_of_a_textbook_and_as_balanced_as_can_be():
    found = {node.index: float(node.relative) for depth in tree_of(fractions("1/4", "1/2", "3/4")) for node in depth}
    assert found == {0: 0.5, 1: 0.5, 2: 0.5}
    # Of .1 below .25 and .25 above .1 the second one is drawn first: .25 is the middle of what is below .5.
    tree = tree_of(fractions("0.1", "0.25", "0.5", "0.75", "0.9"))
    assert [[node.index for node in depth] for depth in tree] == [[2], [1, 3], [0, 4]]
    assert max(abs(node.relative - Fraction(1, 2)) for depth in tree for node in depth) == Fraction(1, 10)
