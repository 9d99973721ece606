"""Subcommands of reports: one is made of releases.json, and checked. Each returns its exit status."""

import argparse
import json
import pathlib

from kngjax.command import job, job_file, resuming
from kngjax.command.cli import FAILED
from kngjax.ledger.ledgers import Ledger
from kngjax.study.reports.checking import check_report, report_of

_PAGE = "report.html"


def report(options: argparse.Namespace) -> int:
    """Writes the report of what a job released."""
    path, paying = options.releases, options.ledger and Ledger(options.ledger)
    if path.suffix.lower() == ".toml":
        file = job_file.read(path)
        path, paying = pathlib.Path("output") / file.name / resuming.RELEASES, job.ledger(file, options.ledger)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file of releases {path}")
    try:
        published = json.loads(path.read_text(encoding="utf-8"))
        made = report_of(published, None if paying is None else paying.read())
    except json.JSONDecodeError:
        raise ValueError(f"{path} is no JSON: give the releases.json or the TOML file of a job") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    output = path.with_name(_PAGE) if options.output is None else options.output
    for own in (options.releases, path, *([] if paying is None else [paying.path])):
        if output.resolve() == own.resolve():
            raise ValueError(f"{output} would be written over: give another --output")
    resuming.replace(output, made)
    print(f"Written: {output}")
    return 0


def verify(options: argparse.Namespace) -> int:
    """Checks a report against its certificates, and against the ledger."""
    ledger = None if options.ledger is None else Ledger(options.ledger)
    try:
        text = options.report.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{options.report} is no report of kngjax: it is not text in UTF-8") from None
    found = check_report(text, ledger)
    print(found.explain())
    return FAILED if found.differs else 0
