"""Small slips of norms, domains, losses and sensitivities, and of the records that they are about."""

from tests.audit.slips.base import slip

NORMS_AND_DOMAINS = (
    slip(
        "l1 ball from as many exponentials as coordinates",
        "geometry/norms",
        "jnp.sum(exponentials, axis=-1, keepdims=True)",
        "jnp.sum(exponentials[..., :dimension], axis=-1, keepdims=True)",
        "geometry/test_norms.py::test_draws_are_uniform_in_the_ball",
    ),
    slip(
        "l2 ball from a sphere one dimension short",
        "geometry/norms",
        "(*shape, dimension + 2))\n",
        "(*shape, dimension + 1))\n",
        "geometry/test_norms.py::test_draws_are_uniform_in_the_ball",
    ),
    slip(
        "radius of K-norm noise is Gamma(d) and not Gamma(d + 1)",
        "geometry/norms",
        "jax.random.exponential(radius_key, (*shape, dimension + 1))",
        "jax.random.exponential(radius_key, (*shape, dimension))",
        "geometry/test_norms.py::test_k_norm_noise_has_the_k_norm_law",
    ),
    slip(
        "radius and direction of K-norm noise from one key",
        "geometry/norms",
        "norm.draw_from_ball(ball_key, shape, dimension)",
        "norm.draw_from_ball(radius_key, shape, dimension)",
        "mechanisms/test_independent_noises.py",
    ),
    slip(
        "volume of a weighted box without its factor 2",
        "geometry/norms",
        "jnp.sum(jnp.log(2.0 * jnp.asarray(self.weights)))",
        "jnp.sum(jnp.log(jnp.asarray(self.weights)))",
        "geometry/test_norms.py::test_volume_is_the_share_of_a_box",
    ),
    slip(
        "an ellipsoid's norm over a box at its first corner alone",
        "geometry/norms",
        "return jnp.max(jnp.sum((signs @ scaled) * signs, axis=1))",
        "return jnp.sum(scaled)",
        "sensitivity/test_gradients.py::test_no_gradient_change_exceeds_the_sensitivity_in_any_norm",
    ),
    slip(
        "reach of an l2 ball in the l_inf norm",
        "geometry/domains",
        "reach = self.radius * (scale * self.norm.dual(sides / scale))",
        "reach = self.radius * largest",
        "geometry/test_domains.py::test_linear_interval_against_brute_force",
    ),
    slip(
        "reach of a box for the upper bounds of x alone",
        "geometry/domains",
        "for a in (lower, upper) for b in (theta_lower, theta_upper)",
        "for a in (upper,) for b in (theta_lower, theta_upper)",
        "geometry/test_domains.py::test_linear_interval_against_brute_force",
    ),
    slip(
        "a base measure with point masses",
        "geometry/base_measures",
        "if has_points or self.base.support is None",
        "if self.base.support is None",
        "geometry/test_base_measures.py::test_improper_and_discrete_laws_are_refused",
    ),
    slip(
        "density of a uniform ball for radius 1",
        "geometry/balls",
        "self.norm().log_volume(dimension) + dimension * jnp.log(self.radius)",
        "self.norm().log_volume(dimension)",
        "geometry/test_base_measures.py::test_the_density_is_normalised_in_the_plane",
    ),
)

LOSSES = (
    slip(
        "score of the squared loss with one end of y",
        "losses/squared",
        "predictor[1] - response[0]",
        "predictor[1] - response[1]",
        "losses/test_losses.py::test_declared_intervals_hold_what_a_search_finds",
    ),
    slip(
        "score of the check loss in [-tau, tau]",
        "losses/quantile",
        '"""∞: the score jumps at η = y, so no number bounds its slope."""\n        return jnp.inf\n\n'
        "    def score_interval(self, predictor: Interval, response: Interval | None) -> Interval:\n"
        "        return -jnp.asarray(self.tau), 1.0 - jnp.asarray(self.tau)",
        '"""∞: the score jumps at η = y, so no number bounds its slope."""\n        return jnp.inf\n\n'
        "    def score_interval(self, predictor: Interval, response: Interval | None) -> Interval:\n"
        "        return -jnp.asarray(self.tau), jnp.asarray(self.tau)",
        "losses/test_losses.py::test_declared_intervals_hold_what_a_search_finds",
    ),
    slip(
        "the least Poisson loss at an end of the predictor",
        "losses/poisson",
        "return jnp.min(jnp.stack(troughs)), jnp.max(jnp.stack(ends))",
        "return jnp.min(jnp.stack(ends)), jnp.max(jnp.stack(ends))",
        "losses/test_losses.py::test_declared_intervals_hold_what_a_search_finds",
        "sensitivity/test_gradients.py::test_scores_and_values_stay_in_their_declared_intervals",
    ),
    slip(
        "curvature of the logistic loss 1/5",
        "losses/logistic",
        "return 0.25",
        "return 0.2",
        "sensitivity/test_gradients.py::test_scores_rise_no_faster_than_the_declared_curvature",
    ),
    slip(
        "one noise for all responses",
        "data/dither",
        "noise = float(width) * (uniform - 0.5)",
        "noise = float(width) * (uniform[:1] - 0.5)",
        "data/test_dither.py::test_the_noise_is_uniform_new_and_each_records_own",
    ),
    slip(
        "peak of the logistic kernel 1/5",
        "losses/kernels",
        "peak: ClassVar[float] = 0.25",
        "peak: ClassVar[float] = 0.2",
        "sensitivity/test_gradients.py::test_scores_rise_no_faster_than_the_declared_curvature",
    ),
    slip(
        "a parabola for the logistic kernel that bends half as much",
        "losses/kernels",
        "return CurvatureFacts(-half, bend, rise / reach, jnp.full_like(t, 0.0962251))",
        "return CurvatureFacts(-half, 0.5 * bend, rise / reach, jnp.full_like(t, 0.0962251))",
        "losses/test_curvature_facts.py::test_the_logarithm_of_the_second_derivative_lies_above_a_parabola_everywhere",
    ),
    slip(
        "clipping at twice Huber's threshold",
        "losses/huber",
        "return jnp.clip(jnp.asarray(residual), -self.k, self.k)",
        "return jnp.clip(jnp.asarray(residual), -2.0 * self.k, 2.0 * self.k)",
        "losses/test_losses.py::test_values_are_the_closed_forms",
    ),
    slip(
        "tangents that begin beyond the interval",
        "losses/extended",
        "return jnp.clip(jnp.asarray(predictor), self.lower, self.upper)",
        "return jnp.clip(jnp.asarray(predictor), 2.0 * self.lower, 2.0 * self.upper)",
        "losses/test_losses.py::test_a_loss_continued_by_its_tangents",
    ),
)

SENSITIVITIES = (
    slip(
        "an exchange counts as one record",
        "sensitivity/change_sets",
        "    if adjacency is Adjacency.REPLACE:\n        return largest - smallest\n",
        "",
        "sensitivity/test_gradients.py::test_no_gradient_change_exceeds_the_sensitivity_in_any_norm",
    ),
    slip(
        "oscillation of the loss halved twice under add_remove",
        "sensitivity/gradients",
        "(1.0 if adjacency is Adjacency.REPLACE else 0.5)",
        "(1.0 if adjacency is Adjacency.REPLACE else 0.25)",
        "sensitivity/test_gradients.py::test_the_exponential_mechanism_covers_every_oscillation",
    ),
    slip(
        "joint quantiles with the largest gap between levels",
        "sensitivity/gradients",
        "2.0 * (1.0 - jnp.min(jnp.diff(ends)))",
        "2.0 * (1.0 - jnp.max(jnp.diff(ends)))",
        "mechanisms/test_private_quantile.py::test_sensitivities_by_hand",
    ),
    slip(
        "longest record by its first vertex",
        "sensitivity/gradients",
        "jnp.max(jnp.sum(jnp.square(jnp.asarray(block)), axis=1))",
        "jnp.sum(jnp.square(jnp.asarray(block)), axis=1)[0]",
        "sensitivity/test_gradients.py::test_no_record_has_a_larger_hessian_than_lambda",
    ),
    slip(
        "changes of one end of the score",
        "sensitivity/change_sets",
        "largest = jnp.maximum(jnp.abs(first), jnp.abs(second))",
        "largest = jnp.abs(first)",
        "sensitivity/test_change_sets.py::test_the_points_have_the_hull_of_all_changes",
    ),
    slip(
        "a parabola's range by its ends alone",
        "losses/squared",
        "for x in (lower, upper, *turns)",
        "for x in (lower, upper)",
        "sensitivity/test_pointwise.py::test_the_closed_form_for_symmetric_bounds",
    ),
    slip(
        "Frobenius norm of an exchange without its √2",
        "sensitivity/moments",
        "return jnp.sqrt(2.0) * jnp.square(x), 2.0 * x * y",
        "return jnp.square(x), 2.0 * x * y",
        "sensitivity/test_moments.py::test_moments_change_by_no_more_and_that_much",
    ),
)

RECORDS = (
    slip(
        "y that is not clipped",
        "data/records",
        "response = np.clip(response, np.asarray(bounds.y_lower), np.asarray(bounds.y_upper))",
        "pass",
        "data/test_records.py::test_every_table_gives_the_same_clipped_records_with_the_intercept_first",
    ),
    slip(
        "a hull that pulls nobody in",
        "data/records",
        "clipped[:] = bounds.hull.move_inside(clipped)",
        "pass",
        "data/test_records.py",
        "audit/test_joint_draws.py::test_a_hull_through_points_of_a_curve_is_seen_where_records_are_not_moved_into_it",
    ),
    slip(
        "infinite cells are numbers",
        "data/cells",
        "return nearest if math.isfinite(nearest) else math.nan",
        "return nearest",
        "data/test_cells.py::test_all_else_is_no_number",
    ),
    slip(
        "a level that nobody declared is the first",
        "data/cells",
        "lambda cell: indices.get(_key(cell), -1)",
        "lambda cell: indices.get(_key(cell), 0)",
        "data/test_cells.py",
    ),
)

SLIPS = NORMS_AND_DOMAINS + LOSSES + SENSITIVITIES + RECORDS
