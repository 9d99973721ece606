"""Small slips of intervals by family: of AdaSSP, means, output perturbation and posteriors."""

from tests.audit.slips.base import slip

_FAMILIES = "inference/test_errors_by_family.py::"
_HOLD = "hold_the_estimate_without_privacy_as_often_as_they_say"
_COST = f"{_FAMILIES}test_everything_together_costs_the_epsilon_of_the_mechanism_by_one_debit"

SLIPS = (
    slip(
        "half the noise of X'X",
        "mechanisms/released_moments",
        "noise = self.on_matrix * 0.5 *",
        "noise = self.on_matrix * 0.25 *",
        f"{_FAMILIES}test_noise_of_each_moment_is_drawn_as_it_was",
    ),
    slip(
        "half the noise of X'y",
        "mechanisms/released_moments",
        "height * self.on_moment * to_own)",
        "0.5 * height * self.on_moment * to_own)",
        f"{_FAMILIES}test_moments_less_their_noise_{_HOLD}",
    ),
    slip(
        "moments of responses about zero",
        "mechanisms/released_moments",
        "moment, float(self.units.y_middle),",
        "moment, 0.0 * float(self.units.y_middle),",
        f"{_FAMILIES}test_moments_less_their_noise_{_HOLD}",
    ),
    slip(
        "half of the noise that depends on the curvature",
        "mechanisms/gradient_noise",
        "* normals / np.sqrt(self.precision)",
        "* normals / (2.0 * np.sqrt(self.precision))",
        f"{_FAMILIES}test_quantiles_of_the_error_{_HOLD}",
    ),
    slip(
        "half of the noise of a mean",
        "mechanisms/gradient_noise",
        "research_key(seed), self.rate, (most,)",
        "research_key(seed), 2.0 * self.rate, (most,)",
        f"{_FAMILIES}test_with_next_to_no_noise_intervals_of_means_are_those_without_privacy_and_noise_widens_them",
    ),
    slip(
        "noise of output perturbation as of a posterior",
        "mechanisms/output_perturbation",
        '"identity": 2, "hessian": 1, "hessian_squared": 0}\n        return NormalNoise',
        '"identity": 1, "hessian": 1, "hessian_squared": 0}\n        return NormalNoise',
        f"{_FAMILIES}test_quantiles_of_the_error_{_HOLD}",
    ),
    slip(
        "the exponential mechanism without its factor 2",
        "mechanisms/exponential",
        "rate = float(self.epsilon) / (2.0 * float(self.sensitivity_value(dimension)))\n        return NormalNoise",
        "rate = float(self.epsilon) / float(self.sensitivity_value(dimension))\n        return NormalNoise",
        f"{_FAMILIES}test_the_exponential_mechanism_is_normal_with_the_variance_that_quadrature_gives",
    ),
    slip(
        "deviations of records in units of half their largest",
        "inference/scores_alone",
        "return np.maximum(largest * largest,",
        "return np.maximum(0.25 * largest * largest,",
        f"{_FAMILIES}test_squares_of_records_at_the_mean_are_by_themselves_and_in_their_units",
    ),
    slip(
        "the scale of the settings where another was published",
        "mechanisms/ada_ops",
        "if published:",
        "if not published:",
        f"{_FAMILIES}test_errors_of_ada_ops_are_normal_with_the_scale_that_is_published",
    ),
    slip(
        "bounds of products that are half as wide beside published moments",
        "inference/scores_alone",
        "Block(np.minimum(least, 0.0), np.maximum(most, 0.0))",
        "Block(np.minimum(least, 0.0), np.maximum(most, 0.0) / 2.0)",
        f"{_FAMILIES}test_no_record_moves_the_sums_by_more_than_the_noise_hides_and_one_by_as_much",
    ),
    slip(
        "something published that the certificate does not name",
        "releases/release",
        'if sorted(published) != certificate.sampler.get("published", []):',
        'if sorted(published) < certificate.sampler.get("published", []):',
        f"{_FAMILIES}test_a_release_of_ada_ssp_keeps_the_moments_that_it_is_made_of_and_nothing_else",
    ),
    slip(
        "the estimate at the whole ε",
        "inference/makings",
        "point = mechanism.proved_at(first)",
        "point = mechanism",
        _COST,
    ),
)
