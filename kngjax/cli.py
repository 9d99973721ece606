"""The command `kngjax`: releases and audits of a job that a TOML file declares.

Nothing heavy is imported before a subcommand runs, so that `kngjax --help` answers at once.
"""

import argparse
import pathlib
import sys
from collections.abc import Sequence

FAILED, USER_ERROR = 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status: 0, 1 for an audit or search that failed, 2 for an error of the user.

    **Arguments**: `arguments`, the words after `kngjax`; None takes those of the process.

    Errors of the user end in one line on the standard error stream, which tells no value of the data.
    """
    options = _parser().parse_args(arguments)
    try:
        return options.run(options)
    except (ValueError, TypeError, OSError, ImportError, RuntimeError) as error:
        print(f"kngjax: error: {' '.join(str(error).split())}", file=sys.stderr)
        return FAILED if isinstance(error, RuntimeError) else USER_ERROR


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kngjax", description="Statistical estimates under differential privacy, by the K-norm gradient mechanism."
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    release = commands.add_parser(
        "release",
        help="release the regressions of a configuration, privately",
        description="Release the regressions of a configuration once, print them and write them as JSON.",
    )
    release.add_argument("config", metavar="CONFIG", type=pathlib.Path, help="the TOML file of the job")
    release.add_argument("--data", metavar="FILE", type=pathlib.Path, help="a CSV or Parquet file in place of [data]")
    release.add_argument(
        "--output",
        metavar="DIRECTORY",
        type=pathlib.Path,
        help="where releases.json and the figure are written (default: output/ and the name of the configuration)",
    )
    release.add_argument(
        "--owner-view",
        action="store_true",
        help="print, for the data owner alone, the fit without privacy, clipping fractions, R-hat and ESS",
    )
    release.add_argument("--no-figure", action="store_true", help="draw no figure")
    release.set_defaults(run=_release)
    audit = commands.add_parser(
        "audit",
        help="search for neighbouring data sets that betray the claimed epsilon",
        description="Search for the largest density ratio between neighbouring data sets; reads no data.",
    )
    audit.add_argument("config", metavar="CONFIG", type=pathlib.Path, help="the TOML file of the job")
    audit.add_argument("--steps", metavar="N", type=int, help="steps of the search (default: the audit's own)")
    audit.set_defaults(run=_audit)
    return parser


def _release(options: argparse.Namespace) -> int:
    from kngjax import config as configuration
    from kngjax import job, report

    config = configuration.read(options.config)
    directory = options.output if options.output is not None else pathlib.Path("output") / config.name
    # Whatever can fail without the data fails before they are read, and before epsilon is spent.
    job.regressions(config)
    job.sampler(config)
    with_figure = config.figure is not None and not options.no_figure
    if with_figure:
        _require_matplotlib()
    directory.mkdir(parents=True, exist_ok=True)
    if (directory / "releases.json").exists():
        print(
            f"kngjax: note: {directory / 'releases.json'} will be replaced. If anybody has seen it and it is of the "
            "same records, its epsilon and that of this run add up.",
            file=sys.stderr,
        )
    frame = job.load(config, options.data)
    results = job.run(config, frame)
    written = [job.write(config, results, directory)]
    print(report.table(config, results), report.certificates(results), sep="\n\n", end="\n\n", flush=True)
    if with_figure:
        written.append(directory / "curves.png")
        report.figure(config, results).savefig(written[-1], dpi=200)
    print(f"Written: {', '.join(map(str, written))}")
    if options.owner_view:
        print("\n" + report.owner_view(config, frame, results))
    return 0


def _require_matplotlib() -> None:
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise ImportError("the figure needs matplotlib: pip install 'kngjax[plots]', or say --no-figure") from None


def _audit(options: argparse.Namespace) -> int:
    from kngjax import audit, job
    from kngjax import config as configuration

    if options.steps is not None and options.steps < 1:
        raise ValueError(f"--steps must be at least 1, not {options.steps}")
    settings = {} if options.steps is None else {"num_steps": options.steps}
    audits = []
    for regression in job.regressions(configuration.read(options.config)):
        mechanism, dimension = regression.mechanism, regression.mechanism.dimension
        assert dimension is not None
        about = f"{dimension} coefficients"
        if dimension > 2:
            # The audit needs a grid over the coefficients.
            mechanism, about = audit.restricted(mechanism, 2), f"restricted to the first 2 of {dimension} coefficients"
        found = audit.density_ratio(mechanism, **settings)
        audits.append(found)
        print(
            f"{regression.label}, {about}: {'passed' if found.passed else 'FAILED'}, worst log ratio "
            f"{found.worst_log_ratio:.4g} of epsilon = {found.claimed_epsilon:.4g}",
            flush=True,
        )
    print("\nThe worst of them: " + max(audits, key=lambda found: found.ratio).explain())
    return 0 if all(found.passed for found in audits) else FAILED
