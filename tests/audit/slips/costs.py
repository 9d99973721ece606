"""Small slips of accounting, rounding and ledgers."""

from tests.audit.slips.base import slip

ACCOUNTING = (
    slip(
        "costs rounded to nearest",
        "accounting/exact",
        "return nearest if Fraction(repr(nearest)) >= value else math.nextafter(nearest, math.inf)",
        "return nearest",
        "accounting/test_exact.py::test_rounding_goes_outward_and_by_one_float_at_most",
    ),
    slip(
        "zCDP of bounded range ε²/16",
        "accounting/kinds",
        "Kind.BOUNDED_RANGE: 8",
        "Kind.BOUNDED_RANGE: 16",
        "accounting/test_guarantees.py::test_rho_covers_the_worst_bounded_range_pair_and_not_much_more",
    ),
    slip(
        "δ of one order of neighbours",
        "accounting/exact",
        "return delta * (1 + exactly(math.exp(",
        "return delta * (0 + exactly(math.exp(",
        "accounting/test_composition.py::test_the_factor_of_delta_is_attained",
        "accounting/test_nearness.py",
    ),
    slip(
        "profile of bounded range at half its bound",
        "accounting/conversions",
        "math.expm1(0.5 * (epsilon - bound)) ** 2",
        "math.expm1(0.25 * (epsilon - bound)) ** 2",
        "accounting/test_conversions.py::test_bounded_range_is_attained",
    ),
    slip(
        "parts without ρ free of charge",
        "accounting/composition",
        "return outward(self.other_losses + total((exactly(loss), 1) for loss in losses))",
        "return outward(total((exactly(loss), 1) for loss in losses))",
        "accounting/test_composition.py",
    ),
    slip(
        "a release whose rounding costs nothing",
        "releases/certificate",
        "law if law is None or self.rounding is None else law.within(self.rounding.distance)",
        "law",
        "releases/test_rounding.py",
    ),
    slip(
        "one offset for every coordinate",
        "releases/rounding",
        "self.rounded(value, [_offset() for _ in self.centre])",
        "self.rounded(value, [_offset()] * len(self.centre))",
        "releases/test_rounding.py::test_offsets_are_fresh_and_from_the_operating_system",
    ),
    slip(
        "a grid of the private n",
        "releases/rounding",
        "public = num_records if mechanism.adjacency is Adjacency.REPLACE else None",
        "public = num_records",
        "releases/test_rounding.py::test_a_private_number_of_records_moves_no_grid",
    ),
)

LEDGER = (
    slip(
        "a reservation of whatever guarantee",
        "releases/debits",
        "if not _covers(reservation, guarantee, proved):",
        "if False:",
        "releases/test_debits.py::test_other_adjacencies_need_a_reservation_of_their_reduction",
    ),
    slip(
        "a failure that leaves its reservation to another draw",
        "releases/release",
        "debits.spoil(reservation if isinstance(ledger, Ledger) else None, processes)",
        "pass",
        "releases/test_refusals.py::test_every_failure_is_spent",
    ),
    slip(
        "records that are read before a reservation is drawn from",
        "estimators/carrying_out",
        "debit.take()",
        "pass",
        "estimators/test_carrying_out.py::test_a_reservation_pays_for_one_failure_and_nothing_after_it",
    ),
    slip(
        "reservations of any price that read records",
        "estimators/carrying_out",
        "require_cover(reservation, cost, proved)",
        "pass",
        "estimators/test_carrying_out.py::test_reservations_of_another_price_or_number_are_refused_before_records_are_read",
    ),
    slip(
        "a release of another guarantee than was reserved",
        "releases/debits",
        "if not _covers(reservation, *owed(certificate)):",
        "if False:",
        "releases/test_debits.py::test_a_release_that_costs_more_than_was_reserved_is_not_committed",
    ),
    slip(
        "a reservation for many releases",
        "releases/debits",
        "    ledger.take()\n",
        "",
        "releases/test_debits.py::test_other_adjacencies_need_a_reservation_of_their_reduction",
    ),
    slip(
        "a chain of rows that need not follow",
        "ledger/book",
        "or row.previous != previous or",
        "or",
        "ledger/test_tampering.py",
    ),
    slip(
        "a digest without the row before",
        "ledger/book",
        "self.guarantee, self.content, self.previous]",
        "self.guarantee, self.content]",
        "ledger/test_tampering.py::test_the_digest_is_of_every_field",
    ),
    slip(
        "a pure budget that takes a delta",
        "ledger/budgets",
        "return fits_epsilon and stated.failures == 0 and distance == 0",
        "return fits_epsilon and distance == 0",
        "ledger/test_budgets.py::test_what_each_rule_takes_of_a_guarantee",
    ),
    slip(
        "distances free of charge under zCDP",
        "ledger/budgets",
        "return fits_rho and distance <= self.distance",
        "return fits_rho",
        "ledger/test_budgets.py",
    ),
    slip(
        "a debit beside those of others",
        "ledger/ledgers",
        "if not book.budget.admits([*book.parts, *asked]):",
        "if not book.budget.admits(asked):",
        "ledger/test_ledgers.py::test_three_releases_fit_and_the_fourth_is_told_what_is_left",
    ),
    slip(
        "a release of which nothing is proved, whatever the ledger",
        "ledger/ledgers",
        "if not proved and book.unproved != ALLOW:",
        "if False:",
        "ledger/test_ledgers.py::test_what_is_not_proved_is_refused_unless_it_was_allowed_and_then_said_of_every_sum",
    ),
    slip(
        "commits that a power cut undoes",
        "ledger/store",
        '"synchronous = EXTRA"',
        '"synchronous = OFF"',
        "ledger/test_ledgers.py::test_commits_are_synced_with_the_folder",
    ),
)

CARRYING_OUT = (
    slip(
        "analyses without a debit",
        "estimators/carrying_out",
        "debit = ledger.reserve(cost, words, proved=proved)",
        "debit = None",
        "estimators/test_study.py::test_each_analysis_is_debited_and_an_empty_ledger_refuses_before_a_value_is_seen",
    ),
    slip(
        "analyses begun without a budget for all",
        "estimators/carrying_out",
        "keeping.require(ledger, [cost for cost, _ in costs]",
        "keeping.require(ledger, [cost for cost, _ in costs[:1]]",
        "estimators/test_study.py::test_a_plan_spends_nothing_and_runs_whole_or_not_at_all",
    ),
    slip(
        "records before their debit",
        "estimators/carrying_out",
        "            debit = None if",
        "            records.of(step.analysis)\n            debit = None if",
        "ledger/test_command.py::test_a_job_is_debited_before_its_records_are_read_and_no_more_than_is_drawn",
    ),
    slip(
        "records shared between analyses",
        "estimators/carrying_out",
        "if self._of is not analysis:",
        "if self._of is None:",
        "estimators/test_study.py::test_a_plan_spends_nothing_and_runs_whole_or_not_at_all",
    ),
    slip(
        "errors of records in words",
        "estimators/carrying_out",
        "self._made, refusal = run_hiding_errors(functools.partial(analysis.records, self.frame))",
        "self._made, refusal = analysis.records(self.frame), None",
        "estimators/test_study.py::test_errors_hold_no_records_and_an_unfit_process_spends_nothing",
    ),
    slip(
        "a failure of a study in words about mechanisms",
        "estimators/carrying_out",
        "refusal = bare(error, asked.failed)",
        "refusal = bare(error)",
        "estimators/test_tables.py::test_missing_cells_are_dropped_or_count_as_was_declared",
    ),
)

SLIPS = ACCOUNTING + LEDGER + CARRYING_OUT
