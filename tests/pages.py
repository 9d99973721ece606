"""The pages of the documentation, and the code that they show."""

import functools
import pathlib
import re

ROOT = pathlib.Path(__file__).parents[1]
DOCS = ROOT / "docs"
# Without what a build of the site has left there.
EXECUTED = [ROOT / "README.md", *sorted(page for page in DOCS.rglob("*.md") if page.parts[-2] != "generated")]

# Code, and what it prints where a page shows that.
BLOCK = re.compile(r"^```python\n(.*?)^```$(?:(?:(?!^```|^#).)*?^```text\n(.*?)^```$)?", flags=re.DOTALL | re.MULTILINE)
# A cell of a notebook: the site shows what it prints, and options may stand before its code.
CELL = re.compile(r"^```\{code-cell\} python\n(?:---\n.*?^---\n)?(.*?)^```$", flags=re.DOTALL | re.MULTILINE)


@functools.cache
def text(path):
    return path.read_text(encoding="utf-8")


def programs(page):
    """The code of a page, block by block and then cell by cell."""
    return [*(program for program, _ in BLOCK.findall(text(page))), *CELL.findall(text(page))]
