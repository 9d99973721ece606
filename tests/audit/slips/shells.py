"""Small slips of KNG with smooth losses in the space of gradients, every rounding of which is proved."""

from tests.audit.slips.base import slip

_DRAWS, _SCORES = "mechanisms/test_shell_draws.py::", "losses/test_smooth_scores.py::"
_SHELLS = "samplers/grid/shells/"
_SOLUTIONS, _CERTIFICATE = _SHELLS + "test_solutions.py::", _SHELLS + "test_certificate.py::"
_STEEP = _SCORES + "test_steepness_and_bends_bound_the_third_derivative_and_are_nearly_reached"
_TANGENTS = _SCORES + "test_tangents_are_below_the_log_of_weights"
_MEANS = _SCORES + "test_means_are_below_all_means_and_near_to_the_least"
_NEAR = _SCORES + "test_scores_and_weights_are_as_near_as_they_say"

SLIPS = (
    slip(
        "residuals without the error of predictors",
        "losses/smooth_scores",
        "np.asarray((error + 7.0 * UNIT * k) * _WIDER)",
        "np.asarray(7.0 * UNIT * k * _WIDER)",
        _SHELLS + "test_records.py::test_balls_contain_what_cancels_in_residuals",
    ),
    slip(
        "the steepness of pseudo-Huber halved",
        "losses/smooth_scores",
        "return 1.5 / self.threshold * _WIDER",
        "return 0.75 / self.threshold * _WIDER",
        _STEEP,
    ),
    slip(
        "the steepness of logistic scores halved",
        "losses/smooth_scores",
        "return 1.0 / self.bandwidth * _WIDER",
        "return 0.5 / self.bandwidth * _WIDER",
        _STEEP,
    ),
    slip(
        "the largest bend of pseudo-Huber halved",
        "losses/smooth_scores",
        "return 0.85866 / self.threshold",
        "return 0.42933 / self.threshold",
        _STEEP,
    ),
    slip(
        "the largest bend of logistic scores halved",
        "losses/smooth_scores",
        "return 0.0962251 / self.bandwidth / self.bandwidth * _WIDER",
        "return 0.0481126 / self.bandwidth / self.bandwidth * _WIDER",
        _STEEP,
    ),
    slip(
        "bends of Poisson at the record alone",
        "losses/smooth_scores",
        "np.where(part < 1.5, weight * power * _WIDER, np.inf)",
        "np.where(part < 1.5, weight * _WIDER, np.inf)",
        _STEEP,
    ),
    slip(
        "the sign of the logistic third derivative",
        "losses/smooth_scores",
        "Tangents(-np.copysign(half, scaled) / h, off",
        "Tangents(np.copysign(half, scaled) / h, off",
        _TANGENTS,
    ),
    slip(
        "tangents of pseudo-Huber with half of their bend",
        "losses/smooth_scores",
        "3.0 / (k * k + nearest * nearest) * _WIDER)",
        "1.5 / (k * k + nearest * nearest) * _WIDER)",
        _TANGENTS,
    ),
    slip(
        "tangents of logistic scores with half of their bend",
        "losses/smooth_scores",
        "return Tangents(-np.copysign(half, scaled) / h, off, bend / h / h * _WIDER)",
        "return Tangents(-np.copysign(half, scaled) / h, off, 0.5 * bend / h / h * _WIDER)",
        _TANGENTS,
    ),
    slip(
        "logistic means over half of the segment",
        "losses/smooth_scores",
        "step, quotient, series = _series(reach / h * _WIDER)",
        "step, quotient, series = _series(0.5 * reach / h * _WIDER)",
        _MEANS,
    ),
    slip(
        "pseudo-Huber means over half of the segment",
        "losses/smooth_scores",
        "np.maximum(reach / k, 1e-100)",
        "np.maximum(0.5 * reach / k, 1e-100)",
        _MEANS,
    ),
    slip(
        "Poisson means over half of the segment",
        "losses/smooth_scores",
        "step, quotient, series = _series(reach)",
        "step, quotient, series = _series(0.5 * reach)",
        _MEANS,
    ),
    slip(
        "weights without the error of predictors",
        "losses/smooth_scores",
        "change = error / self.bandwidth * _WIDER + self._of_scaling",
        "change = self._of_scaling",
        _NEAR,
    ),
    slip(
        "logistic scores with half of the error of predictors",
        "losses/smooth_scores",
        "min(0.25 * error / self.bandwidth",
        "min(0.125 * error / self.bandwidth",
        _NEAR,
    ),
    slip(
        "a logarithm in the bound of determinants for every loss",
        "losses/smooth_scores",
        "        return math.inf\n\n    @abc.abstractmethod\n    def at",
        "        return 0.1\n\n    @abc.abstractmethod\n    def at",
        _SCORES + "test_changes_of_determinants_are_bounded_by_changes_of_tangents",
    ),
    slip(
        "weights that hardly change about a solution",
        "samplers/grid/shells/solutions",
        "arb(records.score.steepness) * arb(certificate.longest)",
        "arb(records.score.steepness) * arb(certificate.longest) / 2**20",
        _SOLUTIONS + "test_points_that_are_off_are_enclosed_with_the_solution",
    ),
    slip(
        "solutions that are taken for exact",
        "samplers/grid/shells/solutions",
        "arb(0, (radius * length(column)).abs_upper())",
        "arb(0, (radius * length(column) / 2**30).abs_upper())",
        _SOLUTIONS + "test_solutions_are_within_balls_of_any_number_of_digits",
    ),
    slip(
        "a Hessian that is as at the reference point",
        "samplers/grid/shells/certificate",
        "bent = 0.5 * radius.bend * square + 0.5 * self.loss",
        "bent = 0.0 * radius.bend * square + 0.5 * self.loss",
        _CERTIFICATE + "test_heights_and_floors_hold_at_points_of_the_domain",
        _CERTIFICATE + "test_heights_are_nearly_reached_where_the_hessian_changes_most",
    ),
    slip(
        "heights without the tilt",
        "samplers/grid/shells/certificate",
        "change = (best + self.slope * level + self.shift) * UPWARD",
        "change = best * UPWARD",
        _CERTIFICATE + "test_heights_and_floors_hold_at_points_of_the_domain",
        _CERTIFICATE + "test_heights_are_nearly_reached_where_the_hessian_changes_most",
    ),
    slip(
        "a smaller spread of the norm's ball",
        "samplers/grid/shells/certificate",
        "return float(np.sqrt(np.square(signs @ scaled.T).sum(axis=1)).max()) * UPWARD + rounding",
        "return float(np.sqrt(np.square(signs @ scaled.T).sum(axis=1)).min()) * UPWARD + rounding",
        _CERTIFICATE + "test_the_spread_is_at_least_that_of_random_points_of_the_ball",
    ),
    slip(
        "gradients of balls as at their middle",
        "samplers/grid/shells/records",
        "self.at(predictor, (error + moved) * UPWARD)",
        "self.at(predictor, error * UPWARD)",
        _SHELLS + "test_records.py::test_points_whose_predictors_are_moved_are_within_the_balls",
    ),
    slip(
        "a shell's mass at its outer end",
        "samplers/grid/shells/envelope",
        "core * (outer - inner) * (arb(float(height)) - arb(float(edge))).exp()",
        "core * (outer - inner) * (arb(float(height)) - 2 * arb(float(edge))).exp()",
        _DRAWS + "test_draws_of_one_coefficient_have_the_law_by_quadrature",
    ),
    slip(
        "smooth draws from fewer records on",
        "mechanisms/shell_draws",
        "enough = information >= GRADIENTS_UNASKED * _spread",
        "enough = 2 * information >= GRADIENTS_UNASKED * _spread",
        _DRAWS + "test_which_releases_take_it_is_public",
    ),
    slip(
        "losses of any width in the space of gradients",
        "mechanisms/shell_draws",
        "information >= UNITS_A_WIDTH * _widths(known, score)",
        "information >= 0 * _widths(known, score)",
        _DRAWS + "test_losses_that_bend_narrowly_are_left_to_others",
    ),
)
