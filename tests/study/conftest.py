"""Releases have noise from fixed bits here, and previews few points."""

import random

import pytest

from tests.inference.quicker import arithmetic_checked_once, coarse_previews, fine_previews  # noqa: F401


@pytest.fixture(autouse=True)
def fixed_bits(monkeypatch):
    monkeypatch.setattr("secrets.randbits", random.Random(0).getrandbits)
