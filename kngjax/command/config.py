"""Reads what a job declares in its TOML file: one frozen dataclass a table, one field a key. All of it is public.

The privacy budget is an exact fraction, read from its decimal digits, so that its parts add up to the whole.
"""

import functools
import pathlib
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

from kngjax.command import registry
from kngjax.command.declared import Declared, Source, any_text
from kngjax.command.intervals_config import Intervals, read_intervals
from kngjax.command.study_config import read_study
from kngjax.command.synthesis_config import read_synthesis
from kngjax.command.toml import Level, Pair, Text, convert, read_table, refuse_unknown, shown
from kngjax.data.missing import Codes, codes_by_column
from kngjax.estimators import responses
from kngjax.estimators.checks import DeclaredColumn


@dataclass(frozen=True, kw_only=True)
class ResponseSettings:
    """[response]: `column`; `transform = "log"`; `bounds` and `units` before any transformation.

    `levels = ["no", "yes"]`, in place of bounds: of a column of classes, which count as 0 and 1.

    `missing`: the number (or level) in place of a cell that is none, before any transformation; or "drop", under
    add_remove. `missing_codes`: what stands for a missing cell.
    """

    column: Text
    transform: Literal["log"] | None = None
    bounds: Pair | None = None
    units: Text | None = None
    levels: tuple[Level, ...] | None = None
    missing: Level | None = None
    missing_codes: tuple[Level, ...] | None = None

    def __post_init__(self) -> None:
        # Made here, it says what does not fit.
        _ = self.public

    @property
    def public(self) -> responses.Response:
        """The response as studies have it, without its units."""
        return responses.Response(self.column, self.transform, self.bounds, self.levels, self.missing)

    @property
    def name(self) -> str:
        """Names what is regressed: "wage" or "log wage"."""
        return self.public.name


@dataclass(frozen=True, kw_only=True)
class Term:
    """[[terms]]: `column` with `bounds`, `degree` and `units` for numbers, or with `levels` for categories.

    `missing`: the number or level in place of a cell that is none; or "drop", under add_remove. Without it such data
    are refused. `missing_codes`: what stands for a missing cell.
    """

    column: Text
    bounds: Pair | None = None
    degree: int = 1
    levels: tuple[Level, ...] | None = None
    units: Text | None = None
    missing: Level | None = None
    missing_codes: tuple[Level, ...] | None = None

    def __post_init__(self) -> None:
        if (self.bounds is None) == (self.levels is None):
            raise ValueError(f"column {self.column!r} needs either bounds (of numbers) or levels (of categories)")


@dataclass(frozen=True, kw_only=True)
class Loss:
    """[loss]: `type`, what its constructor takes as `settings`, and `tau`, one or several numbers."""

    type: str
    tau: tuple[float, ...] | None = None
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def labels(self) -> tuple[str, ...]:
        """The name of each regression, no two alike: "tau = 0.5", by its shortest exact decimal; or the loss."""
        return (self.type,) if self.tau is None else tuple(f"tau = {tau!r}" for tau in self.tau)


@dataclass(frozen=True)
class Named:
    """[mechanism] or [sampler]: `type`, a name of `kngjax.command.registry`, which makes arguments of the settings."""

    type: str
    settings: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Privacy:
    """[privacy]: the total `epsilon`, the `adjacency`, and the `shares` of the regressions, equal if left out.

    `delta`: the total, shared like epsilon, of mechanisms that have one. `ledger`: the path of the budget that all runs
    on these records are debited from.
    """

    epsilon: Fraction | None = None
    delta: Fraction | None = None
    adjacency: Literal["replace", "add_remove"] = field(
        metadata={
            "advice": ": 'replace' (one record exchanged, their number public) or 'add_remove' (one more or less)"
        }
    )
    shares: tuple[Fraction, ...] | None = None
    ledger: Text | None = None

    def parts(self, total: Fraction | None, count: int) -> tuple[Fraction | None, ...]:
        """Divides a total, the epsilon or the delta, among `count` regressions, so that the parts add up exactly."""
        shares = self.shares or (Fraction(1),) * count
        return tuple(None if total is None else total * share / sum(shares) for share in shares)


@dataclass(frozen=True, kw_only=True)
class Figure:
    """[figure]: the column `x` of the horizontal axis, and `at` which values the other columns are held."""

    x: Text
    at: dict[str, Level] | None = None

    def check(self, terms: tuple[Term, ...]) -> None:
        """Raises ValueError unless the curve is drawn over a numeric term, and every other term has a value."""
        by_column = {term.column: term for term in terms}
        if self.x not in by_column or by_column[self.x].bounds is None:
            raise ValueError(f"[figure] x: must be the column of a term with bounds, not {self.x!r}")
        at, others = self.at or {}, [column for column in by_column if column != self.x]
        if set(at) != set(others):
            raise ValueError(f"[figure] at: must have a value for each of {', '.join(others) or 'no column'}")
        for column, value in at.items():
            bounds, levels = by_column[column].bounds, by_column[column].levels
            if bounds is not None:
                inside = not isinstance(value, str) and bounds[0] <= value <= bounds[1]
            else:
                inside = value in (levels or ())
            if not inside:
                raise ValueError(f"[figure] at: {column} = {value!r} is outside the term's bounds or levels")


@dataclass(frozen=True, kw_only=True)
class Config(Declared):
    """All that a job of one response and one mechanism declares in public; `read` makes it of a file."""

    response: ResponseSettings
    terms: tuple[Term, ...]
    loss: Loss | None
    mechanism: Named
    privacy: Privacy
    sampler: Named | None
    figure: Figure | None
    intervals: Intervals | None = None

    @property
    def adjacency(self) -> str:
        return self.privacy.adjacency

    @property
    def columns(self) -> list[DeclaredColumn]:
        """Lists what the file declares of each column of the data."""
        codes, every = self.codes, (*self.terms, self.response)
        given = [(one, codes.get(one.column, ())) for one in every]
        return [DeclaredColumn(one.column, one.bounds, one.levels, one.missing, own) for one, own in given]

    @property
    def codes(self) -> Codes:
        """By column what stands for a missing cell; raises ValueError for what cannot be."""
        every = {one.column: one for one in (*self.terms, self.response)}
        codes = {name: one.missing_codes for name, one in every.items() if one.missing_codes is not None}
        policies = {name: one.missing for name, one in every.items()}
        levels = {name: one.levels for name, one in every.items() if one.levels is not None}
        return codes_by_column(codes, policies, levels, every)

    @property
    def text_columns(self) -> tuple[str, ...]:
        return tuple(one.column for one in (self.response, *self.terms) if any_text(one.levels or ()))

    @property
    def public_files(self) -> tuple[pathlib.Path, ...]:
        return () if self.intervals is None or self.intervals.file is None else (self.intervals.file,)

    @property
    def drops(self) -> bool:
        """Whether records with missing cells are dropped."""
        return "drop" in (self.response.missing, *(term.missing for term in self.terms))

    @property
    def labels(self) -> tuple[str, ...]:
        """The name of each release: those of the loss, or the mechanism's."""
        return (self.mechanism.type,) if self.loss is None else self.loss.labels

    @property
    def parts(self) -> tuple[Fraction | None, ...]:
        """The exact epsilon of each regression, in the order of `labels`."""
        return self.privacy.parts(self.privacy.epsilon, len(self.labels))

    @property
    def deltas(self) -> tuple[Fraction | None, ...]:
        """The exact delta of each regression, in the order of `labels`; None for the mechanism's own."""
        return self.privacy.parts(self.privacy.delta, len(self.labels))


def read(path: str | pathlib.Path) -> Any:
    """Read and check the TOML file of a job: a `Config`, of a study a `kngjax.command.study_config.StudyConfig`, of a
    synthetic table a `kngjax.command.synthesis_config.SynthesisConfig`.

    **Arguments:** `path`, of a public file with the tables [study] and [[analyses]], or [synthesis], or [response],
    [[terms]], [loss], [mechanism] and [privacy], and perhaps [data], [sampler], [intervals] and [figure].

    **Raises:** `FileNotFoundError`; `ValueError` that names the file, the table and the key of whatever is absent,
    unknown or cannot be.
    """
    path = pathlib.Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no configuration file {path}")
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path} is not TOML: {error}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not TOML: it is not text in UTF-8") from None
    if "study" in tables or "analyses" in tables:
        return read_study(path, tables)
    if "synthesis" in tables:
        return read_synthesis(path, tables)
    refuse_unknown(tables, [*_TABLES, "terms", "intervals"], str(path), "table")
    if absent := [name for name in ("response", "mechanism", "privacy") if name not in tables]:
        raise ValueError(f"{path}: the table [{absent[0]}] is missing")
    parts: dict[str, Any] = {
        name: read_part(tables[name], f"{path}: [{name}]") if name in tables else None
        for name, read_part in _TABLES.items()
    }
    terms = _terms(tables.get("terms", []), str(path))
    parts["intervals"] = None
    if "intervals" in tables:
        parts["intervals"] = read_intervals(tables["intervals"], f"{path}: [intervals]", path, parts["data"])
    config = Config(path=path, ledger=parts["privacy"].ledger, terms=terms, **parts)
    try:
        _check_together(config)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return config


def _type_and_settings(table: Any, known: Iterable[str], where: str, default: str | None = None) -> tuple[str, Any]:
    """The `type` of a table, one of those known, and its other keys."""
    if not isinstance(table, dict):
        raise ValueError(f"{where} must be a table")
    if (kind := table.get("type", default)) is None:
        raise ValueError(f"{where} needs the key 'type'")
    if not isinstance(kind, str) or kind not in known:
        raise ValueError(f"{where} type: must be one of {', '.join(known)}; not {shown(kind)}")
    return kind, {name: value for name, value in table.items() if name != "type"}


def _loss(table: Any, where: str) -> Loss:
    kind, settings = _type_and_settings(table, registry.LOSSES, where)
    loss = registry.public(registry.LOSSES[kind])
    known, needs = registry.keys(loss), registry.needs(loss)
    if not set(needs) <= settings.keys() <= set(known):
        wanted, given = ", ".join(needs) or "no setting", ", ".join(sorted(settings)) or "nothing"
        may = "".join(f", and takes {name}" for name in known if name not in needs)
        raise ValueError(f"{where} type {kind!r} needs {wanted}{may}; given: {given}")
    levels = settings.pop("tau", None)
    try:
        if levels is not None:
            levels = convert(levels, tuple[float, ...])
    except ValueError as error:
        raise ValueError(f"{where} tau: {error}") from None
    if levels is not None and len(set(levels)) < len(levels):
        raise ValueError(f"{where} tau: every quantile level may be given once")
    try:
        return Loss(type=kind, tau=levels, settings=registry.settings(loss, settings))
    except ValueError as error:
        raise ValueError(f"{where} {error}") from None


def _mechanism(table: Any, where: str) -> Named:
    kind, settings = _type_and_settings(table, registry.MECHANISMS, where, default="kng")
    if registry.needs_domain(kind) and "domain" not in settings:
        raise ValueError(
            f"{where} needs the key 'domain': the public set of the coefficients, like {{ box = [-20.0, 20.0] }}"
        )
    return Named(kind, settings)


def _terms(tables: Any, path: str) -> tuple[Term, ...]:
    if not isinstance(tables, list):
        raise ValueError(f"{path}: write each term as a table [[terms]] of its own")
    return tuple(
        read_table(Term, term, f"{path}: [[terms]] number {number}") for number, term in enumerate(tables, start=1)
    )


def _sampler(table: Any, where: str) -> Named:
    return Named(*_type_and_settings(table, registry.SAMPLERS, where))


_TABLES: dict[str, Callable[[Any, str], Any]] = {
    "data": functools.partial(read_table, Source),
    "response": functools.partial(read_table, ResponseSettings),
    "privacy": functools.partial(read_table, Privacy),
    "figure": functools.partial(read_table, Figure),
    "loss": _loss,
    "mechanism": _mechanism,
    "sampler": _sampler,
}


def _check_together(config: Config) -> None:
    """Raises ValueError for tables that do not fit one another."""
    kind = config.mechanism.type
    for name, given, takes in (
        ("loss", config.loss is not None, registry.takes(kind, "loss")),
        ("terms", bool(config.terms), registry.takes_terms(kind)),
    ):
        if given and not takes:
            raise ValueError(f"[mechanism] type = {kind!r} has no [{name}]: leave that table out")
        if takes and not given:
            raise ValueError(f"the table [{name}] is missing")
    if config.intervals is not None and config.sampler is not None:
        raise ValueError("[sampler] and [intervals] do not go together: leave [sampler] out")
    if config.adjacency == "replace" and config.intervals is not None and config.intervals.num_records is not None:
        raise ValueError("[intervals] num_records: under replace n is public and that of the data: leave it out")
    if (config.privacy.epsilon is None) == registry.takes(kind, "epsilon"):
        raise ValueError(
            "[privacy] needs the key 'epsilon': the total, in nats, of all regressions together"
            if config.privacy.epsilon is None
            else f"[privacy] epsilon: of type = {kind!r} it follows from the other settings: leave it out"
        )
    shares, count = config.privacy.shares, len(config.labels)
    if shares is not None and len(shares) != count:
        raise ValueError(f"[privacy] shares: {len(shares)} shares for {count} regressions")
    if config.drops and config.privacy.adjacency == "replace":
        raise ValueError(
            'missing = "drop" needs [privacy] adjacency = "add_remove": where the number of records is public, '
            "nobody's may drop out"
        )
    _ = config.codes
    if config.figure is not None:
        config.figure.check(config.terms)
