"""Private estimators check public facts, let a ledger pay, and keep one release and no record."""

import abc
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted, validate_data

import kngjax as kng
from kngjax.core.errors import FAILED_OF_FIT, holding_no_records
from kngjax.data import persons
from kngjax.data.formulas import Formula
from kngjax.data.named_columns import Columns
from kngjax.data.terms import Design
from kngjax.mechanisms.parameters import check_count, whole_epsilon
from kngjax.sklearn import named_tables
from kngjax.sklearn.column_facts import design_of, pair_of, plain
from kngjax.sklearn.paid_fits import AbstractPaidFits
from kngjax.study.analyses import Analysis
from kngjax.study.expectations import expecting
from kngjax.study.regressions import Regression
from kngjax.study.responses import Response
from kngjax.study.results import Results
from kngjax.study.study import whom_of
from kngjax.study.survey_weights import Persons

_NO_WEIGHTS = (
    "sample_weight is not taken: the noise is for records that count once each, and a larger weight would need more of "
    "it. Leave it out; rows of one person share a vote by person=ids"
)


@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class AbstractPrivateEstimator(AbstractPaidFits):
    """Fits a regression by one release: an estimator for scikit-learn that keeps the release and no record.

    **Arguments:** all public, by keyword, stored as they are and checked in `fit`, before anything is spent.

    - `epsilon`: ε of a fit. `adjacency`: "replace" or "add_remove"; there is no default.
    - `bounds`: (lower, upper) for all columns of X, by name for a data frame, `{"age": (0, 99)}`, or for arrays a list
        of one pair a column. Columns are mapped to [-1, 1] by them, so that units do not set the noise.
    - `levels`: of columns that are categories, by name or position, the reference first.
    - `missing`, `missing_y`: the value of a cell that is missing or no number; by column, or one number for all, or
        "drop", under add_remove. Without them such cells make the fit fail after it was paid.
    - `domain`: Θ of the coefficients of the columns on [-1, 1]; made of the bounds of y if it is left out.
    - `ledger`: a `kngjax.Ledger` that every fit is debited from. Clones share it, also in other processes; a clone
        without one refuses to fit, with `UncountedFits`.
    - `num_records`: a public guess of n under add_remove, for what depends on it.
    - `unit`, `most_rows`: whom a fit protects, like "patient", and how many votes the rows of one person share, as in
        `kngjax.Study`. `fit(X, y, person=ids)` says whose each row is; without it each row is a person.
    - `force`: whether to fit although public facts foresee little but noise; otherwise such a fit is refused.

    A fitted estimator has `results_` (named results, `results_.summary()`), `release_`, `certificate_`, `coef_` and
    `intercept_` in own units, `coef_names_`, `basis_coef_`, `n_features_in_` and, of a data frame, `feature_names_in_`.
    All of them may be published. `fit` raises ValueError or TypeError, in words, for what public facts refuse, at no
    cost; `kngjax.ledger.BudgetExceeded`; and `kngjax.ReleaseFailed`, a constant text, for what depends on values.
    """

    epsilon: Any = None
    adjacency: Any = None
    bounds: Any = None
    levels: Any = None
    missing: Any = None
    missing_y: Any = None
    domain: Any = None
    ledger: Any = None
    num_records: Any = None
    unit: Any = None
    most_rows: Any = None
    force: Any = False
    _score: ClassVar[Callable[..., Any]] = staticmethod(r2_score)
    n_features_in_: int = dataclasses.field(init=False)

    @abc.abstractmethod
    def _analysis(self, asked: Regression) -> Analysis:
        """Makes the analysis whose release is the fit."""

    def _require_bounds(self, response: Response, dimension: int) -> None:
        """Raises ValueError where y lacks public facts, and names them. **Arguments:** `dimension`: d."""
        return

    @abc.abstractmethod
    def _response(self, name: str) -> Response:
        """y, by its public facts."""

    @abc.abstractmethod
    def predict(self, X: Any) -> np.ndarray:
        """Predicts the response of each row of X, shape (m,). A prediction is free, and private if X is."""

    def owner_score(self, X: Any, y: Any) -> float:
        """Measures how well predictions fit: FOR THE DATA OWNER ALONE unless X and y are public."""
        return float(self._score(y, self.predict(X)))

    @abc.abstractmethod
    def _losses(self, predicted: Any, table: Columns, y: np.ndarray) -> np.ndarray:
        """Computes the loss in [0, 1] of a fitted estimator's prediction for each record, shape (n,). Private.

        The loss of a record depends on this record alone, bit for bit. **Arguments:** `predicted`: the fitted
        estimator. `y`: responses in the units of `_response`.
        """

    @holding_no_records(failed=FAILED_OF_FIT)
    def fit(self, X: Any, y: Any, *, person: Any = None, **refused: Any) -> Any:
        """Fits the regression by one release of the private records X (n, columns) and y (n,); returns the estimator.

        **Arguments:** `X`: a NumPy array or a data frame of pandas or polars. `y`: an array, a series or a list.
        `person`: an identifier of the person for each row, whole numbers or text: the fit then protects a person
        with all rows, whose one vote they share. Private. A row without one makes the fit fail after it was paid, or is
        left out where `missing` is "drop". Raises as the class says.
        """
        refuse_arguments(refused)
        analysis, table = self._admit(X, y, person)
        self._keep(analysis, analysis.release(table, self.ledger))
        return self

    def _admit(
        self,
        X: Any,
        y: Any,
        person: Any = None,
        is_paid: bool = False,
        through: tuple[Any, Callable[[Any], Any]] | None = None,
    ) -> tuple[Analysis, Columns]:
        """Plans the release and checks its table; refuses whatever public facts refuse.

        **Arguments:** `person`: as of `fit`. `is_paid`: whether somebody else counts this fit. `through`: made-up rows,
        which show the types of the columns that are regressed on, and the function that makes these columns of X once
        the fit is paid.
        """
        self._refuse_unpaid(is_paid)
        if y is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None.")
        # So many columns are declared by bounds by position; None where none are.
        expected = len(self.bounds) if isinstance(self.bounds, list) else None
        shown, make = (X, None) if through is None else through
        table = named_tables.table_of(shown, expected)
        if make is not None:
            table = dataclasses.replace(table, rows=named_tables.table_of(X).rows)
        validate_data(self, named_tables.seen_as(shown, table), skip_check_array=True)
        unit = self._whom(table.columns, person)
        name, column = named_tables.unused("y", table.columns), unit and unit.column
        # Types and shapes are looked at before persons are counted.
        named_tables.with_identifiers(table, X, person, column)
        analysis = self._planned(table, named_tables.feature_names(shown) is not None, name, unit, person)
        response = analysis.response
        assert isinstance(response, Response)

        def with_responses(columns: Columns) -> Columns:
            return named_tables.with_response(columns, X, y, name)

        table = with_responses(table)
        assert analysis.design is not None
        reads_text = response.levels is not None or response.missing is not None
        named_tables.refuse_text(table, analysis.design, name, reads_text)
        table = named_tables.with_identifiers(table, X, person, column)
        if make is not None:

            def made() -> Columns:
                return named_tables.with_identifiers(
                    with_responses(named_tables.table_of(make(X), expected)), X, person, column
                )

            table = dataclasses.replace(table, after_debit=made)
        return analysis, table

    def _whom(self, columns: Sequence[str], person: Any) -> kng.Unit | None:
        """Whom a fit protects; None for one record."""
        named = None if person is None else named_tables.unused("person", columns)
        return whom_of(named, self.unit, self.most_rows, "drop" if isinstance(self.missing, str) else None)

    def _planned(self, table: Columns, by_name: bool, name: str, unit: kng.Unit | None, person: Any) -> Analysis:
        """Plans the release of a fit to a table with these columns and this number of rows, or persons."""
        design = design_of(table.columns, by_name, self.bounds, self.levels, self.missing)
        text = f"{name} ~ {' + '.join(design.columns)}"
        is_public = kng.Adjacency.parse(self.adjacency) is kng.Adjacency.REPLACE
        if is_public and self.num_records is not None:
            raise ValueError("under replace the number of records is that of X: leave num_records out")
        count = table.rows if person is None or not is_public else persons.count_of(persons.Identifiers(person))
        if not is_public and (count := self.num_records) is not None:
            count = int(check_count("num_records", count, "a public guess of how many records there are, like 10_000"))
        _ = whole_epsilon(self.epsilon)
        try:
            response = self._response(name)
        except ValueError as error:
            # The policy for y is an argument of its own.
            raise ValueError(str(error).replace("missing: ", "missing_y: ", 1)) from None
        self._require_bounds(response, len(design.names))
        scale = getattr(self, "scale", None)
        asked = Regression(Formula(text, name, None, design), response, self.adjacency, count, self.domain, scale)
        planned = self._analysis(asked)
        if unit is not None:
            planned = planned.protecting(unit) if person is None else Persons(unit).given_to(planned)
        return expecting(planned.forced(self.force), count)

    def _require_comparable(self) -> None:
        """Raises ValueError where public facts do not say what losses are between."""

    def _table_with_response(self, made: Any, X: Any, y: Any) -> tuple[Columns, str]:
        """Columns of other records for this fitted estimator, with their responses, and the name of those. Private.

        **Arguments:** `made`: what is regressed on; `X`: what it was made of.
        """
        table, name = named_tables.table_of(made, self.n_features_in_), self.results_.response.column
        return named_tables.with_response(named_tables.renamed(table, self._design().columns), X, y, name), name

    def _keep(self, analysis: Analysis, releases: list[kng.Release]) -> None:
        """Sets what a fitted estimator has: all of it is public."""
        assert analysis.design is not None
        self.results_ = Results.of("regression")(analysis, releases)
        self.release_ = releases[0]
        self.certificate_ = self.release_.certificate
        self.basis_coef_ = self.release_.value
        own = analysis.design.in_own_units(self.basis_coef_)
        self.intercept_, self.coef_ = float(own[0]), own[1:]
        self.coef_names_ = np.array(analysis.design.names[1:], dtype=object)

    def _design(self) -> Design:
        check_is_fitted(self)
        return self.results_.design

    def _linear(self, X: Any) -> np.ndarray:
        """Intercept and basis columns times the coefficients, shape (m,)."""
        design = self._design()
        table = named_tables.table_of(X, self.n_features_in_)
        validate_data(self, named_tables.seen_as(X, table), reset=False, skip_check_array=True)
        return self.basis_coef_[0] + design.matrix(named_tables.renamed(table, design.columns)) @ self.basis_coef_[1:]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Every fit is a fresh draw; there is no random_state.
        tags.non_deterministic = True
        tags.target_tags.required = True
        tags.input_tags.allow_nan = self.missing is not None
        tags.input_tags.string = self.missing is not None or self.levels is not None
        return tags


def refuse_arguments(arguments: dict[str, Any]) -> None:
    """Raises TypeError for whatever else `fit` is given."""
    if "sample_weight" in arguments:
        raise TypeError(_NO_WEIGHTS)
    if arguments:
        raise TypeError(f"fit has no argument {', '.join(sorted(arguments))}; it takes X, y and person")


def ends_of(bounds_y: Any) -> tuple[float | int, float | int] | None:
    """Returns the public bounds of the response, if any are given."""
    return None if bounds_y is None else pair_of("bounds_y", bounds_y)


def levels_of(classes: Any) -> tuple[Any, ...]:
    """Returns two public classes as Python's values."""
    if isinstance(classes, str | bytes) or not isinstance(classes, Sequence | np.ndarray) or len(classes) != 2:
        raise ValueError(
            "Only binary classification is supported. classes must be two public labels, the second one the event, "
            f"like ('no', 'yes'), not {classes!r}"
        )
    return tuple(map(plain, classes))
