"""Fits that a ledger counts: clones share it, and refuse to fit without one; none of them has a score."""

import abc
from typing import Any, ClassVar, NoReturn

from sklearn.base import BaseEstimator

from kngjax.ledger.ledgers import Ledger

_NO_SCORE = (
    "a private estimator has no score: it would be computed from the records once more, without a guarantee. "
    "owner_score(X, y) is for the data owner alone, or for public data; kngjax.sklearn.PrivateSearch compares settings "
    "privately"
)


class UncountedFits(ValueError):
    """Raised for a clone that is asked to fit without a ledger: nothing would count the fits of a search."""

    def __init__(
        self,
        text: str = (
            "this is a clone, as cross-validations, searches and ensembles make them, and has no ledger: every fit is "
            "one more release of the same records, and nobody would count them. Give the estimator "
            "ledger=kngjax.Ledger(path), which all its clones share and each fit is debited from; or choose settings "
            "by kngjax.sklearn.PrivateSearch, or on public or made-up data"
        ),
    ):
        super().__init__(text)


class AbstractPaidFits(BaseEstimator, abc.ABC):
    """Fits by releases, which a ledger counts. `ledger`: it, or None. `_fitted`: an attribute of a fitted one."""

    ledger: Any
    _fitted: ClassVar[str] = "results_"

    def _refuse_unpaid(self, is_paid: bool = False) -> None:
        """Raises for what is no ledger, and for a clone without one. **Arguments:** `is_paid`: whether others pay."""
        if not isinstance(self.ledger, Ledger | None):
            raise TypeError(f"ledger must be a kngjax.Ledger(path) or None, not a {type(self.ledger).__name__}")
        if is_paid and self.ledger is not None:
            raise ValueError("a PrivateSearch pays for all its fits: give the ledger to it, and none to its estimator")
        if self.ledger is None and getattr(self, "_is_clone", False) and not is_paid:
            raise UncountedFits

    @property
    def score(self) -> NoReturn:
        """Raises AttributeError: there is no score, and scikit-learn finds none."""
        raise AttributeError(_NO_SCORE)

    def __sklearn_clone__(self) -> Any:
        made: Any = super().__sklearn_clone__()
        made._is_clone = True
        return made

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, self._fitted)
