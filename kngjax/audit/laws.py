"""The laws that an audit compares: log-probabilities on a grid, or exact log-densities with their atoms."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kngjax.data.records import Data, Records
from kngjax.geometry.domains import AbstractDomain, Box
from kngjax.mechanisms.base import AbstractMechanism
from kngjax.mechanisms.density import AbstractDensityMechanism
from kngjax.mechanisms.direct import AbstractDirectMechanism

LogDensity = Callable[[Any, Any], Any]


def outputs(mechanism: AbstractMechanism, dimension: int) -> AbstractDomain:
    """Returns Θ, or a box about the outputs of a mechanism without Θ.

    For quantiles of numbers the bounds of y; for a mean three times the bounds of x; for a regression, whose
    coefficients then may be anything, [-10, 10].
    """
    domain = getattr(mechanism, "domain", None)
    if domain is not None:
        return domain
    bounds = mechanism.bounds
    if not mechanism.loss.has_response:
        lower, upper = bounds.features(dimension)
        # A public column is released with the noise of the others, on no scale of its own.
        widths = jnp.where(upper > lower, upper - lower, 1.0)
        return Box(lower - widths, upper + widths)
    if bounds.x_lower is None and bounds.y_lower is not None:
        return Box(bounds.y_lower, bounds.y_upper)
    return Box(-10.0, 10.0)


def grid(domain: AbstractDomain, dimension: int, resolution: int) -> np.ndarray:
    """Midpoints of equal cells, so that each has the same volume, as far as they lie in Θ; shape (points, d)."""
    centre, widths = np.asarray(domain.interior_point(dimension)), np.asarray(domain.widths(dimension))
    axes = centre[:, None] + widths[:, None] * ((np.arange(resolution) + 0.5) / resolution - 0.5)
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, dimension)
    points = points[np.asarray(jax.vmap(domain.contains)(points))]
    if len(points) < 2:
        raise ValueError(f"fewer than two points of a grid of {resolution} an axis lie in the domain: raise resolution")
    return points


def points_of(mechanism: AbstractMechanism, dimension: int, resolution: int) -> np.ndarray:
    """Returns the outputs at which laws are compared, shape (points, d): a grid on Θ, or whole numbers."""
    if isinstance(mechanism, AbstractDirectMechanism) and mechanism.is_whole:
        line = np.arange(resolution, dtype=np.float64) - resolution // 2
        return np.stack(np.meshgrid(*[line] * dimension, indexing="ij"), axis=-1).reshape(-1, dimension)
    return grid(outputs(mechanism, dimension), dimension, resolution)


@functools.partial(jax.jit, static_argnames="log_density")
def worst_log_ratios(
    mechanism: AbstractMechanism,
    grid: Float[Array, "points dimension"],
    first: Float[Array, "pairs records columns"],
    second: Float[Array, "pairs others columns"],
    log_density: LogDensity | None,
) -> tuple[Float[Array, " pairs"], Float[Array, "pairs dimension"]]:
    """Finds the largest |log f_D - log f_D'| of each pair of data sets, and the θ where it is.

    **Arguments:** `first`, `second`: the rows (features, response) of each pair.
    """

    def worst(first: Array, second: Array) -> tuple[Array, Array]:
        data = [mechanism.intake.summarise(Records(rows[:, :-1], rows[:, -1])) for rows in (first, second)]
        points = _evaluation_points(mechanism, grid, *data)
        here, there = (_log_law(mechanism, points, each, log_density) for each in data)
        # Where both densities are 0 they do not differ.
        ratios = jnp.where(here == there, 0.0, jnp.abs(here - there))
        place = jnp.argmax(ratios)
        if ratios.shape[0] > points.shape[0]:
            points = jnp.concatenate([points, jnp.stack(_ends(mechanism))[:, None]])
        return ratios[place], points[place]

    return jax.vmap(worst)(first, second)


def _evaluation_points(mechanism: AbstractMechanism, grid: Array, first: Data, second: Data) -> Array:
    """The grid; for densities that are constant between jumps points in every gap of both together, which miss none."""
    if not isinstance(mechanism, AbstractDirectMechanism):
        return grid
    jumps = [each for data in (first, second) if (each := mechanism.jumps(data)) is not None]
    if len(jumps) < 2:
        return grid
    ends, dimension = jnp.sort(jnp.concatenate(jumps)), grid.shape[-1]
    # A gap of no width has no probability: the widest is looked at once more in its place.
    gaps = jnp.diff(ends)
    gaps = jnp.where(gaps > 0, jnp.arange(gaps.shape[0]), jnp.argmax(gaps))
    # As many points a gap as coordinates, so that increasing ones may share it.
    inner = [number / (dimension + 1) for number in range(1, dimension + 1)]
    line = jnp.concatenate([ends[gaps] + part * (ends[gaps + 1] - ends[gaps]) for part in inner])
    return jnp.stack(jnp.meshgrid(*[line] * dimension, indexing="ij"), axis=-1).reshape(-1, dimension)


def _log_law(mechanism: AbstractMechanism, points: Array, data: Data, log_density: LogDensity | None) -> Array:
    """Log-probabilities on the points as a law of their own, or normalised log-densities there and the atoms' masses.

    Over finitely many points exp(-c·score) is an exponential mechanism of the same sensitivity as over Θ.
    """
    assert isinstance(mechanism, AbstractDensityMechanism | AbstractDirectMechanism)
    density = mechanism.log_density if log_density is None else log_density
    values = jax.vmap(lambda theta: density(theta, data))(points)
    if isinstance(mechanism, AbstractDensityMechanism):
        return values - jax.scipy.special.logsumexp(values)
    has_atoms = log_density is None and points.shape[-1] == 1
    return jnp.concatenate([values, mechanism.boundary_log_masses(data)]) if has_atoms else values


def _ends(mechanism: AbstractMechanism) -> tuple[Array, Array]:
    """The two ends of Θ on the line."""
    return outputs(mechanism, 1).linear_interval(jnp.ones(1), jnp.ones(1))
