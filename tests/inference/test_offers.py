"""Whether intervals are offered, and for which share of ε: κ against NumPy, thresholds, refusals that cost nothing."""

import re

import numpy as np
import pytest

import kngjax as kng
from kngjax.inference import offers
from kngjax.inference.covariances import Sandwich
from kngjax.inference.interval_choices import interval_plan_of
from kngjax.inference.offers import Offer, noise_over, offer_of, usual_setting
from kngjax.inference.settings import Scenario
from kngjax.mechanisms.parameters import rounded_up
from tests.inference.test_with_intervals import LEVELS, LOWER, OF_LEVELS, UPPER, mechanism, table_of_levels


def draws_of_box(random, number, widths, epsilon):
    """Noise of a box of D columns: a Gamma(D + 1) radius times an even point."""
    count = len(widths)
    radius = random.gamma(count + 1.0, 1.0 / epsilon, (number, 1))
    return radius * random.uniform(-1.0, 1.0, (number, count)) * widths


def test_kappa_is_the_median_of_the_largest_eigenvalue_of_the_noise_over_h():
    """Of columns in [-.5, 1] and [0, 2], with w in [0, 1]: widths of wx_jx_k by hand, noise and H in NumPy."""
    widths = np.array([1.0, 1.5, 2.0, 1.0, 3.0, 4.0])
    noise = draws_of_box(np.random.default_rng(5), 4000, widths, 0.35)
    rows, columns = np.triu_indices(3)
    matrices = np.zeros((4000, 3, 3))
    matrices[:, rows, columns] = matrices[:, columns, rows] = noise
    hessian = 700.0 * np.array([[1.0, 0.25, 1.0], [0.25, 0.25, 0.25], [1.0, 0.25, 4.0 / 3.0]])
    # Eigenvalues of G^-1 N are those of G^-1/2 N G^-1/2.
    eigenvalues = np.abs(np.linalg.eigvals(np.linalg.solve(hessian, matrices))).max(axis=1)
    found = noise_over(hessian, mechanism(), Sandwich(), 0.35)
    # Of 200 draws a median has an error of some hundredths.
    assert found == pytest.approx(np.median(eigenvalues), rel=0.15)
    assert noise_over(hessian, mechanism(), Sandwich(), 0.7) == pytest.approx(0.5 * found, rel=1e-9)
    assert noise_over(2.0 * hessian, mechanism(), Sandwich(), 0.35) == pytest.approx(0.5 * found, rel=1e-9)


def test_kappa_of_categories_is_that_of_their_blocks():
    """Fewer numbers with less noise: with each number by itself it would be more."""
    x, w = table_of_levels(3000)[0], 0.7
    design = np.column_stack([np.ones(3000), x])
    hessian, made = w * design.T @ design, mechanism(bounds=LEVELS)
    blocks = noise_over(hessian, made, OF_LEVELS, 0.35)
    assert blocks < 0.8 * noise_over(hessian, made, Sandwich(), 0.35)


def setting_with(monkeypatch, noise):
    """A setting of which κ of a share is this number over the share."""
    monkeypatch.setattr(offers, "noise_over", lambda hessian, made, covariance, epsilon: noise / epsilon)
    return usual_setting(mechanism(), 5000)


@pytest.mark.parametrize(
    ("noise", "share", "is_made"),
    [(0.35 * 0.6, 0.35, True), (0.35 * 0.61, 0.45, True), (0.45 * 0.999, 0.45, True), (0.45 * 1.001, 0.45, False)],
)
def test_the_share_follows_from_kappa_and_more_than_1_is_refused(noise, share, is_made, monkeypatch):
    setting = setting_with(monkeypatch, noise)
    found = offer_of(setting, Sandwich(), 1.0, 5000, None)
    assert (found.share, found.is_made) == (share, is_made)
    assert found.noise == pytest.approx(noise / share)
    # A share that is asked for stays, and is refused by its own κ.
    asked = offer_of(setting, Sandwich(share=0.2), 1.0, 5000, None)
    assert (asked.share, asked.is_made) == (0.2, noise / 0.2 <= 1.0)


def test_where_nobody_knows_what_is_assumed_the_larger_share_is_offered():
    assert offer_of(None, Sandwich(), 1.0, 5000, None) == Offer(0.45, None)
    assert offer_of(usual_setting(mechanism(), 5000), Sandwich(), 1.0, None, None) == Offer(0.45, None)
    assert offer_of(None, Sandwich(share=0.3), 1.0, None, None) == Offer(0.3, None)
    assert Offer(0.45, None).is_made


def test_kappa_is_over_the_largest_curvature():
    """Of a logistic regression w is at most 1/4, the unit in which sums are released, and near it at even odds."""
    bounds = kng.Bounds(x=(LOWER, UPPER))
    logistic = mechanism(loss=kng.LogisticLoss(), bounds=bounds)
    squared = mechanism(loss=kng.PseudoHuberLoss(1e6))
    both = [
        offer_of(Scenario.of(one, None, None), Sandwich(share=0.35), 1.0, 5000, None).noise
        for one in (logistic, squared)
    ]
    assert both[0] == pytest.approx(both[1], rel=0.1)


@pytest.mark.default_cases("perturbed", "median")
@pytest.mark.parametrize("name", ["perturbed", "median", "logistic", "levels"])
def test_the_n_and_the_epsilon_that_a_refusal_names_are_then_accepted_and_hardly_less_is(name):
    """Within a factor of 1.1, also where a bandwidth follows from n."""
    made = {
        "perturbed": lambda e: mechanism(epsilon=e),
        "median": lambda e: mechanism(epsilon=e, kind=kng.KNG, loss=kng.QuantileLoss(0.5)),
        "logistic": lambda e: mechanism(epsilon=e, loss=kng.LogisticLoss(), bounds=kng.Bounds(x=([-0.5], [1.0]))),
        "levels": lambda e: mechanism(epsilon=e, bounds=LEVELS),
    }[name]
    covariance, count = OF_LEVELS if name == "levels" else None, 250 if name == "median" else 100

    def offer(number, epsilon):
        setting = usual_setting(made(epsilon), number)
        making = interval_plan_of(made(epsilon), covariance, number, None, setting)
        return offer_of(setting, making.covariance, epsilon, making.usual.num_records, making.bandwidth)

    refused = offer(count, 0.5)
    assert not refused.is_made
    words = refused.refusal("this", 0.5, count, "records", "assumed")
    records, epsilon = re.search(r"About ([\d,]+) records or epsilon = ([\d.]+) would do", words).groups()
    records, epsilon = int(records.replace(",", "")), float(epsilon)
    assert offer(round(1.1 * records), 0.5).is_made
    assert not offer(round(records / 1.25), 0.5).is_made
    assert offer(count, 1.1 * epsilon).is_made
    assert not offer(count, epsilon / 1.25).is_made


def test_numbers_are_rounded_up_to_two_digits():
    assert [rounded_up(number) for number in (316, 320, 14_229, 0.5301, 1.0, 9.99)] == [
        "320", "320", "15,000", "0.54", "1", "10",
    ]  # fmt: skip


def test_a_setting_that_is_given_decides_before_the_debit(tmp_path):
    """Rows with less spread than usual are refused, though usual ones are not, and nothing is spent."""
    made, ledger = (
        mechanism(),
        kng.Ledger.create(tmp_path / "book", kng.Budget.pure(5.0), adjacency="replace", dataset="made up"),
    )
    narrow = np.column_stack([np.linspace(0.4, 0.5, 50), np.linspace(0.9, 1.1, 50) ** 2])
    plan = kng.WithIntervals(made, setting=Scenario.of(made, narrow, None))
    x, y = np.zeros((2000, 2)), np.zeros(2000)
    assert len(kng.WithIntervals(made).certify(x, y)) == 3
    with pytest.raises(ValueError, match="no intervals are offered of ObjectivePerturbation"):
        kng.release(plan, x, y, ledger=ledger)
    assert not ledger.read().what
