"""Makes the small HTML tables that notebooks show of objects."""

import html
from collections.abc import Iterable
from typing import Any


def html_table(title: str, rows: Iterable[tuple[str, Any]]) -> str:
    """Makes a table of a title and rows (name, value) for a notebook, with everything escaped."""
    lines = "".join(
        f'<tr><th style="text-align: left">{html.escape(name)}</th>'
        f'<td style="text-align: left">{html.escape(str(value))}</td></tr>'
        for name, value in rows
    )
    return f"<table><caption>{html.escape(title)}</caption><tbody>{lines}</tbody></table>"
