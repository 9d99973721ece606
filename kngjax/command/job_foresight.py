"""Foresees each analysis of a job at half, one and two times its ε, by public facts, for the page of its plan."""

import dataclasses
import pathlib
from decimal import Decimal
from typing import Any

from kngjax.command.job_file import Asked, JobFile
from kngjax.command.job_plan import JobPlan
from kngjax.command.synthesis_file import SYNTHESIS
from kngjax.command.toml import plain
from kngjax.data.files import read
from kngjax.ledger.ledgers import Ledger
from kngjax.releases import totals
from kngjax.study.carrying_out import in_words, together
from kngjax.study.reports.page_contents import amounts
from kngjax.study.reports.plan_page import ASKED, Planned, assumed, foreseen, plan_page, said_of

TIMES = {"ε/2": Decimal("0.5"), ASKED: Decimal(1), "2ε": Decimal(2)}


def page_of(file: JobFile, num_records: int | None, ledger: Ledger | None, **described: Any) -> str:
    """Writes the page of a job's plan as HTML. Spends nothing.

    **Arguments:** `num_records`: n where it is public. `ledger`: the budget; None for none. `described`: `design` and
    `residual` of `kngjax.Study.preview`.
    """
    planned, costs = [], []
    for asked in file.analyses:
        one, owed = _planned(file, asked, num_records, described)
        planned.append(one)
        costs.append(owed)
    every = [cost for owed in costs for cost, _ in owed]
    proved = all(is_proved for owed in costs for _, is_proved in owed)
    total = in_words(totals.total(every)) if proved and every else "nothing is proved"
    total = f"without what is refused, {total}" if any(one.refusal for one in planned) else total
    if ledger is None:
        return plan_page(file.name, planned, total, None, "")
    # Other debits may depend on the data.
    book = ledger.read().public
    budget, here, others, refusal = book.budget, [(cost, 1) for cost in every], book.parts, ""
    if not budget.admits([*others, *here]):
        refusal = f"the ledger has {budget.left(others)} left at most, and {budget.price(here)} is asked"
    else:
        try:
            ledger.require(every, proved=proved, book=book)
        except ValueError as error:
            refusal = f"the ledger refuses: {error}"
    return plan_page(file.name, planned, total, amounts(budget, here, others), refusal)


def described_by(design: pathlib.Path | None, residual: float | None) -> dict[str, Any]:
    """Reads the public or made-up rows that a preview takes for the table's, and how far responses scatter."""
    return {"design": None if design is None else read(design), "residual": residual}


def _planned(
    file: JobFile, asked: Asked, num_records: int | None, described: dict[str, Any]
) -> tuple[Planned, list[Any]]:
    at: dict[str, Any] = {}
    said: dict[str, tuple[str, ...]] = {}
    title, cost, refusal, words, owed = asked.method.replace("_", " "), "", None, (), []
    for name, times in TIMES.items():
        epsilon = asked.arguments["epsilon"]
        scaled = plain(Decimal(str(epsilon)) * times) if isinstance(epsilon, int | float | Decimal) else epsilon
        changed = dataclasses.replace(asked, arguments=asked.arguments | {"epsilon": scaled})
        try:
            made = JobPlan(dataclasses.replace(file, analyses=(changed,), figure=None), num_records)
            steps = made.steps
            if asked.method == SYNTHESIS:
                at[name] = "how large its errors will be is not known beforehand."
            else:
                [preview] = made.previews(**described)
                at[name], said[name] = foreseen(preview), said_of(preview)
                title = preview.title
                words = assumed(preview) if times == 1 else words
            if times == 1:
                cost, owed = in_words(together(steps, num_records or 0)), [one.owed(num_records or 0) for one in steps]
        except (ValueError, TypeError) as error:
            # Without where the file lies, which is nobody's business.
            why = str(error).removeprefix(f"{file.path}: ").removeprefix(f"[[analyses]] number 1, {asked.method}: ")
            at[name], refusal = why, why if times == 1 else refusal
    of = asked.arguments.get("formula") or asked.arguments.get("column")
    title = f"{title} {of}" if of and str(of) not in title else title
    return Planned(title[:1].upper() + title[1:], cost, refusal, at, said, words), owed
