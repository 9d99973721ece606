"""Small slips in privacy-critical code, each with the default tests that must see it: data for `plant_slips`."""

from typing import NamedTuple


class Slip(NamedTuple):
    """A slip. **Arguments:** `old`: exists once in `file`, and becomes `new`. `tests`: of which one must fail."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


def _slip(name: str, file: str, old: str, new: str, *tests: str) -> Slip:
    return Slip(name, f"kngjax/{file}.py", old, new, tuple(f"tests/{test}" for test in tests))


_KEYS = "test_independent_noises.py"
_COUNTS = "test_private_counts.py"
_BITS = "test_source_of_bits.py"
_PARTS = "test_parts_of_budgets.py"

_NORMS_AND_DOMAINS = (
    _slip(
        "l1 ball from as many exponentials as coordinates",
        "norms",
        "jnp.sum(exponentials, axis=-1, keepdims=True)",
        "jnp.sum(exponentials[..., :dimension], axis=-1, keepdims=True)",
        "test_norms.py::test_draws_are_uniform_in_the_ball",
    ),
    _slip(
        "l2 ball from a sphere one dimension short",
        "norms",
        "(*shape, dimension + 2))\n",
        "(*shape, dimension + 1))\n",
        "test_norms.py::test_draws_are_uniform_in_the_ball",
    ),
    _slip(
        "radius of K-norm noise is Gamma(d) and not Gamma(d + 1)",
        "norms",
        "jax.random.exponential(radius_key, (*shape, dimension + 1))",
        "jax.random.exponential(radius_key, (*shape, dimension))",
        "test_norms.py::test_k_norm_noise_has_the_k_norm_law",
    ),
    _slip(
        "radius and direction of K-norm noise from one key",
        "norms",
        "norm.draw_from_ball(ball_key, shape, dimension)",
        "norm.draw_from_ball(radius_key, shape, dimension)",
        _KEYS,
    ),
    _slip(
        "volume of a weighted box without its factor 2",
        "norms",
        "jnp.sum(jnp.log(2.0 * jnp.asarray(self.weights)))",
        "jnp.sum(jnp.log(jnp.asarray(self.weights)))",
        "test_norms.py::test_volume_is_the_share_of_a_box",
    ),
    _slip(
        "an ellipsoid's norm over a box at its first corner alone",
        "norms",
        "return jnp.max(jax.vmap(lambda sign: self(sign * half_widths))(signs))",
        "return self(half_widths)",
        "test_sensitivity.py::test_no_gradient_change_exceeds_the_sensitivity_in_any_norm",
    ),
    _slip(
        "reach of an l2 ball in the l_inf norm",
        "domains",
        "reach = self.radius * (scale * jnp.linalg.norm(sides / scale))",
        "reach = self.radius * largest",
        "test_domains.py::test_linear_interval_against_brute_force",
    ),
    _slip(
        "reach of a box for the upper bounds of x alone",
        "domains",
        "for a in (lower, upper) for b in (theta_lower, theta_upper)",
        "for a in (upper,) for b in (theta_lower, theta_upper)",
        "test_domains.py::test_linear_interval_against_brute_force",
    ),
    _slip(
        "a base measure with point masses",
        "domains",
        "if has_points or self.base.support is None",
        "if self.base.support is None",
        "test_base_measures.py::test_improper_and_discrete_laws_are_refused",
    ),
    _slip(
        "density of a uniform ball for radius 1",
        "_balls",
        "self.norm().log_volume(dimension) + dimension * jnp.log(self.radius)",
        "self.norm().log_volume(dimension)",
        "test_base_measures.py::test_the_density_is_normalised_in_the_plane",
    ),
)

_LOSSES = (
    _slip(
        "score of the squared loss with one end of y",
        "losses/squared",
        "predictor[1] - response[0]",
        "predictor[1] - response[1]",
        "test_losses.py::test_declared_intervals_hold_what_a_search_finds",
    ),
    _slip(
        "score of the check loss in [-tau, tau]",
        "losses/quantile",
        '"""None: the score jumps at η = y, so no number bounds its slope."""\n        return jnp.inf\n\n'
        "    def score_interval(self, predictor: Interval, response: Interval | None) -> Interval:\n"
        "        return -jnp.asarray(self.tau), 1.0 - jnp.asarray(self.tau)",
        '"""None: the score jumps at η = y, so no number bounds its slope."""\n        return jnp.inf\n\n'
        "    def score_interval(self, predictor: Interval, response: Interval | None) -> Interval:\n"
        "        return -jnp.asarray(self.tau), jnp.asarray(self.tau)",
        "test_losses.py::test_declared_intervals_hold_what_a_search_finds",
    ),
    _slip(
        "the least Poisson loss at an end of the predictor",
        "losses/poisson",
        "return jnp.min(jnp.stack(troughs)), jnp.max(jnp.stack(ends))",
        "return jnp.min(jnp.stack(ends)), jnp.max(jnp.stack(ends))",
        "test_losses.py::test_declared_intervals_hold_what_a_search_finds",
        "test_sensitivity.py::test_scores_and_values_stay_in_their_declared_intervals",
    ),
    _slip(
        "curvature of the logistic loss 1/5",
        "losses/logistic",
        "return 0.25",
        "return 0.2",
        "test_sensitivity.py::test_scores_rise_no_faster_than_the_declared_curvature",
    ),
    _slip(
        "clipping at twice Huber's threshold",
        "losses/huber",
        "return jnp.clip(jnp.asarray(residual), -self.k, self.k)",
        "return jnp.clip(jnp.asarray(residual), -2.0 * self.k, 2.0 * self.k)",
        "test_losses.py::test_values_are_the_closed_forms",
    ),
    _slip(
        "tangents that begin beyond the interval",
        "losses/extended",
        "return jnp.clip(jnp.asarray(predictor), self.lower, self.upper)",
        "return jnp.clip(jnp.asarray(predictor), 2.0 * self.lower, 2.0 * self.upper)",
        "test_losses.py::test_a_loss_continued_by_its_tangents",
    ),
)

_SENSITIVITIES = (
    _slip(
        "an exchange counts as one record",
        "sensitivity",
        "    if adjacency is Adjacency.REPLACE:\n        return largest - smallest\n",
        "",
        "test_sensitivity.py::test_no_gradient_change_exceeds_the_sensitivity_in_any_norm",
    ),
    _slip(
        "oscillation of the loss halved twice under add_remove",
        "sensitivity",
        "(1.0 if adjacency is Adjacency.REPLACE else 0.5)",
        "(1.0 if adjacency is Adjacency.REPLACE else 0.25)",
        "test_sensitivity.py::test_the_exponential_mechanism_covers_every_oscillation",
    ),
    _slip(
        "joint quantiles with the largest gap between levels",
        "sensitivity",
        "2.0 * (1.0 - jnp.min(jnp.diff(ends)))",
        "2.0 * (1.0 - jnp.max(jnp.diff(ends)))",
        "test_private_quantile.py::test_sensitivities_by_hand",
    ),
    _slip(
        "longest record by its first vertex",
        "sensitivity",
        "jnp.max(jnp.sum(jnp.square(jnp.asarray(block)), axis=1))",
        "jnp.sum(jnp.square(jnp.asarray(block)), axis=1)[0]",
        "test_sensitivity.py::test_no_record_has_a_larger_hessian_than_lambda",
    ),
    _slip(
        "changes of one end of the score",
        "sensitivity_sets",
        "largest = jnp.maximum(jnp.abs(first), jnp.abs(second))",
        "largest = jnp.abs(first)",
        "test_sensitivity_sets.py::test_the_points_have_the_hull_of_all_changes",
    ),
    _slip(
        "a parabola's range by its ends alone",
        "pointwise",
        "for x in (lower, upper, *turns)",
        "for x in (lower, upper)",
        "test_pointwise.py::test_the_closed_form_for_symmetric_bounds",
    ),
    _slip(
        "Frobenius norm of an exchange without its √2",
        "moments",
        "return jnp.sqrt(2.0) * jnp.square(x), 2.0 * x * y",
        "return jnp.square(x), 2.0 * x * y",
        "test_moments.py::test_moments_change_by_no_more_and_that_much",
    ),
)

_MECHANISMS = (
    _slip(
        "ε/Δ in place of ε/(2Δ)",
        "mechanisms/base",
        "rate = self.epsilon / (2.0 * self.sensitivity_value(dimension))",
        "rate = self.epsilon / self.sensitivity_value(dimension)",
        "test_minikng.py::test_kng_on_the_squared_loss",
    ),
    _slip(
        "range of a record's loss halved in a chain's promise",
        "mechanisms/exponential",
        "self.domain, Adjacency.REPLACE, dimension)",
        "self.domain, Adjacency.ADD_REMOVE, dimension)",
        "samplers/test_promises.py",
    ),
    _slip(
        "each of several quantiles at the whole ε",
        "mechanisms/private_quantile",
        "return self._part / (2.0 *",
        "return self.epsilon / (2.0 *",
        _PARTS,
    ),
    _slip(
        "several quantiles by parts that round up",
        "mechanisms/private_quantile",
        "self.epsilon / self.dimension * (1.0 - 2.0**-52)",
        "self.epsilon / self.dimension * (1.0 + 2.0**-52)",
        "test_private_quantile.py::test_the_budget_of_all_quantiles_is_epsilon",
    ),
    _slip(
        "noise of X'y with the key of the smallest eigenvalue's",
        "mechanisms/ada_ssp",
        "on_moment * jax.random.normal(keys[1]",
        "on_moment * jax.random.normal(keys[0]",
        _KEYS,
    ),
    _slip(
        "AdaSSP's shares without their root",
        "mechanisms/ada_ssp",
        "(shift * jnp.sqrt(jnp.asarray(self.shares)))",
        "(shift * jnp.asarray(3.0 * self.shares))",
        "test_ada_ssp.py::test_the_joint_law_of_the_three_parts_spends_delta_and_no_more",
    ),
    _slip(
        "AdaOPS calibrated at δ without its failures",
        "mechanisms/ada_ops",
        "renyi_budget(epsilon, (1.0 - 2.0 * self.failure_share) * delta)",
        "renyi_budget(epsilon, delta)",
        "test_ada_ops.py::test_the_composition_spends_delta_and_no_more",
    ),
    _slip(
        "AdaOPS exchanges a record at the whole ε",
        "mechanisms/ada_ops",
        "epsilon = 0.5 * epsilon\n",
        "epsilon = 1.0 * epsilon\n",
        _PARTS,
    ),
    _slip(
        "output noise with the key of the tilt",
        "mechanisms/objective_perturbation",
        "k_norm_noise(L2(), output_key,",
        "k_norm_noise(L2(), tilt_key,",
        _KEYS,
    ),
    _slip(
        "the ridge buys from the whole ε",
        "mechanisms/objective_perturbation",
        "jnp.expm1((1.0 - self.noise_share) * self._objective_epsilon)",
        "jnp.expm1((1.0 - self.noise_share) * self.epsilon)",
        _PARTS,
    ),
    _slip(
        "noise for one of two errors of the search",
        "mechanisms/objective_perturbation",
        "self.ridge(dimension) / (2.0 * self.search_tolerance(dimension))",
        "self.ridge(dimension) / self.search_tolerance(dimension)",
        _PARTS,
    ),
    _slip(
        "a minimiser taken for exact",
        "mechanisms/output_perturbation",
        "(self._gradient_change(dimension) + 2.0 * self.tolerance(dimension)) / ridge",
        "self._gradient_change(dimension) / ridge",
        "test_output_perturbation.py::test_no_record_moves_a_logistic_regression_more",
        _PARTS,
    ),
    _slip(
        "an exchange of a record for a ridge regression counts once",
        "mechanisms/output_perturbation",
        "exchanges = 2.0 if self.adjacency is Adjacency.REPLACE else 1.0",
        "exchanges = 1.0",
        "test_output_perturbation.py::test_no_neighbours_betray_more_than_is_said",
        _PARTS,
    ),
    _slip(
        "weights without their cap",
        "mechanisms/irls",
        "distances = jnp.maximum(1.0 / self.cap, jnp.abs(y - x @ theta))",
        "distances = jnp.maximum(0.5 / self.cap, jnp.abs(y - x @ theta))",
        "test_irls.py::test_no_weight_is_above_the_cap",
    ),
    _slip(
        "a budget of J iterations spent in each",
        "mechanisms/irls",
        "by_sums = shares * epsilon / self.iterations",
        "by_sums = shares * epsilon",
        "test_irls.py::test_the_noise_of_basic_composition_by_hand",
    ),
    _slip(
        "both noises of an iteration from one key",
        "mechanisms/irls",
        "matrix_noise.symmetric_gaussian(matrix_key,",
        "matrix_noise.symmetric_gaussian(moment_key,",
        _KEYS,
    ),
    _slip(
        "K-norm noise at twice the rate",
        "mechanisms/k_norm",
        "summary.count * self.epsilon / self.sensitivity_value(summary.dimension)",
        "2.0 * summary.count * self.epsilon / self.sensitivity_value(summary.dimension)",
        "test_k_norm.py::test_the_length_of_the_noise_is_a_gamma_variable",
    ),
    _slip(
        "noise of scale 1/n under add_remove",
        "mechanisms/k_norm",
        "if self.adjacency is Adjacency.ADD_REMOVE:",
        "if False:",
        "test_k_norm.py::test_what_has_no_proof_is_refused",
    ),
    _slip(
        "n is public under add_remove",
        "mechanisms/base",
        "return data.num_records if self.adjacency is Adjacency.REPLACE else None",
        "return data.num_records",
        _COUNTS,
    ),
)

_SAMPLERS = (
    _slip(
        "proposals accepted with the root of their probability",
        "samplers/rejection",
        "accepted = jnp.log(uniforms[:, 0]) < log_acceptance",
        "accepted = jnp.log(uniforms[:, 0]) < 0.5 * log_acceptance",
        "samplers/test_envelopes.py::test_envelopes_agree_on_the_integral_of_the_density_and_on_its_law",
    ),
    _slip(
        "proposals with the key of the uniform numbers",
        "samplers/rejection",
        "jax.random.fold_in(proposal_key, number), uniforms[:, 1:]",
        "uniform_key, uniforms[:, 1:]",
        _KEYS,
    ),
    _slip(
        "points of a line from the wrong end of a segment",
        "samplers/lines",
        "jnp.where(slope > 0, length - distance, distance)",
        "jnp.where(slope < 0, length - distance, distance)",
        "samplers/test_lines.py::test_draws_on_a_line_follow_the_conditional_density",
    ),
    _slip(
        "scores that hardly change count as constant",
        "samplers/box_bounds",
        "changes = ~(low == high)",
        "changes = ~(high - low <= 1e-3)",
        "samplers/test_box_tree.py",
    ),
    _slip(
        "points of a box accepted by its middle",
        "samplers/box_tree",
        "* (scores - self.boxes.lower[chosen])",
        "* (scores - self.boxes.middle[chosen])",
        "samplers/test_box_tree.py::test_draws_follow_the_density_of_quantile_regression",
    ),
    _slip(
        "slices of a score in other units",
        "samplers/slice_gibbs",
        "return _image_norm(target)(state.image) + level / target.rate",
        "return _image_norm(target)(state.image) + 2.0 * level / target.rate",
        "samplers/test_slice_gibbs.py::test_one_sweep_leaves_the_density_invariant_whatever_the_middle",
    ),
    _slip(
        "a walk that accepts a little too often",
        "samplers/coordinate_walk",
        "accept = uniform > 1.0 - jnp.exp(proposed - density)",
        "accept = uniform > 0.9 - jnp.exp(proposed - density)",
        "samplers/test_coordinate_walk.py::test_sweeps_of_many_chains_are_those_of_a_loop_over_moves",
    ),
    _slip(
        "an ensemble that accepts at twice its thresholds",
        "samplers/ensemble_walk",
        "proposed_log_densities < noise.thresholds[moving]",
        "proposed_log_densities < 2.0 * noise.thresholds[moving]",
        "statistical/test_samplers_against_quadrature.py",
    ),
    _slip(
        "proposal density without its share",
        "samplers/independence",
        "jnp.logaddexp(math.log1p(-self.mixture) + near, anywhere)",
        "jnp.logaddexp(near, anywhere)",
        "samplers/test_independence.py::test_the_proposal_density_integrates_to_one_and_is_that_of_the_proposals",
    ),
    _slip(
        "directions of a release from private data",
        "samplers/line_gibbs",
        'return dataclasses.replace(self, directions="ensemble")',
        "return self",
        "test_release.py",
    ),
    _slip(
        "starts of chains with the key of their noise",
        "samplers/limit_law",
        "place = jax.random.uniform(place_key,",
        "place = jax.random.uniform(noise_key,",
        _KEYS,
    ),
)

_RANDOMNESS_AND_RELEASES = (
    _slip(
        "16 bytes of the operating system twice",
        "randomness",
        "return _wrap(os.urandom(32))",
        "return _wrap(os.urandom(16) * 2)",
        "test_randomness.py::test_secure_key_takes_32_bytes_of_the_operating_system",
    ),
    _slip(
        "children from the stream of the bits",
        "randomness",
        '_nonce(b"kngjax split")',
        '_nonce(b"kngjax bits ")',
        "test_randomness.py::test_every_purpose_has_its_own_nonce",
    ),
    _slip(
        "18 rounds of ChaCha",
        "randomness",
        "lax.fori_loop(0, 10, _double_round, start)",
        "lax.fori_loop(0, 9, _double_round, start)",
        "test_randomness.py::test_the_vectors_of_rfc_8439",
    ),
    _slip(
        "the same folded key whatever is folded in",
        "randomness",
        "jnp.asarray(data, jnp.uint32).reshape(1))[0, :8]",
        "jnp.zeros(1, jnp.uint32))[0, :8]",
        "test_randomness.py::test_split_children_and_folded_keys_differ_from_the_bits_and_from_each_other",
    ),
    _slip(
        "a key that becomes a constant of a program",
        "randomness",
        "if isinstance(_wrap(bytes(32)), jax.core.Tracer):",
        "if False:",
        "test_randomness.py::test_a_secure_key_cannot_become_a_constant_of_a_program",
    ),
    _slip(
        "the key of a release from the clock",
        "releases",
        "if isinstance(X, Shards) else secure_key()",
        'if isinstance(X, Shards) else jax.random.key(__import__("time").time_ns() % 2**32)',
        _BITS,
    ),
    _slip(
        "a twister draws on the lattice",
        "lattice/sampler",
        "bits: Bits = secrets.randbits",
        'bits: Bits = __import__("random").Random().getrandbits',
        _BITS,
    ),
    _slip(
        "open side doors are not looked for",
        "releases",
        "    side_doors.refuse()\n",
        "",
        "test_side_doors.py",
    ),
    _slip(
        "side doors allowed by default",
        "side_doors",
        'contextvars.ContextVar("side doors allowed", default=False)',
        'contextvars.ContextVar("side doors allowed", default=True)',
        "test_side_doors.py",
    ),
    _slip(
        "a debugger's copy of values is no side door",
        "side_doors",
        '    "jax_debug_nans": False,\n',
        "",
        "test_side_doors.py",
    ),
    _slip(
        "a draw that is no number is released",
        "releases",
        "if not np.all(np.isfinite(value)):",
        "if False:",
        "test_refusals.py::test_a_draw_that_is_no_number_is_not_released",
    ),
    _slip(
        "a failure told in its own words",
        "refusals",
        "    except Exception:\n        refusal = ReleaseFailed()",
        "    except Exception as error:\n        refusal = ReleaseFailed(str(error))",
        "test_refusals.py::test_what_depends_on_values_is_one_constant_text",
    ),
    _slip(
        "warnings about values",
        "refusals",
        '            warnings.simplefilter("ignore")\n',
        "",
        "test_refusals.py::test_warnings_about_values_are_silent_inside_and_only_there",
    ),
)

_PER_INSTANCE = (
    _slip(
        "people inside of the data looked at as if outside",
        "per_instance/ridge",
        "remainder = 1.0 - leverage if inside else jnp.ones_like(leverage)",
        "remainder = jnp.ones_like(leverage)",
        "per_instance/test_privacy.py::test_removal_is_a_fit_without_the_person",
    ),
    _slip(
        "a step of an estimate without its leverage",
        "per_instance/ridge",
        "influence.spread * np.abs(influence.residual) / (1.0 + influence.leverage)",
        "influence.spread * np.abs(influence.residual)",
        "per_instance/test_privacy.py::test_output_perturbation_in_full_dimension",
    ),
    _slip(
        "the largest residual at one end of y",
        "per_instance/everyone",
        "max(float(bounds.y_upper) - lowest, highest - float(bounds.y_lower), 0.0)",
        "max(float(bounds.y_upper) - lowest, 0.0)",
        "per_instance/test_report.py::test_nobody_within_the_bounds_exceeds_the_bound",
    ),
)

SLIPS = (
    *_NORMS_AND_DOMAINS,
    *_LOSSES,
    *_SENSITIVITIES,
    *_MECHANISMS,
    *_SAMPLERS,
    *_RANDOMNESS_AND_RELEASES,
    *_PER_INSTANCE,
)
