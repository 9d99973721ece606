"""A design that is released once: several quantiles pay for it once, and its noise is in every interval."""

import numpy as np
import pytest

import kngjax as kng
from kngjax.accounting.exact_costs import exactly
from kngjax.inference.covariances import ReleasedDesign, _positive
from kngjax.inference.score_moments import RecordCurvature
from kngjax.releases.release import Release
from tests.inference.test_with_intervals import BOUNDS, LOWER, UPPER, design, mechanism, sandwich_by_hand, table


@pytest.fixture(scope="module")
def exact_design():
    return {adjacency: design(adjacency, 90.0, 20_000) for adjacency in ("replace", "add_remove")}


def smoothed(tau):
    return mechanism(loss=kng.SmoothedQuantileLoss(tau, 0.5)), None


def sharp(tau):
    return mechanism(kind=kng.KNG, loss=kng.QuantileLoss(tau)), 0.5


@pytest.mark.parametrize("made", [smoothed, pytest.param(sharp, marks=pytest.mark.slow)])
def test_several_quantiles_pay_for_the_design_once(made, tmp_path):
    ledger = kng.Ledger.create(tmp_path / "book", kng.Budget.pure(3.3), adjacency="replace", dataset="made up")
    x, y = table(3000)
    released = kng.release(kng.DesignMoments(BOUNDS, 0.3, "replace"), x, ledger=ledger)
    spent = []
    for tau in (0.1, 0.5, 0.9):
        regression, bandwidth = made(tau)
        plan = kng.WithIntervals(regression, kng.inference.ReleasedDesign(released, share=0.05, bandwidth=bandwidth))
        fit = kng.release(plan, x, y, ledger=ledger)
        # One number each, beside the variances.
        assert [part.value.shape for part in fit.parts] == [(3,), (1,), (3,)]
        spent.append(sum(exactly(float(part.certificate.mechanism["epsilon"])) for part in fit.parts))
        assert isinstance(fit.intervals(), kng.inference.Interval)
    assert sum(spent) <= 3
    assert len(ledger.releases()) == 4
    with pytest.raises(kng.ledger.BudgetExceeded):
        kng.release(plan, x, y, ledger=ledger)


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_with_next_to_no_noise_intervals_are_those_without_privacy(adjacency, exact_design):
    """Of errors that do not depend on the features."""
    x, y = table(20_000)
    plan = kng.WithIntervals(
        mechanism(adjacency, 90.0), kng.inference.ReleasedDesign(exact_design[adjacency], share=0.1)
    )
    fit = kng.release(plan, x, y)
    found = fit.intervals(0.95)
    theta, errors = sandwich_by_hand(x, y)
    np.testing.assert_allclose((found.upper + found.lower) / 2.0, theta, atol=0.2 * errors.max())
    np.testing.assert_allclose(found.upper - found.lower, 2.0 * 1.96 * errors, rtol=0.07)
    assert "independent of the features" in " ".join(found.assumptions)
    again = kng.inference.ReleaseWithIntervals.from_json(fit.to_json())
    np.testing.assert_array_equal(again.intervals(0.95).lower, found.lower)


def test_the_noise_of_the_design_is_in_h():
    """The same released numbers, of little noise or of much, as their certificate says."""
    value, made, spread = design("replace", 90.0, 1500), mechanism(), []
    curvature = RecordCurvature(made.loss, BOUNDS)
    for epsilon in (90.0, 3.0):
        written = kng.DesignMoments(BOUNDS, epsilon, "replace")
        fields = kng.certify(written, table(1500)[0]).to_dict()
        covariance = ReleasedDesign({"value": value.value.tolist(), "certificate": fields})
        summing = covariance.summing(made, 50.0)
        first = Release._of(np.array([0.5, 0.8, -0.4]), kng.certify(made, *table(1500)))
        hessians = covariance.hessians(np.array([900.0]), summing, first, made, curvature)
        noise = written.summing.noise.deviations(written.dimension, 1500)
        # H_01 is Σw/n times Σx_1, the first number that is released; w is at most 1 of this loss.
        np.testing.assert_allclose(hessians[:, 0, 0], 900.0, rtol=0.01)
        assert np.std(hessians[:, 0, 1]) == pytest.approx(0.6 * noise[0], rel=0.2)
        spread.append(np.std(hessians[:, 0, 1]))
    assert spread[1] > 10.0 * spread[0]


def test_the_noise_of_the_mean_curvature_is_in_h():
    """A number given its release with Laplace noise and that it is positive, against rejection."""
    noise = np.random.default_rng(3).laplace(size=400_000)
    for released in (-1.0, 0.0, 0.7, 5.0):
        found = _positive(0.5 * released, 2.0, 20_000)
        expected = 0.5 * (released + noise)
        expected = expected[expected > 0.0]
        np.testing.assert_allclose(
            np.quantile(found, [0.1, 0.5, 0.9]), np.quantile(expected, [0.1, 0.5, 0.9]), rtol=0.1
        )
    assert np.all(_positive(-1e4, 1.0, 1000) > 0.0)
    assert np.all(np.isfinite(_positive(1e300, 1.0, 1000)))


def test_what_it_does_not_suffice_for_is_refused_in_words():
    released = design("replace", 1.0, 50)
    other = kng.Bounds(x=(LOWER, 2.0 * UPPER), y=(-3.0, 4.0))
    for words, made in (
        ("depends on x'theta", mechanism(kind=kng.KNG, loss=kng.LogisticLoss(), bounds=kng.Bounds(x=(LOWER, UPPER)))),
        ("other bounds", mechanism(bounds=other)),
        ("other bounds", mechanism(bounds=kng.Bounds(x=(LOWER, UPPER), y=(-3.0, 4.0), intercept=False))),
    ):
        with pytest.raises(ValueError, match=words):
            kng.WithIntervals(made, kng.inference.ReleasedDesign(released))
    mean = kng.release(kng.KNormMechanism(kng.Bounds(x=(LOWER, UPPER), intercept=False), 1.0, "replace"), table(50)[0])
    with pytest.raises(ValueError, match="not of KNormMechanism"):
        kng.inference.ReleasedDesign(mean)
    with pytest.raises(ValueError, match="between 0 and 1"):
        kng.inference.ReleasedDesign(released, share=2.0)
