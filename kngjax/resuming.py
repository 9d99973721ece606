"""What a job has paid for already, so that it is never lost and never paid twice: in its ledger, or in its output.

    debit (on the disk) -> draw -> commit with the release's JSON (on the disk) -> releases.json (replaced at once)

A job that is killed or fails at any moment leaves every release that it made in the ledger, or without one in its
output. Resumed it takes those and pays for the others. It never draws again from a debit that was not committed: that
debit's first draw may have failed, or been slow and killed for it, because of the data, and a second one under the same
debit would be two answers for the price of one. As each debit is made right before its draw, at most one is lost.
"""

import dataclasses
import hashlib
import json
import os
import pathlib
import tempfile
from typing import Any

from kngjax.ledger import Ledger
from kngjax.ledger.book import canonical


@dataclasses.dataclass(frozen=True)
class Earlier:
    """**Arguments:** `run`: which of the job's runs it was, from 1; 0 for none. `releases`: JSON by label."""

    run: int
    releases: dict[str, str]


def identity(settings: Any) -> str:
    """SHA-256 of everything public that decides what a job releases: two jobs with the same are one job."""
    return hashlib.sha256(canonical(settings).encode()).hexdigest()


def kept(job: str, ledger: Ledger | None, path: pathlib.Path | None, *, resume: bool, force: bool) -> Earlier:
    """What is taken of earlier runs, and the number of this one. What there is, is neither replaced nor paid for twice.

    **Arguments:** `job`: its `identity`. `path`: of its releases.json. `resume`: take what there is. `force`: take
    nothing. Raises ValueError where there is something and neither was said, for the output of another job, and to
    resume with a ledger releases that were not debited from it.

    A job is its settings: whether the data are the same is not known here, and a ledger is of one data set.
    """
    known = Earlier(0, {}) if ledger is None else _in_ledger(ledger, job)
    if force:
        return Earlier(known.run + 1, {})
    if resume:
        held = Earlier(0, {}) if path is None else _in_file(path, job)
        if known.run:
            return known
        if ledger is not None and held.releases:
            raise ValueError(
                f"the releases of {path} were not debited from this ledger, which would then say less than was "
                "released: give the ledger that they were debited from, or none; --force releases and pays anew"
            )
        return Earlier(1, held.releases)
    advice = "--resume takes what is there and pays for the rest only, --force releases and pays anew"
    if path is not None and path.exists():
        raise ValueError(f"{path} exists, and was paid for: {advice}")
    if known.releases:
        raise ValueError(f"the ledger holds {len(known.releases)} releases of this very job: {advice}")
    return Earlier(known.run + 1, {})


def _in_ledger(ledger: Ledger, job: str) -> Earlier:
    """What the last run of a job committed, though an earlier one may have committed more."""
    book = ledger.read()
    about = {number: content["what"] for number, content in book.what.items() if _is_of(content.get("what"), job)}
    last = max((what["run"] for what in about.values()), default=0)
    committed = book.releases
    own = {number: what["label"] for number, what in about.items() if what["run"] == last}
    return Earlier(last, {label: committed[number] for number, label in own.items() if number in committed})


def _is_of(what: Any, job: str) -> bool:
    return isinstance(what, dict) and what.get("identity") == job


def _in_file(path: pathlib.Path, job: str) -> Earlier:
    if not path.exists():
        return Earlier(0, {})
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        own = fields.get("identity") == job
    except (ValueError, AttributeError):
        own = False
    if not own:
        raise ValueError(f"{path} is of another job: move it away, or give another directory; --force replaces it")
    return Earlier(1, {entry["label"]: json.dumps(entry["release"], sort_keys=True) for entry in fields["releases"]})


def replace(path: pathlib.Path, text: str) -> None:
    """Write a file at once: whenever the process ends, the old one is whole or the new one is, and on the disk."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp lets nobody but the owner read; a release is for everybody.
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        pathlib.Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    # The one way to read it is to set it.
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
