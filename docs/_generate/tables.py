"""Tables of Markdown, and what docstrings say of arguments."""

import inspect
import re
from collections.abc import Iterable, Sequence
from typing import Any

_ARGUMENTS = re.compile(r"\*\*Arguments:\*\*(.*?)(?=\n\n(?!- )|\Z)", flags=re.DOTALL)
# One or several names, and what is said of them up to the next.
_NAMED = re.compile(r"((?:`\w+`(?:, | and )?)+):\s(.*?)(?=(?:\s-)?\s(?:`\w+`(?:, | and )?)+:\s|\Z)", flags=re.DOTALL)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown; cells are Markdown of one line, in which a bar stands for itself."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines)


def arguments_in_words(one: Any) -> dict[str, str]:
    """What a docstring says of each argument, in one line, by name; without those that it says nothing of."""
    said = {}
    for block in _ARGUMENTS.findall(inspect.getdoc(one) or ""):
        for names, words in _NAMED.findall(block):
            for name in re.findall(r"`(\w+)`", names):
                said[name] = " ".join(words.split())
    return said
