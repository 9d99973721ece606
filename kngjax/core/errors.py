"""Makes errors of a release tell of types, shapes and public settings alone, or say one constant text.

    settings, before the data are read              refused in words, nothing is spent
    types and shapes of X and y                     refused in words: no value was looked at
    everything else, after the data were read       `ReleaseFailed`, the same text whatever happened; which of its
                                                    texts depends on what was called alone, never on the data

An error that depends on values would answer a question about the data without a debit, and a traceback holds the
records in its frames; so neither leaves a release. An error counts as one about values unless it is known to be about
types or shapes.
"""

import functools
import inspect
import signal
import sys
import threading
import traceback
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

import numpy as np

from kngjax.core.error_anchors import pointer

Given = ParamSpec("Given")
Returned = TypeVar("Returned")
Kind = TypeVar("Kind")
Refusal = TypeVar("Refusal", bound=Exception)

_FAILED = (
    "the release did not complete, and nothing is released; what it was debited from a ledger stays spent. Why is not "
    "told, since it may depend on the data: most often "
)
_ELSE = "The documentation of kngjax.ReleaseFailed lists what else it can be"
# The text of `kngjax.release` of a mechanism.
FAILED = (
    f"{_FAILED}there are missing values and the bounds have no missing=, or responses that are no declared level, like "
    f"-1 where LogisticLoss() has 0. {_ELSE}, and the data owner finds out by mechanism.prepare(X, y)"
)
# The text of analyses of a data frame, whose users have no mechanism: as constant as the first.
FAILED_OF_FRAME = (
    f"{_FAILED}a column has cells that are missing, infinite, no number or none of its levels, and missing= does not "
    "name it: missing={'wage': 20.0} says what such a cell counts as. A Study of the same frame and facts tells the "
    f"data owner which columns have them, study.check().summary(), for the owner's eyes alone. {_ELSE}"
)
# The text of estimators for scikit-learn.
FAILED_OF_FIT = (
    f"{_FAILED}X or y has cells that are missing, infinite, no number or none of the levels or classes, without "
    "missing= and missing_y=, which say what such cells count as. The data owner finds them with the tools of the "
    f"frame or of NumPy, for the owner's eyes alone. {_ELSE}"
)
# The text of synthetic tables.
FAILED_OF_SYNTHESIS = (
    f"{_FAILED}a column has cells that are missing, infinite or no number, and its description has no missing=, which "
    f"says what such cells count as. {_ELSE}, and the data owner finds out by plan.read(frame)"
)

UNREADABLE = (
    "the data cannot be read: pass a NumPy array with a row a record, or a pandas, polars or pyarrow data frame "
    "whose columns have different names. Nothing was spent"
)


# Raised to end a program from outside. Everything else may quote a value, even the panic of a compiled reader, which is
# not an Exception.
INTERRUPTIONS = (KeyboardInterrupt, SystemExit, GeneratorExit)
_FROM_OUTSIDE = "_kngjax_from_outside"
_FIELD = "_kngjax_field"


class ReleaseFailed(RuntimeError):
    """Says that a release failed after the data were read: always one text, without a cause or a context.

    That it failed is one bit that nothing hides, and its budget is spent. Possible causes, which only the owner may
    find out; `mechanism.prepare(X, y)` says the first three, of a frame `Study.check()`, and of a job in a file
    `kngjax check CONFIG`:

    - missing, NaN or infinite values, or cells that are no number, without a policy for them: `missing={...}` of a
      Study, `missing` and `missing_y` of an estimator, `Bounds(..., missing=, missing_y=)` of a mechanism;
    - values that are none of the declared levels, and responses that the loss has no meaning for, as negative counts:
      they count as missing;
    - rows without an identifier of a person: find it, or say `missing={"patient_id": "drop"}`;
    - more records than the mechanism's public `max_records`, or under replace others than `num_records` says;
    - an exact search that reached its public limit of proposals, or an equation that float64 cannot solve: enlarge the
      domain, give `Exact(max_proposals=...)` a higher limit, or ask for a Markov chain by name;
    - a minimiser that was not found, or a draw that is not a number: give public bounds of y, `Bounds(..., y=...)`;
    - a library that has changed this process's arithmetic during the draw, as `kngjax.core.arithmetic` tells;
    - a stream whose reading failed, too little memory.
    """

    def __init__(self, text: str = FAILED):
        super().__init__(text)
        self.add_note(f"See {pointer(text)} of the documentation.")


class UnfitShape(ValueError):
    """Refuses shapes, names or public settings before a value is looked at, so that a release may say it in words."""


class UnfitType(TypeError):
    """Refuses a type or a dtype before a value is looked at, so that a release may say it in words."""


def about(error: Refusal, *field: str) -> Refusal:
    """Notes on an error which argument it is about, so that whoever was told that argument elsewhere can name it.

    **Arguments:** `field`: the argument's name, and of a mapping its key: `about(error, "bounds", "wage")`.
    """
    vars(error)[_FIELD] = field
    return error


def field_of(error: BaseException) -> tuple[str, ...]:
    """Returns what `about` noted; empty where nothing was noted."""
    return vars(error).get(_FIELD, ())


def bare(error: BaseException, failed: str | None = None) -> BaseException:
    """Takes the traceback, cause and context off an error, since their frames hold the records as local variables.

    **Arguments:** `failed`: the text that a `ReleaseFailed` says from there on, whatever happened; None for its own.
    """
    if failed is not None and isinstance(error, ReleaseFailed):
        return ReleaseFailed(failed)
    if is_from_outside(error):
        # Without its traceback nobody else could see it.
        vars(error)[_FROM_OUTSIDE] = True
    error.__context__ = error.__cause__ = None
    return error.with_traceback(None)


def holding_no_records(
    function: Callable[Given, Returned] | None = None, *, failed: str | None = None
) -> Callable[..., Any]:
    """Decorates what takes records or holds them: whatever it raises keeps none of its frames, and no other error.

    Ctrl-C and a caller's own timeout are raised so too. **Arguments:** `failed`: as of `bare`.
    """
    if function is None:
        return functools.partial(holding_no_records, failed=failed)

    @functools.wraps(function)
    def called(*positional: Given.args, **named: Given.kwargs) -> Returned:
        try:
            return function(*positional, **named)
        except BaseException as error:
            refusal = bare(error, failed)
        # Frames of a traceback hold their local variables.
        del positional, named
        try:
            raise refusal
        finally:
            del refusal

    # A traceback shows the name of what was called.
    shown: Any = called
    shown.__code__ = shown.__code__.replace(co_name=function.__name__, co_qualname=function.__qualname__)
    return shown


def holders_of_records(kind: type[Kind]) -> type[Kind]:
    """Decorates a class whose objects hold records: no error of its constructor and public methods keeps the object."""
    for name in dir(kind):
        method = inspect.getattr_static(kind, name)
        if isinstance(method, types.FunctionType) and (name == "__init__" or not name.startswith("_")):
            setattr(kind, name, holding_no_records(method))
    return kind


def is_from_outside(error: BaseException) -> bool:
    """Says whether somebody outside ends the work, which is no failure: Ctrl-C, an exit, a signal's handler, asyncio.

    Whatever else is raised may quote a value, also what is no Exception.
    """
    cancelled = getattr(sys.modules.get("asyncio"), "CancelledError", KeyboardInterrupt)
    if isinstance(error, (*INTERRUPTIONS, cancelled)) or _FROM_OUTSIDE in vars(error):
        return True
    frames = {frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)}
    return any(_code(signal.getsignal(number)) in frames for number in signal.valid_signals())


def raise_from_outside(error: BaseException) -> None:
    """Raises it again if somebody outside ends the work; for handlers that hide whatever else is raised."""
    if is_from_outside(error):
        raise error


def hiding(step: Callable[[], Returned], refusal: BaseException | Callable[[BaseException], BaseException]) -> Returned:
    """Returns step(); in the place of what another library raises, which may quote a value, it raises a refusal.

    **Arguments:** `refusal`: the refusal, or what makes it of the error.
    """
    try:
        return step()
    except BaseException as error:
        raise_from_outside(error)
        failure = refusal if isinstance(refusal, BaseException) else refusal(error)
    # Outside of the handler, so that the other message is not chained to this one.
    raise failure


def _code(handler: Any) -> types.CodeType | None:
    """Returns the code that a handler of signals runs; None if the handler is not written in Python."""
    while isinstance(handler, functools.partial):
        handler = handler.func
    if callable(handler) and not hasattr(handler, "__code__"):
        handler = handler.__call__
    code = getattr(handler, "__code__", None)
    return code if isinstance(code, types.CodeType) else None


class _WhileInside(type):
    """Makes a kind of warnings that every kind belongs to while a thread is in `silence`, and none else."""

    def __subclasscheck__(cls, kind: type) -> bool:
        return silence.is_used


class _Any(Warning, metaclass=_WhileInside):
    """Stands for every kind of warnings while a thread is in `silence`."""


class _Silence:
    """Silences the warnings of this process while any thread is in it.

    `warnings.catch_warnings` restores what was there when it began, also while other threads compute. This puts one
    filter before all others whenever a thread enters, and takes that one away when the last thread leaves. Filters that
    another thread restores meanwhile have one that was there from the beginning, which silences nothing at other times.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._filter = ("ignore", None, Warning, None, 0)
        self._lists: list[Any] = []
        self.from_the_beginning = ("ignore", None, _Any, None, 0)

    @property
    def is_used(self) -> bool:
        """Says whether any thread is in it."""
        return self._inside > 0

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            self._inside += 1
            filters: Any = warnings.filters
            if not filters or filters[0] is not self._filter:
                filters.insert(0, self._filter)
                self._lists.append(filters)
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if self._inside == 0:
                    # Others may have copied them meanwhile.
                    for filters in [*self._lists, warnings.filters]:
                        filters[:] = [one for one in filters if one is not self._filter]
                    self._lists.clear()


silence = _Silence()
_filters: Any = warnings.filters
_filters.insert(0, silence.from_the_beginning)


def run_telling_refusals(step: Callable[[], Any]) -> tuple[Any, Exception | None]:
    """Runs a step, and returns what it returns and None, or None and its refusal in words.

    The step looks at types, names and shapes of data only. The refusal is a new one, so that neither its traceback nor
    its context holds the data. What another package raises is not repeated. What ends the program from outside is
    raised without context.
    """
    refusal: Exception = TypeError(UNREADABLE)
    interruption = None
    try:
        return step(), None
    except UnfitType as error:
        refusal = about(TypeError(str(error)), *field_of(error))
    except UnfitShape as error:
        refusal = about(ValueError(str(error)), *field_of(error))
    except BaseException as error:
        if is_from_outside(error):
            interruption = bare(error)
    # Frames of a traceback hold their local variables.
    del step
    if interruption is not None:
        raise interruption
    return None, refusal


def run_hiding_errors(work: Callable[[], Any]) -> tuple[Any, ReleaseFailed | None]:
    """Runs work, and returns what it returns and None, or None and the `ReleaseFailed` that stands for any error.

    The `ReleaseFailed` is a new one, so that neither its traceback nor its context holds what work computed. Raise it
    outside of any handler. Warnings
    are silenced: what NumPy and SciPy warn of depends on the values. What ends the program from outside, or a caller's
    own timeout by a signal's handler, is no failure: it is raised, without context.
    """
    interruption = None
    try:
        with silence(), np.errstate(all="ignore"):
            return work(), None
    except BaseException as error:
        if is_from_outside(error):
            interruption = bare(error)
    # Frames of a traceback hold their local variables.
    del work
    if interruption is not None:
        raise interruption
    return None, ReleaseFailed()
