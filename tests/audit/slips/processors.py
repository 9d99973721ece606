"""Small slips in the trial of a process's arithmetic, and in what keeps its threads apart."""

from tests.audit.slips.base import slip

SLIPS = (
    slip(
        "arithmetic that is not tried before a debit",
        "releases/release",
        "    arithmetic.require_right()\n",
        "",
        "core/test_arithmetic.py::test_nothing_is_spent_where_arithmetic_is_wrong",
    ),
    slip(
        "arithmetic that is not tried after the draw",
        "releases/release",
        "if processes.is_so_on_any(bool(arithmetic.broken())):",
        "if False:",
        "core/test_arithmetic.py::test_nothing_is_released_where_arithmetic_changes_during_the_draw",
    ),
    slip(
        "numbers that are compared as numbers, and not bit by bit",
        "core/arithmetic",
        "values.tobytes() == expected.tobytes()",
        "np.array_equal(values, expected)",
        "core/test_arithmetic.py::test_signs_of_zero_and_subnormal_numbers_are_seen_in_each_way",
    ),
    slip(
        "Python's floats that are not tried",
        "core/arithmetic",
        "_in_python(_BY_PYTHON[name], x[:_PAIRS], y[:_PAIRS])",
        "expected[:_PAIRS]",
        "core/test_arithmetic.py::test_signs_of_zero_and_subnormal_numbers_are_seen_in_each_way",
    ),
    slip(
        "special numbers never among the last of an array",
        "core/arithmetic",
        "for start in range(0, number + rest, rest)",
        "for start in (0,)",
        "core/test_arithmetic.py::test_signs_of_zero_and_subnormal_numbers_are_seen_in_each_way",
    ),
    slip(
        "precision that two threads set at once",
        "core/balls",
        "with _LOCK, ctx.workprec(digits):",
        "with ctx.workprec(digits):",
        "core/test_precision_of_balls.py::test_two_threads_have_the_digits_that_they_ask_for",
    ),
    slip(
        "draws at whatever precision others left, and beside them",
        "mechanisms/grid_draws",
        "with precision(DEFAULT_DIGITS):",
        "if True:",
        "core/test_precision_of_balls.py::test_a_draw_does_not_depend_on_the_precision_that_others_left",
    ),
    slip(
        "precision that is set elsewhere",
        "samplers/grid/uniforms",
        "with precision(digits + GUARD_DIGITS):",
        "with __import__('flint').ctx.workprec(digits + GUARD_DIGITS):",
        "core/test_precision_of_balls.py::test_nothing_else_sets_the_precision",
    ),
    slip(
        "values of a grid that are too large for float64",
        "samplers/grid/cells",
        "np.nan_to_num(nearest(np.array([*self.exact_values(cell), None], object)[:-1]))",
        "np.array([float(number) for number in self.exact_values(cell)])",
        "samplers/grid/test_cells.py::test_values_are_nearest_and_beyond_float64_its_largest",
    ),
    slip(
        "corners of a cone for those of a simplex",
        "geometry/hulls_in_fractions",
        "list(dict.fromkeys(_vertices(rows, dimension)))",
        "list(_vertices(rows, dimension))",
        "geometry/test_hulls_in_fractions.py::test_a_cone_has_one_corner_however_many_facets_meet_there",
    ),
    slip(
        "levels next to a far floor that float64 does not tell apart",
        "samplers/grid/quadratic/tilted_noises",
        "* (width / (_NODES - 1))",
        "* (places[1] - places[0])",
        "samplers/grid/test_tilted_noises.py::test_about_log_mass_is_finite_whatever_the_data",
    ),
)
