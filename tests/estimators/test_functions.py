"""Functions that analyse a frame in one call: their names, their signatures, and what is written of these."""

import inspect
import pydoc

import pytest

import kngjax as kng
from kngjax.estimators import functions
from tests.estimators import function_stubs
from tests.estimators.people import PEOPLE


def test_sums_hide_no_builtin():
    assert "sum" not in kng.__all__
    assert {name for name in functions.NAMES if not hasattr(kng, name)} == set()


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
