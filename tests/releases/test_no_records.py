"""Under add_remove no refusal tells no record from one: both are released, by every sampler.

`tests/draws/test_certificates.py` has what is drawn with every rounding in its proof.
"""

import numpy as np
import pytest

import kngjax as kng
from kngjax.data.records import Records
from kngjax.releases.float64_draws import with_a_row
from tests.made_once import MadeOnce

BOUNDS = kng.Bounds(x=([0.0, 0.0], [1.0, 1.0]), y=(0.0, 1.0))
COLUMNS = kng.Bounds(x=([0.0, 0.0], [1.0, 1.0]), intercept=False)
ONE = kng.Bounds(x=([0.0], [1.0]), intercept=False)
NUMBERS, BOX = kng.Bounds(y=(0.0, 1.0)), kng.Box(-2.0, 2.0)
PARTS = (BOUNDS, BOX, 1.0, "add_remove")
NEIGHBOURS = "add_remove"


def searched(loss):
    return kng.ObjectivePerturbation(loss, BOUNDS, BOX, 1.0, NEIGHBOURS, kng.Ellipsoid(np.eye(3)))


CASES = MadeOnce(
    {
        "quantiles": lambda: (kng.PrivateQuantile([0.25, 0.5], NUMBERS, 1.0, NEIGHBOURS), None),
        "median in one dimension": lambda: (
            kng.KNG(kng.QuantileLoss(0.5), NUMBERS, BOX, 1.0, NEIGHBOURS),
            kng.chains.Exact(),
        ),
    }
)
COMPILED_LONG = MadeOnce(
    {
        "geometric median of one column": lambda: (
            kng.KNG(kng.GeometricMedianLoss(), ONE, kng.Box([-1.0], [1.0]), 1.0, NEIGHBOURS),
            kng.chains.EnsembleWalk(num_sweeps=8),
        ),
        "objective in real numbers": lambda: (searched(kng.PseudoHuberLoss(0.5)), None),
        "squared in real numbers": lambda: (kng.KNG(kng.SquaredLoss(), *PARTS), kng.chains.Exact()),
        "slices": lambda: (kng.KNG(kng.SquaredLoss(), *PARTS), kng.chains.SliceGibbs(num_sweeps=8)),
        "median by lines": lambda: (kng.KNG(kng.QuantileLoss(0.5), *PARTS), kng.chains.LineGibbs(num_sweeps=8)),
        "pseudo-Huber": lambda: (kng.KNG(kng.PseudoHuberLoss(0.5), *PARTS), kng.chains.EnsembleWalk(num_sweeps=8)),
        "geometric median": lambda: (
            kng.KNG(kng.GeometricMedianLoss(), COLUMNS, BOX, 1.0, NEIGHBOURS),
            kng.chains.EnsembleWalk(num_sweeps=8),
        ),
    }
)


@pytest.mark.parametrize("name", [*CASES, *(pytest.param(name, marks=pytest.mark.slow) for name in COMPILED_LONG)])
def test_no_record_is_released_as_one_is(name):
    mechanism, sampler = (CASES if name in CASES else COMPILED_LONG)[name]
    certificates = []
    for count in (0, 1):
        X, y = np.full((count, mechanism.bounds.columns), 0.5), np.ones(count)
        if not mechanism.loss.has_response:
            y = None
        elif mechanism.bounds.columns == 0:
            X = None
        released = kng.release(mechanism, X, y, sampler=sampler, progress=False)
        assert released.value.shape == (mechanism.dimension,)
        assert released.certificate.assurance != "proved"
        certificates.append(released.certificate)
    # Nor by anything that is said of them.
    assert certificates[0] == certificates[1]


@pytest.mark.slow
@pytest.mark.parametrize("loss", [kng.QuantileLoss(0.3), kng.PseudoHuberLoss(0.5), kng.LogisticLoss()])
@pytest.mark.parametrize("kind", [kng.KNG, kng.ExponentialMechanism])
def test_the_row_of_zeros_that_samplers_get_changes_no_density(kind, loss):
    mechanism = kind(loss, *PARTS)
    empty = Records(np.empty((0, 3)), np.empty(0))
    padded = with_a_row(mechanism, empty)
    assert padded.num_records == 1
    values = [float(mechanism.log_density(np.array(theta), padded)) for theta in ([0.0, 0.0, 0.0], [1.0, -1.5, 0.5])]
    assert values[0] == pytest.approx(values[1], abs=1e-12)
    records = Records(np.ones((2, 3)), np.ones(2))
    assert with_a_row(mechanism, records) is records


def test_a_list_and_a_file_without_a_row_are_no_record_too(tmp_path):
    mechanism = kng.KNG(kng.SquaredLoss(), *PARTS)
    assert kng.release(mechanism, [], []).value.shape == (3,)
    (tmp_path / "empty.csv").write_text("a,b,y\n")
    assert kng.release(mechanism, kng.stream(tmp_path / "empty.csv", response="y")).value.shape == (3,)


def test_dropped_records_leave_none():
    bounds = kng.Bounds(x=([0.0, 0.0], [1.0, 1.0]), y=(0.0, 1.0), missing="drop")
    mechanism = kng.KNG(kng.SquaredLoss(), bounds, BOX, 1.0, NEIGHBOURS)
    assert kng.release(mechanism, np.full((3, 2), np.nan), np.ones(3)).value.shape == (3,)
