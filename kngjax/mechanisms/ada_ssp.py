"""AdaSSP: linear regression from the moments X'X and X'y with Gaussian noise and a ridge that adapts to them."""

import functools
import math
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jaxtyping import Array, Float, PRNGKeyArray

from kngjax.accounting.guarantees import Adjacency, Guarantee
from kngjax.core.arrays import Matrix, Scalar, Vector, float64, is_traced, parameter
from kngjax.core.compiling import Compiled, quick_compilation
from kngjax.data.bounds import Bounds
from kngjax.data.exact_sums import ExactSums
from kngjax.data.public_units import PublicUnits
from kngjax.data.records import Data, QuadraticSummary, Records, WeightedRecords
from kngjax.losses.squared import SquaredLoss
from kngjax.mechanisms.direct import AbstractDirectMechanism, Drawn
from kngjax.mechanisms.expected_noise import ExpectedNoise, eigenvalue_floor
from kngjax.mechanisms.gradient_noise import MomentNoise, ReleasedMoments
from kngjax.mechanisms.noise.calibration import gaussian_guarantee, largest_shift
from kngjax.mechanisms.noise.matrix_noise import symmetric_gaussian
from kngjax.mechanisms.noise_facts import AbstractNoiseFacts
from kngjax.mechanisms.parameters import check_delta
from kngjax.mechanisms.preparation import AbstractIntake
from kngjax.sensitivity import moments
from kngjax.sensitivity.gradients import Sensitivity

# The ridge's bounds on the noise hold but for this probability; utility hangs on it, privacy does not.
_RISK = 0.05
_QUANTILE = -float(scipy.special.ndtri(_RISK))

# Middles of bounds, in half widths: rounded at 2^-20 of their size, coefficients move predictions by at most as much,
# 2^-8 of the half width of y.
_FARTHEST = 2.0**12


class AdaSSP(AbstractDirectMechanism):
    """Releases θ = (X'X + E + λI)^{-1}(X'y + e), with Gaussian E and e, and λ from λ_min(X'X) with Gaussian noise.

    X and y are measured in public units, about the middle of their bounds and in half widths (without an intercept in
    units of the largest |x_j| and |y|; `kngjax.data.public_units`). So ‖x‖² ≤ d and |y| ≤ 1, and the noise does not
    depend on the units of the data. θ is given back in the units of the data.

    The noisy moments are one Gaussian mechanism, calibrated by its exact profile (Balle and Wang 2018). The rest is
    post-processing. Proof: `docs/proofs/ada-ssp.md`. λ raises the eigenvalues of X'X + E + λI to at least b, except
    with a small probability, in which case they are raised to b. So θ always exists, and magnifies e at most by 1/b.

    A release publishes the noisy moments with θ (`Release.published`), and has every rounding in its proof unless there
    is a hull of very many facets (`kngjax.draws.ada_ssp_draw`). Wang (2018) has another calibration and no units.

    **Arguments:**

    - `bounds`: public bounds of one record, of x and of y.
    - `epsilon`, `delta`: of the release; ε in nats, positive, at most 100 unless `allow_large_epsilon`; 0 < δ < 1.
    - `adjacency`: "add_remove" or "replace".
    - `shares`: of the budget s², for λ_min, X'y and X'X: three positive numbers that add up to 1. They are equal in
      the paper; where the design is well conditioned, (0.05, 0.475, 0.475) is better.

    θ is in all of R^d, and no domain is needed. With weights of records X'X is Σ w xx', and so on.
    """

    bounds: Bounds
    epsilon: Scalar
    delta: Scalar
    adjacency: Adjacency = eqx.field(static=True)
    shares: Float[Array, "3"] | Float[np.ndarray, "3"]

    # Its minimiser is what the moments give.
    loss: ClassVar[SquaredLoss] = SquaredLoss()
    takes_weights: ClassVar[bool] = True
    no_persons: ClassVar[str | None] = None
    proofs: ClassVar[tuple[str, ...]] = ("ada-ssp",)

    method: ClassVar[str] = (
        "Gaussian noise on the moments of the records, in units made of the public bounds, and the ridge regression "
        "that they give, in own units."
    )

    def __init__(
        self,
        bounds: Bounds | None = None,
        epsilon: Any = None,
        delta: Any = None,
        adjacency: str | Adjacency | None = None,
        shares: Any = (1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0),
        *,
        allow_large_epsilon: bool = False,
    ):
        self._set_parts(bounds, epsilon, adjacency, allow_large_epsilon)
        self.delta = check_delta(delta)
        self.shares = parameter(shares)

    def __check_init__(self):
        if is_traced(*jax.tree.leaves(self)):
            return
        self._check_parts()
        shares = np.asarray(self.shares)
        if shares.shape != (3,) or not np.all(shares > 0) or not math.isclose(shares.sum(), 1.0, rel_tol=1e-12):
            raise ValueError(f"shares must be three positive numbers that add up to 1, got {shares.tolist()}")
        # Refuses what no Gaussian noise is known to hide.
        _ = self.guarantee
        units = self.public_units(self.dimension or 1 + self.bounds.intercept)
        if np.any(np.abs(units.middles) > _FARTHEST * units.half_widths):
            raise ValueError(
                "a column of x lies so far from 0, next to the width of its bounds, that rounding its coefficient and "
                f"the intercept in own units would move predictions: beyond {_FARTHEST:g} half widths. Subtract a "
                "public number from the column and from its bounds, such as their middle"
            )

    @property
    def guarantee(self) -> Guarantee:
        """(ε, δ)-DP of one draw, and s-Gaussian DP: the moments are Gaussian, and the rest is post-processing."""
        return gaussian_guarantee(self.epsilon, self.delta, self.adjacency).of(self.bounds.protects)

    @property
    def intake(self) -> "AdaSSPIntake":
        return AdaSSPIntake(self)

    @property
    def noise(self) -> "AdaSSPNoise":
        return AdaSSPNoise(self, publishes=("gram", "least_eigenvalue", "moment"))

    def changes(self, dimension: int) -> Float[Array, "3"]:
        """The sensitivities of λ_min, of X'y in the l2 norm and of X'X in the Frobenius norm; runs under jit."""
        bounds = PublicUnits.of(self.bounds, dimension).bounds(self.bounds)
        matrix, moment = moments.moment_changes(bounds, self.adjacency, dimension)
        return jnp.stack([moments.eigenvalue_change(bounds, dimension), moment, matrix])

    def deviations(self, dimension: int) -> Float[Array, "3"]:
        """Δ_j/(s√w_j) of the noise on λ_min, X'y and X'X; runs under jit."""
        shift = largest_shift(self.epsilon, self.delta)
        return self.changes(dimension) / (shift * jnp.sqrt(jnp.asarray(self.shares)))

    def known_deviations(self, dimension: int) -> Float[np.ndarray, "3"]:
        """`deviations` as float64 numbers on the host."""
        with float64():
            return np.asarray(_facts(self, dimension).deviations)

    def sensitivity_for(self, dimension: int) -> Sensitivity:
        """The Frobenius sensitivity of X'X; the derivation has those of the other parts and the noise on each."""
        with float64(), quick_compilation():
            facts = _facts(self, dimension)
            (x, y), changes, deviations = jax.tree.map(np.array, (facts.radii, facts.changes, facts.deviations))
        names = ("the smallest eigenvalue of X'X", "X'y in the l2 norm", "X'X in the Frobenius norm")
        parts = (
            f"{name} by at most {change:.6g} (noise of deviation {deviation:.6g})"
            for name, change, deviation in zip(names, changes, deviations, strict=True)
        )
        return Sensitivity(
            float(changes[2]),
            f"{moments.explain_radii(self.bounds, float(x), float(y))} in units made of the public bounds, so "
            f"{self.adjacency.event} moves {'; '.join(parts)}.",
        )

    def public_units(self, dimension: int) -> PublicUnits:
        """The units that exact sums are taken in: float64 numbers on the host."""
        with float64(), quick_compilation():
            return jax.tree.map(np.asarray, _facts(self, dimension).units)

    def released_moments(self, published: Mapping[str, np.ndarray]) -> ReleasedMoments:
        """Returns the noisy moments that a release publishes, with the laws of their noise. Post-processing."""
        dimension = len(published["moment"])
        _, on_moment, on_matrix = self.known_deviations(dimension).tolist()
        return ReleasedMoments(self.public_units(dimension), on_moment, on_matrix, published)

    def draws(self, data: Data, key: PRNGKeyArray, num_draws: int) -> Drawn:
        """θ of independent noise on the moments."""
        if not (isinstance(data, QuadraticSummary) and data.in_public_units):
            raise TypeError(f"AdaSSP needs data from its own prepare, not {type(data).__name__}")
        d = data.dimension
        keys = jax.random.split(key, 3)
        on_least, on_moment, on_matrix = self.deviations(d)
        least = jnp.linalg.eigvalsh(jnp.asarray(data.gram))[0] + on_least * jax.random.normal(keys[0], (num_draws,))
        moment = jnp.asarray(data.moment)[:, None] + on_moment * jax.random.normal(keys[1], (d, num_draws))
        matrix = jnp.asarray(data.gram)[None] + symmetric_gaussian(keys[2], d, on_matrix, (num_draws,))
        thetas = jax.vmap(self.estimate, (0, 1, 0))(least, moment, matrix)
        return thetas, jnp.all(jnp.isfinite(thetas))

    def estimate(self, least: Scalar, moment: Vector, matrix: Matrix) -> Float[Array, " dimension"]:
        """θ of λ_min, X'y and X'X in public units, each with its noise: post-processing. Runs under jit."""
        d = moment.shape[0]
        on_least, _, on_matrix = self.deviations(d)
        floor = eigenvalue_floor(on_matrix, d, _RISK)
        ridge = jnp.maximum(2.0 * floor - jnp.maximum(least - _QUANTILE * on_least, 0.0), 0.0)
        values, vectors = jnp.linalg.eigh(matrix)
        theta = vectors @ ((vectors.T @ moment) / jnp.maximum(values + ridge, floor))
        return PublicUnits.of(self.bounds, d).in_own_units(theta)


class AdaSSPIntake(AbstractIntake):
    """Summarises records by their moments in public units."""

    def summarise(self, records: Records | WeightedRecords) -> Data:
        """(n, X'X, X'y, y'y) in public units. Private."""
        self.require_declared_weights(records)
        if isinstance(records, Records) and is_traced(records.x, records.y):
            found = super().summarise(PublicUnits.of(self.mechanism.bounds, records.dimension).records(records))
            assert isinstance(found, QuadraticSummary)
            return QuadraticSummary(found.count, found.gram, found.moment, found.sum_of_squares, in_public_units=True)
        self.check_count(records.num_records)
        return self.summary_of(self.mechanism.loss.sums(records))

    def summary_of(self, sums: ExactSums) -> Data:
        """(n, X'X, X'y, y'y) in public units, each correctly rounded. Private."""
        return self.mechanism.public_units(sums.dimension).sums(sums).summary(in_public_units=True)


class AdaSSPNoise(AbstractNoiseFacts):
    """Says what is known of the noise on θ, from that on the moments."""

    def typical_values(self, dimension: int) -> tuple[np.ndarray, np.ndarray]:
        """θ of θ̃ = 0 and the sizes of θ where |θ̃_j| = 1, in public units: from bounds alone."""
        facts = _facts(self.mechanism, dimension)
        return np.asarray(facts.centre), np.asarray(facts.sizes)

    def expected(self, hessian: np.ndarray, num_records: int) -> ExpectedNoise:
        """(X'X + λI)^{-1}e in public units with the λ that the expected λ_min gives, in own units.

        The noise E on X'X adds -Eθ̃ to e, of covariance σ²(|θ̃|²I + θ̃θ̃')/2. θ̃ is not known before: C is that of 0, and
        `growth` that of |θ̃| = 1, along θ̃; `at` has that of any θ. λ pulls towards the middle of the bounds of y.
        """
        dimension = len(hessian)
        units = self.mechanism.public_units(dimension)
        on_least, on_moment, on_matrix = self.mechanism.known_deviations(dimension).tolist()
        # x̃ = Ax, and x'θ = x̃'θ̃·h_y.
        to_public = np.linalg.inv(units.to_own)
        gram = to_public @ hessian @ to_public.T
        least = np.linalg.eigvalsh(gram)[0] - _QUANTILE * on_least
        ridge = max(2.0 * eigenvalue_floor(on_matrix, dimension, _RISK) - max(least, 0.0), 0.0)
        public = ExpectedNoise.of_gradient_noise(gram, on_moment**2 * np.eye(dimension), ridge)
        to_own = float(units.y_half_width) * to_public.T
        pull = to_own @ public.pull @ np.linalg.inv(to_own)
        growth = math.hypot(1.0, on_matrix / on_moment)
        middle = (
            float(units.y_middle) * np.eye(dimension)[0] if self.mechanism.bounds.intercept else np.zeros(dimension)
        )
        inverse = to_own @ np.linalg.inv(gram + ridge * np.eye(dimension))

        def at(theta: np.ndarray) -> np.ndarray:
            inside = np.linalg.solve(to_own, theta - middle)
            on_gram = 0.5 * on_matrix**2 * (inside @ inside * np.eye(dimension) + np.outer(inside, inside))
            return inverse @ (on_moment**2 * np.eye(dimension) + on_gram) @ inverse.T

        return ExpectedNoise(at(middle), pull, growth=growth, at=at)

    def at_release(self, theta: Float[np.ndarray, " dimension"], published: Mapping[str, np.ndarray]) -> MomentNoise:
        """Gives the law of Gθ̃ - X'y, given G = X'X, from the published moments.

        θ̃ may be made of anything: the moments say how far it is from their own solution.
        """
        return self.mechanism.released_moments(published).noise(theta)


class _PublicNumbers(NamedTuple):
    """Holds the public numbers of `AdaSSP` that depend on d. **Arguments:** `centre`, `sizes`: of θ, in own units."""

    units: PublicUnits
    centre: Array
    sizes: Array
    radii: tuple[Array, Array]
    changes: Array
    deviations: Array


@functools.partial(Compiled, static_argnames="dimension")
def _facts(mechanism: AdaSSP, dimension: int) -> _PublicNumbers:
    units = PublicUnits.of(mechanism.bounds, dimension)
    bounds = units.bounds(mechanism.bounds)
    radii = moments.feature_radius(bounds, dimension), moments.response_radius(bounds)
    centre = units.in_own_units(jnp.zeros(dimension))
    return _PublicNumbers(
        units, centre, units.sizes, radii, mechanism.changes(dimension), mechanism.deviations(dimension)
    )
