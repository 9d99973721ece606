"""Public terms as a transformer: columns of a basis with public bounds, each record by itself."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import validate_data

from kngjax.core.errors import UnfitShape
from kngjax.data.named_columns import Columns
from kngjax.data.terms import Design, Product
from kngjax.data.terms.base import AbstractTerm
from kngjax.sklearn.named_tables import seen_as, table_of


class PublicTerms(TransformerMixin, BaseEstimator):
    """Computes basis columns of `kngjax.terms`, and learns nothing: a row depends on its record and public terms alone.

    **Arguments:** `terms`: public, like `(Polynomial("age", 0, 99, degree=2), Categorical("region", ("a", "b")))`.
    Columns of arrays are called "x0", "x1", ...

    `transform` needs no `fit`. Cells that are missing without a policy of their term become NaN, which an estimator's
    own `missing` decides about. `set_output(transform="pandas")` gives the columns their names, and `get_bounds_out()`
    the bounds by those names, for the estimator behind it.
    """

    def __init__(self, *, terms: Any = None):
        self.terms = terms

    def fit(self, X: Any, y: Any = None) -> "PublicTerms":
        """Learns nothing of X but the names and the number of its columns."""
        table = _table(X)
        self._design().check(table)
        if len(table) == 0:
            raise UnfitShape("X has no rows")
        validate_data(self, seen_as(X, table), skip_check_array=True)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Returns the basis columns, shape (n, k), of X (n, columns), private or public; private if X is."""
        table = _table(X)
        if hasattr(self, "n_features_in_"):
            validate_data(self, seen_as(X, table), reset=False, skip_check_array=True)
        return letting_missing_through(self._design()).matrix(table)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Returns the names of the basis columns."""
        return np.array(self._design().column_names, dtype=object)

    def get_bounds_out(self) -> dict[str, tuple[float, float]]:
        """Returns the public bounds of each basis column, by name."""
        design = self._design()
        ends = zip(design.lower.tolist(), design.upper.tolist(), strict=True)
        return dict(zip(design.column_names, ends, strict=True))

    def _design(self) -> Design:
        if isinstance(self.terms, str | bytes) or not isinstance(self.terms, Sequence) or not self.terms:
            raise ValueError(
                f"terms must be a tuple of kngjax.terms, like (Polynomial('age', 0, 99, degree=2),), not {self.terms!r}"
            )
        return Design(tuple(self.terms))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.allow_nan = tags.input_tags.string = True
        return tags


def _table(X: Any) -> Columns:
    """Reads a table; of a list, which no release reads here, as the rectangle of cells that NumPy sees."""
    return table_of(np.array(X, dtype=object) if isinstance(X, Sequence) else X)


def letting_missing_through(design: Design) -> Design:
    """Changes terms so that their columns are NaN where a cell is missing without a policy."""
    return Design(tuple(map(_letting_through, design.terms)))


def _letting_through(term: AbstractTerm) -> AbstractTerm:
    if isinstance(term, Product):
        return Product(tuple(_letting_through(factor) for factor in term.factors))  # pyright: ignore[reportArgumentType]
    return dataclasses.replace(term, missing="drop") if getattr(term, "missing", "drop") is None else term  # pyright: ignore[reportArgumentType]
