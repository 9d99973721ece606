"""The density of a release given latent records, changed one record at a time, with its normalising constant."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kngjax.core.arrays import float64
from kngjax.inference.released_gradients import ReleasedGradient

# Newton's steps end where the exponent of the density is that of the minimum to this.
_RADII, _DIRECTIONS, _NEWTON, _STILL = 20, 24, 25, 1e-6


class LatentRecords(NamedTuple):
    """Latent records. **Arguments:** `places`: of regressions which row of the design each has, shape (n,); of means 0.
    `values`: responses, (n,), or of means the columns, (n, d), as their law draws them and before they are clipped.
    """

    places: Array
    values: Array


class GradientSums(NamedTuple):
    """Holds the sums over records that the density needs.

    **Arguments:** `gradient`: Σs·x at θ̃, shape (d,). `hessian`: Σρ''·xx'.
    """

    gradient: Float[Array, " dimension"]
    hessian: Float[Array, "dimension dimension"]


@dataclasses.dataclass(frozen=True, eq=False)
class RecordDensity:
    """Computes log p(θ̃ | D) + const = -c‖∇ℓ_n(θ̃; D) + γ(θ̃ - m)‖_K + r(D).

    The term r(D) is

    - 0 for a mean plus K-norm noise, a location family;
    - log det (∇²ℓ_n(θ̃; D) + γI) of objective perturbation, exactly, by the change of variables of its proof;
    - -log Z(D) of KNG, with Z(D) = ∫_Θ exp(-c‖∇ℓ_n(θ; D)‖_K)dθ by quadrature along rays from the minimum θ̂ of ℓ_n:
      with g = rLu/‖Lu‖_K in the space of gradients and θ = θ̂ + Ĥ^{-1}g it is

          Z(D) = det Ĥ^{-1} Σ_u w_u ∫_0^{R_u} r^{d-1} exp(-c‖∇ℓ_n(θ̂ + rĤ^{-1}Lu/‖Lu‖_K)‖_K) dr,

      where R_u is where the ray leaves Θ. In the limit of many records the integrand is the same for all D.

    **Arguments:** `part`: what is public of the release. `rows`: of a regression clipped features, (m, d), else None.
    """

    part: ReleasedGradient
    rows: Any

    @property
    def is_exact_by_sums(self) -> bool:
        """Whether the density is a function of `GradientSums`; of KNG these are a surrogate, with det Ĥ for 1/Z."""
        return self.part.noise.determinant != "minimum"

    def parts(self, value: Array, at: Array, records: LatentRecords) -> GradientSums:
        """Computes each record's part of the sums, of shapes (n, d) and (n, d, d).

        **Arguments:** `value`: θ̃. `at`: where the Hessian is.
        """
        if self.rows is None:
            dimension = self.part.dimension
            return GradientSums(
                value[None, :] - self.clipped(records.values), jnp.zeros((len(records.values), dimension, dimension))
            )
        loss: Any = self.part.mechanism.loss
        x, y = jnp.asarray(self.rows)[records.places], self.clipped(records.values)
        scores = jax.vmap(loss.record_score)(x @ value, y)
        curvatures = jax.vmap(loss.record_curvature)(x @ at, y)
        return GradientSums(scores[:, None] * x, curvatures[:, None, None] * x[:, :, None] * x[:, None, :])

    def clipped(self, values: Array) -> Array:
        """Clips values as the release clipped them."""
        if self.rows is None:
            with jax.ensure_compile_time_eval(), float64():
                sides = np.asarray(self.part.mechanism.bounds.features(self.part.dimension))
            return jnp.clip(values, sides[0][None, :], sides[1][None, :])
        interval = self.part.clip_interval()
        return values if interval is None else jnp.clip(values, *interval)

    def by_sums(self, value: Array, sums: GradientSums) -> Array:
        """log p(θ̃ | D) + const; of KNG that of the surrogate."""
        noise = self.part.noise
        found = -noise.rate * noise.norm(sums.gradient + noise.pull(value))
        if noise.determinant is None:
            return found
        matrix = sums.hessian + noise.ridge * jnp.eye(self.part.dimension)
        return found + jnp.log(jnp.maximum(determinant(matrix), jnp.finfo(matrix.dtype).tiny))

    def __call__(self, value: Array, records: LatentRecords) -> Array:
        """log p(θ̃ | D) + const."""
        sums = jax.tree.map(lambda one: jnp.sum(one, axis=0), self.parts(value, value, records))
        if self.is_exact_by_sums:
            return self.by_sums(value, sums)
        return -self.part.noise.rate * self.part.noise.norm(sums.gradient) - self.log_normaliser(value, records)

    def log_normaliser(self, value: Array, records: LatentRecords) -> Array:
        """log Z(D) of KNG."""
        loss: Any = self.part.mechanism.loss
        domain: Any = getattr(self.part.mechanism, "domain", None)
        x, y = jnp.asarray(self.rows)[records.places], self.clipped(records.values)

        def gradient(theta: Array) -> Array:
            return jax.vmap(loss.record_score)(x @ theta, y) @ x

        def hessian(theta: Array) -> Array:
            return (jax.vmap(loss.record_curvature)(x @ theta, y)[:, None] * x).T @ x

        def size(slope: Array) -> Array:
            return self.part.noise.rate * self.part.noise.norm(slope)

        def step(carry: Any) -> Any:
            # Steps that make the objective worse are halved: it is convex.
            number, theta, slope = carry
            move = jnp.linalg.solve(hessian(theta) + 1e-9 * jnp.eye(len(theta)), slope)
            lengths = 0.5 ** jnp.arange(6.0)
            objective = jax.vmap(lambda length: jnp.sum(jax.vmap(loss.record_value)(x @ (theta - length * move), y)))
            theta -= lengths[jnp.argmin(objective(lengths))] * move
            return number + 1, theta, gradient(theta)

        minimum = jax.lax.while_loop(
            lambda carry: (carry[0] < _NEWTON) & (size(carry[2]) > _STILL), step, (0, value, gradient(value))
        )[1]
        # From θ̃, which is inside, to the minimum or nearly to the edge of Θ.
        towards = minimum - value + 1e-12
        centre = value + jnp.minimum(1.0, 0.999 * domain.chord(value, towards)[1]) * (minimum - value)
        matrix = hessian(centre)
        rays, weights = self._rays()
        directions = jnp.linalg.solve(matrix, rays.T).T
        ends = jax.vmap(lambda direction: domain.chord(centre, direction)[1])(directions)
        # r = (e^t - 1)/c, so that the nodes are dense where the density is and reach to the edge of Θ.
        nodes, masses = np.polynomial.legendre.leggauss(_RADII)
        longest = jnp.log1p(self.part.noise.rate * ends)[:, None]
        times = 0.5 * longest * (nodes + 1.0)[None, :]
        radii = jnp.expm1(times) / self.part.noise.rate

        def sizes(radii: Array, direction: Array) -> Array:
            predictors = (x @ centre)[None, :] + radii[:, None] * (x @ direction)[None, :]
            scores = jax.vmap(lambda row: jax.vmap(loss.record_score)(row, y))(predictors)
            return jax.vmap(size)(scores @ x)

        terms = -jax.vmap(sizes)(radii, directions)
        terms += (self.part.dimension - 1.0) * jnp.log(radii) + times + jnp.log(masses)[None, :] + jnp.log(longest)
        total = jax.scipy.special.logsumexp(terms + jnp.log(weights)[:, None])
        return total - jnp.log(jnp.maximum(determinant(matrix), jnp.finfo(matrix.dtype).tiny))

    def _rays(self) -> tuple[np.ndarray, np.ndarray]:
        """Lu/‖Lu‖_K of evenly spaced u on the unit circle, and 1/‖Lu‖_K², which is w_u but for a public constant.

        In one dimension ±1/‖1‖_K, and 1/‖1‖_K.
        """
        with jax.ensure_compile_time_eval(), float64():
            if self.part.dimension == 1:
                points = np.array([[1.0], [-1.0]])
            else:
                angles = 2.0 * np.pi * (np.arange(_DIRECTIONS) + 0.5) / _DIRECTIONS
                points = np.column_stack([np.cos(angles), np.sin(angles)]) @ self.part.scale.T
            lengths = np.asarray(jax.vmap(self.part.noise.norm)(jnp.asarray(points)))
        return points / lengths[:, None], lengths**-self.part.dimension


def determinant(matrix: Array) -> Array:
    """Computes the determinant of a symmetric matrix of up to three rows, in the few operations that it takes."""
    if len(matrix) == 1:
        return matrix[0, 0]
    if len(matrix) == 2:
        return matrix[0, 0] * matrix[1, 1] - matrix[0, 1] * matrix[1, 0]
    return jnp.dot(matrix[0], jnp.cross(matrix[1], matrix[2]))


def require_served(part: ReleasedGradient, num_records: int) -> None:
    """Raises ValueError for a release that data augmentation does not serve, with the reason."""
    loss, dimension = part.mechanism.loss, part.dimension
    if num_records > 1000:
        raise ValueError(f"latent records serve up to 1000, and there are {num_records}: take kngjax.observe")
    if dimension > 3:
        raise ValueError(f"latent records serve up to 3 numbers, and {dimension} were released: take kngjax.observe")
    if part.noise.determinant == "minimum":
        if not part.is_regression:
            raise ValueError(
                "of a mean by KNG the normaliser over its domain is not computed: take KNormMechanism, whose noise is "
                "added whatever the records are"
            )
        if dimension > 2 or not loss.is_smooth:
            raise ValueError(
                f"the normaliser of KNG depends on the records and must not be left out; it is computed for one or two "
                f"coefficients and smooth losses, and this is {type(loss).__name__} with {dimension}: take "
                "ObjectivePerturbation, whose law has none, or kngjax.observe"
            )


def transport(key: Any, old: Any, new: Any, values: Array) -> tuple[Array, Array] | None:
    """Values of one law as those of another, and log Π p'(x')|dx'/dx|/p(x); None for laws that have no such map.

    x' = μ' + σ'(x - μ)/σ of a location and a scale; of 0 and 1 that which the same uniform number gives, by chance.
    **Arguments:** `new`: None asks only whether there is one.
    """
    from numpyro import distributions

    has_scale = (distributions.Normal, distributions.StudentT, distributions.Laplace, distributions.Logistic)
    is_binary = isinstance(old, distributions.BernoulliProbs | distributions.BernoulliLogits)
    if not (isinstance(old, has_scale) or is_binary):
        return None
    if new is None:
        return values, jnp.zeros(())

    def of_rows(part: Any) -> Array:
        part = jnp.asarray(part)
        return jnp.broadcast_to(part, values.shape) if values.ndim == 1 else part[None, :]

    if is_binary:
        uniform, chance, to_chance = jax.random.uniform(key, values.shape), of_rows(old.probs), of_rows(new.probs)
        level = jnp.where(values > 0.5, uniform * chance, chance + uniform * (1.0 - chance))
        return jnp.where(level < to_chance, 1.0, 0.0), jnp.zeros(())
    loc, scale, to_loc, to_scale = (of_rows(part) for part in (old.loc, old.scale, new.loc, new.scale))
    moved = to_loc + to_scale * (values - loc) / scale
    if not isinstance(old, distributions.StudentT):
        return moved, jnp.zeros(())
    log_probs = (
        jax.vmap(law.log_prob)(one) if values.ndim == 2 else law.log_prob(one)
        for law, one in ((new, moved), (old, values))
    )
    ratio = jnp.log(to_scale) - jnp.log(scale)
    after, before = log_probs
    return moved, jnp.sum(after - before + ratio)


def chosen_records(are_taken: Array, new: LatentRecords, old: LatentRecords) -> LatentRecords:
    """The new records where they are taken, shape (n,), and the old ones elsewhere."""
    of_values = are_taken if new.values.ndim == 1 else are_taken[:, None]
    return LatentRecords(jnp.where(are_taken, new.places, old.places), jnp.where(of_values, new.values, old.values))
