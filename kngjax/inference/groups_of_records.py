"""Intervals from the estimates of disjoint groups of the records, each released for the whole ε."""

import dataclasses
import secrets
from collections.abc import Sequence
from typing import Any

import jax
import narwhals as nw
import numpy as np
import scipy.special
from jaxtyping import Float

from kngjax.accounting.adjacency import Adjacency
from kngjax.accounting.guarantees import Guarantee
from kngjax.core.errors import UnfitType
from kngjax.data.passes import Passes
from kngjax.data.weights import WeightedTable
from kngjax.inference.intervals import Interval
from kngjax.releases.certificate import Certificate
from kngjax.releases.debits import owed

FEWEST, MOST = 3, 30
# n·ε/d of a group, below which its estimate has not the law in the limit.
ENOUGH = 50.0


@dataclasses.dataclass(frozen=True)
class Groups:
    """The spread of the estimates of disjoint groups of the records: nothing is assumed of the errors.

    A record is in one group, so that all together are as private as one of them (parallel composition). Under replace
    the groups' sizes are public, and a random order that the data do not know decides which record is in which: an
    exchanged record stays where it is, and so changes one group alone, which costs ε and not 2ε. Under add_remove each
    record draws its own group, independently of all others: then one record more or less changes one group alone, and
    no other record's. Groups by position would not do: a record that is taken out would move all behind it.

    What all estimates are off by the same way their spread does not show: so many groups that it is not small next to
    the deviation of their mean are refused, by public facts (`kngjax.inference.widths`).

    **Arguments:** `number`: m, at least 3; None for the one whose previewed width is least.
    """

    number: int | None = None

    def __post_init__(self):
        if self.number is not None and not (isinstance(self.number, int) and self.number >= FEWEST):
            raise ValueError(f"number must be a whole number of at least {FEWEST} groups, got {self.number!r}")

    def settings(self) -> dict[str, Any]:
        """Returns the settings, JSON-ready."""
        return {"type": "Groups", "number": self.number}


def serves_groups(mechanism: Any) -> bool:
    """Says whether the spread of groups' estimates shows all of their error: of regressions without a ridge."""
    return mechanism.loss.has_response and not mechanism.noise.has_ridge(mechanism.dimension)


def records_needed(mechanism: Any) -> int:
    """Returns how many records a group needs at least."""
    return int(np.ceil(ENOUGH * mechanism.dimension / float(mechanism.epsilon)))


def require_enough(mechanism: Any, number: int, num_records: int | None) -> None:
    """Raises ValueError where groups of n/m records are far from the limit law."""
    if num_records is None:
        return
    need = records_needed(mechanism)
    if num_records < number * need:
        raise ValueError(
            f"{number} groups need {need} records each at this epsilon, {number * need} in all: fewer groups, a larger "
            "epsilon, or kngjax.Sandwich"
        )


def sizes(num_records: int, number: int) -> list[int]:
    """Returns the sizes of groups that are as equal as can be."""
    return [len(part) for part in np.array_split(np.empty(num_records), number)]


def owed_of_groups(certificates: Sequence[Certificate]) -> tuple[Guarantee, bool]:
    """Returns the cost of all groups, which is that of one: a record is in one of them under either adjacency.

    Whom chance puts where has a law that no record changes, one that is added or taken out drawing its own group in
    both worlds. Published with the estimates, it leaves neighbours to differ in one group, which is as private as its
    mechanism; and what is released is a part of that, an average over who is where. Its profile δ(ε) is convex in the
    pair of laws and so at most that of the worst of them, Rényi divergences are quasi-convex, and a composition with
    other releases is that of what publishes more. So ε, ρ, every (ε, δ) and what a composition makes of them are those
    of the mechanism. The log-ratios of the average need not lie in one interval of length ε, as bounded range says of
    each pair: "bounded range" is here what it costs, and no statement about them.

    Raises ValueError where they cost different things, or are within a distance of a better law, which two groups
    would share.
    """
    costs = [owed(one) for one in certificates]
    cost, _ = costs[0]
    if any(other != cost for other, _ in costs) or cost.exact_distance:
        raise ValueError("groups need a mechanism that is drawn with every rounding in its proof: kngjax.certify says")
    return cost, all(proved for _, proved in costs)


def require_divisible(X: Any, y: Any) -> None:
    """Raises UnfitType for what rows are not taken from, by its type alone."""
    for table in (X, y):
        if table is not None and not isinstance(table, np.ndarray | jax.Array | list | tuple):
            native = nw.from_native(table, allow_series=True, pass_through=True)
            if not isinstance(native, nw.DataFrame | nw.Series):
                raise UnfitType("groups need tables of rows: arrays of NumPy, lists, data frames and their columns")


def split_records(X: Any, y: Any, number: int, adjacency: Adjacency) -> list[tuple[Any, Any]]:
    """The records of each group. Private.

    **Arguments:** `X`, `y`: arrays or frames, one row a record.
    """
    count = len(y)
    if adjacency is Adjacency.REPLACE:
        order = list(range(count))
        secrets.SystemRandom().shuffle(order)
        places = np.array_split(np.array(order), number)
    else:
        coins = np.array([secrets.randbelow(number) for _ in range(count)])
        places = [np.flatnonzero(coins == group) for group in range(number)]
    return [(_taken(X, rows), _taken(y, rows)) for rows in places]


def gathered_pair(X: Passes) -> tuple[Any, Any]:
    """Gathers the arrays of all batches of records here: groups of them are drawn by lot. Private."""
    pairs = X.collected(_listed)
    tables, responses = zip(*pairs, strict=True) if pairs else ((), ())
    return _together(tables), _together(responses)


def _listed(pair: tuple[Any, Any]) -> list[Any]:
    return [pair]


def _together(parts: Sequence[Any]) -> Any:
    if not parts or parts[0] is None:
        return None
    if isinstance(parts[0], WeightedTable):
        return WeightedTable(_together([one.table for one in parts]), _together([one.weights for one in parts]))
    return np.concatenate(parts)


def _taken(table: Any, rows: np.ndarray) -> Any:
    if table is None:
        return None
    if isinstance(table, np.ndarray | jax.Array):
        return np.asarray(table)[rows]
    if isinstance(table, list | tuple):
        # As it is: an array would give all cells the type that suits all of them.
        return [table[row] for row in rows.tolist()]
    native = nw.from_native(table, allow_series=True, pass_through=True)
    if isinstance(native, nw.DataFrame):
        # With a slice of columns, as no row at all would be taken for no column.
        return nw.to_native(native[rows.tolist(), :])
    return nw.to_native(native[rows.tolist()])


def interval_of_groups(values: Float[np.ndarray, "groups dimension"], level: float) -> Interval:
    """Returns the groups' mean with Student's quantile of m - 1 degrees times their deviation over √m."""
    number = len(values)
    half = scipy.special.stdtrit(number - 1, 0.5 + level / 2.0) * values.std(axis=0, ddof=1) / np.sqrt(number)
    middle = values.mean(axis=0)
    assumptions = (
        "records are independent, and so many in each group that its estimate is normal about the same number",
    )
    method = f"the mean of {number} disjoint groups' estimates, and Student's quantile of their spread"
    return Interval(middle - half, middle + half, level, method, assumptions)
