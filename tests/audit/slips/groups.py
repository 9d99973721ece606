"""Small slips where a table is divided into groups that one debit pays for."""

from tests.audit.slips.base import slip

PRICES = "estimators/test_groups.py::test_epsilon_and_delta_are_of_all_groups_together"
INTERVALS = "estimators/test_intervals_of_groups.py::"
RECORDS = "estimators/test_groups.py::test_each_record_is_in_the_group_of_its_own_levels_and_in_no_other"

SLIPS = (
    slip(
        "an exchanged record at the price of one group",
        "releases/divided",
        "twice = cost.to_replace()",
        "twice = Guarantee.bounded_range(cost.epsilon, Adjacency.REPLACE)",
        "estimators/test_groups.py::test_no_pair_of_small_tables_costs_more_than_the_guarantee",
        PRICES,
    ),
    slip(
        "groups at the whole ε under replace, said to be half",
        "estimators/groups",
        'half = inward(exactly(named["epsilon"], "epsilon") / 2)',
        'half = inward(exactly(named["epsilon"], "epsilon"))',
        "estimators/test_groups.py::test_the_worst_pair_of_tables_costs_all_of_it",
    ),
    slip(
        "sizes of groups public",
        "releases/divided",
        "if any(_mechanism(one).adjacency is not Adjacency.ADD_REMOVE for group in drawn for one in group):",
        "if False:",
        "estimators/test_groups.py::test_public_sizes_of_groups_are_refused",
    ),
    slip(
        "guarantees of public sizes in parallel",
        "accounting/parallel",
        "if any(part.adjacency is not Adjacency.ADD_REMOVE for part in every):",
        "if False:",
        "accounting/test_parallel.py::test_parts_for_replace_are_refused_as_sizes_of_groups_are_private",
    ),
    slip(
        "the distance of one group of two",
        "accounting/parallel",
        "reverse=True)[:2]",
        "reverse=True)[:1]",
        "accounting/test_parallel.py::test_distances_of_the_two_groups_of_an_exchanged_record_add_up",
    ),
    slip(
        "the best of all groups",
        "accounting/parallel",
        "is_ranged else kind_of.pure)(max(losses), adjacency)",
        "is_ranged else kind_of.pure)(min(losses), adjacency)",
        "accounting/test_parallel.py::test_no_part_is_worse_than_all_together",
    ),
    slip(
        "the smallest ρ of all groups",
        "accounting/parallel",
        "return kind_of(kind, adjacency, None, delta, max(rhos)).stated(delta)",
        "return kind_of(kind, adjacency, None, delta, min(rhos)).stated(delta)",
        "accounting/test_parallel.py::test_no_part_is_worse_than_all_together",
    ),
    slip(
        "groups by position",
        "releases/divided",
        "column[places == number]",
        "column[np.sort(places) == number]",
        RECORDS,
    ),
    slip(
        "records of no group in some group",
        "estimators/grouping",
        "return np.where(np.min(each, axis=0) < 0, -1, places)",
        "return places",
        RECORDS,
    ),
    slip(
        "a debit of groups that another release may use meanwhile",
        "releases/one_debit",
        "reservation = reserve_cost(debit, together, proved, what)",
        "reservation = debit",
        "estimators/test_groups.py::test_no_debit_of_groups_pays_for_another_release",
    ),
    slip(
        "groups that cost more than their debit",
        "releases/one_debit",
        "if owed(drawn) != (together, proved):",
        "if False:",
        "estimators/test_groups.py::test_releases_that_cost_more_than_was_reserved_are_not_kept",
    ),
    slip(
        "intervals of groups at the price of their estimates",
        "releases/divided",
        "return one.owed(certificates) if isinstance(one, AbstractDrawing) else owed(*certificates)",
        "return owed(certificates[0])",
        f"{INTERVALS}test_epsilon_is_of_all_groups_with_what_their_intervals_are_made_of",
    ),
    slip(
        "intervals of groups for what the estimates of all have",
        "estimators/groups",
        "named = named | _shares(named, adjacency)",
        'named = named if "intervals" in named else named | _shares(named, adjacency)',
        f"{INTERVALS}test_epsilon_is_of_all_groups_with_what_their_intervals_are_made_of",
    ),
    slip(
        "why one group failed",
        "releases/one_debit",
        "run_hiding_errors(draw)",
        "(draw(), None)",
        "estimators/test_groups.py::test_what_fails_in_one_group_releases_nothing_and_stays_spent",
    ),
)
