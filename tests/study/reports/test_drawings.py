"""Intervals and bars stand where their numbers are, and are said in words."""

import math
import re

import pytest

from kngjax.study.reports import drawings


def places(svg, element, name):
    return [float(one) for one in re.findall(rf"<{element} [^>]*\b{name}=\"([^\"]+)\"", svg)]


def test_an_interval_is_drawn_to_scale():
    svg = drawings.intervals("a", "wage", [("north", 2.0, 1.0, 3.0), ("south", 3.0, None, None)])
    left, right = places(svg, 'line class="interval"', "x1"), places(svg, 'line class="interval"', "x2")
    north, south = places(svg, "circle", "cx")
    assert north == pytest.approx((left[0] + right[0]) / 2, abs=0.11)
    assert south == pytest.approx(right[0], abs=0.11)
    assert len(left) == 1
    assert '<desc id="a-words">north: 2, from 1 to 3; south: 3</desc>' in svg


@pytest.mark.parametrize("numbers", [(0.0, 0.0), (1e-9, 2e-9), (-3.0, 4e6), (5.0, 5.0), (-0.00089, -0.001882)])
def test_axes_hold_their_numbers(numbers):
    ticks = drawings._ticks(min(numbers), max(numbers))
    assert 2 <= len(ticks) <= 6
    assert ticks[0] <= min(numbers) <= max(numbers) <= ticks[-1]
    drawings.intervals("a", "any", [(str(one), one, one, one) for one in numbers])


def test_bars_are_as_long_as_their_numbers():
    rows = [("x", [("one", 1.0), ("two", 2.0)]), ("y", [("two", math.inf)])]
    svg = drawings.bars("a", "width", rows, ["one", "two"], "×")
    one, two, none = places(svg, "rect", "width")
    assert two == pytest.approx(2 * one, abs=0.11)
    assert none == 0.0
    assert svg.count('class="two"') == 2
    assert "x one: 1×; x two: 2×; y two: none" in svg


def test_a_budget_is_one_bar():
    svg = drawings.budget("a", "epsilon", [("here", 1.0), ("others", 2.0), ("left", 1.0)])
    bar = places(svg, "rect", "width")[::2]
    assert bar[1] == pytest.approx(2 * bar[0], abs=1.2)
    assert sum(bar) == pytest.approx(drawings.WIDTH, abs=4)
    assert "here: 1; others: 2; left: 1" in svg
