"""The black-box audit: an attacker tells two neighbouring data sets apart by draws alone, and bounds ε from below.

For every set A of outputs (ε, δ)-DP has P(A) ≤ e^ε Q(A) + δ, so ε ≥ log((P(A) - δ)/Q(A)). Half of the draws choose A,
the other half bounds P(A) from below and Q(A) from above (Clopper and Pearson).
"""

import dataclasses
import math
from collections import Counter
from typing import Any

import jax
import numpy as np
from jaxtyping import Float, Int, PRNGKeyArray
from scipy import stats

from kngjax.accounting.adjacency import plural
from kngjax.accounting.guarantees import Adjacency, Guarantee
from kngjax.chains.base import AbstractIndependentSampler, AbstractSampler
from kngjax.core.arrays import float64
from kngjax.data import persons, weights
from kngjax.data.records import Records, WeightedRecords, prepare_rows
from kngjax.mechanisms.base import AbstractMechanism
from kngjax.mechanisms.density import AbstractDensityMechanism
from kngjax.mechanisms.direct import AbstractDirectMechanism
from kngjax.releases.chains import independent_draws

Rows = Records | WeightedRecords
# Of two data sets, which have different numbers of rows.
Codes = Int[np.ndarray, "..."]

LARGEST_BATCH = 250_000
_NEWTON_STEPS = 12
_RIDGE = 1e-2
# Tail probabilities of the sets that are tried.
_LEVELS = np.logspace(-5.0, np.log10(0.99), 160)


@dataclasses.dataclass(frozen=True, eq=False)
class BlackBoxAudit:
    """Holds a lower confidence bound on ε at δ for one pair of neighbouring data sets.

    **Arguments:**

    - `epsilon_lower_bound`: in nats; 0 if the attack found nothing.
    - `claimed`: the guarantee that is audited. `delta`: the δ at which ε is bounded.
    - `confidence`: the probability, over draws, that ε is at least the bound.
    - `num_draws`: for each data set; half of them chose the attack.
    - `pair`: the two data sets, synthetic.
    """

    epsilon_lower_bound: float
    claimed: Guarantee
    delta: float
    confidence: float
    num_draws: int
    pair: tuple[Rows, Rows]

    @property
    def passed(self) -> bool:
        """Tells whether the bound does not exceed the claimed ε at this δ."""
        return self.epsilon_lower_bound <= self.claimed.at(delta=self.delta)

    def explain(self) -> str:
        """Returns the result in one paragraph."""
        sizes = " and ".join(str(records.num_records) for records in self.pair)
        what = f"{sizes} {plural(self.claimed.unit)}"
        found = (
            f"From {self.num_draws} draws for each of two neighbouring data sets of {what}: epsilon at delta "
            f"= {self.delta:g} is at least {self.epsilon_lower_bound:.6g} with confidence {self.confidence:g}, where "
            f"{self.claimed.at(delta=self.delta):g} is claimed. "
        )
        if self.passed:
            return found + (
                "The claim stands. That is evidence from one attack on one pair, not a proof: a better attack, another "
                "pair or more draws may show more."
            )
        return found + "The claim is exceeded: unless chance has it, a constant of the mechanism is wrong."


def black_box(
    mechanism: AbstractMechanism,
    first: Any,
    second: Any,
    *,
    key: PRNGKeyArray,
    sampler: AbstractSampler | None = None,
    num_draws: int = 100_000,
    delta: float | None = None,
    claimed: Guarantee | None = None,
    confidence: float = 0.999,
) -> BlackBoxAudit:
    """Returns a lower bound on ε at δ, from draws of the mechanism for two neighbouring data sets.

    The attack tries a logistic regression on the coordinates of θ, their squares and products, and the coordinates and
    their length themselves. The set A is where one of these is large or small: the one that does best on the first half
    of the draws. Both orders of the data sets are tried; four confidence bounds share 1 - confidence.

    **Arguments:**

    - `mechanism`: a mechanism that draws from its law directly, or a density with a sampler.
    - `first`, `second`: `Records` or pairs (X, y), or for persons (X, y, identifiers): synthetic neighbours for the
      claim's adjacency.
    - `key`: a research key, `kngjax.research_key(seed)`.
    - `sampler`: for a density, a sampler whose draws are exact and independent.
    - `num_draws`: for each data set.
    - `delta`: δ at which ε is bounded, at least the claimed δ, which is the default.
    - `claimed`: the guarantee to audit; None for the mechanism's own.

    Raises TypeError for densities without such a sampler, ValueError for data sets that are no neighbours, too few
    draws, and a δ below the claimed one.
    """
    if not isinstance(mechanism, AbstractDirectMechanism) and not isinstance(sampler, AbstractIndependentSampler):
        raise TypeError(
            f"{type(mechanism).__name__} needs a sampler, and a black-box audit cannot tell a chain's error from a "
            "leak: name one with exact draws, sampler=kngjax.chains.Exact(), or audit its density, "
            "kngjax.audit.density_ratio"
        )
    if isinstance(mechanism, AbstractDirectMechanism) and sampler is not None:
        raise TypeError(f"{type(mechanism).__name__} draws from its own law directly: leave the sampler out")
    if num_draws < 1000:
        raise ValueError(f"num_draws must be at least 1000, got {num_draws}: fewer show nothing")
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must lie strictly between 0 and 1, got {confidence}")
    one, two = (_records(mechanism, data) for data in (first, second))
    pair, whose = (one[0], two[0]), (one[1], two[1])
    claimed = claimed or mechanism.guarantee_for(pair[0].dimension)
    check_neighbours(*pair, claimed.adjacency, whose)
    delta = claimed.delta if delta is None else float(delta)
    if not claimed.delta <= delta < 1.0:
        raise ValueError(f"delta must be at least {claimed.delta:g}, which is claimed, and below 1; got {delta:g}")
    if not math.isfinite(claimed.at(delta=delta)):
        raise ValueError(f"no finite epsilon is claimed at delta = {delta:g}: name a larger delta")
    keys = jax.random.split(key, 2)
    draws = [_draws(mechanism, records, sampler, key, num_draws) for records, key in zip(pair, keys, strict=True)]
    bound = epsilon_lower_bound(draws[0], draws[1], delta, confidence)
    return BlackBoxAudit(bound, claimed, delta, confidence, num_draws, pair)


def epsilon_lower_bound(
    first: Float[np.ndarray, "draws dimension"],
    second: Float[np.ndarray, "draws dimension"],
    delta: float,
    confidence: float,
) -> float:
    """Returns the bound from independent draws of two laws; half of them train the attack."""
    half = min(len(first), len(second)) // 2
    scores = _scores(first[:half], second[:half])
    risk = (1.0 - confidence) / 4.0
    test = scores(first[half:]), scores(second[half:])
    train = scores(first[:half]), scores(second[:half])
    bounds = [0.0]
    for order in (0, 1):
        named, other = train[order], train[1 - order]
        best, (place, threshold) = -np.inf, (0, 0.0)
        for number in range(named.shape[1]):
            for sign in (1.0, -1.0):
                thresholds = np.quantile(sign * named[:, number], 1.0 - _LEVELS)
                found = _bounds(sign * named[:, number], sign * other[:, number], thresholds, delta, risk)
                if (leader := int(np.argmax(found))) >= 0 and found[leader] > best:
                    best, place, threshold, direction = found[leader], number, thresholds[leader], sign
        if np.isfinite(best):
            named, other = direction * test[order][:, place], direction * test[1 - order][:, place]
            bounds.append(float(_bounds(named, other, np.array([threshold]), delta, risk)[0]))
    return max(bounds)


def log_ratio_bound(
    named: Int[np.ndarray, " sets"],
    of_named: int,
    other: Int[np.ndarray, " sets"],
    of_other: int,
    risk: float,
    delta: float = 0.0,
) -> Float[np.ndarray, " sets"]:
    """Bounds log((P(A) - δ)/Q(A)) of each set A from below, by bounds of P(A) and Q(A) of Clopper and Pearson.

    From independent draws, of which binomial numbers lie in A. Each of the two bounds fails with probability at most
    `risk`, and so the ratio's with twice as much; -inf where P(A) may be δ or less.

    **Arguments:** `named`, `other`: how many draws of P and of Q lie in each set. `of_named`, `of_other`: of how many.
    """
    lower = np.where(named > 0, stats.beta.ppf(risk, np.maximum(named, 1), of_named - named + 1), 0.0)
    upper = np.where(other < of_other, stats.beta.isf(risk, other + 1, np.maximum(of_other - other, 1)), 1.0)
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(lower - delta, 0.0)) - np.log(upper)


def check_neighbours(
    first: Rows, second: Rows, adjacency: Adjacency, whose: tuple[Codes | None, Codes | None] = (None, None)
) -> None:
    """Raises ValueError unless the data sets differ by one record, or person, as the adjacency says, in any order.

    **Arguments:** `first`, `second`: clipped to the bounds. `whose`: the person of each of their rows, by numbers.
    """
    rows = [np.column_stack([records.rows.x, records.rows.y]) + 0.0 for records in (first, second)]
    if rows[0].shape[1] != rows[1].shape[1]:
        raise ValueError("the two data sets have different numbers of columns")
    counts = [_units(*one) for one in zip(rows, whose, strict=True)]
    gone, come = (counts[0] - counts[1]).total(), (counts[1] - counts[0]).total()
    allowed = {(1, 1), (0, 0)} if adjacency is Adjacency.REPLACE else {(1, 0), (0, 1)}
    if (gone, come) not in allowed:
        what = "records" if whose[0] is None else "persons"
        raise ValueError(
            f"the two data sets are no neighbours for {adjacency}: after clipping to the bounds {gone} {what} are in "
            f"the first alone and {come} in the second alone"
        )


def _units(rows: np.ndarray, codes: np.ndarray | None) -> Counter[bytes]:
    """Counts equal records, or equal persons, whose rows are compared in their order."""
    each = rows if codes is None else (rows[codes == code] for code in np.unique(codes[codes >= 0]))
    return Counter(one.tobytes() for one in each)


def _bounds(named: np.ndarray, other: np.ndarray, thresholds: np.ndarray, delta: float, risk: float) -> np.ndarray:
    """log((P - δ)/Q) for the sets above each threshold, P bounded from below and Q from above."""
    above, also = (scores.size - np.searchsorted(np.sort(scores), thresholds) for scores in (named, other))
    return log_ratio_bound(above, named.size, also, other.size, risk, delta)


def _scores(first: np.ndarray, second: np.ndarray) -> Any:
    """Functions of θ that are large where the first law is the likelier, fitted to these draws."""
    both = np.concatenate([first, second])
    centre = np.median(both, axis=0)
    # Tails may be heavy, and an atom may hold half of the draws.
    spread = np.quantile(np.abs(both - centre), 0.75, axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    rows, columns = np.triu_indices(both.shape[1])

    def squeezed(theta: np.ndarray) -> np.ndarray:
        return np.arcsinh((theta - centre) / spread)

    def features(place: np.ndarray) -> np.ndarray:
        return np.concatenate([np.ones((len(place), 1)), place, place[:, rows] * place[:, columns]], axis=1)

    coefficients = _logistic(features(squeezed(both)), np.repeat([1.0, 0.0], [len(first), len(second)]))

    def scores(theta: np.ndarray) -> np.ndarray:
        place = squeezed(theta)
        length = np.sqrt(np.sum(np.square(place), axis=1, keepdims=True))
        return np.concatenate([(features(place) @ coefficients)[:, None], place, length], axis=1)

    return scores


def _logistic(features: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Newton's method with a slight ridge; what it misses makes the attack weaker, and not wrong."""
    coefficients = np.zeros(features.shape[1])
    for _ in range(_NEWTON_STEPS):
        likely = 1.0 / (1.0 + np.exp(-np.clip(features @ coefficients, -30.0, 30.0)))
        curvature = (features.T * (likely * (1.0 - likely))) @ features + _RIDGE * np.eye(len(coefficients))
        coefficients += np.linalg.solve(curvature, features.T @ (labels - likely) - _RIDGE * coefficients)
    return coefficients


def _records(mechanism: AbstractMechanism, data: Any) -> tuple[Rows, Codes | None]:
    """Validated and clipped, whatever they were given as, and whose they are."""
    bounds, has_response = mechanism.bounds.without_dither(), mechanism.loss.has_response
    codes = None
    if bounds.of_persons:
        if not (isinstance(data, tuple | list) and len(data) == 3):
            raise TypeError(f"a data set of persons must be (X, y, identifiers), not {type(data).__name__}")
        columns, response, identifiers = data
        columns, codes = persons.with_persons(columns, identifiers), persons.codes_of(identifiers)
    elif isinstance(data, Records):
        columns, response = np.asarray(data.x)[:, int(bounds.intercept) :], np.asarray(data.y)
    elif isinstance(data, tuple | list) and len(data) == 2:
        columns, response = data
    else:
        raise TypeError(f"a data set must be Records or a pair (X, y), not {type(data).__name__}")
    if codes is None:
        weights.refuse(bounds.weight, "the black-box audit")
    made = prepare_rows(bounds, columns, response if has_response else None, has_response=has_response)
    if codes is not None and len(codes) != len(made.rows.y):
        raise ValueError("an audit of persons needs rows of which none is left out")
    return made, codes


def _draws(
    mechanism: AbstractMechanism,
    records: Rows,
    sampler: Any,
    key: PRNGKeyArray,
    num_draws: int,
) -> np.ndarray:
    if isinstance(records, WeightedRecords) and mechanism.intake.absorbs_weights:
        records = records.products()
    data, parts = mechanism.intake.summarise(records), []
    batch = min(num_draws, LARGEST_BATCH)
    with float64():
        for number in range(-(-num_draws // batch)):
            batch_key = jax.random.fold_in(key, number)
            if isinstance(mechanism, AbstractDensityMechanism) and sampler is not None:
                sampler.check(jax.eval_shape(mechanism.target, data))
            # A copy: a view would keep the float64 JAX array alive.
            parts.append(np.array(independent_draws(mechanism, data, sampler, batch_key, batch)))
    return np.concatenate(parts)[:num_draws]
