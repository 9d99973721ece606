"""Slips of one unit in the last place, and of bounds that are a half of what is proved, in what verifies draws."""

from tests.audit.slips.base import slip

_PLACES = "losses/test_last_places.py::"
_SHELLS = _PLACES + "test_scores_and_weights_of_shells_are_off_by_no_unit_more"
_OTHERS = _PLACES + "test_scores_of_boxes_and_minimisers_are_off_by_no_unit_more"
_ENCLOSURES, _LAWS = "samplers/grid/test_enclosures.py::", "audit/test_grid_laws.py::"

SLIPS = (
    slip(
        "pseudo-Huber scores in shells a unit in the last place off",
        "losses/smooth_scores",
        "            -residual / roots,\n",
        "            np.nextafter(-residual / roots, np.inf),\n",
        _SHELLS,
    ),
    slip(
        "logistic weights in shells a unit in the last place off",
        "losses/smooth_scores",
        "size / (more * more) / self.bandwidth, _relative(change, 8.0))",
        "np.nextafter(size / (more * more) / self.bandwidth, np.inf), _relative(change, 8.0))",
        _SHELLS,
    ),
    slip(
        "pseudo-Huber scores of boxes and minimisers a unit in the last place off",
        "losses/verified_scores",
        "score = -(self.threshold * scaled) / np.sqrt(1.0 + scaled * scaled)",
        "score = np.nextafter(-(self.threshold * scaled) / np.sqrt(1.0 + scaled * scaled), np.inf)",
        _OTHERS,
    ),
    slip(
        "exponentials a unit in the last place off",
        "core/verified",
        "powers = np.ldexp(value, whole.astype(np.int64))",
        "powers = np.ldexp(np.nextafter(value, 2.0), whole.astype(np.int64))",
        "core/test_verified.py::test_errors_are_within_the_bound_and_the_bound_is_within_a_few_units",
        _OTHERS,
    ),
    slip(
        "solutions within half of what is proved",
        "samplers/grid/shells/solutions",
        "arb(0, (radius * length(column)).abs_upper())",
        "arb(0, (radius * length(column) / 2).abs_upper())",
        _ENCLOSURES + "test_solutions_are_within_their_balls",
    ),
    slip(
        "minimisers by half of what float64 may be off in gradients",
        "mechanisms/verified_minima",
        "return [arb(one, off) + ridge",
        "return [arb(one, off / 2) + ridge",
        _ENCLOSURES + "test_minimisers_are_within_their_boxes",
    ),
    slip(
        "means by K-norm noise with half of their noise",
        "samplers/grid/noises",
        "return [radius * (2 * uniform.ball(digits) - 1) for uniform in self._point]",
        "return [radius * (uniform.ball(digits) - 0.5) for uniform in self._point]",
        _LAWS + "test_draws_have_the_probabilities_of_their_cells",
    ),
)
