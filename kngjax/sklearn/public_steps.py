"""Lists the steps of scikit-learn that map each record by itself, by public settings alone, and refuses all others."""

from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
)

from kngjax.data import cells
from kngjax.sklearn.public_terms import PublicTerms

_SCALES = "learns where the records lie; private estimators map columns to [-1, 1] by their public bounds themselves"
_FILLS = "learns what missing cells become from other records; give the estimator missing=..., a public value"
_TURNS = "learns directions from all records, and so every column that it makes depends on each of them"
_SELECTS = "learns from all records which columns to keep"
_LEARN = {
    **dict.fromkeys(("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler"), _SCALES),
    **dict.fromkeys(("QuantileTransformer", "PowerTransformer"), _SCALES),
    **dict.fromkeys(("SimpleImputer", "KNNImputer", "IterativeImputer", "MissingIndicator"), _FILLS),
    **dict.fromkeys(("PCA", "TruncatedSVD", "FastICA", "NMF", "KernelPCA", "PLSRegression"), _TURNS),
    **dict.fromkeys(("SelectKBest", "SelectPercentile", "SelectFromModel", "VarianceThreshold", "RFE"), _SELECTS),
    "KBinsDiscretizer": "learns its bins from the records; kngjax.terms.Spline and Indicator have public ones",
    "SplineTransformer": "learns its knots from the records; kngjax.terms.Spline has public ones, in a PublicTerms",
    "TargetEncoder": "learns means of the response, of all records",
}
_ALLOWED = (
    "PublicTerms; OneHotEncoder and OrdinalEncoder with categories; PolynomialFeatures, Binarizer; "
    "FunctionTransformer of one of NumPy's functions of single numbers; and ColumnTransformer, FeatureUnion and "
    "Pipeline of such"
)


def require_public(step: Any, name: str) -> None:
    """Raises ValueError unless a step is known to map each record by itself, by public settings; with the reason."""
    if step is None or (isinstance(step, str) and step in ("passthrough", "drop")):
        return
    # The class itself, since one that inherits from it may do anything.
    kind = type(step)
    if kind in (PublicTerms, PolynomialFeatures, Binarizer):
        return
    parts: list[tuple[str, Any]]
    if isinstance(step, Pipeline) and kind is Pipeline:
        require_no_memory(step)
        parts = step.steps
    elif isinstance(step, FeatureUnion) and kind is FeatureUnion:
        parts = step.transformer_list
    elif isinstance(step, ColumnTransformer) and kind is ColumnTransformer:
        parts = [*(part[:2] for part in step.transformers), ("remainder", step.remainder)]
    else:
        if (reason := _reason(step)) is not None:
            raise ValueError(f"step {name!r}: {kind.__name__} {reason}. Steps that are known to be public: {_ALLOWED}")
        return
    for inner, part in parts:
        require_public(part, f"{name}: {inner}")


def require_no_memory(pipeline: Any) -> None:
    """Raises ValueError for a pipeline that keeps what its steps make of records in files."""
    if pipeline.memory is not None:
        raise ValueError("memory keeps what steps make of private records in files: leave it out")


def in_this_process(step: Any, name: str) -> Any:
    """Sets `n_jobs` of a step and of all within it to 1; raises ValueError where one asks for more.

    Other processes are handed records in files of shared memory, which stay there if they are killed. None would take
    the number that somebody set for all of joblib.
    """
    asked = {key: value for key, value in step.get_params().items() if f"__{key}".endswith("__n_jobs")}
    for key, value in asked.items():
        if value not in (None, 1):
            raise ValueError(
                f"step {name!r}: {key}={value!r} hands private records to other processes, through files of shared "
                f"memory that may stay behind: leave {key} out"
            )
    return step.set_params(**dict.fromkeys(asked, 1))


def _reason(step: Any) -> str | None:
    """Why a step is refused; None where it is public."""
    kind = type(step)
    if kind in (OneHotEncoder, OrdinalEncoder):
        if isinstance(step.categories, str):
            return (
                "learns its categories from the records, which tells who is in them: give public ones, "
                "categories=[['no', 'yes']], or levels to the estimator"
            )
        wanted = "ignore" if kind is OneHotEncoder else "use_encoded_value"
        if step.handle_unknown != wanted or step.min_frequency is not None or step.max_categories is not None:
            return f"must have handle_unknown={wanted!r} and neither min_frequency nor max_categories"
        words = [word for one in step.categories for word in np.asarray(one).ravel().tolist() if isinstance(word, str)]
        if any(cells.normal(word) != word for word in words):
            return "has a category that no cell is: write text in Unicode's form NFC, without white space at its ends"
        return None
    if kind is FunctionTransformer:
        return _reason_of_function(step)
    return _LEARN.get(kind.__name__, "is not known to map each record by itself")


def _reason_of_function(step: Any) -> str | None:
    function = step.func
    is_of_numbers = (
        isinstance(function, np.ufunc)
        and (function.nin, function.nout) == (1, 1)
        and not function.signature
        # Others may be made of any function, which may remember the records that it saw.
        and getattr(np, function.__name__, None) is function
    )
    if (function is not None and not is_of_numbers) or step.kw_args:
        return (
            "is given all records at once, and only one of NumPy's functions of single numbers, like numpy.log1p, is "
            "known to treat each by itself: apply other functions before the call, record by record"
        )
    return None
