"""Where a mechanism and a sampler meet: one draw with its certificate, or research draws for the owner.

The file is not called release.py: importing it would then hide the function `kngjax.release`.
"""

import dataclasses
import functools
import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from kngjax.core import side_doors
from kngjax.core.arrays import float64
from kngjax.core.errors import admitted, sealed
from kngjax.core.html import html_table
from kngjax.core.randomness import require_typed_key, secure_key
from kngjax.data.records import Data, QuadraticSummary, Records, SortedValues
from kngjax.data.shards import Shards
from kngjax.data.streams import Stream
from kngjax.ledger.ledgers import Ledger, Reservation
from kngjax.losses.base import AbstractPredictorLoss
from kngjax.mechanisms.base import AbstractDensityMechanism, AbstractDirectMechanism, AbstractMechanism
from kngjax.owner import nonprivate
from kngjax.owner.draws import Draws
from kngjax.releases import debits
from kngjax.releases.certificate import Certificate
from kngjax.releases.chains import blocks, direct_draws, independent_draws, require_sampler, run_chains
from kngjax.releases.lattice.sampler import Lattice
from kngjax.releases.sampler_choice import chosen_sampler, default_sampler
from kngjax.samplers.base import AbstractChainSampler, AbstractIndependentSampler, AbstractSampler


@dataclasses.dataclass(frozen=True, init=False, eq=False)
class Release:
    """One privately released value with its certificate, and nothing else.

    Only `kngjax.release` makes one, and `Release.from_json` reads one: research draws with a certificate beside them
    are no release, so the constructor refuses. That stops accidents; whoever writes the JSON by hand is not stopped.

    **Arguments:** `value`: θ, shape (d,), intercept first; read-only. `certificate`: what was proved of it. `names`: of
    the coefficients: those that the bounds declare, else those of the data frame; None where there are none. A frame's
    own stay on this object and go nowhere else: in a file without a header line they are somebody's record.
    """

    value: Float[np.ndarray, " dimension"]
    certificate: Certificate
    names: tuple[str, ...] | None

    def __init__(self, *arguments: Any, **fields: Any):
        raise TypeError(
            "a Release is made by kngjax.release(mechanism, X, y), and read by Release.from_json(text): nothing else "
            "becomes one, research draws least of all"
        )

    @classmethod
    def _of(cls, value: np.ndarray, certificate: Certificate, names: tuple[str, ...] | None = None) -> "Release":
        made = object.__new__(cls)
        object.__setattr__(made, "value", _read_only(value))
        object.__setattr__(made, "certificate", certificate)
        object.__setattr__(made, "names", certificate.names or names)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return Release.from_json, (self.to_json(),)

    def __repr__(self) -> str:
        mechanism, sampler = self.certificate.mechanism["type"], self.certificate.sampler["type"]
        declared = self.certificate.names
        value = str(self.value)
        if declared is not None:
            value = ", ".join(f"{name} = {number:.6g}" for name, number in zip(declared, self.value, strict=True))
        return f"<Release {value} of {mechanism} by {sampler}; certificate.explain() says what was proved>"

    def _repr_html_(self) -> str:
        labels = self.certificate.names or [f"value[{place}]" for place in range(self.value.size)]
        value = [(label, f"{number:.6g}") for label, number in zip(labels, self.value, strict=True)]
        return html_table("Release", [*value, *self.certificate.rows()])

    def to_json(self) -> str:
        """Canonical JSON: sorted keys, shortest decimals that round-trip."""
        fields = {"value": self.value.tolist(), "certificate": self.certificate.to_dict()}
        return json.dumps(fields, sort_keys=True, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "Release":
        """The inverse of `to_json`."""
        fields = json.loads(text)
        return cls._of(np.asarray(fields["value"]), Certificate.from_dict(fields["certificate"]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Release) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())


def _read_only(value: np.ndarray) -> np.ndarray:
    value = np.array(value, dtype=np.float64)
    value.setflags(write=False)
    return value


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
    - `ledger`: a budget, `kngjax.Ledger(path)`, which this release is debited from before a value is looked at and
      anything is drawn; what fails afterwards stays spent. Or a reservation made there beforehand. Of processes that
      share rows, the first one's counts.
    - `progress`: True or False shows or hides the progress bar; None shows it on a terminal.

    What types, names, shapes and settings refuse is refused first, in words, and costs nothing: TypeError or
    ValueError of `mechanism.admit`, for a sampler that cannot draw from this density or cannot be tuned publicly, for a
    key, a seed or a generator; RuntimeError while a side door is open, see `kngjax.core.side_doors`. Then the
    certificate is made, of public facts alone, and `kngjax.BudgetExceeded` raised where the budget does not allow it,
    as `Ledger.reserve` does for the rest. Whatever goes wrong after the debit may depend on values, and is
    `kngjax.ReleaseFailed`: one text without a cause; but where the ledger cannot keep the release, `kngjax.LedgerError`
    says so, and nothing is released. What is interrupted from outside (Ctrl-C, a kill) ends as Python
    ends it. What was debited stays spent.
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
    _check_arguments(mechanism, X, y, sampler, ledger, progress)
    side_doors.refuse()
    # What types, shapes and settings refuse is refused before anything is spent.
    facts, refusal = admitted(functools.partial(mechanism.admit, X, y))
    if refusal is None:
        try:
            chosen, reason = chosen_sampler(mechanism, sampler, facts, _lattice_takes(mechanism, X))
            certificate = Certificate.of(mechanism, chosen, reason, facts.dimension, facts.num_records)
            reservation = debits.reserve(ledger, certificate, X)
        except Exception as error:
            # Of public facts, so it is told as it is.
            refusal = error.with_traceback(None)
        else:
            value, refusal = sealed(functools.partial(_drawn, mechanism, X, y, chosen, progress))
    shards = X if isinstance(X, Shards) else None
    # Frames of a traceback hold their local variables.
    del X, y
    if refusal is not None:
        del shards
        raise refusal
    if certificate.rounding is not None:
        # Every process draws offsets of its own, and the first one's count.
        value = _one(shards, certificate.rounding(value))
    released = Release._of(_read_only(value), certificate, facts.names)
    debits.commit(reservation, certificate, released.to_json() if reservation else "", shards)
    return released


def certify(
    mechanism: AbstractMechanism, X: Any = None, y: Any = None, *, sampler: AbstractSampler | None = None
) -> Certificate:
    """The certificate that `release` would give, before anything is spent, drawn, or seen of a value.

    Its `cost` is what a ledger would be debited, and can be reserved beforehand: `ledger.reserve(certificate.cost)`, or
    of a mechanism for "add_remove" `certificate.cost.to_replace()` in a ledger for "replace".

    **Arguments** and errors as for `release`, of types, names, shapes and settings.
    """
    _check_arguments(mechanism, X, y, sampler, None, None)
    facts, refusal = admitted(functools.partial(mechanism.admit, X, y))
    fits_lattice = _lattice_takes(mechanism, X)
    del X, y
    if refusal is not None:
        raise refusal
    chosen, reason = chosen_sampler(mechanism, sampler, facts, fits_lattice)
    return Certificate.of(mechanism, chosen, reason, facts.dimension, facts.num_records)


def _check_arguments(mechanism: Any, X: Any, y: Any, sampler: Any, ledger: Any, progress: Any) -> None:
    """Raises TypeError for arguments of the wrong kind, and for a key or generator wherever it hides."""
    generators = (np.random.Generator, np.random.RandomState, np.random.BitGenerator, np.random.SeedSequence)
    for part in (*jax.tree.leaves((mechanism, sampler)), X, y, ledger, progress):
        is_key = isinstance(part, jax.Array) and jnp.issubdtype(part.dtype, jax.dtypes.prng_key)
        if is_key or isinstance(part, generators):
            raise TypeError(
                "a key or generator was given, and release takes none: its randomness comes from the operating system. "
                "For reproducible research draws use kngjax.sample(..., key=kngjax.research_key(seed))"
            )
    if isinstance(mechanism, type):
        raise TypeError(f"mechanism must be an object, and {mechanism.__name__} is a class: call it with its settings")
    if not isinstance(mechanism, AbstractMechanism):
        raise TypeError(f"mechanism must be an object like kngjax.KNG(...), not a {type(mechanism).__name__}")
    if isinstance(sampler, type) and issubclass(sampler, AbstractSampler):
        raise TypeError(f"sampler is the class {sampler.__name__}: call it, kngjax.{sampler.__name__}()")
    if not isinstance(sampler, AbstractSampler | None):
        raise TypeError(f"sampler must be an object like kngjax.Exact(), or None, not a {type(sampler).__name__}")
    if not isinstance(progress, bool | None):
        raise TypeError(f"progress must be True, False or None, not a {type(progress).__name__}")


def _drawn(
    mechanism: AbstractMechanism, X: Any, y: Any, sampler: AbstractSampler | None, progress: bool | None
) -> np.ndarray:
    """The value, before it is rounded. **Arguments:** `sampler`: from `chosen_sampler`."""
    if isinstance(sampler, Lattice):
        return _on_lattice(mechanism, X, y, sampler)
    data = _with_a_row(mechanism, mechanism.prepare(X, y))
    with float64():
        key = _key(X)
        if isinstance(mechanism, AbstractDirectMechanism):
            draws, succeeded = direct_draws(mechanism, data, key, 1)
            _require_success(bool(succeeded), mechanism.advice)
            return _finite(_one(X, np.array(draws[0])))
        assert isinstance(mechanism, AbstractDensityMechanism)
        if isinstance(sampler, AbstractIndependentSampler):
            draws, succeeded = independent_draws(mechanism, data, sampler, key, 1, lambda: _centre(mechanism, data))
            _require_success(bool(succeeded))
            return _finite(_one(X, np.asarray(draws[0])))
        assert isinstance(sampler, AbstractChainSampler)
        centre = _centre(mechanism, data)
        num_blocks, block = blocks(sampler, data.dimension)
        thetas, _ = run_chains(mechanism, data, sampler, centre, key, 1, 0, num_blocks, block, progress)
        return _finite(_one(X, thetas[0, -1]))


def _with_a_row(mechanism: AbstractMechanism, data: Data) -> Data:
    """Of no records one row of zeros, which changes nothing of a law that `takes_shards`: samplers need a row."""
    if not (mechanism.takes_shards and isinstance(data, Records) and isinstance(mechanism.loss, AbstractPredictorLoss)):
        return data
    return data if data.num_records else Records(np.zeros((1, data.dimension)), np.zeros(1))


def _on_lattice(mechanism: AbstractMechanism, X: Any, y: Any, sampler: Lattice) -> np.ndarray:
    """A draw on a lattice; of processes that share rows, the first one draws."""
    data = sampler.prepared(mechanism, X, y)
    value = (
        X.on_first(lambda: sampler.draw(mechanism, data)) if isinstance(X, Shards) else sampler.draw(mechanism, data)
    )
    return _finite(_one(X, np.zeros(data.dimension) if value is None else value))


def _lattice_takes(mechanism: AbstractMechanism, X: Any) -> bool:
    """Whether these records come in a form that a lattice can take."""
    return mechanism.loss.is_quadratic or not isinstance(X, Stream | Shards)


def _key(X: Any) -> PRNGKeyArray:
    return X.secure_key() if isinstance(X, Shards) else secure_key()


def _one(X: Any, value: np.ndarray) -> np.ndarray:
    return X.first(value) if isinstance(X, Shards) else value


def _finite(value: np.ndarray) -> np.ndarray:
    if not np.all(np.isfinite(value)):
        raise RuntimeError("the draw is not a number and is not released: give public bounds of y, Bounds(..., y=...)")
    return _read_only(value)


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
    "Enlarge the domain, give Exact(max_proposals=...) a higher limit, or ask for a Markov chain by name"
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
