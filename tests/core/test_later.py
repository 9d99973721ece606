"""Packages that are loaded when something of them is first used."""

import inspect

import pytest

from kngjax.core import later
from kngjax.core.later import Later


def test_an_attribute_is_that_of_the_package_and_looking_through_names_loads_nothing(monkeypatch):
    loaded = []
    monkeypatch.setattr(later.importlib, "import_module", lambda name: loaded.append(name) or inspect)
    stands_in = Later("a.package")
    assert not hasattr(stands_in, "__wrapped__")
    assert loaded == []
    assert stands_in.isfunction is inspect.isfunction
    assert loaded == ["a.package"]


def test_a_package_that_is_not_there_is_refused_where_it_is_used():
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        _ = Later("no_such_package").Series
