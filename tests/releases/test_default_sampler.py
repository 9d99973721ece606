"""Which sampler a release takes: a function of public facts alone, settled before the data are touched."""

import numpy as np
import numpyro.distributions as dist
import pytest

import kngjax as kng
from kngjax.chains.advice import GRADIENTS_UNASKED, LITTLE_RANGE
from kngjax.releases.default_sampler import default_sampler
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
        ("squared", 5, None, kng.chains.Exact),
        ("squared", 21, None, kng.chains.SliceGibbs),
        ("quantile", 1, None, kng.chains.Exact),
        ("quantile", 2, None, kng.chains.LineGibbs),
        ("quantile", 5, None, kng.chains.LineGibbs),
        ("quantile in an ellipsoid", 2, None, kng.chains.LineGibbs),
        ("quantile and a prior", 2, None, kng.chains.EnsembleWalk),
        ("huber", 1, None, kng.chains.EnsembleWalk),
        ("pseudo-Huber", 4, None, kng.chains.EnsembleWalk),
        ("pseudo-Huber", 5, None, kng.chains.EnsembleWalk),
        ("pseudo-Huber", 5, ENOUGH - 1, kng.chains.EnsembleWalk),
        ("pseudo-Huber", 5, ENOUGH, kng.chains.Exact),
        ("pseudo-Huber in an ellipsoid", 2, 4 * GRADIENTS_UNASKED - 1, kng.chains.EnsembleWalk),
        ("pseudo-Huber in an ellipsoid", 2, 4 * GRADIENTS_UNASKED, kng.chains.Exact),
        ("pseudo-Huber and a prior", 2, ENOUGH, kng.chains.EnsembleWalk),
    ],
)
def test_the_choice_is_a_function_of_public_facts(name, dimension, num_records, expected):
    sampler, reason = default_sampler(MECHANISMS[name], dimension, num_records)
    assert type(sampler) is expected
    assert reason.startswith("Chosen because")


def test_smooth_losses_of_many_records_are_drawn_with_every_rounding_proved():
    certificate = kng.certify(robust(), *untouched(ENOUGH))
    assert certificate.sampler["type"] == "ShellDraw"
    assert certificate.assurance == "proved"
    assert "limit of proposals" not in certificate.explain()


@pytest.mark.parametrize("sampler", [None, kng.chains.Exact()])
def test_of_too_few_records_promises_and_objective_perturbation_come_first(sampler):
    text = (
        rf"there are {ENOUGH - 1} records, and without a promise {ENOUGH} are enough.*Shells\(is_even=True\), for "
        r"which 2500 are enough.*ObjectivePerturbation\(PseudoHuberLoss.*sampler=kngjax\.chains\.GradientSpace\(\)"
    )
    with pytest.raises(ValueError, match=text):
        kng.release(robust(), *untouched(ENOUGH - 1), sampler=sampler)
    # ε counts as n does.
    assert kng.certify(robust(epsilon=2.0), *untouched(ENOUGH // 2)).exact
    with pytest.raises(ValueError, match="2499 records, and 37500 are enough at this epsilon, or 2500 with"):
        kng.certify(robust(), *untouched(2499), sampler=sampler)


def test_no_float64_search_releases_a_smooth_loss():
    """In norms and of kernels that no proved draw serves, and of any number of records."""
    kernel = kng.SmoothedQuantileLoss(0.5, 0.3, kernel="gaussian")
    gaussian = kng.KNG(kernel, robust().bounds, kng.Box(-2.0, 2.0), 1.0, "replace")
    for mechanism in (robust(norm=kng.Ellipsoid(np.eye(5))), gaussian):
        for sampler in (None, kng.chains.Exact(), kng.chains.Exact(max_proposals=None)):
            with pytest.raises(ValueError, match=r"no draw with all of its roundings proved.*ObjectivePerturbation"):
                kng.release(mechanism, *untouched(10 * ENOUGH), sampler=sampler)
        with pytest.raises(ValueError, match="leave the sampler out"):
            kng.certify(mechanism, *untouched(10 * ENOUGH), sampler=kng.draws.Shells())


def test_where_the_number_of_records_is_private_a_public_one_is_stated():
    mechanism = robust("add_remove")
    with pytest.raises(ValueError, match=rf"not public here.*Shells\(least_records={ENOUGH}\).*ObjectivePerturbation"):
        kng.release(mechanism, *untouched(10 * ENOUGH))
    # The same answer whatever the number of records.
    for count in (10, 10 * ENOUGH):
        stated = kng.draws.Shells(least_records=ENOUGH)
        assert kng.certify(mechanism, *untouched(count), sampler=stated).assurance == "proved"
        with pytest.raises(ValueError, match=rf"too few records.*Shells\(least_records={ENOUGH}\)"):
            kng.release(mechanism, *untouched(count), sampler=kng.draws.Shells(least_records=ENOUGH - 1))


def test_where_the_density_hardly_varies_any_number_of_coefficients_is_drawn_exactly():
    """At least one proposal in e^12 from all of Θ is accepted, whatever the records: c‖∇ℓ‖ lies between 0 and 12."""
    mechanism, few = robust(epsilon=0.5), 20
    assert mechanism.exponent.log_range(5, few) < LITTLE_RANGE < mechanism.exponent.log_range(5, 10 * few)
    random = np.random.default_rng(0)
    release = kng.release(mechanism, random.uniform(size=(few, 4)), random.uniform(size=few), progress=False)
    assert release.certificate.exact
    assert np.all(np.abs(release.value) <= 2.0)
    with pytest.raises(ValueError, match="200 records, and 75000 are enough at this epsilon"):
        kng.certify(mechanism, *untouched(10 * few))


@pytest.mark.slow
def test_a_release_of_five_coefficients_is_proved_unasked():
    random = np.random.default_rng(0)
    x = random.uniform(size=(ENOUGH, 4))
    y = x @ np.array([1.0, -1.0, 0.5, 0.0]) + 0.3 * random.standard_normal(ENOUGH)
    release = kng.release(robust(), x, y, progress=False)
    assert release.certificate.sampler["type"] == "ShellDraw"
    np.testing.assert_allclose(release.value, [0.0, 1.0, -1.0, 0.5, 0.0], atol=0.3)


def test_a_quantile_loss_that_no_lattice_draws_is_refused_in_the_words_of_lattices():
    """Before a value is looked at, and what they say serves."""

    def certified(tau=0.5, norm=None, **weights):
        bounds = kng.Bounds(x=(0.0, 1.0), columns=2, **weights)
        mechanism = kng.KNG(kng.QuantileLoss(tau), bounds, BOX, 1.0, "replace", norm)
        return kng.certify(mechanism, *untouched(50, 2), weights=Untouched(50) if weights else None)

    chain = r".*ObjectivePerturbation\(SmoothedQuantileLoss.*sampler=kngjax\.chains\.LineGibbs\(\)"
    with pytest.raises(
        ValueError, match="Lattice serves norm=None, WeightedLInf, LInf, L1 and L2, not Ellipsoid" + chain
    ):
        certified(norm=kng.Ellipsoid(np.eye(3)))
    with pytest.raises(ValueError, match="a tau of fewer decimals" + chain):
        certified(1.0 / 3.0)
    for tau, norm in ((0.3333, None), (0.5, kng.L1()), (0.5, kng.L2())):
        assert certified(tau, norm).assurance == "proved"
    with pytest.raises(
        ValueError, match="of records with weights Lattice serves norm=None, WeightedLInf and LInf, not L2"
    ):
        certified(norm=kng.L2(), weight=2.0)
    assert certified(norm=kng.LInf(), weight=2.0).assurance == "proved"
