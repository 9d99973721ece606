"""Small slips of mechanisms and per-instance privacy."""

from tests.audit.slips.base import slip

MECHANISMS = (
    slip(
        "ε/Δ in place of ε/(2Δ)",
        "mechanisms/density",
        "rate = self.epsilon / (2.0 * self.sensitivity_value(dimension))",
        "rate = self.epsilon / self.sensitivity_value(dimension)",
        "mechanisms/test_minikng.py::test_kng_on_the_squared_loss",
    ),
    slip(
        "range of a record's loss halved in a chain's promise",
        "mechanisms/exponential",
        "self.domain, Adjacency.REPLACE, dimension)",
        "self.domain, Adjacency.ADD_REMOVE, dimension)",
        "samplers/test_promises.py",
    ),
    slip(
        "each of several quantiles at the whole ε",
        "mechanisms/private_quantile",
        "return self._part / (2.0 *",
        "return self.epsilon / (2.0 *",
        "mechanisms/test_parts_of_budgets.py",
    ),
    slip(
        "several quantiles by parts that round up",
        "mechanisms/private_quantile",
        "self.epsilon / self.dimension * (1.0 - 2.0**-52)",
        "self.epsilon / self.dimension * (1.0 + 2.0**-52)",
        "mechanisms/test_private_quantile.py::test_the_budget_of_all_quantiles_is_epsilon",
    ),
    slip(
        "noise of X'y with the key of the smallest eigenvalue's",
        "mechanisms/ada_ssp",
        "on_moment * jax.random.normal(keys[1]",
        "on_moment * jax.random.normal(keys[0]",
        "mechanisms/test_independent_noises.py",
    ),
    slip(
        "AdaSSP's shares without their root",
        "mechanisms/ada_ssp",
        "(shift * jnp.sqrt(jnp.asarray(self.shares)))",
        "(shift * jnp.asarray(3.0 * self.shares))",
        "mechanisms/test_ada_ssp.py::test_the_joint_law_of_the_three_parts_spends_delta_and_no_more",
    ),
    slip(
        "AdaOPS calibrated at δ without its failures",
        "mechanisms/ada_ops",
        "renyi_budget(epsilon, (1.0 - 2.0 * self.failure_share) * delta)",
        "renyi_budget(epsilon, delta)",
        "mechanisms/test_parts_of_budgets.py::test_ada_ops_spends_what_its_failures_leave_of_delta",
    ),
    slip(
        "AdaOPS exchanges a record at the whole ε",
        "mechanisms/ada_ops",
        "epsilon = 0.5 * epsilon\n",
        "epsilon = 1.0 * epsilon\n",
        "mechanisms/test_parts_of_budgets.py",
    ),
    slip(
        "output noise with the key of the tilt",
        "mechanisms/objective_perturbation",
        "k_norm_noise(L2(), output_key,",
        "k_norm_noise(L2(), tilt_key,",
        "mechanisms/test_independent_noises.py",
    ),
    slip(
        "the ridge buys from the whole ε",
        "mechanisms/objective_perturbation",
        "jnp.expm1((1.0 - self.noise_share) * self._objective_epsilon)",
        "jnp.expm1((1.0 - self.noise_share) * self.epsilon)",
        "mechanisms/test_parts_of_budgets.py",
    ),
    slip(
        "noise for one of two errors of the search",
        "mechanisms/objective_perturbation",
        "self.ridge(dimension) / (2.0 * self.search_tolerance(dimension))",
        "self.ridge(dimension) / self.search_tolerance(dimension)",
        "mechanisms/test_parts_of_budgets.py",
    ),
    slip(
        "a minimiser taken for exact",
        "mechanisms/output_perturbation",
        "(self._gradient_change(dimension) + 2.0 * self.tolerance(dimension)) / ridge",
        "self._gradient_change(dimension) / ridge",
        "mechanisms/test_output_perturbation.py::test_no_record_moves_a_logistic_regression_more",
        "mechanisms/test_parts_of_budgets.py",
    ),
    slip(
        "an exchange of a record for a ridge regression counts once",
        "mechanisms/output_perturbation",
        "exchanges = 2.0 if self.adjacency is Adjacency.REPLACE else 1.0",
        "exchanges = 1.0",
        "mechanisms/test_output_perturbation.py::test_no_neighbours_betray_more_than_is_said",
        "mechanisms/test_parts_of_budgets.py",
    ),
    slip(
        "weights without their cap",
        "mechanisms/irls",
        "distances = jnp.maximum(1.0 / self.cap, jnp.abs(y - x @ theta))",
        "distances = jnp.maximum(0.5 / self.cap, jnp.abs(y - x @ theta))",
        "mechanisms/test_irls.py::test_no_weight_is_above_the_cap",
    ),
    slip(
        "a budget of J iterations spent in each",
        "mechanisms/irls",
        "by_sums = shares * epsilon / self.iterations",
        "by_sums = shares * epsilon",
        "mechanisms/test_irls.py::test_the_noise_of_basic_composition_by_hand",
    ),
    slip(
        "both noises of an iteration from one key",
        "mechanisms/irls",
        "matrix_noise.symmetric_gaussian(matrix_key,",
        "matrix_noise.symmetric_gaussian(moment_key,",
        "mechanisms/test_independent_noises.py",
    ),
    slip(
        "K-norm noise at twice the rate",
        "mechanisms/k_norm",
        "summary.count * self.epsilon / self.sensitivity_value(summary.dimension)",
        "2.0 * summary.count * self.epsilon / self.sensitivity_value(summary.dimension)",
        "mechanisms/test_k_norm.py::test_the_length_of_the_noise_is_a_gamma_variable",
    ),
    slip(
        "noise of scale 1/n under add_remove",
        "mechanisms/k_norm",
        "if self.adjacency is Adjacency.ADD_REMOVE:",
        "if False:",
        "mechanisms/test_k_norm.py::test_what_has_no_proof_is_refused",
    ),
    slip(
        "n is public under add_remove",
        "mechanisms/preparation",
        "return data.num_records if self.adjacency is Adjacency.REPLACE else None",
        "return data.num_records",
        "releases/test_private_counts.py",
        "releases/lattice/test_sampler.py::test_nothing_of_a_private_number_of_records_reaches_plan_or_certificate",
    ),
)

PER_INSTANCE = (
    slip(
        "people inside of the data looked at as if outside",
        "owner/per_instance/ridge",
        "remainder = 1.0 - leverage if inside else jnp.ones_like(leverage)",
        "remainder = jnp.ones_like(leverage)",
        "owner/per_instance/test_privacy.py::test_removal_is_a_fit_without_the_person",
    ),
    slip(
        "a step of an estimate without its leverage",
        "owner/per_instance/ridge",
        "influence.spread * np.abs(influence.residual) / (1.0 + influence.leverage)",
        "influence.spread * np.abs(influence.residual)",
        "owner/per_instance/test_privacy.py::test_the_way_of_an_estimate_is_that_to_a_fit_without_the_person",
    ),
    slip(
        "the largest residual at one end of y",
        "owner/per_instance/everyone",
        "max(float(bounds.y_upper) - lowest, highest - float(bounds.y_lower), 0.0)",
        "max(float(bounds.y_upper) - lowest, 0.0)",
        "owner/per_instance/test_report.py::test_the_largest_residual_is_at_either_end_of_y",
    ),
)

SLIPS = MECHANISMS + PER_INSTANCE
