"""Bounds of log ratios from counts of draws are those of Clopper and Pearson, one on either side."""

import numpy as np
import pytest
from scipy import stats

from kngjax.audit.black_box import log_ratio_bound


@pytest.mark.parametrize("delta", [0.0, 0.01])
@pytest.mark.parametrize(("named", "other"), [(400, 120), (1000, 1), (37, 0)])
def test_each_share_is_bounded_from_its_own_side(named, other, delta):
    number, risk = 1000, 1e-3
    low = stats.binomtest(named, number).proportion_ci(1.0 - 2.0 * risk, "exact").low
    high = stats.binomtest(other, number).proportion_ci(1.0 - 2.0 * risk, "exact").high
    (found,) = log_ratio_bound(np.array([named]), number, np.array([other]), number, risk, delta)
    assert found == pytest.approx(np.log(low - delta) - np.log(high), rel=1e-9)


def test_a_share_that_may_be_delta_tells_nothing():
    assert log_ratio_bound(np.array([0, 12]), 1000, np.array([5, 5]), 1000, 1e-3, 0.01).tolist() == [-np.inf, -np.inf]
