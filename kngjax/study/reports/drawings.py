"""Draws intervals and bars as SVG that is read aloud too; colours are those of the page's style."""

import math
from collections.abc import Sequence
from typing import Any

from kngjax.study.reports.markup import Markup, element, joined

# In units of a drawing, which a narrow screen shows one to one.
WIDTH, _LABELS, _RIGHT, _ROW, _TOP = 340, 112, 26, 22, 8
_LONGEST, _LETTER = 17, 6.3
SHADES = ("one", "two", "three")
Number = float | int


def number(value: Number, digits: int = 5) -> str:
    """Writes a number for reading, with so many digits."""
    if not math.isfinite(value):
        return "none" if value > 0 else "unknown"
    text = f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.{digits}g}"
    return text.replace("-", "\N{MINUS SIGN}")


def intervals(name: str, title: str, rows: Sequence[tuple[str, Number, Number | None, Number | None]]) -> Markup:
    """Draws estimates as points, each with its interval as a line.

    **Arguments:** `name`: of the drawing among those of its page. `title`: its subject. `rows`: label, estimate, and
    the ends of the interval, None where there is none.
    """
    numbers = [one for row in rows for one in row[1:] if one is not None and math.isfinite(one)]
    ticks = _ticks(min(numbers, default=0.0), max(numbers, default=1.0))
    low, high = ticks[0], ticks[-1]

    def across(value: Number) -> Number:
        return _LABELS + (min(max(value, low), high) - low) / (high - low) * (WIDTH - _LABELS - _RIGHT)

    shapes, height = _axis(ticks, across, len(rows) * _ROW), _TOP + len(rows) * _ROW + 24
    said = []
    for place, (label, estimate, lower, upper) in enumerate(rows):
        middle = _TOP + _ROW * (place + 0.5)
        # A label that is cut is said whole in the description and in the table.
        place_of_label = {"x": _at(_LABELS - 10), "y": _at(middle + 4), "text_anchor": "end"}
        shapes.append(element("text", _short(label, _LONGEST), **place_of_label))
        words = f"{label}: {number(estimate)}"
        if lower is not None and upper is not None:
            ends = {"x1": _at(across(lower)), "x2": _at(across(upper)), "y1": _at(middle), "y2": _at(middle)}
            shapes.append(element("line", class_="interval", **ends))
            words += f", from {number(lower)} to {number(upper)}"
        shapes.append(element("circle", class_="point", cx=_at(across(estimate)), cy=_at(middle), r="3.5"))
        said.append(words)
    return _drawing(name, title, "; ".join(said), height, shapes)


def bars(
    name: str,
    title: str,
    rows: Sequence[tuple[str, Sequence[tuple[str, Number]]]],
    kinds: Sequence[str],
    unit: str = "",
) -> Markup:
    """Draws a group of horizontal bars for each row, every bar with its label and its number.

    **Arguments:** as of `intervals`. `rows`: label, and for each bar a label and its length, infinite for none.
    `kinds`: the labels of bars, up to three, each with a colour of its own. `unit`: written behind each number.
    """
    lengths = [length for _, every in rows for _, length in every if math.isfinite(length)]
    scale = (WIDTH - 48 - 62) / max([*lengths, 1e-300])
    shapes, down, said = [], _TOP, []
    for label, every in rows:
        if label:
            shapes.append(element("text", _short(label, 50), x="0", y=_at(down + 10)))
            down += 16
        for words, length in every:
            shade = SHADES[kinds.index(words)]
            reach = length * scale if math.isfinite(length) else 0.0
            shown = f"{number(length, 3)}{unit if math.isfinite(length) else ''}"
            shapes += [
                element("text", words, class_="small", x="40", y=_at(down + 10), text_anchor="end"),
                element("rect", class_=shade, x="46", y=_at(down + 1), width=_at(reach), height="10"),
                element("text", shown, class_="small", x=_at(46 + reach + 5), y=_at(down + 10)),
            ]
            said.append(f"{label} {words}: {shown}".strip())
            down += 14
        down += 6
    return _drawing(name, title, "; ".join(said), down, shapes)


def budget(name: str, title: str, parts: Sequence[tuple[str, Number]]) -> Markup:
    """Draws a budget as one bar, whose parts are named below. **Arguments:** as of `bars`; the last part is left."""
    whole, reach, shapes = max(sum(length for _, length in parts), 1e-300), 0.0, []
    for place, (label, length) in enumerate(parts):
        wide, shade = WIDTH * length / whole, "left" if place == len(parts) - 1 else SHADES[place]
        box = {"y": "1", "width": _at(max(wide - 1, 0)), "height": "18"}
        shapes.append(element("rect", class_=shade, x=_at(reach + 0.5), **box))
        reach += wide
        key = {"x": "0", "y": _at(28 + 16 * place), "width": "10", "height": "10"}
        shapes.append(element("rect", class_=shade, **key))
        shapes.append(element("text", f"{label}: {number(length)}", x="16", y=_at(37 + 16 * place)))
    said = "; ".join(f"{label}: {number(length)}" for label, length in parts)
    return _drawing(name, title, said, 30 + 16 * len(parts), shapes)


def _drawing(name: str, title: str, words: str, height: Number, shapes: Sequence[Any]) -> Markup:
    ids = f"{name}-title", f"{name}-words"
    named = element("title", title, id=ids[0]), element("desc", words, id=ids[1])
    size = {"viewBox": f"0 0 {WIDTH} {_at(height)}", "role": "img"}
    svg = element("svg", *named, *shapes, **size, aria_labelledby=ids[0], aria_describedby=ids[1])
    return element("figure", element("figcaption", title), svg)


def _axis(ticks: Sequence[Number], across: Any, height: Number) -> list[Markup]:
    shapes, bottom = [], _TOP + height
    room, longest = across(ticks[1]) - across(ticks[0]), max(len(number(tick)) for tick in ticks)
    for place, tick in enumerate(ticks):
        x = _at(across(tick))
        shapes.append(element("line", class_="grid", x1=x, x2=x, y1=_at(_TOP), y2=_at(bottom)))
        # Every second one, where there is no room for all.
        if room > _LETTER * longest or place % 2 == 0:
            text = {"class_": "small", "x": x, "y": _at(bottom + 14), "text_anchor": "middle"}
            shapes.append(element("text", number(tick), **text))
    return [joined(*shapes)]


def _short(label: str, longest: int) -> str:
    return label if len(label) <= longest else f"{label[: longest - 1]}…"


def _ticks(low: Number, high: Number) -> list[Number]:
    """Finds three to five round numbers, of which the first and the last enclose two numbers."""
    span = high - low if high > low else max(abs(low), 1.0) * 0.1
    size = 10.0 ** math.floor(math.log10(span / 3))
    step = next(size * times for times in (1, 2, 2.5, 5, 10, 20) if span / (size * times) <= 3.0)
    first, last = math.floor(low / step), math.ceil(high / step)
    # Twelve digits, so that no rounding error is shown.
    return [float(f"{step * place:.12g}") for place in range(first, max(last, first + 1) + 1)]


def _at(value: Number) -> str:
    return f"{value:.1f}".removesuffix(".0")
