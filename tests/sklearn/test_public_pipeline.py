"""Pipelines: steps that learn are refused, those that do not see no record before the fit is paid."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from joblib import parallel_config
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
)

import kngjax as kng
from kngjax.core.errors import FAILED_OF_FIT
from kngjax.sklearn import PrivateSearch, PublicPipeline, PublicTerms, UncountedFits
from kngjax.sklearn.public_pipeline import made_up_rows, with_public_types
from tests.sklearn.people import SECRET, X, Y, linear

FRAME = X.assign(region=np.where(np.arange(len(X)) % 3 == 0, "south", "north"))
ENCODER = OneHotEncoder(categories=[["north", "south"]], handle_unknown="ignore")


def pipeline(*steps, **settings):
    return PublicPipeline([*((f"step{place}", step) for place, step in enumerate(steps)), ("fit", linear(**settings))])


class Innocent(PolynomialFeatures):
    """Inherits from a step that is public, and may do anything."""


LEARN = {
    "StandardScaler": StandardScaler(),
    "SimpleImputer": SimpleImputer(),
    "KBinsDiscretizer": KBinsDiscretizer(),
    "PCA": PCA(),
    "Innocent": Innocent(),
    "OneHotEncoder": OneHotEncoder(),
    "OrdinalEncoder": OrdinalEncoder(),
    "OneHotEncoder that tells": OneHotEncoder(categories=[["north", "south"]]),
    "OneHotEncoder that counts": OneHotEncoder(
        categories=[["north", "south"]], handle_unknown="ignore", min_frequency=3
    ),
    "OneHotEncoder of blanks": OneHotEncoder(categories=[["north ", "south"]], handle_unknown="ignore"),
    "OneHotEncoder of another form": OneHotEncoder(categories=[["Sa\u0303o", "south"]], handle_unknown="ignore"),
    "FunctionTransformer": FunctionTransformer(lambda table: table - table.mean(axis=0)),
    "FunctionTransformer of two": FunctionTransformer(np.add),
    "FunctionTransformer of any function": FunctionTransformer(np.frompyfunc(lambda value: value, 1, 1)),
    "FunctionTransformer with settings": FunctionTransformer(np.log1p, kw_args={"where": [True]}),
}


@pytest.mark.parametrize("name", LEARN)
def test_steps_that_learn_are_refused_wherever_they_are(name, ledger, spent):
    step, words = LEARN[name], name.split(" ")[0]
    nested = (
        ColumnTransformer([("one", step, ["age"])]),
        ColumnTransformer([("one", "drop", ["age"])], remainder=step),
        FeatureUnion([("one", step)]),
        Pipeline([("one", "passthrough"), ("two", ColumnTransformer([("three", make_pipeline(step), ["age"])]))]),
    )
    for one in (step, *nested):
        with pytest.raises(ValueError, match=f"{words} .*Steps that are known to be public"):
            pipeline(one, ledger=ledger).fit(X, Y)
    assert spent() == 0


def test_a_pipeline_keeps_no_records_in_files_and_ends_privately(tmp_path):
    with pytest.raises(ValueError, match="memory keeps"):
        PublicPipeline([("fit", linear())], memory=str(tmp_path)).fit(X, Y)
    with pytest.raises(ValueError, match="memory keeps"):
        pipeline(Pipeline([("one", "passthrough")], memory=str(tmp_path))).fit(X, Y)
    with pytest.raises(ValueError, match="LinearRegression is none"):
        PublicPipeline([("fit", LinearRegression())]).fit(X, Y)
    with pytest.raises(TypeError, match="sample_weight"):
        pipeline().fit(X, Y, sample_weight=[1.0])


SQUARES = ("squares", PolynomialFeatures(2, include_bias=False), ["age"])
JOBS = {
    "n_jobs": ColumnTransformer([SQUARES], n_jobs=2),
    "no__n_jobs": ColumnTransformer([("no", FeatureUnion([SQUARES[:2]], n_jobs=-1), ["age"])]),
    "two__all__n_jobs": Pipeline(
        [("one", "passthrough"), ("two", FeatureUnion([("all", ColumnTransformer([SQUARES], n_jobs=3))]))]
    ),
}


@pytest.mark.parametrize("key", JOBS)
@pytest.mark.parametrize("in_search", [False, True])
def test_no_step_hands_records_to_other_processes(key, in_search, ledger, spent):
    whole = pipeline(JOBS[key], **({} if in_search else {"ledger": ledger}))
    one = PrivateSearch(whole, {"fit__epsilon": [1.0]}, epsilon=1.0, ledger=ledger) if in_search else whole
    with pytest.raises(ValueError, match=f"step 'step0': {key}=.* hands private records .* leave {key} out"):
        one.fit(X, Y)
    assert spent() == 0


def test_nobody_elses_setting_hands_records_to_other_processes():
    columns = ColumnTransformer([SQUARES, ("rest", "passthrough", ["skill"])])
    with parallel_config(backend="loky", n_jobs=2):
        fit = pipeline(columns, bounds=[(20, 70), (400, 4900), (0, 10)]).fit(X, Y)
    assert fit.steps[0][1].n_jobs == 1
    assert columns.n_jobs is None


def test_public_steps_make_what_is_regressed_on():
    columns = ColumnTransformer([("region", ENCODER, ["region"]), ("skill", "passthrough", ["skill"])])
    bounds = [(0, 1), (0, 1), (0, 10)]
    y = Y + 2.0 * (FRAME["region"] == "south")
    fit = pipeline(columns, bounds=bounds, epsilon=100.0).fit(FRAME, y)
    south, north = (fit.predict(FRAME.assign(region=one, skill=5.0)) for one in ("south", "north"))
    np.testing.assert_allclose(south - north, 2.0, atol=0.1)
    found = pipeline(PolynomialFeatures(2, include_bias=False), bounds=(0, 4900)).fit(X.to_numpy(), Y)
    assert found[-1].n_features_in_ == 5
    union = FeatureUnion([("log", FunctionTransformer(np.log1p)), ("old", Binarizer(threshold=45.0))])
    assert pipeline(union, bounds=(0, 5)).fit(X.to_numpy(), Y)[-1].n_features_in_ == 4
    ordinal = OrdinalEncoder(categories=[["north", "south"]], handle_unknown="use_encoded_value", unknown_value=np.nan)
    assert pipeline("passthrough", ordinal, bounds=(0, 1)).fit(FRAME[["region"]], Y)[-1].n_features_in_ == 1


def test_nobody_is_warned_of_categories_that_only_made_up_rows_have():
    """Warnings are errors here."""
    encoder = OneHotEncoder(categories=[["north", "south"]], handle_unknown="ignore", drop="first")
    columns = ColumnTransformer([("region", encoder, ["region"]), ("skill", "passthrough", ["skill"])])
    assert pipeline(columns, bounds=[(0, 1), (0, 10)]).fit(FRAME, Y)[-1].n_features_in_ == 2


def test_a_design_gives_names_and_bounds_to_the_estimator():
    design = PublicTerms(terms=(kng.terms.Polynomial("age", 20, 70, degree=2),)).set_output(transform="pandas")
    fit = pipeline(design, bounds=design.get_bounds_out(), epsilon=50.0).fit(X, Y)
    assert fit[-1].coef_names_.tolist() == ["age P1", "age P2"]
    assert abs(fit[-1].coef_[0] + 0.5) < 0.1
    assert not hasattr(fit, "score")


def test_no_step_is_fitted_to_a_record_and_none_passes_before_the_debit(ledger, spent, monkeypatch):
    seen = []
    for method in ("fit", "transform"):
        original = getattr(PolynomialFeatures, method)

        def watched(self, table, *rest, method=method, original=original):
            seen.append((method, len(table), spent()))
            return original(self, table, *rest)

        monkeypatch.setattr(PolynomialFeatures, method, watched)
    one = pipeline(PolynomialFeatures(1, include_bias=False), ledger=ledger, bounds=(0, 100))
    one.fit(X.to_numpy(), Y)
    assert seen == [("fit", 2, 0), ("transform", 2, 0), ("transform", len(X), 1.0)]
    # This step refuses NaN, which is a fact about a value.
    with pytest.raises(kng.ReleaseFailed) as failed:
        one.fit(np.where(X.eq(X.iloc[3, 0]), np.nan, X), Y)
    assert str(failed.value) == FAILED_OF_FIT
    assert spent() == 2.0
    with pytest.raises(ValueError, match="neither bounds nor levels"):
        pipeline(PolynomialFeatures(1), ledger=ledger, bounds=None).fit(X.to_numpy(), Y)
    assert spent() == 2.0


def test_clones_of_pipelines_are_paid_or_refused(ledger, spent):
    with pytest.raises(UncountedFits):
        clone(pipeline()).fit(X, Y)
    clone(pipeline(ledger=ledger)).fit(X, Y)
    assert spent() == 1.0


def test_made_up_rows_have_the_types_of_the_table_and_none_of_its_values():
    frame = FRAME.assign(region=pd.Categorical([f"{SECRET}"] * len(FRAME)), skill=SECRET)
    for table in (frame, pl.DataFrame(FRAME.to_dict("list"))):
        made = made_up_rows(table)
        assert type(made) is type(table)
        assert list(made.columns) == list(table.columns)
        assert made.shape == (2, 3)
        assert str(SECRET) not in str(made)
    assert made_up_rows(np.full((9, 2), SECRET, dtype=np.float32)).tolist() == [[0.0, 0.0]] * 2


WHOLE = [2, 4] * 20
PAIRS = {
    "polars, a null": [pl.DataFrame({"a": pl.Series(part, dtype=pl.Int64)}) for part in (WHOLE, [2, None, *WHOLE[2:]])],
    "pandas, a null": [pd.DataFrame({"a": part}, dtype="Int64") for part in (WHOLE, [2, None, *WHOLE[2:]])],
    "pyarrow, a null": [pa.table({"a": pa.array(part, pa.int64())}) for part in (WHOLE, [2, None, *WHOLE[2:]])],
    "floats": [pd.DataFrame({"a": part}, dtype=float) for part in (WHOLE, [2, 1e300, *WHOLE[2:]])],
    "an array": [np.array(part)[:, None] for part in (WHOLE, [2, 2**62, *WHOLE[2:]])],
}


@pytest.mark.parametrize("function", [np.reciprocal, np.square, np.log1p], ids=lambda one: one.__name__)
@pytest.mark.parametrize("name", PAIRS)
def test_one_cell_changes_what_steps_make_of_no_other_record(name, function):
    """NumPy makes floats of integers where one cell is missing, of which functions are others: 1/2 is 0 or .5."""
    step, kept = FunctionTransformer(function), np.arange(len(WHOLE)) != 1
    with np.errstate(over="ignore"):
        made = [np.asarray(step.transform(with_public_types(one))).ravel() for one in PAIRS[name]]
    assert made[0].dtype == made[1].dtype == np.float64
    np.testing.assert_array_equal(made[0][kept], made[1][kept])
    np.testing.assert_array_equal(made[0], function(np.array(WHOLE, float)))


def test_lists_show_no_types_and_are_refused():
    with pytest.raises(ValueError, match="X is a list"):
        PublicPipeline([("log", FunctionTransformer(np.log1p)), ("last", linear())]).fit([[1.0, 30.0]] * 9, [1.0] * 9)
    with pytest.raises(ValueError, match="X is a list"):
        with_public_types([[1.0, 30.0]] * 9)


def test_made_up_rows_warn_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pipeline(FunctionTransformer(np.log), bounds=(0, 9))._admit(FRAME[["age"]], Y)


def test_steps_of_a_pipeline_are_given_floats():
    made = pipeline(FunctionTransformer(np.reciprocal))._transformed(PAIRS["polars, a null"][0])
    np.testing.assert_array_equal(np.asarray(made).ravel(), 1.0 / np.array(WHOLE))
