"""Small slips where curves of several levels are drawn between those that were drawn before."""

from tests.audit.slips.base import slip

AUDIT = "audit/test_quantile_processes.py"
BINS = "sensitivity/test_bins.py"
HALVING = "releases/curves/test_halving.py"
LOCATION_SCALE = "releases/curves/test_location_scale.py"
JOINT = "releases/curves/test_joint.py"
REGIONS = "releases/lattice/test_regions.py"
REPLAY = "audit/test_joint_draws.py"

SLIPS = (
    slip(
        "an exchanged record at the price of one node",
        "releases/curves/halving",
        "return inward(share if depth == 0 or adjacency is Adjacency.ADD_REMOVE else share / 2)",
        "return inward(share)",
        f"{HALVING}::test_all_depths_together_cost_epsilon_and_as_good_as_all_of_it",
        f"{AUDIT}::test_the_price_of_one_node_under_replace_is_seen_by_the_enumeration",
    ),
    slip(
        "a location at twice its price",
        "releases/curves/location_scale",
        '"location": Fraction(2, 5)',
        '"location": Fraction(4, 5)',
        f"{LOCATION_SCALE}::test_all_parts_together_cost_epsilon_and_as_good_as_all_of_it",
    ),
    slip(
        "a scale at twice its price",
        "releases/curves/location_scale",
        '"scale": Fraction(3, 10)',
        '"scale": Fraction(3, 5)',
        f"{LOCATION_SCALE}::test_all_parts_together_cost_epsilon_and_as_good_as_all_of_it",
    ),
    slip(
        "levels of residuals at twice their price",
        "releases/curves/location_scale",
        '"levels": Fraction(3, 10)',
        '"levels": Fraction(3, 5)',
        f"{LOCATION_SCALE}::test_all_parts_together_cost_epsilon_and_as_good_as_all_of_it",
    ),
    slip(
        "a scale for free",
        "releases/curves/location_scale",
        "self.location.guarantee, self.scale.guarantee, self.quantiles.guarantee",
        "self.location.guarantee, self.quantiles.guarantee",
        f"{LOCATION_SCALE}::test_all_parts_together_cost_epsilon_and_as_good_as_all_of_it",
    ),
    slip(
        "residuals over a number of all of them",
        "releases/curves/location_scale",
        "np.clip(residuals / scales,",
        "np.clip(residuals / np.mean(scales),",
        f"{LOCATION_SCALE}::test_residuals_and_their_quotients_are_of_each_record_by_itself",
    ),
    slip(
        "scales anywhere in Θ",
        "releases/curves/location_scale",
        "self.scale_problem(records, location), self.region)",
        "self.scale_problem(records, location), None)",
        f"{LOCATION_SCALE}::test_curves_never_cross_where_records_may_be",
    ),
    slip(
        "more records than were promised, as location and scale",
        "releases/curves/location_scale",
        "if records.num_records > self.most:",
        "if False:",
        f"{LOCATION_SCALE}::test_previews_samplers_and_too_many_records_are_refused",
    ),
    slip(
        "the size of a node public",
        "releases/curves/halving",
        "return adjacency if depth == 0 else Adjacency.ADD_REMOVE",
        "return adjacency",
        f"{HALVING}::test_all_depths_together_cost_epsilon_and_as_good_as_all_of_it",
    ),
    slip(
        "a record in two nodes of a depth",
        "releases/curves/halving",
        "return records.at(places == node.rank)",
        "return records.at(places >= node.rank)",
        f"{HALVING}::test_a_record_is_in_one_node_of_a_depth_at_most_whatever_the_curves_are",
    ),
    slip(
        "a record on a curve above it",
        "releases/lattice/problems",
        "return self.y > self.x @ point",
        "return self.y >= self.x @ point",
        f"{HALVING}::test_its_law_is_that_of_medians_of_what_lies_below_and_above_the_median",
    ),
    slip(
        "curves anywhere in Θ",
        "releases/curves/halving",
        "if node.below is None and node.above is None:",
        "if True:",
        f"{HALVING}::test_curves_never_cross_where_records_may_be",
        f"{HALVING}::test_its_law_is_that_of_medians_of_what_lies_below_and_above_the_median",
    ),
    slip(
        "the coarsest lattice of one level alone",
        "releases/curves/halving",
        "data, theta = (min(each) for each in zip(*digits, strict=True))",
        "data, theta = digits[0]",
        f"{HALVING}::test_its_lattice_is_one_for_all_levels",
    ),
    slip(
        "more records than were promised, in halving",
        "releases/curves/halving",
        "if records.num_records > self.most:",
        "if False:",
        f"{HALVING}::test_more_records_than_were_promised_are_refused",
    ),
    slip(
        "two nodes of one rank",
        "releases/curves/levels",
        "sum(depths[other] < depth for other in range(index))",
        "sum(depths[other] < depth - 1 for other in range(index))",
        "releases/curves/test_levels.py::test_it_has_all_levels_once_and_the_least_depth",
    ),
    slip(
        "a part of Θ without its ends",
        "releases/lattice/regions",
        ">= self._least.astype(kind)",
        "> self._least.astype(kind)",
        f"{REGIONS}::test_it_has_the_points_between_its_ends_at_all_vertices",
    ),
    slip(
        "inequalities in float64",
        "releases/lattice/regions",
        "kind: Any = np.int64 if np.all(sizes < _LARGEST) else object",
        "kind: Any = np.float64",
        f"{REGIONS}::test_inequalities_that_float64_and_64_bits_cannot_tell_from_equalities_are_decided",
    ),
    slip(
        "boxes that touch a curve left out",
        "releases/lattice/regions",
        "found |= most < end - _ROUNDING * size",
        "found |= most < end + 0.5",
        f"{REGIONS}::test_no_box_that_has_one_of_its_points_misses_it",
    ),
    slip(
        "draws outside of a part of Θ",
        "releases/lattice/envelope",
        "return found if self._region is None else found & self._region.contains_each(points)",
        "return found",
        f"{REGIONS}::test_draws_in_a_part_of_a_domain_have_its_share_of_the_law",
        f"{REGIONS}::test_a_part_of_one_point_is_drawn",
    ),
    slip(
        "levels that are little but noise",
        "releases/curves/quantile_process",
        "if len(clear) == len(self.levels):",
        "if True:",
        "releases/curves/test_quantile_process.py::test_levels_that_are_little_but_noise_are_refused_of_public_facts_alone",
    ),
    slip(
        "the guarantee of the first curve for all",
        "releases/curves/drawing",
        "guarantee=made.guarantee",
        "guarantee=made.first.guarantee",
        "releases/curves/test_quantile_process.py::test_a_release_is_one_debit_with_one_certificate_of_all_parts",
    ),
    slip(
        "totals of curves that are the sum of x",
        "samplers/curves_target",
        "jnp.outer(self.shares, totals)",
        "jnp.outer(self.shares, self.totals())",
        f"{REPLAY}::test_no_point_betrays_the_claim_and_one_needs_all_of_it",
        f"{JOINT}::test_its_density_is_the_written_one_and_curves_do_not_cross",
    ),
    slip(
        "differences of indicators of curves that may cross",
        "samplers/curves_target",
        "jnp.sort(x @ jnp.asarray(curves).T, axis=1)",
        "x @ jnp.asarray(curves).T",
        f"{BINS}::test_crossing_or_not_no_record_moves_the_sums_further_and_one_does_so_far",
    ),
    slip(
        "joint curves that cross",
        "samplers/curves_target",
        "inside = jnp.where(self.are_in_order(curves), 0.0, -jnp.inf)",
        "inside = 0.0",
        f"{JOINT}::test_its_density_is_the_written_one_and_curves_do_not_cross",
    ),
    slip(
        "a record exchanged between bins that counts once",
        "sensitivity/bins",
        "value = 2.0 * largest if exchanged else largest",
        "value = largest",
        f"{REPLAY}::test_no_point_betrays_the_claim_and_one_needs_all_of_it",
        f"{BINS}::test_crossing_or_not_no_record_moves_the_sums_further_and_one_does_so_far",
    ),
    slip(
        "half of the rate's twice the sensitivity of bins",
        "releases/curves/joint",
        "return float(self.first.epsilon) / (2.0 * self.sensitivity.value)",
        "return float(self.first.epsilon) / self.sensitivity.value",
        f"{REPLAY}::test_no_point_betrays_the_claim_and_one_needs_all_of_it",
    ),
    slip(
        "a hull through points on a curve",
        "geometry/feature_hulls",
        "points.append(symmetric[1:] / binomials)",
        "points.append((start + (stop - start) * ends / degree) ** np.arange(1, degree + 1))",
        "geometry/test_feature_hulls.py::test_more_pieces_are_tighter_down_to_the_curve",
    ),
)
