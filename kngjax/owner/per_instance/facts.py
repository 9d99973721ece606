"""Derives what follows from per-instance (ε, δ): odds, composition, groups, moments, generalisation.

All are of Wang 2019, section 2, in plain arithmetic on arrays with one entry a person. The text of the paper has lost
these formulas, and each is derived anew in its docstring, with the constants that the derivation gives.
"""

from typing import Any, NamedTuple

import numpy as np


class PersonGuarantee(NamedTuple):
    """Holds (ε, δ) of each person. **Arguments:** `epsilon`, `delta`: of the same shape, or () for one person."""

    epsilon: np.ndarray
    delta: np.ndarray


def log_odds_bound(epsilon: Any, delta: Any, probability: Any) -> np.ndarray:
    """Bounds by log P(S)/Q(S) how much an outcome S moves an adversary's log-odds that the person is in the data.

    Fact 5, for events with P(S), Q(S) ≥ p. From P ≤ e^ε Q + δ the ratio is at most e^ε + δ/Q ≤ e^ε + δ/p; from
    1 - Q ≤ e^ε(1 - P) + δ it is at most (1 - e^{-ε}(1 - δ - Q))/Q, which falls with Q; and it is at most 1/Q. The least
    of the three at Q = p is attained by two laws on two outcomes. For p ≥ δ/ε the first is at most log(e^ε + ε) ≤ 2ε.
    Whatever else the adversary knows is in her prior odds, which this adds to.

    **Arguments:** `probability`: p, the smaller of the two probabilities of what was seen, in (0, 1].
    """
    epsilon, delta = _pair(epsilon, delta)
    p = np.asarray(probability, dtype=np.float64)
    if not np.all((p > 0.0) & (p <= 1.0)):
        raise ValueError("probability must lie in (0, 1]: nothing bounds the odds after what never happens")
    with np.errstate(over="ignore"):
        direct = np.logaddexp(epsilon, np.log(np.maximum(delta, 1e-323)) - np.log(p))
    direct = np.where(delta > 0, direct, epsilon)
    complement = np.log(-np.expm1(-epsilon) + np.exp(-epsilon) * (delta + p)) - np.log(p)
    return np.asarray(np.maximum(np.minimum(np.minimum(direct, complement), -np.log(p)), 0.0))


def simple_composition(epsilons: Any, deltas: Any) -> PersonGuarantee:
    """Σ_k ε_k and min(1, Σ_k δ_k): Fact 6.1. The mechanisms are along the first axis, people along others.

    A later mechanism may depend on earlier outcomes; then ε_k must hold for every outcome of them, for these very data.
    """
    epsilon, delta = _pair(epsilons, deltas)
    return _guarantee(np.sum(epsilon, axis=0), np.sum(delta, axis=0))


def advanced_composition(epsilons: Any, deltas: Any, slack: float) -> PersonGuarantee:
    """ε = min(Σε_k, Σ ε_k tanh(ε_k/2) + √(2 log(1/δ')Σε_k²)), δ = 1 - (1-δ')Π(1-δ_k): Fact 6.2.

    (ε, δ) laws are images of: with probability δ all is told, else a biased coin with log-odds ±ε. So the privacy loss
    of step k, given the past, is within ±ε_k and has a mean of at most ε_k tanh(ε_k/2); their sum exceeds its mean by
    √(2 log(1/δ')Σε_k²) with probability at most δ' by the inequality of Azuma and Hoeffding. Kairouz, Oh and Viswanath
    (2015), Theorem 3.5. Where Σε_k is less it needs no slack, and δ is without δ'. The textbook's ε(e^ε - 1) is more.

    **Arguments:** as for `simple_composition`; `slack`: δ' in (0, 1).
    """
    epsilon, delta = _pair(epsilons, deltas)
    if not 0.0 < slack < 1.0:
        raise ValueError(f"slack must lie strictly between 0 and 1, got {slack}")
    simple = np.sum(epsilon, axis=0)
    spread = np.sqrt(-2.0 * np.log(slack) * np.sum(np.square(epsilon), axis=0))
    advanced = np.sum(epsilon * np.tanh(0.5 * epsilon), axis=0) + spread
    kept = np.sum(np.log1p(-np.minimum(delta, 1.0 - 1e-16)), axis=0)
    better = advanced < simple
    total = -np.expm1(kept + np.where(better, np.log1p(-slack), 0.0))
    return _guarantee(np.where(better, advanced, simple), total)


def group_privacy(epsilons: Any, deltas: Any) -> PersonGuarantee:
    """(ε, δ) of a group that joins or leaves together: Σε_j, and the larger of Σ_j δ_j e^{Σ_{i<j} ε_i} and the reverse.

    Fact 6.4. ε_1 is of the first person with respect to Z, ε_2 of the second with respect to Z and the first, and so
    on: P_0 ≤ e^{ε_1}P_1 + δ_1 ≤ e^{ε_1}(e^{ε_2}P_2 + δ_2) + δ_1 and so forth; the other direction starts at the last.
    Numbers of each person with respect to Z alone do not add up so: a second one like the first tells less, or more.

    **Arguments:** `epsilons`, `deltas`: people in the order in which they join along the first axis.
    """
    epsilon, delta = _pair(epsilons, deltas)
    up_to = np.cumsum(epsilon, axis=0)
    before = np.concatenate([np.zeros_like(epsilon[:1]), up_to[:-1]])
    after = np.flip(np.concatenate([np.zeros_like(epsilon[:1]), np.cumsum(np.flip(epsilon, 0), axis=0)[:-1]]), 0)
    # Where e^{Σε} overflows a term with δ > 0 is infinite, and one with δ = 0 is 0.
    with np.errstate(over="ignore", invalid="ignore"):
        sums = [np.sum(np.where(delta > 0, delta * np.exp(others), 0.0), axis=0) for others in (before, after)]
    return _guarantee(np.sum(epsilon, axis=0), np.maximum(*sums))


def moments(epsilon: Any, orders: Any, weights: Any | None = None) -> np.ndarray:
    """E[ε^p] for each p, over people with these weights: Definition 7 for a law on finitely many people.

    **Arguments:** `epsilon`: shape (n,). `orders`: p > 0, shape (orders,). `weights`: shape (n,), not negative,
    normalised here; None for equal ones.
    """
    values = np.asarray(epsilon, dtype=np.float64)
    powers = values[:, None] ** np.atleast_1d(np.asarray(orders, dtype=np.float64))[None, :]
    return np.average(powers, axis=0, weights=weights)


def total_variation_bound(epsilon: Any, delta: Any) -> np.ndarray:
    """sup_S |P(S) - Q(S)| ≤ δ + (1-δ)tanh(ε/2), attained: P = 1 - Q where P = e^ε Q + δ and its mirror image meet.

    So the mean of any function with values in [0, 1] changes by at most that when the person comes or goes.
    """
    epsilon, delta = _pair(epsilon, delta)
    return np.asarray(delta + (1.0 - delta) * np.tanh(0.5 * epsilon))


def generalization_bound(epsilon: Any, delta: Any, weights: Any | None = None) -> float:
    """|E[training loss of θ] - E[test loss of θ]| ≤ 2E[δ + (1-δ)tanh(ε/2)], losses in [0, 1]: Proposition 9.

    Records are independent draws from one law. With W of n-1 of them and z, z' two more, the gap is
    E[f_z(W+z') - f_z(W+z)], where f_z(Z) = E[ℓ(θ, z)] for θ ~ A(Z), since W+z' with the test record z and W+z with the
    training record z are the same experiment in different order. Both differ from f_z(W) by no more than the total
    variation between A(W) and A(W + record); so the gap is at most twice its mean over W and z. People in the data,
    each with respect to the others, are draws of just that (W, z): their average estimates the bound without bias. The
    paper has moments of e^ε in place of 2tanh(ε/2) ≤ min(ε, 2).

    **Arguments:** `epsilon`, `delta`: shape (n,), of (W, z) pairs; `weights`: their probabilities, None for equal ones.
    """
    return 2.0 * float(np.average(total_variation_bound(epsilon, delta), weights=weights))


def cross_domain_generalization_bound(epsilon: Any, delta: Any, importance: Any, weights: Any | None = None) -> float:
    """|E[importance-weighted training loss] - E[loss on the target law]| ≤ E[t] + E[w·t]: Proposition 11.

    Losses are in [0, 1], t = δ + (1-δ)tanh(ε/2), and w = dP'/dP of the target law P' to the base law P of the records.
    As in `generalization_bound` the gap is E[w(z)(f_z(W+z') - f_z(W+z))], at most E[w(z)(t(W, z') + t(W, z))]; given W,
    z and z' are independent and E w(z) = 1, which leaves the mean of t over base and over target people.

    **Arguments:** `epsilon`, `delta`: shape (n,), of (W, z) pairs from the base law. `importance`: w(z), shape (n,),
    with mean 1 over the law. `weights`: as for `generalization_bound`.
    """
    change = np.broadcast_to(total_variation_bound(epsilon, delta), np.shape(importance))
    w = np.asarray(importance, dtype=np.float64)
    if not np.all(w >= 0.0):
        raise ValueError("importance weights are ratios of probabilities: they must not be negative")
    return float(np.average(change, weights=weights) + np.average(w * change, weights=weights))


def mean_generalization_bound(mean: float, delta: float, target_mean: float | None = None) -> float:
    """Bounds generalisation gaps by E[ε] alone: (1-δ)(tanh(E ε/2) + tanh(E'ε/2)) + 2δ ≤ ½(E ε + E'ε) + 2δ.

    Corollary 12, by Jensen's inequality, since tanh is concave on ε ≥ 0; δ is the same for all.

    **Arguments:** `mean`: E[ε] over the base law; `target_mean`: E'[ε] over the target law, None if it is the base law.
    """
    target_mean = mean if target_mean is None else target_mean
    return float(total_variation_bound(mean, delta) + total_variation_bound(target_mean, delta))


def _guarantee(epsilon: Any, delta: Any) -> PersonGuarantee:
    return PersonGuarantee(np.asarray(epsilon), np.asarray(np.minimum(delta, 1.0)))


def _pair(epsilon: Any, delta: Any) -> tuple[np.ndarray, np.ndarray]:
    epsilon, delta = np.broadcast_arrays(np.asarray(epsilon, dtype=np.float64), np.asarray(delta, dtype=np.float64))
    if not (np.all(epsilon >= 0.0) and np.all((delta >= 0.0) & (delta <= 1.0))):
        raise ValueError("epsilon must be at least 0 and delta between 0 and 1, for everybody")
    return epsilon, delta
