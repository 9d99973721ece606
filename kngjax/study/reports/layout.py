"""Lays out a page: one file with its own style, no script that runs, and nothing from elsewhere."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from kngjax.core.pictures import COLOURS
from kngjax.ledger.budgets import digits
from kngjax.study.reports import drawings
from kngjax.study.reports.markup import Markup, element, embedded, joined
from kngjax.study.reports.page_contents import shares

# Colours by name, in light those of all pictures, and in dark; tests compute their contrast.
LIGHT = {
    "paper": "#ffffff", "ink": "#1b1f24", "soft": "#57606a", "rule": "#d0d7de", "wash": "#f6f8fa", "link": COLOURS[0],
    **dict(zip(drawings.SHADES, COLOURS, strict=False)), "left": "#8c959f", "bad": "#a40e26",
}  # fmt: skip
DARK = {
    "paper": "#14181d", "ink": "#e6edf3", "soft": "#a3adb8", "rule": "#39424d", "wash": "#1d232a", "link": "#79b8ff",
    "one": "#79b8ff", "two": "#f0a35e", "three": "#6fcfb4", "left": "#768390", "bad": "#ff9a9a",
}  # fmt: skip
# Nothing that a name or a text smuggled in could run or load.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = """
*{box-sizing:border-box}
body{margin:0 auto;padding:1rem;max-width:62rem;background:var(--paper);color:var(--ink);
 font:1rem/1.55 system-ui,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.7rem;line-height:1.25;margin:.5rem 0}
h2{font-size:1.3rem;margin:2.2rem 0 .6rem;padding-top:.6rem;border-top:1px solid var(--rule)}
h3{font-size:1.05rem;margin:1.6rem 0 .4rem}
p,ul,ol,dl{margin:.5rem 0;max-width:46rem}
li{margin:.25rem 0}
.lead{font-size:1.1rem}
.note{color:var(--soft)}
.bad{color:var(--bad);font-weight:600}
code{font:.9em ui-monospace,monospace}
.wide{overflow-x:auto;margin:.6rem 0}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
caption{text-align:left;color:var(--soft);padding:.2rem 0}
th,td{padding:.3rem .9rem .3rem 0;border-bottom:1px solid var(--rule);text-align:left;vertical-align:top;
 overflow-wrap:normal}
td.number,th.number{text-align:right}
td.number{white-space:nowrap}
thead th{vertical-align:bottom}
tbody th{min-width:6.8rem}
td code{overflow-wrap:anywhere}
th{font-weight:600}
dt{font-weight:600;margin-top:.4rem}
dd{margin:0}
@media (min-width:40rem){caption{white-space:nowrap}dt{margin:0}
 dl{display:grid;grid-template-columns:8rem 1fr;gap:.2rem 1rem}}
.drawings{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,20rem),1fr));gap:.8rem 1.6rem}
figure{margin:.6rem 0;max-width:28rem;break-inside:avoid}
figcaption{font-weight:600;font-size:.95rem}
svg{display:block;width:100%;height:auto;font:12px system-ui,sans-serif}
svg text{fill:var(--ink)}
svg .small{font-size:11px;fill:var(--soft)}
svg .grid{stroke:var(--rule)}
svg .interval{stroke:var(--one);stroke-width:2.5}
svg .point{fill:var(--one)}
svg .one{fill:var(--one)}svg .two{fill:var(--two)}svg .three{fill:var(--three)}svg .left{fill:var(--left)}
details{margin:.6rem 0}
summary{cursor:pointer;color:var(--link)}
:focus-visible{outline:2px solid var(--link);outline-offset:2px}
@page{margin:18mm}
@media print{body{max-width:none;padding:0;font-size:10pt}h2,h3{break-after:avoid}tr{break-inside:avoid}
 .wide{overflow:visible}.drawings{grid-template-columns:1fr 1fr}}
"""


def page(title: str, lead: Sequence[Any], sections: Sequence[Any], document: Any = None) -> str:
    """Writes a whole page as HTML.

    **Arguments:** `lead`: what stands below the title. `document`: kept in the page as JSON; None for none.
    """
    head = [
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("style", Markup(_colours() + _STYLE)),
    ]
    kept = None if document is None else embedded(document)
    body = element("main", element("h1", title), *lead, *sections)
    return f"<!doctype html>\n{element('html', element('head', *head), element('body', body, kept), lang='en')}\n"


def section(title: str, *children: Any, level: int = 2) -> Markup:
    """Writes a section below its heading."""
    return element("section", element(f"h{level}", title), *children)


def paragraph(*words: Any, kind: str | None = None) -> Markup:
    """Writes a paragraph. **Arguments:** `kind`: a class of the style: lead, note or bad."""
    return element("p", *words, class_=kind)


def items(every: Sequence[Any], kind: str = "ul") -> Markup:
    """Writes a list. **Arguments:** `kind`: "ol" numbers its items."""
    return element(kind, *(element("li", one) for one in every))


def facts(rows: Sequence[tuple[Any, Any]]) -> Markup:
    """Writes names, each with what is said of it."""
    return element("dl", *(joined(element("dt", name), element("dd", words)) for name, words in rows))


def table(caption: str, head: Sequence[str], rows: Sequence[Sequence[Any]], words: int = 1) -> Markup:
    """Writes a table that scrolls within its box where it is wide.

    **Arguments:** `words`: how many of the first columns are text; the others are numbers. The first names its row.
    """
    kinds = [None if place < words else "number" for place in range(len(head))]
    heads = (element("th", name, scope="col", class_=kind) for name, kind in zip(head, kinds, strict=True))
    lines = []
    for first, *others in rows:
        cells = (element("td", one, class_=kind) for one, kind in zip(others, kinds[1:], strict=True))
        lines.append(element("tr", element("th", first, scope="row"), *cells))
    made = element(
        "table", element("caption", caption), element("thead", element("tr", *heads)), element("tbody", *lines)
    )
    return element("div", made, class_="wide", role="group", aria_label=caption, tabindex="0")


def beside(every: Sequence[Any]) -> Markup | None:
    """Sets drawings beside each other where there is room; None where there is none."""
    return element("div", *every, class_="drawings") if every else None


def budget(caption: str, parts: Sequence[str], amounts: Sequence[Any]) -> list[Any]:
    """Draws each number of a budget as a bar, and lists them.

    **Arguments:** `parts`: what is called what these releases take, what others took, and what is left. `amounts`: of
    `page_contents.amounts`.
    """
    bars, rows = [], []
    for place, amount in enumerate(amounts):
        name, shared = shares(amount)
        drawn = [(label, max(float(share), 0.0)) for label, share in zip(parts, shared, strict=True)]
        bars.append(drawings.budget(f"budget-{place}", f"Budget of {name}: {digits(sum(shared, Fraction(0)))}", drawn))
        rows.append([name, *map(digits, shared), digits(sum(shared, Fraction(0)))])
    return [beside(bars), table(caption, ["number", *parts, "whole"], rows)]


def _colours() -> str:
    light, dark = ("".join(f"--{name}:{one};" for name, one in each.items()) for each in (LIGHT, DARK))
    return f":root{{{light}}}@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}"
