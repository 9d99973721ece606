"""Defines the base class of engines: where a table rests, and how each of its parts is read."""

import abc
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from kngjax.core.errors import UnfitShape, UnfitType, hiding

SAME_NAME = "the stream has two columns of one name: give each its own"
READING_FAILED = (
    "reading the stream failed with {}, and nothing of it is used: the columns must hold numbers in every chunk. The "
    "reader's own message may quote a value: iterate over the source yourself to see it"
)
UNSETTLED = (
    "rows of {} may differ whenever they are computed, or displace others, as by a limit, a sample, one row of each "
    "key, a random number or the time: leave that out"
)

# Chooses the columns to read of those that a table has; None for all.
Choose = Callable[[Sequence[str]], list[str] | None]
Found = TypeVar("Found")


class AbstractEngine(abc.ABC):
    """Reads a table where it rests, part by part. Private.

    `name`: what it is, in words. `tells_batches`: whether it moves a bar as it goes. `is_read_once`: whether its
    records are gone once they were read. `person`: the column of which each cell has all its rows in one batch; None
    where rows are in any.
    """

    name: str
    tells_batches: bool = False
    is_read_once: bool = False
    person: str | None = None

    @property
    def is_gone(self) -> bool:
        """Tells whether its records were read, and are gone."""
        return False

    def is_settled(self) -> bool:
        """Tells whether its rows are the same whenever it is read, and displace no others, as far as its plan tells."""
        return True

    @abc.abstractmethod
    def declared(self, choose: Choose) -> list[Any]:
        """Lists tables or chunks whose columns and types are known before a value is looked at.

        Each file gives one without a row, and so does a query; the list is empty where nothing is known.
        """

    @abc.abstractmethod
    def replies(self, choose: Choose, work: Any, moved: Callable[[int], Any]) -> Iterable[tuple[int, Any]]:
        """Gives the number of each part, and what the work makes of its batches; each part comes once.

        **Arguments:** `work`: a `kngjax.data.work.Work`. `moved`: moves a bar by so many records.
        Batches are tables that narwhals knows, record batches of pyarrow, or pairs (X, y) from a caller's own program.
        """

    def grouped(self, choose: Choose) -> "AbstractEngine | None":
        """Returns the table of the different rows of the chosen columns, with how often each is there in a last column.

        None where the engine does not make one, or may take cells of a declared type for equal whose bits differ.
        """
        return None

    def by_person(self, person: str) -> "AbstractEngine | None":
        """Returns the table with all rows of each cell of this column in one batch; None where that is not certain.

        How many rows there are it does not tell, as that is private where persons are protected.
        """
        return None

    def count(self) -> int | None:
        """Counts the records, where metadata tell their number without a look at them."""
        return None

    def has_no_rows(self) -> bool:
        """Tells whether it is known, before a value is looked at, that there is no record."""
        return self.count() == 0


def apart_from(names: Sequence[str]) -> str:
    """Makes up a name that none of these is, in any case: a longer one."""
    return "n" + "_" * 3 * max(map(len, names))


def is_from(module: str, name: str, value: Any) -> bool:
    """Tells whether a value is of this class of an optional package, which is not imported for that."""
    # Whoever has such an object has imported its package.
    return module in sys.modules and isinstance(value, getattr(sys.modules[module], name, ()))


def reading(step: Callable[[], Found]) -> Found:
    """Returns step(); in the place of what another library raises, which may quote a value, it raises one text."""

    def refusal(error: BaseException) -> BaseException:
        known = isinstance(error, UnfitShape | UnfitType)
        return error if known else ValueError(READING_FAILED.format(type(error).__name__))

    return hiding(step, refusal)
