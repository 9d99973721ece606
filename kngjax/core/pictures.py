"""Gives pictures one look, which does not rest on colour alone: lines, markers and hatches tell series apart too."""

from typing import Any

from kngjax.core.later import plt

# Each has a contrast of at least 4.5 on white.
COLOURS = ("#1b4f8f", "#b5490b", "#1c7c54", "#7a3f98", "#5f6368")
LINES = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)))
MARKERS = ("o", "s", "D", "^", "v")
HATCHES = ("", "//", "..", "xx", "\\\\")


def axes_of(ax: Any = None) -> Any:
    """Returns the axes that were given, or new ones of Matplotlib, with a pale grid and no box."""
    axes = plt.subplots(layout="constrained")[1] if ax is None else ax
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    return axes


def style(number: int, **kinds: Any) -> dict[str, Any]:
    """Gives the look of one series. **Arguments:** `number`: its place. `kinds`: linestyle=LINES and the like."""
    return {"color": COLOURS[number % len(COLOURS)]} | {name: each[number % len(each)] for name, each in kinds.items()}
