"""Finds what a job has paid for, in its ledger or its output, so that it is never lost and never paid twice.

    debit (on the disk) -> draw -> commit with the release's JSON (on the disk) -> releases.json (replaced at once)

A job that is killed or fails at any moment leaves every release that it made in the ledger, or without one in its
output. Resumed it takes those and pays for the others. It never draws again from a debit that was not committed: that
debit's first draw may have failed, or been slow and killed for it, because of the data, and a second one under the same
debit would be two answers for the price of one. As each debit is made right before its draw, at most one is lost.

What is compared of the data is the public name of their file, without its folder, and never their content: a digest of
it would confirm a guess. A file that is newer than the run's first debit is refused. Frames that a program passes have
no name, and are taken for one another.
"""

import dataclasses
import datetime
import json
import os
import pathlib
import tempfile
from collections.abc import Iterable, Sequence
from typing import Any

from kngjax.accounting.guarantees import Guarantee
from kngjax.command.job_file import JobFile
from kngjax.ledger.ledgers import BudgetExceeded, Ledger
from kngjax.ledger.store import sync_folder

RELEASES = "releases.json"


@dataclasses.dataclass(frozen=True)
class Earlier:
    """Holds what there is of a job, of the data of one name.

    **Arguments:** `run`: which of the job's runs it was, from 1; 0 for none. `releases`: JSON by label. `lost`: whether
    a debit led to no release. `began`: when the run's first debit was made, or its output last written, in seconds.
    """

    run: int
    releases: dict[str, str]
    lost: bool = False
    began: float | None = dataclasses.field(default=None, compare=False)


def earlier_releases(
    file: JobFile,
    ledger: Ledger | None,
    directory: pathlib.Path | None,
    *,
    resume: bool = False,
    force: bool = False,
    data: str | None = None,
) -> Earlier:
    """Finds what is taken of earlier runs, and the number of this one. Nothing there is replaced or paid for twice.

    **Arguments:** `directory`: of its releases.json. `resume`: take what there is. `force`: take nothing. `data`: the
    public name of the file of data, None for a frame.

    Raises ValueError where there is something, of data of any name, and neither was said, for the output of another
    job, to resume releases of data of another name, and to resume with a ledger releases that were not debited from it,
    or that a job of this name made with other settings.

    A job is its settings and the name of its data: whether the data are the same is not known here, and a ledger is of
    one data set.
    """
    path, job = None if directory is None else directory / RELEASES, file.identity
    every = {} if ledger is None else _in_ledger(ledger, job)
    known = every.get(data, Earlier(0, {}))
    if force:
        return Earlier(known.run + 1, {}, known.lost)
    if resume:
        held = Earlier(0, {}) if path is None else _in_file(path, job, data)
        if known.run:
            return known
        for other in every:
            raise ValueError(_of_other_data("this job", other, data))
        if ledger is not None and not held.releases and _has_others(ledger, file.name, data):
            raise ValueError(
                f"the ledger holds releases of a job {file.name!r} with other settings, which are not "
                "resumed: without --resume all of this job is released and paid for anew"
            )
        if ledger is not None and held.releases:
            raise ValueError(
                f"the releases of {path} were not debited from this ledger, which would then say less than was "
                "released: give the ledger that they were debited from, or none; --force releases and pays anew"
            )
        return Earlier(1, held.releases, began=held.began)
    advice = "--resume takes what is there and pays for the rest only, --force releases and pays anew"
    if path is not None and path.exists():
        raise ValueError(f"{path} exists, and was paid for: {advice}")
    for other, earlier in every.items():
        if earlier.releases:
            named = "" if other is None else f", of {other}"
            raise ValueError(f"the ledger holds {len(earlier.releases)} releases of this very job{named}: {advice}")
    return Earlier(known.run + 1, {}, known.lost)


def require_unchanged(past: Earlier, files: Iterable[pathlib.Path]) -> None:
    """Raises ValueError where a file of data was written after the run began: the rest would be of another table."""
    for path in files:
        # The ledger's times are whole seconds.
        if past.releases and past.began is not None and int(path.stat().st_mtime) > int(past.began):
            raise ValueError(
                f"{path} was written after the first release of this job, and the others would be of another table: "
                "put the earlier file back by cp -p, or, if both tables are meant, set its time back; --force pays anew"
            )


def require(ledger: Ledger, guarantees: Sequence[Guarantee], past: Earlier, *, proved: bool = True) -> None:
    """Raises BudgetExceeded as `Ledger.require`, with what to do where a debit of this job led to no release."""
    try:
        ledger.require(guarantees, proved=proved)
    except BudgetExceeded as error:
        if not past.lost:
            raise
        raise BudgetExceeded(
            f"{error}. A debit of this job that led to no release stays spent: release the missing regressions alone, "
            "by a job of their own with what is left, or take a ledger with room, whose sum then counts besides this "
            "one's"
        ) from None


def _in_ledger(ledger: Ledger, job: str) -> dict[str | None, Earlier]:
    """Finds what the last run of a job committed, by the name of its data; an earlier run may have committed more."""
    book = ledger.read()
    committed, found = book.releases, {}
    every = {number: content["what"] for number, content in book.what.items()}
    about = {number: one for number, one in every.items() if isinstance(one, dict) and one.get("identity") == job}
    for data in {what.get("data") for what in about.values()}:
        own = {number: what for number, what in about.items() if what.get("data") == data}
        last = max(what["run"] for what in own.values())
        labels = {number: what["label"] for number, what in own.items() if what["run"] == last}
        releases = {label: committed[number] for number, label in labels.items() if number in committed}
        times = [datetime.datetime.fromisoformat(book.what[number]["time"]).timestamp() for number in labels]
        found[data] = Earlier(last, releases, not own.keys() <= book.released.keys(), min(times))
    return found


def _has_others(ledger: Ledger, name: str, data: str | None) -> bool:
    """Whether a job of this name and of these data released anything that this ledger paid for."""
    book = ledger.read()
    about = [book.what[number].get("what") for number in book.releases]
    return any(isinstance(one, dict) and (one.get("job"), one.get("data")) == (name, data) for one in about)


def _of_other_data(what: str, earlier: str | None, data: str | None) -> str:
    released, given = ("a frame without a name" if name is None else name for name in (earlier, data))
    return (
        f"{what} was released from {released}, and this run is of {given}: give the data that are to be resumed, or "
        "another directory and no --resume; --force releases and pays anew"
    )


def _in_file(path: pathlib.Path, job: str, data: str | None) -> Earlier:
    if not path.exists():
        return Earlier(0, {})
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        own = fields.get("identity") == job
    except (ValueError, AttributeError):
        own = False
    if not own:
        raise ValueError(f"{path} is of another job: move it away, or give another directory; --force replaces it")
    if (earlier := fields.get("data")) != data:
        raise ValueError(_of_other_data(str(path), earlier, data))
    releases = {label: json.dumps(released, sort_keys=True) for label, released in _releases(fields)}
    return Earlier(1, releases, began=path.stat().st_mtime)


def _releases(fields: dict[str, Any]) -> list[tuple[str, Any]]:
    """Labels and releases of a job's output; the results have them."""
    found = []
    for one in fields["analyses"]:
        labels, result = one["labels"], one["result"]
        # Of groups each has its own.
        releases = [release for part in result.get("each", [result]) for release in part["releases"]]
        if (counted := result.get("counted")) is not None:
            found += [(labels[0], counted["releases"]), (labels[1], releases)]
            continue
        # One debit may have made several.
        found += [(labels[0], releases)] if len(labels) == 1 else zip(labels, releases, strict=True)
    return found


def replace(path: pathlib.Path, text: str) -> None:
    """Writes a file at once: whenever the process ends, the old one is whole or the new one is, and on the disk."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp lets nobody but the owner read; a release is for everybody.
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
        sync_folder(path.parent)
    except BaseException:
        pathlib.Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    # The one way to read it is to set it.
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
