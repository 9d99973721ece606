"""A public pipeline releases nothing but what its last step releases: all steps before that one are public."""

import warnings
from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if

from kngjax.core.errors import FAILED_OF_FIT, UnfitShape, UnfitType, holding_no_records
from kngjax.data import cells
from kngjax.data.column_types import Holds, holds
from kngjax.data.named_columns import Columns
from kngjax.sklearn.base import AbstractPrivateEstimator, refuse_arguments
from kngjax.sklearn.named_tables import table_of
from kngjax.sklearn.public_steps import in_this_process, require_no_memory, require_public
from kngjax.study.analyses import Analysis


class PublicPipeline(Pipeline):
    """Refuses steps that learn from records, and ends with a private estimator.

    A scaler, an imputer or an encoder that is fitted to private records is in every number that is released after it,
    and no certificate counts it. Here each step must be on a list of those that map each record by itself
    (`kngjax.sklearn.public_steps`), also within ColumnTransformer, FeatureUnion and Pipeline. None of them is fitted to
    a record: they are fitted to two made-up rows of the same types, which shows their columns. Records pass through
    them after the fit was paid, since whether they pass depends on their values.

    **Arguments:** as of scikit-learn's `Pipeline`; `memory` is refused, as it would keep records in files, and so is
    `n_jobs` of a step, as other processes are handed records in files.
    """

    @holding_no_records(failed=FAILED_OF_FIT)
    def fit(self, X: Any, y: Any = None, *, person: Any = None, **refused: Any) -> "PublicPipeline":
        """Fits the last step by one release, of the columns that the others make of the private records X and y.

        **Arguments:** `person`: as of the last step's `fit`, also by scikit-learn's name with that of the step,
        `fit(X, y, step__person=ids)`. Raises ValueError for steps that are not public, and as the last step's `fit`.
        """
        person = refused.pop(f"{self.steps[-1][0]}__person", person)
        refuse_arguments(refused)
        analysis, table = self._admit(X, y, person)
        self._keep(analysis, analysis.release(table, self._last.ledger))
        return self

    @property
    def _last(self) -> AbstractPrivateEstimator:
        last = self.steps[-1][1]
        if not isinstance(last, AbstractPrivateEstimator):
            raise ValueError(
                f"the last step must be a private estimator of kngjax.sklearn, and {type(last).__name__} is none: what "
                "it learns would be released without a guarantee"
            )
        return last

    def _admit(self, X: Any, y: Any, person: Any = None, is_paid: bool = False) -> tuple[Analysis, Columns]:
        """Plans the last step's release of the columns that the other steps make, and checks their table."""
        last = self._last
        require_no_memory(self)
        for name, step in self.steps[:-1]:
            require_public(step, name)
        made, self.steps = made_up_rows(X), list(self.steps)
        for place, (name, step) in enumerate(self.steps[:-1]):
            if step is not None and step != "passthrough":
                # A step that was fitted to records elsewhere is forgotten.
                fitted = in_this_process(clone(step), name)
                self.steps[place] = name, fitted
                with warnings.catch_warnings(), np.errstate(all="ignore"):
                    # The made-up rows warn, since their text is no category and their numbers are zero.
                    warnings.filterwarnings("ignore", "Found unknown categories", UserWarning)
                    made = dense(fitted.fit(made).transform(made))
        return last._admit(X, y, person, is_paid, through=(made, self._transformed))

    def _transformed(self, X: Any) -> Any:
        """Applies the steps before the last to X. The result is private if X is."""
        X = with_public_types(X)
        for _, step in self.steps[:-1]:
            if step is not None and step != "passthrough":
                X = dense(step.transform(X))
        return X

    def predict(self, X: Any, **settings: Any) -> Any:
        """Predicts the response of each row of X by the last step; free, and private if X is."""
        return super().predict(with_public_types(X), **settings)

    @available_if(lambda self: hasattr(self._last, "predict_proba"))
    def predict_proba(self, X: Any, **settings: Any) -> Any:
        """Returns the probabilities of the classes, shape (m, 2)."""
        return super().predict_proba(with_public_types(X), **settings)

    @available_if(lambda self: hasattr(self._last, "decision_function"))
    def decision_function(self, X: Any, **settings: Any) -> Any:
        """Returns the log odds of the second class, shape (m,)."""
        return super().decision_function(with_public_types(X), **settings)

    def _keep(self, analysis: Analysis, releases: list[Any]) -> None:
        self._last._keep(analysis, releases)


_ROWS = 2


def made_up_rows(X: Any) -> Any:
    """Makes two rows of zeros, or of empty text, with the names and types of X; no value of X is looked at.

    Raises UnfitShape for lists, and UnfitType for a column of a frame whose type holds neither numbers nor text.
    """
    _refuse_lists(X)
    native = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(native, nw.DataFrame):
        kinds = _kinds(native)
        values = {name: [0.0 if kind is Holds.NUMBERS else ""] * _ROWS for name, kind in kinds.items()}
        return nw.to_native(nw.from_dict(values, backend=native.implementation))
    dtype = getattr(X, "dtype", np.dtype(np.float64))
    return np.zeros((_ROWS, len(table_of(X).columns)), dtype if dtype.kind == "O" else np.float64)


def with_public_types(X: Any) -> Any:
    """Returns X with numbers as float64 and all else as text, by the types of its columns alone.

    Each cell becomes what it becomes by itself in `kngjax.data.cells`: its `numbers`, its `texts`, and of an array of
    objects whichever of both it is. Private if X is. Raises as `made_up_rows`.
    """
    _refuse_lists(X)
    native = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(native, nw.DataFrame):
        made, backend = [], native.implementation
        for name, kind in _kinds(native).items():
            column = native.get_column(name)
            if kind is Holds.NUMBERS:
                made.append(nw.new_series(name, cells.numbers(column), nw.Float64, backend=backend))
            else:
                made.append(nw.new_series(name, cells.texts(column), nw.String, backend=backend))
        table = nw.from_dict({one.name: one for one in made}, backend=backend).to_native()
        return table.set_axis(X.index, axis=0) if hasattr(X, "set_axis") else table
    if getattr(getattr(X, "dtype", None), "kind", "O") != "O":
        return cells.numbers(X)
    objects = np.asarray(X, dtype=object)
    each = (cells.text(cell) if isinstance(cell, str | bytes) else cells.number(cell) for cell in objects.ravel())
    return np.fromiter(each, object, count=objects.size).reshape(objects.shape)


def _refuse_lists(X: Any) -> None:
    if isinstance(X, Sequence):
        raise UnfitShape("X is a list, which shows the types of none of its columns: pass a NumPy array or a frame")


def _kinds(table: nw.DataFrame) -> dict[Any, Holds]:
    """Tells for each column whether its type holds numbers or text; raises UnfitType where it holds neither."""
    kinds = {name: holds(table.get_column(name)) for name in table.columns}
    if unfit := [name for name, kind in kinds.items() if kind is Holds.NOTHING]:
        raise UnfitType(
            f"the types of the columns {unfit} of X hold neither numbers nor text: leave them out, or make numbers of "
            "them by a public rule before the call, like the days since a public date"
        )
    return kinds


def dense(made: Any) -> Any:
    """Turns the output of a step into an array or a frame: encoders make sparse matrices."""
    return made.toarray() if hasattr(made, "toarray") else made
