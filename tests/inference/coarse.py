"""Previews by fewer public points: a hundredth of the time, and noise that errs by some percent."""

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


@pytest.fixture
def fine_previews(coarse_previews, monkeypatch):
    """Previews have all of their points in a test that asks for this."""
    for (module, name), number in coarse_previews.items():
        monkeypatch.setattr(module, name, number)
