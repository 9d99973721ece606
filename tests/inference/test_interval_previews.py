"""Widths of intervals before anything is spent: against what is then released, against formulas, in words."""

import re

import numpy as np
import pytest
import scipy.stats
from kngjax.inference.foreseen_ends import OTHER_WAYS

import kngjax as kng
from kngjax.releases.release import plan_for
from tests.inference.test_with_intervals import COVARIANCES, LOWER, UPPER, mechanism, sandwich_by_hand

RESIDUAL = 0.5


def spread_evenly(number, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.uniform(LOWER, UPPER, (number, 2))
    return x, 0.5 + x @ [0.3, -0.2] + RESIDUAL * generator.standard_normal(number)


@pytest.mark.parametrize("name", COVARIANCES)
def test_widths_are_those_of_intervals_that_are_then_released(name):
    x, y = spread_evenly(20_000)
    plan = kng.WithIntervals(mechanism(epsilon=2.0), COVARIANCES[name])
    design = x if name == "public" else None
    preview = kng.preview(plan, num_records=20_000, design=design, residual=RESIDUAL)
    interval = kng.release(plan, x, y).intervals()
    _, errors = sandwich_by_hand(x, y)
    # The public rows of the one are not as the records are: its widths are what it says, and not a sandwich's.
    if name != "public":
        measured = (interval.upper - interval.lower) / (2.0 * 1.96 * errors)
        np.testing.assert_allclose(preview.width, measured, rtol=0.2)
    else:
        whole = preview.standard_error.to_numpy() * 2.0 * 1.96
        np.testing.assert_allclose(preview.width * whole, interval.upper - interval.lower, rtol=0.2)


def test_widths_by_groups_are_those_of_students_law():
    made = mechanism(kind=kng.KNG)
    preview = kng.preview(kng.WithIntervals(made, kng.Groups(6)), num_records=20_000, residual=RESIDUAL)
    alone = kng.preview(made, num_records=20_000, residual=RESIDUAL)
    wide = scipy.stats.t.ppf(0.975, 5) / scipy.stats.norm.ppf(0.975)
    np.testing.assert_allclose(preview.width, wide * np.sqrt(1.0 + 6.0 * alone.ratio**2), rtol=0.02)
    # The mean of 6 estimates of a sixth of the records each: 6/√6 times the noise.
    np.testing.assert_allclose(preview.noise, np.sqrt(6.0) * alone.noise, rtol=0.02)
    np.testing.assert_allclose(preview.standard_error, alone.standard_error, rtol=0.02)


def test_a_preview_of_a_plan_compares_the_other_ways_and_says_which_epsilon():
    made = mechanism(kind=kng.KNG, epsilon=2.0)
    preview = kng.preview(kng.WithIntervals(made, kng.Groups(6)), num_records=20_000, residual=RESIDUAL)
    text = preview.explain()
    assert "KNG of 20,000 records at epsilon = 2, previewed" in text
    assert "Intervals by Groups(6) would be up to" in text
    assert "By Sandwich(share=0.3) they would be up to" in text
    chosen = kng.preview(kng.WithIntervals(made), num_records=20_000, residual=RESIDUAL)
    assert "Intervals by Sandwich(share=0.3) would be up to" in chosen.explain()
    assert chosen.epsilon == pytest.approx(2.0)
    # Of the whole, of which 0.7 is left to the estimate.
    alone = kng.preview(made, num_records=20_000, residual=RESIDUAL)
    assert chosen.epsilon_for(0.3) == pytest.approx(alone.epsilon_for(0.3) / 0.7, rel=0.03)
    assert kng.preview(made, num_records=20_000).width is None


def test_where_noise_drowns_the_covariance_no_interval_is_expected():
    plan = kng.WithIntervals(mechanism(epsilon=0.5), kng.Sandwich(share=0.02))
    preview = kng.preview(plan, num_records=2000, residual=RESIDUAL, simulate=False)
    assert np.all(np.isinf(preview.width))
    assert "none at all, as there is too much noise" in preview.explain()


@pytest.mark.parametrize("covariance", [kng.Sandwich(), kng.Groups(4)])
def test_intervals_of_sums_of_coefficients_see_that_errors_depend_on_one_another(covariance):
    """That of a sum is less wide than its coefficients' intervals together, and that of a multiple follows."""
    x, y = spread_evenly(5000)
    fit = kng.release(kng.WithIntervals(mechanism(kind=kng.KNG, epsilon=20.0), covariance), x, y)
    each, rows = fit.intervals(0.9), np.array([[1.0, 0.25, 1.0], [0.0, 3.0, 0.0], [0.0, -1.0, 0.0]])
    found = fit.intervals(0.9, rows)
    np.testing.assert_allclose([found.lower[1], found.upper[1]], [3.0 * each.lower[1], 3.0 * each.upper[1]])
    np.testing.assert_allclose([found.lower[2], found.upper[2]], [-each.upper[1], -each.lower[1]], rtol=1e-9)
    together = np.abs(rows[0]) @ (each.upper - each.lower)
    assert found.upper[0] - found.lower[0] < 0.7 * together
    assert found.names is None
    for wrong in (np.ones(3), np.ones((2, 2)), np.full((1, 3), np.nan)):
        with pytest.raises(ValueError, match="combinations must be finite rows of 3 numbers"):
            fit.intervals(0.9, wrong)


def test_a_plan_makes_its_result_of_the_parts_that_a_ledger_keeps():
    x, y = spread_evenly(600)
    for covariance in (kng.Sandwich(), kng.Groups(3)):
        plan = kng.WithIntervals(mechanism(kind=kng.KNG, epsilon=5.0), covariance, num_records=600)
        fit = kng.release(plan, x, y)
        assert plan_for(plan, 600).joined(fit.parts) == [fit]
        assert fit.cost == fit.guarantee


# Plans of which public facts foresee that no interval has ends, and how many records they are of.
WITHOUT_ENDS = {
    "sums": (mechanism(epsilon=0.5), kng.Sandwich(share=0.02), 2000),
    "independent errors": (mechanism(epsilon=0.2), kng.inference.IndependentErrors(), 60),
    "the default": (mechanism(epsilon=0.2), None, 60),
}


@pytest.mark.parametrize("name", WITHOUT_ENDS)
def test_nothing_is_paid_for_intervals_that_public_facts_foresee_to_have_no_ends(name, tmp_path):
    """The refusal names what has intervals there with the widths that a preview of it says, and force goes on."""
    made, covariance, count = WITHOUT_ENDS[name]
    ledger = kng.Ledger.create(tmp_path / "book", kng.Budget.pure(5.0), adjacency="replace", dataset="made up")
    plan = kng.WithIntervals(made, covariance)
    records = spread_evenly(count)
    with pytest.raises(ValueError, match="no intervals are expected of") as told:
        kng.release(plan, *records, ledger=ledger)
    named = re.findall(r"covariance=(kngjax\.[\w.]+\([^()]*\)) up to ([\d.]+) times as wide", str(told.value))
    assert (len(named) > 1) == (name == "sums")
    for words, width in named[:1]:
        found = kng.preview(kng.WithIntervals(made, OTHER_WAYS[words][0]), num_records=count, simulate=False).width
        assert float(np.max(found)) == pytest.approx(float(width), rel=0.01)
    assert not ledger.read().what
    forced = kng.WithIntervals(made, covariance, force=True)
    assert len(forced.certify(*records)) == 2


def test_without_a_guess_of_n_nothing_is_foreseen_and_certificates_say_so(tmp_path):
    made, (x, y) = mechanism("add_remove", epsilon=0.2), spread_evenly(60)
    fit = kng.release(kng.WithIntervals(made, kng.Sandwich()), x, y)
    assert "whether intervals will have ends, as the number of records is private" in fit.explain()
    # The guess alone decides, whatever n is.
    guessed = kng.WithIntervals(made, kng.Sandwich(), num_records=60)
    for count in (1, 60):
        with pytest.raises(ValueError, match="no intervals are expected of ObjectivePerturbation"):
            guessed.certify(x[:count], y[:count])
    no_bounds = mechanism(epsilon=0.2, bounds=kng.Bounds(x=(LOWER, UPPER)))
    [of_estimate, _] = kng.WithIntervals(no_bounds, kng.Sandwich()).certify(x, y)
    assert any("nobody said how far responses scatter" in one for one in of_estimate.assumptions)
