"""Sums over the records of a smooth loss, in balls that contain what real arithmetic gives.

With η_i = x_i'θ these are G(θ) = Σ s(η_i, y_i)x_i and H(θ) = Σ w(η_i, y_i)x_i x_i' for the score s of the loss and its
slope w: float64 computes them in one pass with bounds of all of its errors, and FLINT with as many digits as are asked
for.

*Errors in float64.* Each of +, -, ·, / and √ is right up to a factor 1 + δ with |δ| ≤ u = 2^-53, or, below 2^-1022, up
to 2^-1074. A sum of m products, in any order and fused or not, errs by no more than γ_m Σ|products|,
γ_j = ju/(1 - ju) (Higham 2002, section 3.1); blocks of m rows, then their b sums, make γ_{m+b}. So for the computed η̂,

    |η̂ - η| ≤ e₀ = γ_d Σ_j max_i|x_ij|·|θ_j|.

What that and its own roundings make of s and w is what `AbstractSmoothScore` says. Last, |Σ v_i x_ij x_il| ≤
√(Σv_i x_ij²·Σv_i x_il²) for v_i ≥ 0, so that an error of every term by a factor 1 ± ε is one of ε·√(S_jj S_ll) in the
entry S_jl of a sum of such.

Products below 2^-1022 lose at most 2^-1074 each, which is added for more of them than there are records. A θ that is no
float64 number makes balls that contain everything.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from flint import arb, arb_mat
from jaxtyping import Float

from kngjax.core.owner_only import OwnerOnly, owner_only
from kngjax.core.verified import sum_error
from kngjax.losses.verified_scores import NO_WEIGHT, AbstractSmoothScore, ScoresAndWeights

# Slack: relative, more than the dozen roundings in which bounds themselves are computed.
UPWARD = 1.0 + 2.0**-40
# More than what is lost below 2^-1022 of some thousand numbers, each times no more than 2^200.
_UNDERFLOW = 2.0**-800
# So many records are in a processor's cache with what is made of them.
_ROWS_OF_PRODUCTS, _ROWS_OF_SCORES = 2048, 16_384


class Evaluation(NamedTuple):
    """Balls that contain G(θ) and H(θ). Private."""

    gradient: list[arb]
    hessian: arb_mat | None

    def __repr__(self) -> str:
        return "<Evaluation; OWNER ONLY>"


@owner_only
class ShellRecords(OwnerOnly):
    """Records in blocks of rows, filled up with zeros, which add nothing to a sum. Private.

    **Arguments:** `x`: shape (n, d). `y`: shape (n,). `score`: s and w. All that they are made of lies within 2^±200 of
    1, or is 0; but y is any. `largest`: max_i |x_ij|. `column_sums`: Σ_i |x_ij|, rounded up.
    """

    x: np.ndarray
    y: np.ndarray
    score: AbstractSmoothScore
    largest: Float[np.ndarray, " dimension"]
    column_sums: Float[np.ndarray, " dimension"]

    @classmethod
    def of(
        cls,
        x: Float[np.ndarray, "records dimension"],
        y: Float[np.ndarray, " records"],
        score: AbstractSmoothScore,
    ):
        """Fills records up to blocks of rows. **Arguments:** as above."""
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
        return cls(table, responses, score, sizes.max(axis=0), sums)

    @property
    def dimension(self) -> int:
        return self.x.shape[2]

    @property
    def count(self) -> int:
        """Counts the rows, those of zeros included."""
        return self.y.size

    @property
    def sum_error(self) -> float:
        """γ of a sum over all rows of products of up to three numbers."""
        return sum_error(self.x.shape[0] + self.x.shape[1] + 4)

    def with_score(self, score: AbstractSmoothScore) -> "ShellRecords":
        """Returns these records with the score of another loss."""
        return ShellRecords(self.x, self.y, score, self.largest, self.column_sums)

    def some(self, most: int) -> "ShellRecords":
        """Selects about so many records, or all that there are."""
        step = self.count // most
        if step < 2:
            return self
        return ShellRecords.of(self.x.reshape(-1, self.dimension)[::step], self.y.ravel()[::step], self.score)

    def predictors(self, theta: Float[np.ndarray, " dimension"]) -> tuple[np.ndarray, float]:
        """η̂ and e₀."""
        reach = float(self.largest @ np.abs(theta))
        return self.x @ theta, (sum_error(self.dimension) * reach + _UNDERFLOW) * UPWARD

    def at(self, predictor: np.ndarray, error: float) -> ScoresAndWeights:
        """s and w for every η at most `error` away from these."""
        step = max(1, _ROWS_OF_SCORES // self.y.shape[1])
        starts = range(0, len(self.y), step)
        parts = [self.score.at(predictor[k : k + step], error, self.y[k : k + step]) for k in starts]
        scores, errors, weights, relative = zip(*parts, strict=True)
        largest = np.max([np.max(one) for one in errors])
        return ScoresAndWeights(np.concatenate(scores), largest, np.concatenate(weights), max(relative))

    def evaluate(
        self, theta: Float[np.ndarray, " dimension"], with_hessian: bool = True, moved: float = 0.0
    ) -> Evaluation:
        """G, and H, by float64, at every point whose predictors differ by no more than `moved` from those of θ."""
        predictor, error = self.predictors(theta)
        return self.sums(self.at(predictor, (error + moved) * UPWARD), with_hessian)

    def sums(self, found: ScoresAndWeights, with_hessian: bool = True) -> Evaluation:
        """G, and H, of these scores and weights."""
        score = found.score
        gradient = (score[:, None, :] @ self.x).sum(axis=(0, 1))
        each = float(found.score_error) + self.sum_error * float(np.max(np.abs(score)))
        balls = [_ball(g, e) for g, e in zip(gradient, each * self.column_sums * UPWARD + _UNDERFLOW, strict=True)]
        return Evaluation(balls, self.weighted_gram(found.weight, found.weight_error) if with_hessian else None)

    def weighted_gram(self, weights: np.ndarray, relative: float = 0.0) -> arb_mat:
        """Σ v_i x_i x_i' for v_i ≥ 0 that are these up to such a relative error and `NO_WEIGHT`, in balls."""
        gram = (np.swapaxes(self.x * weights[:, :, None], 1, 2) @ self.x).sum(axis=0)
        return self.in_balls(gram, self.sum_error, relative)

    def in_balls(self, gram: np.ndarray, summing: float, relative: float) -> arb_mat:
        """Balls about a computed sum of v_i x_i x_i', v_i ≥ 0, by the errors of its summation and of the v_i."""
        sizes = np.sqrt(np.diagonal(gram)) * UPWARD
        tiny = NO_WEIGHT * self.count * float(np.max(self.largest, initial=0.0)) ** 2 + _UNDERFLOW * self.count
        share = (summing + relative * (1.0 + 2.0 * summing)) * (1.0 + 2.0 * summing)
        radii = (share * np.outer(sizes, sizes) + tiny) * UPWARD
        dimension = self.dimension
        return arb_mat(dimension, dimension, [_ball(g, e) for g, e in zip(gram.ravel(), radii.ravel(), strict=True)])

    def grams(self, number: int, weights: Callable[[slice], list[np.ndarray]]) -> list[arb_mat]:
        """Σ v_i x_i x_i' for so many exact v ≥ 0, by one product of matrices with the products x_ij x_il.

        **Arguments:** `weights`: the v of a part of the records, of which there is one long list.
        """
        dimension = self.dimension
        rows, columns = np.triu_indices(dimension)
        flat, packed = self.x.reshape(-1, dimension), np.zeros((rows.size, number))
        starts = range(0, len(flat), _ROWS_OF_PRODUCTS)
        for start in starts:
            part = slice(start, start + _ROWS_OF_PRODUCTS)
            x = flat[part].T.copy()
            packed += (x[rows] * x[columns]) @ np.stack(weights(part), axis=1)
        found, summing = np.zeros((dimension, dimension)), sum_error(_ROWS_OF_PRODUCTS + len(starts) + 4)
        made = []
        for column in packed.T:
            found[rows, columns] = found[columns, rows] = column
            made.append(self.in_balls(found, summing, 0.0))
        return made

    def evaluate_in_balls(self, theta: list[arb], with_hessian: bool = True) -> Evaluation:
        """G and H with all digits that are set, of a θ that balls contain."""
        dimension = self.dimension
        gradient, hessian = arb_mat(dimension, 1), arb_mat(dimension, dimension)
        column = arb_mat(dimension, 1, theta)
        for x, y in zip(self.x, self.y, strict=True):
            table = arb_mat(x.tolist())
            pairs = zip((table * column).entries(), y.tolist(), strict=True)
            scores, weights = zip(*(self.score.in_balls(one, arb(response)) for one, response in pairs), strict=True)
            turned = table.transpose()
            gradient += turned * arb_mat(len(scores), 1, scores)
            if with_hessian:
                scaled = [[v * one for one in row] for v, row in zip(weights, table.tolist(), strict=True)]
                hessian += turned * arb_mat(scaled)
        return Evaluation(gradient.entries(), hessian if with_hessian else None)


def _ball(middle: float, radius: float) -> arb:
    """Makes a ball about a float64 number; NaN where either is none."""
    return arb(float(middle), float(radius)) if math.isfinite(middle) and math.isfinite(radius) else arb.nan()
