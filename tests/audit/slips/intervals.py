"""Small slips of intervals of quantiles."""

from tests.audit.slips.base import slip

_INTERVALS, _RANKS = "mechanisms/test_quantile_interval.py::", "mechanisms/test_interval_ranks.py::"
_WITH = "inference/test_with_intervals.py::"

SLIPS = (
    slip(
        "each end of an interval at the whole ε",
        "mechanisms/interval_on_grid",
        "return exactly(float(self.mechanism.epsilon)) / sensitivity",
        "return 2 * exactly(float(self.mechanism.epsilon)) / sensitivity",
        f"{_INTERVALS}test_neighbours_differ_by_epsilon_at_most_and_nearly",
    ),
    slip(
        "half of the joint sensitivity in fractions",
        "sensitivity/in_fractions",
        "return 2 * (1 - min(high - low",
        "return (1 - min(high - low",
        f"{_INTERVALS}test_sensitivities_by_hand",
    ),
    slip(
        "ranks that do not grow with a private number of records",
        "mechanisms/interval_on_grid",
        "else (self.count, len(values))",
        "else (self.count, self.count)",
        f"{_INTERVALS}test_neighbours_differ_by_epsilon_at_most_and_nearly",
    ),
    slip(
        "intervals of too few records",
        "mechanisms/quantile_interval",
        "is not None and (not self.force or count < 3):",
        "is not None and count < 3:",
        f"{_INTERVALS}test_too_few_records_are_refused_before_anything_is_spent",
    ),
    slip(
        "an interval of what was released by force",
        "inference/intervals",
        'if sampler.get("refusal"):',
        'if sampler.get("refused"):',
        f"{_INTERVALS}test_what_is_forced_has_numbers_and_no_interval",
    ),
    slip(
        "the noise of a rank as if it were drawn alone",
        "mechanisms/interval_ranks",
        " * (np.abs(offsets) + 1.0 / math.tanh(0.5 * rate))",
        "",
        f"{_RANKS}test_the_noise_of_a_rank_is_that_of_pairs",
    ),
    slip(
        "the whole of what may be missed on one side",
        "mechanisms/interval_ranks",
        "tail = 0.5 * (1.0 - level)\n    lower = lower_rank",
        "tail = 1.0 - level\n    lower = lower_rank",
        f"{_RANKS}test_ranks_are_the_narrowest_that_have_the_level",
    ),
    slip(
        "pairs drawn out of order",
        "samplers/grid/rank_pairs",
        "if first <= second and happens(",
        "if happens(",
        "samplers/grid/test_rank_pairs.py::test_pairs_are_drawn_with_their_probabilities",
    ),
    slip(
        "pairs of two equal ends counted twice",
        "samplers/grid/rank_pairs",
        "np.where(-values <= inner, inner + 1, place)",
        "np.where(-values <= inner, inner + 1, 0)",
        "samplers/grid/test_rank_pairs.py::test_blocks_hold_the_pairs_of_their_scores",
    ),
    slip(
        "an estimate with intervals at the whole ε",
        "inference/makings",
        "first = inward(whole * (1 - exactly(covariance.share)))",
        "first = inward(whole)",
        f"{_WITH}test_everything_together_costs_the_epsilon_of_the_mechanism",
    ),
    slip(
        "sums of a covariance at the whole ε",
        "inference/makings",
        "rest = inward(whole - exactly(first))",
        "rest = inward(whole)",
        f"{_WITH}test_everything_together_costs_the_epsilon_of_the_mechanism",
    ),
    slip(
        "bounds of products without those of their signs",
        "inference/covariances",
        "block = Block(np.minimum(least, 0.0), np.maximum(most, 0.0))",
        "block = Block(np.minimum(least, 0.0), np.maximum(most, 0.0) / 2.0)",
        f"{_WITH}test_no_record_moves_the_sums_by_more_than_the_noise_hides_and_one_by_as_much",
    ),
    slip(
        "groups by position under add_remove",
        "inference/groups_of_records",
        "coins = np.array([secrets.randbelow(number) for _ in range(count)])",
        "coins = np.arange(count) % number",
        f"{_WITH}test_under_add_remove_a_record_draws_its_own_group_whatever_the_others_are",
    ),
    slip(
        "a covariance as if its noise were none",
        "inference/errors_of_release",
        "sums - box_noise(summing, len(sums), random, DRAWS),",
        "sums - 0.0 * box_noise(summing, len(sums), random, DRAWS),",
        f"{_WITH}test_noise_of_the_sums_widens_intervals",
    ),
    slip(
        "an interval without the noise of the estimate",
        "inference/errors_of_release",
        "(z - noise.pull(theta) - scores)",
        "(0.0 * z - noise.pull(theta) - scores)",
        f"{_WITH}test_the_noise_of_the_estimate_and_its_ridge_are_in_the_interval",
    ),
    slip(
        "an interval without the pull of the ridge",
        "inference/errors_of_release",
        "(z - noise.pull(theta) - scores)",
        "(z - scores)",
        f"{_WITH}test_the_noise_of_the_estimate_and_its_ridge_are_in_the_interval",
    ),
    slip(
        "sums of no record that fail",
        "inference/covariances",
        "made = np.column_stack(blocks)",
        "made = np.concatenate([block.reshape(len(x), -1) for block in blocks], axis=1)",
        f"{_WITH}test_no_record_and_only_dropped_ones_are_released_like_any",
    ),
    slip(
        "rows of lists that decide a refusal although a policy serves",
        "data/admission",
        "return None if reads_text else _axes_of_list(name, values)",
        "return _axes_of_list(name, values)",
        "data/test_records.py::test_where_a_policy_serves_the_form_of_rows_decides_nothing",
    ),
    slip(
        "ends of logarithms wider by what the numbers are",
        "inference/intervals",
        'bool(bounds.get("dither_of_log"))',
        "False",
        f"{_INTERVALS}test_intervals_of_logarithms_are_wider_in_the_units_of_what_was_rounded",
    ),
)
