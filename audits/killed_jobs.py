"""Jobs that are killed at random moments and resumed: what was paid for is kept, and nothing is paid for twice.

The whole command `kngjax release --resume` runs in processes of its own and is ended by SIGKILL. This module imports no
JAX; those processes do, and take some seconds each.
"""

import dataclasses
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time
from fractions import Fraction
from typing import Any

from kngjax.ledger.book import LedgerError
from kngjax.ledger.budgets import Budget
from kngjax.ledger.ledgers import Ledger

_LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)
# A power of two, so that five of them add up to the budget exactly.
_EACH = Fraction(1, 8)
_JOB = f"""
[data]
path = "people.csv"
[study]
adjacency = "replace"
[study.bounds]
wage = [0, 60]
age = [0, 40]
[[analyses]]
method = "quantile_regression"
formula = "wage ~ age"
tau = {list(_LEVELS)}
epsilon = {float(_EACH * len(_LEVELS))}
domain = {{ box = [-80.0, 80.0] }}
force = true
"""
# Runs the command, and writes a byte when a commit has returned, which is when a release exists.
_PROGRAM = """
import os, sys
from kngjax.command import cli
from kngjax.ledger.ledgers import Reservation
commit = Reservation.commit
def commit_and_tell(*arguments, **named):
    commit(*arguments, **named)
    os.write(int(sys.argv[1]), b"r")
Reservation.commit = commit_and_tell
sys.exit(cli.main(sys.argv[2:]))
"""
_LONGEST = 300.0


@dataclasses.dataclass
class KilledJobs:
    """Counts how jobs of five regressions each came through kills.

    **Arguments:**

    - `kills`: by SIGKILL, of which `kills_between` came between a debit and its commit. `jobs`: that were completed.
    - `returned`: releases that the processes saw committed. `kept`: releases in the ledgers at the end.
    - `lost`: debits that led to no release, one for each kill between at most.
    - `troubles`: what should not have been, in words.
    """

    kills: int = 0
    kills_between: int = 0
    jobs: int = 0
    returned: int = 0
    kept: int = 0
    lost: int = 0
    troubles: list[str] = dataclasses.field(default_factory=list)

    def expect(self, holds: bool, trouble: str) -> None:
        """Notes a trouble unless something holds."""
        if not holds:
            self.troubles.append(trouble)

    @property
    def passed(self) -> bool:
        """Whether no release was lost, changed, or paid for twice, and every sum is exact."""
        whole = self.kept == len(_LEVELS) * self.jobs and self.returned <= self.kept
        return not self.troubles and whole and self.lost == self.kills_between

    def explain(self) -> str:
        """The figures in one sentence."""
        return (
            f"{self.kills} kills, {self.kills_between} between debit and commit, of {self.jobs} jobs with five "
            f"releases each: {self.kept} releases kept, {self.lost} debits without one"
            + "".join(f"; {trouble}" for trouble in self.troubles)
        )


def kill_jobs(directory: str | os.PathLike[str], kills: int = 20, seed: int = 0) -> KilledJobs:
    """Run jobs, kill and resume them, until there were that many kills and the last job is complete.

    **Arguments:** `directory`: an existing one, for ledgers and outputs. `seed`: decides the moments of the kills.
    """
    moments, found = random.Random(seed), KilledJobs()
    while found.kills < kills or not found.jobs:
        folder = pathlib.Path(directory) / f"job-{os.getpid()}-{found.jobs}"
        folder.mkdir()
        _run_until_complete(folder, kills, moments, found)
        found.jobs += 1
    return found


def _run_until_complete(folder: pathlib.Path, kills: int, moments: random.Random, counts: KilledJobs) -> None:
    """Kill and resume one job until it is complete, and compare after every end."""
    (folder / "people.csv").write_text("wage,age\n" + "".join(f"{7 * k % 59}.5,{3 * k % 41}\n" for k in range(40)))
    (folder / "job.toml").write_text(_JOB)
    ledger = Ledger.create(folder / "budget.ledger", Budget.pure(100), adjacency="replace", dataset="invented")
    before, status = ledger.read(), -signal.SIGKILL
    while status == -signal.SIGKILL:
        status, returned = _run(folder, ledger, moments if counts.kills < kills else None)
        counts.returned += returned
        try:
            book = ledger.verify()
        except LedgerError as error:
            return counts.troubles.append(str(error))
        counts.expect(len(book.releases) >= len(before.releases) + returned, "a release that returned was not kept")
        same = all(book.releases.get(number) == text for number, text in before.releases.items())
        counts.expect(same, "a release that was kept is another")
        written = _read_outputs(folder)
        counts.expect(all(text in map(json.loads, book.releases.values()) for text in written), "an output of its own")
        open_debits = len(book.unfinished) - len(before.unfinished)
        counts.expect(0 <= open_debits <= (status == -signal.SIGKILL), "a debit without a kill")
        counts.kills += status == -signal.SIGKILL
        counts.kills_between += open_debits
        before = book
    counts.expect(status == 0, f"a job ended with {status}")
    counts.expect(len(written) == len(before.releases) == len(_LEVELS), "the output is not whole")
    debits = len(_LEVELS) + len(before.unfinished)
    exact = before.spent is not None and before.spent.exact_epsilon == _EACH * debits
    counts.expect(exact, "the sum is not that of the debits")
    counts.kept += len(before.releases)
    counts.lost += len(before.unfinished)


def _run(folder: pathlib.Path, ledger: Ledger, moments: random.Random | None) -> tuple[int, int]:
    """The status of one run, killed if there are moments for it, and how many releases it saw committed."""
    reading, writing = os.pipe()
    words = [sys.executable, "-c", _PROGRAM, str(writing), "release", str(folder / "job.toml"), "--resume"]
    words += ["--output", str(folder / "output"), "--ledger", str(ledger.path)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(words, pass_fds=[writing], env=environment, **quiet)
    os.close(writing)
    if moments is not None:
        # A release writes three rows: kill some rows later, and a moment after that.
        rows, ends = ledger.read().num_rows + moments.randint(1, 6), time.perf_counter() + _LONGEST
        while process.poll() is None and ledger.read().num_rows < rows and time.perf_counter() < ends:
            time.sleep(0.002)
        time.sleep(moments.uniform(0.0, 0.1))
        process.kill()
    status = process.wait(timeout=_LONGEST)
    with os.fdopen(reading, "rb") as said:
        return status, len(said.read())


def _read_outputs(folder: pathlib.Path) -> list[Any]:
    path = folder / "output" / "releases.json"
    if not path.exists():
        return []
    return [one for entry in json.loads(path.read_text())["analyses"] for one in entry["result"]["releases"]]
