"""What a walk keeps of θ: after moves of single coordinates it is what θ itself gives."""

import numpy as np
import pytest

import kngjax as kng
from kngjax.chains.score_cache import score_cache
from kngjax.chains.target import Target
from kngjax.data.records import Records
from tests.losses import test_distance_losses, test_losses, test_row_losses

LOSSES = {**test_losses.LOSSES, **test_distance_losses.LOSSES}
CASES = [(name, summarised) for name, loss in LOSSES.items() for summarised in {False, loss.is_quadratic}]


@pytest.mark.default_cases(6)
@pytest.mark.parametrize(("name", "summarised"), CASES)
def test_an_updated_score_is_a_recomputation(name, summarised):
    loss = LOSSES[name]
    records, theta = test_losses.problem(name) if loss.has_response else test_distance_losses.problem(3)
    data = loss.summarise(records) if summarised else records
    targets = [Target(loss, data, kng.Box(-9.0, 9.0), norm, np.array(1.0)) for norm in (None, kng.L2())]
    caches = [score_cache(target) for target in targets]
    kept = [cache.make(theta) for cache in caches]
    for coordinate, step in ((0, 0.3), (2, -1.1), (1, 1e-3)):
        theta = theta + step * np.eye(3)[coordinate]
        kept = [cache.update(one, coordinate, step) for cache, one in zip(caches, kept, strict=True)]
        np.testing.assert_allclose(kept, [cache.make(theta) for cache in caches], rtol=1e-11, atol=1e-12)
    value, length = (cache.score(one, theta) for cache, one in zip(caches, kept, strict=True))
    np.testing.assert_allclose(value, loss.value(theta, records), rtol=1e-10)
    np.testing.assert_allclose(length, np.linalg.norm(loss.gradient(theta, records)), rtol=1e-10)


def test_the_score_of_a_loss_that_sees_rows_is_kept_by_its_predictors():
    (x, y, _), theta, loss = test_row_losses.problem(), np.array([0.2, -0.7]), test_row_losses.Offset()
    records = Records(x, y)
    for norm in (None, kng.L2()):
        target = Target(loss, records, kng.Box(-9.0, 9.0), norm, np.array(1.0))
        cache = score_cache(target)
        kept = cache.update(cache.make(theta), 1, -1.1)
        moved = theta - 1.1 * np.eye(2)[1]
        np.testing.assert_allclose(kept, x @ moved, rtol=1e-11)
        np.testing.assert_allclose(cache.score(kept, moved), target.score(moved), rtol=1e-10)
