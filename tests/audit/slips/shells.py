"""Small slips of KNG with the pseudo-Huber loss, every rounding of which is proved."""

from tests.audit.slips.base import slip

_DRAWS, _BOXES = "samplers/grid/smooth/test_smooth_draws.py::", "samplers/grid/smooth/test_boxes.py::"

SLIPS = (
    slip(
        "half of the noise of a smooth gradient",
        "mechanisms/smooth_draws",
        "exactly(float(mechanism.epsilon)) / 2",
        "exactly(float(mechanism.epsilon))",
        _DRAWS + "test_no_neighbours_are_told_apart_by_more_than_epsilon_and_some_nearly_by_that",
    ),
    slip(
        "scores of one sign alone",
        "mechanisms/smooth_draws",
        "changes_of_products((-k, k),",
        "changes_of_products((0 * k, k),",
        _DRAWS + "test_the_noise_is_that_of_the_sensitivity_in_fractions",
    ),
    slip(
        "residuals without the error of predictors",
        "samplers/grid/smooth/records",
        "error = (residuals.error + 7 * ROUNDOFF * k) * UPWARD",
        "error = 7 * ROUNDOFF * k * UPWARD",
        "samplers/grid/smooth/test_smooth_records.py::test_balls_contain_what_cancels_in_residuals",
    ),
    slip(
        "solutions that are taken for exact",
        "samplers/grid/smooth/solutions",
        "arb(0, (radius * length(column)).abs_upper())",
        "arb(0, (radius * length(column) / 2**30).abs_upper())",
        _DRAWS + "test_solutions_are_within_balls_of_any_number_of_digits",
    ),
    slip(
        "a shell's mass at its outer end",
        "samplers/grid/smooth/envelope",
        "core * (outer - inner) * (arb(float(height)) - arb(float(edge))).exp()",
        "core * (outer - inner) * (arb(float(height)) - 2 * arb(float(edge))).exp()",
        _DRAWS + "test_releases_of_one_coefficient_have_the_law_by_quadrature",
    ),
    slip(
        "a box's floor without the bend of the gradient",
        "samplers/grid/smooth/boxes",
        "np.abs(centre) - linear - bent - off",
        "np.abs(centre) - linear - off",
        _BOXES + "test_floors_hold_at_ends_and_random_points_of_boxes",
    ),
    slip(
        "rows that stay where they are within a box",
        "samplers/grid/smooth/boxes",
        "np.abs(middle) - widths - each",
        "np.abs(middle) - each",
        _BOXES + "test_floors_hold_at_ends_and_random_points_of_boxes",
    ),
    slip(
        "points of a box on one side of its middle",
        "samplers/grid/smooth/boxes",
        "(2 * share.ball(digits) - 1)",
        "share.ball(digits)",
        _BOXES + "test_points_are_uniform_in_their_box",
    ),
    slip(
        "boxes of one mass, whatever their floors",
        "samplers/grid/smooth/boxes",
        "volume * arb(-floor).exp()",
        "volume * arb(-floor / 2).exp()",
        _DRAWS + "test_releases_of_one_coefficient_have_the_law_by_quadrature",
    ),
    slip(
        "the smooth grid from fewer records on",
        "mechanisms/smooth_draws",
        "enough = exactly(float(mechanism.epsilon)) * count >= GRADIENTS_UNASKED",
        "enough = 2 * exactly(float(mechanism.epsilon)) * count >= GRADIENTS_UNASKED",
        _DRAWS + "test_which_releases_take_it_is_public",
    ),
)
