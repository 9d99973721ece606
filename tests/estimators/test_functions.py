"""Analyses in one call: what the methods of a study do, with the arguments of both."""

import inspect
import pydoc

import pytest

import kngjax as kng
from kngjax.estimators.regression_results import RegressionResults
from tests.estimators import function_stubs
from tests.estimators.test_study import BOUNDS, LEVELS, PEOPLE


def test_functions_are_studies():
    facts = {"bounds": BOUNDS, "levels": LEVELS, "adjacency": "replace"}
    assert isinstance(
        kng.quantile_regression("wage ~ education", PEOPLE, tau=0.5, epsilon=1, **facts), RegressionResults
    )
    process = kng.quantile_process("wage ~ education", PEOPLE, tau=[0.4, 0.6], epsilon=9, **facts)
    assert list(process.params.columns) == ["tau = 0.4", "tau = 0.6"]
    assert kng.linear_regression("wage ~ education", PEOPLE, epsilon=1, **facts).labels == ("robust",)
    assert kng.logistic_regression("parttime ~ education", PEOPLE, epsilon=1, **facts).labels == ("log odds",)
    assert kng.poisson_regression("sick ~ education", frame=PEOPLE, epsilon=1, **facts).labels == ("log rate",)
    assert abs(kng.mean("education", PEOPLE, epsilon=10, **facts).value - PEOPLE["education"].mean()) < 0.05
    assert kng.quantile("wage", PEOPLE, tau=[0.2, 0.5], epsilon=9, **facts).params.shape == (2,)
    assert abs(kng.median("education", PEOPLE, epsilon=10, **facts).value - 12) <= 1
    north = kng.count("region == 'north'", PEOPLE, epsilon=50, **facts)
    assert north.value == (PEOPLE["region"] == "north").sum()
    everybody = kng.count(None, PEOPLE, epsilon=50, bounds=BOUNDS, adjacency="add_remove")
    assert everybody.value == len(PEOPLE)
    assert abs(kng.sum("education", PEOPLE, epsilon=10, **facts).value / PEOPLE["education"].sum() - 1) < 0.01
    assert abs(kng.variance("education", PEOPLE, epsilon=10, **facts).value - PEOPLE["education"].var()) < 1
    assert kng.histogram("region", frame=PEOPLE, epsilon=50, **facts).params["north"] == north.value
    table = kng.crosstab(["region", "education"], PEOPLE, epsilon=50, edges={"education": 2}, **facts)
    assert table.to_table().loc["north"].sum() == north.value
    assert "sum" not in kng.__all__


def test_functions_tell_their_arguments():
    arguments = list(inspect.signature(kng.quantile_regression).parameters)
    own = list(inspect.signature(kng.Study.quantile_regression).parameters)[2:]
    assert arguments == ["formula", "frame", *own, *list(inspect.signature(kng.Study).parameters)[1:]]
    text = pydoc.render_doc(kng.quantile_regression)
    assert all(words in text for words in ("tau: ", "adjacency: ", "which share ε equally", "those of `Study`"))
    assert "`tau`: the `levels` of that method" in pydoc.render_doc(kng.quantile_process)
    with pytest.raises(TypeError, match="'tau'"):
        kng.median("wage", PEOPLE, epsilon=1, tau=0.5)
    with pytest.raises(TypeError, match="'epsilon'"):
        kng.median("wage", PEOPLE)
    # After a change of a method: python -m tests.estimators.function_stubs
    assert function_stubs.PATH.read_text(encoding="utf-8") == function_stubs.text()
