"""Small slips where synthetic tables are released."""

from tests.audit.slips.base import slip

AUDIT = "audit/test_synthetic_tables.py"
COLUMNS = "estimators/synthesis/test_columns.py"
PLANS = "estimators/synthesis/test_plans.py"
SYNTHESIZING = "estimators/synthesis/test_synthesizing.py"

SLIPS = (
    slip(
        "counts with half of their noise",
        "estimators/synthesis/parts",
        "return kng.GeometricMechanism(bounds, inward(self.epsilon), self.adjacency, allow",
        "return kng.GeometricMechanism(bounds, inward(2 * self.epsilon), self.adjacency, allow",
        f"{AUDIT}::test_no_pair_of_small_tables_costs_more_than_epsilon",
        f"{PLANS}::test_the_prices_of_all_parts_add_up_to_epsilon",
    ),
    slip(
        "curves beside heaps at the price of one step",
        "estimators/synthesis/plans",
        "inward(of_curves / 2 if halved else of_curves)",
        "inward(of_curves)",
        f"{AUDIT}::test_an_exchanged_record_beside_the_heaps_costs_both_of_its_steps",
        f"{PLANS}::test_numbers_beside_heaps_have_half_of_it_for_a_record_more_or_less_under_replace",
    ),
    slip(
        "the number of records beside heaps public",
        "estimators/synthesis/plans",
        "is_private = has_heaps or adjacency is kng.Adjacency.ADD_REMOVE",
        "is_private = adjacency is kng.Adjacency.ADD_REMOVE",
        f"{PLANS}::test_numbers_beside_heaps_have_half_of_it_for_a_record_more_or_less_under_replace",
    ),
    slip(
        "an exchange beside heaps that costs one step",
        "estimators/synthesis/parts",
        "cost if cost.adjacency is self.adjacency else cost.to_replace()",
        "kng.Guarantee.pure(cost.epsilon, self.adjacency)",
        f"{PLANS}::test_the_prices_of_all_parts_add_up_to_epsilon",
    ),
    slip(
        "heaps at the price of the whole column",
        "estimators/synthesis/plans",
        "epsilon * (1 - _HEAPS) if has_heaps else epsilon",
        "epsilon",
        f"{PLANS}::test_the_prices_of_all_parts_add_up_to_epsilon",
    ),
    slip(
        "responses of other records beside heaps",
        "estimators/synthesis/parts",
        "own[chosen]",
        "own[::-1][chosen]",
        f"{SYNTHESIZING}::test_curves_are_of_the_records_beside_the_heaps_each_with_its_own_columns",
    ),
    slip(
        "synthetic tables that wait for the debit of their first part",
        "estimators/synthesis/parts",
        "return totals.composed([cost for cost, _ in costs]), all(proved for _, proved in costs)",
        "return costs[0]",
        f"{SYNTHESIZING}::test_a_table_is_one_debit_and_draws_of_it_are_free",
        f"{PLANS}::test_the_prices_of_all_parts_add_up_to_epsilon",
    ),
    slip(
        "cells that are empty as another level",
        "data/cells",
        'return _each(values, lambda cell: _key(cell) in (None, ""), np.bool_)',
        "return _each(values, lambda cell: False, np.bool_)",
        f"{COLUMNS}::test_levels_that_are_not_declared_count_as_other_and_what_is_none_as_missing",
    ),
    slip(
        "why a synthetic table failed",
        "estimators/synthesis/synthesizing",
        "refusal = bare(error, FAILED_OF_SYNTHESIS)",
        "refusal = bare(error)",
        f"{SYNTHESIZING}::test_what_depends_on_values_is_one_text_after_the_debit",
    ),
)
