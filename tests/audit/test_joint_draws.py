"""Audits of the joint density of curves in several dimensions: no claim betrayed, and bugs that are seen."""

import jax.numpy as jnp
import numpy as np
import pytest

import kngjax as kng
from kngjax.audit.joint_draws import replayed_curves
from kngjax.geometry import feature_hulls
from kngjax.releases.curves.joint import Joint
from kngjax.samplers.curves_target import CurvesTarget
from kngjax.sensitivity import bins

ADJACENCIES = ("replace", "add_remove")
LEVELS = (0.25, 0.5, 0.75)


def curves(adjacency, bounds=None, **changes):
    bounds = kng.Bounds(x=([-1.0, 0.0], [1.0, 1.0])) if bounds is None else bounds
    given = {"norm": None, "bandwidth": 0.2} | changes
    return Joint.of(LEVELS, bounds, kng.Box(-4.0, 4.0), 2.0, kng.Adjacency.parse(adjacency), 3, **given)


def pair(adjacency, response=-50.0, number=12):
    """A record far beyond the bounds below all curves, for one above them, or for none, beside so many others."""
    generator = np.random.default_rng(0)
    x, far = generator.uniform([-1.0, 0.0], 1.0, (number, 2)), [9.0, 9.0]
    y = x @ [1.0, -0.5] + generator.standard_normal(number)
    first = np.vstack([x, far]), np.append(y, response)
    return first, (x, y) if adjacency == "add_remove" else (np.vstack([x, far]), np.append(y, 50.0))


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_no_point_betrays_the_claim_and_one_needs_all_of_it(adjacency):
    found = replayed_curves(curves(adjacency), *pair(adjacency), num_draws=0)
    assert found.passed
    assert found.ratio > 0.999
    assert found.num_points > 200


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_no_draw_of_the_chain_does(adjacency):
    """Of so many records that it moves."""
    joint, given = curves(adjacency), pair(adjacency, number=2000)
    drawn = joint.draws(joint.prepare(*given[0]), kng.GradientSpace(), kng.research_key(0), 24)
    assert len(np.unique(drawn.curves.reshape(24, -1), axis=0)) > 12
    found = replayed_curves(joint, *given, num_points=2)
    assert found.passed
    assert found.num_points >= 24
    # Some draws alone need all of it.
    assert found.ratio > 0.99


@pytest.mark.slow
@pytest.mark.parametrize("norm", [kng.L1(), kng.L2(), kng.LInf(), kng.WeightedLInf([0.3, 2.0, 1.0])])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_none_does_in_other_norms(adjacency, norm):
    found = replayed_curves(curves(adjacency, norm=norm), *pair(adjacency), num_draws=0)
    assert found.passed
    assert found.ratio > 0.6


def score_at_totals_of_the_data(target, theta, totals):
    rest = target.bins(theta) - jnp.outer(target.shares, target.totals())
    return jnp.sum(jnp.array([target.norm(row) for row in rest]))


def signed_bins(target, theta):
    x, y = target.data.x, target.data.y
    fitted = x @ jnp.asarray(theta).T
    below = jnp.where(y[:, None] <= fitted, 1.0, 0.0)
    return jnp.diff(below, axis=1, prepend=0.0, append=1.0).T @ x


def without_the_cone(target, theta):
    return jnp.asarray(True)


def counted_once(original):
    return lambda norm, vertices, adjacency: original(norm, vertices, kng.Adjacency.ADD_REMOVE)


PLANTED = {
    "totals of the data": [(CurvesTarget, "score", score_at_totals_of_the_data)],
    "differences of indicators without the cone": [
        (CurvesTarget, "bins", signed_bins),
        (CurvesTarget, "are_in_order", without_the_cone),
    ],
    "an exchanged record that counts once": [
        ("kngjax.releases.curves.joint.bin_sensitivity", counted_once(bins.bin_sensitivity))
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("bug", PLANTED)
def test_planted_bugs_are_seen_by_the_replay(bug, monkeypatch):
    """Of one record less in the midst of the others, but for a bug that it does not have."""
    adjacency = "replace" if "exchanged" in bug else "add_remove"
    asked, given = curves(adjacency, bandwidth=None), pair(adjacency, 0.0)
    assert replayed_curves(asked, *given, num_draws=0).passed
    for change in PLANTED[bug]:
        monkeypatch.setattr(*change)
    assert replayed_curves(asked, *given, num_draws=0).ratio > 1.2


def no_number_far_away(original):
    return lambda target, theta, totals: jnp.where(totals[0] > 5.0, jnp.nan, original(target, theta, totals))


def curves_at_records(target, theta):
    return jnp.all(jnp.diff(target.data.x @ jnp.asarray(theta).T, axis=1) >= 0.0)


DENSITIES = {
    "a score that is no number": ("score", no_number_far_away(CurvesTarget.score)),
    "a cone of the records": ("are_in_order", curves_at_records),
}


@pytest.mark.slow
@pytest.mark.parametrize("bug", DENSITIES)
def test_what_has_no_number_or_is_there_of_one_neighbour_alone_betrays_the_claim(bug, monkeypatch):
    monkeypatch.setattr(CurvesTarget, *DENSITIES[bug])
    found = replayed_curves(curves("add_remove", bandwidth=None), *pair("add_remove"), num_draws=0, num_points=2000)
    assert found.ratio == np.inf
    assert not found.passed


def points_on_the_curve(degree, lower, upper, pieces=4):
    return np.linspace(lower, upper, pieces + 1)[:, None] ** np.arange(1, degree + 1)


def about(hull):
    """The norm whose ball is the hull of (1, x) and -(1, x), x in the hull, on which no record is longer than 1."""
    corners = np.column_stack([np.ones(len(hull.vertices)), hull.vertices])
    return kng.Polytope(np.vstack([corners, -corners]))


@pytest.mark.slow
def test_a_hull_through_points_of_a_curve_is_seen_where_records_are_not_moved_into_it(monkeypatch):
    """Records between the points are outside of it: each is moved inside, without which they are too long."""
    t = np.array([0.25, 0.125, 0.625, 0.875])
    x, y = np.column_stack([t, t**2]), np.array([0.0, 0.1, 0.2, 0.4])

    def found(hull):
        asked = curves("add_remove", kng.Bounds(hull=hull), bandwidth=None, norm=about(hull))
        return replayed_curves(asked, (x, y), (x[1:], y[1:]), num_draws=0, num_points=1000)

    assert found(kng.FeatureHull.powers(2, 0.0, 1.0, 2)).passed
    monkeypatch.setattr(feature_hulls, "moment_curve", points_on_the_curve)
    wrong = kng.FeatureHull.powers(2, 0.0, 1.0, 2)
    assert found(wrong).passed
    monkeypatch.setattr(kng.FeatureHull, "move_inside", lambda hull, columns: columns)
    assert found(wrong).ratio > 1.01
