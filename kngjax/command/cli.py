"""The command `kngjax`: releases and audits of a job that a TOML file declares, and ledgers of privacy budgets.

Nothing heavy is imported before a subcommand runs, so that `kngjax --help` answers at once.
"""

import argparse
import contextlib
import os
import pathlib
import sys
from collections.abc import Sequence
from typing import Any

from kngjax.command import registry

_OF_RECORDS = "the number of records, which is public under replace; without it that of the data"
# The last two are the statuses that shells give processes ended by SIGINT and SIGPIPE.
FAILED, USER_ERROR, INTERRUPTED, NOT_READ = 1, 2, 130, 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status: 0, 1 for a release or audit that failed, 2 for an error of the user.

    **Arguments:** `arguments`, the words after `kngjax`; None takes those of the process.

    Errors of the user end in one line on the standard error stream, in the terms of the file and the command, which
    tells no value of the data; so does Ctrl-C, with 130. Output that nobody reads on ends in silence, with 141.
    """
    options = _parser().parse_args(arguments)
    try:
        status = options.run(options)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        kept = (
            ": what was released is kept, and a debit whose draw was cut off stays spent; --resume pays for the rest"
            if options.run is _release
            else ""
        )
        print(f"kngjax: interrupted{kept}", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # Else the interpreter writes what is left when it ends, and complains.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NOT_READ
    except (ValueError, TypeError, OSError, ImportError, RuntimeError) as error:
        print(f"kngjax: error: {' '.join(_error_in_toml(error).split())}", file=sys.stderr)
        return FAILED if isinstance(error, RuntimeError) else USER_ERROR


def _error_in_toml(error: Exception) -> str:
    """An error in the terms of a job; of a release that failed always the same, whatever it says."""
    from kngjax.core.errors import ReleaseFailed

    if isinstance(error, ReleaseFailed):
        return registry.FAILED
    # Paths stay as they are.
    return str(error) if isinstance(error, OSError) else registry.in_toml(str(error))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kngjax", description="Statistical estimates under differential privacy, by the K-norm gradient mechanism."
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    release = commands.add_parser(
        "release",
        help="release the regressions of a configuration, privately",
        description="Release the regressions of a configuration once, print them and write them as JSON.",
        epilog=f"[mechanism] type: {', '.join(registry.MECHANISMS)}. [loss] type: {', '.join(registry.LOSSES)}. "
        f"[sampler] type: {', '.join(registry.SAMPLERS)}. Their settings are in docs/jobs.md.",
    )
    _add_job(release, "; its name is published with the releases")
    release.add_argument(
        "--ledger", metavar="FILE", type=pathlib.Path, help="the budget that pays, in place of its own"
    )
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
    again = release.add_mutually_exclusive_group()
    again.add_argument(
        "--resume",
        action="store_true",
        help="take what this job released before from a file of data of this name (its content is not compared), and "
        "pay for the missing ones only",
    )
    again.add_argument(
        "--force", action="store_true", help="release and pay anew, and replace the releases.json that is there"
    )
    release.set_defaults(run=_release)
    check = commands.add_parser(
        "check",
        help="tell the data owner alone whether the data fit a configuration; releases and debits nothing",
        description="For the data owner alone, not private: whether each regression can prepare its records, and the "
        "fraction of records beyond bounds or levels, or missing. Exit status 0 if they fit, 2 if not.",
    )
    _add_job(check)
    check.set_defaults(run=_check)
    audit = commands.add_parser(
        "audit",
        help="search for neighbouring data sets that betray the claimed epsilon",
        description="Search for the largest density ratio between neighbouring data sets; reads no data.",
    )
    audit.add_argument("config", metavar="CONFIG", type=pathlib.Path, help="the TOML file of the job")
    audit.add_argument("--steps", metavar="N", type=int, help="steps of the search (default: the audit's own)")
    audit.add_argument("--records", metavar="N", type=int, help=_OF_RECORDS)
    audit.set_defaults(run=_audit)
    plan = commands.add_parser(
        "plan",
        help="tell what a configuration would cost and how it would be drawn; nothing is spent, no value is looked at",
        description="Tell of each release its mechanism, how it would be drawn and what it costs, and whether the "
        "ledger allows all. Exit status 0 if it does, 2 if not.",
    )
    _add_job(plan, ", of which only the number of records is taken")
    plan.add_argument("--records", metavar="N", type=int, help=_OF_RECORDS)
    plan.add_argument("--ledger", metavar="FILE", type=pathlib.Path, help="the budget, in place of its own")
    plan.set_defaults(run=_plan)
    _add_ledger(commands)
    trust = commands.add_parser(
        "trust",
        help="measure the figures of docs/promises.md anew; reads no data",
        description="Audit, plant bugs, try hostile inputs, search dumps, race and kill: what the library withstands.",
    )
    trust.add_argument("--quick", action="store_true", help="small numbers; the whole takes some twenty minutes")
    trust.set_defaults(run=_trust)
    return parser


def _add_job(command: argparse.ArgumentParser, of_data: str = "") -> None:
    command.add_argument("config", metavar="CONFIG", type=pathlib.Path, help="the TOML file of the job")
    of_data = f"a CSV or Parquet file in place of [data]{of_data}"
    command.add_argument("--data", metavar="FILE", type=pathlib.Path, help=of_data)


def _add_ledger(commands: Any) -> None:
    ledger = commands.add_parser(
        "ledger",
        help="make, show or verify the ledger of a privacy budget, or print its releases",
        description="A ledger is a file that releases of one data set are debited from before they are made.",
    )
    actions = ledger.add_subparsers(title="actions", metavar="ACTION", required=True)
    create = actions.add_parser("create", help="a new ledger, never over another file")
    create.add_argument("file", metavar="FILE", type=pathlib.Path)
    create.add_argument("--epsilon", metavar="E", help="the budget in epsilon: pure, or at --delta")
    create.add_argument("--delta", metavar="D", help="with --epsilon: the sums of both are held")
    create.add_argument("--rho", metavar="R", help="the budget in rho of zCDP, in place of epsilon")
    create.add_argument(
        "--distance",
        metavar="H",
        help="with --rho: the most that the distances of outputs rounded in float64 add up to (default: 0: lattices)",
    )
    create.add_argument(
        "--by-zcdp", action="store_true", help="with --epsilon and --delta: hold the rho that they allow instead"
    )
    create.add_argument(
        "--adjacency", required=True, choices=("replace", "add_remove"), help="of every release of this ledger"
    )
    create.add_argument("--dataset", metavar="NAME", required=True, help="a public label of the data")
    create.add_argument("--unit", metavar="NAME", default="record", help="what one record stands for (default: record)")
    create.add_argument(
        "--allow-unproved",
        action="store_true",
        help="debit releases of which nothing is proved as the laws that they approximate, and say so in every sum",
    )
    create.set_defaults(run=_ledger_create)
    show = actions.add_parser("show", help="what is spent and what is left, for the owner")
    show.add_argument("file", metavar="FILE", type=pathlib.Path)
    show.set_defaults(run=_ledger_show)
    releases = actions.add_parser("releases", help="the releases that were paid for, as JSON")
    releases.add_argument("file", metavar="FILE", type=pathlib.Path)
    releases.set_defaults(run=_ledger_releases)
    verify = actions.add_parser("verify", help="follow the chain of digests and add up again")
    verify.add_argument("file", metavar="FILE", type=pathlib.Path)
    verify.add_argument("--head", metavar="DIGEST", help="a head noted earlier, which the ledger must contain")
    verify.set_defaults(run=_ledger_verify)


def _release(options: argparse.Namespace) -> int:
    from kngjax.command import config as configuration
    from kngjax.command import job, report, resuming
    from kngjax.command.config import Config
    from kngjax.core import side_doors

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
    if isinstance(config, Config) or config.adjacency != "replace":
        steps = job.planned(config).steps
        if ledger is not None:
            # The laws cost no more than the releases, whose cost is known when the number of records is.
            missing = [step.law for step in steps if step.label not in past.releases]
            resuming.require(ledger, missing, past)
    with_figure = getattr(config, "figure", None) is not None and not options.no_figure
    if with_figure:
        _require_matplotlib()
    directory.mkdir(parents=True, exist_ok=True)
    frame = job.load(config, options.data)
    try:
        results = job.run(config, frame, ledger=ledger, directory=directory, **again)
    except Exception:
        if (directory / job.RELEASES).exists():
            print("kngjax: what was released is kept: --resume pays for the rest only", file=sys.stderr)
        raise
    written = [directory / job.RELEASES]
    print(job.planned(config, len(frame)).text(results), end="\n\n", flush=True)
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


def _check(options: argparse.Namespace) -> int:
    from kngjax.command import config as configuration
    from kngjax.command import job, report

    config = configuration.read(options.config)
    frame = job.load(config, options.data)
    planned = job.planned_for(config, frame)
    text, fits = report.owner_check(planned.steps, planned.columns, frame)
    print(text)
    return 0 if fits else USER_ERROR


def _plan(options: argparse.Namespace) -> int:
    from kngjax.command import config as configuration
    from kngjax.command import job

    config = configuration.read(options.config)
    ledger = job.ledger(config, options.ledger)
    text, allowed = job.foreseen(config, job.public_count(config, options.data, options.records), ledger)
    print(text)
    return 0 if allowed else USER_ERROR


def _audit(options: argparse.Namespace) -> int:
    from kngjax import audit
    from kngjax.command import config as configuration
    from kngjax.command import job
    from kngjax.command.study_config import StudyConfig

    if options.steps is not None and options.steps < 1:
        raise ValueError(f"--steps must be at least 1, not {options.steps}")
    settings = {} if options.steps is None else {"num_steps": options.steps}
    audits = []
    config = configuration.read(options.config)
    count = job.public_count(config, None, options.records) if isinstance(config, StudyConfig) else None
    asked = [(step.label, mechanism) for step in job.planned(config, count).steps for mechanism in step.mechanisms]
    for label, mechanism in asked:
        dimension = mechanism.dimension
        assert dimension is not None
        about = f"{dimension} coefficients"
        if dimension > 2:
            # The audit needs a grid over the coefficients.
            mechanism, about = audit.restricted(mechanism, 2), f"restricted to the first 2 of {dimension} coefficients"
        result = audit.density_ratio(mechanism, **settings)
        audits.append(result)
        print(
            f"{label}, {about}: {'passed' if result.passed else 'FAILED'}, worst log ratio "
            f"{result.worst_log_ratio:.4g} of epsilon = {result.claimed_epsilon:.4g}",
            flush=True,
        )
    print("\nThe worst of them: " + max(audits, key=lambda result: result.ratio).explain())
    return 0 if all(result.passed for result in audits) else FAILED


def _trust(options: argparse.Namespace) -> int:
    from kngjax.audit import trust
    from kngjax.command import config as configuration
    from kngjax.command import job, planning

    def records(path: pathlib.Path, data: pathlib.Path) -> Any:
        config = configuration.read(path)
        return planning.records(config, job.load(config, data))

    def release(path: pathlib.Path, data: pathlib.Path, ledger: Any) -> Any:
        config = configuration.read(path)
        return job.run(config, job.load(config, data), progress=False, ledger=ledger)

    passed = True
    for figure in trust.figures(
        trust.Jobs(records, release, registry.FAILED, "kngjax.command.cli"), quick=options.quick
    ):
        print(figure, flush=True)
        passed &= figure.passed
    return 0 if passed else FAILED


def _ledger_create(options: argparse.Namespace) -> int:
    from kngjax.ledger.budgets import Budget
    from kngjax.ledger.ledgers import Ledger

    epsilon, delta, rho = options.epsilon, options.delta, options.rho
    if (epsilon is None) == (rho is None) or (rho is not None and delta is not None):
        raise ValueError("name the budget: --epsilon, --epsilon with --delta, or --rho")
    if options.by_zcdp and delta is None:
        raise ValueError("--by-zcdp needs --epsilon and --delta, of which rho follows")
    if options.distance is not None and rho is None:
        raise ValueError("--distance goes with --rho")
    if rho is not None:
        budget = Budget.zcdp(rho, options.distance or 0)
    elif delta is None:
        budget = Budget.pure(epsilon)
    else:
        budget = (Budget.converted if options.by_zcdp else Budget.approximate)(epsilon, delta)
    ledger = Ledger.create(
        options.file,
        budget,
        adjacency=options.adjacency,
        dataset=options.dataset,
        unit=options.unit,
        unproved="allow" if options.allow_unproved else "refuse",
    )
    print(ledger.read().explain())
    return 0


def _ledger_show(options: argparse.Namespace) -> int:
    from kngjax.ledger.ledgers import Ledger

    print(Ledger(options.file).read().explain())
    return 0


def _ledger_releases(options: argparse.Namespace) -> int:
    import json

    from kngjax.ledger.ledgers import Ledger

    book = Ledger(options.file).read()
    entries = [
        {
            "reservation": number,
            "what": book.what[number].get("what"),
            "certificate": committed["certificate"],
            # Files of older versions hold its digest alone.
            "release": json.loads(committed["release"]) if "release" in committed else None,
        }
        for number, committed in sorted(book.released.items())
    ]
    print(json.dumps(entries, indent=2))
    return 0


def _ledger_verify(options: argparse.Namespace) -> int:
    from kngjax.ledger.ledgers import Ledger

    book = Ledger(options.file).verify(options.head)
    print(
        f"The ledger holds: {book.num_rows} rows, each with the digest of the one before; {book.left} is left.\n"
        f"Head: {book.head}\n"
        "A file set back to an earlier copy is found only by a head noted elsewhere: --head DIGEST."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
