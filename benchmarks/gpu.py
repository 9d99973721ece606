"""What is meant to run on an accelerator, beside what the device allows; and effective draws a second beside peers.

`python -m benchmarks.gpu [--quick] [--only NAME ...] [--minutes 8] [--output results]`.

The first table has for each workload the bytes and operations that it must move, the seconds that memory, arithmetic
or its longest chain allow (`_limits`), those of the first call, which counts compiling, and of a second one with
another key, and the share of the allowed in it. The second has ArviZ's effective draws a second of the worst
coefficient, over a whole warm call with its warm-up, for our chains and for NumPyro, BlackJAX and a NumPy loop
(`_chains`, `_chain_peers`). What an earlier case compiled, a later one of the same shapes does not compile again. All
is in float64 unless it says otherwise.

On a card the wall's clock counts. On processors, which others may use too, shares and rates are of their work: its
seconds over their number. Without a card the seconds that an H100 and an H200 allow for a card's sizes are printed:
predicted, not measured. No case begins after the given minutes. `--output` writes a CSV under the device's name,
with the date and the versions of each row.
"""

import argparse
import csv
import dataclasses
import datetime
import functools
import importlib.metadata
import importlib.util
import math
import os
import pathlib
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

import kngjax as kng
from benchmarks import _chain_peers, _chains, _limits, _table, _workloads

LIBRARIES = ("jax", "jaxlib", "numpyro", "blackjax", "arviz", "numpy")


@dataclasses.dataclass
class Row:
    """One case.

    **Arguments:** `first`, `warm`: seconds; `first_work`, `warm_work`: of processors. `moved`: bytes. `allowed`:
    seconds, by what `binds`. `launches`: seconds of its chain by launches. `share`: allowed over taken. `effective`:
    draws a second. `rhat`: the worst. `note`: why there are no figures.
    """

    case: str
    first: float = math.nan
    warm: float = math.nan
    first_work: float = math.nan
    warm_work: float = math.nan
    moved: float = math.nan
    operations: float = math.nan
    allowed: float = math.nan
    binds: str = ""
    launches: float = math.nan
    share: float = math.nan
    effective: float = math.nan
    rhat: float = math.nan
    note: str = ""

    def line(self, columns: dict[str, str]) -> str:
        """The case and these columns, each in its form."""
        values = vars(self).items()
        empty = {name for name, value in values if isinstance(value, float) and math.isnan(value)}
        cells = ("" if name in empty else f"{getattr(self, name):{form}}" for name, form in columns.items())
        widths = (int(re.findall(r"\d+", form)[0]) for form in columns.values())
        body = "".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
        return f"{self.case:48}{body}   {self.note}".rstrip()


TIMES = {"first": "9.2f", "warm": "9.3f", "first_work": "11.2f", "warm_work": "10.3f"}
LIMITS = {"moved": "9.2g", "operations": "11.2g", "allowed": "9.2g", "binds": "12", "launches": "9.2g"}
LIMITS = {**LIMITS, **TIMES, "share": "8.2g"}
EFFECTIVE = {**TIMES, "effective": "11.4g", "rhat": "7.3f"}


def timed(device: Any, row: Row, make: Callable[[], Callable[[Any], Any]], seeds: Callable[[int], Any]) -> Any:
    """What the second call of what is made returns, and its time by `_limits.seconds`; fills in a row's times."""
    taken, found = [], None
    with jax.default_device(device):
        run = make()
        for seed in range(2):
            starts = time.perf_counter(), time.process_time(), _limits.seconds(device)
            found = jax.block_until_ready(run(seeds(seed)))
            ends = time.perf_counter(), time.process_time(), _limits.seconds(device)
            taken.append([end - start for start, end in zip(starts, ends, strict=True)])
    assert np.all(np.isfinite(np.asarray(getattr(found, "theta", found)))), row.case
    (row.first, row.first_work, _), (row.warm, row.warm_work, clock) = taken
    return found, clock


def limited(device: Any, peaks: _limits.Peaks, workload: _workloads.Workload) -> Row:
    """A row of the first table."""
    row = Row(workload.name)
    found, clock = timed(device, row, workload.make, kng.research_key)
    work = workload.work if workload.found is None else workload.found(found)
    row.moved, row.operations, row.launches = work.moved, work.operations, peaks.launches(work) or math.nan
    row.allowed, row.binds = peaks.allowed(work)
    row.share = row.allowed / clock
    return row


def compared(device: Any, problem: _chains.Problem, case: str, method: Callable[[Any], _chains.Run]) -> Row:
    """A row of the second table."""
    row = Row(case)
    with jax.enable_x64(True):
        thetas, clock = timed(device, row, lambda: method(problem), lambda seed: seed)
    draws = kng.owner.Draws(thetas, "")
    row.effective, row.rhat = float(draws.ess().min()) / clock, float(draws.rhat().max())
    return row


def cases(device: Any, quick: bool) -> Iterator[tuple[dict[str, str], str, Callable[[], Row]]]:
    """The columns of its table, the name and what measures it, for each case."""
    on_card = device.platform != "cpu"
    sizes = _workloads.QUICK if quick else _workloads.CARD if on_card else _workloads.PROCESSOR
    lengths = _chains.QUICK if quick else _chains.CARD if on_card else _chains.PROCESSOR
    peaks = _limits.measured(device, 1 << 16, 64, 10) if quick else _limits.peaks(device)
    print("peaks: " + ", ".join(f"{name} {value:.3g}" for name, value in peaks._asdict().items() if name != "source"))
    print(f"       {peaks.source}\n")
    for workload in _workloads.workloads(sizes, on_card):
        yield LIMITS, workload.name, lambda workload=workload: limited(device, peaks, workload)
    problem = functools.cache(_chains.problem)
    for name, method in {**_chains.WALKS, **_chain_peers.WALKS, **_chains.OTHERS, **_chain_peers.OTHERS}.items():
        yield EFFECTIVE, name, lambda name=name, method=method: compared(device, problem(lengths), name, method)


def why_left_out(device: Any, name: str, deadline: float) -> str:
    """Why a case is not measured, or nothing."""
    if device.platform == "cpu" and "Pallas" in name:
        return "left out: on processors it is interpreted"
    if "BlackJAX" in name and importlib.util.find_spec("blackjax") is None:
        return "left out: not installed"
    return "left out: the minutes were over" if time.perf_counter() > deadline else ""


def measured(device: Any, quick: bool, only: tuple[str, ...] = (), minutes: float = 8.0) -> Iterator[Row]:
    """A row for each case, or for those whose names begin so, as it is printed; one that fails says why."""
    deadline, columns = time.perf_counter() + 60.0 * minutes, {}
    for own, name, measure in cases(device, quick):
        if only and not name.startswith(only):
            continue
        if own != columns:
            columns = own
            widths = {key: int(re.findall(r"\d+", form)[0]) for key, form in own.items()}
            print(f"{'':48}" + "".join(f"{key.replace('_work', ', cpu'):>{width}}" for key, width in widths.items()))
        row = Row(name, note=why_left_out(device, name, deadline))
        if not row.note:
            try:
                row = measure()
            except Exception as error:
                row.note = f"failed: {type(error).__name__}: {str(error).splitlines()[0][:200]}"
        print(row.line(columns), flush=True)
        yield row


def predicted() -> Iterator[str]:
    """Lines of what cards allow for a card's sizes."""
    yield "predicted, not measured: seconds that a card allows, and that a chain takes if each move is a launch"
    yield f"{'':48}" + "".join(f"{name:>9}{'':12}" for name in _limits.CARDS) + f"{'launches':>9}"
    for workload in _workloads.workloads(_workloads.CARD, True):
        cells = (card.allowed(workload.work) for card in _limits.CARDS.values())
        launches = max(card.launches(workload.work) for card in _limits.CARDS.values())
        figures = "".join(f"{allowed:9.2g} {binds:11}" for allowed, binds in cells)
        yield f"{workload.name:48}{figures}{f'{launches:9.2g}' if launches else ''}".rstrip()


def versions() -> str:
    """Versions of the libraries that are there."""
    found = ((name, importlib.util.find_spec(name)) for name in LIBRARIES)
    return ", ".join(
        [f"kngjax {kng.__version__}"] + [f"{name} {importlib.metadata.version(name)}" for name, spec in found if spec]
    )


def write(rows: list[Row], device: Any, folder: pathlib.Path) -> pathlib.Path:
    """The rows as CSV, in a file of the device's name; rows of cases that this run left out stay as they are there."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"gpu_{re.sub('[^a-z0-9]+', '_', device.device_kind.lower()).strip('_')}.csv"
    context = {
        "device": device.device_kind,
        "processors": str(os.cpu_count()),
        "date": f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}",
        "versions": versions(),
    }
    names = [*context, *(field.name for field in dataclasses.fields(Row))]
    found = {}
    if path.exists():
        with path.open(newline="") as file:
            found = {row["case"]: row for row in csv.DictReader(file) if list(row) == names}
    for row in rows:
        if not row.note or row.case not in found:
            cells = {name: value if isinstance(value, str) else f"{value:.4g}" for name, value in vars(row).items()}
            found[row.case] = {**context, **{name: cell for name, cell in cells.items() if cell != "nan"}}
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(found.values())
    return path


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="cases whose names begin so")
    parser.add_argument("--minutes", type=float, default=8.0, help="after which no case begins")
    parser.add_argument("--output", metavar="FOLDER", type=pathlib.Path, help="where a CSV is written")
    options = parser.parse_args()
    device = jax.devices()[0]
    print(f"{device.device_kind}, {_table.machine()}; {versions()}")
    rows = list(measured(device, options.quick, tuple(options.only), options.minutes))
    if device.platform == "cpu":
        print("\n" + "\n".join(predicted()))
    if options.output is not None:
        print(f"Written: {write(rows, device, options.output)}")


if __name__ == "__main__":
    main()
