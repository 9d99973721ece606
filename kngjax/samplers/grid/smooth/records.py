"""Sums over the records of the pseudo-Huber loss, in balls that contain what real arithmetic gives.

With r_i = y_i - x_i'θ these are G(θ) = Σ s(r_i)x_i for s(r) = -r/√(1 + (r/k)²), and H(θ) = Σ w(r_i)x_i x_i' for
w(r) = (1 + (r/k)²)^(-3/2): float64 computes them in one pass with bounds of all of its errors, and FLINT
with as many digits as are asked for.

*Errors in float64.* Each of +, -, ·, / and √ is right up to a factor 1 + δ with |δ| ≤ u = 2^-53, or, below 2^-1022, up
to 2^-1074. A sum of m products, in any order and fused or not, errs by no more than γ_m Σ|products|,
γ_j = ju/(1 - ju) (Higham 2002, section 3.1); blocks of m rows, then their b sums, make γ_{m+b}. So for the computed r̂,

    |r̂ - r| ≤ e₀ + 1.01u|r̂|,   e₀ = γ_d Σ_j max_i|x_ij|·|θ_j|.

The score has slope w ≤ 1, and |r|w(r) ≤ 2k/√27, so that |s(r̂) - s(r)| ≤ e₀ + uk; it is computed by four operations
from r̂, of which the error is at most 5uk. |d log w/dr| is at most 3/(2k), and at most 3/|r|, so that r̂ changes w by no
more than a factor exp(1.5e₀/k + 4u), and ten roundings follow. Last, |Σ v_i x_ij x_il| ≤ √(Σv_i x_ij²·Σv_i x_il²) for
v_i ≥ 0, so that an error of every term by a factor 1 ± ε is one of ε·√(S_jj S_ll) in the entry S_jl of a sum of such.

Products below 2^-1022 lose at most 2^-1074 each, which is added for more of them than there are records. Residuals are
cut at 10^90·k, so that no square overflows; a θ that is no float64 number makes balls that contain everything.
"""

import math
from typing import NamedTuple

import numpy as np
from flint import arb, arb_mat
from jaxtyping import Float

from kngjax.core.owner_only import OwnerOnly, owner_only

# Unit roundoff. Slack: relative, more than the dozen roundings in which bounds themselves are computed.
ROUNDOFF, UPWARD = 2.0**-53, 1.0 + 2.0**-40
# Above max |ρ'''|·k = (3/2)(4/5)^(5/2).
THIRD = 0.85866
# Residuals beyond so many k count as that: there w is below 1e-269, and s within 1e-179·k of its limit.
_FARTHEST, _NO_WEIGHT = 1e90, 1e-260
# More than what is lost below 2^-1022 of some thousand numbers, each times no more than 2^200.
_UNDERFLOW = 2.0**-800
_ROWS_OF_PRODUCTS = 8192


def sum_error(terms: int) -> float:
    """γ_j with some slack."""
    return terms * ROUNDOFF / (1.0 - terms * ROUNDOFF) * UPWARD


class Evaluation(NamedTuple):
    """Balls that contain G(θ) and H(θ). Private."""

    gradient: list[arb]
    hessian: arb_mat | None

    def __repr__(self) -> str:
        return "<Evaluation; OWNER ONLY>"


class Residuals(NamedTuple):
    """r̂, |r| rounded up, e₀, and w with its relative error. Private."""

    value: np.ndarray
    largest: np.ndarray
    error: float
    weights: np.ndarray
    weight_error: float

    def __repr__(self) -> str:
        return "<Residuals; OWNER ONLY>"


@owner_only
class PseudoHuberRecords(OwnerOnly):
    """Records in blocks of rows, filled up with zeros, which add nothing to a sum. Private.

    **Arguments:** `x`: shape (n, d). `y`: shape (n,). `threshold`: k. All within 2^±200 of 1, or 0; but y is any.
    `largest`: max_i |x_ij|. `column_sums`: Σ_i |x_ij|, rounded up.
    """

    x: np.ndarray
    y: np.ndarray
    threshold: float
    largest: Float[np.ndarray, " dimension"]
    column_sums: Float[np.ndarray, " dimension"]

    @classmethod
    def of(cls, x: Float[np.ndarray, "records dimension"], y: Float[np.ndarray, " records"], threshold: float):
        """**Arguments:** as above."""
        count, dimension = x.shape
        rows = 1 << max(6, math.ceil(math.log2(max(count, 1)) / 2))
        blocks = max(1, -(-count // rows))
        wide = np.zeros((blocks * rows, dimension))
        wide[:count] = x
        tall = np.zeros(blocks * rows)
        tall[:count] = y
        sizes = np.abs(wide)
        sums = sizes.sum(axis=0) * (1.0 + 2 * sum_error(blocks * rows))
        table, responses = wide.reshape(blocks, rows, dimension), tall.reshape(blocks, rows)
        return cls(table, responses, float(threshold), sizes.max(axis=0), sums)

    @property
    def dimension(self) -> int:
        return self.x.shape[2]

    @property
    def sum_error(self) -> float:
        """γ of a sum over all rows of products of up to three numbers."""
        return sum_error(self.x.shape[0] + self.x.shape[1] + 4)

    def residuals(self, theta: Float[np.ndarray, " dimension"]) -> Residuals:
        """At one θ."""
        k = self.threshold
        value = self.y - self.x @ theta
        error = (sum_error(self.dimension) * float(self.largest @ np.abs(theta)) + _UNDERFLOW) * UPWARD
        value = np.clip(value, -_FARTHEST * k, _FARTHEST * k)
        squares = 1.0 + np.square(value / k)
        weights = 1.0 / (squares * np.sqrt(squares))
        change = 1.5 * error / k * UPWARD + 4 * ROUNDOFF
        # e^c - 1 is at most c + c² for c ≤ 1; beyond, nothing is known of w.
        weight_error = (change + change**2) * UPWARD + 12 * ROUNDOFF if change <= 1.0 else math.inf
        return Residuals(value, (np.abs(value) * (1.0 + 4 * ROUNDOFF) + error) * UPWARD, error, weights, weight_error)

    def scores(self, residuals: Residuals) -> tuple[np.ndarray, float]:
        """s of each record, and a bound of the error of any of them."""
        value, k = residuals.value, self.threshold
        error = (residuals.error + 7 * ROUNDOFF * k) * UPWARD
        return -value / np.sqrt(1.0 + np.square(value / k)), error

    def evaluate(self, theta: Float[np.ndarray, " dimension"], with_hessian: bool = True) -> Evaluation:
        """G, and H, by float64."""
        residuals = self.residuals(theta)
        scores, error = self.scores(residuals)
        gradient = (scores[:, None, :] @ self.x).sum(axis=(0, 1))
        errors = (error + self.sum_error * self.threshold * (1.0 + 8 * ROUNDOFF)) * self.column_sums * UPWARD
        balls = [arb(float(g), float(e) + _UNDERFLOW) for g, e in zip(gradient, errors, strict=True)]
        if not with_hessian:
            return Evaluation(balls, None)
        return Evaluation(balls, self.weighted_gram(residuals.weights, residuals.weight_error))

    def weighted_gram(self, weights: np.ndarray, relative: float = 0.0) -> arb_mat:
        """Σ v_i x_i x_i' for v_i ≥ 0 that are these up to such a relative error, in balls."""
        gram = (np.swapaxes(self.x * weights[:, :, None], 1, 2) @ self.x).sum(axis=0)
        return self.in_balls(gram, self.sum_error, relative)

    def in_balls(self, gram: np.ndarray, summing: float, relative: float) -> arb_mat:
        """Balls about a computed sum of v_i x_i x_i', v_i ≥ 0, by the errors of its summation and of the v_i."""
        sizes, count = np.sqrt(np.diagonal(gram)) * UPWARD, self.x.shape[0] * self.x.shape[1]
        tiny = _NO_WEIGHT * count * float(np.max(self.largest, initial=0.0)) ** 2 + _UNDERFLOW * count
        share = (summing + relative * (1.0 + 2.0 * summing)) * (1.0 + 2.0 * summing)
        radii = (share * np.outer(sizes, sizes) + tiny) * UPWARD
        dimension = self.dimension
        return arb_mat(
            dimension, dimension, [arb(float(g), float(e)) for g, e in zip(gram.ravel(), radii.ravel(), strict=True)]
        )

    def grams(self, weights: "list[np.ndarray]") -> list[arb_mat]:
        """Σ v_i x_i x_i' for several exact v ≥ 0, by one product of matrices with the products x_ij x_il."""
        dimension = self.dimension
        rows, columns = np.triu_indices(dimension)
        flat, many = self.x.reshape(-1, dimension), np.stack([v.ravel() for v in weights], axis=1)
        packed = np.zeros((rows.size, many.shape[1]))
        blocks = range(0, len(flat), _ROWS_OF_PRODUCTS)
        for start in blocks:
            x = flat[start : start + _ROWS_OF_PRODUCTS].T.copy()
            packed += (x[rows] * x[columns]) @ many[start : start + _ROWS_OF_PRODUCTS]
        found, summing = np.zeros((dimension, dimension)), sum_error(_ROWS_OF_PRODUCTS + len(blocks) + 4)
        made = []
        for column in packed.T:
            found[rows, columns] = found[columns, rows] = column
            made.append(self.in_balls(found, summing, 0.0))
        return made

    def evaluate_in_balls(self, theta: list[arb], with_hessian: bool = True) -> Evaluation:
        """G and H with all digits that are set, of a θ that balls contain."""
        dimension, k = self.dimension, arb(self.threshold)
        gradient, hessian = arb_mat(dimension, 1), arb_mat(dimension, dimension)
        column = arb_mat(dimension, 1, theta)
        for x, y in zip(self.x, self.y, strict=True):
            table = arb_mat(x.tolist())
            scores, weights = [], []
            for response, predictor in zip(y.tolist(), (table * column).entries(), strict=True):
                residual = response - predictor
                square = 1 + (residual / k) ** 2
                root = square.rsqrt()
                scores.append(-residual * root)
                weights.append(root / square)
            turned = table.transpose()
            gradient += turned * arb_mat(len(scores), 1, scores)
            if with_hessian:
                scaled = [[v * one for one in row] for v, row in zip(weights, table.tolist(), strict=True)]
                hessian += turned * arb_mat(scaled)
        return Evaluation(gradient.entries(), hessian if with_hessian else None)
