"""A search for the neighbouring data sets on which a black-box attack succeeds best."""

from collections.abc import Sequence

import jax
import numpy as np
from jaxtyping import PRNGKeyArray
from tqdm import tqdm

from kngjax.accounting.guarantees import Adjacency
from kngjax.audit.attackers import RecordSource
from kngjax.audit.black_box import black_box
from kngjax.core.arrays import float64
from kngjax.core.randomness import require_typed_key
from kngjax.data.records import Records
from kngjax.mechanisms.base import AbstractMechanism
from kngjax.mechanisms.direct import AbstractDirectMechanism

_FINALISTS = 8


def worst_neighbours(
    mechanism: AbstractMechanism,
    *,
    key: PRNGKeyArray,
    dimension: int | None = None,
    num_candidates: int = 64,
    num_draws: int = 10_000,
    copies: Sequence[int] = (1, 30, 1000, 30_000),
    progress: bool | None = None,
) -> tuple[Records, Records]:
    """The neighbouring data sets, among random ones of extremes and coincidences, that few draws tell apart best.

    All but the exchanged, added or removed record are a few distinct ones, each repeated: mechanisms that adapt to the
    data leak most where many records have made them sure.

    **Arguments:**

    - `key`: a research key, `kngjax.research_key(seed)`.
    - `dimension`: d with the intercept, where scalar bounds leave it open.
    - `num_candidates`: random pairs for each number of `copies`. `num_draws`: for each data set of a candidate; the
      eight best are compared again by ten times as many.
    - `progress`: whether to show a bar; None shows it on a terminal only.

    Raises as `black_box` does, and ValueError for an open dimension.
    """
    require_typed_key(key)
    number = mechanism.dimension or dimension
    if number is None:
        raise ValueError("scalar bounds leave the number of coefficients open: pass dimension (intercept included)")
    if not isinstance(mechanism, AbstractDirectMechanism):
        raise TypeError(f"{type(mechanism).__name__} needs a sampler: search by kngjax.audit.density_ratio")
    generator = np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel())
    with float64():
        source = RecordSource(mechanism, number, generator.normal(size=(64, number)), generator)
        pairs = [pair for count in copies for pair in _pairs(mechanism, source, count, num_candidates)]
    for sample_size, most in ((num_draws, _FINALISTS), (10 * num_draws, 1)):
        bounds = [
            black_box(mechanism, *pair, key=jax.random.fold_in(key, place), num_draws=sample_size, confidence=0.5)
            for place, pair in enumerate(tqdm(pairs, disable=None if progress is None else not progress))
        ]
        order = np.argsort([-bound.epsilon_lower_bound for bound in bounds])
        pairs = [pairs[place] for place in order[:most]]
    return pairs[0]


def _pairs(
    mechanism: AbstractMechanism, source: RecordSource, copies: int, num_candidates: int
) -> list[tuple[Records, Records]]:
    replace, found = mechanism.adjacency is Adjacency.REPLACE, []
    while len(found) < num_candidates:
        for rows in source.starts(source.lower.size + 2, source.lower.size):
            common = np.repeat(rows[:-2], copies, axis=0)
            first, second = np.vstack([common, rows[-1:]]), np.vstack([common, rows[-2:-1]]) if replace else common
            found.append((Records(first[:, :-1], first[:, -1]), Records(second[:, :-1], second[:, -1])))
    return found[:num_candidates]
