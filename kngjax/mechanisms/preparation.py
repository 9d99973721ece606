"""Prepares records for a mechanism: states what is public of them, then validates, clips and summarises them."""

import abc
import dataclasses
import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float

from kngjax.accounting.guarantees import Adjacency
from kngjax.core.arrays import is_traced
from kngjax.core.errors import UnfitShape, UnfitType
from kngjax.data import persons, records, schema
from kngjax.data.bounds import Bounds
from kngjax.data.exact_sums import ExactSums
from kngjax.data.gathering import gathered, parts_of
from kngjax.data.marks import counted_and_marked
from kngjax.data.passes import Passes
from kngjax.data.records import Data, Records, WeightedRecords
from kngjax.data.schema import Schema
from kngjax.data.shards import Shards
from kngjax.data.weights import WeightedTable, with_weights
from kngjax.data.work import Total
from kngjax.losses.base import AbstractPredictorLoss

MAX_RECORDS = "a public number that n does not exceed"
MAX_RECORDS_ASSUMPTION = (
    "that there are at most max_records records was known in public; data with more are refused, and that refusal is "
    "not covered"
)
TOO_MANY_RECORDS = "there are more records than max_records, the public promise that the guarantee rests on"


@dataclasses.dataclass(frozen=True, eq=False)
class AbstractIntake(abc.ABC):
    """Passes records for a mechanism to `kngjax.data.records`, which validates and clips them, and summarises them.

    **Arguments:** `mechanism`: for which. `takes_shards`: whether rows of zeros among the records change nothing of the
    mechanism's law. `has_products`: whether the product of a record and its weight may stand for both.
    """

    mechanism: Any
    takes_shards: bool = False
    has_products: bool = True

    @property
    def is_of_sums(self) -> bool:
        """Tells whether the mechanism needs sums over the records alone."""
        return self.mechanism.loss.is_quadratic

    def check_schema(self, X: Any = None, y: Any = None) -> Schema:
        """Returns what is public of these data before a value is looked at: d, the names, and under replace n.

        Arguments as of `prepare`. Raises TypeError and ValueError for all that types, names, shapes, engines and counts
        of columns show to be no data for this mechanism: a release calls this before anything is spent.
        """
        require_own_responses(X, y)
        if isinstance(X, Shards):
            raise UnfitType(
                "shards are for research, kngjax.sample(mechanism, mechanism.prepare(shards)): release takes X and y, "
                "or a kngjax.stream of records that do not fit into memory"
            )
        if isinstance(X, Passes):
            if self.mechanism.bounds.of_persons:
                raise UnfitType(persons.NO_PARTS)
            chunks = X.declared()
            if not chunks:
                # Whether a column of weights was named is known without one.
                given = WeightedTable(None, None) if X.has_weights else None
                persons.opened(self.mechanism.bounds.weight, self.mechanism.bounds.unit, given)
            shapes = [self._public_shapes(*chunk) for chunk in chunks]
            if self.mechanism.adjacency is Adjacency.ADD_REMOVE:
                return self._facts(shapes[0] if shapes else None, None)
            if X.engine.has_no_rows():
                raise UnfitShape(schema.EMPTY)
            return self._facts(shapes[0] if shapes else None, X.public_count())
        shape = self._public_shapes(X, y)
        count = shape.rows
        if self.mechanism.bounds.of_persons:
            count = persons.count_of(X.weights) if self.mechanism.adjacency is Adjacency.REPLACE else None
        if count == 0 and self.mechanism.adjacency is Adjacency.REPLACE:
            raise UnfitShape(schema.EMPTY)
        return self._facts(shape, count)

    def _facts(self, columns: schema.TableShape | None, count: int | None) -> Schema:
        if self.mechanism.dimension is None:
            raise UnfitShape(schema.UNKNOWN_COLUMNS)
        names = self.mechanism.bounds.coefficients
        if names is None and columns is not None and columns.names is not None:
            names = ("intercept",) * self.mechanism.bounds.intercept + columns.names
        return Schema(self.mechanism.dimension, count if self.mechanism.adjacency is Adjacency.REPLACE else None, names)

    def _public_shapes(self, X: Any, y: Any) -> schema.TableShape:
        X, y = self.as_records(X, y)
        return schema.public_shapes(
            self.mechanism.bounds,
            X,
            y,
            has_response=self.mechanism.loss.has_response,
            dimension=self._dimension_of_records,
            reads_text=self.mechanism.loss.reads_text,
        )

    def as_records(self, X: Any, y: Any) -> tuple[Any, Any]:
        """(X, y) as columns and responses, for mechanisms whose arguments have another meaning."""
        return X, y

    @property
    def _dimension_of_records(self) -> int | None:
        """The number of features of a record, the intercept included; None while scalar bounds leave it open."""
        return self.mechanism.dimension

    def prepare(
        self, X: Any = None, y: Any = None, *, weights: Any = None, person: Any = None, dither_key: Any = None
    ) -> Data:
        """Validated and clipped data, summarised where the loss has a sufficient statistic. Private.

        Arguments and errors as of the mechanism's `prepare`.
        """
        X = persons.with_persons(with_weights(X, weights), person)
        require_own_responses(X, y)
        if isinstance(X, Shards):
            return self._prepare_shards(X)
        if isinstance(X, Passes) and (made := self.summed(X)) is not None:
            return made
        return self.summarise(self.rows(X, y, dither_key=dither_key))

    def summed(self, X: Passes) -> Data | None:
        """Adds up over all batches what `prepare` returns; None where that takes the records themselves. Private."""
        return self.summary_of(self.exact_sums(X)) if self.is_of_sums else None

    def _prepare_shards(self, shards: Shards) -> Data:
        """Spreads the rows of shards over the devices, where the loss needs the records themselves."""
        if self.is_of_sums:
            return self.prepare(shards.X, shards.y)
        self._check_shards(shards)
        records = self.records(shards.X, shards.y)
        self.check_count(records.num_records)
        return shards.spread_rows(records)

    def exact_sums(self, X: Any = None, y: Any = None) -> ExactSums:
        """The sums over all records of which a quadratic loss is made, exactly. Private.

        Arguments and errors as of `prepare`.
        """
        return self.sums_by(self.sums, X, y)

    def sums(self, rows: Records | WeightedRecords) -> ExactSums:
        """Makes the sums of validated records, exactly. Private."""
        return self.mechanism.loss.sums(rows)

    def sums_by(self, summarise: Callable[[Any], ExactSums], X: Any, y: Any) -> ExactSums:
        """Adds up over all batches the sums that `summarise` makes of the records in each. Private."""
        require_own_responses(X, y)
        if not isinstance(X, Passes):
            sums = summarise(self.rows(X, y, may_be_empty=True))
        elif (found := self.total(X, functools.partial(_parts_of_sums, summarise), _added, is_exact=True)) is not None:
            sums = ExactSums(*found)
        else:
            self.require_none_needed(may_be_empty=True)
            sums = summarise(self.rows_of_zeros(0, self.mechanism.dimension or 0))
        self.check_count(sums.count)
        if sums.count == 0 and self.mechanism.adjacency is Adjacency.REPLACE:
            raise UnfitShape(records.EMPTY)
        return sums

    def total(
        self,
        X: Passes,
        of: Callable[[Any], Any],
        add: Callable[[Any, Any], Any] = operator.add,
        *,
        is_exact: bool = False,
    ) -> Any:
        """Adds up what `of` makes of the validated and clipped records of each batch; None without a batch. Private.

        A batch may be empty: which ones are may depend on a single record, where they are groups of records.

        **Arguments:** `of`, `add`: can be pickled, as what they return can. `is_exact`: whether they make exact sums
        over the records.
        """
        # Dithered records have other digits in every pass, and equal ones have other noise each.
        has_noise = self.mechanism.bounds.dither is not None
        of_batch = functools.partial(self._of_batch, of, X.seen is not None and not (has_noise or X.marked is not None))
        return X.total(of_batch, add, is_exact and not has_noise)

    def _of_batch(self, of: Callable[[Any], Any], are_marked: bool, pair: tuple[Any, Any]) -> Total:
        rows = self.rows(*pair, may_be_empty=True)
        marks = counted_and_marked(parts_of(rows))[1] if are_marked else None
        return Total(rows.num_records, of(rows), marks)

    def _check_shards(self, shards: Shards) -> None:
        """Raises UnfitType unless the law is that of the rows, wherever they rest: of public settings alone."""
        if self.mechanism.bounds.dither is not None:
            raise UnfitType("shards take no Bounds(..., dither=...): give X and y as they are")
        if not (self.takes_shards and isinstance(self.mechanism.loss, AbstractPredictorLoss)):
            raise UnfitType(
                "rows are spread over devices for KNG and the exponential mechanism in regression, and for every "
                "mechanism of a loss with a sufficient statistic: give X and y as they are"
            )

    def records(self, X: Any = None, y: Any = None, *, dither_key: Any = None) -> Records:
        """Returns the validated and clipped rows without weights; UnfitType where records keep theirs. Private."""
        made = self.rows(X, y, dither_key=dither_key)
        if isinstance(made, Records):
            return made
        raise UnfitType(f"{type(self.mechanism.loss).__name__} with these settings takes no weights of records")

    def rows(
        self,
        X: Any = None,
        y: Any = None,
        *,
        dither_key: Any = None,
        may_be_empty: bool | None = None,
        has_codes: bool = False,
    ) -> Records | WeightedRecords:
        """Validated and clipped records, one by one: what `prepare` summarises. Private.

        With weights, of a loss with ρ(wη, wy) = wρ(η, y), they are the records' products with these, without weights.

        **Arguments:** `may_be_empty`: whether there may be none; None: under add_remove alone. `has_codes`: whether
        rows of persons come with the numbers of these.
        """
        if isinstance(X, Passes):
            return self._gathered(X, dither_key, may_be_empty)
        X, y = self.as_records(X, y)
        prepare = records.prepare if self.mechanism.bounds.weight is None else records.prepare_rows
        made = prepare(
            self.mechanism.bounds,
            X,
            y,
            has_response=self.mechanism.loss.has_response,
            dimension=self._dimension_of_records,
            responses=self.responses,
            reads_text=self.mechanism.loss.reads_text,
            may_be_empty=self.mechanism.adjacency is Adjacency.ADD_REMOVE if may_be_empty is None else may_be_empty,
            dither_key=dither_key,
            has_codes=has_codes,
        )
        return made.products() if isinstance(made, WeightedRecords) and self.absorbs_weights else made

    def _gathered(self, X: Passes, dither_key: Any, may_be_empty: bool | None) -> Records | WeightedRecords:
        """Gathers the validated and clipped records of all batches here. Private."""
        if dither_key is not None:
            raise UnfitType("a stream takes no dither_key, as all batches would have the same noise: give X and y")
        found = self.total(X, _listed_parts)
        if not found or all(len(y) == 0 for (_, y, _), _ in found):
            self.require_none_needed(may_be_empty)
        if not found:
            return self.rows_of_zeros(0, self.mechanism.dimension or 0)
        parts, counts = zip(*found, strict=True)
        return gathered(parts, None if counts[0] is None else sum(counts))

    def require_none_needed(self, may_be_empty: bool | None = None) -> None:
        """Raises UnfitShape where there must be a record. **Arguments:** `may_be_empty`: as of `rows`."""
        allowed = self.mechanism.adjacency is Adjacency.ADD_REMOVE if may_be_empty is None else may_be_empty
        if not allowed or self.mechanism.dimension is None:
            raise UnfitShape(records.EMPTY)

    def bounds_of_rows(self, dimension: int) -> Bounds:
        """Bounds of what `records` makes of d features and a response: those of products where it makes products."""
        return self.mechanism.bounds.of_products(dimension) if self.absorbs_weights else self.mechanism.bounds

    @property
    def absorbs_weights(self) -> bool:
        """Tells whether products of records and weights stand for both, since ρ(wη, wy) = wρ(η, y)."""
        return self.mechanism.bounds.weight is not None and self.mechanism.loss.is_homogeneous and self.has_products

    @property
    def weights_enter_loss(self) -> bool:
        """Tells whether the law has weights besides records, which draws must know of, or refuse."""
        return self.mechanism.bounds.weight is not None and not (self.absorbs_weights or self.is_of_sums)

    def responses(self, column: Any) -> Float[np.ndarray, " records"]:
        """Converts each cell of the response by itself to the number that is modelled; NaN if it has no meaning."""
        return self.mechanism.loss.responses(column)

    def rows_of_zeros(self, number: int, dimension: int) -> Records | WeightedRecords:
        """Records that add a constant to every loss of x'θ, as `records` would make them."""
        rows = Records(np.zeros((number, dimension)), np.zeros(number))
        made = WeightedRecords(rows, np.zeros(number))
        return rows if self.mechanism.bounds.weight is None or self.absorbs_weights else made

    def summarise(self, records: Records | WeightedRecords) -> Data:
        """The least that the mechanism needs of validated records. Private.

        Raises TypeError for records without weights where they must have some, and the other way round.
        """
        self.require_declared_weights(records)
        self.check_count(records.num_records)
        return self.mechanism.loss.summarise(records)

    def require_declared_weights(self, records: Records | WeightedRecords) -> None:
        """Raises TypeError for records without weights where they must have some, and the other way round."""
        keeps = self.mechanism.bounds.weight is not None and not self.absorbs_weights
        if keeps is not isinstance(records, WeightedRecords):
            raise TypeError("records have weights where the bounds declare them, and nowhere else: take prepare(X, y)")

    def summary_of(self, sums: ExactSums) -> Data:
        """Converts exact sums over all records to what the mechanism needs of them. Private."""
        return sums.summary()

    def public_count(self, data: Any) -> int | None:
        """n of these data under replace, where it is public; None under add_remove."""
        return data.num_records if self.mechanism.adjacency is Adjacency.REPLACE else None

    def check_count(self, count: int | float) -> None:
        """Raises ValueError for more records than `max_records`, where the mechanism has such a public promise."""
        if not self.allows(count):
            raise ValueError(TOO_MANY_RECORDS)

    def allows(self, count: int | float) -> bool:
        """Tells whether n is at most `max_records`, if the mechanism has such a public promise.

        It is not asked within a compiled program of which the mechanism is an argument: whoever prepares data asked.
        """
        limit = getattr(self.mechanism, "max_records", None)
        return limit is None or is_traced(limit) or count <= float(limit)


class PlainIntake(AbstractIntake):
    """Takes records as the bounds describe them, and summarises them as the loss does."""


class AbstractValuesIntake(AbstractIntake):
    """Takes values, shape (n,), given as `X` or as `y`: each is the response of a record."""

    def as_records(self, X: Any, y: Any) -> tuple[Any, Any]:
        """(None, y) of the values; with weights these in the place of None. Raises UnfitShape for both X and y."""
        if isinstance(X, WeightedTable):
            nothing, values = self.as_records(X.table, y)
            return WeightedTable(nothing, X.weights), values
        if X is not None and y is not None:
            raise UnfitShape("this mechanism is of one column: pass the values alone, as X or as y")
        return None, X if y is None else y

    @property
    def _dimension_of_records(self) -> int:
        # However many numbers are released.
        return 1


def require_own_responses(X: Any, y: Any) -> None:
    """Raises UnfitShape for responses or weights beside a stream or shards, which bring their own."""
    is_weighted = isinstance(X, WeightedTable)
    table = X.table if is_weighted else X
    if isinstance(table, Passes | Shards):
        if is_weighted and isinstance(X.weights, persons.Identifiers):
            raise UnfitType(persons.NO_PARTS)
        what = "a stream brings its" if isinstance(table, Passes) else "shards bring their"
        if y is not None:
            raise UnfitShape(f"{what} own responses: leave y out here")
        if is_weighted:
            raise UnfitShape(f"{what} own weights: name their column, kngjax.stream(..., weights='w')")


def _parts_of_sums(summarise: Callable[[Any], ExactSums], rows: Any) -> tuple[Any, ...]:
    return summarise(rows).parts


def _added(one: tuple[Any, ...], two: tuple[Any, ...]) -> tuple[Any, ...]:
    return (ExactSums(*one) + ExactSums(*two)).parts


def _listed_parts(rows: Records | WeightedRecords) -> list[Any]:
    return [(parts_of(rows), rows.rows.persons)]
