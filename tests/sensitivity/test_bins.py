"""Sums of features in bins: how far one record moves them, by random neighbours, and that all of it is needed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kngjax as kng
from kngjax.data.records import Records
from kngjax.samplers.curves_target import CurvesTarget
from kngjax.sensitivity.bins import bin_norm, bin_sensitivity

LEVELS = np.array([0.2, 0.4, 0.6, 0.8])
VERTICES = np.array([[1.0, first, second] for first in (-1.0, 1.0) for second in (-1.0, 1.0)])
NUMBER = 4000


def signed(target, curves):
    """Differences without sorting: no partition where curves cross."""
    x, y = target.data.x, target.data.y
    below = jnp.where(y[:, None] <= x @ curves.T, 1.0, 0.0)
    return jnp.diff(below, axis=1, prepend=0.0, append=1.0).T @ x


def scores(loss, how):
    """Of many data sets at one (θ, T) each."""

    def score(x, y, curves, totals):
        records = Records(x, y)
        target = CurvesTarget(loss, records, kng.Box(-1.0, 1.0), bin_norm(VERTICES), np.asarray(1.0), LEVELS, VERTICES)
        if how == "signed":
            rest = signed(target, curves) - jnp.outer(target.shares, totals)
            return jnp.sum(jax.vmap(target.norm)(rest))
        return target.score(curves, target.totals() if how == "fixed" else totals)

    return jax.jit(jax.vmap(score))


def largest_changes(loss, how="free"):
    """Of an exchanged record, and of one less: the largest found."""
    generator = np.random.default_rng(0)
    x = np.concatenate([np.ones((NUMBER, 6, 1)), generator.choice([-1.0, 1.0], (NUMBER, 6, 2))], axis=2)
    y, totals = generator.normal(size=(NUMBER, 6)), 6.0 * generator.normal(size=(NUMBER, 3))
    curves = generator.normal(size=(NUMBER, 4, 3))
    if how == "fixed":
        # All records alike, so that all sums have one sign.
        x[:, :, 1:], curves[:, :, 1:] = 1.0, 0.0
    other_x, other_y = x.copy(), y.copy()
    other_x[:, 0, 1:] = -1.0 if how == "fixed" else generator.choice([-1.0, 1.0], (NUMBER, 2))
    other_y[:, 0] = 3.0 * generator.normal(size=NUMBER)
    function = scores(loss, how)
    here, there, less = (
        np.asarray(function(*given, curves, totals))
        # A record of zeros in the place of none: it adds nothing to any sum.
        for given in ((x, y), (other_x, other_y), (x * np.array([0, 1, 1, 1, 1, 1])[:, None], y))
    )
    return np.max(np.abs(here - there)), np.max(np.abs(here - less))


@pytest.mark.parametrize("loss", [kng.QuantileLoss(0.5), kng.SmoothedQuantileLoss(0.5, 0.3)], ids=["sharp", "smooth"])
def test_crossing_or_not_no_record_moves_the_sums_further_and_one_does_so_far(loss):
    exchanged, removed = largest_changes(loss)
    for adjacency, found in (("replace", exchanged), ("add_remove", removed)):
        claimed = bin_sensitivity(bin_norm(VERTICES), VERTICES, kng.Adjacency.parse(adjacency)).value
        assert claimed == (2.0 if adjacency == "replace" else 1.0)
        assert claimed - 1e-4 < found <= claimed + 1e-12


def test_totals_of_the_data_and_signed_shares_are_seen():
    loss = kng.QuantileLoss(0.5)
    assert largest_changes(loss, "fixed")[0] > 2.3
    exchanged, removed = largest_changes(loss, "signed")
    assert exchanged > 3.9
    assert removed > 2.9


@pytest.mark.parametrize(("norm", "order"), [(kng.L1(), 1), (kng.L2(), 2), (kng.LInf(), np.inf)])
def test_it_is_the_largest_norm_of_the_features_in_any_norm(norm, order):
    largest = max(np.linalg.norm(vertex, order) for vertex in VERTICES)
    found = bin_sensitivity(norm, VERTICES, kng.Adjacency.REPLACE)
    assert 2.0 * largest <= found.value <= 2.0 * largest * (1.0 + 1e-9)
    assert "exchanged" in found.derivation


@pytest.mark.parametrize(("enters", "change"), [("less", -2.0), ("more", 0.0)])
def test_an_exchange_counts_twice_where_one_bin_has_more_than_its_share_and_the_other_less(enters, change):
    # Curves at the heights 1, 2, 3, 4; four records in the lowest bin, of which one leaves, and two in the next.
    curves = np.arange(1.0, 5.0)[:, None] * np.array([[1.0, 0.0, 0.0]])
    totals = np.full(3, 15.0 if enters == "less" else 0.0)
    x, y = np.ones((6, 3)), np.array([0.5, 0.5, 0.5, 0.5, 1.5, 1.5])
    function = scores(kng.QuantileLoss(0.5), "free")
    after = np.array([1.5, *y[1:]])
    here, there = (float(function(x[None], one[None], curves[None], totals[None])[0]) for one in (y, after))
    assert there - here == pytest.approx(change, abs=1e-12)


def test_a_column_of_zeros_is_refused():
    with pytest.raises(ValueError, match="leave it out"):
        bin_norm(VERTICES * [1.0, 0.0, 1.0])
