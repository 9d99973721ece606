"""Mechanisms cut to their first coefficients, so that an audit's grid can cover them."""

import dataclasses
import inspect
from typing import Any

import numpy as np

from kngjax.data import weights
from kngjax.data.bounds import Bounds
from kngjax.geometry.domains import AbstractDomain
from kngjax.mechanisms.base import AbstractMechanism

# The parts of a mechanism that has nothing else, and so is known to be one for every number of coefficients.
_PARTS = {"loss", "bounds", "domain", "epsilon", "adjacency", "norm", "pointwise_sensitivity", "statistic"}


def restricted(mechanism: AbstractMechanism, dimension: int) -> AbstractMechanism:
    """The mechanism on its first k coefficients: loss, ε and adjacency stay, bounds and Θ are cut to k coordinates.

    A hull of the features is left out: the box of their bounds is what is cut.

    It is a mechanism of its own, whose sensitivity is computed anew by the same code for k coefficients. An audit of it
    tests what every dimension shares: the loss's declared intervals, the norm, the adjacency, the factor 2. It does not
    show that the sensitivity grows with d as it must, nor any error that needs more than k features to appear.

    **Arguments:** `mechanism`: KNG or the exponential mechanism on a Box, L1Ball or L2Ball, or the K-norm mechanism,
    with the norm None, L1, L2 or LInf. `dimension`: k ≥ 1, the intercept included, which comes first.

    Raises ValueError for another mechanism, a base measure or a norm that cannot be cut, and for k out of range.
    """
    fixed = mechanism.dimension
    if dimension < 1 or (fixed is not None and dimension > fixed):
        limit = "" if fixed is None else f" and at most {fixed}"
        raise ValueError(f"dimension must be at least 1{limit}, got {dimension}")
    parts: dict[str, Any] = {field.name: getattr(mechanism, field.name) for field in dataclasses.fields(mechanism)}
    if not parts.keys() <= _PARTS or "allow_large_epsilon" not in inspect.signature(type(mechanism)).parameters:
        raise ValueError(
            f"a {type(mechanism).__name__} cannot be restricted: only KNG, the exponential and the K-norm mechanism "
            "can. Build one like it for one or two coefficients, and audit that"
        )
    if parts.get("norm") is not None and parts["norm"].dimension is not None:
        raise ValueError(
            f"the {type(parts['norm']).__name__} norm is for {fixed} coefficients: only None, L1, L2, LInf can be cut"
        )
    parts["bounds"] = _bounds(mechanism.bounds, dimension)
    if "domain" in parts:
        parts["domain"] = _domain(parts["domain"], dimension)
    parts["allow_large_epsilon"] = True
    return type(mechanism)(**parts)


def _bounds(bounds: Bounds, dimension: int) -> Bounds:
    weights.refuse(bounds.weight, "an audit of fewer coefficients")
    columns = dimension - bounds.intercept
    x = None
    if columns > 0 and bounds.x_lower is not None and bounds.x_upper is not None:
        x = _cut(bounds.x_lower, columns), _cut(bounds.x_upper, columns)
    y = None if bounds.y_lower is None else (bounds.y_lower, bounds.y_upper)
    return Bounds(x=x, y=y, intercept=bounds.intercept)


def _domain(domain: AbstractDomain, dimension: int) -> AbstractDomain:
    restricted_domain = domain.restrict(dimension)
    if restricted_domain is None:
        raise ValueError(f"a {type(domain).__name__} cannot be cut to {dimension} coefficients: give its marginal")
    return restricted_domain


def _cut(side: Any, size: int) -> np.ndarray:
    values = np.asarray(side)
    return np.broadcast_to(values[:size] if values.ndim else values, (size,))
