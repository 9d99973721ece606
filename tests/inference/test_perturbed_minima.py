"""The noise of objective perturbation, solved for draws of noise: where gradients are straight, its closed form."""

import numpy as np

from kngjax.inference.perturbed_minima import noise_of_minima
from kngjax.inference.score_laws import ScoreLaw


def law(scores):
    steps = np.linspace(-50.0, 50.0, 2001)
    return ScoreLaw(0.0, 1.0, 1.0, steps, scores(steps))


def test_of_straight_scores_it_is_the_noise_over_the_squared_curvature(fine_previews):
    """Where nδ + γδ = z with n = 30, γ = 10 the variance is that of z over 40²; a second column has a third of n."""
    rows = np.column_stack([np.ones(300), np.linspace(-1.0, 1.0, 300)])
    found = noise_of_minima(law(lambda t: 1.0 * t), rows, 30, np.diag([4.0, 9.0]), 10.0)
    expected = np.array([4.0 / 40.0**2, 9.0 / (10.0 + 10.0) ** 2])
    # Of 200 draws a variance errs by a tenth.
    np.testing.assert_allclose(np.diag(found), expected, rtol=0.25)
    assert abs(found[0, 1]) < 0.2 * np.sqrt(expected.prod())


def test_of_scores_that_reach_their_ends_it_is_larger(fine_previews):
    """Beyond |t| = 1 scores grow no more, so that the ridge alone holds what noise of deviation 30 moves."""
    rows = np.ones((50, 1))
    straight, bent = (
        noise_of_minima(law(scores), rows, 20, np.array([[900.0]]), 1.0)
        for scores in (lambda t: 1.0 * t, lambda t: np.clip(t, -1.0, 1.0))
    )
    assert bent[0, 0] > 20.0 * straight[0, 0]
