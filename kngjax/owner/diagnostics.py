"""Says how far draws can be trusted, by coefficient: R-hat, effective sample sizes, Monte Carlo errors.

All of it follows Vehtari et al. (2021) as ArviZ does, to the last digits, and takes no import of ArviZ; ranks are made
once a coefficient, so that ten thousand chains are a matter of seconds. It is computed from private data.
"""

import math
from typing import ClassVar

import numpy as np
from jaxtyping import Float
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
        numbers = [_numbers(np.array(theta[:, :, place], np.float64)) for place in range(theta.shape[2])]
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


def _numbers(chains: Chains) -> tuple[float, ...]:
    """Mean, deviation, MCSE, R-hat, bulk and tail effective sample sizes of one coefficient."""
    mean, deviation = float(np.mean(chains)), float(np.std(chains, ddof=1)) if chains.size > 1 else math.nan
    # Of draws that never moved, ArviZ's sizes are the number of draws: nothing is known of them.
    if chains.shape[1] < 4 or not np.all(np.isfinite(chains)) or np.ptp(chains) == 0.0:
        return mean, deviation, *(math.nan,) * 4
    halves = _halves(chains)
    scores = _normal_scores(halves)
    rhat = math.nan
    if len(chains) > 1:
        rhat = float(np.fmax(_rhat(scores), _rhat(_normal_scores(np.abs(halves - np.median(halves))))))
    ends = (_halves((chains <= _quantile(chains, share)).astype(float)) for share in (0.05, 0.95))
    return mean, deviation, deviation / math.sqrt(_ess(halves)), rhat, _ess(scores), min(map(_ess, ends))


def _halves(chains: Chains) -> Float[np.ndarray, "halves half"]:
    half = chains.shape[1] // 2
    return np.concatenate([chains[:, :half], chains[:, -half:]])


def _normal_scores(chains: Chains) -> Chains:
    """Normal quantiles of (rank - 3/8)/(number + 1/4), with the mean rank of ties."""
    flat = chains.ravel()
    order = np.argsort(flat)
    firsts = np.flatnonzero(np.diff(flat[order], prepend=-np.inf))
    counts = np.diff(firsts, append=flat.size)
    scores = np.empty(flat.size)
    scores[order] = np.repeat(ndtri((firsts + 0.5 * (counts + 1.0) - 0.375) / (flat.size + 0.25)), counts)
    return scores.reshape(chains.shape)


def _quantile(chains: Chains, share: float) -> float:
    """The quantile that R calls of type 7, with the rounding of SciPy's `mquantiles`: draws are counted up to it."""
    place = chains.size * share + (1.0 - share)
    below = int(min(max(place, 1), chains.size - 1))
    low, high = np.partition(chains.ravel(), (below - 1, below))[below - 1 : below + 1]
    gamma = min(max(place - below, 0.0), 1.0)
    return (1.0 - gamma) * low + gamma * high


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
    spectra = np.fft.rfft(chains - np.mean(chains, axis=1, keepdims=True), size)
    return np.fft.irfft(np.mean(spectra.real**2 + spectra.imag**2, axis=0), size)[:number] / number
