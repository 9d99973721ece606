"""Records, norms and domains for boxes with floors of gradients."""

from fractions import Fraction

import numpy as np
from flint import arb

import kngjax as kng
from kngjax.draws.boxes.box_coordinates import coordinates_for
from kngjax.draws.boxes.record_sums import RecordSums
from kngjax.draws.quadratic.bodies import body_of
from kngjax.geometry.scaled_norms import ScaledNorm
from kngjax.losses.record_scores import RecordScores

LOSSES = {
    "pseudo-Huber": kng.PseudoHuberLoss(0.3),
    "Huber": kng.HuberLoss(0.4),
    "logistic": kng.LogisticLoss(),
    "Poisson": kng.PoissonLoss(),
    "expectile": kng.ExpectileLoss(0.8),
    "smoothed quantile": kng.SmoothedQuantileLoss(0.3, 0.2),
}
SIZE = 1.55
KINDS = ("maximum", "sum", "length")
DOMAINS = {"box": kng.Box(-1.1, 1.4), "l1": kng.L1Ball(SIZE), "l2": kng.L2Ball(SIZE), "outside": kng.Box(1.1, 1.5)}


def problem(loss, kind, domain="box", dimension=2, count=50, scale=Fraction(1, 9)):
    """Sums, norm and Θ, with collinear columns."""
    generator = np.random.default_rng(dimension)
    x = generator.uniform(-1.0, 1.0, (count, dimension))
    x[:, -1] = 0.1 * x[:, -1] + 0.9 * x[:, 0]
    y = np.clip(0.5 + 0.3 * x[:, 0] + 0.3 * generator.standard_normal(count), 0.0, 2.0)
    y = (y > 0.5).astype(float) if loss == "logistic" else y
    body = body_of(DOMAINS[domain].exact_shape(dimension))
    scores = LOSSES[loss].verified_score().extended((Fraction(-3 * dimension), Fraction(3 * dimension)))
    gauge = ScaledNorm(kind, tuple(Fraction(1 + j, 3) for j in range(dimension)), scale)
    with np.errstate(all="ignore"):
        sums = RecordSums(x, RecordScores(scores, y), coordinates_for(x, RecordScores(scores, y), gauge, body))
    return sums, gauge, body


def levels(sums, gauge, points):
    """‖G‖ at points of u, by the records in balls."""
    return [gauge(sums.gradient_in_balls(sums.coordinates.places([arb(one) for one in u]))) for u in points.tolist()]
