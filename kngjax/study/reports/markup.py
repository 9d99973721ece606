"""Builds HTML and SVG as text, and escapes whatever is not markup already, here and nowhere else."""

import html
import json
import re
from typing import Any

_EMPTY = frozenset({"meta", "rect", "line", "circle"})
# Control characters, marks that turn the direction of writing, and halves of letters.
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_EMBEDDED = re.compile(r'<script type="application/json" id="kngjax">(.*?)</script>', re.DOTALL)


class Markup(str):
    """Holds text that is HTML already. `element` makes it."""


def element(name: str, /, *children: Any, **attributes: Any) -> Markup:
    """Writes an element with its children, and escapes each child that is no `Markup`.

    **Arguments:** `name`: of the element. `children`: None is left out. `attributes`: `class_` stands for class, and
    `aria_label` for aria-label; None is left out.
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(_seen(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = joined(*children)
    return Markup(f"<{name}{given}/>" if name in _EMPTY and not inside else f"<{name}{given}>{inside}</{name}>")


def joined(*children: Any) -> Markup:
    """Puts children one after the other, and escapes each that is no `Markup`."""
    every = (one if isinstance(one, Markup) else html.escape(_seen(one)) for one in children if one is not None)
    return Markup("".join(every))


def _seen(value: Any) -> str:
    """Writes a value as text that looks the way that it is read."""
    return _UNSEEN.sub("\N{REPLACEMENT CHARACTER}", str(value))


def embedded(document: Any) -> Markup:
    """Writes a document as JSON that no browser runs, and that holds no character which could end the element."""
    text = json.dumps(document, allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(f'<script type="application/json" id="kngjax">{text}</script>')


def document_in(page: str) -> Any:
    """Reads the document that `embedded` wrote into a page; raises ValueError where there is none, or more than one."""
    found = _EMBEDDED.findall(page)
    if len(found) != 1:
        raise ValueError(
            "this is no report of kngjax, an HTML page that 'kngjax report' or results.report() writes: it does not "
            "hold its releases as JSON, once"
        )
    return json.loads(found[0])
