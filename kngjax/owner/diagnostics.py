"""Says how far draws can be trusted, by coefficient: R-hat, effective sample sizes, Monte Carlo errors.

All of it follows Vehtari et al. (2021) as ArviZ does, to the last digits, and takes no import of ArviZ; ranks are made
once a coefficient, so that ten thousand chains are a matter of seconds. It is computed from private data.
"""

import math
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Int
from scipy.fft import next_fast_len
from scipy.special import ndtri

from kngjax.core.owner_only import OwnerOnly, owner_only
from kngjax.core.summary_table import SummaryTable

# Vehtari et al. (2021): chains are mixed up to here, and quantiles and errors can be trusted from here on.
LARGEST_RHAT, LEAST_ESS = 1.01, 400.0
# Holds no number, since it goes where warnings go.
UNMIXED = (
    "these draws do not suffice: R-hat of a coefficient is above 1.01, or its effective sample size below 400. "
    "Raise num_draws= or thinning=, or take another sampler"
)

Chains = Float[np.ndarray, "chains draws"]


@owner_only
class DrawsSummary(OwnerOnly):
    """Summarises draws by coefficient: OWNER ONLY.

    **Arguments:** each of shape (d,): `mean`, `deviation`; `mcse`, the Monte Carlo error of the mean; `rhat`,
    rank-normalised and split, NaN with fewer than 2 chains; `bulk` and `tail`, effective sample sizes. All four are NaN
    with fewer than 4 draws a chain, and for draws that never moved. `names`: the coefficients' names. `seconds`: the
    time that the draws took, with compiling, warm-up and thinned sweeps; None if it is unknown.
    """

    names: tuple[str, ...]
    mean: Float[np.ndarray, " dimension"]
    deviation: Float[np.ndarray, " dimension"]
    mcse: Float[np.ndarray, " dimension"]
    rhat: Float[np.ndarray, " dimension"]
    bulk: Float[np.ndarray, " dimension"]
    tail: Float[np.ndarray, " dimension"]
    seconds: float | None = None
    instead: ClassVar[str] = "the owner reads it by explain()"

    @classmethod
    def of(
        cls, theta: Float[np.ndarray, "chains draws dimension"], names: tuple[str, ...], seconds: float | None = None
    ) -> "DrawsSummary":
        """Computes the summary of draws."""
        scores = _scores_of_ranks(2 * theta.shape[0] * (theta.shape[1] // 2))
        numbers = [
            _numbers(np.array(theta[:, :, place], np.float64, order="C"), scores) for place in range(theta.shape[2])
        ]
        return cls(names, *np.asarray(numbers).T, seconds=seconds)

    @property
    def suffices(self) -> bool:
        """Tells whether R-hat is at most 1.01, if it is known, and every effective sample size at least 400."""
        enough = (self.bulk >= LEAST_ESS) & (self.tail >= LEAST_ESS)
        return bool(np.all(enough & ~(self.rhat > LARGEST_RHAT)))

    @property
    def rate(self) -> float:
        """Counts the worst coefficient's effective draws per second of computation; NaN if the time is unknown."""
        return math.nan if self.seconds is None else float(self.bulk.min()) / self.seconds

    def explain(self) -> str:
        """Returns the summary as a table of text, for the owner to print."""
        heads = ("coefficient", "mean", "deviation", "MCSE", "R-hat", "bulk ESS", "tail ESS")
        sizes = (np.round(self.bulk), np.round(self.tail))
        columns = (self.mean, self.deviation, self.mcse, np.round(self.rhat, 3), *sizes)
        rows = [*zip(self.names, *(column.tolist() for column in columns), strict=True)]
        notes = [] if self.suffices else [UNMIXED]
        if self.seconds is not None:
            over = f"over {self.seconds:.3g} s, with compiling, warm-up and thinned sweeps"
            notes.append(f"{self.rate:.3g} effective draws a second {over}")
        title = "OWNER ONLY: computed from private data, do not publish"
        return str(SummaryTable(title, (), heads, rows, notes=notes))


def _scores_of_ranks(number: int) -> Float[np.ndarray, " ranks"]:
    """Computes normal quantiles of (rank - 3/8)/(number + 1/4), at twice the rank: ties have half ranks."""
    return ndtri((0.5 * np.arange(2, 2 * number + 1) - 0.375) / (number + 0.25))


def _numbers(chains: Chains, scores_of_ranks: Float[np.ndarray, " ranks"]) -> tuple[float, ...]:
    """Computes mean, deviation, MCSE, R-hat, bulk and tail effective sample sizes of one coefficient."""
    mean, deviation = float(np.mean(chains)), float(np.std(chains, ddof=1)) if chains.size > 1 else math.nan
    # Of draws that never moved, ArviZ's sizes are the number of draws: nothing is known of them.
    if chains.shape[1] < 4 or not np.all(np.isfinite(chains)) or np.ptp(chains) == 0.0:
        return mean, deviation, *(math.nan,) * 4
    halves = _halves(chains)
    order = np.argsort(halves, axis=None)
    ordered = halves.ravel()[order]
    scores = _normal_scores(ordered, order, scores_of_ranks).reshape(halves.shape)
    rhat = math.nan
    if len(chains) > 1:
        folded = _normal_scores(*_folded(ordered, order), scores_of_ranks).reshape(halves.shape)
        rhat = float(np.fmax(_rhat(scores), _rhat(folded)))
    ends = (_halves((chains <= quantile).astype(float)) for quantile in _quantiles(chains, (0.05, 0.95)))
    return mean, deviation, deviation / math.sqrt(_ess(halves)), rhat, _ess(scores), min(map(_ess, ends))


def _halves(chains: Chains) -> Float[np.ndarray, "halves half"]:
    half = chains.shape[1] // 2
    return np.concatenate([chains[:, :half], chains[:, -half:]])


def _normal_scores(
    ordered: Float[np.ndarray, " draws"],
    order: Int[np.ndarray, " draws"],
    scores_of_ranks: Float[np.ndarray, " ranks"],
) -> Float[np.ndarray, " draws"]:
    """Gives each draw the score of its rank, with the mean rank of ties; `ordered[i]` is draw number `order[i]`."""
    new = np.empty(ordered.size, bool)
    new[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    firsts = np.flatnonzero(new)
    counts = np.diff(firsts, append=ordered.size)
    scores = np.empty(ordered.size)
    scores[order] = np.repeat(scores_of_ranks[2 * firsts + counts - 1], counts)
    return scores


def _folded(
    ordered: Float[np.ndarray, " draws"], order: Int[np.ndarray, " draws"]
) -> tuple[Float[np.ndarray, " draws"], Int[np.ndarray, " draws"]]:
    """Orders the distances from the median, whose two sides are in order already: the stable sort merges them."""
    median = np.mean(ordered[[(ordered.size - 1) // 2, ordered.size // 2]])
    below = int(np.searchsorted(ordered, median))
    distances = np.concatenate([median - ordered[:below][::-1], ordered[below:] - median])
    merged = np.argsort(distances, kind="stable")
    return distances[merged], np.concatenate([order[:below][::-1], order[below:]])[merged]


def _quantiles(chains: Chains, shares: tuple[float, ...]) -> list[float]:
    """Computes the quantiles that R calls of type 7, with the rounding of SciPy's `mquantiles`: draws are counted up to
    them.
    """
    places = [chains.size * share + (1.0 - share) for share in shares]
    belows = [int(min(max(place, 1), chains.size - 1)) for place in places]
    ordered = np.partition(chains, [index for below in belows for index in (below - 1, below)], axis=None)
    gammas = [min(max(place - below, 0.0), 1.0) for place, below in zip(places, belows, strict=True)]
    return [
        (1.0 - gamma) * ordered[below - 1] + gamma * ordered[below] for gamma, below in zip(gammas, belows, strict=True)
    ]


def _rhat(chains: Chains) -> float:
    number = chains.shape[1]
    within, between = np.mean(np.var(chains, axis=1, ddof=1)), np.var(np.mean(chains, axis=1), ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.sqrt((number * between / within + number - 1) / number))


def _ess(chains: Chains) -> float:
    """The number of draws over Geyer's initial monotone estimate of their autocorrelation time."""
    if np.ptp(chains) < np.finfo(float).resolution:
        return float(chains.size)
    number, covariances = chains.shape[1], _autocovariances(chains)
    variance = covariances[0] * number / (number - 1.0)
    total = covariances[0] + (np.var(np.mean(chains, axis=1), ddof=1) if len(chains) > 1 else 0.0)
    correlations = 1.0 - (variance - covariances) / total
    correlations[0] = 1.0
    # Pairs of lags, an even one and the next, up to the first whose sum is not positive: of that the even one counts.
    pairs = correlations[: 2 * max(1, (number - 1) // 2)].reshape(-1, 2)
    sums = pairs.sum(axis=1)
    last = int(np.argmin(np.append(sums[:-1] > 0.0, False)))
    rest = float(pairs[last, 0]) if max(pairs[last, 0], sums[last]) >= 0.0 else 0.0
    time = -1.0 + 2.0 * float(np.sum(np.minimum.accumulate(sums[:last]))) + rest
    return chains.size / max(time, 1.0 / math.log10(chains.size))


def _autocovariances(chains: Chains) -> Float[np.ndarray, " draws"]:
    """Mean over chains of the autocovariances at all lags: one inverse transform for all chains."""
    number = chains.shape[1]
    size = next_fast_len(2 * number, real=True)
    spectra = np.fft.rfft(chains - np.mean(chains, axis=1, keepdims=True), size).view(float)
    squares = np.einsum("cf,cf->f", spectra, spectra).reshape(-1, 2).sum(axis=1)
    return np.fft.irfft(squares, size)[:number] / (number * len(chains))
