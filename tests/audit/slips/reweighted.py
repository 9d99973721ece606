"""Small slips of private IRLS on a grid: weights, sums over weighted rows, noise on matrices and what budgets keep."""

from tests.audit.slips.base import slip

ON_GRID = "mechanisms/test_irls_on_grid.py"
WEIGHTS = "data/test_weighted_sums.py"

SLIPS = (
    slip(
        "residuals that know their place",
        "data/weighted_sums",
        "            for column, coefficient in zip(columns, theta, strict=True):\n"
        "                residuals -= column * coefficient\n",
        "            residuals -= theta @ columns\n",
        f"{WEIGHTS}::test_a_weight_is_the_same_wherever_its_record_stands",
    ),
    slip(
        "weights that are no numbers",
        "data/weighted_sums",
        "            residuals[np.isnan(residuals)] = np.inf\n",
        "",
        f"{WEIGHTS}::test_no_weight_is_above_the_cap_whatever_the_iterate",
    ),
    slip(
        "sizes of weighted rows rounded down",
        "data/weighted_sums",
        "(round(math.ldexp(size, -e))",
        "(math.floor(math.ldexp(size, -e))",
        f"{WEIGHTS}::test_no_row_leaves_its_sizes_and_corners_reach_them",
    ),
    slip(
        "an exchange of rows moves a sum of sizes once",
        "sensitivity/moments_in_fractions",
        "times = 4 if adjacency is Adjacency.REPLACE else 1",
        "times = 1",
        "sensitivity/test_absolute_moments.py",
    ),
    slip(
        "rows of a hull without what they are rounded by",
        "data/weighted_sums",
        "(1 + share) * Fraction(largest_root) ** 2 * square + (1 + 1 / share) * steps",
        "Fraction(largest_root) ** 2 * square",
        f"{WEIGHTS}::test_rows_of_a_hull_are_no_longer_than_said",
    ),
    slip(
        "rows of a small hull with the squares of what they are rounded by alone",
        "data/weighted_sums",
        "(1 + 1 / share) * steps",
        "steps",
        f"{WEIGHTS}::test_rows_of_a_hull_that_is_far_smaller_than_its_box_are_no_longer_than_said",
    ),
    slip(
        "weights as large as a power comes out",
        "data/weighted_sums",
        "return np.minimum(roots, self.largest)",
        "return roots",
        f"{WEIGHTS}::test_no_weight_is_above_the_cap_whatever_a_power_comes_to",
    ),
    slip(
        "a Poisson process of a point fewer",
        "mechanisms/noise/wishart_in_balls",
        "for number in range(1, half):",
        "for number in range(1, half - 1):",
        "mechanisms/noise/test_wishart_in_balls.py::test_tails_are_those_of_chi_square_numbers",
    ),
    slip(
        "Wishart noise in one direction",
        "mechanisms/noise/wishart_in_balls",
        "if ratio / 2 > epsilon:",
        "if False:",
        "mechanisms/noise/test_wishart_in_balls.py::test_both_directions_have_their_failures",
    ),
    slip(
        "Laplace noise of half the scale, on a grid",
        "mechanisms/irls_on_grid",
        "absolute / part.exact_epsilon**2",
        "absolute / part.exact_epsilon**2 / 4",
        f"{ON_GRID}::test_no_record_moves_exact_moments_more_than_the_noise_hides",
    ),
    slip(
        "moments of the iterate before the last one",
        "mechanisms/irls_on_grid",
        "self.moments(columns, theta)",
        "self.moments(columns, None)",
        f"{ON_GRID}::test_iterates_are_those_of_weighted_least_squares",
    ),
    slip(
        "Gaussian noise off the diagonal of a quarter of the variance",
        "samplers/grid/matrices",
        "off_diagonal = scale_squared / 2",
        "off_diagonal = scale_squared / 4",
        "samplers/grid/test_matrices.py::test_entries_of_a_triangle_have_their_laws",
    ),
    slip(
        "a Bartlett factor of one degree for all rows",
        "samplers/grid/matrices",
        "[degrees - row for row in range(dimension)]",
        "[degrees for row in range(dimension)]",
        "samplers/grid/test_matrices.py::test_wishart_noise_has_its_law",
    ),
    slip(
        "what Gaussian parts state taken at their word",
        "accounting/certain_budgets",
        "return is_hidden(2 * part.exact_rho, part.exact_epsilon, part.exact_delta)",
        "return True",
        "accounting/test_certain_budgets.py::test_stated_gaussian_parts_are_checked",
    ),
    slip(
        "a budget that is not known to be kept counts as kept",
        "core/balls",
        "if all(number <= 0 for",
        "if all(not number > 0 for",
        "core/test_balls.py::test_what_balls_leave_open_is_not_certain",
    ),
    slip(
        "Wishart noise that hides records and not their weighted rows",
        "mechanisms/irls_on_grid",
        "_noise_by_wishart(parts[1], radii.features,",
        "_noise_by_wishart(parts[1], records.features,",
        f"{ON_GRID}::test_wishart_noise_that_is_too_small_is_not_certified",
    ),
    slip(
        "Wishart noise confirmed at the share of vectors",
        "mechanisms/irls_on_grid",
        "_noise_by_wishart(parts[1], radii.features,",
        "_noise_by_wishart(parts[0], radii.features,",
        f"{ON_GRID}::test_wishart_noise_that_is_too_small_is_not_certified",
    ),
    slip(
        "Wishart noise that nothing confirms",
        "mechanisms/irls_on_grid",
        "    if not wishart_hides(",
        "    if False and not wishart_hides(",
        f"{ON_GRID}::test_wishart_noise_that_is_too_small_is_not_certified",
    ),
    slip(
        "the share of vectors for matrices as well",
        "mechanisms/irls_on_grid",
        "_scale_squared(kinds[1], parts[1], on_matrix",
        "_scale_squared(kinds[1], parts[0], on_matrix",
        f"{ON_GRID}::test_an_exchange_of_opposites_reaches_the_bound",
    ),
    slip(
        "Gaussian parts as one of half their ρ",
        "accounting/certain_budgets",
        "is_hidden(2 * sums.gaussian_rho, room, left)",
        "is_hidden(sums.gaussian_rho, room, left)",
        "accounting/test_certain_budgets.py::test_gaussian_parts_are_as_one",
    ),
    slip(
        "the l1 norm of a triangle without its diagonal's half",
        "sensitivity/moments_in_fractions",
        "((total**2 + radii.features) / 2) ** 2",
        "(total**2 / 2) ** 2",
        "sensitivity/test_absolute_moments.py::test_they_are_those_of_float64",
    ),
    slip(
        "an exchange hidden by Wishart noise at the whole ε",
        "mechanisms/noise/wishart_in_balls",
        "level = epsilon / 2 if exchanges else epsilon",
        "level = epsilon",
        "mechanisms/noise/test_wishart_in_balls.py::test_an_exchange_is_a_removal_and_an_addition",
    ),
)
