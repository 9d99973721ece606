"""Public texts that are read as expressions: names of columns between backticks, and limits on length and depth.

Formulas and conditions share one rule for names. A name in the syntax of Python is written as it is, `wage`; any name
is written between backticks, `` `house size` ``, letter by letter. Backticks within text in quotes are text.
"""

import ast
import re
from typing import Any

MOST_CHARACTERS = 10_000
# Brackets within brackets, and signs one after the other.
DEEPEST = 50
# Of sums in brackets, which are multiplied out.
LARGEST_POWER = 8

_QUOTED_OR_NAMED = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`([^`]*)`""")
_COMPARISONS = {ast.Gt: ">", ast.GtE: ">=", ast.Lt: "<", ast.LtE: "<=", ast.Eq: "==", ast.NotEq: "!="}
_NEGATIONS = re.compile(rf"(?:\bnot\b\s*){{{DEEPEST + 1}}}")


def require_readable(text: Any, what: str, example: str) -> None:
    """Raises TypeError for what is no text, and ValueError beyond `MOST_CHARACTERS` and `DEEPEST`. All is public.

    **Arguments:** `what`: a word for the text, like "a formula". `example`: of a right one, in words.
    """
    if not isinstance(text, str):
        raise TypeError(f"{what} is text, {example}")
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"{what} has at most {MOST_CHARACTERS} characters, and this one has {len(text)}")
    brackets = signs = 0
    for character in text:
        brackets += (character in "([{") - (character in ")]}")
        signs = signs + 1 if character in "+-~" else signs if character.isspace() else 0
        if max(brackets, signs) > DEEPEST:
            raise too_deep(text)
    if _NEGATIONS.search(text):
        raise too_deep(text)


def parsed(text: str) -> ast.expr:
    """Returns the expression in the syntax of Python, of which nodes of names have those that stood between backticks.

    Raises SyntaxError for another syntax, and ValueError for what is nested too deeply.
    """
    prefix = "_column_"
    while prefix in text:
        prefix += "_"
    names: dict[str, str] = {}

    def plain(found: re.Match[str]) -> str:
        if found[1] is None:
            return found[0]
        # Spaces, so that no other name merges with this one.
        return f" {names.setdefault(found[1], f'{prefix}{len(names)}')} "

    try:
        node = ast.parse(_QUOTED_OR_NAMED.sub(plain, text).strip(), mode="eval").body
    except (RecursionError, MemoryError):
        raise too_deep(text) from None
    written = {placeholder: name for name, placeholder in names.items()}
    for one in ast.walk(node):
        if isinstance(one, ast.Name):
            one.id = written.get(one.id, one.id)
    return node


def literal(node: ast.expr) -> Any:
    """Returns a number, text or a list of such; raises ValueError for anything else."""
    try:
        return ast.literal_eval(node)
    except (TypeError, SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError("no number, text or list of such") from error


def comparison(node: ast.expr) -> tuple[str, str | None, Any]:
    """Returns the column, the sign and the number or text of `column > 5`; raises ValueError for anything else.

    The sign is None for words, like `in`.
    """
    if not (isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.left, ast.Name)):
        raise ValueError("no comparison of a column")
    return node.left.id, _COMPARISONS.get(type(node.ops[0])), literal(node.comparators[0])


def too_deep(text: str) -> ValueError:
    """Returns the refusal of an expression that is nested too deeply."""
    return ValueError(
        f"{text[:40]!r} and so on is nested too deeply: at most {DEEPEST} brackets or signs are open at once"
    )
