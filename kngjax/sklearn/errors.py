"""Errors of private estimators: a refusal of unpaid fits, and what is left of an error outside of a fit."""

from kngjax.core.errors import FAILED_OF_FIT, ReleaseFailed


def bare(error: Exception) -> Exception:
    """The error without its traceback and contexts, whose frames hold the records as local variables.

    `ReleaseFailed` says, whatever happened, what users of estimators can do.
    """
    if isinstance(error, ReleaseFailed):
        return ReleaseFailed(FAILED_OF_FIT)
    error.__context__ = error.__cause__ = None
    return error.with_traceback(None)


class UncountedFits(ValueError):
    """A clone was asked to fit without a ledger: searches and cross-validations fit clones, and nobody would count."""

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
