"""Every colour can be read on its ground, in light and in dark, and tables have names."""

import itertools

import pytest

from kngjax.study.reports.layout import DARK, LIGHT, page, section, table
from tests.study.reports.pages_made import require_a_good_page


def luminance(colour):
    """The relative luminance of a colour, as WCAG 2 defines it."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_that_of_the_standard():
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_text_has_a_contrast_of_four_and_a_half_and_bars_of_three(colours):
    for name, least in itertools.chain(
        ((text, 4.5) for text in ("ink", "soft", "link", "bad")),
        ((bar, 3.0) for bar in ("one", "two", "three", "left")),
    ):
        assert contrast(colours[name], colours["paper"]) >= least, name


def test_a_page_has_one_title_and_every_colour():
    made = page("Title & more", [], [section("First", table("Numbers", ["name", "number"], [["a", 1]]))], {"a": 1})
    require_a_good_page(made)
    for colours in (LIGHT, DARK):
        assert all(f"--{name}:{colour};" in made for name, colour in colours.items())
    used = {part.split(")")[0] for part in made.split("var(--")[1:]}
    assert used <= LIGHT.keys() == DARK.keys()
    assert "@media print" in made
    assert "overflow-x:auto" in made
