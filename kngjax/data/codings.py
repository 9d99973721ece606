"""Chooses the columns of a formula's terms: they span what R, patsy and formulaic span, and no column stands twice.

A term is the product of all columns of its factors, of a category one for each level. A category's columns add up to 1,
so that a product holds what it would be without the category, its margin. Where other terms have that margin already,
the category's reference level has no column; where none has, it has one: the slopes of `r + r:x` are one for each level
of `r`, and those of `x + r + r:x` are differences from that of the reference.

The constant and numbers have bases that are nearly orthogonal, of numbers from the middle of their bounds, where the
other terms hold what that subtracts; in `r:x` alone, where none holds `r`, and in `0 + x` numbers are counted from
zero. There `poly`, and in `r:bs(x, ...)` `bs`, span another space than theirs, which are counted from a mean or the
least of all data.

Source: Chambers and Hastie, Statistical Models in S (1992), section 2.4.1; the merging of columns is formulaic's.
"""

import dataclasses
import itertools
from collections.abc import Sequence

from kngjax.data.terms import Categorical, Polynomial, Product
from kngjax.data.terms.base import AbstractColumnTerm, AbstractTerm

# Columns of categories that a product has: the category, and whether its reference has a column.
_Coding = frozenset[tuple[str, bool]]
# Functions of numbers that are multiplied, by name, and beside each which sets of categories it is multiplied with.
_Spans = dict[frozenset[str], set[frozenset[str]]]


def coded(terms: Sequence[Sequence[AbstractColumnTerm]], has_constant: bool) -> tuple[AbstractTerm, ...]:
    """Returns the terms with their columns, in order. All is public.

    **Arguments:** `terms`: of each the factors, of different columns, those with fewer factors first. `has_constant`:
    whether the constant column is there. Raises ValueError where a term has a part of a polynomial already.
    """
    spans: _Spans = {frozenset(): {frozenset()} if has_constant else set()}
    found: dict[int, list[_Coding]] = {}
    # Of terms with as many factors those of more functions come first: they hold the others.
    for place in sorted(range(len(terms)), key=lambda k: (len(terms[k]), -len(_functions(_numbers(terms[k]))))):
        found[place] = _simplified(_fresh(terms[place], spans))
    return tuple(_term(terms[place], coding, spans) for place in sorted(found) for coding in found[place])


def holds_constant(terms: Sequence[Sequence[AbstractColumnTerm]]) -> bool:
    """Tells whether columns of categories add up to the constant one."""
    return any(all(isinstance(factor, Categorical) for factor in term) for term in terms)


def _numbers(term: Sequence[AbstractColumnTerm]) -> list[AbstractColumnTerm]:
    return [factor for factor in term if not isinstance(factor, Categorical)]


def _functions(numbers: Sequence[AbstractColumnTerm]) -> list[frozenset[str]]:
    return [frozenset(names) for names in itertools.product(*(factor.names for factor in numbers))]


def _fresh(term: Sequence[AbstractColumnTerm], spans: _Spans) -> list[_Coding]:
    """Lists the products, all without a reference level, by which a term extends `spans`, and adds them there."""
    choices = [((factor.column, False), None) for factor in term if isinstance(factor, Categorical)]
    codings = [frozenset(one for one in chosen if one is not None) for chosen in itertools.product(*choices)]
    functions, fresh = _functions(_numbers(term)), []
    for function in functions:
        known = spans.setdefault(function, set())
        fresh.append([coding for coding in codings if _columns(coding) not in known])
        known.update(map(_columns, codings))
    if any(one != fresh[0] for one in fresh):
        name = ":".join(factor.names[-1] for factor in term)
        raise ValueError(
            f"other terms have a part of the polynomial in {name!r}, but not all of it: write the same poly(x, k) in "
            "all of them"
        )
    return fresh[0]


def _columns(coding: _Coding) -> frozenset[str]:
    return frozenset(column for column, _ in coding)


def _simplified(codings: Sequence[_Coding]) -> list[_Coding]:
    """Merges each product that lacks the reference with its margin into one product with all levels."""
    found: list[_Coding] = []
    for one in sorted(codings, key=len):
        for other in found:
            added = one - other
            if len(one) == len(other) + 1 and len(added) == 1 and not (pair := next(iter(added)))[1]:
                merged = (one - added) | {(pair[0], True)}
                found = _simplified([kept for kept in found if kept != other] + [merged])
                break
        else:
            found.append(one)
    return found


def _term(term: Sequence[AbstractColumnTerm], coding: _Coding, spans: _Spans) -> AbstractTerm:
    full, numbers = dict(coding), _numbers(term)
    centred = _centred(numbers, coding, spans)
    parts: list[AbstractColumnTerm] = []
    for factor in term:
        if isinstance(factor, Categorical):
            if factor.column in full:
                parts.append(dataclasses.replace(factor, full=full[factor.column]))
        elif isinstance(factor, Polynomial):
            parts.append(dataclasses.replace(factor, from_zero=factor not in centred))
        else:
            parts.append(factor)
    return parts[0] if len(parts) == 1 else Product(tuple(parts))


def _centred(numbers: Sequence[AbstractColumnTerm], coding: _Coding, spans: _Spans) -> tuple[AbstractColumnTerm, ...]:
    """Finds the most polynomials that can be counted from the middle: the span holds the product without them."""
    reduced = [(column,) if not is_full else (column, None) for column, is_full in coding]
    sets = {frozenset(one for one in chosen if one is not None) for chosen in itertools.product(*reduced)}
    polynomials = [factor for factor in numbers if isinstance(factor, Polynomial)]
    for size in range(len(polynomials), 0, -1):
        for chosen in itertools.combinations(polynomials, size):
            lowered = itertools.chain.from_iterable(itertools.combinations(chosen, k + 1) for k in range(size))
            rests = [[factor for factor in numbers if factor not in dropped] for dropped in lowered]
            if all(sets <= spans.get(function, set()) for rest in rests for function in _functions(rest)):
                return chosen
    return ()
