"""Widths of intervals before anything is spent: against what is then released, against formulas, in words."""

import dataclasses
import re

import numpy as np
import pytest

import kngjax as kng
from kngjax.releases.release import plan_for
from tests.inference.test_with_intervals import LEVELS, LOWER, OF_LEVELS, UPPER, mechanism, table_of_levels

RESIDUAL = 0.5


def spread_evenly(number, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.uniform(LOWER, UPPER, (number, 2))
    return x, 0.5 + x @ [0.3, -0.2] + RESIDUAL * generator.standard_normal(number)


LOSSES = {
    "pseudo-Huber": lambda: mechanism(epsilon=2.0),
    "squared": lambda: mechanism(epsilon=4.0, loss=kng.SquaredLoss()),
    "logistic": lambda: mechanism(epsilon=2.0, loss=kng.LogisticLoss(), bounds=kng.Bounds(x=(LOWER, UPPER))),
    "median": lambda: mechanism(epsilon=2.0, kind=kng.KNG, loss=kng.QuantileLoss(0.5)),
}


@pytest.mark.default_cases("pseudo-Huber", "logistic")
@pytest.mark.parametrize("name", LOSSES)
def test_widths_are_those_of_intervals_that_are_then_released(name):
    x, y = spread_evenly(20_000)
    plan, given = kng.WithIntervals(LOSSES[name]()), {} if name == "logistic" else {"residual": RESIDUAL}
    if name == "logistic":
        y = (np.random.default_rng(1).uniform(size=len(y)) < 0.5).astype(float)
    preview = kng.preview(plan, num_records=20_000, **given)
    interval = kng.release(plan, x, y).intervals()
    whole = preview.standard_error.to_numpy() * 2.0 * 1.96
    np.testing.assert_allclose(preview.width * whole, interval.upper - interval.lower, rtol=0.2)


def test_widths_of_categories_need_rows_that_have_them():
    """Evenly spread numbers have several levels at once, of which nobody knows how wide intervals would be."""
    plan, rows = kng.WithIntervals(mechanism(bounds=LEVELS, epsilon=8.0), OF_LEVELS), table_of_levels(2000)[0]
    without = kng.preview(plan, num_records=20_000, residual=RESIDUAL)
    assert without.width is None
    assert "is not known beforehand" in without.explain()
    found = kng.preview(plan, num_records=20_000, residual=RESIDUAL, design=rows).width
    assert np.all((found > 1.0) & (found < 2.0))


def test_a_preview_of_a_plan_says_how_wide_intervals_would_be_and_which_epsilon():
    made = mechanism(kind=kng.KNG, epsilon=2.0)
    chosen = kng.preview(kng.WithIntervals(made), num_records=20_000, residual=RESIDUAL)
    assert "KNG of 20,000 records at epsilon = 2, previewed" in chosen.explain()
    # No rows were described, so that figures of noise are withheld, and the width is said to be a guess.
    width = f"intervals would be up to {chosen.width.max():.3g} times as wide as without privacy."
    assert f"By a guess of what was not described, the {width}" in chosen.explain()
    described = dataclasses.replace(chosen, withheld=None).explain()
    assert f"The {width}" in described
    assert "guess" not in described
    assert chosen.epsilon == pytest.approx(2.0)
    # Of the whole, of which 0.6 is left to the estimate.
    alone = kng.preview(made, num_records=20_000, residual=RESIDUAL)
    assert chosen.epsilon_for(0.3) == pytest.approx(alone.epsilon_for(0.3) / 0.6, rel=0.03)
    assert kng.preview(made, num_records=20_000).width is None


def test_where_noise_drowns_h_no_interval_is_offered():
    plan = kng.WithIntervals(mechanism(epsilon=0.5), kng.Sandwich(share=0.02))
    preview = kng.preview(plan, num_records=2000, residual=RESIDUAL, simulate=False)
    assert np.all(np.isinf(preview.width))
    assert "No intervals are offered of" in preview.explain()


def test_intervals_of_sums_of_coefficients_see_that_errors_depend_on_one_another():
    """That of a sum is less wide than its coefficients' intervals together, and that of a multiple follows."""
    x, y = spread_evenly(5000)
    fit = kng.release(kng.WithIntervals(mechanism(kind=kng.KNG, epsilon=20.0)), x, y)
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
    plan = kng.WithIntervals(mechanism(kind=kng.KNG, epsilon=5.0), num_records=600)
    fit = kng.release(plan, x, y)
    assert plan_for(plan, 600).joined(fit.parts) == [fit]
    assert fit.cost == fit.guarantee


# Plans of which public facts foresee that intervals would be very wide, and how many records they are of.
NOT_OFFERED = {
    "a share": (mechanism(epsilon=0.5), kng.Sandwich(share=0.02), 2000),
    "the default": (mechanism(epsilon=0.2), None, 60),
}


@pytest.mark.parametrize("name", NOT_OFFERED)
def test_nothing_is_paid_for_intervals_that_are_not_offered(name, tmp_path):
    """The refusal names the n and the ε that would do, which are then accepted, and force goes on."""
    made, covariance, count = NOT_OFFERED[name]
    ledger = kng.Ledger.create(tmp_path / "book", kng.Budget.pure(5.0), adjacency="replace", dataset="made up")
    plan = kng.WithIntervals(made, covariance)
    with pytest.raises(ValueError, match="no intervals are offered of ObjectivePerturbation") as told:
        kng.release(plan, *spread_evenly(count), ledger=ledger)
    assert not ledger.read().what
    forced = kng.WithIntervals(made, covariance, force=True)
    assert len(forced.certify(*spread_evenly(count))) == 3
    records, epsilon = re.search(r"About ([\d,]+) records or epsilon = ([\d.]+) would do", str(told.value)).groups()
    assert len(plan.certify(*spread_evenly(int(records.replace(",", ""))))) == 3
    dear = kng.WithIntervals(made.at_epsilon(float(epsilon)), covariance)
    assert len(dear.certify(*spread_evenly(count))) == 3


def test_means_always_have_intervals():
    means = kng.KNormMechanism(kng.Bounds(x=([0.0] * 8, [1.0] * 8), intercept=False), 0.1, "replace")
    fit = kng.release(kng.WithIntervals(means), np.zeros((30, 8)))
    assert np.all(np.isfinite([fit.intervals().lower, fit.intervals().upper]))


def test_without_a_guess_of_n_nothing_is_foreseen_and_certificates_say_so():
    made, (x, y) = mechanism("add_remove", epsilon=0.2), spread_evenly(60)
    fit = kng.release(kng.WithIntervals(made, kng.Sandwich()), x, y)
    assert "how wide intervals will be, as the number of records is private" in fit.explain()
    # The guess alone decides, whatever n is.
    guessed = kng.WithIntervals(made, kng.Sandwich(), num_records=60)
    for count in (1, 60):
        with pytest.raises(ValueError, match="no intervals are offered of ObjectivePerturbation"):
            guessed.certify(x[:count], y[:count])
    no_bounds = mechanism(epsilon=0.2, bounds=kng.Bounds(x=(LOWER, UPPER)))
    of_estimate, *_ = kng.WithIntervals(no_bounds, kng.Sandwich()).certify(x, y)
    assert any("nobody said how far responses scatter" in one for one in of_estimate.assumptions)
