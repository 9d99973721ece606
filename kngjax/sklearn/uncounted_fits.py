"""The refusal of unpaid fits of private estimators."""


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
