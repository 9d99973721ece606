"""Chooses a sampler where none is asked for and the lattice route does not admit the release.

Functions of public facts alone.
"""

import math

import jax

from kngjax.mechanisms.density import AbstractDensityMechanism
from kngjax.samplers.advice import (
    GRADIENTS_UNASKED,
    LITTLE_RANGE,
    Density,
    advice,
    exact_serves_smooth,
    has_boxes,
    has_gradients,
)
from kngjax.samplers.base import AbstractIndependentSampler, AbstractSampler
from kngjax.samplers.chains.ensemble_walk import EnsembleWalk
from kngjax.samplers.chains.line_gibbs import LineGibbs
from kngjax.samplers.chains.slice_gibbs import SliceGibbs
from kngjax.samplers.exact.exact import Exact

# Beyond it rejection for the squared loss takes millions of proposals where Θ and noise are of one size and features
# are correlated.
LARGEST_EXACT_DIMENSION = 20
# What a release in the space of gradients takes, and what it takes for each of n·d² products where its programs were
# compiled quickly: measured on two cores.
SECONDS_A_RELEASE, SECONDS_A_PRODUCT = 0.1, 2.5e-7
WEIGHTED = "Chosen because it asks the loss for every sum, and so knows the records' weights."


def default_sampler(
    mechanism: AbstractDensityMechanism, dimension: int, num_records: int | None = None
) -> tuple[AbstractSampler, str]:
    """The sampler that serves this mechanism best, and why: a function of public facts alone.

    **Arguments:** `num_records`: n where it is public, which decides for smooth losses.
    """
    return _best(mechanism, density_of(mechanism, dimension), num_records)


def _best(
    mechanism: AbstractDensityMechanism, density: Density, num_records: int | None
) -> tuple[AbstractSampler, str]:
    loss, _, uniform, pointwise, dimension = density
    if mechanism.intake.weights_enter_loss:
        return EnsembleWalk(), WEIGHTED
    information = _information(mechanism, dimension, num_records)
    if has_gradients(density) and exact_serves_smooth(density, *information):
        return Exact(max_proposals=None), _reason_of_gradients(dimension, mechanism, num_records)
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
    if loss.score_is_piecewise_constant and uniform and has_boxes(density.norm, dimension):
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
    reason = "Chosen because it serves every density, in any basis, with nothing to tune."
    proved = loss.proved_instead(dimension, uniform)
    return EnsembleWalk(), reason if proved is None else f"{reason} {proved}."


def density_of(mechanism: AbstractDensityMechanism, dimension: int) -> Density:
    """The public facts of a mechanism's density that samplers depend on."""
    norm = jax.eval_shape(lambda: mechanism.score_norm(dimension))
    return Density(mechanism.loss, norm, mechanism.domain.is_uniform, mechanism.exponent.is_pointwise, dimension)


def exact_sampler(
    mechanism: AbstractDensityMechanism, dimension: int, num_records: int | None = None
) -> tuple[AbstractSampler, str]:
    """`default_sampler` if its draws are exact in real arithmetic; else ValueError, naming what to ask for."""
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
            "a chain by name, sampler=kngjax.EnsembleWalk()"
        )
    if not isinstance(sampler, AbstractIndependentSampler):
        instead = f"{_of_these_records(mechanism, density, num_records)}{advice(density)}"
        raise ValueError(
            "no exact sampler is sure to serve this density, and what a Markov chain releases is not proved to be "
            f"private: {instead}"
        )
    return sampler, reason


def require_enough(mechanism: AbstractDensityMechanism, dimension: int, num_records: int) -> None:
    """ValueError unless exact draws serve so many records, a number that the caller stated and that is public."""
    density = density_of(mechanism, dimension)
    if has_gradients(density) and not exact_serves_smooth(density, float(mechanism.epsilon) * num_records, math.inf):
        raise ValueError(
            f"exact draws may take too long: {_of_these_records(mechanism, density, num_records)}{advice(density)}"
        )


def _information(mechanism: AbstractDensityMechanism, dimension: int, num_records: int | None) -> tuple[float, float]:
    """n·ε, and how far log f varies over Θ at most."""
    if num_records is None:
        return 0.0, math.inf
    return float(mechanism.epsilon) * num_records, mechanism.exponent.log_range(dimension, num_records)


def _reason_of_gradients(dimension: int, mechanism: AbstractDensityMechanism, num_records: int | None) -> str:
    information, log_range = _information(mechanism, dimension, num_records)
    if num_records is not None and information >= GRADIENTS_UNASKED * dimension**2:
        seconds = SECONDS_A_RELEASE + SECONDS_A_PRODUCT * num_records * dimension**2
        return (
            f"Chosen because with {dimension} coefficients and n*epsilon = {information:.6g} this smooth loss is drawn "
            f"exactly, by rejection: in about {seconds:.2g} seconds on two cores once it is compiled, and far more "
            "where columns are rare or nearly collinear, few residuals are within the loss's own width, or the domain "
            "does not hold the estimate."
        )
    if log_range <= LITTLE_RANGE:
        return (
            f"Chosen because the log-density varies by at most {log_range:.4g} over the domain, whatever the records: "
            "rejection from all of it draws exactly."
        )
    return f"Chosen because with {dimension} coefficients this smooth loss is drawn exactly, by rejection from boxes."


def _of_these_records(mechanism: AbstractDensityMechanism, density: Density, num_records: int | None) -> str:
    """Why the public rule for smooth losses says no, or nothing where it does not apply."""
    if not has_gradients(density):
        return ""
    sure = GRADIENTS_UNASKED * density.dimension**2
    if num_records is None:
        return (
            "how many records there are is not public here, or not known beforehand: state a public number that they "
            f"are not fewer than, sampler=kngjax.Exact(least_records=...), which serves from n*epsilon = {sure} on "
            "(a false one costs time, and no privacy); or else "
        )
    return (
        f"n*epsilon is {float(mechanism.epsilon) * num_records:.6g}, and exact draws are taken unasked from {sure} on; "
    )
