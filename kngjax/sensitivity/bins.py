"""Δ of the sums of features in the bins between curves, whatever the curves are.

m curves at θ = (θ_1, ..., θ_m) cut the line at each x into m + 1 bins. With v_(1) ≤ ... ≤ v_(m) the values x'θ_1, ...,
x'θ_m in increasing order, v_(0) = -∞ and v_(m+1) = ∞, a record's share of bin k = 0, ..., m is

    p_k = F((v_(k+1) - y)/h) - F((v_(k) - y)/h),    without smoothing 1{v_(k) < y ≤ v_(k+1)}: k curves lie below y

F is nondecreasing, from 0 to 1, so p_k ≥ 0 and Σ_k p_k = 1: a partition of unity, for every θ, x and y and every public
h, as the values are sorted before they are subtracted. The score of (θ, T), T ∈ R^d, is with H_k = Σ_i p_ik·x_i

    s(θ, T) = Σ_k ‖H_k(θ) - π_k T‖_K,    π_k = τ_{k+1} - τ_k, τ_0 = 0 and τ_{m+1} = 1

**Theorem.** With B = max ‖x‖_K over the public polytope of the features, s changes between neighbours by at most

    add_remove:  Δ = B        replace:  Δ = 2B

at every (θ, T). **Proof.** T and π are none of the data. A record more adds p_k·x to H_k: Σ_k ‖p_k·x‖ = Σ_k p_k·‖x‖ =
‖x‖ ≤ B, and by the triangle inequality s moves by no more. An exchange is one less and one more. A norm is convex, so
that its maximum over a polytope is at a vertex. ∎ Both are attained: by a record at that vertex in a bin that has more
than π_kT in its direction, and where such a one is exchanged for one of that length in a bin that has less in its own.

Three ways to lose this: T = Σ_i x_i, which a record moves in every bin, by up to 2B(1 - π_k) in all for one more;
differences F((x'θ_{k+1} - y)/h) - F((x'θ_k - y)/h) without sorting, of which some are negative where curves cross, so
that Σ_k |p_k| exceeds 1; and B over points that do not span the features, as those on a curve.
"""

import numpy as np
from jaxtyping import Float

from kngjax.accounting.guarantees import Adjacency
from kngjax.geometry.abstract_norms import AbstractNorm
from kngjax.geometry.norms import WeightedLInf
from kngjax.sensitivity.gradients import Sensitivity

# What a norm of few numbers may lose to rounding, and more.
_OUTWARD = 1.0 + 1e-12


def bin_norm(vertices: Float[np.ndarray, "vertices dimension"]) -> WeightedLInf:
    """max_j |v_j|/w_j with w_j the largest |x_j|: of the box about the features, so that B = 1.

    **Arguments:** `vertices`: of the public polytope of the features. Raises ValueError for a column of zeros alone.
    """
    widths = np.max(np.abs(vertices), axis=0)
    if not np.all(widths > 0.0):
        raise ValueError("a column that the bounds hold at 0 has no coefficient to estimate: leave it out")
    return WeightedLInf(widths)


def bin_sensitivity(
    norm: AbstractNorm, vertices: Float[np.ndarray, "vertices dimension"], adjacency: Adjacency
) -> Sensitivity:
    """Δ of Σ_k ‖H_k - π_k T‖_K with its derivation: B, or 2B under replace.

    **Arguments:** `norm`: ‖·‖_K. `vertices`: of the public polytope of the features. In float64.
    """
    largest = max(float(norm(vertex)) for vertex in vertices)
    if not isinstance(norm, WeightedLInf) or largest != 1.0:
        largest *= _OUTWARD
    exchanged = adjacency is Adjacency.REPLACE
    value = 2.0 * largest if exchanged else largest
    records = (
        "an exchanged record leaves its bins and enters others" if exchanged else "one record more enters its bins"
    )
    return Sensitivity(
        value,
        f"bins are shares of each record that add up to 1, whatever the curves are, and {records}: the sums in them "
        f"change by at most {'twice ' if exchanged else ''}the largest norm of a record's features, {largest:.6g}, "
        "together; the totals T are no function of the data.",
    )
