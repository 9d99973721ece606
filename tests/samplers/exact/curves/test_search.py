"""Exact draws of several curves against sums over a grid, where shells are proposed and where pieces of Θ are."""

import jax
import numpy as np
import pytest
from scipy import stats

import kngjax as kng
from kngjax.core.arrays import float64
from kngjax.samplers.exact.curves import envelope as envelopes
from kngjax.samplers.exact.curves import search
from tests.samplers.exact.curves.grid import LEVELS, SETTINGS, WIDTH, Grid, process_of, records


@pytest.fixture(autouse=True)
def one_size_of_batches(request, monkeypatch):
    """Each size is a program of its own: slow tests take all that users meet."""
    if request.node.get_closest_marker("slow") is None:
        monkeypatch.setattr(search, "_PROPOSED", (1024,))


@pytest.mark.takes(5, "compiles the search of curves together")
@pytest.mark.default_cases("shells-400")
@pytest.mark.parametrize("number", [400, 1500])
@pytest.mark.parametrize("name", SETTINGS)
def test_draws_have_the_law_of_sums_over_a_grid_and_are_as_many_as_its_mass_says(name, number):
    """Fifteen tests of laws in all, at 1e-4 each; of all proposals the share is taken that quadrature says."""
    process, grid = process_of(**SETTINGS[name]), Grid(**SETTINGS[name])
    joint, data = process._joint(), process.prepare(None, grid.y)
    with float64():
        target = joint.target(data)
        envelope = envelopes.prepare(target, joint.centres(data))
        found = search.draw_from(envelope, target, kng.research_key(11), number, 10**6)
    assert np.all(np.diff(found.curves[:, :, 0], axis=1) >= 0.0)
    assert min(grid.pvalues(found.curves, found.totals)) > 1e-4
    expected = grid.mass / np.exp(np.logaddexp.reduce(envelope.log_masses))
    error = np.sqrt(expected * (1.0 - expected) / found.proposals)
    assert found.worst <= 0.0
    assert abs(found.accepted / found.proposals - expected) < 4.0 * error + 2e-3 * expected
    shells = np.logaddexp.reduce(envelope.log_masses[: envelopes.NUM_SHELLS])
    share = np.exp(shells - np.logaddexp.reduce(envelope.log_masses))
    assert (share > 0.9) == (name == "shells")


def test_a_search_ends_at_its_public_limit_and_where_the_proof_is_contradicted():
    process = process_of(epsilon=4.0, number=60)
    joint, data = process._joint(), process.prepare(None, records(60))
    with float64():
        target = joint.target(data)
        envelope = envelopes.prepare(target, joint.centres(data))
        few = search.draw_from(envelope, target, kng.research_key(0), 20_000, 1000)
        assert (few.succeeded, few.curves.shape, few.totals.shape) == (False, (0, 2, 1), (0, 1))
        # Heights that are too small make a probability above 1.
        low = envelope._replace(heights=envelope.heights - 3.0)
        wrong = search.draw_from(low, target, kng.research_key(0), 100, 10**6)
    assert not wrong.succeeded
    assert wrong.worst > 1.0


def test_solutions_that_cross_or_leave_the_domain_are_not_taken():
    process, y = process_of(epsilon=4.0, number=60), records(60)
    joint, data = process._joint(), process.prepare(None, y)
    curves = np.array([[0.2, 0.7], [0.7, 0.2], [0.3, 0.31], [-0.6, 0.5]])
    below = np.sum(1.0 / (1.0 + np.exp(-(curves[..., None] - y) / WIDTH)), axis=2)
    z = (below - np.array(LEVELS) * len(y))[..., None]
    with float64():
        target = joint.target(data)
        envelope = envelopes.prepare(target, joint.centres(data))
        found = [np.asarray(part) for part in search._solve(target, envelope.certificates, z, np.zeros(4))]
    assert found[3].tolist() == [True, False, True, False]
    assert not found[2].any()
    np.testing.assert_allclose(found[0][:3, :, 0], curves[:3], atol=1e-9)
    slopes = np.exp(-(curves[..., None] - y) / WIDTH) / (1.0 + np.exp(-(curves[..., None] - y) / WIDTH)) ** 2 / WIDTH
    logs = np.log(np.sum(slopes, axis=2)).sum(axis=1)
    np.testing.assert_allclose(found[1][2] - found[1][0], logs[0] - logs[2], atol=1e-8)


@pytest.mark.default_cases("at the bound")
@pytest.mark.parametrize("y", [np.zeros(0), np.full(1, 0.5), np.zeros(60)], ids=["none", "one", "at the bound"])
def test_records_of_which_nothing_is_certain_make_neither_a_failure_nor_a_warning(y):
    process = process_of(epsilon=4.0, number=60)
    drawn = process.sample(process.prepare(None, y), key=kng.research_key(3), sampler=kng.Exact(), num_draws=3)
    assert np.all(np.isfinite(drawn.curves))
    assert np.all(np.diff(drawn.curves[:, :, 0], axis=1) >= 0.0)


def test_a_piece_is_proposed_uniformly_and_left_where_it_is_not_in_the_domain_or_order():
    """Of the piece with the most mass among those that are an ellipsoid in one curve and Θ in the other."""
    process, y = process_of(**SETTINGS["ellipsoids"]), records(60)
    joint, data = process._joint(), process.prepare(None, y)
    with float64():
        target = joint.target(data)
        envelope = envelopes.prepare(target, joint.centres(data))
        masses = envelope.log_masses.copy()
        masses[: envelopes.NUM_SHELLS] = -np.inf
        masses[envelopes.NUM_SHELLS :][~np.isfinite(envelope.radii[:, 0])] = -np.inf
        piece = np.argmax(masses) - envelopes.NUM_SHELLS
        masses[np.arange(masses.size) != np.argmax(masses)] = -np.inf
        made = search._propose(target, envelope._replace(log_masses=masses), kng.research_key(5), 0, 1024)
        made = jax.tree.map(np.asarray, made)
    assert not made.of_shell.any()
    assert np.isinf(envelope.radii[piece, 1])
    first, second = made.curves[:, 0, 0], made.curves[:, 1, 0]
    reach = envelope.radii[piece, 0] / envelope.certificates.factor[0, 0, 0]
    shares = (first - envelope.certificates.point.theta[0, 0]) / reach
    low = SETTINGS["ellipsoids"]["low"]
    assert stats.kstest(shares, stats.uniform(-1.0, 2.0).cdf).pvalue > 1e-4
    assert stats.kstest(second, stats.uniform(low, 1.5 - low).cdf).pvalue > 1e-4
    allowed = made.first > -np.inf
    assert 20 < allowed.sum() < 1000
    assert np.sum(first < low) > 10
    assert np.all((first[allowed] >= low) & (first[allowed] <= second[allowed]))
    assert np.all(made.first <= 0.0)


def test_a_shell_is_proposed_with_the_length_of_all_its_sums_and_totals_that_belong_to_them():
    """Of one shell from 0 to L: (r/L)^D is uniform, with η from z and T = S - Σ η."""
    process, y = process_of(**SETTINGS["shells"]), records(60)
    joint, data = process._joint(), process.prepare(None, y)
    with float64():
        target = joint.target(data)
        envelope = envelopes.prepare(target, joint.centres(data))
        masses, edges = np.full(envelope.log_masses.shape, -np.inf), envelope.edges.copy()
        masses[0], edges[1] = 0.0, 20.0
        made = search._propose(target, envelope._replace(log_masses=masses, edges=edges), kng.research_key(6), 0, 1024)
        made = jax.tree.map(np.asarray, made)
    total = len(y) - made.totals[:, 0]
    below = made.z[:, :, 0] + np.array(LEVELS) * total[:, None]
    eta = np.diff(np.column_stack([np.zeros(1024), below, total]), axis=1)
    lengths = float(target.rate) * np.sum(np.abs(eta), axis=1)
    assert stats.kstest((lengths / 20.0) ** 3, "uniform").pvalue > 1e-4
    assert np.all(np.abs(np.mean(eta > 0.0, axis=0) - 0.5) < 0.07)


def test_what_float64_cannot_settle_ends_the_search(monkeypatch):
    process = process_of(**SETTINGS["shells"])
    joint, data = process._joint(), process.prepare(None, records(60))
    solve = search._solve

    def unsettled(*given):
        curves, logs, is_open, within = solve(*given)
        return curves, logs, np.ones_like(is_open), np.zeros_like(within)

    monkeypatch.setattr(search, "_solve", unsettled)
    with float64():
        target = joint.target(data)
        envelope = envelopes.prepare(target, joint.centres(data))
        found = search.draw_from(envelope, target, kng.research_key(0), 10, 10**4)
    assert (found.succeeded, found.accepted) == (False, 0)
    assert found.proposals < 1024


@pytest.mark.slow
def test_curves_on_either_side_of_a_gap_are_found_from_estimates_of_their_own():
    """Where the curve of the middle level lies in the gap, the Hessian there is nearly singular."""
    random = np.random.default_rng(0)
    y = random.choice([-1.5, 1.5], 2000) + 0.1 * random.standard_normal(2000)
    process = kng.QuantileProcess(
        LEVELS, kng.Bounds(y=(-3.0, 3.0)), kng.Box(-4.0, 4.0), 4.0, "add_remove", order="joint", bandwidth=0.05
    )
    drawn = process.sample(process.prepare(None, y), key=kng.research_key(0), sampler=kng.Exact(), num_draws=20)
    assert drawn.acceptance > 0.3
    assert np.all(np.abs(drawn.curves[:, :, 0] - [-1.5, 1.5]) < 0.5)
