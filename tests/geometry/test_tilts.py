"""Tilted noise against sums over a fine grid: its mass, where it lies, and how often each side is drawn."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kngjax as kng
from kngjax.geometry.tilts import TiltedNormal, num_uniforms

RATE, TILT, COUNT = 1.25, np.array([0.5, -0.25]), 20_000
LAWS = {
    "L1": (kng.L1().tilted_law, lambda y: RATE * np.abs(y).sum(-1)),
    "L2": (kng.L2().tilted_law, lambda y: RATE * np.sqrt((y**2).sum(-1))),
    "LInf": (kng.LInf().tilted_law, lambda y: RATE * np.abs(y).max(-1)),
    "normal": (TiltedNormal, lambda y: 0.5 * RATE * (y**2).sum(-1)),
}


def facts(y):
    """One, both coordinates, their sizes, and whether the first lies beyond a public point on either side."""
    return np.stack([np.ones(len(y)), *y.T, *np.abs(y).T, y[:, 0] > 0.6, y[:, 0] < -0.9])


@pytest.mark.parametrize("name", LAWS)
def test_tilted_noise_has_its_mass_and_its_law(name):
    make, energy = LAWS[name]
    uniforms = jax.random.uniform(kng.research_key(2), (COUNT, num_uniforms(2)))

    @jax.jit
    def drawn(rate, tilt):
        law = make(rate, tilt)
        return *law.draw(uniforms), law.log_mass

    y, log_ratios, log_mass = map(np.asarray, drawn(jnp.asarray(RATE), jnp.asarray(TILT)))
    assert np.all(log_ratios <= 0.0)
    found = np.exp(log_mass + log_ratios) * facts(y)
    # Midpoints, so that no kink lies on the grid.
    line = np.arange(-40.0, 40.0, 0.1) + 0.05
    grid = np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1).reshape(-1, 2)
    expected = facts(grid) @ np.exp(-energy(grid) - grid @ TILT) * 0.01
    error = found.std(axis=1) / np.sqrt(COUNT)
    assert np.all(np.abs(found.mean(axis=1) - expected) <= 5.0 * error + 3e-3 * np.abs(expected))
