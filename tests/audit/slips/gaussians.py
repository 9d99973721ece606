"""Small slips of Gaussian draws whose every rounding is proved."""

from tests.audit.slips.base import slip

_DRAWS, _LEAST = "samplers/grid/test_gaussians.py", "mechanisms/noise/test_posterior_in_balls.py"
_STAGES = "mechanisms/test_noisy_ada_ops.py"

SLIPS = (
    slip(
        "half of the noise in a ball's draw",
        "samplers/grid/gaussians",
        "ball_of(noise.variance).sqrt()",
        "ball_of(noise.variance).sqrt() / 2",
        f"{_DRAWS}::test_cells_of_a_line_have_normal_probabilities",
    ),
    slip(
        "noise whitened by L in the place of its transpose",
        "samplers/grid/gaussians",
        "return grid.cell(_solve_transposed(factor, whitened))",
        "return grid.cell(_solve(factor, whitened))",
        f"{_DRAWS}::test_cells_of_a_plane_have_the_probabilities_of_quadrature",
    ),
    slip(
        "a pivot without the ridge",
        "samplers/grid/gaussians",
        "ball_of(numbers[index] + ridge)",
        "ball_of(numbers[index] + (ridge if index else 0))",
        f"{_DRAWS}::test_the_draw_is_what_a_general_solver_makes_of_the_same_normal_numbers",
    ),
    slip(
        "a cell bounded by its smallest leverage",
        "mechanisms/noise/posterior_in_balls",
        "_Record.of(settings, last, residual",
        "_Record.of(settings, first, residual",
        f"{_LEAST}::test_cells_are_bounded_by_the_worst_of_their_points",
    ),
    slip(
        "cells bounded by what they have in the middle",
        "mechanisms/noise/posterior_in_balls",
        "delta + abs(slope) * half <= bound",
        "delta <= bound",
        f"{_LEAST}::test_worst_neighbours_have_the_least_delta_that_is_confirmed",
    ),
    slip(
        "the residual of a cell's last leverage",
        "mechanisms/noise/posterior_in_balls",
        "_residual(settings, arb(0.5).max(lower).min(upper))",
        "_residual(settings, upper)",
        f"{_LEAST}::test_cells_are_bounded_by_the_worst_of_their_points",
    ),
    slip(
        "an exchange at the whole delta",
        "accounting/gaussian_in_balls",
        "delta = delta / (1 + epsilon.exp())",
        "delta = delta / 1",
        f"{_LEAST}::test_exchanges_take_a_removal_and_an_addition",
    ),
    slip(
        "noise in the objective beside half of the largest residual",
        "mechanisms/noise/objective_in_balls",
        "(settings.others * settings.leverage).sqrt() / 2",
        "(settings.others * settings.leverage).sqrt() / 4",
        f"{_LEAST}::test_noise_in_the_objective_is_confirmed_up_to_the_bound",
    ),
    slip(
        "AdaOPS's smallest eigenvalue that rounding may lift",
        "mechanisms/noisy_ada_ops",
        "- self.plan.tail * deviation - rounding",
        "- self.plan.tail * deviation",
        f"{_STAGES}::test_rounding_never_lifts_the_bounds_beyond_what_they_bound",
    ),
    slip(
        "AdaOPS's bound that rounding may lower",
        "mechanisms/noisy_ada_ops",
        "noisy + power_of_two(-_FINENESS) / 2 + change",
        "noisy + change",
        f"{_STAGES}::test_rounding_never_lifts_the_bounds_beyond_what_they_bound",
    ),
    slip(
        "AdaOPS's bound not raised by what a record changes",
        "mechanisms/noisy_ada_ops",
        "/ 2 + change + self.plan.tail",
        "/ 2 + self.plan.tail",
        f"{_STAGES}::test_each_stage_has_its_normal_law",
    ),
    slip(
        "AdaOPS's change of the bound rounded down",
        "mechanisms/noisy_ada_ops",
        "change = upper_end(ball_of(self.radii.features / curvature).log1p())",
        "change = -upper_end(-ball_of(self.radii.features / curvature).log1p())",
        f"{_STAGES}::test_what_a_record_changes_of_the_bound_is_rounded_up",
    ),
    slip(
        "AdaOPS's eigenvalue with half of the noise",
        "mechanisms/noisy_ada_ops",
        "deviation = change / self.plan.eigenvalue_shift",
        "deviation = change / self.plan.eigenvalue_shift / 2",
        f"{_STAGES}::test_each_stage_has_its_normal_law",
    ),
    slip(
        "AdaOPS with one failure in the place of two",
        "mechanisms/noise/stages_in_balls",
        "converted + 2 * below",
        "converted + below",
        "mechanisms/noise/test_stages_in_balls.py::test_plans_are_confirmed_and_those_that_spend_a_little_more_are_not",
    ),
    slip(
        "AdaOPS's scale as if covariances told nothing",
        "mechanisms/noise/stages_in_balls",
        "left = ball_of(plan.budget) - _of_covariance(plan, mu)",
        "left = ball_of(plan.budget)",
        "mechanisms/noise/test_stages_in_balls.py::test_gamma_spends_what_the_last_stage_has_and_no_more",
    ),
)
