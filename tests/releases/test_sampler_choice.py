"""Which sampler a release takes: a function of public facts alone, settled before the data are touched."""

import numpy as np
import numpyro.distributions as dist
import pytest

import kngjax as kng
from kngjax.releases.sampler_choice import default_sampler
from kngjax.samplers.advice import GRADIENTS_UNASKED, LITTLE_RANGE
from tests.made_once import MadeOnce

BOUNDS, BOX = kng.Bounds(x=(0.0, 1.0), y=(-1.0, 1.0)), kng.Box(-2.0, 2.0)
PARTS = BOUNDS, BOX, 1.0, "replace"
MECHANISMS = MadeOnce(
    {
        "squared": lambda: kng.KNG(kng.SquaredLoss(), *PARTS),
        "quantile": lambda: kng.KNG(kng.QuantileLoss(0.5), *PARTS),
        "quantile in an ellipsoid": lambda: kng.KNG(kng.QuantileLoss(0.5), *PARTS, kng.Ellipsoid(np.eye(2))),
        "quantile and a prior": lambda: kng.KNG(
            kng.QuantileLoss(0.5), BOUNDS, kng.BaseMeasure(dist.Normal(0.0, 1.0)), 1.0, "replace"
        ),
        "huber": lambda: kng.KNG(kng.HuberLoss(0.5), *PARTS),
        "pseudo-Huber": lambda: kng.KNG(kng.PseudoHuberLoss(0.5), *PARTS),
        "pseudo-Huber in an ellipsoid": lambda: kng.KNG(kng.PseudoHuberLoss(0.5), *PARTS, kng.Ellipsoid(np.eye(2))),
        "pseudo-Huber and a prior": lambda: kng.KNG(
            kng.PseudoHuberLoss(0.5), BOUNDS, kng.BaseMeasure(dist.Normal(0.0, 1.0)), 1.0, "replace"
        ),
    }
)
# n at ε = 1 from which d = 5 coefficients are drawn exactly.
ENOUGH = GRADIENTS_UNASKED * 25


class Untouched:
    """An array of a public shape whose values nobody may look at."""

    dtype = np.dtype(float)

    def __init__(self, *shape):
        self.shape = shape

    def __array__(self, dtype=None, copy=None):
        raise AssertionError("the data were touched")


def untouched(num_records, num_columns=4):
    return Untouched(num_records, num_columns), Untouched(num_records)


def robust(adjacency="replace", epsilon=1.0, columns=4, norm=None):
    bounds = kng.Bounds(x=(0.0, 1.0), columns=columns)
    return kng.KNG(kng.PseudoHuberLoss(0.5), bounds, kng.Box(-2.0, 2.0), epsilon, adjacency, norm)


@pytest.mark.parametrize(
    ("name", "dimension", "num_records", "expected"),
    [
        ("squared", 5, None, kng.Exact),
        ("squared", 21, None, kng.SliceGibbs),
        ("quantile", 1, None, kng.Exact),
        ("quantile", 4, None, kng.Exact),
        ("quantile", 5, None, kng.LineGibbs),
        ("quantile in an ellipsoid", 2, None, kng.LineGibbs),
        ("quantile and a prior", 2, None, kng.EnsembleWalk),
        ("huber", 1, None, kng.EnsembleWalk),
        ("pseudo-Huber", 4, None, kng.Exact),
        ("pseudo-Huber", 5, None, kng.EnsembleWalk),
        ("pseudo-Huber", 5, ENOUGH - 1, kng.EnsembleWalk),
        ("pseudo-Huber", 5, ENOUGH, kng.Exact),
        ("pseudo-Huber in an ellipsoid", 2, 4 * GRADIENTS_UNASKED - 1, kng.EnsembleWalk),
        ("pseudo-Huber in an ellipsoid", 2, 4 * GRADIENTS_UNASKED, kng.Exact),
        ("pseudo-Huber and a prior", 2, ENOUGH, kng.EnsembleWalk),
    ],
)
def test_the_choice_is_a_function_of_public_facts(name, dimension, num_records, expected):
    sampler, reason = default_sampler(MECHANISMS[name], dimension, num_records)
    assert type(sampler) is expected
    assert reason.startswith("Chosen because")


def test_smooth_losses_of_many_records_are_drawn_with_every_rounding_proved():
    # x'θ is within ±10 on Θ, 28 times as wide as 1500·k/1050 is.
    assert kng.certify(robust(), *untouched(28 * ENOUGH - 1)).sampler["type"] == "Exact"
    certificate = kng.certify(robust(), *untouched(28 * ENOUGH + 1))
    assert certificate.sampler["type"] == "ShellDraw"
    assert certificate.assurance == "proved"
    assert "limit of proposals" not in certificate.explain()


def test_smooth_losses_of_many_records_in_other_norms_are_drawn_exactly_and_without_a_limit():
    certificate = kng.certify(robust(norm=kng.Ellipsoid(np.eye(5))), *untouched(ENOUGH))
    assert certificate.sampler == {
        "type": "Exact",
        "max_proposals": None,
        "most_coefficients": 4,
        "least_records": None,
    }
    assert certificate.exact
    assert f"5 coefficients and n*epsilon = {ENOUGH}" in certificate.reason
    # From n and d alone.
    assert "in about 0.33 seconds" in certificate.reason
    assert "limit of proposals" not in certificate.explain()
    assert "limit of proposals" in kng.certify(robust(), *untouched(ENOUGH), sampler=kng.Exact()).explain()


def test_of_too_few_records_objective_perturbation_comes_first():
    text = (
        rf"n\*epsilon is {ENOUGH - 1}, and exact draws are taken unasked from {ENOUGH} on; "
        r"ObjectivePerturbation\(PseudoHuberLoss.*sampler=kngjax\.GradientSpace\(\)"
    )
    with pytest.raises(ValueError, match=text):
        kng.release(robust(), *untouched(ENOUGH - 1))
    # ε counts as n does.
    assert kng.certify(robust(epsilon=2.0), *untouched(ENOUGH // 2)).exact
    with pytest.raises(ValueError, match="and exact draws are taken unasked"):
        kng.certify(robust(epsilon=0.5), *untouched(ENOUGH))


def test_where_the_number_of_records_is_private_a_public_one_is_stated():
    mechanism = robust("add_remove")
    with pytest.raises(ValueError, match=r"not public here.*Exact\(least_records=\.\.\.\).*ObjectivePerturbation"):
        kng.release(mechanism, *untouched(10 * ENOUGH))
    # The same answer whatever the number of records.
    for count in (10, 10 * ENOUGH):
        assert kng.certify(mechanism, *untouched(count), sampler=kng.Exact(least_records=ENOUGH)).exact
        with pytest.raises(ValueError, match=f"exact draws may take too long: .*taken unasked from {ENOUGH} on"):
            kng.release(mechanism, *untouched(count), sampler=kng.Exact(least_records=ENOUGH - 1))
    # Of other losses no such question is asked.
    squared = kng.KNG(kng.SquaredLoss(), kng.Bounds(x=(0.0, 1.0), y=(0.0, 1.0), columns=4), BOX, 1.0, "add_remove")
    assert kng.certify(squared, *untouched(7), sampler=kng.Exact(least_records=7)).exact


def test_where_the_density_hardly_varies_any_number_of_coefficients_is_drawn_exactly():
    """At least one proposal in e^12 from all of Θ is accepted, whatever the records: c‖∇ℓ‖ lies between 0 and 12."""
    mechanism, few = robust(epsilon=0.5), 20
    assert mechanism.exponent.log_range(5, few) < LITTLE_RANGE < mechanism.exponent.log_range(5, 10 * few)
    random = np.random.default_rng(0)
    release = kng.release(mechanism, random.uniform(size=(few, 4)), random.uniform(size=few), progress=False)
    assert release.certificate.exact
    assert np.all(np.abs(release.value) <= 2.0)
    with pytest.raises(ValueError, match="and exact draws are taken unasked"):
        kng.certify(mechanism, *untouched(10 * few))


@pytest.mark.slow
def test_a_release_of_five_coefficients_is_exact_unasked():
    random = np.random.default_rng(0)
    x = random.uniform(size=(ENOUGH, 4))
    y = x @ np.array([1.0, -1.0, 0.5, 0.0]) + 0.3 * random.standard_normal(ENOUGH)
    release = kng.release(robust(), x, y, progress=False)
    # Residuals may scatter more widely than its score bends, by public facts.
    assert release.certificate.sampler["type"] == "Exact"
    np.testing.assert_allclose(release.value, [0.0, 1.0, -1.0, 0.5, 0.0], atol=0.3)
    logistic = kng.KNG(kng.LogisticLoss(), robust().bounds, kng.Box(-2.0, 2.0), 1.0, "replace")
    release = kng.release(logistic, x, random.uniform(size=ENOUGH) < 1.0 / (1.0 + np.exp(x[:, 1] - x[:, 0])))
    assert release.certificate.sampler["type"] == "ShellDraw"
    np.testing.assert_allclose(release.value, [0.0, 1.0, -1.0, 0.0, 0.0], atol=0.3)
