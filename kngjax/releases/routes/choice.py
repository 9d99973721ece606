"""Chooses which route a release takes: a function of public facts alone."""

from collections.abc import Callable
from typing import Any

from kngjax.data.admission import Facts
from kngjax.draws.lattice.lattice import Lattice
from kngjax.mechanisms.base import AbstractMechanism
from kngjax.mechanisms.declared_facts import require_declared
from kngjax.releases.certificate import Certificate
from kngjax.releases.routes.base import AbstractRoute
from kngjax.releases.routes.direct import DirectRoute
from kngjax.releases.routes.grid import GridRoute
from kngjax.releases.routes.lattice import LatticeRoute
from kngjax.releases.routes.sampled import SampledRoute

# In the order in which they are asked.
ROUTES: tuple[type[AbstractRoute], ...] = (GridRoute, LatticeRoute, DirectRoute, SampledRoute)
# What the argument `sampler` of a release may be.
REQUESTS = tuple(route.requests for route in ROUTES if route.requests is not None)


def route_for(mechanism: AbstractMechanism, sampler: Any, facts: Facts) -> AbstractRoute:
    """The first route that admits this mechanism and these records.

    **Arguments:** `sampler`: what the caller asked for, or None. Raises as `AbstractRoute.admits`, and ValueError where
    a loss that is not kngjax's is not what it declares.
    """
    for route in ROUTES:
        admitted = route.admits(mechanism, sampler, facts)
        if admitted is not None:
            require_declared(mechanism, facts.dimension, getattr(admitted, "sampler", None))
            return admitted
    raise TypeError(f"{type(mechanism).__name__} neither has a density nor draws from a law of its own")


def instead_of_rounding(
    mechanism: AbstractMechanism, sampler: Any, facts: Facts, is_allowed: Callable[[Certificate], bool]
) -> str:
    """Says what else to ask a release for, whose proof has every rounding, so that it owes no δ for one.

    Empty where nothing is. **Arguments:** `sampler`: what the caller asked for, or None. `is_allowed`: whether what is
    left of a budget holds the release of a certificate.
    """
    ways = {"leave the sampler out": None, "give sampler=kngjax.Lattice()": Lattice()}
    for words, request in ways.items():
        if type(request) is type(sampler):
            continue
        try:
            certificate = route_for(mechanism, request, facts).certify()
        except (ValueError, TypeError, OverflowError):
            continue
        if certificate.rounding is None and is_allowed(certificate):
            return f"{words}: of that draw every rounding is in the proof"
    return ""
