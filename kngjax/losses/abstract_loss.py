"""Defines a loss: a function of θ and one record, with its gradient and declared facts about both.

The loss of the data is the sum ℓ_n(θ; D) = Σ_i ℓ(θ; record_i), never the mean. In regression ℓ is ρ(x'θ, y), and one
record's gradient is s·x with the score s = ∂ρ/∂η, η = x'θ. A sensitivity proof then needs an interval that contains s.
Means and medians have losses of the distance between θ and the record.
"""

import abc
from fractions import Fraction
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import scipy
from jaxtyping import Array, Float

from kngjax.accounting.adjacency import Adjacency
from kngjax.core.arrays import Vector, float64
from kngjax.core.compiling import Compiled
from kngjax.core.errors import UnfitType
from kngjax.core.modules import AbstractModule
from kngjax.core.representation import ShownAsTyped
from kngjax.data import cells
from kngjax.data.bounds import Bounds
from kngjax.data.exact_sums import ExactSums
from kngjax.data.missing import DROP
from kngjax.data.records import Data, Records, WeightedRecords
from kngjax.geometry.reach import Reach, SinglePoint

Number = Float[Array, ""] | Float[np.ndarray, ""] | float
Interval = tuple[Number, Number]
Ends = tuple[Vector, Vector]
Rows = Records | WeightedRecords


class WholeScore(NamedTuple):
    """A loss that sums of whole numbers hold: "check", ρ_τ(y - x'θ), "residuals", ½(y - x'θ)², "distances", ½|θ - x|².

    **Arguments:** `level`: τ of the check loss, the decimal number that it prints as.
    """

    kind: Literal["check", "residuals", "distances"]
    level: Fraction = Fraction(0)


class AbstractLoss(ShownAsTyped, AbstractModule):
    """A loss ℓ(θ; record) of one record, summed over the records, with the facts that proofs and draws rest on.

    Facts without an argument:

    - `has_response`: whether a record has a response besides its features.
    - `needs_response_bounds`: whether one record's gradient is bounded only if y is. `value_needs_response_bounds`:
      whether its value is bounded only if y is.
    - `is_quadratic`: whether `summarise` gives a `QuadraticSummary`, so that ℓ_n = ½θ'Gθ - m'θ + ½s.
    - `is_half_square`: whether ℓ is ½(y - x'θ)² and no other quadratic, so that with ½λ|θ|² it is ridge regression.
    - `is_smooth`: whether ρ'' is positive and continuously differentiable for every η. On a design of full rank ∇ℓ_n is
      then one to one, with the determinant of the Hessian as its Jacobian. Huber's loss is not smooth: its gradient is
      constant where all records are outliers.
    - `has_curvature_facts`: whether a smooth loss of x'θ proves `curvature_facts`, for exact draws in any dimension.
    - `score_is_piecewise_constant`: whether ∂ρ/∂η is constant except for one jump, at η = y (see `score_step`).
    - `gradient_length`: the Euclidean length of every record's gradient if its direction is free; else None.
    - `is_homogeneous`: whether ρ(wη, wy) = w·ρ(η, y) for every w ≥ 0, so that a weighted record is (wx, wy).
    - `takes_weights`: whether its sums honour `WeightedRecords`.
    - `gradient_slope`: c if one record's gradient is cθ minus a term that depends on the record alone; else None.
    """

    needs_response_bounds: ClassVar[bool] = False
    value_needs_response_bounds: ClassVar[bool] = True
    has_response: ClassVar[bool] = True
    score_is_piecewise_constant: ClassVar[bool] = False
    is_quadratic: ClassVar[bool] = False
    is_half_square: ClassVar[bool] = False
    is_smooth: ClassVar[bool] = False
    has_curvature_facts: ClassVar[bool] = False
    is_homogeneous: ClassVar[bool] = False
    takes_weights: ClassVar[bool] = False
    gradient_length: ClassVar[float | None] = None
    gradient_slope: ClassVar[float | None] = None

    @property
    def whole_score(self) -> WholeScore | None:
        """Gives the form in which a lattice computes the loss without rounding; None where that is not built."""
        return None

    @abc.abstractmethod
    def value(self, theta: Vector, data: Data) -> Float[Array, ""]:
        """ℓ_n(θ; D)."""

    @abc.abstractmethod
    def gradient(self, theta: Vector, data: Data) -> Float[Array, " dimension"]:
        """∇ℓ_n(θ; D), shape (d,)."""

    @abc.abstractmethod
    def hessian(self, theta: Vector, data: Data) -> Float[Array, "dimension dimension"]:
        """∇²ℓ_n(θ; D), shape (d, d)."""

    @abc.abstractmethod
    def record_gradients(self, theta: Vector, data: Data) -> Float[Array, "records dimension"]:
        """The gradient of each record, shape (n, d)."""

    @abc.abstractmethod
    def gradient_range(self, bounds: Bounds, reach: Reach, adjacency: Adjacency, dimension: int) -> Ends:
        """(m, M), each of shape (d,): every record's gradient lies between them for every θ ∈ Θ.

        Under replace they omit terms that all records share at the same θ, since an exchange cancels them.
        """

    @abc.abstractmethod
    def value_range(self, bounds: Bounds, reach: Reach, dimension: int) -> Interval:
        """Returns two numbers between which ℓ of every record within the bounds lies for every θ ∈ Θ."""

    def gradient_range_at(self, theta: Vector, bounds: Bounds, adjacency: Adjacency) -> Ends:
        """`gradient_range` at this θ alone."""
        return self.gradient_range(bounds, SinglePoint(theta), adjacency, theta.shape[0])

    def range_depends_on_theta(self, adjacency: Adjacency) -> bool:
        """Tells whether `gradient_range_at` varies with θ; it does not if gradients are bounded for every θ."""
        return self.needs_response_bounds

    def score_range(self, bounds: Bounds, reach: Reach, adjacency: Adjacency, dimension: int) -> Interval:
        """[a, b] ∋ s where one record's gradient is s·x; under replace without its sign and without shared terms.

        Raises TypeError if the gradient has another form, for which `why_no_points` has the reason.
        """
        raise TypeError(f"one record's gradient under {type(self).__name__} is no multiple of its features")

    def why_no_points(self, adjacency: Adjacency) -> str | None:
        """Says why the extreme points of all changes of ∇ℓ_n are not listed; None if `score_range` lists them."""
        return (
            f"the changes of {type(self).__name__} have no known extreme points: norm=None takes the box around them "
            "as the ball"
        )

    def describe_gradient(self, adjacency: Adjacency, score: tuple[float, float] | None) -> tuple[str, str]:
        """Describes in words one record's gradient, and how far neighbours' gradients are apart in coordinate j.

        **Arguments:** `score`: `score_range` in numbers, where there is one.
        """
        most = "w_j = M_j - m_j" if adjacency is Adjacency.REPLACE else "w_j = max(|m_j|, |M_j|)"
        if score is None:
            return "in [m_j, M_j] in coordinate j;", most
        what = f"s*x with the score s in [{score[0]:.6g}, {score[1]:.6g}], so its coordinate j lies in [m_j, M_j] by"
        return f"{what} the bounds of x;", most

    def why_no_ridge(self) -> str | None:
        """Says why no ridge makes objective perturbation with this loss private; None if one does."""
        return (
            f"one record's Hessian under {type(self).__name__} is not of rank one and bounded, so that no ridge makes "
            "up for it. Take KNG"
        )

    def proved_instead(self, dimension: int, is_uniform: bool) -> str | None:
        """A mechanism beside KNG that is proved and estimates the same or nearly so, in words; None if there is none.

        **Arguments:** `dimension`: d. `is_uniform`: whether Θ has the uniform base measure.
        """
        return None

    def gradient_is_piecewise_constant(self, dimension: int) -> bool:
        """Tells whether ∇ℓ_n takes finitely many values, so that its derivatives say nothing."""
        return self.score_is_piecewise_constant

    def response_interval(self, bounds: Bounds) -> Any:
        """The interval that every response lies in, None if there is none."""
        return None if bounds.y_lower is None else (bounds.y_lower, bounds.y_upper)

    def minimise(self, records: Rows) -> Float[np.ndarray, " dimension"]:
        """argmin ℓ_n over all of R^d, by SciPy's trust-region Newton method from 0. Private."""
        with float64():
            result = scipy.optimize.minimize(
                lambda theta: tuple(map(np.asarray, _value_and_gradient(theta, self, records))),
                np.zeros(records.dimension),
                jac=True,
                hess=lambda theta: np.asarray(_hessian(theta, self, records)),
                method="trust-exact",
                options={"maxiter": 500, "gtol": 1e-9 * records.num_records},
            )
        return result.x

    @property
    def reads_text(self) -> bool:
        """Tells whether the declared levels make responses text."""
        return False

    def responses(self, column: Any) -> Float[np.ndarray, " records"]:
        """Reads each cell by itself as a response that the loss models; NaN where a cell has no meaning for it."""
        return cells.numbers(column)

    def check_bounds(self, bounds: Bounds) -> None:
        """Raises ValueError where public bounds would change what responses mean, or a policy names no response."""
        policy = bounds.missing_y
        if policy is not None and policy != DROP and np.isnan(self.responses([policy])).any():
            raise ValueError(f"missing_y = {policy!r} is no response of {type(self).__name__}")

    def summarise(self, records: Rows) -> Data:
        """The least that the loss needs of the records: a sufficient statistic where there is one."""
        return records

    def sums(self, records: Rows) -> ExactSums:
        """The sums of a sufficient statistic, exactly; raises UnfitType for a loss that has none."""
        raise UnfitType(f"{type(self).__name__} has no sufficient statistic: take a mechanism of the moments")


def require_rows(data: Data) -> Rows:
    """The data if they are records, with weights or without; raises TypeError for a summary."""
    return data if isinstance(data, WeightedRecords) else require_records(data)


def require_records(data: Data) -> Records:
    """The data if they are records without weights; raises TypeError for anything else."""
    if not isinstance(data, Records):
        raise TypeError(
            f"this loss needs the records, not a {type(data).__name__}: prepare the data with a mechanism of this loss"
        )
    return data


@Compiled
def _value_and_gradient(theta, loss, data):
    return loss.value(theta, data), loss.gradient(theta, data)


@Compiled
def _hessian(theta, loss, data):
    return loss.hessian(theta, data)
