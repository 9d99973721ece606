"""The joint law of m private quantiles: exact draws on the host from few gaps, and the normaliser under jit and vmap.

n sorted values cut [lo, hi] into n + 1 gaps of lengths g_0, ..., g_n; between values i and i + 1 of them #{y ≤ θ} = i.
So the density exp(-c Σ_{j=1}^{m+1} |i_j - i_{j-1} - n(τ_j - τ_{j-1})|) on lo ≤ θ_1 ≤ ... ≤ θ_m ≤ hi, with i_0 = 0 and
i_{m+1} = n, depends on the quantiles' gaps i_1 ≤ ... ≤ i_m alone, and k of them share a gap in a region of volume
g^k/k!. With x_j(i) = i - nτ_j the score is Σ |x_j(i_j) - x_{j-1}(i_{j-1})|: a chain in j, summed forwards and drawn
backwards (Gillenwater, Joseph and Kulesza 2021, who sum by the Fourier transform). What sums over the previous gap
i' < i the kernel splits into e^{-c x_j(i)}·e^{c x_{j-1}(i')} where x_{j-1}(i') ≤ x_j(i), a prefix sum, and the
reverse elsewhere, a sum over a window of fixed width. Windows are a suffix of one block and a prefix of the next (van
Herk 1992), so that nothing is ever subtracted. All sums are in log space.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, logsumexp
from jaxtyping import Array, Bool, Float, Int
from numpy import ndarray

from kngjax.core.arrays import ROWS_A_BLOCK, Scalar

# By so much less, in logarithms, is proposed what is not summed. Where gaps reach farther than one in so many of all
# numbers, all are summed.
_SPARE, _MANY = 20.0, 8

LogWeights = Float[ndarray, " gaps"]
Gaps = Int[ndarray, " draws"]
Uniforms = Float[ndarray, " draws"]


class JointLaw:
    """The forward sums for given data, over the gaps at most `reach` ranks from where quantiles are asked for.

    Each quantile has its own run of these gaps, and runs that meet are joined. Gaps between runs are left out, and
    centres move with them, so all x_j stay the same. Outside the runs some |x_j| ≥ r, so the score is at least 2r and
    the mass is at most e^{-2cr}·(hi - lo)^m/m!. That mass is drawn by rejection from uniform points of the cone
    (`docs/proofs/quantiles.md`).

    **Arguments:** `edges`: lo, the sorted values, hi, shape (n + 2,). `tau`: shape (m,), increasing. `rate`: c > 0.
    `reach`: at least 1. Private.
    """

    def __init__(
        self,
        edges: Float[ndarray, " edges"],
        tau: Float[ndarray, " quantiles"],
        rate: float,
        reach: float = math.inf,
    ):
        self.edges, self.tau, self.rate, self.num_quantiles = edges, tau, rate, tau.size
        last_gap = edges.size - 2
        centres = last_gap * tau
        # The first and the last gap of each quantile's run, and r, the least |x_j| in other gaps.
        lows = np.ceil(np.maximum(centres - reach, 0.0)).astype(np.int64)
        highs = np.floor(np.minimum(centres + reach, last_gap)).astype(np.int64)
        is_new = lows > np.append(-1, highs[:-1] + 1)
        self.runs = np.cumsum(is_new) - 1
        self.lows, self.highs = lows[is_new][self.runs], highs[np.append(is_new[1:], True)][self.runs]
        below = np.where(self.lows > 0, centres - self.lows + 1.0, math.inf)
        above = np.where(self.highs < last_gap, self.highs + 1.0 - centres, math.inf)
        self.least = float(np.minimum(below, above).min())
        numbers = [np.arange(*ends) for ends in zip(lows[is_new], self.highs[is_new] + 1, strict=True)]
        self.run_of_gap = np.repeat(np.arange(len(numbers)), list(map(len, numbers)))
        self.numbers = np.concatenate(numbers)
        self.num_gaps = self.numbers.size
        # The centre nτ_j of x_j among the gaps; the first quantile's predecessor is i_0 = 0 with τ_0 = 0.
        self.centres = centres - self.lows + np.searchsorted(self.run_of_gap, self.runs)
        with np.errstate(divide="ignore"):
            self.log_lengths = np.log(edges[self.numbers + 1] - edges[self.numbers])
        self.log_normaliser = -math.inf
        if np.all(edges[self.lows] < edges[self.highs + 1]):
            self._sum()

    def _sum(self) -> None:
        # entries[j]: quantile j in a gap of its own so far, summed over all gaps of those before it.
        self.entries = [self._own(0) - self.rate * np.abs(self._positions(0))]
        for level in range(1, self.num_quantiles):
            self.entries.append(self._own(level) + self._steps(level).log_sums())
        last = self._arrivals(self.num_quantiles - 1)
        last -= self.rate * np.abs(self._positions(self.num_quantiles - 1))
        top = np.max(last)
        self.cumulative = accumulate(np.add, 0.0, np.exp(last - top))
        self.log_normaliser = float(top + np.log(self.cumulative[-1]))

    @classmethod
    def near(cls, edges: Float[ndarray, " edges"], tau: Float[ndarray, " quantiles"], rate: float) -> "JointLaw":
        """The sums over as few gaps as leave next to nothing to be proposed beyond; over all, if these are many."""
        reach = max((_SPARE + tau.size * math.log(edges.size)) / (2.0 * rate), 1.0)
        while reach < edges.size / _MANY:
            law = cls(edges, tau, rate, reach)
            if (excess := law.log_share + _SPARE) <= 0.0:
                return law
            reach = min(reach + excess / (2.0 * rate) + 1.0, 4.0 * reach)
        return cls(edges, tau, rate)

    @property
    def log_share(self) -> float:
        """The logarithm of what is proposed beyond the gaps over what is in them; -inf where they are all."""
        if math.isinf(self.least):
            return -math.inf
        volume = self.num_quantiles * math.log(self.edges[-1] - self.edges[0]) - math.lgamma(self.num_quantiles + 1.0)
        return volume - 2.0 * self.rate * self.least - self.log_normaliser

    def _own(self, level: int) -> LogWeights:
        """Log lengths of the gaps of a quantile's run."""
        return np.where(self.run_of_gap == self.runs[level], self.log_lengths, -np.inf)

    def _positions(self, level: int) -> LogWeights:
        """x_j(i) for every gap."""
        return np.arange(self.num_gaps) - self.centres[level]

    def _shared(self, level: int, first: int, gaps: slice | Gaps) -> LogWeights:
        """Log weights of quantiles `first` to `level` sharing a gap that the one before does not."""
        together = level - first
        if self.runs[first] != self.runs[level]:
            return np.full(self.log_lengths[gaps].shape, -np.inf)
        total = self.entries[first][gaps] - self.rate * (self.centres[level] - self.centres[first])
        if together:
            total += together * self.log_lengths[gaps]
            total -= math.lgamma(together + 2)
        return total

    def _arrivals(self, level: int) -> LogWeights:
        """Log weights of quantile `level` in each gap, summed over those before it."""
        total = self._shared(level, level, slice(None))
        for first in range(level):
            np.logaddexp(total, self._shared(level, first, slice(None)), out=total)
        return total

    def _steps(self, level: int) -> "_Steps":
        before, here = self.rate * self._positions(level - 1), self.rate * self._positions(level)
        return _Steps(self._arrivals(level - 1), before, here, _reach(self.centres[level] - self.centres[level - 1]))

    def draws(
        self, uniforms: Float[ndarray, "draws columns"]
    ) -> tuple[Float[ndarray, "draws quantiles"], Bool[ndarray, " draws"]]:
        """Independent draws, and which of them are kept; the others are to be drawn anew.

        **Arguments:** `uniforms`: in [0, 1), shape (draws, 4m + 2).
        """
        share, uniforms = uniforms[:, 0], uniforms[:, 1:]
        odds, found = math.exp(min(self.log_share, 700.0)), self._near_draws(uniforms)
        is_far = share * (1.0 + odds) < odds
        found[is_far], is_kept = self._far_draws(uniforms[is_far])
        is_far[is_far] = ~is_kept
        return found, ~is_far

    def _far_draws(self, uniforms):
        """Uniform points of the cone, and which are kept: beyond the gaps, with probability exp(-c(score - 2r))."""
        values, size = self.edges[1:-1], self.num_quantiles
        points = self.edges[0] + (self.edges[-1] - self.edges[0]) * np.sort(uniforms[:, :size], axis=1)
        gaps = np.searchsorted(values, points, side="right")
        ends = np.pad(gaps - values.size * self.tau, ((0, 0), (1, 1)))
        excess = np.sum(np.abs(np.diff(ends)), axis=1) - 2.0 * self.least
        is_beyond = np.any((gaps < self.lows) | (gaps > self.highs), axis=1)
        return points, is_beyond & (uniforms[:, size] < np.exp(-self.rate * excess))

    def _near_draws(self, uniforms):
        spare = iter(uniforms.T)
        gaps = np.empty((len(uniforms), self.num_quantiles), dtype=np.int64)
        gap = np.searchsorted(self.cumulative, next(spare) * self.cumulative[-1], side="right")
        # The first quantile of the run that shares the current gap.
        first = np.full(len(uniforms), self.num_quantiles)
        for level in reversed(range(self.num_quantiles)):
            fresh = np.flatnonzero(first == level + 1)
            runs = [self._shared(level, start, gap[fresh]) for start in range(level + 1)]
            first[fresh] = _choose(np.stack(runs), next(spare)[fresh])
            gaps[:, level] = gap
            part, position = next(spare), next(spare)
            leaving = np.flatnonzero(first == level)
            if level > 0 and leaving.size:
                gap[leaving] = self._steps(level).draw(gap[leaving], part[leaving], position[leaving])
        gaps = self.numbers[gaps]
        left, right = self.edges[gaps], self.edges[gaps + 1]
        within = np.stack(list(spare), axis=1)
        return np.sort(np.clip(left + within * (right - left), left, right), axis=1)


def _reach(distance: float) -> int:
    """The least number of gaps from one quantile to the next at which there are n(τ_j - τ_{j-1}) records between."""
    return max(math.ceil(distance), 1)


class _Steps:
    """Σ_{i' < i} exp(G(i') - |b(i) - a(i')|) for every gap i, and draws of i' given i.

    **Arguments:** `weights`: G, shape (n + 1,). `before`, `here`: a = c·x_{j-1} and b = c·x_j. `reach`: the least
    i - i' for which b(i) ≥ a(i').
    """

    def __init__(self, weights: LogWeights, before: LogWeights, here: LogWeights, reach: int):
        self.here, self.reach = here, reach
        self.far = accumulate(np.logaddexp, -np.inf, weights + before)
        # The window of gap i is i - width, ..., i - 1.
        self.width = reach - 1
        if self.width:
            size = -(-weights.size // self.width) * self.width
            near = np.full(size, -np.inf)
            near[: weights.size] = weights - before
            self.from_left = _accumulate_blocks(near, self.width)
            self.from_right = _accumulate_blocks(near[::-1], self.width)

    def log_sums(self) -> LogWeights:
        total = np.full(self.here.size, -np.inf)
        total[self.reach :] = self.far[: total.size - self.reach] - self.here[self.reach :]
        if not self.width:
            return total
        near = self.from_left[: total.size - 1].copy()
        suffixes = self.from_right[::-1][1 : total.size - self.width].copy()
        # A window that starts with a block is that block.
        suffixes[self.width - 1 :: self.width] = -np.inf
        np.logaddexp(near[self.width :], suffixes, out=near[self.width :])
        near += self.here[1:]
        np.logaddexp(total[1:], near, out=total[1:])
        return total

    def draw(self, gap: Gaps, part: Uniforms, position: Uniforms) -> Gaps:
        here, width = self.here[gap], self.width
        far = np.where(gap >= self.reach, self.far[gap - self.reach] - here, -np.inf)
        if not width:
            return _first_reaching(self.far, np.zeros_like(gap), gap - self.reach, position)
        from_left = self.from_left[gap - 1] + here
        # The index of gap i - width in the reversed array; `ends` is the index of the end of its block there.
        mirrored = self.from_right.size - 1 - (gap - width)
        split = (gap > width) & (gap % width != 0)
        from_right = np.where(split, self.from_right[np.where(split, mirrored, 0)] + here, -np.inf)
        ends = mirrored - mirrored % width
        choice = _choose(np.stack([far, from_left, from_right]), part)

        searches = (
            (self.far, np.zeros_like(gap), gap - self.reach),
            (self.from_left, (gap - 1) // width * width, gap - 1),
            (self.from_right, ends, mirrored),
        )
        previous = np.empty_like(gap)
        for number, (sums, low, high) in enumerate(searches):
            chosen = choice == number
            previous[chosen] = _first_reaching(sums, low[chosen], high[chosen], position[chosen])
        previous[choice == 2] = self.from_right.size - 1 - previous[choice == 2]
        return previous


def _accumulate_blocks(values: LogWeights, width: int) -> LogWeights:
    return accumulate(np.logaddexp, -np.inf, values.reshape(-1, width)).reshape(-1)


def accumulate(
    add: np.ufunc, nothing: float, terms: Float[ndarray, "... gaps"], most: int = ROWS_A_BLOCK
) -> Float[ndarray, "... gaps"]:
    """Partial sums along the last axis: of blocks of about √n terms, and of what came before each block.

    So a term passes at most 2√n + 2 additions on its way and not n of them. A block begins with the very number that
    the one before ended with, and no sum is below one before it, though np.logaddexp may round so: sums never fall, and
    where a term is `nothing` they stay, to the bit.

    **Arguments:** `add`: np.add or np.logaddexp. `nothing`: what adds nothing, 0 or -inf. `most`: so many terms are one
    block.
    """
    count = terms.shape[-1]
    if count <= most:
        return np.maximum.accumulate(add.accumulate(terms, axis=-1), axis=-1)
    size = math.isqrt(count) + 1
    padded = np.full((*terms.shape[:-1], -(-count // size) * size), nothing)
    padded[..., :count] = terms
    blocks = add.accumulate(padded.reshape(*terms.shape[:-1], -1, size), axis=-1)
    before = add.accumulate(blocks[..., :-1, -1], axis=-1)
    add(blocks[..., 1:, :], before[..., None], out=blocks[..., 1:, :])
    return np.maximum.accumulate(blocks.reshape(padded.shape)[..., :count], axis=-1)


def _choose(log_weights: Float[ndarray, "choices draws"], uniforms: Uniforms) -> Gaps:
    """An index for each draw by inversion."""
    cumulative = np.cumsum(np.exp(log_weights - np.max(log_weights, axis=0)), axis=0)
    return np.sum(cumulative <= uniforms * cumulative[-1], axis=0)


def _first_reaching(sums: LogWeights, low: Gaps, high: Gaps, uniforms: Uniforms) -> Gaps:
    """Inversion by bisection: the first index from `low` to `high` whose log partial sum reaches its share of the last.

    Where a weight is 0 the sum does not grow, so such an index is never the first.
    """
    target = sums[high] + np.log1p(-uniforms)
    while np.any(low < high):
        middle = (low + high) // 2
        reached = sums[middle] >= target
        low, high = np.where(reached, low, middle + 1), np.where(reached, middle, high)
    return high


@jax.jit
def log_normaliser(edges: Float[Array, " edges"], tau: Float[Array, " quantiles"], rate: Scalar) -> Float[Array, ""]:
    """log of the integral of exp(-c·score) over the ordered cone: the forward sums once more, for jit and vmap.

    Blocks are runs of a segmented scan, so that their width may be traced. Arguments as for `JointLaw`.
    """
    num_gaps, num_quantiles = edges.shape[0] - 1, tau.shape[0]
    numbers, levels = jnp.arange(num_gaps), jnp.arange(num_quantiles)
    log_lengths, centres = jnp.log(jnp.diff(edges)), (num_gaps - 1) * tau
    positions = rate * (numbers[None, :] - centres[:, None])

    def arrivals(entries: Array, level: Array) -> Array:
        together = (level - levels)[:, None]
        volumes = jnp.where(together > 0, together * log_lengths[None, :], 0.0) - gammaln(together + 2.0)
        shared = entries + volumes - rate * (centres[level] - centres)[:, None]
        return logsumexp(jnp.where(together >= 0, shared, -jnp.inf), axis=0)

    def enter(level: Array, entries: Array) -> Array:
        weights, before, here = arrivals(entries, level - 1), positions[level - 1], positions[level]
        reach = jnp.maximum(jnp.ceil(centres[level] - centres[level - 1]), 1.0).astype(int)
        width = jnp.maximum(reach - 1, 1)
        ends = jnp.flip((numbers + 1) % width == 0) | (numbers == 0)
        starts = jnp.stack([numbers == 0, numbers % width == 0, ends], axis=1)
        near = weights - before
        sums = _segmented_sums(starts, jnp.stack([weights + before, near, jnp.flip(near)], axis=1))
        far, from_left, from_right = sums[:, 0], sums[:, 1], jnp.flip(sums[:, 2])
        parts = [
            jnp.where(numbers >= reach, far[numbers - reach] - here, -jnp.inf),
            jnp.where((reach > 1) & (numbers >= 1), from_left[numbers - 1] + here, -jnp.inf),
            jnp.where(
                (reach > 1) & (numbers > width) & (numbers % width != 0), from_right[numbers - width] + here, -jnp.inf
            ),
        ]
        return entries.at[level].set(log_lengths + logsumexp(jnp.stack(parts), axis=0))

    entries = jnp.full((num_quantiles, num_gaps), -jnp.inf).at[0].set(log_lengths - jnp.abs(positions[0]))
    entries = jax.lax.fori_loop(1, num_quantiles, enter, entries)
    return logsumexp(arrivals(entries, levels[-1]) - jnp.abs(positions[-1]))


def _segmented_sums(starts: Array, log_weights: Array) -> Array:
    """Running sums along the first axis, begun anew wherever a run starts."""

    def join(left: tuple[Array, Array], right: tuple[Array, Array]) -> tuple[Array, Array]:
        total = jnp.where(right[0], right[1], jnp.logaddexp(left[1], right[1]))
        return left[0] | right[0], total

    return jax.lax.associative_scan(join, (starts, log_weights))[1]
