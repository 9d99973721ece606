"""Neighbours for every registered mechanism by which an attack tells its law from one with a tenth of its noise."""

import jax
import numpy as np

import kngjax as kng
from kngjax.audit import black_box
from kngjax.mechanisms.density import AbstractDensityMechanism

EPSILON, BOLD, DELTA = 1.0, 10.0, 1e-3
NUM_DRAWS, CONFIDENCE = 8000, 1.0 - 1e-6
_LINE = {"x": (-1.0, 1.0), "columns": 1, "intercept": False}
_COLUMN, _REGRESSION, _NUMBERS = kng.Bounds(**_LINE), kng.Bounds(**_LINE, y=(-1.0, 1.0)), kng.Bounds(y=(0.0, 1.0))
_BOX = kng.Box(-1.0, 1.0)


def _with_last(columns, responses, others=None):
    """Records alike, or as `others` says, but for the last one of each data set."""
    pair = []
    for place in (0, 1):
        x = None if columns is None else np.array([columns[0], columns[place]])[:, None]
        others = others if others is not None or responses is None else responses[:1]
        y = None if responses is None else np.append(others, responses[place])
        pair.append((x, y))
    return tuple(pair)


def _law(one, *arguments, pair, **named):
    return (lambda epsilon: one(*arguments, **named, epsilon=epsilon, adjacency="replace")), pair


_SIDES, _LABELS = _with_last((1.0, 1.0), (1.0, -1.0)), _with_last((1.0, 1.0), (1.0, 0.0))
# A function of ε that makes the mechanism, and neighbouring data sets, each X and y.
LAWS = {
    kng.AdaOPS: _law(kng.AdaOPS, _REGRESSION, delta=DELTA, pair=_SIDES),
    kng.AdaSSP: _law(kng.AdaSSP, _REGRESSION, delta=DELTA, pair=_SIDES),
    kng.ExponentialMechanism: _law(kng.ExponentialMechanism, kng.SquaredLoss(), _REGRESSION, _BOX, pair=_SIDES),
    kng.GeometricMechanism: _law(kng.GeometricMechanism, _NUMBERS, pair=_with_last(None, (1.0, 0.0))),
    kng.KNG: _law(kng.KNG, kng.SquaredLoss(), _REGRESSION, _BOX, pair=_SIDES),
    kng.KNormMechanism: _law(kng.KNormMechanism, _COLUMN, pair=_with_last((1.0, -1.0), None)),
    kng.ObjectivePerturbation: _law(kng.ObjectivePerturbation, kng.LogisticLoss(), _COLUMN, None, pair=_LABELS),
    kng.OutputPerturbation: _law(
        kng.OutputPerturbation, kng.LogisticLoss(), _COLUMN, regularization=100.0, delta=DELTA, pair=_LABELS
    ),
    kng.PosteriorSample: (
        lambda epsilon: kng.PosteriorSample.calibrated(_REGRESSION, 100.0, epsilon, DELTA, "replace", 2, 1),
        _SIDES,
    ),
    kng.PrivateIRLS: _law(kng.PrivateIRLS, _REGRESSION, delta=DELTA, iterations=1, pair=_SIDES),
    kng.PrivateQuantile: _law(kng.PrivateQuantile, 0.5, _NUMBERS, pair=_with_last(None, (1.0, 0.0), [0.5])),
    kng.QuantileInterval: _law(
        kng.QuantileInterval, 0.5, _NUMBERS, pair=_with_last(None, (1.0, 0.0), np.linspace(0.0, 1.0, 98))
    ),
}


@jax.jit
def _log_ratios(mechanism, thetas, first, second):
    logs = [jax.vmap(mechanism.log_density, (0, None))(thetas, data) for data in (first, second)]
    return (logs[0] - jax.nn.logsumexp(logs[0])) - (logs[1] - jax.nn.logsumexp(logs[1]))


def told_apart(mechanism, pair, claimed):
    """At least the ε by which a mechanism tells two neighbours apart: on a grid of its density, or from draws."""
    if isinstance(mechanism, AbstractDensityMechanism):
        data = [mechanism.prepare(*one) for one in pair]
        return float(np.max(np.abs(_log_ratios(mechanism, np.linspace(-1.0, 1.0, 1001)[:, None], *data))))
    settings = {"key": kng.research_key(0), "num_draws": NUM_DRAWS, "confidence": CONFIDENCE, "claimed": claimed}
    return black_box(mechanism, *pair, **settings).epsilon_lower_bound


def why_not_private(one, law=None):
    """What an attack says against a mechanism's claim, or against the attack itself; None where nothing is."""
    if law is None and one not in LAWS:
        return (
            f"{one.__name__} is registered as a mechanism, and nothing attacks its law: add a row to LAWS in "
            "tests/laws.py, how it is made and two neighbouring data sets that it tells apart best"
        )
    make, pair = law or LAWS[one]
    fair, bold = make(EPSILON), make(BOLD)
    claimed = fair.guarantee_for(1)
    if (found := told_apart(fair, pair, claimed)) > claimed.at(delta=claimed.delta) + 1e-9:
        return f"{one.__name__} claims {claimed.explain()}, and spends at least epsilon = {found:.3g}"
    if (found := told_apart(bold, pair, claimed)) <= claimed.at(delta=claimed.delta):
        return f"the row of {one.__name__} in LAWS is too weak: a tenth of the noise shows epsilon = {found:.3g} alone"
    return None
