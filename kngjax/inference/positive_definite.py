"""Positive definite matrices given numbers of theirs that were released with noise, by a Gibbs sampler.

Released is r = h + N: the numbers of a matrix in a linear family, with noise of density proportional to e^(-ε‖N‖). With
a flat prior on positive definite matrices the posterior of h has density e^(-ε‖r - h‖) where H(h) is positive definite.
Whatever was released, draws are positive definite. All of it is public.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Integer

from kngjax.core.arrays import float64
from kngjax.inference.positive_definite_chains import MatrixTarget, Randoms, draw_numbers

# Of a start's eigenvalues in units of the guess.
_LEAST_SHARE = 0.02
# Of a start with unit diagonal.
_LEAST_EIGENVALUE = 1e-13
# Products, beyond which a program that is compiled quickly costs more than it saves.
_MUCH = 10**8


class MatrixFamily(NamedTuple):
    """Holds the family H(h) = B + Σ_c h_c (u_c u_c' - v_c v_c'). **Arguments:** `base`: B."""

    u: Float[np.ndarray, "numbers dimension"]
    v: Float[np.ndarray, "numbers dimension"]
    base: Float[np.ndarray, "dimension dimension"]

    def matrices(self, numbers: Float[np.ndarray, "*draws numbers"]) -> Float[np.ndarray, "*draws dimension dimension"]:
        """Returns H(h)."""
        made = self.base + np.tensordot(numbers, _directions(self.u + self.v, self.u - self.v), axes=1)
        return 0.5 * (made + np.swapaxes(made, -1, -2))


class BlockNoiseLaw(NamedTuple):
    """Holds the noise of density proportional to exp(-ε·max_b ‖N_b‖), over blocks b.

    The norm of a block is Σ_j |N_j|/w_j or, of an exchange, the larger of Σ_j (N_j/w_j)⁺ and Σ_j (N_j/w_j)⁻.

    **Arguments:** `block`: the number of the block of each number, from 0 on. `is_exchange`: whether that block is an
    exchange. `width`: w.
    """

    block: Integer[np.ndarray, " numbers"]
    is_exchange: Bool[np.ndarray, " numbers"]
    width: Float[np.ndarray, " numbers"]
    epsilon: float


class ChainLengths(NamedTuple):
    """Holds how many chains there are; of each the first periods of `thinning` sweeps are dropped, and others kept."""

    chains: int = 20
    first: int = 20
    kept: int = 50
    thinning: int = 5


USUAL = ChainLengths()


def start_between(
    released: Float[np.ndarray, " numbers"], guess: Float[np.ndarray, " numbers"], family: MatrixFamily
) -> Float[np.ndarray, " numbers"]:
    """Blends (1 - a)r + ag with the least a for which H is at least .02·G, for a positive definite guess G = H(g).

    Raises ValueError where G is not positive definite.
    """
    wanted = family.matrices(guess)
    if not _is_positive_definite(wanted):
        raise ValueError("guess must be the numbers of a positive definite matrix")
    root = np.linalg.cholesky(wanted)
    half = np.linalg.solve(root, family.matrices(released))
    least = np.linalg.eigvalsh(np.linalg.solve(root, half.T))[0]
    # Eigenvalues of the blend are linear in a.
    share = 1.0 if least >= _LEAST_SHARE else (1.0 - _LEAST_SHARE) / (1.0 - least)
    blend = share * released + (1.0 - share) * guess
    # Where others are 1e16 times as large, the least eigenvalue has no digit that is right.
    return blend if _is_positive_definite(family.matrices(blend)) else guess


def matrices_given(
    released: Float[np.ndarray, " numbers"],
    family: MatrixFamily,
    noise: BlockNoiseLaw,
    start: Float[np.ndarray, " numbers"],
    seed: int,
    lengths: ChainLengths = USUAL,
) -> Float[np.ndarray, "draws dimension dimension"]:
    """Draws positive definite matrices given their released numbers: chain after chain, `kept` of each.

    The same arguments give the same draws. Units of the rows of H and of its numbers are no matter but for rounding.

    **Arguments:** `start`: numbers of a positive definite matrix, from `start_between`.

    Raises ValueError where the matrix of the start is not positive definite.
    """
    if not _is_positive_definite(family.matrices(start)):
        raise ValueError("start must be the numbers of a positive definite matrix")
    # The noise has width and ε of 1, and the start a diagonal of about 1: by powers of two, without rounding.
    rates, diagonal = noise.epsilon / noise.width, np.diagonal(family.matrices(start))
    scale = np.exp2(-np.round(0.5 * np.log2(diagonal)))
    p, q = (scale / np.sqrt(rates)[:, None] * part for part in (family.u + family.v, family.u - family.v))
    exchanges = np.zeros(noise.block.max() + 1, bool)
    exchanges[noise.block] = noise.is_exchange
    base = family.base * np.outer(scale, scale)
    target = MatrixTarget(p, q, base, _directions(p, q), noise.block, exchanges, rates * released)

    periods, generator = lengths.first + lengths.kept, np.random.default_rng(seed)
    sweeps = periods * lengths.thinning
    uniform = generator.random((sweeps, len(released), lengths.chains))
    acceptance, normal = generator.random(uniform[:, 0].shape), generator.standard_normal(uniform[:, 0].shape)
    run = draw_numbers.plain if uniform.size * base.size > _MUCH else draw_numbers
    with float64():
        drawn = np.asarray(run(target, rates * start, Randoms(uniform, acceptance, normal), periods))
    return family.matrices(np.moveaxis(drawn[lengths.first :], -1, 0).reshape(-1, len(released)) / rates)


def _directions(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Returns (pq' + qp')/2, which is uu' - vv' for p = u + v and q = u - v."""
    products = p[:, :, None] * q[:, None]
    return 0.5 * (products + np.swapaxes(products, 1, 2))


def _is_positive_definite(matrix: np.ndarray) -> bool:
    """Tells whether the matrix, scaled to a unit diagonal, is positive definite by more than rounding."""
    diagonal = np.diagonal(matrix)
    if not (np.all(np.isfinite(matrix)) and np.all(diagonal > 0.0)):
        return False
    scale = 1.0 / np.sqrt(diagonal)
    return bool(np.linalg.eigvalsh(matrix * np.outer(scale, scale))[0] > _LEAST_EIGENVALUE)
