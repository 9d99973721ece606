"""Small slips of counts, sums and tables."""

from tests.audit.slips.base import slip

_GEOMETRIC = "mechanisms/test_geometric.py"
SLIPS = (
    slip(
        "noise of counts at twice the rate under replace",
        "mechanisms/geometric",
        "rate = exactly(float(self.mechanism.epsilon)) / self.mechanism._change",
        "rate = exactly(float(self.mechanism.epsilon))",
        f"{_GEOMETRIC}::test_a_release_adds_independent_noise_of_this_law_to_each_count",
    ),
    slip(
        "one number's noise on all counts",
        "mechanisms/geometric",
        "return [int(count) + draw_two_sided_geometric(rate, bits) for",
        "noise = draw_two_sided_geometric(rate, bits)\n        return [int(count) + noise for",
        f"{_GEOMETRIC}::test_a_release_adds_independent_noise_of_this_law_to_each_count",
    ),
    slip(
        "one-sided geometric noise",
        "samplers/grid/geometric",
        "return _geometric(rate, bits) - _geometric(rate, bits)",
        "return _geometric(rate, bits)",
        f"{_GEOMETRIC}::test_noise_of_large_and_small_rates",
    ),
    slip(
        "geometric noise rounded up",
        "samplers/grid/geometric",
        "place.floor().unique_fmpz()",
        "place.ceil().unique_fmpz()",
        f"{_GEOMETRIC}::test_the_edge_between_two_numbers_is_told_with_as_many_digits_as_it_takes",
    ),
    slip(
        "geometric noise where digits do not tell",
        "samplers/grid/geometric",
        "number = place.floor().unique_fmpz() if",
        "number = place.mid().floor().unique_fmpz() if",
        f"{_GEOMETRIC}::test_the_edge_between_two_numbers_is_told_with_as_many_digits_as_it_takes",
    ),
    slip(
        "an exchanged record changes one count alone",
        "sensitivity/sums",
        "return 2 * units",
        "return units",
        f"{_GEOMETRIC}::test_the_worst_loss_over_all_neighbours_and_outputs_is_epsilon_exactly",
    ),
    slip(
        "parts of records are counted",
        "mechanisms/geometric",
        "np.where(np.floor(numbers) == numbers, numbers, np.nan)",
        "numbers",
        f"{_GEOMETRIC}::test_each_record_is_counted_by_itself",
    ),
    slip(
        "one record more moves a sum by the width of its bounds",
        "sensitivity/sums",
        "return [max(abs(lower), abs(upper)) for",
        "return [upper - lower for",
        "mechanisms/test_sums.py::test_the_worst_loss_over_neighbours_is_epsilon_and_no_more",
    ),
    slip(
        "an exchanged record moves a sum by its size alone",
        "sensitivity/sums",
        "if adjacency is Adjacency.REPLACE:\n        return [upper - lower",
        "if False:\n        return [upper - lower",
        "mechanisms/test_sums.py::test_the_worst_loss_over_neighbours_is_epsilon_and_no_more",
    ),
    slip(
        "noise of a sum divided by n",
        "mechanisms/k_norm",
        "rate = (1 if self._is_sum else num_records) * exactly",
        "rate = num_records * exactly",
        "mechanisms/test_sums.py::test_a_release_is_drawn_by_this_noise",
    ),
    slip(
        "noise of research draws of a sum divided by n",
        "mechanisms/k_norm",
        "count = 1.0 if self._is_sum else summary.count",
        "count = summary.count",
        "mechanisms/test_sums.py::test_noise_deviations_are_those_of_research_draws",
    ),
    slip(
        "squares of a variance beyond their bounds",
        "estimators/moments",
        "size, square = self.half_width, 0.5 * self.half_width**2",
        "size, square = self.half_width, 0.25 * self.half_width**2",
        "estimators/test_moments.py::test_sums_and_variances_are_those_of_clipped_numbers",
    ),
    slip(
        "a missing cell counts in the first interval",
        "estimators/classifications",
        "dropped = np.any([one < 0 for one in places], axis=0)",
        "dropped = np.zeros(len(table), bool)",
        "estimators/test_tables.py::test_missing_cells_are_dropped_or_count_as_was_declared",
    ),
    slip(
        "a missing cell is no level, and refused by nobody",
        "estimators/classifications",
        "refuse_missing(self.column, self.missing, absent)",
        "pass",
        "estimators/test_tables.py::test_cells_that_are_no_level_and_no_number",
    ),
    slip(
        "audits of counts between whole numbers",
        "audit/laws",
        "mechanism.is_whole:",
        "False:",
        "audit/test_direct_mechanisms.py::test_counts_spend_their_epsilon_and_half_of_their_noise_twice_as_much",
    ),
)
