"""Reports each person's privacy to the owner alone: ε at δ, δ at ε, Rényi curves, summaries, who is most exposed."""

import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import numpy as np
from jaxtyping import Float, Int

from kngjax.core.owner_only import OWNER_BANNER, OwnerOnly, owner_only
from kngjax.core.summary_table import SummaryTable
from kngjax.mechanisms.parameters import check_delta
from kngjax.owner.per_instance.chunks import by_chunks
from kngjax.owner.per_instance.everyone import ForAll
from kngjax.owner.per_instance.pairs_of_laws import AbstractPair

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DEFAULT_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
DEFAULT_ORDERS = (1.0, 2.0, 3.0, 4.0)


@owner_only
class PerInstanceSummary(OwnerOnly):
    """Summarises the distribution of ε over people at one δ: OWNER ONLY.

    **Arguments:** `mean`, `variance` (of the people, with divisor n), `maximum`. `quantiles`: by level. `moments`:
    E[ε^p] by p, Definition 7 of Wang (2019) for the uniform law on these people. `for_all`: the largest ε that anybody
    within the bounds would have. `worst_case`: ε of the mechanism's guarantee at this δ, None where it has none.
    """

    mean: float
    variance: float
    maximum: float
    quantiles: dict[float, float]
    moments: dict[float, float]
    for_all: ForAll | None
    worst_case: float | None
    delta: float
    change: str
    instead: ClassVar[str] = "the owner reads it by explain(), and keeps the report by its save_for_owner"

    def explain(self) -> str:
        """Returns the summary in a few lines of text, for the owner to print."""
        exchanged = ", of one person exchanged for another" if "exchanged" in self.change else ""
        rows = [
            ("mean", self.mean),
            ("standard deviation", self.variance**0.5),
            *((f"quantile {level:g}", value) for level, value in self.quantiles.items()),
            ("maximum", self.maximum),
            *((f"moment E[epsilon^{order:g}]", value) for order, value in self.moments.items()),
        ]
        notes = [f"epsilon at delta = {self.delta:g} of {self.change}"]
        if self.for_all is not None:
            ends = (("at least", self.for_all.attained), ("at most", self.for_all.bound))
            rows += [(f"anybody within the bounds, {end}", value) for end, value in ends]
            notes.append(f"anybody within the bounds: {self.for_all.method}")
        if self.worst_case is not None:
            rows.append((f"differential privacy, any data{exchanged}", self.worst_case))
        return str(SummaryTable(OWNER_BANNER, (), ("figure", "epsilon"), rows, notes=notes))


@owner_only
class PerInstanceReport(OwnerOnly):
    """Holds the per-instance (ε, δ)-DP of each person for these data: OWNER ONLY, not even for the people themselves.

    ε and δ are the larger of both directions between the data with the person and without.

    **Arguments:**

    - `delta`: δ at which `epsilon` is stated.
    - `epsilon`: shape (n,).
    - `leverage`, `residual`: shape (n,), out of sample: with respect to the data without this person. For a smooth loss
        the curvature-weighted leverage and the negative score at θ̂.
    - `pair`: the laws that are compared, by their numbers.
    - `for_all`: the largest ε that anybody within the bounds would have.
    - `worst_case`: ε of the mechanism's guarantee at δ, None where it has none there.
    - `mechanism`: its name. `change`: what happens to a person.
    - `approximate`: whether the numbers are first-order approximations.
    """

    delta: float
    epsilon: Float[np.ndarray, " people"]
    leverage: Float[np.ndarray, " people"]
    residual: Float[np.ndarray, " people"]
    pair: AbstractPair
    for_all: ForAll | None
    worst_case: float | None
    mechanism: str
    change: str
    approximate: bool = False
    instead: ClassVar[str] = "if the owner keeps it, call save_for_owner"

    def __repr__(self) -> str:
        doubt = ", first-order approximations" if self.approximate else ""
        return (
            f"<PerInstanceReport of {self.mechanism} at delta={self.delta:g}{doubt}, {self.change}; OWNER ONLY, "
            "computed from private data, not a release>"
        )

    def save_for_owner(self, path: str | pathlib.Path) -> None:
        """Writes ε, leverages and residuals to a NumPy file; whoever reads it sees private information."""
        np.savez(
            path,
            delta=np.float64(self.delta),
            epsilon=self.epsilon,
            leverage=self.leverage,
            residual=self.residual,
            mechanism=np.asarray(self.mechanism),
            change=np.asarray(self.change),
        )

    def delta_at(self, epsilon: Any) -> Float[np.ndarray, " people"]:
        """Returns δ(ε) of each person, shape (n,). **Arguments:** `epsilon`: ε ≥ 0, one number."""
        return np.exp(self.log_delta_at(epsilon))

    def log_delta_at(self, epsilon: Any) -> Float[np.ndarray, " people"]:
        """Returns log δ(ε) of each person, shape (n,), exact where δ itself is below the smallest float."""
        number = np.asarray(epsilon, dtype=np.float64)
        if number.ndim or not 0.0 <= float(number) < np.inf:
            raise ValueError("epsilon must be one number, at least 0 and finite")
        return _each("log_delta", self.pair, number)

    def epsilon_at(self, delta: Any) -> Float[np.ndarray, " people"]:
        """Returns ε of each person at another δ, shape (n,); raises ValueError unless 0 < δ < 1."""
        return epsilons_at(self.pair, delta)

    def renyi(self, alphas: Any) -> Float[np.ndarray, "people alphas"]:
        """Returns the Rényi divergence of each person and order, the larger of both directions; it may be infinite.

        **Arguments:** `alphas`: orders above 1, a number or shape (alphas,).
        """
        orders = np.atleast_1d(np.asarray(alphas, dtype=np.float64))
        if orders.ndim != 1 or not np.all((orders > 1.0) & (orders < np.inf)):
            raise ValueError("alphas must be finite numbers above 1: one, or a list of them")
        return np.stack([_each("renyi", self.pair, order) for order in orders], axis=1)

    def summary(
        self, levels: Sequence[Any] = DEFAULT_LEVELS, orders: Sequence[Any] = DEFAULT_ORDERS
    ) -> PerInstanceSummary:
        """Returns mean, variance, quantiles at `levels`, moments E[ε^p] for p in `orders`, maximum; owner-only too."""
        return PerInstanceSummary(
            mean=float(np.mean(self.epsilon)),
            variance=float(np.var(self.epsilon)),
            maximum=float(np.max(self.epsilon)),
            quantiles={float(level): float(np.quantile(self.epsilon, level)) for level in levels},
            moments={float(order): float(np.mean(self.epsilon**order)) for order in orders},
            for_all=self.for_all,
            worst_case=self.worst_case,
            delta=self.delta,
            change=self.change,
        )

    def worst(self, k: int = 10) -> Int[np.ndarray, " worst"]:
        """Returns the indices of the k people with the largest ε, the most exposed first."""
        if isinstance(k, bool) or int(k) != k or k < 1:
            raise ValueError(f"k must be a whole number, at least 1, got {k!r}")
        return np.argsort(-self.epsilon, kind="stable")[: int(k)]

    def plot_boxes(self, others: "dict[str, PerInstanceReport] | None" = None) -> "Figure":
        """Draws box plots of ε beside the line of differential privacy. See `kngjax.owner.per_instance.plots.boxes`."""
        from kngjax.owner.per_instance import plots

        return plots.boxes({self.mechanism: self} | (others or {}))

    def plot_influence(self, worst: int = 10) -> "Figure":
        """Plots ε against leverage and against residual. See `kngjax.owner.per_instance.plots.influence`."""
        from kngjax.owner.per_instance import plots

        return plots.influence(self, worst)


def broadcast_numbers(pair: AbstractPair, size: int) -> AbstractPair:
    """Broadcasts every number of a pair to shape (n,), as NumPy arrays."""
    return jax.tree.map(lambda part: np.array(np.broadcast_to(part, (size,)), dtype=np.float64), pair)


def epsilons_at(pair: AbstractPair, delta: Any) -> np.ndarray:
    """Returns ε of each person at δ."""
    return _each("epsilon", pair, np.log(check_delta(delta)))


def _each(method: str, pair: AbstractPair, argument: Any) -> np.ndarray:
    return by_chunks(getattr(type(pair), method), pair, argument, pair.largest_chunk)
