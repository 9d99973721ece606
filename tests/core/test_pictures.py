"""Pictures can be read: colours stand out on white, and series are told apart without them."""

import matplotlib as mpl
import pytest
from matplotlib.colors import to_rgb

from kngjax.core.later import Later
from kngjax.core.pictures import COLOURS, HATCHES, LINES, MARKERS, axes_of, style


def luminance(colour):
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(colour)]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("colour", COLOURS)
def test_every_colour_has_the_contrast_of_text_on_white(colour):
    assert 1.05 / (luminance(colour) + 0.05) >= 4.5


def test_series_differ_in_more_than_colour():
    looks = [style(place, linestyle=LINES, marker=MARKERS, hatch=HATCHES) for place in range(len(COLOURS))]
    for kind in ("color", "linestyle", "marker", "hatch"):
        assert len({look[kind] for look in looks}) == len(COLOURS)
    assert style(len(COLOURS)) == style(0)


def test_axes_that_are_given_are_drawn_on():
    mpl.use("Agg")
    axes = axes_of()
    assert axes_of(axes) is axes
    assert not axes.spines["top"].get_visible()


def test_where_a_package_is_not_there_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(ModuleNotFoundError, match=r"needs matplotlib: pip install 'kngjax\[plots\]'"):
        _ = Later("matplotlib.figure").Figure
