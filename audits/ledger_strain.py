"""Ledgers under strain: processes that race for one budget, and processes killed at random moments. Imports no JAX.

What a release does with a ledger, without the release: reserve, say so, commit, say so. The writers are forks of one
small process, so that hundreds of them cost little; POSIX only. A killed process is no power cut: what the disk keeps
then rests on SQLite's `synchronous=EXTRA` and on the disk.
"""

import dataclasses
import json
import os
import pathlib
import random
import select
import signal
import subprocess
import sys
import time
from fractions import Fraction
from typing import Any

from kngjax.accounting.guarantees import Guarantee
from kngjax.ledger.budgets import Budget
from kngjax.ledger.ledgers import BudgetExceeded, Ledger, Reservation

# In the place of a release.
_RELEASED = "{}"
# What a writer says on its pipe, one byte each, after the operation has returned.
_SPENT, _DONE = b"sr"
# Beyond it something hangs.
_LONGEST = 300.0


@dataclasses.dataclass(frozen=True)
class Strain:
    """Counts how one budget came through writers under strain.

    **Arguments:**

    - `writers`: at a time. `kills`: by SIGKILL, of which `kills_between` came between a reserve and its commit.
    - `allowed`: how many releases the budget has room for.
    - `reservations`, `releases`: how many operations the writers saw return.
    - `rows_reserved`, `rows_released`: how many the ledger holds. `spent`, `budget`: of ε, exactly.
    - `verified`: whether the chain holds afterwards; else `trouble` says why.
    - `crashes`: writers that ended with an error of their own.
    - `seconds`: from the first fork to the last end.
    """

    writers: int
    kills: int
    kills_between: int
    allowed: int
    reservations: int
    releases: int
    rows_reserved: int
    rows_released: int
    spent: Fraction
    budget: Fraction
    verified: bool
    trouble: str
    crashes: int
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether nothing was overspent and nothing that was seen to return was lost."""
        kept = self.rows_reserved >= self.reservations and self.rows_released >= self.releases
        whole = self.rows_released <= self.rows_reserved <= self.allowed and self.spent <= self.budget
        return self.verified and not self.crashes and kept and whole

    def explain(self) -> str:
        """The figures in one sentence."""
        return (
            f"{self.writers} writers, {self.kills} killed ({self.kills_between} between debit and commit): "
            f"{self.releases} releases seen and {self.rows_reserved} debits kept of {self.allowed} allowed, "
            f"spent {self.spent} of {self.budget}, {'verified' if self.verified else f'BROKEN: {self.trouble}'}, "
            f"{self.seconds:.1f} s"
        )


def race(directory: str | os.PathLike[str], writers: int = 8, allowed: int = 100) -> Strain:
    """Writers that start at the same moment and make releases until the budget refuses.

    Without kills `rows_released` is `allowed` exactly. **Arguments:** `directory`: of the new ledger; it must exist.
    `allowed`: how many releases at ε = 1/allowed the budget of 1 has room for.
    """
    return _in_a_process_of_its_own(directory, writers, allowed, 0, 0)


def kill_storm(
    directory: str | os.PathLike[str], kills: int = 40, writers: int = 4, allowed: int = 400, seed: int = 0
) -> Strain:
    """Writers that are killed at random moments, each followed by a new one, until there were that many kills.

    Those that are left then make releases until the budget refuses. **Arguments:** as for `race`; `seed`: of the
    moments. Fewer kills if the budget is spent before.
    """
    return _in_a_process_of_its_own(directory, writers, allowed, kills, seed)


def _in_a_process_of_its_own(
    directory: str | os.PathLike[str], writers: int, allowed: int, kills: int, seed: int
) -> Strain:
    """Forks of a process with threads may hang, and JAX has threads: so a fresh one forks."""
    words = json.dumps([str(pathlib.Path(directory).resolve()), writers, allowed, kills, seed])
    program = f"import json; from audits import ledger_strain; ledger_strain.conduct(*json.loads({words!r}))"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise RuntimeError(f"the writers could not be run: {done.stderr.strip().splitlines()[-1:]}")
    fields = json.loads(done.stdout)
    return Strain(**(fields | {name: Fraction(fields[name]) for name in ("spent", "budget")}))


def conduct(directory: str, writers: int, allowed: int, kills: int, seed: int) -> None:
    """Run the writers in forks of this process, and print the figures of `Strain` as JSON. Needs a process alone."""
    path = pathlib.Path(directory) / f"strain-{os.getpid()}.ledger"
    budget, cost = Budget.pure(1), Guarantee.pure(Fraction(1, allowed), "replace")
    ledger = Ledger.create(path, budget, adjacency="replace", dataset="nothing")
    gate, opened = os.pipe()
    children: dict[int, tuple[int, bytearray]] = {}

    def start() -> None:
        reading, writing = os.pipe()
        if (child := os.fork()) == 0:
            os.close(opened)
            os.read(gate, 1)
            os._exit(_write(ledger, cost, writing))
        os.close(writing)
        children[child] = (reading, bytearray())

    for _ in range(writers):
        start()
    moments, began, said, landed, between, crashes = random.Random(seed), time.perf_counter(), b"", 0, 0, 0
    os.close(opened)
    ends = began + _LONGEST
    strike = began + moments.uniform(0.0, 0.2)
    while children and time.perf_counter() < ends:
        wait = max(0.0, strike - time.perf_counter()) if landed < kills else 1.0
        readable, _, _ = select.select([reading for reading, _ in children.values()], [], [], wait)
        if landed < kills and time.perf_counter() >= strike:
            os.kill(moments.choice(sorted(children)), signal.SIGKILL)
            strike = time.perf_counter() + moments.uniform(0.0, 0.2)
        for child in [child for child, (reading, _) in children.items() if reading in readable]:
            reading, heard = children[child]
            if more := os.read(reading, 4096):
                heard += more
                continue
            os.close(reading)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            del children[child]
            said += bytes(heard)
            if status == -signal.SIGKILL:
                landed += 1
                between += heard.endswith(bytes([_SPENT]))
                start()
            elif status:
                crashes += 1
    for child in children:
        os.kill(child, signal.SIGKILL)
        crashes += 1
    figures: dict[str, Any] = {
        "writers": writers,
        "kills": landed,
        "kills_between": between,
        "allowed": allowed,
        "reservations": said.count(_SPENT),
        "releases": said.count(_DONE),
        "crashes": crashes,
        "seconds": time.perf_counter() - began,
    }
    print(json.dumps(figures | _found(ledger)))


def _write(ledger: Ledger, cost: Guarantee, writing: int) -> int:
    """Releases until the budget refuses; 0, or 1 after any other error."""
    try:
        while True:
            reservation: Reservation = ledger.reserve(cost, drawn=True)
            os.write(writing, bytes([_SPENT]))
            reservation.commit(_RELEASED, exact=True)
            os.write(writing, bytes([_DONE]))
    except BudgetExceeded:
        return 0
    except BaseException:
        return 1


def _found(ledger: Ledger) -> dict[str, Any]:
    try:
        book, trouble = ledger.verify(), ""
    except RuntimeError as error:
        return {"rows_reserved": 0, "rows_released": 0, "spent": "0", "budget": "1", "verified": False} | {
            "trouble": str(error)
        }
    spent = Fraction(0) if book.spent is None else book.spent.exact_epsilon
    return {
        "rows_reserved": len(book.reserved),
        "rows_released": len(book.released),
        "spent": str(spent),
        "budget": str(book.budget.epsilon),
        "verified": True,
        "trouble": trouble,
    }
