"""Regressions in one line, as `log(wage) ~ education + poly(experience, 2) + C(region)`: their grammar and their terms.

The package formulaic reads the grammar (`+`, `:`, `*`, `**`, brackets), and nothing else of it is used: what it would
make of data looks at all records, as centring and the levels of a category do. The columns are those of
`kngjax.data.terms`, with public bounds and levels, made record by record.

    x               a number, clipped to its public bounds; a category where it has public levels
    poly(x, k)      powers up to k, as Legendre polynomials
    log(x)          the logarithm, of positive bounds
    C(x)            a category with public levels, the first of which is the reference
    C(x, Treatment("b"))    the same with another reference; formulaic writes C(x, contr.treatment("b"))
    bs(x, knots=[...], degree=3)    B-splines with public knots
    I(x > 5)        a number above, below or equal to a public one
    a:b, a*b, a/b   products of these, and products with what they are made of
    0 + a, a - 1    without an intercept: a category then has a coefficient for each level, and numbers alone are
                    counted from zero

Columns span what they span in R, patsy and formulaic (`kngjax.data.codings`), but for `poly` and `bs` without their
margins, as in `r:poly(x, 2)` or `bs(x, knots=[3])/s` where no term is `r` or `s`, or in `0 + poly(x, 2)`: theirs are
counted from a mean or the least number of the data, and these from zero or the lower bound. A threshold is a number, 0
or 1, as in formulaic. A column of any name is written between backticks.
"""

import ast
import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kngjax.core.errors import about
from kngjax.data import cells, codings, expressions
from kngjax.data.missing import ByColumn, policy_in
from kngjax.data.terms import Categorical, Design, Indicator, Polynomial, Product, Spline
from kngjax.data.terms.base import AbstractColumnTerm

_CENTRED = "learns a mean or spread from all records, so that one of them moves the others"
_LEARN = {
    "center": _CENTRED,
    "scale": _CENTRED,
    "standardize": _CENTRED,
    "bs": "without public knots reads them off the data: bs(x, knots=[...])",
    "cs": "reads its knots off the data: bs(x, knots=[...])",
    "cr": "reads its knots off the data: bs(x, knots=[...])",
    "cc": "reads its knots off the data: bs(x, knots=[...])",
    "lag": "takes the values of other records",
    "hashed": "makes columns that have no public bounds and names",
}
# What other packages write, and what stands for it here.
_INSTEAD = (
    (r"(np|numpy|math)\.log\(", "write log(x)"),
    (r"I\(.*\*\*", "for powers write poly(x, 2), which has x and its square"),
    (r"Q\(", "a column of any name is written between backticks, `years at work`"),
)
_ALLOWED = (
    'x, poly(x, k), log(x), C(x), C(x, Treatment("b")), bs(x, knots=[...]), I(x > 5), and products of them, a:b, a*b '
    "and a/b"
)
_TREATMENTS = ("Treatment", "contr.treatment")


@dataclass(frozen=True)
class Formula:
    """Holds a formula that was read with public facts. Public.

    **Arguments:** `response`: the name of its column. `transform`: "log" or None. `design`: the terms.
    """

    text: str
    response: str
    transform: str | None
    design: Design


def read(
    text: str,
    bounds: Mapping[str, Sequence[float | int]] | None = None,
    levels: Mapping[str, Any] | None = None,
    missing: ByColumn = None,
) -> Formula:
    """Reads the terms of a formula. No data are looked at.

    **Arguments:** all public. `text`: like "wage ~ education + C(region)". `bounds`: the least and the largest value of
    each column of numbers, in own units. `levels`: those of each category, the reference first. `missing`: by column
    what a missing cell counts as, or "drop"; "drop" alone is for all columns.

    **Raises:** ValueError for whatever is not in the list of this module, with the reason, and for absent bounds and
    levels; ImportError without formulaic.
    """
    expressions.require_readable(text, "a formula", "like 'wage ~ education + C(region)'.")
    left, right = _sides(text)
    facts = _ColumnFacts(text, bounds or {}, levels or {}, missing)
    if len(left) != 1 or len(left[0]) != 1:
        raise ValueError(f"the formula {text!r} needs one response to the left of '~', like log(wage) ~ education.")
    response, transform = facts.response(left[0][0])
    terms = [[facts.term(factor) for factor in factors] for factors in right if factors]
    if not terms:
        raise ValueError(f"the formula {text!r} has no terms: for the response alone take a mean or a quantile.")
    for parts in terms:
        if any(part.column == response for part in parts):
            raise ValueError(f"in {text!r}: column {response!r} is the response and a term.")
    # In the order of the terms themselves, so that a:b and b:a are one.
    order = list(dict.fromkeys(part.column for parts in sorted(terms, key=len) for part in parts))
    for parts in terms:
        parts.sort(key=lambda part: order.index(part.column))
        if len(parts) > 1:
            # Refuses two factors of one column.
            Product(tuple(parts))
    # A category may be written in two ways.
    distinct = [list(parts) for parts in dict.fromkeys(tuple(dict.fromkeys(parts)) for parts in terms)]
    has_constant = [] in right or codings.holds_constant(distinct)
    try:
        own = None if [] in right or not has_constant else codings.coded(distinct, has_constant=False)
        design = Design(codings.coded(distinct, has_constant), own, has_constant)
    except ValueError as error:
        raise ValueError(f"in {text!r}: {error}") from error
    return Formula(text, response, transform, design)


def _sides(text: str) -> tuple[list[list[tuple[str, bool]]], list[list[tuple[str, bool]]]]:
    """The factors of the terms to the left and to the right, and whether each is a name; of the intercept none."""
    if any(int(power) > expressions.LARGEST_POWER for power in re.findall(r"(?:\*\*|\^)\s*(\d+)", text)):
        raise ValueError(f"in {text!r}: the largest power of a sum is {expressions.LARGEST_POWER}.")
    try:
        import formulaic
        from formulaic.errors import FormulaicError
    except ImportError as error:
        raise ImportError("formulas need the package formulaic: pip install 'kngjax[formula]'.") from error
    try:
        parsed: Any = formulaic.Formula(text)  # pyright: ignore[reportAbstractUsage]
        left, right = ([_factors(term) for term in side] for side in (parsed.lhs, parsed.rhs))
    except (FormulaicError, AttributeError, TypeError, SyntaxError) as error:
        raise ValueError(f"{text!r} is no formula of one response, like 'wage ~ education + C(region)'.") from error
    except (RecursionError, MemoryError):
        raise expressions.too_deep(text) from None
    return left, right


@dataclass(frozen=True)
class _ColumnFacts:
    """Holds the public facts about the columns, from which the formula's response and terms are made."""

    text: str
    bounds: Mapping[str, Sequence[float | int]]
    levels: Mapping[str, Any]
    missing: ByColumn

    def response(self, factor: tuple[str, bool]) -> tuple[str, str | None]:
        """Reads the column's name and its transform. **Arguments:** `factor`: its text, and whether that is a name."""
        expression, _ = factor
        node = self._parsed(*factor)
        if isinstance(node, str):
            return node, None
        name, arguments = self._call(expression, node)
        if name != "log" or len(arguments) != 1:
            raise ValueError(
                f"in {self.text!r}: the response is a column or its log, like log(wage); a category is written "
                "without C(), and anything else is made a column before the call, each record by itself."
            )
        return self._column(expression, arguments[0]), "log"

    def term(self, factor: tuple[str, bool]) -> AbstractColumnTerm:
        """Makes the term of one factor. **Arguments:** `factor`: as of `response`."""
        expression, _ = factor
        node = self._parsed(*factor)
        if isinstance(node, str):
            return self._category(node) if node in self.levels else self._polynomial(node)
        name, arguments = self._call(expression, node)
        keywords = {keyword.arg: keyword.value for keyword in node.keywords}
        if name == "I" and len(arguments) == 1 and not keywords:
            return self._indicator(expression, arguments[0])
        column = self._column(expression, arguments[0])
        if name == "C" and len(arguments) in (1, 2) and not keywords:
            return self._category(column, *(self._reference(expression, one) for one in arguments[1:]))
        if name == "log" and len(arguments) == 1 and not keywords:
            return self._polynomial(column, transform="log")
        if name == "poly" and len(arguments) == 2 and not keywords:
            return self._polynomial(column, degree=self._literal(expression, arguments[1]))
        if name == "bs" and len(arguments) == 1 and "knots" in keywords and set(keywords) <= {"knots", "degree"}:
            given = {key: self._literal(expression, value) for key, value in keywords.items() if key}
            lower, upper = self._ends(column)
            return Spline(column, lower, upper, missing=self._missing(column), **given)
        raise self._refusal(expression)

    def _parsed(self, expression: str, is_name: bool) -> Any:
        """A column's name, or a call in the syntax of Python."""
        if is_name or expression in self.bounds or expression in self.levels:
            return expression
        try:
            node = expressions.parsed(expression)
        except SyntaxError:
            return expression
        return node.id if isinstance(node, ast.Name) else node

    def _call(self, expression: str, node: Any) -> tuple[str, list[ast.expr]]:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
            return node.func.id, node.args
        raise self._refusal(expression)

    def _column(self, expression: str, node: ast.expr) -> str:
        if not isinstance(node, ast.Name):
            raise self._refusal(expression)
        return node.id

    def _literal(self, expression: str, node: ast.expr) -> Any:
        try:
            return expressions.literal(node)
        except ValueError as error:
            raise self._refusal(expression) from error

    def _refusal(self, expression: str) -> ValueError:
        name = expression.split("(", 1)[0]
        learns = name in _LEARN and not (name == "bs" and "knots" in expression)
        reason = f"{name}() {_LEARN[name]}" if learns else f"{expression!r} is not known"
        reason += "".join(f": {advice}" for pattern, advice in _INSTEAD if re.match(pattern, expression))
        return ValueError(
            f"in {self.text!r}: {reason}. The terms that look at one record at a time are {_ALLOWED}. "
            "Anything else is done to the column before the call, each record by itself."
        )

    def _ends(self, column: str) -> tuple[float | int, float | int]:
        if column not in self.bounds:
            refusal = ValueError(
                f"in {self.text!r}: column {column!r} needs public bounds in own units, bounds={{{column!r}: (lower, "
                f"upper)}}, or public levels, levels={{{column!r}: (...)}}; none may be read off the data."
                + similar_to(column, (*self.bounds, *self.levels))
            )
            raise about(refusal, "bounds", column)
        lower, upper = self.bounds[column]
        return lower, upper

    def _missing(self, column: str) -> Any:
        return policy_in(self.missing, column)

    def _polynomial(self, column: str, degree: Any = 1, transform: str | None = None) -> Polynomial:
        lower, upper = self._ends(column)
        return Polynomial(column, lower, upper, degree, missing=self._missing(column), transform=transform)

    def _reference(self, expression: str, node: ast.expr) -> tuple[Any, ...]:
        """The level that a coding compares the others with; none where it is the first one."""
        if ast.unparse(node) in _TREATMENTS:
            return ()
        if not (isinstance(node, ast.Call) and ast.unparse(node.func) in _TREATMENTS):
            raise self._refusal(expression)
        given = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg in ("reference", "base"))]
        if len(given) != 1 or len(node.args) + len(node.keywords) != 1:
            raise self._refusal(expression)
        return (self._literal(expression, given[0]),)

    def _category(self, column: str, reference: tuple[Any, ...] = ()) -> Categorical:
        if column not in self.levels:
            refusal = ValueError(
                f"in {self.text!r}: the category {column!r} needs public levels, the reference first, "
                f"levels={{{column!r}: (...)}}: those that the data have tell who is in them."
            )
            raise about(refusal, "levels", column)
        levels = tuple(self.levels[column])
        place = cells.place_of(reference[0], levels) if reference else 0
        if place < 0:
            shown = ", ".join(map(repr, levels))
            raise ValueError(f"in {self.text!r}: the reference {reference[0]!r} of {column!r} is none of {shown}.")
        ordered = (*levels[place : place + 1], *levels[:place], *levels[place + 1 :])
        return Categorical(column, ordered, missing=self._missing(column))

    def _indicator(self, expression: str, node: ast.expr) -> Indicator:
        try:
            column, comparison, threshold = expressions.comparison(node)
        except ValueError as error:
            raise self._refusal(expression) from error
        if comparison in (None, "!="):
            raise self._refusal(expression)
        return Indicator(column, comparison, threshold, missing=self._missing(column))


def _factors(term: Any) -> list[tuple[str, bool]]:
    factors = [(factor.expr, factor.eval_method.value) for factor in term.factors]
    return [(text, kind == "lookup") for text, kind in factors if (text, kind) != ("1", "literal")]


def similar_to(name: str, declared: Sequence[str]) -> str:
    """Returns a question that asks whether a declared name was meant, where one is like it; else nothing. Public."""
    found = difflib.get_close_matches(name, [one for one in declared if isinstance(one, str)], n=1)
    return f" Did you mean {found[0]!r}?" if found else ""
