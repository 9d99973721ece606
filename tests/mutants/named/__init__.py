"""Keeps the bugs that attacks and studies found, or that papers print, each said by what it does.

A slip names a function and a change of its syntax, so that it follows the code to another file.
"""

from tests.mutants.named import bits, budgets, claims, noise, records, refusals, rounding, sensitivities
from tests.mutants.named.slip import Planted as Planted
from tests.mutants.named.slip import Slip as Slip

SLIPS: tuple[Slip, ...] = (
    *sensitivities.SLIPS,
    *noise.SLIPS,
    *bits.SLIPS,
    *records.SLIPS,
    *rounding.SLIPS,
    *budgets.SLIPS,
    *refusals.SLIPS,
    *claims.SLIPS,
)
