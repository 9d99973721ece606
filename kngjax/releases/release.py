"""Releases one draw from a mechanism's law, with its certificate: what may be published."""

import dataclasses
import functools
import json
import math
import secrets
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, overload

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from kngjax.chains.base import AbstractSampler
from kngjax.core import arithmetic
from kngjax.core.compiling import quick_compilation
from kngjax.core.errors import holding_no_records
from kngjax.core.kept_as_json import AbstractKeptAsJson
from kngjax.core.summary_table import AbstractSummarised, SummaryTable, names_of
from kngjax.data.passes import Passes
from kngjax.data.persons import with_persons
from kngjax.data.schema import Schema
from kngjax.data.weights import with_weights
from kngjax.draws.base import AbstractDraw
from kngjax.draws.lattice.lattice import Lattice
from kngjax.draws.shells.shells import Shells
from kngjax.ledger.ledgers import Ledger, Reservation
from kngjax.mechanisms.base import AbstractMechanism
from kngjax.releases import debits
from kngjax.releases.certificate import Certificate
from kngjax.releases.draw_choice import REQUESTS, draw_for, instead_of_rounding
from kngjax.releases.plan import AbstractReleasePlan, Plan


@dataclasses.dataclass(frozen=True, init=False, eq=False)
class Release(AbstractKeptAsJson, AbstractSummarised):
    """Holds one privately released value with its certificate, and nothing else.

    Only `kngjax.release` makes a release, and `Release.from_json` reads one. The constructor refuses, because research
    draws with a certificate beside them are no release. This prevents accidents; it does not stop a forged JSON.

    **Arguments:** `value`: θ, shape (d,), intercept first; read-only. `certificate`: states what was proved of it.
    `names`: the names of the coefficients that the bounds declare, else those of the data frame; None where there are
    none. A frame's own names stay on this object and go nowhere else: in a file without a header line they are
    somebody's record. `published`: what the mechanism publishes besides the value, by name, read-only: `AdaSSP` its
    noisy moments, `AdaOPS` its ridge and scale; most mechanisms nothing. The guarantee covers all of it.
    """

    value: Float[np.ndarray, " dimension"]
    certificate: Certificate
    names: tuple[str, ...] | None
    published: Mapping[str, np.ndarray]

    def __init__(self, *arguments: Any, **fields: Any):
        raise TypeError(
            "a Release is made by kngjax.release(mechanism, X, y), and read by Release.from_json(text): nothing else "
            "becomes one, research draws least of all"
        )

    @classmethod
    def _of(
        cls,
        value: np.ndarray,
        certificate: Certificate,
        names: tuple[str, ...] | None = None,
        published: Mapping[str, Any] = MappingProxyType({}),
    ) -> "Release":
        if sorted(published) != certificate.sampler.get("published", []):
            raise ValueError("this release publishes something else than its certificate says")
        released = object.__new__(cls)
        every = MappingProxyType({name: _read_only(np.asarray(number)) for name, number in sorted(published.items())})
        object.__setattr__(released, "published", every)
        object.__setattr__(released, "value", _read_only(value))
        object.__setattr__(released, "certificate", certificate)
        object.__setattr__(released, "names", certificate.names or names)
        return released

    def __repr__(self) -> str:
        mechanism, sampler = self.certificate.mechanism["type"], self.certificate.sampler["type"]
        declared = self.certificate.names
        value = str(self.value)
        if declared is not None:
            value = ", ".join(f"{name} = {number:.6g}" for name, number in zip(declared, self.value, strict=True))
        return f"<Release {value} of {mechanism} by {sampler}; certificate.explain() says what was proved>"

    def summary(self) -> SummaryTable:
        """Lays out the released numbers and their certificate."""
        rows = [*zip(names_of(self.certificate.names, self.value.size), self.value.tolist(), strict=True)]
        return SummaryTable("Release", self.certificate.rows(), ("coefficient", "estimate"), rows)

    def intervals(self, level: float | None = None) -> Any:
        """Gives confidence intervals of what was released, for free; where there are none, the reason.

        They are `kngjax.inference.Interval` or `kngjax.inference.NoInterval`.

        **Arguments:** `level`: None for the one that the release was made for.
        """
        # By the public name: that room stands on this one.
        import kngjax as kng

        return kng.inference.Interval.of(self, level)

    def to_json(self) -> str:
        """Writes canonical JSON: sorted keys, and the shortest decimals that round-trip."""
        fields: dict[str, Any] = {"value": self.value.tolist(), "certificate": self.certificate.to_dict()}
        if self.published:
            fields["published"] = {name: number.tolist() for name, number in self.published.items()}
        return json.dumps(fields, sort_keys=True, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "Release":
        """Reads what `to_json` wrote."""
        fields = json.loads(text)
        certificate = Certificate.from_dict(fields["certificate"])
        return cls._of(np.asarray(fields["value"]), certificate, published=fields.get("published", {}))


def _read_only(value: np.ndarray) -> np.ndarray:
    value = np.array(value, dtype=np.float64)
    value.setflags(write=False)
    return value


@overload
def release(
    mechanism: AbstractMechanism,
    X: Any = None,
    y: Any = None,
    *,
    weights: Any = None,
    person: Any = None,
    sampler: AbstractSampler | Lattice | Shells | None = None,
    ledger: Ledger | Reservation | None = None,
    progress: bool | None = False,
    **refused: Any,
) -> Release:
    """Releases one draw from a mechanism's law."""
    ...


@overload
def release(mechanism: AbstractReleasePlan, X: Any = None, y: Any = None, **settings: Any) -> Any:
    """Releases the results that a plan makes of the records."""
    ...


@holding_no_records
def release(
    mechanism: AbstractMechanism | AbstractReleasePlan,
    X: Any = None,
    y: Any = None,
    *,
    weights: Any = None,
    person: Any = None,
    sampler: AbstractSampler | Lattice | Shells | None = None,
    ledger: Ledger | Reservation | None = None,
    progress: bool | None = False,
    **refused: Any,
) -> Any:
    """Releases one draw from the mechanism's law, with its certificate: what may be published.

    Randomness comes from the operating system. Everything is computed in float64, whatever the caller's JAX settings.
    A chain, if one is named, starts at a draw from the limit law or the base measure, chosen by the widened density;
    its rule of steps and its length are public, and it never stops on a diagnostic.

    **Arguments:**

    - `mechanism`: everything public: loss, bounds, domain, ε, adjacency. Or a plan of several releases that belong
        together, such as `kngjax.WithIntervals`, which returns what it makes of them.
    - `X`, `y`: the private records, as in `kngjax.data.prepare`; or X alone, a `kngjax.stream`.
    - `weights`: private, one for each record; the bounds declare their maximum, `Bounds(..., weight=...)`.
    - `person`: private, one identifier for each row: whole numbers, text or categories. The bounds say how persons
        count, `Bounds(..., unit=kngjax.Unit("patient", most_rows=1))`. Under replace the number of persons is public,
        and they are counted before anything is spent.
    - `sampler`: None takes the best proved draw for this mechanism; a mechanism that draws directly takes none.
    - `ledger`: a budget, `kngjax.Ledger(path)`, or a reservation made there. The release is debited before a value is
        looked at; if it fails afterwards, the debit stays spent.
    - `progress`: True shows a progress bar, None shows it on a terminal, and False, the default, shows none. The speed
        of the bar may depend on the data, so it is for the data owner's eyes alone.

    Public mistakes are refused first, in words, and cost nothing: TypeError or ValueError from
    `mechanism.intake.check_schema`, for a sampler that cannot draw from this density or cannot be tuned publicly, or
    for a key, a seed or a generator; RuntimeError while a side door is open (`kngjax.core.side_doors`), or where this
    process does not compute as IEEE 754 says (`kngjax.core.arithmetic`, tried again when the value is drawn). Then the
    certificate is made from public facts, and `kngjax.ledger.BudgetExceeded` raised where the budget is too small.
    Failures after the debit may depend on values: they raise `kngjax.ReleaseFailed`, one text without a cause. Where
    the ledger cannot keep the release, `kngjax.ledger.LedgerError` says so, and nothing is released. An interruption
    from outside (Ctrl-C, a kill) ends as Python ends it. A debit stays spent in all these cases.
    """
    unknown = sorted(set(refused) - {"key", "seed", "rng_key", "num_draws", "num_chains", "random_state"})
    if unknown:
        raise TypeError(
            f"release has no argument {', '.join(unknown)}; it takes mechanism, X, y, weights, person, sampler, "
            "ledger and progress. For a regression by a formula over a data frame take a method of kngjax.Study, like "
            "kngjax.Study(frame, bounds=..., adjacency=...).quantile_regression(formula, tau=..., epsilon=...)"
        )
    if refused:
        raise TypeError(
            f"release takes no {' or '.join(sorted(refused))}: its randomness comes from the operating system, since "
            "whoever knows a seed can subtract the noise. For reproducible research draws use kngjax.sample(..., "
            "key=kngjax.research_key(seed))"
        )
    asked = asked_for(mechanism, sampler, weights)
    if asked is mechanism:
        _check_progress(progress)
    else:
        _check_arguments(mechanism, X, y, (weights, person), sampler, ledger, progress)
    return asked.release(with_persons(with_weights(X, weights), person), y, ledger=ledger, progress=progress)


@dataclasses.dataclass(frozen=True, eq=False)
class OneRelease(AbstractReleasePlan):
    """Asks for one draw of a mechanism. **Arguments:** `sampler`: what the caller asked for, or None."""

    mechanism: Any
    sampler: Any = None

    def admit(self, X: Any, y: Any) -> Schema:
        return self.mechanism.intake.check_schema(X, y)

    def resolve(self, facts: Schema) -> Plan:
        with quick_compilation():
            draw = draw_for(self.mechanism, self.sampler, facts)
            certificate = Certificate.of(draw, facts)
        drawing = functools.partial(_drawn_alone, draw, certificate, facts.names)
        instead = functools.partial(instead_of_rounding, self.mechanism, self.sampler, facts)
        instead = None if certificate.rounding is None else instead
        return Plan((certificate,), *debits.owed(certificate), drawing, is_one=True, instead=instead)

    def settings(self) -> Any:
        return debits.settings(self.mechanism)


def asked_for(asked: Any, sampler: Any, weights: Any = None) -> AbstractReleasePlan:
    """Returns a plan as it is, or that of one draw of a mechanism; raises TypeError for what no plan takes."""
    if not isinstance(asked, AbstractReleasePlan):
        return OneRelease(asked, sampler)
    if weights is not None or sampler is not None:
        raise TypeError("a plan of several releases takes neither weights nor a sampler: leave them out")
    return asked


def plan_for(asked: Any, num_records: int | None = None, sampler: Any = None) -> Plan:
    """Resolves a mechanism, or a plan of several releases, for records in memory.

    **Arguments:** `asked`: whose bounds say how many columns there are. `num_records`: used where it is public, under
    replace; None where nobody knows it yet. `sampler`: what is asked for, or None. Raises ValueError for what public
    facts refuse, and for a sampler that cannot serve.
    """
    facts = Schema(asked.dimension or 1, asked.adjacency.public_count(num_records))
    return asked_for(asked, sampler).resolve(facts)


@holding_no_records
def certify(
    mechanism: AbstractMechanism,
    X: Any = None,
    y: Any = None,
    *,
    weights: Any = None,
    person: Any = None,
    sampler: AbstractSampler | Lattice | Shells | None = None,
) -> Certificate:
    """Returns the certificate that `release` would give, before anything is spent or drawn, or a value is seen.

    A ledger would be debited its `cost`, which can be reserved beforehand: `ledger.reserve(certificate.cost)`. For a
    mechanism with adjacency "add_remove" in a ledger for "replace" reserve `certificate.cost.to_replace()`.

    **Arguments** and errors as for `release`, of types, names, shapes and settings.
    """
    _check_arguments(mechanism, X, y, (weights, person), sampler, None, None)
    X = with_persons(with_weights(X, weights), person)
    [certificate] = OneRelease(mechanism, sampler).planned(X, y).certificates
    return certificate


def _check_arguments(
    mechanism: Any, X: Any, y: Any, given: tuple[Any, ...], sampler: Any, ledger: Any, progress: Any
) -> None:
    """Raises TypeError for arguments of the wrong kind, and for a key or generator wherever it hides."""
    generators = (np.random.Generator, np.random.RandomState, np.random.BitGenerator, np.random.SeedSequence)
    for part in (*jax.tree.leaves((mechanism, sampler)), X, y, *given, ledger, progress):
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
    if isinstance(sampler, type) and issubclass(sampler, REQUESTS):
        raise TypeError(f"sampler is the class {sampler.__name__}: call it, {sampler.__name__}()")
    if sampler is not None and not isinstance(sampler, REQUESTS):
        raise TypeError(
            f"sampler must be an object like kngjax.chains.Exact(), or None, not a {type(sampler).__name__}"
        )
    _check_progress(progress)


def _check_progress(progress: Any) -> None:
    if not isinstance(progress, bool | None):
        raise TypeError(f"progress must be True, False or None, not a {type(progress).__name__}")


def drawn(
    draw: AbstractDraw,
    certificate: Certificate,
    names: tuple[str, ...] | None,
    X: Any,
    y: Any,
    progress: bool | None = False,
) -> Release:
    """Draws once with randomness of the operating system. Private until it is kept.

    **Arguments:** `certificate`: of the draw. `names`: of the coefficients, where a frame names them.
    """
    # All passes of a release see the same records; where n is public, n of them.
    X = X.held(certificate.num_records) if isinstance(X, Passes) else X
    with quick_compilation():
        numbers = draw.draw_all_alone(draw.prepare(X, y), secrets.randbits, progress)
    # A library may have changed the arithmetic since it was tried: then nobody knows what was drawn.
    if arithmetic.broken():
        raise RuntimeError("the arithmetic that proofs rest on was changed during the draw")
    if not np.all(np.isfinite(numbers)):
        raise RuntimeError("the draw is not a number and is not released: give public bounds of y, Bounds(..., y=...)")
    value, published = _parted(numbers, len(numbers) - draw.published_numbers, draw.published)
    if certificate.rounding is not None:
        value = certificate.rounding(value)
    return Release._of(value, certificate, names, published)


def _drawn_alone(
    draw: AbstractDraw, certificate: Certificate, names: Any, records: tuple[Any, Any], progress: bool | None
) -> list[Release]:
    return [drawn(draw, certificate, names, *records, progress)]


def _parted(
    numbers: Float[np.ndarray, " numbers"], dimension: int, published: dict[str, tuple[int, ...]]
) -> tuple[Float[np.ndarray, " dimension"], dict[str, np.ndarray]]:
    """Returns θ, and by name what is released besides. **Arguments:** `published`: the names and shapes of that."""
    if not published:
        return numbers, {}
    sizes = [math.prod(shape) for shape in published.values()]
    value, *parts = np.split(numbers, np.cumsum([dimension, *sizes])[:-1])
    return value, {name: part.reshape(shape) for (name, shape), part in zip(published.items(), parts, strict=True)}
