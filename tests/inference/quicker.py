"""Quicker releases and previews: arithmetic is checked once a session, and previews have fewer public points."""

import functools
import importlib

import pytest

# What a preview computes by points of Θ and by draws of noise, and how many of them are enough for most tests.
FEWER = {
    ("far_draws", "_POINTS"): 500,
    ("far_draws", "_ROWS"): 50,
    ("perturbed_minima", "_DRAWS"): 100,
    ("perturbed_minima", "_ROWS"): 40,
    ("designs", "NUM_ROWS"): 1024,
    ("score_laws", "_HALF"): 80,
}


@pytest.fixture(scope="module", autouse=True)
def coarse_previews():
    """Previews of this module's tests have fewer points; all of the numbers are given as they were."""
    places = {
        (importlib.import_module(f"kngjax.inference.{module}"), name): few for (module, name), few in FEWER.items()
    }
    usual = {(module, name): getattr(module, name) for module, name in places}
    with pytest.MonkeyPatch.context() as patch:
        for (module, name), number in places.items():
            patch.setattr(module, name, number)
        yield usual


@pytest.fixture(scope="module", autouse=True)
def arithmetic_checked_once():
    """Releases check the arithmetic of the process several times each; these tests change nothing of it."""
    arithmetic = importlib.import_module("kngjax.core.arithmetic")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arithmetic, "_found", functools.partial(_once, arithmetic._found))
        yield


@functools.cache
def _once(check):
    return check()


@pytest.fixture
def fine_previews(coarse_previews, monkeypatch):
    """Previews have all of their points in a test that asks for this."""
    for (module, name), number in coarse_previews.items():
        monkeypatch.setattr(module, name, number)
