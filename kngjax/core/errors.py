"""What a release says when it fails: words about types, shapes and public settings, or one constant text.

    settings, before the data are read              refused in words, nothing is spent
    types and shapes of X and y                     refused in words: no value was looked at
    everything else, after the data were read       `ReleaseFailed`, the same text whatever happened

An error that depends on values would answer a question about the data without a debit, and a traceback holds the
records in its frames; so neither leaves a release. An error counts as one about values unless it is known to be about
types or shapes.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

FAILED = (
    "the release did not complete, and nothing is released; what it was debited from a ledger stays spent. Why is not "
    "told, since it may depend on the data: most often there are missing values and the bounds have no "
    "missing=, or responses that are no declared level, like -1 where LogisticLoss() has 0. The documentation of "
    "kngjax.ReleaseFailed lists what else it can be, and the data owner finds out by mechanism.prepare(X, y)"
)

UNREADABLE = (
    "the data cannot be read: pass a NumPy array with a row a record, or a pandas, polars or pyarrow data frame. "
    "Nothing was spent"
)


# Raised to end a program from outside. Everything else may quote a value, even the panic of a compiled reader, which is
# not an Exception.
INTERRUPTIONS = (KeyboardInterrupt, SystemExit, GeneratorExit)


class ReleaseFailed(RuntimeError):
    """A release failed after the data were read: always this text, without a cause or a context.

    That it failed is one bit that nothing hides, and its budget is spent. Possible causes, which only the owner may
    find out:

    - missing, NaN or infinite values, or cells that are no number, without `Bounds(..., missing=, missing_y=)`:
      `mechanism.prepare(X, y)` says so;
    - responses that the loss has no meaning for, which count as missing: none of the `levels` of LogisticLoss, negative
      ones of PoissonLoss; `prepare` says so;
    - more records than the mechanism's public `max_records`; `prepare` says so;
    - an exact search that reached its public limit of proposals, or an equation that float64 cannot solve: enlarge the
      domain, give `Exact(max_proposals=...)` a higher limit, or ask for a Markov chain by name;
    - a minimiser that was not found, or a draw that is not a number: give public bounds of y, `Bounds(..., y=...)`;
    - a library that has changed this process's arithmetic during the draw, as `kngjax.core.arithmetic` tells;
    - a stream whose reading failed, a process that refused its own shards, too little memory.
    """

    def __init__(self, text: str = FAILED):
        super().__init__(text)


class UnfitShape(ValueError):
    """Refused for shapes, names or public settings, before a value was looked at: a release may say it in words."""


class UnfitType(TypeError):
    """Refused for a type or a dtype, before a value was looked at: a release may say it in words."""


def run_telling_refusals(step: Callable[[], Any]) -> tuple[Any, Exception | None]:
    """step() and None; or None and its refusal in words, new, so that neither traceback nor context holds the data.

    For steps that look at types, names and shapes of data only. What another package raises there is not repeated.
    """
    try:
        return step(), None
    except UnfitType as error:
        refusal: Exception = TypeError(str(error))
    except UnfitShape as error:
        refusal = ValueError(str(error))
    except INTERRUPTIONS:
        raise
    except BaseException:
        refusal = TypeError(UNREADABLE)
    return None, refusal


def run_hiding_errors(work: Callable[[], Any]) -> tuple[Any, ReleaseFailed | None]:
    """work() and None; or None and the `ReleaseFailed` that a release raises in place of whatever work raised.

    It is new, so that neither traceback nor context holds what work computed; raise it outside of any handler. Warnings
    are silenced: what NumPy and SciPy warn of depends on the values.
    """
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return work(), None
    except INTERRUPTIONS:
        raise
    except BaseException:
        return None, ReleaseFailed()
