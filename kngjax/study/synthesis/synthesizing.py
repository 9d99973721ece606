"""The release of a synthetic table: one debit, all parts or none."""

import functools
from typing import Any

import kngjax as kng
from kngjax.core.errors import FAILED_OF_SYNTHESIS, holding_no_records, run_telling_refusals
from kngjax.data.tables import on_its_engine
from kngjax.study.synthesis.plans import SynthesisPlan
from kngjax.study.synthesis.synthetic_tables import SyntheticTable


@holding_no_records(failed=FAILED_OF_SYNTHESIS)
def synthesize(
    plan: SynthesisPlan,
    frame: Any,
    ledger: kng.Ledger | kng.ledger.Reservation | None = None,
    rows: str | None = None,
    num_records: int | None = None,
) -> SyntheticTable:
    """Releases what a plan of `kngjax.synthesis.plan` says; tables are drawn from it for free, `table.draw(key=...)`.

    Columns, types and public facts are checked first, and refused in words: nothing is spent then. One debit of what
    all parts cost together comes before a value is looked at. The frame is read once, each cell by itself, and every
    part drawn by the operating system's randomness; all of them are kept at once, or none.

    **Arguments:** `plan`: public. `frame`: private; as of `kngjax.Study`. `ledger`: a budget, or a reservation of
    `plan.cost` made there. `rows`: "public" under replace, where the number of records is, "released" under add_remove;
    to say so is to be sure, and left out it is what the adjacency says. `num_records`: under replace n of a query,
    which does not tell it before it is run.

    Raises ValueError or TypeError for what is refused, BudgetExceeded, and `kngjax.ReleaseFailed`, one text whatever
    happened, once the debit is made.
    """
    if not isinstance(plan, SynthesisPlan):
        raise TypeError(f"plan must be made by kngjax.synthesis.plan(columns=[...], ...), not a {type(plan).__name__}")
    is_public = plan.adjacency is kng.Adjacency.REPLACE
    if rows not in (None, "public", "released"):
        raise ValueError(f'rows must be "public" or "released", not {rows!r}')
    if rows is not None and (rows == "public") != is_public:
        raise ValueError(
            'rows="released" is for add_remove: under replace the number of records is public'
            if is_public
            else 'rows="public" is for replace: under add_remove the number of records is private, and is released'
        )
    frame = on_its_engine(frame, num_records if is_public else None)
    table, refusal = run_telling_refusals(functools.partial(plan.check, frame))
    if refusal is not None:
        raise refusal
    count = len(table) if is_public else None
    released = plan.plan_for(count).release(functools.partial(plan.records, table), ledger, plan.words_of(None))
    return SyntheticTable(plan, released, count)
