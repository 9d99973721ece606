"""Lays out what is to be read, for terminals and notebooks alike: facts in two columns, a table of numbers, notes."""

import abc
import dataclasses
import html
import math
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

WIDTH = 78
_HALF = 38
# Spaces that a narrow table has between its columns at most.
_WIDEST_GAP = 6
# Columns of a terminal: in wider tables names take several lines, each of this many letters at least.
_WIDEST, _LEAST_NAME = 100, 24


@dataclasses.dataclass(frozen=True, repr=False)
class SummaryTable:
    """Holds a title, facts, rows of numbers, and notes. Print it, or let a notebook show it.

    A fact that takes more than half a line is a note, so that no table holds prose.

    **Arguments:** `title`. `facts`: names and values. `heads`: the names of the columns. `rows`: a cell for each.
    `keys`: how many columns name the row. `notes`: sentences, which are numbered below the table.
    """

    title: str
    facts: Sequence[tuple[str, str]] = ()
    heads: Sequence[str] = ()
    rows: Sequence[Sequence[Any]] = ()
    keys: int = 1
    notes: Sequence[str] = ()

    @classmethod
    def of_frame(cls, title: str, facts: Any, frame: Any, keys: int, notes: Sequence[str] = ()) -> "SummaryTable":
        """Takes the rows of a data frame, without its index; columns that hold no number are left out.

        **Arguments:** `frame`: its first columns are the keys; those that say the same in all rows are left out.
        """
        names = list(frame)
        told = [name for name in names[:keys] if frame[name].nunique(dropna=False) > 1] or names[:keys]
        shown = frame[[*told, *(name for name in names[keys:] if frame[name].notna().any())]]
        return cls(title, facts, tuple(map(str, shown)), [*shown.itertuples(index=False, name=None)], len(told), notes)

    def numbers(self) -> str:
        """Writes the table of numbers alone."""
        cells = [tuple(self.heads), *(tuple(map(_written, row)) for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        gap = " " * min(max((WIDTH - sum(widths)) // max(len(widths) - 1, 1), 2), _WIDEST_GAP)
        for place in sorted(range(self.keys), key=lambda place: -widths[place]):
            over = sum(widths) + len(gap) * (len(widths) - 1) - _WIDEST
            widths[place] = min(widths[place], max(widths[place] - max(over, 0), _LEAST_NAME))

        def lines(row: Sequence[str]) -> list[str]:
            sides = "<" * self.keys + ">" * (len(row) - self.keys)
            parts = [textwrap.wrap(cell, width) or [""] for cell, width in zip(row, widths, strict=True)]
            made = []
            for number in range(max(map(len, parts))):
                own = [part[number] if number < len(part) else "" for part in parts]
                padded = (f"{cell:{side}{width}}" for cell, side, width in zip(own, sides, widths, strict=True))
                made.append(gap.join(padded).rstrip())
            return made

        head, body = lines(cells[0]), [line for row in cells[1:] for line in lines(row)]
        return "\n".join([*head, "-" * max(WIDTH, *map(len, (*head, *body))), *body])

    def __str__(self) -> str:
        numbers = self.numbers().splitlines() if self.rows else []
        width = max(WIDTH, *map(len, [self.title, *numbers]))
        facts, notes = self._split()
        pairs = [f"{name}: {value:>{_HALF - len(name) - 2}}" for name, value in facts]
        rule = "=" * width
        lines = [self.title.center(width).rstrip(), rule]
        for part in (list(map("  ".join, _by_two(pairs))), numbers):
            lines += [*part, rule] if part else []
        for number, note in enumerate(notes, start=1):
            mark = f"[{number}] "
            said = textwrap.wrap(note, width - len(mark), break_long_words=False, break_on_hyphens=False)
            lines.append(mark + f"\n{' ' * len(mark)}".join(said))
        return "\n".join(lines)

    __repr__ = __str__

    def unwrapped(self) -> str:
        """Writes the title, the numbers, and each note in one line."""
        return "\n".join([self.title, *([self.numbers()] if self.rows else []), *self._split()[1]])

    def _repr_html_(self) -> str:
        facts, notes = self._split()
        pairs = [_cell("th", name, "row") + _cell("td", value) for name, value in facts]
        tables = [_body(map("".join, _by_two(pairs)))] if facts or not self.rows else []
        if self.rows:
            heads = "".join(_cell("th", name, "col") for name in self.heads)
            names = ["".join(_cell("th", cell, "row") for cell in row[: self.keys]) for row in self.rows]
            cells = ["".join(_cell("td", cell, side="right") for cell in row[self.keys :]) for row in self.rows]
            tables.append(f"<thead><tr>{heads}</tr></thead>{_body(map(str.__add__, names, cells))}")
        captions = (html.escape(self.title), "Numbers")
        made = [f"<table><caption>{name}</caption>{one}</table>" for name, one in zip(captions, tables, strict=False)]
        listed = "".join(f"<li>{html.escape(note)}</li>" for note in notes)
        return "".join(made) + (f"<ol>{listed}</ol>" if listed else "")

    def _split(self) -> tuple[list[tuple[str, str]], list[str]]:
        """Tells facts that fit into half a line from all that are notes."""
        facts = [one for one in self.facts if sum(map(len, one)) + 2 <= _HALF]
        return facts, [*(": ".join(one) for one in self.facts if one not in facts), *self.notes]


class AbstractSummarised(abc.ABC):
    """Shows its summary when it is printed, and in a notebook."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self.summary())

    @abc.abstractmethod
    def summary(self) -> SummaryTable:
        """Lays out its facts and numbers. Print it, or show it in a notebook."""

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()


def names_of(names: Sequence[str] | None, number: int) -> tuple[str, ...]:
    """Returns the names of numbers, or their places where they have none: value[0], value[1]."""
    return tuple(names or (f"value[{place}]" for place in range(number)))


def _written(cell: Any) -> str:
    """Writes a cell: five digits of a number that is not whole, and a dash where there is none."""
    if not isinstance(cell, float):
        return str(cell)
    if math.isnan(cell):
        return "-"
    return f"{cell:.0f}" if abs(cell) < 1e9 and cell.is_integer() else f"{cell:.5g}"


def _by_two(parts: Sequence[str]) -> list[Sequence[str]]:
    return [parts[k : k + 2] for k in range(0, len(parts), 2)]


def _body(rows: Iterable[str]) -> str:
    return f"<tbody>{''.join(f'<tr>{cells}</tr>' for cells in rows)}</tbody>"


def _cell(kind: str, cell: Any, scope: str = "", side: str = "left") -> str:
    of = f' scope="{scope}"' if scope else ""
    return f'<{kind}{of} style="text-align: {side}">{html.escape(_written(cell))}</{kind}>'
