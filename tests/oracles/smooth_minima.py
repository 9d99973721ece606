"""Objectives with smooth losses, and their minimisers by a computation of their own."""

from fractions import Fraction

import numpy as np
from flint import arb, arb_mat

import kngjax as kng
from kngjax.core.balls import ball_of
from kngjax.data.records import Records
from kngjax.draws.minima.newton_searches import float_search
from kngjax.draws.minima.smooth_objectives import Objective
from kngjax.losses.verified_scores import TangentScore

LOSSES = {
    "pseudo-Huber": kng.PseudoHuberLoss(0.7),
    "Huber": kng.HuberLoss(0.3),
    "logistic": kng.LogisticLoss(),
    "smoothed": kng.SmoothedQuantileLoss(0.3, 0.2),
    "expectile": kng.ExpectileLoss(0.8),
}


def made(name, number=60, dimension=3, seed=0, scale=1.0, ridge=Fraction(1, 3)):
    """An objective and the scores of its loss, by name."""
    generator = np.random.default_rng(seed)
    x = generator.uniform(-1.0, 1.0, (number, dimension)) * scale
    y = generator.normal(size=number) + x.sum(axis=1)
    if name == "logistic":
        y = (y > 0) * 1.0
    scores = LOSSES[name].verified_score()
    scores = TangentScore(scores, Fraction(-2), Fraction(2)) if name == "expectile" else scores
    return Objective.of(Records(x, y), scores, ridge, Fraction(dimension) * Fraction(np.max(scale)) ** 2 * 2)


def true_gradient(objective, theta, tilt):
    """∇J in balls, record by record, without a matrix."""
    scores = objective.scores.score
    total = [ball_of(objective.ridge) * one + b for one, b in zip(theta, tilt, strict=True)]
    for row, y in zip(objective.x.tolist(), objective.scores.y.tolist(), strict=True):
        predictor = sum((arb(x) * one for x, one in zip(row, theta, strict=True)), arb(0))
        score = scores.ball(predictor, Fraction(y))
        total = [one + score * arb(x) for one, x in zip(total, row, strict=True)]
    return total


def refined(objective, tilt, steps=9):
    """The minimiser by Newton's method with 300 digits: middles alone, so a computation of its own."""
    theta = [arb(one) for one in float_search(objective, np.array([float(b) for b in tilt])).tolist()]
    for _ in range(steps):
        gradient = [one.mid() for one in true_gradient(objective, theta, tilt)]
        hessian = objective.slopes(np.array([float(one) for one in theta]), np.zeros(len(theta)))[0]
        hessian = hessian + float(objective.ridge) * np.eye(len(theta))
        step = arb_mat(hessian.tolist()).solve(arb_mat([[one] for one in gradient]))
        theta = [(one - part[0]).mid() for one, part in zip(theta, step.tolist(), strict=True)]
    assert max(float(abs(one)) for one in true_gradient(objective, theta, tilt)) < 1e-60
    return theta
