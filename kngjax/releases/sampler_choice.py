"""Which sampler is taken where none is asked for: functions of public facts alone."""

import dataclasses

import jax
import numpy as np

from kngjax.core.arrays import float64
from kngjax.data.admission import Facts
from kngjax.data.records import Records
from kngjax.losses.distance import GeometricMedianLoss
from kngjax.mechanisms.base import AbstractDensityMechanism, AbstractDirectMechanism, AbstractMechanism
from kngjax.mechanisms.kng import KNG
from kngjax.releases.chains import blocks, require_sampler
from kngjax.releases.lattice.sampler import Lattice
from kngjax.samplers.advice import Density, advice
from kngjax.samplers.base import AbstractChainSampler, AbstractIndependentSampler, AbstractSampler
from kngjax.samplers.chains.ensemble_walk import EnsembleWalk
from kngjax.samplers.chains.line_gibbs import LineGibbs
from kngjax.samplers.chains.slice_gibbs import SliceGibbs
from kngjax.samplers.exact.exact import Exact

# Beyond it rejection for the squared loss takes millions of proposals where Θ and noise are of one size and features
# are correlated.
LARGEST_EXACT_DIMENSION = 20


def default_sampler(mechanism: AbstractDensityMechanism, dimension: int) -> tuple[AbstractSampler, str]:
    """The sampler that serves this mechanism best, and why: a function of public facts alone."""
    loss, uniform = mechanism.loss, mechanism.domain.is_uniform
    pointwise = isinstance(mechanism, KNG) and mechanism.pointwise_sensitivity
    many = loss.is_quadratic and uniform and not pointwise and dimension > LARGEST_EXACT_DIMENSION
    if many and SliceGibbs.serves(jax.eval_shape(lambda: mechanism.score_norm(dimension))):
        return SliceGibbs(), (
            "Chosen because every move is an exact conditional draw, with nothing to tune; for "
            f"{dimension} coefficients Exact() may need too many proposals."
        )
    if loss.is_quadratic and (uniform or not pointwise):
        return Exact(), "Chosen because the squared loss can be drawn exactly by rejection."
    if loss.score_is_piecewise_constant and uniform and dimension == 1:
        return Exact(), "Chosen because with one coefficient the density is known segment by segment."
    if (
        loss.score_is_piecewise_constant
        and uniform
        and Exact().serves_by_boxes(jax.eval_shape(lambda: mechanism.score_norm(dimension)), dimension)
    ):
        return Exact(), (
            f"Chosen because with {dimension} coefficients the density can be drawn exactly, by rejection from an "
            "envelope that is constant on boxes."
        )
    if loss.score_is_piecewise_constant and uniform:
        return LineGibbs(), (
            f"Chosen because the density is known exactly along every line, with nothing to tune; for {dimension} "
            "coefficients, or a norm that is no function of absolute values, there is no exact sampler."
        )
    if loss.is_quadratic:
        return EnsembleWalk(), (
            "Chosen because rejection from a base measure that is not uniform takes ever more proposals as n grows; "
            "Exact() serves where n*epsilon is small."
        )
    if isinstance(loss, GeometricMedianLoss) and dimension == 1:
        return EnsembleWalk(), "Chosen because it serves every density; PrivateQuantile(0.5) draws this one exactly."
    return EnsembleWalk(), (
        "Chosen because it serves every density, in any basis, with nothing to tune; for this loss no exact sampler is "
        "built yet."
    )


def density_of(mechanism: AbstractDensityMechanism, dimension: int) -> Density:
    """The public facts of a mechanism's density that samplers depend on."""
    norm = jax.eval_shape(lambda: mechanism.score_norm(dimension))
    pointwise = isinstance(mechanism, KNG) and mechanism.pointwise_sensitivity
    return Density(mechanism.loss, norm, mechanism.domain.is_uniform, pointwise, dimension)


def exact_sampler(mechanism: AbstractDensityMechanism, dimension: int) -> tuple[AbstractSampler, str]:
    """`default_sampler` if its draws are exact in real arithmetic; else ValueError, naming what to ask for."""
    sampler, reason = default_sampler(mechanism, dimension)
    if not isinstance(sampler, AbstractIndependentSampler):
        raise ValueError(
            "no exact sampler is sure to serve this density, and what a Markov chain releases is not proved to be "
            f"private: {advice(density_of(mechanism, dimension))}"
        )
    return sampler, reason


def lattice_sampler(
    mechanism: AbstractMechanism, dimension: int, num_records: int | None
) -> tuple[Lattice | None, str]:
    """`Lattice` with why it is taken, where it serves and takes seconds; None elsewhere. Of public facts alone.

    **Arguments:** `num_records`: n, where it is public.
    """
    sampler = Lattice()
    if sampler.unserved(mechanism, dimension) is not None or not sampler.takes_seconds(
        mechanism, dimension, num_records
    ):
        return None, ""
    try:
        sampler.require_served(mechanism, dimension, num_records)
    except (ValueError, OverflowError):
        return None, ""
    return sampler, (
        "Chosen because no rounding is left out of its proof, and it takes seconds here, or of a quantile loss under "
        "add_remove for up to some 10^5 records."
    )


def chosen_sampler(
    mechanism: AbstractMechanism, asked: AbstractSampler | None, facts: Facts, fits_lattice: bool
) -> tuple[AbstractSampler | None, str]:
    """The sampler of a release as its certificate states it, and why that one; None for a mechanism that needs none.

    Of public facts alone, so that all that it raises, ValueError or TypeError, comes before anything is spent.

    **Arguments:** `asked`: the caller's, or None. `fits_lattice`: whether the records come in a form that `Lattice` can
    take.
    """
    dimension, count = facts.dimension, facts.num_records
    sampler, reason = asked, "Asked for by the caller."
    if asked is None and fits_lattice:
        sampler, reason = lattice_sampler(mechanism, dimension, count)
    if isinstance(sampler, Lattice):
        if not fits_lattice:
            raise TypeError(
                "of a stream or shards Lattice draws quadratic losses alone: give X and y as arrays or frames, or ask "
                "for Exact()"
            )
        sampler.require_served(mechanism, dimension, count)
        return sampler.resolved(mechanism, dimension, count), reason
    require_sampler(mechanism, sampler, optional=True)
    if isinstance(mechanism, AbstractDirectMechanism):
        return None, mechanism.method
    assert isinstance(mechanism, AbstractDensityMechanism)
    if sampler is None:
        sampler, reason = exact_sampler(mechanism, dimension)
    with float64():
        sampler = sampler.for_release()
        # Types and shapes of the target decide, which are those of any records: of one that nobody has.
        nobody = mechanism.summarise(Records(np.zeros((1, dimension)), np.zeros(1)))
        sampler.check(jax.eval_shape(mechanism.target, nobody))
    if isinstance(sampler, AbstractChainSampler):
        num_blocks, block = blocks(sampler, dimension)
        sampler = dataclasses.replace(sampler, num_sweeps=num_blocks * block)
    return sampler, reason
