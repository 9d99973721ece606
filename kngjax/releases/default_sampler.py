"""Chooses a sampler where none is asked for and no draw with every rounding in its proof serves.

Functions of public facts alone.
"""

import math
from typing import Any

import jax

from kngjax.chains.advice import (
    LARGEST_EXACT_DIMENSION,
    Density,
    advice,
    exact_serves_smooth,
    has_gradients,
)
from kngjax.chains.base import AbstractIndependentSampler, AbstractSampler
from kngjax.chains.ensemble_walk import EnsembleWalk
from kngjax.chains.exact.exact import Exact
from kngjax.chains.line_gibbs import LineGibbs
from kngjax.chains.slice_gibbs import SliceGibbs
from kngjax.data.schema import Schema
from kngjax.draws.lattice.lattice import ELSE, Lattice
from kngjax.draws.shell_draws import more_records
from kngjax.mechanisms.base import AbstractMechanism
from kngjax.mechanisms.declared_facts import found_contradictions, require_declared
from kngjax.mechanisms.density import AbstractDensityMechanism
from kngjax.releases.chains import require_sampler

WEIGHTED = "Chosen because it asks the loss for every sum, and so knows the records' weights."


def default_sampler(
    mechanism: AbstractMechanism, dimension: int, num_records: int | None = None
) -> tuple[AbstractSampler | None, str]:
    """Chooses the sampler that serves this mechanism best, and says why, from public facts alone.

    It is None for a mechanism that draws from its own law. **Arguments:** `num_records`: n where it is public, which
    decides for smooth losses.
    """
    if not isinstance(mechanism, AbstractDensityMechanism):
        return None, "Each is drawn from the mechanism's own law."
    return _best(mechanism, density_of(mechanism, dimension), num_records)


def research_sampler(
    mechanism: AbstractMechanism, sampler: Any, dimension: int, num_records: int | None
) -> AbstractSampler | None:
    """Returns what research draws with: the sampler that was asked for, else the default.

    Raises as `require_sampler`, and ValueError for a user's loss that contradicts its own declarations.
    """
    if sampler is None:
        sampler, _ = default_sampler(mechanism, dimension, num_records)
    require_sampler(mechanism, sampler)
    require_declared(mechanism, dimension, sampler)
    return sampler


def _best(
    mechanism: AbstractDensityMechanism, density: Density, num_records: int | None
) -> tuple[AbstractSampler, str]:
    loss, _, uniform, pointwise, dimension = density
    if mechanism.intake.weights_enter_loss:
        return EnsembleWalk(), WEIGHTED
    information = _information(mechanism, dimension, num_records)
    if has_gradients(density) and exact_serves_smooth(density, *information):
        return Exact(), "Chosen because this smooth loss is drawn exactly, by rejection in the space of gradients."
    many = loss.is_quadratic and uniform and not pointwise and dimension > LARGEST_EXACT_DIMENSION
    if many and SliceGibbs.serves(density.norm):
        return SliceGibbs(), (
            "Chosen because every move is an exact conditional draw, with nothing to tune; for "
            f"{dimension} coefficients Exact() may need too many proposals."
        )
    if loss.is_quadratic and (uniform or not pointwise):
        return Exact(), "Chosen because the squared loss can be drawn exactly by rejection."
    if loss.score_is_piecewise_constant and uniform and dimension == 1:
        return Exact(), "Chosen because with one coefficient the density is known segment by segment."
    if loss.score_is_piecewise_constant and uniform:
        return LineGibbs(), (
            "Chosen because the density is known exactly along every line, with nothing to tune; for more than one "
            "coefficient there is no exact sampler."
        )
    if loss.is_quadratic:
        return EnsembleWalk(), (
            "Chosen because rejection from a base measure that is not uniform takes ever more proposals as n grows; "
            "Exact() serves where n*epsilon is small."
        )
    reason = "Chosen because it serves every density, in any basis, with nothing to tune"
    # What is proved of a convex loss is refused to one that is not.
    proved = None if found_contradictions(mechanism, dimension) else loss.proved_instead(dimension, uniform)
    return EnsembleWalk(), f"{reason}." if proved is None else f"{reason}; {proved}."


def density_of(mechanism: AbstractDensityMechanism, dimension: int) -> Density:
    """Collects the public facts of a mechanism's density that samplers depend on."""
    norm = jax.eval_shape(lambda: mechanism.score_norm(dimension))
    return Density(mechanism.loss, norm, mechanism.domain.is_uniform, mechanism.exponent.is_pointwise, dimension)


def exact_sampler(
    mechanism: AbstractDensityMechanism, dimension: int, num_records: int | None = None
) -> tuple[AbstractSampler, str]:
    """Returns the default sampler if its draws are exact in real arithmetic; else raises ValueError with advice."""
    density = density_of(mechanism, dimension)
    sampler, reason = _best(mechanism, density, num_records)
    if mechanism.intake.weights_enter_loss:
        loss, several = mechanism.loss, f"{dimension} coefficients" if dimension > 1 else "one coefficient"
        proved = loss.proved_instead(dimension, density.is_uniform)
        instead = f"{proved}, with weights too"
        if not loss.has_response or proved is None:
            instead = "KNG(SquaredDistanceLoss(), ...) of means, KNG(QuantileLoss(0.5), ...) of one column are proved"
        raise ValueError(
            f"no exact sampler of {type(mechanism).__name__} with {type(loss).__name__} and {several} here takes "
            f"weights of records, and what a Markov chain releases is not proved to be private: {instead}; or ask for "
            "a chain by name, sampler=kngjax.chains.EnsembleWalk()"
        )
    if not isinstance(sampler, AbstractIndependentSampler):
        instead = f"{_of_the_lattice(mechanism, dimension, num_records)}{advice(density)}"
        raise ValueError(
            "no exact sampler is sure to serve this density, and what a Markov chain releases is not proved to be "
            f"private: {instead}"
        )
    return sampler, reason


def refuse_gradients(mechanism: AbstractDensityMechanism, facts: Schema) -> None:
    """Raises ValueError for a smooth loss that float64 draws for research alone, saying what is proved instead."""
    density = density_of(mechanism, facts.dimension)
    if has_gradients(density):
        more = more_records(mechanism, facts)
        raise ValueError(
            "no draw with all of its roundings proved is sure to serve this release, and what a Markov chain releases "
            f"is not proved to be private: {'' if more is None else f'{more}; or else '}{advice(density)}"
        )


def _information(mechanism: AbstractDensityMechanism, dimension: int, num_records: int | None) -> tuple[float, float]:
    """Returns n·ε, and the most that log f varies over Θ."""
    if num_records is None:
        return 0.0, math.inf
    return float(mechanism.epsilon) * num_records, mechanism.exponent.log_range(dimension, num_records)


def _of_the_lattice(mechanism: AbstractDensityMechanism, dimension: int, num_records: int | None) -> str:
    """Says why a quantile loss is not drawn on a lattice here; nothing for other losses."""
    if not mechanism.loss.score_is_piecewise_constant:
        return ""
    try:
        Lattice().resolve(mechanism, dimension, num_records)
    except (ValueError, OverflowError) as refused:
        return f"{str(refused).removesuffix(f'. {ELSE}')}; "
    return ""
