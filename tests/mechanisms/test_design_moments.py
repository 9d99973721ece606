"""Moments of a design: what is released, how far neighbours are apart, and what a reader makes of it."""

import itertools

import numpy as np
import pandas as pd
import pytest

import kngjax as kng

LOWER, UPPER = np.array([-1.0, 0.5]), np.array([0.5, 2.0])
BOUNDS = kng.Bounds(x=(LOWER, UPPER), y=(-1.0, 1.0))


def table(number, seed=0):
    return np.random.default_rng(seed).uniform(LOWER, UPPER, (number, 2))


@pytest.mark.default_cases("replace-True", "add_remove-False")
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_with_next_to_no_noise_it_is_the_matrix_of_products_and_the_number(adjacency, intercept):
    bounds, x = kng.Bounds(x=(LOWER, UPPER), intercept=intercept), table(200)
    mechanism = kng.DesignMoments(bounds, 90.0, adjacency)
    release = kng.release(mechanism, x)
    design = np.hstack([np.ones((200, int(intercept))), x])
    count, gram = mechanism.gram(release.value[None], release.certificate.num_records)
    np.testing.assert_allclose(count[0], 200.0, atol=2.0)
    np.testing.assert_allclose(gram[0], design.T @ design, atol=4.0)
    expected = {(True, "replace"): 5, (True, "add_remove"): 6, (False, "replace"): 3, (False, "add_remove"): 4}
    assert release.value.shape == (expected[intercept, adjacency],)
    assert release.certificate.assurance == "proved"
    assert release.certificate.cost == kng.Guarantee.pure(90.0, adjacency)
    assert kng.Release.from_json(release.to_json()) == release


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_no_record_moves_it_by_more_than_the_noise_hides_and_one_by_as_much(adjacency):
    mechanism = kng.DesignMoments(BOUNDS, 0.4, adjacency)
    rows = np.array([*itertools.product((-9.0, -1.0, 0.0, 0.5), (0.5, 2.0, 7.0))])
    sums = [np.array(list(map(float, mechanism.intake.exact_sums(np.vstack([rows[:1], row])).moment))) for row in rows]
    fewer = np.array(list(map(float, mechanism.intake.exact_sums(rows[:1]).moment)))
    pairs = [(one, fewer) for one in sums] if adjacency == "add_remove" else itertools.combinations(sums, 2)
    # By hand, of (n,) x, z, x², xz, z²: x in [-1, .5], z in [.5, 2].
    widths = [1.0, 1.0, 2.0, 1.0, 2.0, 4.0] if adjacency == "add_remove" else [1.5, 1.5, 1.0, 3.0, 3.75]
    changes = np.array([np.abs(one - other) for one, other in pairs]) / widths
    assert changes.max() == pytest.approx(1.0, abs=1e-12)
    noise = mechanism.summing.noise_in_fractions(mechanism.dimension, 1)
    scale = np.array([float(weight) for weight in noise.weights]) * float(noise.scale_squared) ** 0.5
    np.testing.assert_allclose(scale, np.array(widths) / 0.4)


@pytest.mark.slow
def test_a_quarter_of_the_noise_is_found_out_by_a_black_box():
    """Of one column beside an intercept, x and x² move together: (1, 1) is exchanged for (0, 0)."""
    bounds = kng.Bounds(x=([0.0], [1.0]))
    mechanism, bold = (kng.DesignMoments(bounds, epsilon, "replace") for epsilon in (1.0, 4.0))
    pair = (np.ones((2, 1)), None), (np.array([[1.0], [0.0]]), None)
    settings = {"key": kng.research_key(0), "num_draws": 20_000}
    found = kng.audit.black_box(mechanism, *pair, **settings)
    assert found.passed
    assert found.epsilon_lower_bound > 0.8
    assert not kng.audit.black_box(bold, *pair, claimed=mechanism.guarantee, **settings).passed


def test_it_has_not_the_names_of_columns():
    bounds = kng.Bounds(x={"age": (0.0, 1.0), "years": (0.0, 2.0)})
    frame = pd.DataFrame({"years": [0.5, 1.0], "age": [0.2, 0.3], "name": ["a", "b"]})
    release = kng.release(kng.DesignMoments(bounds, 1.0, "replace"), frame)
    assert release.names is None
    assert "DesignMoments" in repr(release)
    assert "value[4]" in release._repr_html_()


def test_no_record_is_released_like_any():
    assert kng.release(kng.DesignMoments(BOUNDS, 1.0, "add_remove"), table(0)).value.shape == (6,)


def test_what_no_record_changes_is_refused():
    with pytest.raises(ValueError, match="columns open"):
        kng.DesignMoments(kng.Bounds(x=(-1.0, 1.0)), 1.0, "replace")
    with pytest.raises(ValueError, match="without width"):
        kng.DesignMoments(kng.Bounds(x=(np.ones(1), np.ones(1)), intercept=False), 1.0, "replace")
    with pytest.raises(ValueError, match="weight"):
        kng.DesignMoments(kng.Bounds(x=(LOWER, UPPER), weight=2.0), 1.0, "replace")
