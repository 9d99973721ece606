"""The box tree: bounds that hold, draws that follow the density, and what is refused."""

import dataclasses
from typing import NamedTuple

import jax
import numpy as np
import pytest

import kngjax as kng
from kngjax.owner import nonprivate
from kngjax.samplers.exact import box_bounds, box_tree, boxes
from tests.oracles import minikng
from tests.oracles.goodness_of_fit import assert_cell_frequencies

LOSSES = {
    "quantile": kng.QuantileLoss(0.3),
    "smoothed": kng.SmoothedQuantileLoss(0.7, 0.2),
    "Huber": kng.HuberLoss(0.4),
    "pseudo-Huber": kng.PseudoHuberLoss(0.4),
    "logistic": kng.LogisticLoss(),
    "Poisson": kng.PoissonLoss(),
}
NORMS = {"default": None, "l1": kng.L1(), "l2": kng.L2(), "linf": kng.LInf()}
DOMAINS = {"box": kng.Box([-1.0, -0.5], [0.8, 2.0]), "l1": kng.L1Ball(1.2), "l2": kng.L2Ball(0.9)}
QUICK = [("logistic", kng.KNG), ("pseudo-Huber", kng.ExponentialMechanism)]
# θ̂ outside of Θ, ties, one record, two columns alike, a column without variation.
DATA = ("plain", "far", "tied", "one", "alike", "constant")


def records(kind="plain", loss="quantile", n=30, seed=0):
    random = np.random.default_rng(seed)
    x = random.uniform(-0.3, 1.0, (n, 1))
    y = 0.2 + x[:, 0] + 0.5 * random.standard_normal(n)
    if kind == "far":
        y = y + 20.0
    if kind == "tied":
        x, y = np.round(3.0 * x) / 3.0, np.round(2.0 * y) / 2.0
    if kind == "one":
        x, y = x[:1], y[:1]
    if kind == "alike":
        x[:] = 1.0
    if kind == "constant":
        x[:] = 0.0
    if loss == "logistic":
        y = (y > 0.5).astype(float)
    return x, np.round(np.exp(np.minimum(y, 2.0))) if loss == "Poisson" else y


def problem(loss="quantile", norm="default", domain="box", kind="plain", mechanism=kng.KNG, epsilon=4.0, n=30):
    y = {"Poisson": (0.0, 9.0), "logistic": (0.0, 1.0)}.get(loss, (-3.0, 3.0))
    bounds = kng.Bounds(x=(-1.0, 1.0), y=y)
    parts = (LOSSES[loss], bounds, DOMAINS[domain], epsilon, "replace")
    built = kng.KNG(*parts, NORMS[norm]) if mechanism is kng.KNG else mechanism(*parts)
    data = built.prepare(*records(kind, loss, n))
    return built, data


def centre_of(built, data):
    if len(data.y) == 1 or isinstance(built.loss, kng.LogisticLoss):
        return np.zeros(2)
    return nonprivate.minimiser(built.loss, data)


CASES = [
    *((loss, "default", "box", "plain") for loss in LOSSES),
    *(("quantile", norm, "l1", "plain") for norm in NORMS),
    *(("quantile", "default", domain, kind) for domain, kind in zip(["l2", "box", "l1"] * 2, DATA, strict=True)),
    ("pseudo-Huber", "l2", "l2", "far"),
]


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [kng.KNG, kng.ExponentialMechanism], ids=["kng", "exponential"])
@pytest.mark.parametrize(("loss", "norm", "domain", "kind"), CASES)
def test_bounds_hold_at_every_point_of_every_box(loss, norm, domain, kind, mechanism):
    """Scores of the loss itself, summed record by record over all rows, at random points and at corners."""
    if mechanism is kng.ExponentialMechanism and norm != "default":
        pytest.skip("the exponential mechanism has no norm")
    built, data = problem(loss, norm, domain, kind, mechanism)
    target, random = built.target(data), np.random.default_rng(1)
    tree = box_tree.build(target, centre_of(built, data), num_draws=10_000)
    chosen = random.choice(tree.boxes.lower.size, min(40, tree.boxes.lower.size), replace=False)
    inside = random.uniform(-1.0, 1.0, (chosen.size, 6, 2))
    inside[:, 4:] = np.sign(inside[:, 4:])
    u = tree.boxes.centres[chosen][:, None] + tree.boxes.halves[chosen][:, None] * inside
    theta = tree.coordinates.centre + u @ tree.coordinates.matrix.T
    scores = np.asarray(jax.jit(jax.vmap(jax.vmap(target.score)))(theta))
    if target.norm is None:
        scores = scores - float(target.score(tree.coordinates.centre))
    lower = tree.boxes.lower[chosen][:, None]
    assert np.all(lower <= scores + 1e-9 * (1.0 + np.abs(scores)))
    # They are worth something: the envelope is not much larger than the density.
    assert tree.acceptance > 0.3


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [kng.KNG, kng.ExponentialMechanism], ids=["kng", "exponential"])
@pytest.mark.parametrize("domain", [kng.Box(-20.0, 30.0), kng.L2Ball(15.0)], ids=["box", "l2"])
def test_bounds_far_out_hold_within_the_domain(domain, mechanism):
    """Where Θ is wide the outer boxes have their bounds from rays, and from their parents."""
    built = mechanism(kng.QuantileLoss(0.3), kng.Bounds(x=(-1.0, 1.0), y=(-3.0, 3.0)), domain, 4.0, "replace")
    data = built.prepare(*records(n=2000))
    target, random = built.target(data), np.random.default_rng(5)
    tree = box_tree.build(target, centre_of(built, data))
    boxes = tree.boxes
    assert np.sum(boxes.levels > 2) >= 4
    farther = np.argsort(-np.max(np.abs(boxes.centres) + boxes.halves, axis=1))[:60]
    assert farther.size == 60
    u = boxes.centres[farther][:, None] + boxes.halves[farther][:, None] * random.uniform(-1.0, 1.0, (60, 8, 2))
    theta = tree.coordinates.centre + u @ tree.coordinates.matrix.T
    inside = np.asarray(jax.vmap(jax.vmap(domain.contains))(theta))
    assert inside.mean() > 0.2
    scores = np.asarray(jax.jit(jax.vmap(jax.vmap(target.score)))(theta))
    if target.norm is None:
        scores = scores - float(target.score(tree.coordinates.centre))
    lower = np.broadcast_to(boxes.lower[farther][:, None], scores.shape)
    assert np.all(lower[inside] <= scores[inside] * (1.0 + 1e-9) + 1e-9)
    # They are worth something.
    assert np.mean(lower > 0.05 * np.max(scores, axis=1, keepdims=True)) > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "tied", "one"])
def test_what_rows_that_are_left_out_add_is_what_they_are_worth(kind):
    built, data = problem(kind=kind, n=400)
    target = built.target(data)
    tree = box_tree.build(target, centre_of(built, data))
    random = np.random.default_rng(2)
    for region in tree.regions:
        u = region.centre + region.half * random.uniform(-1.0, 1.0, (20, 2))
        theta = tree.coordinates.centre + u @ tree.coordinates.matrix.T
        expected = np.asarray(jax.vmap(target.score)(theta))
        np.testing.assert_allclose(
            box_bounds.scores_at(target, region.rows, tree.coordinates, theta), expected, rtol=1e-12, atol=1e-12
        )


@pytest.mark.slow
@pytest.mark.parametrize("num_records", [255, 256, 257, 700])
def test_tables_of_rows_and_their_padding_add_nothing(num_records):
    """The loss of a padded row, log 2 here, is not 0."""
    built, data = problem("logistic", mechanism=kng.ExponentialMechanism, n=num_records)
    target = built.target(data)
    about = box_tree.limit_law_coordinates(target, np.zeros(2))
    region = box_tree._regions(target, about)[-1]
    assert region.rows.count == num_records
    theta = np.random.default_rng(3).uniform(-1.0, 1.0, (70, 2))
    expected = np.asarray(jax.vmap(target.score)(theta)) - float(target.score(about.coordinates.centre))
    found = box_bounds.scores_at(target, region.rows, about.coordinates, theta)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.slow
def test_one_program_serves_every_number_of_rows_and_boxes():
    built, data = problem("quantile", n=3000)
    target = built.target(data)
    tree = box_tree.build(target, centre_of(built, data))
    assert len({region.rows.count for region in tree.regions}) > 1
    before = box_bounds._scores._cache_size()
    for number, region in enumerate(tree.regions):
        box_bounds.scores_at(target, region.rows, tree.coordinates, np.zeros((1 + 100 * number, 2)))
    assert box_bounds._scores._cache_size() - before <= 1


def test_boxes_cover_the_domain_once():
    built, data = problem("quantile", domain="l1")
    tree = box_tree.build(built.target(data), centre_of(built, data))
    theta = np.asarray(built.domain.draw(jax.random.key(0), (500,), 2))
    u = (theta - tree.coordinates.centre) @ tree.coordinates.inverse.T
    distance = np.abs(u[:, None] - tree.boxes.centres) - tree.boxes.halves
    np.testing.assert_array_equal(np.sum(np.all(distance <= 0.0, axis=2), axis=1), 1)


def test_a_search_fails_for_a_bound_that_is_contradicted_even_where_nothing_is_proposed():
    """At the centre of a box that has next to no mass, or by scores that fall, of a box beside Θ; not by rounding."""
    built, data = problem("quantile", domain="l1")
    tree = box_tree.build(built.target(data), centre_of(built, data))
    number = tree.boxes.lower.size
    centres = tree.coordinates.centre + tree.boxes.centres @ tree.coordinates.matrix.T
    inside = np.abs(centres).sum(axis=1) < 1.2
    least, beside = np.argmax(np.where(inside, tree.boxes.lower, -np.inf)), np.argmin(inside)
    assert not inside[beside]
    for place, more, holds in ((least, 1e4, False), (beside, np.inf, False), (slice(number), 1e-10, True)):
        lower = tree.boxes.lower.copy()
        lower[place] += more
        other = dataclasses.replace(tree, boxes=dataclasses.replace(tree.boxes, lower=lower))
        drawn, succeeded = other.draws(jax.random.key(0), 20, 1e6)
        assert succeeded is holds
        assert np.isfinite(drawn).all() == holds


def grid_masses(log_density, domain, cells, fine):
    """Cells of a box around Θ with the masses that a finer grid gives them; plain NumPy."""
    low, high = np.array([-1.3, -1.3]), np.array([1.3, 2.1])
    axes = [np.linspace(a, b, cells * fine + 1) for a, b in zip(low, high, strict=True)]
    middles = [0.5 * (axis[1:] + axis[:-1]) for axis in axes]
    grid = np.stack(np.meshgrid(*middles, indexing="ij"), axis=-1).reshape(-1, 2)
    values = np.where(domain(grid), log_density(grid), -np.inf)
    masses = np.exp(values - values.max()).reshape(cells, fine, cells, fine).sum(axis=(1, 3))
    return [axis[::fine] for axis in axes], masses / masses.sum()


CONTAINS = {
    "box": lambda t: np.all((t >= [-1.0, -0.5]) & (t <= [0.8, 2.0]), axis=1),
    "l1": lambda t: np.abs(t).sum(axis=1) <= 1.2,
    "l2": lambda t: np.sqrt((t**2).sum(axis=1)) <= 0.9,
}


@pytest.mark.default_cases("l1-tied-1.0")
@pytest.mark.parametrize(
    ("domain", "kind", "epsilon"),
    [("box", "plain", 4.0), ("l1", "tied", 1.0), ("l2", "far", 8.0), ("box", "one", 1.0), ("box", "alike", 3.0)],
)
def test_draws_follow_the_density_of_quantile_regression(domain, kind, epsilon):
    """Against a fine grid of the oracle: exact draws are independent, so their cells follow the chi-square law."""
    built, data = problem(domain=domain, kind=kind, epsilon=epsilon)
    x, y = np.asarray(data.x), np.asarray(data.y)
    # w_j = 2·max(τ, 1-τ) for features in [-1, 1]; 1 for the intercept.
    weights = np.array([1.0, 1.4])

    def log_density(grid):
        signs = (y <= grid @ x.T).astype(float) - 0.3
        return -0.5 * epsilon * np.max(np.abs(signs @ x) / weights, axis=1)

    some = np.array([[0.1, 0.4], [-0.3, 0.6]])
    for theta in some:
        expected = minikng.kng_log_density(minikng.quantile_gradient(theta, x, y, 0.3), epsilon, 1.0, weights)
        np.testing.assert_allclose(log_density(theta[None])[0], expected, rtol=1e-12, atol=1e-12)
    axes, masses = grid_masses(log_density, CONTAINS[domain], 12, 20)
    draws = kng.sample(built, data, key=kng.research_key(3), sampler=kng.Exact(), num_draws=500, num_chains=2)
    theta = draws.theta.reshape(-1, 2)
    assert np.all(CONTAINS[domain](theta))
    counts, _, _ = np.histogram2d(*theta.T, bins=axes)
    assert counts.sum() == 1000
    # Cells cut by the boundary of Θ are not resolved by the grid: they are pooled.
    known = masses > 1e-3
    pooled = [np.append(part[known], part[~known].sum()) for part in (counts, masses)]
    assert_cell_frequencies(*pooled)


@pytest.mark.slow
def test_draws_follow_the_density_of_the_exponential_mechanism():
    built, data = problem(mechanism=kng.ExponentialMechanism, epsilon=60.0, n=60)
    x, y = np.asarray(data.x), np.asarray(data.y)

    def log_density(grid):
        residuals = y - grid @ x.T
        return -float(built.target(data).rate) * np.sum(residuals * (0.3 - (residuals <= 0)), axis=1)

    axes, masses = grid_masses(log_density, CONTAINS["box"], 12, 20)
    draws = kng.sample(built, data, key=kng.research_key(4), num_draws=1000, num_chains=2)
    assert draws.sampler == "Exact"
    counts, _, _ = np.histogram2d(*draws.theta.reshape(-1, 2).T, bins=axes)
    known = masses > 1e-3
    assert_cell_frequencies(*[np.append(part[known], part[~known].sum()) for part in (counts, masses)])


@pytest.mark.slow
def test_draws_do_not_depend_on_the_coordinates():
    """An estimate that is far off changes the envelope and not the law."""
    built, data = problem(epsilon=2.0)
    target = built.target(data)
    samples = []
    for seed, centre in enumerate((centre_of(built, data), np.array([0.7, -0.4]), None)):
        draws, succeeded = box_tree.build(target, centre).draws(kng.research_key(seed), 2000, 10**8)
        assert succeeded
        samples.append(draws)
    edges = [np.linspace(-1.0, 0.8, 8), np.linspace(-0.5, 2.0, 8)]
    counts = [np.histogram2d(*draws.T, bins=edges)[0].ravel() for draws in samples]
    pooled = np.sum(counts, axis=0)
    frequent = pooled > 70
    for observed in counts:
        cells = np.append(observed[frequent], observed[~frequent].sum())
        expected = np.append(pooled[frequent], pooled[~frequent].sum()) / 3.0
        # Each sample is a third of the pool, so the statistic is about 2/3 of a chi-square variable.
        assert np.sum((cells - expected) ** 2 / expected) < 3.0 * cells.size


def test_a_search_that_is_given_up_says_so_and_gives_no_numbers():
    built, data = problem(domain="l1")
    tree = box_tree.build(built.target(data), centre_of(built, data))
    draws, succeeded = tree.draws(kng.research_key(0), 100_000, 1000)
    assert not succeeded
    assert np.isnan(draws[-1]).all()


def test_a_draw_inside_jit_is_refused_and_outside_it_serves():
    built, data = problem(domain="l1", epsilon=1.0)
    with pytest.raises(ValueError, match="outside of jit and vmap"):
        jax.jit(lambda key: kng.draw(built, data, key, kng.Exact()))(kng.research_key(0))
    theta, succeeded = kng.draw(built, data, kng.research_key(0), kng.Exact())
    assert succeeded
    assert built.domain.contains(theta)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parts", "dimension"),
    [
        ({"norm": kng.Ellipsoid(np.eye(2) + 0.1)}, 2),
        ({"domain": kng.Box(-1.0, 1.0)}, 5),
    ],
    ids=["norm", "dimension"],
)
def test_what_boxes_cannot_serve_is_refused_with_advice(parts, dimension):
    settings = {"domain": kng.Box(-1.0, 1.0), "epsilon": 1.0, "adjacency": "replace"} | parts
    built = kng.KNG(kng.QuantileLoss(0.5), kng.Bounds(x=(-1.0, 1.0)), **settings)
    random = np.random.default_rng(0)
    data = built.prepare(random.uniform(size=(8, dimension - 1)), random.uniform(size=8))
    with pytest.raises(ValueError, match=r"most_coefficients=5.*LineGibbs"):
        kng.sample(built, data, key=kng.research_key(0), sampler=kng.Exact())
    if dimension == 5:
        theta = kng.sample(built, data, key=kng.research_key(0), sampler=kng.Exact(most_coefficients=5), num_draws=2)
        assert np.all(np.isfinite(theta.theta))


def test_single_precision_is_refused():
    built, data = problem()
    target = built.target(data)
    with jax.enable_x64(False), pytest.raises(ValueError, match="jax_enable_x64"):
        kng.Exact().check(target)


def test_what_rounding_leaves_between_two_ends_has_neither_face_nor_slab():
    """A slab has the bound of the rays through its face: without one it would have that of other rays."""

    class Region(NamedTuple):
        centre: np.ndarray
        half: np.ndarray

    outer = Region(np.array([0.3, -0.2]), np.array([3.0, 2.0]))
    # The ends of the second axis are the same but for the last bits.
    inner = Region(np.array([0.1, -0.2]), np.array([1.0, 2.0 * (1.0 - 2e-16)]))
    assert boxes.faces(inner, outer).lower.size == 2
    assert boxes.slabs(inner, outer, 1, 0.0).lower.size == 2


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(
    ("loss", "mechanism"),
    [
        pytest.param(loss, mechanism, marks=[] if (loss, mechanism) in QUICK else pytest.mark.slow, id=f"{loss}-{name}")
        for loss in LOSSES
        for name, mechanism in (("kng", kng.KNG), ("exponential", kng.ExponentialMechanism))
    ],
)
@pytest.mark.parametrize("size", [1e-4, 1.0])
def test_scores_and_bounds_of_regions_however_flat_the_scores_are_there(loss, mechanism, size):
    """In a small region the scores of smooth losses hardly change, and what they change by adds up over rows."""
    built, data = problem(loss, mechanism=mechanism, n=400)
    target, random = built.target(data), np.random.default_rng(11)
    about = box_tree.limit_law_coordinates(target, np.zeros(2))
    coordinates = about.coordinates
    centre, half = np.array([0.05, -0.02]), size * np.array([1.0, 0.5])
    rows = box_bounds.restrict_rows(built.loss, box_bounds.all_rows(data), coordinates, centre, half)
    if loss in ("logistic", "Poisson", "pseudo-Huber"):
        assert rows.count == 400
    inside = random.uniform(-1.0, 1.0, (20, 8, 2))
    halves = half * random.uniform(0.0, 0.5, (20, 2))
    centres = centre + (half - halves) * random.uniform(-1.0, 1.0, (20, 2))
    theta = coordinates.centre + (centres[:, None] + halves[:, None] * inside) @ coordinates.matrix.T
    scores = np.asarray(jax.jit(jax.vmap(jax.vmap(target.score)))(theta))
    if target.norm is None:
        scores = scores - float(target.score(coordinates.centre))
    rounding = 1e-13 * 400.0 * 9.0
    found = box_bounds.scores_at(target, rows, coordinates, theta.reshape(-1, 2)).reshape(scores.shape)
    np.testing.assert_allclose(found, scores, rtol=1e-13, atol=rounding)
    bounds = box_bounds.score_bounds(target, rows, coordinates, centres, halves)
    assert np.all(bounds.lower[:, None] <= scores + rounding)
    # Tight where boxes are small: what is bounded is no more than what the scores can do.
    assert np.all(np.max(scores, axis=1) - bounds.lower <= 1e4 * size + rounding)
    away = centres + 3.0 * np.sign(centres)
    rays = box_bounds.ray_bounds(target, box_tree._regions(target, about)[-1].rows, coordinates, away, halves)
    farther = (away[:, None] + halves[:, None] * inside) * random.uniform(1.0, 4.0, (20, 8, 1))
    beyond = coordinates.centre + farther @ coordinates.matrix.T
    scores = np.asarray(jax.jit(jax.vmap(jax.vmap(target.score)))(beyond))
    if target.norm is None:
        scores = scores - float(target.score(coordinates.centre))
    assert np.all(rays.lower[:, None] <= scores + 1e-9 * (1.0 + np.abs(scores)))
