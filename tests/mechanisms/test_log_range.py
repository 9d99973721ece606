"""How far a log-density varies over Θ for any records, against the worst of them."""

import jax
import numpy as np
import pytest

import kngjax as kng
from kngjax.core.arrays import float64


@pytest.mark.parametrize("mechanism", [kng.KNG, kng.ExponentialMechanism])
def test_the_log_range_bounds_the_density_and_is_no_more_than_the_worst_data_need(mechanism):
    bounds = kng.Bounds(x=(-1.0, 1.0), y=(0.0, 1.0), columns=1)
    built = mechanism(kng.LogisticLoss(), bounds, kng.Box(-2.0, 2.0), 1.0, "replace")
    grid = np.stack(np.meshgrid(*[np.linspace(-2, 2, 41)] * 2), -1).reshape(-1, 2)
    known = built.exponent.log_range(2, 6)
    widths = []
    # All records alike in a corner, or cancelling each other.
    corners = [(np.ones(6), np.ones(6)), (np.ones(6), np.repeat([0.0, 1.0], 3)), (np.tile([1.0, -1.0], 3), np.ones(6))]
    for x, y in corners:
        data = built.prepare(x[:, None], y)
        with float64():
            widths.append(np.ptp(jax.jit(jax.vmap(built.log_density, (0, None)))(grid, data)))
    assert max(widths) <= known
    assert max(widths) >= (0.8 if mechanism is kng.KNG else 0.9) * known
