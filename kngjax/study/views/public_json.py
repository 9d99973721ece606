"""Fields of views as JSON, and back: all of them are public."""

import dataclasses
import json
from collections.abc import Callable
from typing import Any

from kngjax.data import terms
from kngjax.data.terms.base import AbstractTerm
from kngjax.inference.with_intervals import ReleaseWithIntervals
from kngjax.releases.release import Release
from kngjax.study.classifications import Axis
from kngjax.study.expectations import Expectations
from kngjax.study.responses import Exposure, Response

_OWN, _NO_INTERCEPT = "InOwnUnits", "WithoutIntercept"
_TERMS: dict[str, Callable[..., AbstractTerm]] = {
    kind.__name__: kind for kind in (terms.Polynomial, terms.Categorical, terms.Indicator, terms.Spline, terms.Product)
}


def in_json(field: Any) -> Any:
    """Returns the value of a field, JSON-ready: a term with its type, a release as it writes itself."""
    if isinstance(field, tuple):
        return [in_json(one) for one in field]
    if isinstance(field, terms.Design):
        own = [] if field.own is None else [{"type": _OWN, "terms": in_json(tuple(field.own))}]
        return [*in_json(tuple(field.terms)), *own, *([] if field.intercept else [{"type": _NO_INTERCEPT}])]
    if hasattr(field, "to_json"):
        return json.loads(field.to_json())
    if not dataclasses.is_dataclass(field):
        return field
    kind = {"type": type(field).__name__} if isinstance(field, AbstractTerm) else {}
    return kind | {one.name: in_json(getattr(field, one.name)) for one in dataclasses.fields(field)}


def from_json(name: str, written: Any) -> Any:
    """Reads what `in_json` writes; raises ValueError for an unknown term. **Arguments:** `name`: of the field."""
    return None if written is None else _READ.get(name, _read)(written)


def releases_from(written: list[dict[str, Any]]) -> tuple[Any, ...]:
    """Releases from JSON, those with intervals too."""
    return tuple((ReleaseWithIntervals if "parts" in one else Release).from_json(json.dumps(one)) for one in written)


def _read(written: Any) -> Any:
    """Makes tuples of lists again, and terms of what has their types."""
    if isinstance(written, list):
        return tuple(map(_read, written))
    if not isinstance(written, dict):
        return written
    fields = {name: _read(one) for name, one in written.items()}
    if "type" not in fields:
        return fields
    if (kind := fields.pop("type")) not in _TERMS:
        raise ValueError(f"there is no term of the kind {kind!r}; there are {', '.join(_TERMS)}")
    return _TERMS[kind](**fields)


def _design_from(written: list[dict[str, Any]]) -> terms.Design:
    """Reads the terms, behind them those of own units where they are others, and last that there is no intercept."""
    own = [_read(one["terms"]) for one in written if one["type"] == _OWN]
    basis = _read([one for one in written if one["type"] not in (_OWN, _NO_INTERCEPT)])
    return terms.Design(basis, *own, intercept=all(one["type"] != _NO_INTERCEPT for one in written))


def _response_from(written: dict[str, Any]) -> Response:
    fields = _read(written)
    exposure = fields.pop("exposure", None)
    return Response(**fields, exposure=None if exposure is None else Exposure(**exposure))


_READ: dict[str, Callable[[Any], Any]] = {
    "releases": releases_from,
    "design": _design_from,
    "response": _response_from,
    "expected": lambda written: Expectations(**_read(written)),
    "axes": lambda written: tuple(Axis(**_read(one)) for one in written),
}
