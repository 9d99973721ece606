"""Small slips of draws of smooth losses from boxes, with every rounding in their proof."""

from tests.audit.slips.base import slip

SLIPS = (
    slip(
        "half of the noise of a smooth loss's gradient",
        "mechanisms/smooth_facts",
        "exactly(float(mechanism.epsilon)) / 2",
        "exactly(float(mechanism.epsilon))",
        "mechanisms/test_box_draws.py::test_noise_is_twice_the_largest_change_over_epsilon",
        "mechanisms/test_shell_draws.py::test_no_neighbours_are_told_apart_by_more_than_epsilon_and_some_nearly_by_that",
    ),
    slip(
        "boxes taken by their number and not by their mass",
        "samplers/grid/boxes/draws",
        'np.searchsorted(sums, np.array(found[:number], np.int64), side="right")',
        "np.array(found[:number], np.int64) % sums.size",
        "samplers/grid/test_boxes.py::test_the_law_does_not_depend_on_the_boxes",
    ),
    slip(
        "floors without what is not known of slopes",
        "samplers/grid/boxes/sums",
        "(varied + unknown + rounded) * _WIDER",
        "(varied + rounded) * _WIDER",
        "samplers/grid/test_boxes.py::test_float64_has_gradients_over_boxes_and_at_points",
        "samplers/grid/test_boxes.py::test_floors_are_at_most_what_gradients_are",
    ),
    slip(
        "the largest of a form without what is off its diagonal",
        "samplers/grid/boxes/gauges",
        "return sum((sum(row, arb(0)) for row in sizes), arb(0))",
        "return sum((row[j] for j, row in enumerate(sizes)), arb(0))",
        "samplers/grid/test_boxes.py::test_norms_are_rounded_to_the_side_that_proofs_need",
    ),
    slip(
        "secants as far as to one end alone",
        "losses/secants",
        "for sign in (-1.0, 1.0):",
        "for sign in (1.0,):",
        "losses/test_verified_scores.py::test_secants_from_the_middle_lie_between_their_ends",
    ),
    slip(
        "weights that are rounded down",
        "samplers/grid/boxes/draws",
        ".astype(np.int64) + 1",
        ".astype(np.int64)",
        "samplers/grid/test_boxes.py::test_weights_are_at_least_the_masses_that_floors_allow",
    ),
    slip(
        "values outside of the domain",
        "samplers/grid/boxes/draws",
        "inside = self._body.contains(theta)",
        "inside = True",
        "samplers/grid/test_boxes.py::test_the_law_does_not_depend_on_the_boxes",
        "mechanisms/test_box_draws.py::test_no_value_lies_outside_of_the_domain",
    ),
    slip(
        "three terms of the normal series less than its proof has",
        "core/verified_normal",
        "_FARTHEST, _NODES, _ORDER = 9, 16, 9",
        "_FARTHEST, _NODES, _ORDER = 9, 16, 6",
        "core/test_verified_normal.py",
    ),
    slip(
        "normal scores whose predictor's error is left out",
        "losses/verified_gaussian",
        "off = _PEAK * error / self.bandwidth + NORMAL_ERROR",
        "off = NORMAL_ERROR",
        "losses/test_verified_scores.py::test_scores_are_within_their_errors_and_slopes_between_their_ends",
    ),
    slip(
        "normal slopes that do not change within a radius",
        "losses/verified_gaussian",
        "off = _BEND * radius / self.bandwidth + DENSITY",
        "off = DENSITY",
        "losses/test_verified_scores.py::test_scores_are_within_their_errors_and_slopes_between_their_ends",
    ),
)
