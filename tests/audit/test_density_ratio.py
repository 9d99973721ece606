"""The density-ratio audit: right mechanisms never exceed ε, wrong constants are found, and by how much.

On a grid the proof of ε-DP holds as it does on Θ, so "at most ε" needs no statistical margin.
"""

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

import kngjax as kng
from kngjax.audit import density_ratio
from kngjax.audit.laws import worst_log_ratios
from tests.audit.fractions import half_fraction

# Large enough that with 20 records both laws concentrate, where the ratio comes near ε.
EPSILON = 5.0
FAST = {"num_records": (20,), "num_steps": 40}
TAUS = (0.05, 0.5, 0.75, 0.9, 0.95)
FEATURES = ((-1.0, 1.0), (0.0, 1.0))
ADJACENCIES = ("replace", "add_remove")
MECHANISMS = (kng.KNG, kng.ExponentialMechanism)


def quantile(kind, tau, features=(-1.0, 1.0), adjacency="replace", intercept=False, epsilon=EPSILON, **parts):
    y = (-1.0, 1.0) if kind is kng.ExponentialMechanism else None
    bounds = kng.Bounds(x=features, y=y, intercept=intercept)
    return kind(kng.QuantileLoss(tau=tau), bounds, kng.Box(-1.0, 1.0), epsilon, adjacency, **parts)


def one_of_each(kind, name, adjacency):
    """A mechanism and its dimension for every other loss; features in [-1, 1]."""
    y = (-1.0, 1.0) if kind is kng.ExponentialMechanism else None
    squared, smooth = kng.SquaredLoss(), kng.PseudoHuberLoss(k=0.3)
    one_column, with_intercept = kng.Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0), intercept=False), kng.Bounds(x=(-1.0, 1.0))
    parts, dimension = {
        "squared-box": ((squared, one_column, kng.Box(-1.0, 1.0)), 1),
        "squared-l1": ((squared, kng.Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0)), kng.L1Ball(1.0)), 2),
        "pseudo-huber": ((smooth, kng.Bounds(x=(-1.0, 1.0), y=y, intercept=False), kng.L2Ball(1.0)), 1),
        "logistic": ((kng.LogisticLoss(), with_intercept, kng.Box(-2.0, 2.0)), 2),
        "poisson": ((kng.PoissonLoss(), kng.Bounds(x=(-1.0, 1.0), y=(0.0, 3.0)), kng.L1Ball(1.0)), 2),
    }[name]
    return kind(*parts, EPSILON, adjacency), dimension


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tau", "features", "kind", "adjacency"), list(half_fraction((0.05, 0.9), FEATURES, MECHANISMS, ADJACENCIES))
)
def test_quantile_regression_through_the_origin_keeps_epsilon(kind, tau, features, adjacency):
    found = density_ratio(quantile(kind, tau, features, adjacency), dimension=1, **FAST)
    assert found.passed, found.explain()


@pytest.mark.slow
@pytest.mark.parametrize(("features", "adjacency"), [(FEATURES[0], "replace"), (FEATURES[1], "add_remove")])
@pytest.mark.parametrize("kind", MECHANISMS)
def test_quantile_regression_with_intercept_keeps_epsilon(kind, features, adjacency):
    mechanism = quantile(kind, 0.9, features, adjacency, intercept=True)
    found = density_ratio(mechanism, dimension=2, resolution=15, **FAST)
    assert found.passed, found.explain()


def quantile_regressions():
    """For every τ each three of the four choices in all combinations; all four in all, for two τ together."""
    for number, tau in enumerate(TAUS):
        for choices in half_fraction(FEATURES, MECHANISMS, ADJACENCIES, (1, 2), odd=number % 2):
            yield tau, *choices


@pytest.mark.slow
@pytest.mark.parametrize(("tau", "features", "kind", "adjacency", "dimension"), list(quantile_regressions()))
def test_every_quantile_regression_keeps_epsilon(kind, tau, features, adjacency, dimension):
    mechanism = quantile(kind, tau, features, adjacency, intercept=dimension == 2)
    found = density_ratio(mechanism, dimension=dimension, resolution={1: 201, 2: 21}[dimension], num_steps=60)
    assert found.passed, found.explain()


LOSSES = ("squared-box", "squared-l1", "pseudo-huber", "logistic", "poisson")


@pytest.mark.slow
@pytest.mark.parametrize("kind", MECHANISMS)
@pytest.mark.parametrize("name", LOSSES)
def test_other_losses_keep_epsilon(kind, name):
    mechanism, dimension = one_of_each(kind, name, "replace")
    found = density_ratio(mechanism, dimension=dimension, resolution={1: 201, 2: 15}[dimension], **FAST)
    assert found.passed, found.explain()


def longer_searches():
    """For every loss each mechanism at one adjacency, at the other one for the next loss."""
    for number, name in enumerate(LOSSES):
        for choices in half_fraction(MECHANISMS, ADJACENCIES, odd=number % 2):
            yield name, *choices


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kind", "adjacency"), list(longer_searches()))
def test_other_losses_keep_epsilon_in_a_longer_search(kind, name, adjacency):
    mechanism, dimension = one_of_each(kind, name, adjacency)
    found = density_ratio(mechanism, dimension=dimension, resolution={1: 201, 2: 21}[dimension], num_steps=100)
    assert found.passed, found.explain()


SCALED, SKEW = kng.WeightedLInf(np.array([1.0, 2.0])), kng.Ellipsoid(np.array([[1.0, -0.6], [-0.6, 1.0]]))
NORMS = (None, kng.L1(), kng.L2(), kng.LInf(), SCALED, SKEW)


@pytest.mark.slow
@pytest.mark.parametrize("norm", NORMS, ids=lambda norm: type(norm).__name__)
def test_every_norm_keeps_epsilon(norm):
    mechanism = quantile(kng.KNG, 0.9, adjacency="replace", intercept=True, norm=norm)
    found = density_ratio(mechanism, dimension=2, resolution=15, **FAST)
    assert found.passed, found.explain()
    assert found.ratio > 0.6


@pytest.mark.slow
@pytest.mark.parametrize("norm", NORMS, ids=lambda norm: type(norm).__name__)
def test_every_norm_keeps_epsilon_for_the_squared_loss(norm):
    bounds = kng.Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0))
    mechanism = kng.KNG(kng.SquaredLoss(), bounds, kng.L1Ball(1.0), EPSILON, "add_remove", norm)
    found = density_ratio(mechanism, dimension=2, resolution=21, num_records=(2, 20), num_steps=150)
    assert found.passed, found.explain()


@pytest.mark.slow
@pytest.mark.parametrize("base", [dist.Normal(0.0, 1.0), dist.HalfNormal(1.0)], ids=["normal", "half-normal"])
def test_base_measures_keep_epsilon(base):
    mechanism = kng.KNG(
        kng.QuantileLoss(tau=0.5), kng.Bounds(x=(0.0, 1.0), intercept=False), kng.BaseMeasure(base), EPSILON, "replace"
    )
    found = density_ratio(mechanism, dimension=1, **FAST)
    assert found.passed, found.explain()
    assert found.ratio > 0.85


# The range of one record's loss, which is Δ under "replace". Adding a record to a sum of nonnegative losses changes it
# in one direction only, so half the range would do under "add_remove": the noise is halved from there.
EXPONENTIAL_RANGE = {"quantile": 0.9 * 2.0, "squared": 0.5 * 2.0**2}


@pytest.mark.default_cases("KNG-quantile-add_remove")
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("name", ["quantile", "squared"])
@pytest.mark.parametrize("kind", MECHANISMS)
def test_half_the_noise_is_too_little(kind, name, adjacency):
    """The search is strong enough that a constant wrong by a factor of 2 cannot hide."""
    factor, dimension = 2.0, 1
    if name == "quantile":
        mechanism = quantile(kind, 0.9, adjacency=adjacency)
    else:
        mechanism, dimension = one_of_each(kind, "squared-l1" if kind is kng.KNG else "squared-box", adjacency)
    if kind is kng.ExponentialMechanism and adjacency == "add_remove":
        factor = 4.0 * mechanism.sensitivity_for(dimension).value / EXPONENTIAL_RANGE[name]
    found = density_ratio(
        mechanism,
        dimension=dimension,
        resolution={1: 201, 2: 21}[dimension],
        log_density=lambda theta, data: factor * mechanism.log_density(theta, data),
        **FAST,
    )
    assert not found.passed
    # For the squared loss the largest gradient change is attained at one end of Θ only, hence not twice ε.
    assert found.ratio > (1.15 if (kind, name, adjacency) == (kng.KNG, "squared", "replace") else 1.7)


@pytest.mark.default_cases("replace")
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_right_mechanism_spends_its_epsilon(adjacency):
    found = density_ratio(quantile(kng.KNG, 0.9, adjacency=adjacency), dimension=1, **FAST)
    assert 0.99 < found.ratio <= 1.0 + 1e-9
    assert "not a proof" in found.explain()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["quantile", "squared"])
def test_the_right_exponential_mechanism_spends_its_epsilon(name):
    if name == "quantile":
        mechanism = quantile(kng.ExponentialMechanism, 0.9)
    else:
        mechanism, _ = one_of_each(kng.ExponentialMechanism, "squared-box", "replace")
    found = density_ratio(mechanism, dimension=1, num_records=(20,))
    assert 0.85 < found.ratio <= 1.0 + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_worst_pair_is_a_pair_of_neighbours_and_can_be_checked_by_hand(adjacency):
    tau, resolution = 0.75, 101
    found = density_ratio(
        quantile(kng.KNG, tau, adjacency=adjacency), dimension=1, resolution=resolution, num_records=(4,), num_steps=20
    )
    first, second = found.pair
    assert (len(first.y), len(second.y)) == ((4, 4) if adjacency == "replace" else (5, 4))
    shared = 3 if adjacency == "replace" else 4
    np.testing.assert_array_equal(first.x[:shared], second.x[:shared])
    np.testing.assert_array_equal(first.y[:shared], second.y[:shared])
    assert max(np.abs(first.x).max(), np.abs(second.x).max()) <= 1.0

    theta = (np.arange(resolution) + 0.5) / resolution * 2.0 - 1.0
    change = 2.0 * tau if adjacency == "replace" else tau

    def log_probabilities(records):
        below = records.y[:, None] <= records.x * theta
        values = -EPSILON / (2.0 * change) * np.abs(np.sum((below - tau) * records.x, axis=0))
        return values - np.log(np.sum(np.exp(values)))

    differences = np.abs(log_probabilities(first) - log_probabilities(second))
    place = np.argmin(np.abs(theta - found.location[0]))
    np.testing.assert_allclose(differences[place], found.worst_log_ratio, rtol=1e-12)
    np.testing.assert_allclose(differences.max(), found.worst_log_ratio, rtol=1e-12)


@pytest.mark.slow
def test_no_recompilation_and_nothing_but_numpy_comes_back():
    density_ratio(quantile(kng.KNG, 0.5), dimension=1, num_records=(6,), num_steps=3, resolution=50)
    before = worst_log_ratios._cache_size()
    mechanism = quantile(kng.KNG, 0.7, (0.0, 1.0), epsilon=0.3)
    found = density_ratio(mechanism, dimension=1, num_records=(6,), num_steps=10, resolution=50, seed=1)
    assert worst_log_ratios._cache_size() == before
    assert found.num_pairs == 64 * 11
    for part in (found.location, *(part for records in found.pair for part in (records.x, records.y))):
        assert type(part) is np.ndarray
        assert part.dtype == np.float64
    assert isinstance(found.worst_log_ratio, float)


@pytest.mark.slow
def test_the_seed_decides():
    first, second = (
        density_ratio(quantile(kng.KNG, 0.5), dimension=1, num_records=(6,), num_steps=3, resolution=50, seed=4)
        for _ in range(2)
    )
    assert first.worst_log_ratio == second.worst_log_ratio
    np.testing.assert_array_equal(first.pair[0].x, second.pair[0].x)


def test_refusals():
    three = kng.KNG(
        kng.QuantileLoss(tau=0.5), kng.Bounds(x=(np.zeros(2), np.ones(2))), kng.Box(-1.0, 1.0), 1.0, "replace"
    )
    with pytest.raises(ValueError, match="not for 3: audit one like it with the bounds of fewer columns"):
        density_ratio(three)
    with pytest.raises(ValueError, match="pass dimension"):
        density_ratio(quantile(kng.KNG, 0.5))
    with pytest.raises(ValueError, match="dimension is 2, but the mechanism is for 3"):
        density_ratio(three, dimension=2)
    with pytest.raises(ValueError, match="num_records"):
        density_ratio(quantile(kng.KNG, 0.5), dimension=1, num_records=())
    with pytest.raises(ValueError, match="not a number"):
        density_ratio(
            quantile(kng.KNG, 0.5), dimension=1, num_records=(1,), log_density=lambda theta, data: jnp.nan * theta[0]
        )


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("norm", ["hull", "L1"])
def test_exact_sensitivities_on_a_curve_of_features_are_all_of_epsilon_and_no_more(norm, adjacency):
    """Features (t, t²): no record is at most corners of their box, and the sensitivity counts on it."""
    parts = kng.QuantileLoss(0.7), kng.Bounds(hull=kng.geometry.FeatureHull.powers(2, 0.0, 1.0), intercept=False)
    chosen = kng.L1() if norm == "L1" else kng.sensitivity.sensitivity_set(*parts, kng.Box(-1.0, 1.0), adjacency).hull()
    mechanism = kng.KNG(*parts, kng.Box(-1.0, 1.0), EPSILON, adjacency, chosen)
    found = density_ratio(mechanism, dimension=2, resolution=15, **FAST)
    assert found.passed, found.explain()
    assert found.worst_log_ratio >= 0.98 * EPSILON
