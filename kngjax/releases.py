"""Where a mechanism and a sampler meet: one draw with its certificate, or research draws for the owner.

The file is not called release.py: importing it would then hide the function `kngjax.release`.
"""

import dataclasses
import functools
import json
from typing import Any

import jax
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from kngjax import debits, nonprivate
from kngjax._arrays import float64
from kngjax.accounting.guarantees import Adjacency
from kngjax.certificate import Certificate
from kngjax.data import Data, QuadraticSummary, Records, SortedValues
from kngjax.diagnostics import Draws
from kngjax.lattice import Lattice
from kngjax.ledger import Ledger, Reservation
from kngjax.losses import GeometricMedianLoss
from kngjax.mechanisms import KNG, AbstractDensityMechanism, AbstractDirectMechanism, AbstractMechanism
from kngjax.randomness import require_typed_key, secure_key
from kngjax.samplers import AbstractChainSampler, AbstractSampler, EnsembleWalk, Exact, LineGibbs, SliceGibbs
from kngjax.samplers.base import AbstractIndependentSampler
from kngjax.samplers.run import blocks, direct_draws, independent_draws, require_sampler, run_chains
from kngjax.shards import Shards
from kngjax.streams import Stream


@dataclasses.dataclass(frozen=True)
class Release:
    """One privately released value with its certificate, and nothing else.

    **Arguments:** `value`: θ, shape (d,), intercept first; read-only. `certificate`: what was proved of it.
    """

    value: Float[np.ndarray, " dimension"]
    certificate: Certificate

    def __repr__(self) -> str:
        mechanism, sampler = self.certificate.mechanism["type"], self.certificate.sampler["type"]
        return f"<Release {self.value} of {mechanism} by {sampler}; certificate.explain() says what was proved>"

    def to_json(self) -> str:
        """Canonical JSON: sorted keys, shortest decimals that round-trip."""
        fields = {"value": self.value.tolist(), "certificate": self.certificate.to_dict()}
        return json.dumps(fields, sort_keys=True, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "Release":
        """The inverse of `to_json`."""
        fields = json.loads(text)
        return cls(_read_only(np.asarray(fields["value"])), Certificate.from_dict(fields["certificate"]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Release) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())


def _read_only(value: np.ndarray) -> np.ndarray:
    value = np.array(value, dtype=np.float64)
    value.setflags(write=False)
    return value


# Beyond it rejection for the squared loss takes millions of proposals where Θ and noise are of one size and features
# are correlated.
LARGEST_EXACT_DIMENSION = 20


def default_sampler(mechanism: AbstractDensityMechanism, dimension: int) -> tuple[AbstractSampler, str]:
    """The sampler that serves this mechanism best, and why: a function of public facts alone."""
    loss, uniform = mechanism.loss, mechanism.domain.is_uniform
    pointwise = isinstance(mechanism, KNG) and mechanism.pointwise_sensitivity
    many = loss.is_quadratic and uniform and not pointwise and dimension > LARGEST_EXACT_DIMENSION
    if many and SliceGibbs.serves(jax.eval_shape(lambda: mechanism.score_norm(dimension))):
        return SliceGibbs(), (
            "Chosen because every move is an exact conditional draw, with nothing to tune; for "
            f"{dimension} coefficients Exact() may need too many proposals."
        )
    if loss.is_quadratic and (uniform or not pointwise):
        return Exact(), "Chosen because the squared loss can be drawn exactly by rejection."
    if loss.score_is_piecewise_constant and uniform and dimension == 1:
        return Exact(), "Chosen because with one coefficient the density is known segment by segment."
    if (
        loss.score_is_piecewise_constant
        and uniform
        and Exact().serves_by_boxes(jax.eval_shape(lambda: mechanism.score_norm(dimension)), dimension)
    ):
        return Exact(), (
            f"Chosen because with {dimension} coefficients the density can be drawn exactly, by rejection from an "
            "envelope that is constant on boxes."
        )
    if loss.score_is_piecewise_constant and uniform:
        return LineGibbs(), (
            f"Chosen because the density is known exactly along every line, with nothing to tune; for {dimension} "
            "coefficients, or a norm that is no function of absolute values, there is no exact sampler."
        )
    if loss.is_quadratic:
        return EnsembleWalk(), (
            "Chosen because rejection from a base measure that is not uniform takes ever more proposals as n grows; "
            "Exact() serves where n*epsilon is small."
        )
    if isinstance(loss, GeometricMedianLoss) and dimension == 1:
        return EnsembleWalk(), "Chosen because it serves every density; PrivateQuantile(0.5) draws this one exactly."
    return EnsembleWalk(), (
        "Chosen because it serves every density, in any basis, with nothing to tune; for this loss no exact sampler is "
        "built yet."
    )


def exact_sampler(mechanism: AbstractDensityMechanism, dimension: int) -> tuple[AbstractSampler, str]:
    """`default_sampler` if its draws are exact in real arithmetic; else ValueError, naming what to ask for."""
    sampler, reason = default_sampler(mechanism, dimension)
    if not isinstance(sampler, AbstractIndependentSampler):
        raise ValueError(
            f"no exact sampler serves this density, and what a Markov chain releases is not proved to be private: if "
            f"that will do, ask for it by name, sampler=kngjax.{type(sampler).__name__}(). {reason}"
        )
    return sampler, reason


def lattice_sampler(
    mechanism: AbstractMechanism, dimension: int, num_records: int | None
) -> tuple[Lattice | None, str]:
    """`Lattice` with why it is taken, where it serves and takes seconds; None elsewhere. Of public facts alone.

    **Arguments:** `num_records`: n, where it is public.
    """
    sampler = Lattice()
    if sampler.unserved(mechanism, dimension) is not None or not sampler.takes_seconds(
        mechanism, dimension, num_records
    ):
        return None, ""
    return sampler, "Chosen because no rounding is left out of its proof, and it takes seconds here."


def release(
    mechanism: AbstractMechanism,
    X: Any = None,
    y: Any = None,
    *,
    sampler: AbstractSampler | None = None,
    ledger: Ledger | Reservation | None = None,
    progress: bool | None = None,
    **refused: Any,
) -> Release:
    """One draw from the mechanism's law, with its certificate: what may be published.

    Randomness comes from the operating system. A chain starts at a draw from an inflated limit law about the estimate
    without privacy; the rule for its steps and its length are public, and it never stops on a diagnostic. Computed in
    float64 whatever the caller's JAX settings.

    **Arguments:**

    - `mechanism`: everything public: loss, bounds, domain, ε, adjacency.
    - `X`, `y`: the private records, as in `kngjax.data.prepare`; or X alone, a `kngjax.stream` or `kngjax.shard`.
    - `sampler`: None takes the best for this mechanism; mechanisms that draw directly from their law take none.
    - `ledger`: a budget, `kngjax.Ledger(path)`, which this release is debited from before the data are touched and
      anything is drawn; what fails afterwards stays spent. Or a reservation made there beforehand. Of processes that
      share rows, the first one's counts.
    - `progress`: True or False shows or hides the progress bar; None shows it on a terminal.

    Raises as `kngjax.data.prepare` does; `kngjax.BudgetExceeded` before the data are touched, as `Ledger.reserve` does
    for the rest; TypeError for a key or seed; ValueError for a sampler that cannot draw from
    this density or cannot be tuned publicly; RuntimeError if an exact search was given up or a minimiser not found.
    """
    unknown = sorted(set(refused) - {"key", "seed", "rng_key", "num_draws", "num_chains", "random_state"})
    if unknown:
        raise TypeError(
            f"release has no argument {', '.join(unknown)}; it takes mechanism, X, y, sampler, ledger and progress"
        )
    if refused:
        raise TypeError(
            f"release takes no {' or '.join(sorted(refused))}: its randomness comes from the operating system, since "
            "whoever knows a seed can subtract the noise. For reproducible research draws use kngjax.sample(..., "
            "key=kngjax.research_key(seed))"
        )
    # What is refused for its settings alone is refused before anything is spent.
    in_memory = not isinstance(X, Stream | Shards)
    if isinstance(sampler, Lattice) and not in_memory:
        raise TypeError(
            "Lattice rounds the records themselves and needs them in memory: give X and y as arrays or frames, or "
            "ask for Exact()"
        )
    if not isinstance(sampler, Lattice):
        require_sampler(mechanism, sampler, optional=True)
    elif mechanism.dimension is not None and (advice := sampler.unserved(mechanism, mechanism.dimension)) is not None:
        raise ValueError(advice)
    sampler = None if sampler is None else sampler.for_release()
    if sampler is None:
        # Scalar bounds leave d open: what cannot be drawn with the fewest coefficients cannot with more.
        _require_exact(mechanism, mechanism.dimension or 1 + mechanism.bounds.intercept, in_memory)
    reservation = debits.reserve(ledger, mechanism, X)
    reason = "Asked for by the caller."
    if in_memory:
        records = mechanism.records(X, y)
        if sampler is None:
            dimension = mechanism.dimension or records.dimension
            sampler, reason = lattice_sampler(mechanism, dimension, _public_count(mechanism, records))
        if isinstance(sampler, Lattice):
            value = sampler.draw(mechanism, records)
            _require_success(bool(np.all(np.isfinite(value))))
            return _finished(value, mechanism, sampler, reason, records, reservation, X)
        data = mechanism.summarise(records)
    else:
        data = mechanism.prepare(X, y)
    if isinstance(mechanism, AbstractDirectMechanism):
        with float64():
            draws, succeeded = direct_draws(mechanism, data, _key(X), 1)
            _require_success(bool(succeeded), mechanism.advice)
            value = _one(X, np.array(draws[0]))
        return _finished(value, mechanism, None, mechanism.method, data, reservation, X)
    assert isinstance(mechanism, AbstractDensityMechanism)
    if sampler is None:
        sampler, reason = exact_sampler(mechanism, data.dimension)
    with float64():
        _check(sampler, mechanism, data)
        key = _key(X)
        if isinstance(sampler, AbstractIndependentSampler):
            draws, succeeded = independent_draws(mechanism, data, sampler, key, 1, lambda: _centre(mechanism, data))
            _require_success(bool(succeeded))
            value = np.asarray(draws[0])
        else:
            assert isinstance(sampler, AbstractChainSampler)
            centre = _centre(mechanism, data)
            num_blocks, block = blocks(sampler, data.dimension)
            sampler = dataclasses.replace(sampler, num_sweeps=num_blocks * block)
            thetas, _ = run_chains(mechanism, data, sampler, centre, key, 1, 0, num_blocks, block, progress)
            value = thetas[0, -1]
        value = _one(X, value)
    return _finished(value, mechanism, sampler, reason, data, reservation, X)


def _require_exact(mechanism: AbstractMechanism, dimension: int, in_memory: bool) -> None:
    served = in_memory and Lattice().unserved(mechanism, dimension) is None
    if isinstance(mechanism, AbstractDensityMechanism) and not served:
        exact_sampler(mechanism, dimension)


def _public_count(mechanism: AbstractMechanism, records: Records) -> int | None:
    return records.num_records if mechanism.adjacency is Adjacency.REPLACE else None


def _key(X: Any) -> PRNGKeyArray:
    return X.secure_key() if isinstance(X, Shards) else secure_key()


def _one(X: Any, value: np.ndarray) -> np.ndarray:
    return X.first(value) if isinstance(X, Shards) else value


def _finished(
    value: np.ndarray,
    mechanism: AbstractMechanism,
    sampler: AbstractSampler | None,
    reason: str,
    data: Data,
    reservation: Reservation | None,
    X: Any,
) -> Release:
    if not np.all(np.isfinite(value)):
        raise RuntimeError("the draw is not a number and is not released: give public bounds of y, Bounds(..., y=...)")
    certificate = Certificate.of(mechanism, sampler, reason, value.size, data.num_records)
    value = value if certificate.rounding is None else certificate.rounding(value)
    released = Release(_read_only(value), certificate)
    debits.commit(reservation, certificate, released.to_json() if reservation else "", X)
    return released


def _check(sampler: AbstractSampler, mechanism: AbstractDensityMechanism, data: Data) -> None:
    # Types and shapes decide, so nothing is computed.
    sampler.check(jax.eval_shape(mechanism.target, data))


def _centre(mechanism: AbstractDensityMechanism, data: Data) -> Float[np.ndarray, " dimension"]:
    return nonprivate.centre(mechanism.loss, data, _reach(mechanism.domain, mechanism.bounds, data.dimension))


@functools.partial(jax.jit, static_argnames="dimension")
def _reach(domain, bounds, dimension):
    return domain.linear_interval(*bounds.features(dimension))


SEARCH_GIVEN_UP = (
    "the exact search reached its public limit of proposals: the domain and the data fit each other badly. "
    "Enlarge the domain, give Exact(max_proposals=...) a higher limit, or ask for SliceGibbs() or EnsembleWalk()"
)


def _require_success(succeeded: bool, advice: str = SEARCH_GIVEN_UP) -> None:
    if not succeeded:
        raise RuntimeError(advice)


def sample(
    mechanism: AbstractMechanism,
    data: Data,
    *,
    key: PRNGKeyArray,
    sampler: AbstractSampler | None = None,
    num_draws: int = 1000,
    num_chains: int = 4,
    num_warmup: int | None = None,
    thinning: int = 1,
    progress: bool | None = None,
) -> Draws:
    """Many draws from the mechanism's law, for research and for the data owner's eyes only.

    Chains start near the non-private estimate and are tuned on the private data: nothing of the result is private.

    **Arguments:**

    - `data`: from `mechanism.prepare`.
    - `key`: a research key, `kngjax.research_key(seed)`.
    - `sampler`: None takes the best for this mechanism.
    - `num_draws`: kept draws a chain. `num_chains`: independent chains. `num_warmup`: discarded sweeps a chain, None
      for the sampler's own. `thinning`: sweeps a kept draw.

    **Returns** `Draws`, with `to_arviz()`, R-hat, effective sample sizes and plots.
    """
    require_typed_key(key)
    if not isinstance(data, Records | QuadraticSummary | SortedValues):
        raise TypeError("data must come from mechanism.prepare(X, y), which validates and clips the records")
    for name, count in (("num_draws", num_draws), ("num_chains", num_chains), ("thinning", thinning)):
        if count < 1:
            raise ValueError(f"{name} must be at least 1, got {count}")
    if isinstance(mechanism, AbstractDirectMechanism):
        require_sampler(mechanism, sampler)
        with float64():
            draws, succeeded = direct_draws(mechanism, data, key, num_draws * num_chains)
            _require_success(bool(succeeded), mechanism.advice)
            thetas = np.array(draws).reshape(num_chains, num_draws, -1)
        return Draws(thetas, type(mechanism).__name__)
    assert isinstance(mechanism, AbstractDensityMechanism)
    if sampler is None:
        sampler, _ = default_sampler(mechanism, data.dimension)
    with float64():
        _check(sampler, mechanism, data)
        if isinstance(sampler, AbstractIndependentSampler):
            draws, succeeded = independent_draws(
                mechanism, data, sampler, key, num_draws * num_chains, lambda: _centre(mechanism, data)
            )
            _require_success(bool(succeeded))
            # A copy: a NumPy view would keep the float64 JAX array alive.
            thetas, info = np.array(draws).reshape(num_chains, num_draws, -1), None
        else:
            assert isinstance(sampler, AbstractChainSampler)
            if num_warmup is not None:
                sampler = dataclasses.replace(sampler, num_warmup=num_warmup)
            centre = _centre(mechanism, data)
            thetas, info = run_chains(
                mechanism,
                data,
                sampler,
                centre,
                key,
                num_chains,
                sampler.num_warmup,
                num_draws,
                thinning,
                progress,
            )
    return Draws(thetas, type(sampler).__name__, info)
