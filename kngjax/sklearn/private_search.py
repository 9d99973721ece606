"""Settings that are chosen privately: every candidate is paid for, and so is the choice among them."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

import kngjax as kng
from kngjax.accounting.adjacency import RECORD
from kngjax.core.errors import FAILED_OF_FIT, holding_no_records, run_hiding_errors
from kngjax.data.named_columns import Columns
from kngjax.data.persons import codes_of
from kngjax.mechanisms.parameters import whole_epsilon
from kngjax.mechanisms.private_choice import PrivateChoice
from kngjax.releases.debits import settings
from kngjax.releases.release import plan_for
from kngjax.sklearn.base import AbstractPrivateEstimator, refuse_arguments
from kngjax.sklearn.holdouts import is_covered, parts, parts_of_persons
from kngjax.sklearn.paid_fits import AbstractPaidFits
from kngjax.sklearn.public_pipeline import PublicPipeline
from kngjax.sklearn.rowwise import means_of_persons
from kngjax.study.analyses import Analysis
from kngjax.study.responses import Response


def _has(method: str) -> Any:
    return lambda search: hasattr(_last(search.estimator), method)


class PrivateSearch(AbstractPaidFits):
    """Fits each candidate to training records, and chooses one by a private score on records that were held out.

    P(k) ∝ exp(-c Σ_i l_ki) over the held-out records i, by `kngjax.mechanisms.private_choice`, l_ki in [0, 1] the loss
    of candidate k: the check loss of a quantile regressor, the absolute error of a robust one, the squared error of a
    linear or Poisson one, each in widths of `bounds_y`, and Brier's score of a classifier.

    The fits and the choice are reserved in the ledger together, before a value is looked at. No fit is repeated on all
    records: the chosen one is published as it is. A record is either trained on or held out, so that the choice costs
    nothing more where it is at most as dear as one of the fits (`kngjax.sklearn.holdouts` has the proof); else its ε is
    debited as well. All candidates are paid for, and may all be published.

    **Arguments:** all public.

    - `estimator`: a private estimator, or a `PublicPipeline` that ends with one; without a ledger of its own.
    - `param_grid`: settings to compare, as of `GridSearchCV`: {"epsilon": [0.5, 1.0], "domain": [...]}. What is
        estimated may not differ: neither the adjacency, the bounds or classes of y, nor `quantile`.
    - `epsilon`: ε of the choice.
    - `holdout`: the share of records that are held out, in (0, 1).
    - `ledger`: pays for all. A clone without one refuses to fit, with `UncountedFits`.

    Fitted, it has `best_estimator_`, `best_params_`, `best_index_`, `candidates_` (all fitted estimators, in the order
    of `params_`), `choice_` (the release of the choice) and `guarantee_` (of all together), and predicts as
    `best_estimator_` does.
    """

    _fitted: ClassVar[str] = "best_estimator_"

    def __init__(
        self, estimator: Any, param_grid: Any, *, epsilon: Any = None, holdout: Any = 0.25, ledger: Any = None
    ):
        self.estimator = estimator
        self.param_grid = param_grid
        self.epsilon = epsilon
        self.holdout = holdout
        self.ledger = ledger

    @holding_no_records(failed=FAILED_OF_FIT)
    def fit(self, X: Any, y: Any, *, person: Any = None, **refused: Any) -> "PrivateSearch":
        """Releases all candidates and the choice, of the records X (n, columns) and y (n,), private.

        **Arguments:** `person`: as of the estimator's `fit`. All rows of a person are trained on, or all are held out,
        and the loss of a person is the mean over that person's rows. Raises as the estimator's `fit`, of public facts
        and budgets before anything is spent.
        """
        refuse_arguments(refused)
        self._fit(X, y, person)
        return self

    def _fit(self, X: Any, y: Any, person: Any) -> None:
        self._check()
        params = list(ParameterGrid(self.param_grid))
        unset: list[Any] = [clone(self.estimator) for _ in params]
        candidates = [one.set_params(**settings) for one, settings in zip(unset, params, strict=True)]
        adjacency = _require_comparable(candidates)
        # All records are admitted first, so that nothing that is refused depends on the parts.
        (analysis, table), *_ = [candidate._admit(X, y, person, is_paid=True) for candidate in candidates]
        codes = None if person is None else _codes_of(person, len(table))
        if codes is None:
            training, held_out = parts(len(table), float(self.holdout), adjacency)
            compared = len(held_out)
        else:
            training, held_out, compared = parts_of_persons(codes, float(self.holdout), adjacency)
        own = [None if values is None else _safe_indexing(values, training) for values in (X, y, person)]
        admitted = [candidate._admit(*own, is_paid=True) for candidate in candidates]
        choice = self._choice(len(candidates), adjacency, analysis.parts[0].mechanism.bounds.protects)
        is_public = adjacency is kng.Adjacency.REPLACE
        counts = [plan.count_of(part) if is_public else 0 for plan, part in admitted]
        steps = [(step, count) for (plan, _), count in zip(admitted, counts, strict=True) for step in plan.steps()]
        costs = [certificate.cost for step, count in steps for certificate in step.certificates(count)]
        fits = [cost for cost in costs if cost is not None]
        if len(fits) < len(costs):
            raise ValueError("nothing is proved of the release of a candidate: its settings take a Markov chain")
        choosing = plan_for(choice, compared).cost
        owed = fits if is_covered(choosing, fits) else [*fits, choosing]
        self._carry_out(candidates, admitted, choice, owed, _Held(X, y, held_out, analysis, codes))
        chosen = int(np.argmax(self.choice_.value))
        self.params_, self.candidates_, self.best_index_ = params, candidates, chosen
        self.best_params_, self.best_estimator_ = params[chosen], candidates[chosen]
        self.guarantee_ = kng.Guarantee.composed(owed) if len(owed) > 1 else owed[0]
        self.n_features_in_ = self.best_estimator_.n_features_in_
        if hasattr(_last(self.best_estimator_), "classes_"):
            self.classes_ = self.best_estimator_.classes_

    def _carry_out(
        self,
        candidates: Sequence[Any],
        admitted: Sequence[tuple[Analysis, Columns]],
        choice: PrivateChoice,
        owed: Sequence[kng.Guarantee],
        held: "_Held",
    ) -> None:
        debits: list[kng.ledger.Reservation | None] = [None] * (len(candidates) + 1)
        if self.ledger is not None:
            words = [
                {"analysis": plan.title, "formula": plan.formula, "mechanism": settings(plan.parts[0].mechanism)}
                | {"candidate": place, "of": "PrivateSearch", "epsilon_of_the_choice": float(choice.epsilon)}
                for place, (plan, _) in enumerate(admitted)
            ]
            words.append({"analysis": "choice of PrivateSearch", "mechanism": settings(choice)})
            made = self.ledger.reserve_all(owed, words[: len(owed)])
            debits = [*made, None][: len(debits)]
        for candidate, (plan, table), debit in zip(candidates, admitted, debits[:-1], strict=True):
            candidate._keep(plan, plan.release(table, None if debit is None else [debit]))
        # Its own reading, after all is paid.
        losses, refusal = run_hiding_errors(functools.partial(held.losses, candidates))
        if refusal is not None:
            raise refusal
        self.choice_ = kng.release(choice, losses, ledger=debits[-1])

    def _choice(self, number: int, adjacency: kng.Adjacency, protects: str) -> PrivateChoice:
        unit = None if protects == RECORD else kng.Unit(protects)
        columns = {f"candidate {place}": (0.0, 1.0) for place in range(number)}
        # A record of which a candidate says nothing, for missing cells, counts as the worst.
        bounds = kng.Bounds(columns, intercept=False, missing=1.0, unit=unit)
        return PrivateChoice(bounds, self.epsilon, adjacency.value)

    def _check(self) -> None:
        if not isinstance(_last(self.estimator), AbstractPrivateEstimator):
            raise ValueError(
                "estimator must be a private estimator of kngjax.sklearn, or a PublicPipeline that ends with one, not "
                f"a {type(self.estimator).__name__}"
            )
        self._refuse_unpaid()
        _ = whole_epsilon(self.epsilon)
        if not (isinstance(self.holdout, float) and 0.0 < self.holdout < 1.0):
            raise ValueError(f"holdout must be a share in (0, 1), like 0.25, not {self.holdout!r}")

    @property
    def _chosen(self) -> Any:
        check_is_fitted(self)
        return self.best_estimator_

    @available_if(_has("predict"))
    def predict(self, X: Any) -> np.ndarray:
        """Predicts as the chosen estimator does."""
        return self._chosen.predict(X)

    @available_if(_has("predict_proba"))
    def predict_proba(self, X: Any) -> np.ndarray:
        """Predicts the probabilities of the classes as the chosen estimator does."""
        return self._chosen.predict_proba(X)

    @available_if(_has("decision_function"))
    def decision_function(self, X: Any) -> np.ndarray:
        """Predicts the log odds of the second class as the chosen estimator does."""
        return self._chosen.decision_function(X)

    def __sklearn_tags__(self) -> Any:
        tags, own = super().__sklearn_tags__(), get_tags(_last(self.estimator))
        tags.estimator_type, tags.target_tags = own.estimator_type, own.target_tags
        tags.regressor_tags, tags.classifier_tags = own.regressor_tags, own.classifier_tags
        tags.non_deterministic, tags.input_tags.allow_nan = True, own.input_tags.allow_nan
        return tags


@dataclasses.dataclass(frozen=True, repr=False)
class _Held:
    """Holds the records on which candidates are compared. Private.

    **Arguments:** `positions`: of these records. `codes`: whose row each one of all is, None where each is its own.
    """

    X: Any
    y: Any
    positions: np.ndarray
    analysis: Analysis
    codes: np.ndarray | None = None

    def losses(self, candidates: Sequence[Any]) -> np.ndarray:
        """Computes each candidate's loss in [0, 1] at each held-out record, or person, (n, K).

        NaN at a record in which a cell is missing.
        """
        X, y = (_safe_indexing(values, self.positions) for values in (self.X, self.y))
        # A response that is missing without a policy is NaN here, and not a failure.
        response = self.analysis.response
        assert isinstance(response, Response)
        if response.missing is None:
            response = dataclasses.replace(response, missing="drop")
        base, found = _last(candidates[0]), []
        for candidate in candidates:
            made = candidate._transformed(X) if isinstance(candidate, PublicPipeline) else X
            table, response_column = _last(candidate)._table_with_response(made, X, y)
            found.append(base._losses(_last(candidate), table, response.of(table[response_column])))
        made = np.column_stack(found)
        return made if self.codes is None else means_of_persons(made, self.codes[self.positions])


def _codes_of(person: Any, rows: int) -> np.ndarray:
    """Numbers the persons as `codes_of`; all rows are nobody's where identifiers cannot be read. Private.

    Whether they can be read may depend on one person's cell, so the fits fail once they are paid, in one constant text.
    """
    codes, refusal = run_hiding_errors(functools.partial(codes_of, person))
    return codes if refusal is None else np.full(rows, -1)


def _last(estimator: Any) -> Any:
    return estimator.steps[-1][1] if isinstance(estimator, PublicPipeline) else estimator


def _require_comparable(candidates: Sequence[Any]) -> kng.Adjacency:
    """The adjacency of all; raises ValueError for candidates that do not estimate the same."""
    ends = [_last(candidate) for candidate in candidates]
    what = [
        [type(end), kng.Adjacency.parse(end.adjacency), end._response("y")]
        + [getattr(end, name, None) for name in ("quantile", "unit", "most_rows")]
        for end in ends
    ]
    if any(one != what[0] for one in what):
        raise ValueError(
            "the candidates must estimate the same, by losses that can be compared: leave adjacency, bounds_y, "
            "classes, missing_y, unit, most_rows and quantile out of param_grid"
        )
    ends[0]._require_comparable()
    return what[0][1]
