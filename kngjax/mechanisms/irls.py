"""Private iteratively reweighted least squares: L1 regression from noisy weighted moments."""

import math
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from kngjax.accounting.accountants import advanced_epsilon
from kngjax.accounting.guarantees import Adjacency, Guarantee
from kngjax.core.arrays import Scalar, Vector, block_sums, float64, is_traced, parameter
from kngjax.data.bounds import Bounds
from kngjax.data.records import Data, Records, WeightedRecords
from kngjax.losses.base import Rows
from kngjax.losses.quantile import QuantileLoss
from kngjax.mechanisms.direct import AbstractDirectMechanism, Drawn
from kngjax.mechanisms.noise import matrix_noise
from kngjax.mechanisms.noise.calibration import advanced_epsilons, largest_shift, renyi_budget
from kngjax.mechanisms.noise_facts import UnknownNoise
from kngjax.mechanisms.parameters import check_delta, require_choice, require_positive
from kngjax.mechanisms.preparation import PlainIntake
from kngjax.sensitivity import gradients, moments
from kngjax.sensitivity.gradients import Sensitivity

# Share of δ spent on advanced composition when its parts also have a δ.
_COMPOSITION_SHARE = 0.5
# The default of κ times the largest |y|.
_CAP_OF_RADIUS = 10.0
# Rows in a block: their weighted products are in memory together, and the linear algebra library orders their sum.
_ROWS = 1 << 12
_SPENT_UP = "epsilon = {:g} and this delta leave no budget for {} parts: give a larger one, or fewer iterations"


class NoiseScales(NamedTuple):
    """Holds the sizes of the noise. Public.

    **Arguments:** `moment`, `matrix`: deviation of Gaussian noise, or scale of Laplace or Wishart noise.
    """

    moment: Array
    matrix: Array


class _Spending(NamedTuple):
    """Holds what the vector and the matrix of one iteration spend. Public.

    **Arguments:** `epsilons`: ε of Laplace and Wishart noise, shape (2,). `shifts`: Δ/σ of Gaussian noise, shape (2,).
    `delta`: δ of either.
    """

    epsilons: Array
    shifts: Array
    delta: Array


class PrivateIRLS(AbstractDirectMechanism):
    """Iterates θ ← B̃^{-1}Ã with à = Σ s_i y_i x_i + noise and B̃ = Σ s_i x_i x_i' + noise.

    The weights are s_i = 1/max(1/κ, |y_i - x_i'θ|)^{2-p}. For p = 1, without noise and for a large cap κ, the iterates
    approach least absolute deviations; for other p the minimiser of Σ|y_i - x_i'θ|^p (Chartrand and Yin 2008). The
    first iterate is least squares.

    Each of the 2J moments has its own noise. `accounting` divides the budget among them: by zCDP or the exact profile
    ("zcdp"), by equal parts of ε ("basic"), or by advanced composition ("advanced"). `repair` makes B̃ positive
    definite with a public b, about the largest eigenvalue of its noise: it raises eigenvalues to b ("floor"), or adds b
    to them ("ridge"). `guarantee` is that of all the noise together.

    Proof, budgets and the paper's variants (Park and Welling 2016): `docs/proofs/private-irls.md`. A release has every
    rounding in its proof (`kngjax.draws.irls_iterates`).

    **Arguments:**

    - `bounds`: public bounds of one record, of x and of y.
    - `epsilon`, `delta`: of the release; `delta=None` for "basic" with Laplace noise alone.
    - `adjacency`: "add_remove" or "replace".
    - `iterations`: J ≥ 1. `cap`: κ > 0, in units of 1/y. Noise grows in proportion to κ^{2-p}, and bias falls. A few
      times 1/(spread of y about the plane) is good. The default is 10/(largest |y| of the bounds).
    - `power`: p in [1, 2). `moment_noise`: "gaussian" or "laplace". `matrix_noise`: these, or "wishart".
    - `accounting`: as above. `repair`: "floor" or "ridge". `moment_share`: of the budget for the vectors.

    θ lies in R^d, and no domain is needed. KNG with the check loss or the pseudo-Huber loss solves the same problem
    with less noise and pure ε.
    """

    bounds: Bounds
    epsilon: Scalar
    delta: Scalar | None
    adjacency: Adjacency = eqx.field(static=True)
    iterations: int = eqx.field(static=True)
    cap: Scalar
    power: Scalar
    moment_noise: str = eqx.field(static=True)
    matrix_noise: str = eqx.field(static=True)
    accounting: str = eqx.field(static=True)
    repair: str = eqx.field(static=True)
    moment_share: Scalar

    proofs: ClassVar[tuple[str, ...]] = ("private-irls",)
    method: ClassVar[str] = "Iterated weighted least squares from moments with exact noise of their own."

    def __init__(
        self,
        bounds: Bounds | None = None,
        epsilon: Any = None,
        delta: Any = None,
        adjacency: str | Adjacency | None = None,
        iterations: int = 5,
        cap: Any = None,
        power: Any = 1.0,
        moment_noise: str = "gaussian",
        matrix_noise: str = "gaussian",
        accounting: str = "zcdp",
        repair: str = "floor",
        moment_share: Any = 0.5,
        *,
        allow_large_epsilon: bool = False,
    ):
        self._set_parts(bounds, epsilon, adjacency, allow_large_epsilon)
        self.delta = None if delta is None else check_delta(delta)
        self.iterations = iterations
        if self.bounds.y_lower is None:
            raise ValueError("private IRLS needs public bounds of the response, bounds=Bounds(..., y=(lower, upper))")
        if cap is None:
            with float64():
                cap = _CAP_OF_RADIUS / float(gradients.response_radius(self.bounds))
        self.cap = require_positive("cap", cap, "κ, the largest weight of a record where p = 1, in units of 1/y")
        self.power = parameter(power)
        self.moment_noise, self.matrix_noise = moment_noise, matrix_noise
        self.accounting, self.repair = accounting, repair
        self.moment_share = parameter(moment_share)

    def __check_init__(self):
        require_choice("moment_noise", self.moment_noise, ("gaussian", "laplace"))
        require_choice("matrix_noise", self.matrix_noise, ("gaussian", "laplace", "wishart"))
        require_choice("accounting", self.accounting, ("zcdp", "basic", "advanced"))
        require_choice("repair", self.repair, ("floor", "ridge"))
        if not isinstance(self.iterations, int) or isinstance(self.iterations, bool) or self.iterations < 1:
            raise ValueError(f"iterations must be a whole number, at least 1, got {self.iterations!r}")
        if self.accounting == "zcdp" and self.matrix_noise == "wishart":
            raise ValueError(
                "Wishart noise cannot be part of a zCDP budget: its smallest outcomes betray a record for certain. "
                "Take accounting='basic' or 'advanced', or Gaussian noise, which is the better"
            )
        if self._is_pure and self.delta is not None:
            raise ValueError("Laplace noise with basic composition is pure: leave delta out")
        if not self._is_pure and self.delta is None:
            raise ValueError(
                "delta is missing: give a probability far below 1/n, or for a pure guarantee accounting='basic' with "
                "moment_noise='laplace' and matrix_noise='laplace'"
            )
        if is_traced(*jax.tree.leaves(self)):
            return
        self._check_parts()
        for name, lowest, highest in (("power", 1.0, 2.0), ("moment_share", 0.0, 1.0)):
            value = np.asarray(getattr(self, name))
            inside = value.shape == () and lowest <= value < highest and (name == "power" or value > 0)
            if not inside:
                end = "above" if name == "moment_share" else "at least"
                raise ValueError(
                    f"{name} must be one number, {end} {lowest:g} and below {highest:g}, got {value.tolist()}"
                )
        sizes = [float(size) for size in self._budget()[1]]
        if not all(math.isfinite(size) and size > 0 for size in sizes):
            raise ValueError(_SPENT_UP.format(float(self.epsilon), 2 * self.iterations))
        # Raises ValueError where the parts do not fit the budget.
        _ = self.guarantee

    @property
    def takes_weights(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.bounds.has_one_vote

    @property
    def no_persons(self) -> str | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        if self.matrix_noise == "wishart":
            return "the proof of Wishart noise rests on the rank of what one record adds"
        return None if self.bounds.has_one_vote else "it is built for one vote, most_rows=1"

    @property
    def intake(self) -> PlainIntake:
        return PlainIntake(self, has_products=False)

    @property
    def loss(self) -> QuantileLoss:
        """½|y - x'θ|, whose minimiser the iterates approach for p = 1; for other p it stands for its records alone."""
        return QuantileLoss(0.5)

    @property
    def _is_pure(self) -> bool:
        return self.accounting == "basic" and self.moment_noise == "laplace" and self.matrix_noise == "laplace"

    @property
    def guarantee(self) -> Guarantee:
        """The composition of what each moment's noise hides, stated at (ε, δ); with Wishart noise (ε, δ)-DP alone."""
        epsilon, delta, spent = float(self.epsilon), float(self.delta or 0.0), self._budget()[0]
        whole = Guarantee.composed(self._parts(spent) * self.iterations)
        if self.matrix_noise != "wishart" and whole.at(delta=delta) <= epsilon:
            return whole.stated(delta, epsilon).of(self.bounds.protects)
        if self.accounting != "zcdp":
            # Every part at its own (ε, δ), added up or by advanced composition.
            whole = Guarantee.composed(self._parts(spent, stated=True) * self.iterations)
            if min(whole.at(delta=delta), advanced_epsilon(whole, delta) if delta else math.inf) <= epsilon:
                return Guarantee.approximate(epsilon, delta, self.adjacency).of(self.bounds.protects)
        raise ValueError(_SPENT_UP.format(epsilon, 2 * self.iterations))

    def _parts(self, spent: _Spending, stated: bool = False) -> list[Guarantee]:
        """States the guarantees of the noise on one vector and one matrix, Gaussian at its own (ε, δ) if `stated`."""
        delta, numbers = float(spent.delta), zip(self._kinds, spent.epsilons, spent.shifts, strict=True)
        return [
            Guarantee.gaussian(float(shift), self.adjacency, *((float(epsilon), delta) if stated else ()))
            if kind == "gaussian"
            # Downwards by more than what sums of these decimals round; `noise` is larger by as much.
            else Guarantee.pure(float(epsilon), self.adjacency)
            if kind == "laplace"
            else Guarantee.approximate(float(epsilon), delta, self.adjacency)
            for kind, epsilon, shift in numbers
        ]

    def _budget(self) -> tuple[_Spending, NoiseScales]:
        """Computes what an iteration spends and the noise that this buys, in the known dimension or the smallest."""
        with float64():
            return jax.tree.map(np.asarray, _budget(self, self.dimension or 1 + self.bounds.intercept))

    @property
    def _kinds(self) -> tuple[str, str]:
        return self.moment_noise, self.matrix_noise

    @property
    def _largest_weight(self) -> Float[Array, ""]:
        return jnp.asarray(self.cap) ** (2.0 - self.power)

    def changes(self, dimension: int) -> tuple[Array, Array]:
        """The sensitivities of Σ s y x and of Σ s x x', each in the norm of its noise; runs under jit.

        Of Wishart noise: wX² of a removal or an addition, whatever the adjacency.
        """
        l2_matrix, l2_moment = moments.moment_changes(self.bounds, self.adjacency, dimension)
        l1_matrix, l1_moment = moments.absolute_moment_changes(self.bounds, self.adjacency, dimension)
        one_sided = jnp.square(gradients.feature_radius(self.bounds, dimension))
        moment = {"gaussian": l2_moment, "laplace": l1_moment}[self.moment_noise]
        matrix = {"gaussian": l2_matrix, "laplace": l1_matrix, "wishart": one_sided}[self.matrix_noise]
        return self._largest_weight * moment, self._largest_weight * matrix

    def noise_scales(self, dimension: int) -> NoiseScales:
        """Computes the noise that each moment gets in each iteration, from public settings; runs under jit."""
        spending, changes = self._spending(), self.changes(dimension)
        moment, matrix = (self._amount(index, spending, change, dimension) for index, change in enumerate(changes))
        return NoiseScales(moment, matrix)

    def _spending(self) -> _Spending:
        """Computes what one iteration spends of a budget lowered by a part in 10¹², which covers rounding errors."""
        epsilon = (1.0 - 1e-12) * jnp.asarray(self.epsilon)
        shares = jnp.stack([jnp.asarray(self.moment_share), 1.0 - self.moment_share])
        uncertain = self.iterations * sum(kind != "laplace" for kind in self._kinds)
        by_sums = shares * epsilon / self.iterations
        if self.delta is None:
            return _Spending(by_sums, jnp.zeros(2), jnp.zeros(()))
        delta = (1.0 - 1e-12) * jnp.asarray(self.delta)
        if self.accounting == "zcdp":
            return self._joint_spending(epsilon, shares, by_sums)
        each = delta / max(uncertain, 1)
        if self.accounting == "advanced":
            composition = _COMPOSITION_SHARE if uncertain else 1.0
            by_law = advanced_epsilons(epsilon, composition * delta, shares, self.iterations)
            sums_serve = jnp.all(by_sums >= by_law)
            by_sums = jnp.where(sums_serve, by_sums, by_law)
            each = jnp.where(sums_serve, 1.0, 1.0 - composition) * each
        return _Spending(by_sums, jax.vmap(largest_shift, (0, None))(by_sums, each), each)

    def _joint_spending(self, epsilon: Array, shares: Array, by_sums: Array) -> _Spending:
        """Gaussian and Laplace parts by their Σρ, or Laplace parts by Σε and Gaussian ones by √Σμ²."""
        order, divergence = renyi_budget(epsilon, self.delta)
        # ρ-zCDP is a divergence of αρ at the order α.
        by_rho = jnp.sqrt(2.0 * shares * divergence / (order * self.iterations))
        is_gaussian = np.asarray([kind == "gaussian" for kind in self._kinds])
        if is_gaussian.any():
            gaussian_share = jnp.sum(jnp.where(is_gaussian, shares, 0.0))
            joint_shift = largest_shift(gaussian_share * epsilon, self.delta)
            by_profile = joint_shift * jnp.sqrt(shares / (gaussian_share * self.iterations))
        else:
            by_profile = jnp.zeros(2)
        other = jnp.where(is_gaussian, by_profile, by_sums)
        spending = jnp.where(jnp.all(other >= by_rho), other, by_rho)
        return _Spending(spending, spending, jnp.zeros(()))

    def _amount(self, index: int, spending: _Spending, change: Array, dimension: int) -> Array:
        kind, epsilon, delta = self._kinds[index], spending.epsilons[index], spending.delta
        if kind == "laplace":
            return change / epsilon
        if kind == "gaussian":
            return change / spending.shifts[index]
        if self.adjacency is Adjacency.REPLACE:
            epsilon, delta = 0.5 * epsilon, delta / (1.0 + jnp.exp(0.5 * epsilon)) * (1.0 - 1e-14)
        return matrix_noise.wishart_scale(epsilon, delta, change, dimension, matrix_noise.wishart_degrees(dimension))

    def plan(self, dimension: int) -> tuple[list[Guarantee], float, float]:
        """Computes what the noise on one vector and on one matrix hides, the scale of matrix noise, and the repair."""
        spent, noise = self._budget()
        try:
            parts = self._parts(spent, stated=self.accounting != "zcdp")
        except ValueError:
            # Float64 cannot state Gaussian noise by itself; it is known together.
            parts = self._parts(spent)
        with float64():
            least = float(self._repair_size(jax.tree.map(jnp.asarray, noise), dimension))
        return parts, float(noise.matrix), least

    @property
    def noise(self) -> UnknownNoise:
        return UnknownNoise(self, has_known_error=False)

    def sensitivity_for(self, dimension: int) -> Sensitivity:
        """The sensitivity of Σ s x x' in the norm of its noise; the derivation has that of Σ s y x, and the noise."""
        with float64():
            moment, matrix = (float(change) for change in self.changes(dimension))
            noise = jax.tree.map(float, _budget(self, dimension)[1])
            x = float(gradients.feature_radius(self.bounds, dimension))
            y, most = float(gradients.response_radius(self.bounds)), float(self._largest_weight)
        return Sensitivity(
            matrix,
            f"weights are at most {most:.6g}, |x| <= {x:.6g} and |y| <= {y:.6g}, so one record moves the weighted X'y "
            f"by at most {moment:.6g} in the norm of its {self.moment_noise} noise (of size {noise.moment:.6g}) and "
            f"the weighted X'X by at most {matrix:.6g} in that of its {self.matrix_noise} noise (of size "
            f"{noise.matrix:.6g}), in each of {self.iterations} iterations.",
        )

    def draws(self, data: Data, key: PRNGKeyArray, num_draws: int) -> Drawn:
        """The last iterates of independent runs."""
        rows, noise = self._own(data, Records | WeightedRecords), self.noise_scales(data.dimension)
        thetas = jax.lax.map(lambda draw_key: self._run(rows, noise, draw_key), jax.random.split(key, num_draws))
        return thetas, jnp.all(jnp.isfinite(thetas))

    def _run(
        self, data: Records | WeightedRecords, noise: NoiseScales, key: PRNGKeyArray
    ) -> Float[Array, " dimension"]:
        dimension = data.dimension
        moment_noise, matrix_noises = self._noises(noise, key, dimension)
        least = self._repair_size(noise, dimension)

        def iterate(theta, step):
            is_first, on_moment, on_matrix = step
            moment, matrix = self._moments(theta, is_first, data)
            return matrix_noise.repaired_solution(jnp, matrix + on_matrix, moment + on_moment, least, self.repair), None

        is_first = jnp.arange(self.iterations) == 0
        theta, _ = jax.lax.scan(iterate, jnp.zeros(dimension), (is_first, moment_noise, matrix_noises))
        return theta

    def _moments(self, theta: Vector, is_first: Array, data: Rows) -> tuple[Array, Array]:
        """Σ s_i y_i x_i and Σ s_i x_i x_i', each times its share of a vote. Private."""

        def terms(x, y, shares):
            distances = jnp.maximum(1.0 / self.cap, jnp.abs(y - x @ theta))
            weights = jnp.where(is_first, self._largest_weight, distances ** (self.power - 2.0))
            weighted = (shares * weights)[:, None] * x
            return weighted.T @ y, weighted.T @ x

        rows = data.rows
        return block_sums(terms, (rows.x, rows.y, data.times_weights(jnp.ones(rows.y.shape))), _ROWS)

    def _noises(self, noise: NoiseScales, key: PRNGKeyArray, dimension: int) -> tuple[Array, Array]:
        """The noise of all iterations, on vectors and on matrices; of Wishart noise less its mean, which is public."""
        moment_key, matrix_key = jax.random.split(key)
        draw = {"gaussian": jax.random.normal, "laplace": jax.random.laplace}[self.moment_noise]
        on_moments = noise.moment * draw(moment_key, (self.iterations, dimension))
        shape = (self.iterations,)
        if self.matrix_noise == "gaussian":
            return on_moments, matrix_noise.symmetric_gaussian(matrix_key, dimension, noise.matrix, shape)
        if self.matrix_noise == "laplace":
            return on_moments, matrix_noise.triangle_laplace(matrix_key, dimension, noise.matrix, shape)
        degrees = matrix_noise.wishart_degrees(dimension)
        mean = degrees * noise.matrix * jnp.eye(dimension)
        return on_moments, matrix_noise.wishart(matrix_key, dimension, degrees, noise.matrix, shape) - mean[None]

    def _repair_size(self, noise: NoiseScales, dimension: int) -> Float[Array, ""]:
        """b: noise whose entries have deviation σ/√2 off the diagonal has eigenvalues up to about σ√(2d)."""
        degrees = matrix_noise.wishart_degrees(dimension)
        factor = {"gaussian": 1.0, "laplace": 2.0, "wishart": math.sqrt(2.0 * degrees)}[self.matrix_noise]
        return factor * noise.matrix * math.sqrt(2.0 * dimension)


_budget = eqx.filter_jit(lambda mechanism, dimension: (mechanism._spending(), mechanism.noise_scales(dimension)))
