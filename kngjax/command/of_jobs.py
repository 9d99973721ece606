"""Runs subcommands of jobs in files, each of which returns its exit status."""

import argparse
import pathlib
import sys
import webbrowser
from collections.abc import Sequence
from typing import Any

from kngjax.command import job, job_figure, job_file, resuming
from kngjax.command.cli import USER_ERROR
from kngjax.command.error_words import in_words
from kngjax.command.job_plan import JobPlan
from kngjax.core import side_doors
from kngjax.core.errors import UnfitShape
from kngjax.core.randomness import research_key
from kngjax.study import checks


def release(options: argparse.Namespace) -> int:
    """Makes the releases of a job, prints them and writes them."""
    file = job_file.read(options.config)
    directory = options.output if options.output is not None else pathlib.Path("output") / file.name
    # Whatever can fail without the data fails before they are read, and before epsilon is spent.
    side_doors.refuse()
    ledger = job.ledger(file, options.ledger)
    again: Any = {"resume": options.resume, "force": options.force, "data": job.name_of_data(file, options.data)}
    past = resuming.earlier_releases(file, ledger, directory, **again)
    # Under replace the number of records is public, and may decide what is released.
    if file.adjacency != "replace":
        steps = JobPlan(file, None).steps
        if ledger is not None:
            owed = [step.owed(0) for step in steps if step.label not in past.releases]
            resuming.require(ledger, [cost for cost, _ in owed], past, proved=all(proved for _, proved in owed))
    if not (options.resume or options.force):
        _refuse_to_replace(file.drawn_files, directory)
    job.refuse_to_lose(file, ledger, directory, options.data)
    with_figure = file.figure is not None and not options.no_figure
    if with_figure:
        _require_matplotlib()
    try:
        frame = job.load(file, options.data)
    except UnfitShape as error:
        raise UnfitShape(f"{error}{job.SHOWN}") from None
    directory.mkdir(parents=True, exist_ok=True)
    paths = job.files_of_data(file, options.data)
    try:
        made, results = job.run(file, frame, ledger=ledger, directory=directory, files=paths, **again)
    except Exception:
        if (directory / resuming.RELEASES).exists():
            kept = "what was released is kept: once the cause is mended, --resume pays for the rest only"
            print(f"kngjax: {kept}", file=sys.stderr)
        raise
    print(made.text(results), end="\n\n", flush=True)
    written = [directory / resuming.RELEASES, *_drawn(made, results, directory, with_figure)]
    print(f"Written: {', '.join(map(str, written))}")
    return 0


def _drawn(made: JobPlan, results: list[Any], directory: pathlib.Path, with_figure: bool) -> list[pathlib.Path]:
    """Draws the figure and the tables of syntheses, which is free; returns the paths of their files."""
    paths, file = [], made.file
    if with_figure and file.figure is not None:
        paths.append(directory / job.FIGURE)
        job_figure.draw(file, results[file.figure.analysis - 1]).savefig(paths[-1], dpi=200)
    for asked, result in zip(file.analyses, results, strict=True):
        if asked.draws is None:
            continue
        for name, seed in zip(asked.draws.files, asked.draws.seeds, strict=True):
            paths.append(directory / name)
            drawn = result.draw(asked.draws.num_rows, key=research_key(seed))
            resuming.replace(paths[-1], drawn.to_csv(index=False))
    return paths


def _require_matplotlib() -> None:
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise ImportError("the figure needs matplotlib: pip install 'kngjax[plots]', or say --no-figure") from None


def check(options: argparse.Namespace) -> int:
    """Tells the owner alone whether the data fit."""
    file = job_file.read(options.config)
    frame = None
    try:
        frame = job.load(file, options.data)
        planned = job.planned_for(file, frame)
    except ValueError as error:
        # Not of settings, but of what was read of the file.
        if frame is not None and not isinstance(error, UnfitShape):
            raise
        header = job.header_as_read(file, options.data)
        raise ValueError(f"{error}. {checks.OWNER_BANNER}: {header}" if header else str(error)) from None
    found = checks.check(frame, planned.columns, planned.steps, in_words)
    print(found.summary())
    return 0 if found.fits else USER_ERROR


def plan(options: argparse.Namespace) -> int:
    """Prints what a job would cost, and whether its ledger allows it; and writes that as a page, if asked to."""
    file = job_file.read(options.config)
    ledger = job.ledger(file, options.ledger)
    count = job.public_count(file, options.data, options.records)
    if options.open or options.output is not None:
        _write_plan(options, file, count, ledger)
    text, allowed = job.foreseen(file, count, ledger)
    print(text)
    return 0 if allowed else USER_ERROR


def _write_plan(options: argparse.Namespace, file: job_file.JobFile, count: int | None, ledger: Any) -> None:
    """Writes the page of a plan, and opens it in the browser if asked to."""
    from kngjax.command.job_foresight import described_by, page_of

    output = pathlib.Path("plan.html") if options.output is None else options.output
    job.refuse_to_lose(file, ledger, output.parent, options.data, (output.name,))
    resuming.replace(output, page_of(file, count, ledger, **described_by(options.design, options.residual)))
    print(f"Written: {output}", flush=True)
    if options.open:
        webbrowser.open(output.resolve().as_uri())


def _refuse_to_replace(files: Sequence[str], directory: pathlib.Path) -> None:
    """Raises ValueError where a file lies in the place of a table that would be drawn: it may be that of the data."""
    for name in files:
        if (directory / name).exists():
            raise ValueError(
                f"{directory / name} exists: move it away, or give [analyses.draws] another file; --resume and "
                "--force replace it"
            )
