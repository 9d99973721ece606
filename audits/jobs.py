"""Figures of what is read before it is released: files, frames, and jobs of which the number of records is private."""

import dataclasses
import functools
import pathlib
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np

from audits import files
from audits.frames import frame_pairs
from kngjax.command import job, job_file, named_parts
from kngjax.command.job_plan import JobPlan
from kngjax.ledger.ledgers import Ledger


@dataclasses.dataclass(frozen=True)
class Finding:
    """Holds a line of the table of figures.

    **Arguments:** `what`: was measured. `found`: in words with its number. `passed`: whether it is as promised.
    """

    what: str
    found: str
    passed: bool

    def __str__(self) -> str:
        return f"{'ok    ' if self.passed else 'FAILED'}  {self.what:48} {self.found}"


def figures_of_jobs(quick: bool = False) -> Iterator[Finding]:
    """Measures what one cell changes in files and frames, and what a private number of records changes in jobs.

    **Arguments:** as of `audits.figures.figures`.
    """
    yield from _files(quick)
    yield _frames(quick)
    yield _private_counts()


# A job on the files of `audits.files`, whose missing cells have a public policy, or none.
_JOB = """
[study]
adjacency = "replace"
[study.bounds]
wage = [0, 100]
age = [0, 90]
[study.levels]
region = ["north", "south", "7"]
[study.missing]
wage = 50
age = 40
region = "south"
[[analyses]]
method = "linear_regression"
formula = "wage ~ poly(age, 2) + region"
fit = "squared"
epsilon = 1.0
domain = { l2_ball = 20.0 }
force = true
"""


def _files(quick: bool) -> Iterator[Finding]:
    """Files read by every reader, and released by `kngjax release`."""
    with tempfile.TemporaryDirectory() as folder:
        with_policy, without = (pathlib.Path(folder) / f"{name}.toml" for name in ("policy", "none"))
        with_policy.write_text(_JOB, encoding="utf-8")
        policies = _JOB[_JOB.index("[study.missing]") : _JOB.index("[[analyses]]")]
        without.write_text(_JOB.replace(policies, ""), encoding="utf-8")

        def rows(data: pathlib.Path) -> np.ndarray:
            file = job_file.read(with_policy)
            frame = job.load(file, data)
            x, y, _ = JobPlan(file, job.count_of(file, frame)).steps[0].analysis.records(frame)
            assert x is not None
            return np.column_stack((x, y))

        number = 40 if quick else 1_000
        found = files.file_pairs(number, readers={**files.READERS, "kngjax release": rows})
        yield Finding(
            "pairs of files that differ in one cell",
            f"{number} for each of {', '.join(found.tried)}: {len(found.differences)} with another record changed",
            found.passed,
        )
        for words, path in (("replaced by public values", with_policy), ("refused", without)):
            ends = files.hostile_files(number // 2, functools.partial(_release, path), failed=named_parts.FAILED)
            yield Finding(
                f"files with a hostile cell, {words}",
                f"{ends.tried} tried: {ends.released} released, {ends.told} refused in words, {ends.failed} failed "
                f"with the constant text, {len(ends.broken)} broken",
                ends.passed,
            )


def _release(path: pathlib.Path, data: pathlib.Path, ledger: Ledger | None) -> Any:
    """Releases a job's regressions as the command does."""
    file = job_file.read(path)
    return job.run(file, job.load(file, data), progress=False, ledger=ledger)


def _chosen(path: pathlib.Path, data: pathlib.Path) -> Any:
    """All that is chosen or refused before a debit, in words and certificates."""
    try:
        file = job_file.read(path)
        frame = job.load(file, data)
        steps, count = job.planned_for(file, frame).steps, job.count_of(file, frame)
        certificates = [[one.to_dict() for one in step.certificates(count)] for step in steps]
        return [step.label for step in steps], [step.words for step in steps], certificates
    except (ValueError, TypeError) as error:
        return str(error)


def _frames(quick: bool) -> Finding:
    """Frames of every container whose cells become numbers and text."""
    number = 200 if quick else 4_000
    found = frame_pairs(number)
    return Finding(
        "pairs of frames that differ in one cell",
        f"{number} for each of {', '.join(found.tried)}: {len(found.differences)} with another record changed",
        found.passed,
    )


# Of few records intervals are refused where n is public, of more H has a larger share of ε, and of many a smaller one.
_INTERVALS = {
    "sandwich": ("0.05", "squared", 'covariance = "sandwich"'),
    "a share": ("2.0", "squared", 'covariance = "sandwich"\nshare = 0.3'),
    "the default": ("1.0", "squared", "level = 0.9"),
}
_COUNTS = (1, 374, 375, 2_000)


def _private_counts() -> Finding:
    """Compares all that jobs with intervals choose and say before a debit of tables of several numbers of records."""
    told, tells = 0, False
    with tempfile.TemporaryDirectory() as folder:
        path, data = (pathlib.Path(folder) / name for name in ("job.toml", "data.csv"))
        for epsilon, fit, intervals in _INTERVALS.values():
            for adjacency in ("add_remove", "replace"):
                text = _JOB.replace("epsilon = 1.0", f"epsilon = {epsilon}").replace('"squared"', f'"{fit}"')
                text = text.replace('"replace"', f'"{adjacency}"') + f"[intervals]\n{intervals}\n"
                path.write_text(text, encoding="utf-8")
                chosen = []
                for count in _COUNTS:
                    records = "".join(f"{20 + row % 50},north,{row % 97}\n" for row in range(count))
                    data.write_text("age,region,wage\n" + records, encoding="utf-8")
                    chosen.append(_chosen(path, data))
                differs = any(one != chosen[0] for one in chosen)
                if adjacency == "replace":
                    # There n is public, and decides: the comparison sees it.
                    tells |= differs
                else:
                    told += differs
    return Finding(
        "jobs that choose by a private number of records",
        f"{told} of {len(_INTERVALS)} with intervals, of {', '.join(map(str, _COUNTS))} records",
        told == 0 and tells,
    )
