"""Subcommands of jobs in files. Each returns its exit status."""

import argparse
import pathlib
import sys
from typing import Any

from kngjax.command import config as configuration
from kngjax.command import job, registry, report, resuming, synthesis_job
from kngjax.command.cli import FAILED, USER_ERROR
from kngjax.command.config import Config
from kngjax.command.study_config import StudyConfig
from kngjax.command.synthesis_config import SynthesisConfig
from kngjax.core import side_doors
from kngjax.core.errors import UnfitShape
from kngjax.estimators import checks


def release(options: argparse.Namespace) -> int:
    """Releases of a job: printed, written, and on request shown to the owner."""
    config = configuration.read(options.config)
    directory = options.output if options.output is not None else pathlib.Path("output") / config.name
    # Whatever can fail without the data fails before they are read, and before epsilon is spent.
    side_doors.refuse()
    if options.owner_view:
        report.require_regressions(config)
    ledger = job.ledger(config, options.ledger)
    again: Any = {"resume": options.resume, "force": options.force, "data": job.name_of_data(config, options.data)}
    past = job.earlier_releases(config, ledger, directory, **again)
    # Of a study the number of records may decide what is released, where it is public.
    if not isinstance(config, StudyConfig) or config.adjacency != "replace":
        steps = job.planned(config).steps
        if ledger is not None:
            # The laws cost no more than the releases, whose cost is known when the number of records is.
            missing = [step.law for step in steps if step.label not in past.releases]
            resuming.require(ledger, missing, past)
    if isinstance(config, SynthesisConfig) and not (options.resume or options.force):
        synthesis_job.refuse_to_replace(config, directory)
    job.refuse_to_lose(config, ledger, directory, options.data)
    with_figure = getattr(config, "figure", None) is not None and not options.no_figure
    if with_figure:
        _require_matplotlib()
    directory.mkdir(parents=True, exist_ok=True)
    try:
        frame = job.load(config, options.data)
    except UnfitShape as error:
        raise UnfitShape(f"{error}{job.SHOWN}") from None
    try:
        results = job.run(config, frame, ledger=ledger, directory=directory, **again)
    except Exception:
        if (directory / job.RELEASES).exists():
            kept = "what was released is kept: once the cause is mended, --resume pays for the rest only"
            print(f"kngjax: {kept}", file=sys.stderr)
        raise
    written = [directory / job.RELEASES]
    print(job.planned(config, job.count_of(config, frame)).text(results), end="\n\n", flush=True)
    if with_figure:
        assert isinstance(config, Config)
        written.append(directory / job.FIGURE)
        report.figure(config, results).savefig(written[-1], dpi=200)
    if isinstance(config, SynthesisConfig):
        for table in results:
            written += synthesis_job.write_draws(config, table, directory)
    print(f"Written: {', '.join(map(str, written))}")
    if options.owner_view:
        assert isinstance(config, Config)
        print("\n" + report.owner_view(config, frame, results))
    return 0


def _require_matplotlib() -> None:
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise ImportError("the figure needs matplotlib: pip install 'kngjax[plots]', or say --no-figure") from None


def check(options: argparse.Namespace) -> int:
    """Whether the data fit, for the owner alone."""
    config = configuration.read(options.config)
    frame = None
    try:
        frame = job.load(config, options.data)
        planned = job.planned_for(config, frame)
    except ValueError as error:
        # Not of settings, but of what was read of the file.
        if frame is not None and not isinstance(error, UnfitShape):
            raise
        header = job.header_as_read(config, options.data)
        raise ValueError(f"{error}. {checks.OWNER_BANNER}: {header}" if header else str(error)) from None
    found = checks.check(frame, planned.columns, planned.steps, registry.in_toml)
    print(found.summary())
    return 0 if found.fits else USER_ERROR


def plan(options: argparse.Namespace) -> int:
    """Prints what a job would cost, and whether its ledger allows it."""
    config = configuration.read(options.config)
    ledger = job.ledger(config, options.ledger)
    text, allowed = job.foreseen(config, job.public_count(config, options.data, options.records), ledger)
    print(text)
    return 0 if allowed else USER_ERROR


def audit(options: argparse.Namespace) -> int:
    """Attacks on a job's mechanisms."""
    from kngjax import audit as audits

    if options.steps is not None and options.steps < 1:
        raise ValueError(f"--steps must be at least 1, not {options.steps}")
    settings = {} if options.steps is None else {"num_steps": options.steps}
    found = []
    config = configuration.read(options.config)
    if isinstance(config, SynthesisConfig):
        raise ValueError(
            f"{config.path}: 'kngjax audit' searches the densities of single mechanisms, and a synthesis is of counts "
            "and curves: docs/promises.md says how those are audited"
        )
    count = job.public_count(config, None, options.records) if isinstance(config, StudyConfig) else None
    asked = [(step.label, mechanism) for step in job.planned(config, count).steps for mechanism in step.mechanisms]
    for label, mechanism in asked:
        dimension = mechanism.dimension
        assert dimension is not None
        about = f"{dimension} coefficients"
        if dimension > 2:
            # The audit needs a grid over the coefficients.
            mechanism, about = audits.restricted(mechanism, 2), f"restricted to the first 2 of {dimension} coefficients"
        result = audits.density_ratio(mechanism, **settings)
        found.append(result)
        print(
            f"{label}, {about}: {'passed' if result.passed else 'FAILED'}, worst log ratio "
            f"{result.worst_log_ratio:.4g} of epsilon = {result.claimed_epsilon:.4g}",
            flush=True,
        )
    print("\nThe worst of them: " + max(found, key=lambda result: result.ratio).explain())
    return 0 if all(result.passed for result in found) else FAILED
