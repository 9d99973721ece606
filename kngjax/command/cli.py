"""Defines the command `kngjax`, which releases a job in a TOML file and keeps ledgers of budgets.

A subcommand imports what it needs, so that `kngjax --help` answers at once.
"""

import argparse
import contextlib
import importlib
import os
import pathlib
import sys
from collections.abc import Sequence
from typing import Any

_OF_RECORDS = "the number of records, which is public under replace; without it that of the data"
# The last two are the statuses that shells give processes ended by SIGINT and SIGPIPE.
FAILED, USER_ERROR, INTERRUPTED, NOT_READ = 1, 2, 130, 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit status: 0, 1 for a release that failed, 2 for an error of the user.

    **Arguments:** `arguments`, the words after `kngjax`; None takes those of the process.

    An error of the user ends in one line on the standard error stream. It is in the terms of the file and the command,
    and tells no value of the data. Ctrl-C ends in one line too, with status 130. A closed output ends in silence, with
    status 141.
    """
    options = command_parser().parse_args(arguments)
    try:
        module, _, name = options.run.partition(".")
        status = getattr(importlib.import_module(f"kngjax.command.{module}"), name)(options)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        kept = (
            ": what was released is kept, and a debit whose draw was cut off stays spent; --resume pays for the rest"
            if options.run == "of_jobs.release"
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
        print(f"kngjax: error: {' '.join(_in_words(error).split())}", file=sys.stderr)
        return FAILED if isinstance(error, RuntimeError) else USER_ERROR


def _in_words(error: Exception) -> str:
    """Gives the words of an error; a release that failed has one text, with its anchor, whatever the error says."""
    from kngjax.command.named_parts import FAILED as failed
    from kngjax.core.error_anchors import pointer
    from kngjax.core.errors import ReleaseFailed

    return f"{failed} (see {pointer(failed)})" if isinstance(error, ReleaseFailed) else str(error)


def command_parser() -> argparse.ArgumentParser:
    """Makes the parser of the words after `kngjax`; it loads no JAX."""
    parser = argparse.ArgumentParser(
        prog="kngjax", description="Statistical estimates under differential privacy, by the K-norm gradient mechanism."
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    release = commands.add_parser(
        "release",
        help="release what a configuration asks for, privately",
        description="Release once what a configuration asks for, print it and write it as JSON.",
        epilog="A configuration is a study: [study] has what is public of the data, and each of [[analyses]] a method "
        'of kngjax.Study, or "synthesis", with its arguments. docs/jobs.md has examples.',
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
    release.add_argument("--no-figure", action="store_true", help="draw no figure")
    again = release.add_mutually_exclusive_group()
    again.add_argument(
        "--resume",
        action="store_true",
        help="take what this job released before from a file of data of this name (its content is not compared, but it "
        "may not be newer), and pay for the missing ones only",
    )
    again.add_argument(
        "--force", action="store_true", help="release and pay anew, and replace the releases.json that is there"
    )
    release.set_defaults(run="of_jobs.release")
    check = commands.add_parser(
        "check",
        help="tell the data owner alone whether the data fit a configuration; releases and debits nothing",
        description="For the data owner alone, not private: whether each analysis can prepare its records, and the "
        "fraction of records beyond bounds or levels, or missing. Exit status 0 if they fit, 2 if not.",
    )
    _add_job(check)
    check.set_defaults(run="of_jobs.check")
    plan = commands.add_parser(
        "plan",
        help="tell what a configuration would cost and how it would be drawn; nothing is spent, no value is looked at",
        description="Tell of each release its mechanism, how it would be drawn and what it costs, and whether the "
        "ledger allows all. Exit status 0 if it does, 2 if not.",
    )
    _add_job(plan, ", of which only the number of records is taken")
    plan.add_argument("--records", metavar="N", type=int, help=_OF_RECORDS)
    plan.add_argument("--ledger", metavar="FILE", type=pathlib.Path, help="the budget, in place of its own")
    plan.add_argument(
        "--output",
        metavar="PAGE",
        type=pathlib.Path,
        help="write the plan as an HTML page too, with expected errors at half, one and two times each epsilon",
    )
    plan.add_argument("--open", action="store_true", help="write the page, plan.html unless named, and open it")
    plan.add_argument(
        "--design",
        metavar="ROWS",
        type=pathlib.Path,
        help="for the page: a CSV or Parquet file of public or made-up rows that lie as the table's do; never the data",
    )
    plan.add_argument(
        "--residual",
        metavar="S",
        type=float,
        help="for the page: how far responses of linear and quantile regressions scatter",
    )
    plan.set_defaults(run="of_jobs.plan")
    _add_reports(commands)
    _add_ledger(commands)
    return parser


def _add_job(command: argparse.ArgumentParser, of_data: str = "") -> None:
    command.add_argument("config", metavar="CONFIG", type=pathlib.Path, help="the TOML file of the job")
    of_data = f"a CSV or Parquet file in place of [data]{of_data}"
    command.add_argument("--data", metavar="FILE", type=pathlib.Path, help=of_data)


def _add_reports(commands: Any) -> None:
    report = commands.add_parser(
        "report",
        help="write what was released as one HTML page, for a review board or an appendix",
        description="Write one HTML page of what was released: guarantees, numbers, budget, assumptions. It holds "
        "published facts alone, and the releases as JSON.",
    )
    report.add_argument(
        "releases",
        metavar="RELEASES",
        type=pathlib.Path,
        help="the releases.json of a job; or the TOML file of a job that was released here, whose ledger is taken",
    )
    report.add_argument(
        "--output", metavar="FILE", type=pathlib.Path, help="the page (default: report.html beside releases.json)"
    )
    report.set_defaults(run="of_reports.report")
    verify = commands.add_parser(
        "verify",
        help="check a report: whether it says what its certificates and the ledger say",
        description="Compute the numbers and costs of a report anew from the releases that it holds, compare its text, "
        "and find each release in the ledger. Exit status 0 if all agrees, 1 if not.",
    )
    verify.add_argument("report", metavar="REPORT", type=pathlib.Path, help="the HTML page of a report")
    verify.set_defaults(run="of_reports.verify")
    for command in (report, verify):
        command.add_argument("--ledger", metavar="FILE", type=pathlib.Path, help="the ledger that paid")


def _add_ledger(commands: Any) -> None:
    ledger = commands.add_parser(
        "ledger",
        help="make, show or verify the ledger of a privacy budget, or print its releases",
        description="A ledger is a file that releases of one data set are debited from before they are made.",
    )
    actions = ledger.add_subparsers(title="actions", metavar="ACTION", required=True)
    create = actions.add_parser("create", help="a new ledger, never over another file")
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
    create.add_argument(
        "--unit", metavar="NAME", default="record", help="whom releases protect: record, patient (default: record)"
    )
    create.add_argument(
        "--allow-unproved",
        action="store_true",
        help="debit releases of which nothing is proved as the laws that they approximate, and say so in every sum",
    )
    create.set_defaults(run="of_ledgers.create")
    show = actions.add_parser("show", help="what is spent and what is left, for the owner")
    show.add_argument("--csv", action="store_true", help="a line for each debit instead, as CSV")
    show.set_defaults(run="of_ledgers.show")
    releases = actions.add_parser("releases", help="the releases that were paid for, as JSON")
    releases.set_defaults(run="of_ledgers.releases")
    verify = actions.add_parser("verify", help="follow the chain of digests and add up again")
    verify.add_argument("--head", metavar="DIGEST", help="a head noted earlier, which the ledger must contain")
    verify.set_defaults(run="of_ledgers.verify")
    for action in (create, show, releases, verify):
        action.add_argument("file", metavar="FILE", type=pathlib.Path)


if __name__ == "__main__":
    sys.exit(main())
