"""A design as JSON, and back: all of it is public."""

import dataclasses
from typing import Any

from kngjax.data import terms
from kngjax.data.terms.base import AbstractTerm

_OWN, _NO_INTERCEPT = "InOwnUnits", "WithoutIntercept"
_KINDS = {kind.__name__: kind for kind in (terms.Polynomial, terms.Categorical, terms.Indicator, terms.Spline)}


def design_in_json(design: terms.Design) -> list[dict[str, Any]]:
    """JSON-ready terms, in order; behind them those of coefficients in own units, where they are others.

    Last of all, where there is none, that there is no intercept.
    """
    made = [_in_json(term) for term in design.terms]
    made += [] if design.own is None else [{"type": _OWN, "terms": [_in_json(term) for term in design.own]}]
    return made if design.intercept else [*made, {"type": _NO_INTERCEPT}]


def design_from_json(written: list[dict[str, Any]]) -> terms.Design:
    """The inverse of `design_in_json`. Raises ValueError for a term of another kind."""
    own = [tuple(map(_from_json, one["terms"])) for one in written if one["type"] == _OWN]
    basis = tuple(_from_json(one) for one in written if one["type"] not in (_OWN, _NO_INTERCEPT))
    return terms.Design(basis, *own, intercept=all(one["type"] != _NO_INTERCEPT for one in written))


def with_tuples(written: dict[str, Any]) -> dict[str, Any]:
    """Fields of JSON, of which lists are tuples again."""
    return {name: tuple(field) if isinstance(field, list) else field for name, field in written.items()}


def _in_json(term: Any) -> dict[str, Any]:
    if isinstance(term, terms.Product):
        return {"type": "Product", "factors": [_in_json(factor) for factor in term.factors]}
    # Levels, knots and bounds are numbers, text and bools.
    return {"type": type(term).__name__, **dataclasses.asdict(term)}


def _from_json(written: dict[str, Any]) -> AbstractTerm:
    fields = with_tuples(written)
    kind = fields.pop("type")
    if kind == "Product":
        return terms.Product(tuple(_from_json(factor) for factor in fields["factors"]))  # pyright: ignore[reportArgumentType]
    if kind not in _KINDS:
        raise ValueError(f"there is no term of the kind {kind!r}; there are {', '.join(_KINDS)} and Product")
    return _KINDS[kind](**fields)
