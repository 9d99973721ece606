"""Chooses how a release is drawn: one function of a mechanism, of what was asked for, and of public facts."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax

from kngjax.chains.base import AbstractChainSampler, AbstractIndependentSampler, AbstractSampler
from kngjax.core.arrays import float64
from kngjax.data.schema import Schema
from kngjax.draws.base import ON_REQUEST, AbstractDraw
from kngjax.draws.choice import proved_draw
from kngjax.draws.lattice.lattice import Lattice
from kngjax.draws.lattice_draws import LatticeDraw
from kngjax.draws.shell_draws import ShellDraw
from kngjax.draws.shells.shells import Shells
from kngjax.mechanisms.base import AbstractMechanism
from kngjax.mechanisms.declared_facts import require_declared
from kngjax.mechanisms.density import AbstractDensityMechanism
from kngjax.mechanisms.direct import AbstractDirectMechanism
from kngjax.releases.certificate import Certificate
from kngjax.releases.chains import blocks, require_sampler
from kngjax.releases.default_sampler import exact_sampler, refuse_gradients
from kngjax.releases.float64_draws import ChainDraw, DirectDraw

# What the argument `sampler` of a release may be.
REQUESTS = (Lattice, Shells, AbstractSampler)


def draw_for(mechanism: AbstractMechanism, sampler: Any, facts: Schema) -> AbstractDraw:
    """Returns the draw of a release with all its settings; unasked, a draw with every rounding in its proof if any.

    **Arguments:** `sampler`: the caller's request, or None. `facts`: of the records. From public facts alone it raises
    ValueError or TypeError for a request that cannot be met, and ValueError for a user's loss that contradicts its own
    declarations.
    """
    # First: advice where no draw serves takes the loss to be what it declares.
    require_declared(mechanism, facts.dimension, sampler)
    if isinstance(sampler, Lattice):
        return LatticeDraw.requested(mechanism, sampler, facts)
    if isinstance(sampler, Shells):
        return ShellDraw.requested(mechanism, sampler, facts)
    found = proved_draw(mechanism, facts) if sampler is None else None
    return _in_float64(mechanism, sampler, facts) if found is None else found


def _in_float64(mechanism: AbstractMechanism, sampler: AbstractSampler | None, facts: Schema) -> DirectDraw | ChainDraw:
    if isinstance(mechanism, AbstractDirectMechanism):
        require_sampler(mechanism, sampler)
        return DirectDraw(mechanism)
    if not isinstance(mechanism, AbstractDensityMechanism):
        raise TypeError(f"{type(mechanism).__name__} neither has a density nor draws from a law of its own")
    dimension, reason = facts.dimension, ON_REQUEST
    if isinstance(sampler, AbstractIndependentSampler | None) and not mechanism.intake.weights_enter_loss:
        refuse_gradients(mechanism, facts)
    if sampler is None:
        sampler, reason = exact_sampler(mechanism, dimension, facts.num_records)
    with float64():
        sampler = sampler.for_release()
        # Types and shapes of the target decide, which are the same for all records: here for one that nobody has.
        nobody = mechanism.intake.summarise(mechanism.intake.rows_of_zeros(1, dimension))
        sampler.admit(jax.eval_shape(mechanism.target, nobody))
    if isinstance(sampler, AbstractIndependentSampler):
        return DirectDraw(mechanism, sampler, reason)
    assert isinstance(sampler, AbstractChainSampler)
    num_blocks, block = blocks(sampler, dimension)
    return ChainDraw(mechanism, dataclasses.replace(sampler, num_sweeps=num_blocks * block), reason)


def instead_of_rounding(
    mechanism: AbstractMechanism, sampler: Any, facts: Schema, is_allowed: Callable[[Certificate], bool]
) -> str:
    """Says what else to ask a release for, whose proof has every rounding, so that it owes no δ for one.

    Empty where nothing is. **Arguments:** `sampler`: what the caller asked for, or None. `is_allowed`: whether what is
    left of a budget holds the release of a certificate.
    """
    ways = {"leave the sampler out": None, "give sampler=kngjax.draws.Lattice()": Lattice()}
    for words, request in ways.items():
        if type(request) is type(sampler):
            continue
        try:
            certificate = Certificate.of(draw_for(mechanism, request, facts), facts)
        except (ValueError, TypeError, OverflowError):
            continue
        if certificate.rounding is None and is_allowed(certificate):
            return f"{words}: of that draw every rounding is in the proof"
    return ""
