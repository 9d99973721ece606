"""Exact draws of smooth losses: against quadrature, with the acceptance that it predicts, and failing closed."""

import types

import equinox as eqx
import jax
import numpy as np
import pytest

import kngjax as kng
from kngjax.samplers.exact import exact
from kngjax.samplers.exact.smooth import search
from kngjax.samplers.exact.smooth.certificate import trivial
from kngjax.samplers.exact.smooth.envelope import build
from tests.audit.fractions import half_fraction
from tests.losses.test_curvature_facts import NAMES
from tests.statistical.problems import POINTS, Quadrature, assert_follows, problem

NUM_DRAWS = 500
MOST = 3_000_000
# Default tests share programs: those of one coefficient are of pseudo-Huber regression with few records, those of two
# of logistic regression with many.
FEW, MANY = 40, 300
# Standard errors that a count may be off: once in 10^6.
FAR = 4.9


@pytest.fixture(autouse=True)
def one_size_of_batches(request, monkeypatch):
    """Each size is a program of its own: slow tests take all that users meet."""
    if request.node.get_closest_marker("slow") is None:
        monkeypatch.setattr(search, "_PROPOSED", (2**12,))
        monkeypatch.setattr(search, "_SOLVED", (128,))


def draws(mechanism, data, num_draws=NUM_DRAWS, seed=7, envelope=None):
    target = mechanism.target(data)
    envelope = search.prepare(target, mechanism.loss.minimise(data)) if envelope is None else envelope
    return envelope, search.draw_from(envelope, target, kng.research_key(seed), num_draws, MOST)


def log_total(mechanism, data, lower, upper, points):
    """log ∫ exp(-c‖∇ℓ(θ)‖_K) dθ over a box by the midpoint rule, for one coefficient."""
    width = (upper - lower) / points
    middles = lower + width * (np.arange(points) + 0.5)
    target = mechanism.target(data)
    scores = np.array(jax.jit(jax.vmap(target.score))(middles[:, None]))
    return float(np.log(width) + np.logaddexp.reduce(-float(target.rate) * scores))


@pytest.mark.default_cases("pseudo_huber-1-40")
@pytest.mark.parametrize(
    ("name", "dimension", "count"),
    [
        ("logistic", 2, MANY),
        *(
            (name, dimension, count)
            for number, name in enumerate(NAMES)
            for dimension, count in half_fraction((1, 2), (FEW, MANY), odd=number % 2)
        ),
    ],
)
def test_draws_follow_the_density(name, dimension, count):
    built, data = problem(name, "kng", dimension, num_records=count)
    _, found = draws(built, data)
    assert found.succeeded
    assert found.worst <= 0.0
    assert_follows(found.draws, Quadrature(built, data, -2.0, 2.5, POINTS[dimension]))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "dimension"), [(name, 2 - number % 2) for number, name in enumerate(NAMES)])
def test_draws_follow_the_density_and_the_predicted_share_with_fourth_moments(name, dimension, monkeypatch):
    monkeypatch.setattr(search, "ENOUGH_LOG_EXCESS", -np.inf)
    built, data = problem(name, "kng", dimension, num_records=100)
    envelope, found = draws(built, data)
    assert found.succeeded
    assert found.worst <= 0.0
    assert_follows(found.draws, Quadrature(built, data, -2.0, 2.5, POINTS[dimension]))
    if dimension == 1:
        share = np.exp(log_total(built, data, -2.0, 2.5, 20_000) - np.logaddexp.reduce(envelope.log_masses))
        error = np.sqrt(found.proposals * share * (1.0 - share))
        assert abs(found.accepted - found.proposals * share) < FAR * error + 1.0


@pytest.mark.slow
def test_fourth_moments_make_envelopes_smaller_where_the_worst_records_leave_them_large(monkeypatch):
    built, data = problem("pseudo_huber", "kng", 2, num_records=150)
    target, centre = built.target(data), built.loss.minimise(data)
    better = search.prepare(target, centre).log_excess
    monkeypatch.setattr(search, "ENOUGH_LOG_EXCESS", np.inf)
    assert better < search.prepare(target, centre).log_excess - 1.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("norm", "domain"),
    [
        (kng.L1(), kng.L2Ball(1.0)),
        (kng.L2(), kng.L1Ball(1.2)),
        (kng.LInf(), kng.L2Ball(1.0)),
        (kng.Ellipsoid([[2.0, 0.5], [0.5, 1.0]]), kng.L1Ball(1.2)),
    ],
    ids=repr,
)
def test_draws_follow_the_density_in_every_norm_where_the_domain_binds(norm, domain):
    built, data = problem("pseudo_huber", "kng", 2, domain=domain, num_records=150)
    built = eqx.tree_at(lambda part: part.norm, built, norm, is_leaf=lambda part: part is None)
    _, found = draws(built, data)
    assert found.succeeded
    assert_follows(found.draws, Quadrature(built, data, -1.2, 1.2, POINTS[2]))


@pytest.mark.slow
@pytest.mark.parametrize("count", [20, 100])
@pytest.mark.parametrize("name", NAMES)
def test_as_many_proposals_are_accepted_as_quadrature_says(name, count):
    """The share is ∫f/mass, so that a lost factor of either shows even where the law of the draws does not."""
    built, data = problem(name, "kng", 1, num_records=count)
    envelope, found = draws(built, data)
    share = np.exp(log_total(built, data, -2.0, 2.5, 20_000) - np.logaddexp.reduce(envelope.log_masses))
    error = np.sqrt(found.proposals * share * (1.0 - share))
    assert abs(found.accepted - found.proposals * share) < FAR * error + 1.0


@pytest.mark.slow
def test_where_nothing_is_certain_all_of_the_domain_is_proposed():
    built, data = problem("pseudo_huber", "kng", 1, num_records=FEW, epsilon=0.5)
    target = built.target(data)
    _, found = draws(built, data, envelope=build(target, trivial(np.zeros(1))))
    assert found.succeeded
    assert found.solutions == 0
    assert_follows(found.draws, Quadrature(built, data, -2.0, 2.5, POINTS[1]))


def test_an_envelope_that_is_too_low_ends_the_search_as_failed():
    built, data = problem("pseudo_huber", "kng", 1, num_records=FEW)
    envelope, found = draws(built, data)
    assert found.succeeded
    _, found = draws(built, data, envelope=envelope._replace(heights=envelope.heights - 0.1))
    assert not found.succeeded
    assert found.worst > 0.05
    assert found.draws.shape == (0, 1)


def test_a_search_ends_at_its_public_limit():
    built, data = problem("pseudo_huber", "kng", 1, num_records=FEW)
    target = built.target(data)
    envelope = search.prepare(target, built.loss.minimise(data))
    found = search.draw_from(envelope, target, kng.research_key(0), 10**5, 1000)
    assert not found.succeeded
    assert 1000 <= found.proposals < 1000 + 2**16


def test_twice_the_budget_is_another_law():
    built, data = problem("pseudo_huber", "kng", 1, num_records=FEW)
    doubled, _ = problem("pseudo_huber", "kng", 1, 6.0, num_records=FEW)
    _, found = draws(built, data)
    with pytest.raises(AssertionError):
        assert_follows(found.draws, Quadrature(doubled, data, -2.0, 2.5, POINTS[1]))


@pytest.mark.slow
@pytest.mark.parametrize("proposals_a_draw", [1, exact.PROPOSALS_A_DRAW])
def test_where_the_domain_is_far_from_the_estimate_boxes_serve(proposals_a_draw, monkeypatch):
    """There proposals of gradients hardly ever have a solution in Θ, however small the mass of their envelope is."""
    monkeypatch.setattr(exact, "PROPOSALS_A_DRAW", proposals_a_draw)
    tried = []
    monkeypatch.setattr(exact, "draw_from", lambda *given: tried.append(search.draw_from(*given)) or tried[0])
    built, data = problem("pseudo_huber", "kng", 1, domain=kng.Box(-0.2, 0.2), epsilon=20.0, num_records=FEW)
    target = built.target(data)
    centre = built.loss.minimise(data)
    assert not target.domain.contains(centre)
    theta, succeeded = kng.Exact().draws(target, kng.research_key(2), NUM_DRAWS, centre)
    assert bool(succeeded)
    assert len(tried) == 1
    assert not tried[0].succeeded
    assert_follows(np.array(theta), Quadrature(built, data, -0.2, 0.2, POINTS[1]))


@pytest.mark.slow
def test_records_of_less_than_full_rank_have_no_shells():
    built, _ = problem("logistic", "kng", 2, num_records=MANY)
    target = built.target(built.prepare(np.ones((MANY, 1)), np.arange(MANY) % 2.0))
    assert not search.prepare(target, np.zeros(2)).has_shells


@pytest.mark.slow
def test_records_of_less_than_full_rank_are_drawn_from_all_of_the_domain():
    x = np.ones((2, 2)) * np.array([[0.5, 0.5], [-0.3, -0.3]])
    mechanism = kng.KNG(
        kng.PseudoHuberLoss(0.5), kng.Bounds(x=(-1.0, 1.0), columns=2), kng.Box(-1.0, 1.0), 1.0, "replace"
    )
    data = mechanism.prepare(x, np.array([0.1, 0.2]))
    assert not search.prepare(mechanism.target(data), np.zeros(3)).has_shells
    assert np.all(np.abs(kng.release(mechanism, x, np.array([0.1, 0.2]), sampler=kng.Exact()).value) <= 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_release_is_exact_for_every_loss_that_declares_its_curvature(name):
    built, data = problem(name, "kng", 2, num_records=300)
    release = kng.release(built, np.asarray(data.x)[:, 1:], np.asarray(data.y), sampler=kng.Exact())
    assert release.certificate.assurance == "in_reals"
    assert built.domain.contains(release.value)


def test_what_is_no_number_ends_the_search_as_failed():
    built, data = problem("pseudo_huber", "kng", 1, num_records=FEW)
    envelope, _ = draws(built, data, num_draws=1)
    broken = envelope._replace(certificate=envelope.certificate._replace(tilt=np.full(1, np.nan)))
    _, found = draws(built, data, envelope=broken)
    assert not found.succeeded


def test_solutions_are_exact_and_weighed_by_their_determinant():
    """A truncated search would move every coordinate by more than releases allow float64 to."""
    built, data = problem("pseudo_huber", "kng", 1, num_records=FEW)
    target = built.target(data)
    envelope = search.prepare(target, built.loss.minimise(data))
    generator = np.random.default_rng(0)
    values = generator.normal(size=(search._SOLVED[-1], 1)) * 8.0 / float(target.rate)
    bounds = generator.uniform(size=len(values))
    theta, log_ratios, unsettled, inside = jax.tree.map(
        np.array, search._solve(target, envelope.certificate.point, values, bounds)
    )
    assert inside.sum() > 100
    assert not unsettled.any()
    gradients = np.array(jax.vmap(target.loss.gradient, (0, None))(theta, data))
    noise = 1.0 / float(target.rate)
    assert np.max(np.abs(gradients - values)[inside]) < 1e-12 * noise

    # What they are accepted with, by NumPy.
    def log_determinant(theta):
        curvature = (1.0 + ((data.y - data.x @ theta) / built.loss.k) ** 2) ** -1.5
        return np.linalg.slogdet((data.x.T * curvature) @ data.x)[1]

    drops = log_determinant(envelope.certificate.point.theta) - np.array([log_determinant(one) for one in theta])
    assert np.ptp(drops) > 0.05
    np.testing.assert_allclose(log_ratios, drops - bounds, atol=1e-10)


@pytest.mark.slow
def test_programs_serve_other_data():
    """Shells and pieces are filled up to one number, so that a release of other data compiles nothing anew."""
    shapes = set()
    for seed in range(3):
        built, data = problem("logistic", "kng", 2, epsilon=1.0 + seed, num_records=MANY)
        envelope = search.prepare(built.target(data), built.loss.minimise(data))
        shapes.add(str(jax.tree.map(np.shape, envelope)))
    assert len(shapes) == 1


def test_boxes_after_a_trial_that_failed_draw_with_another_key(monkeypatch):
    """That a trial failed is a fact about its key."""
    keys = []
    failed = search.Found(np.zeros((0, 1)), False, 0, 0, 0, 0.0)
    monkeypatch.setattr(exact, "draw_from", lambda *arguments: keys.append(arguments[2]) or failed)
    tree = types.SimpleNamespace(draws=lambda key, *_: keys.append(key) or (np.zeros((5, 1)), True))
    monkeypatch.setattr(exact.box_tree, "build", lambda *_: tree)
    built, data = problem("pseudo_huber", "kng", 1, num_records=FEW)
    given = kng.research_key(4)
    kng.Exact().draws(built.target(data), given, 5, built.loss.minimise(data))
    assert len({bytes(np.asarray(jax.random.key_data(key))) for key in (given, *keys)}) == 3


@pytest.mark.default_cases("gaussian-30.0")
@pytest.mark.parametrize(
    ("kernel", "far"), [("logistic", 360.0), ("logistic", 735.0), ("logistic", 800.0), ("gaussian", 30.0)]
)
def test_where_float64_overflows_a_release_does_not_fail(kernel, far):
    """Responses hundreds of bandwidths from Θ: no curvature is left there. That this happened must not be told."""
    loss = kng.SmoothedQuantileLoss(0.5, 1.0, kernel=kernel)
    mechanism = kng.KNG(loss, kng.Bounds(), kng.Box(-1.0, 1.0), 1.0, "replace")
    y = far + 0.3 * np.random.default_rng(0).standard_normal(60)
    assert abs(kng.release(mechanism, None, y, progress=False).value[0]) <= 1.0


def test_a_reference_is_pulled_to_the_edge_from_however_far():
    built, data = problem("pseudo_huber", "kng", 1, num_records=FEW)
    target = built.target(data)
    for far in (10.0, 1e6, 1e300):
        found = search._pulled_in(target, np.full(1, far))
        assert target.domain.contains(found)
        assert not target.domain.contains(1.05 * found)


@pytest.mark.parametrize("settings", [{"max_proposals": 0}, {"max_proposals": 1.5}, {"least_records": True}])
def test_limits_are_positive_whole_numbers(settings):
    with pytest.raises((ValueError, TypeError), match=next(iter(settings))):
        kng.Exact(**settings)
