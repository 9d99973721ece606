"""Names slips in what one record can change, some of which were printed: factors of an exchange, bounds, weights."""

from tests.mutants.named.slip import Slip
from tests.mutants.syntax import called, condition, constant, reference, returned

SLIPS = (
    Slip(
        "the check loss has slopes of at most 1 - tau, as was printed",
        "AbstractLevelLoss.score_interval",
        returned("jnp.asarray(self.tau) - 1.0, 1.0 - jnp.asarray(self.tau)"),
    ),
    Slip(
        "the check loss has slopes of at most 1 - tau in fractions, as was printed",
        "in_fractions:_score_interval",
        reference("tau", "1 - tau", nth=0),
    ),
    Slip("an exchange of records changes a gradient once", "changes_within", condition("REPLACE", "False")),
    Slip(
        "an exchange of records changes a gradient once in fractions",
        "quadratic_draws:noise_of",
        reference("adjacency", "type({}).ADD_REMOVE", nth=0),
    ),
    Slip("an exchange of records changes a sum once", "sum_changes_in_fractions", condition("REPLACE", "False")),
    Slip("an exchange of exclusive columns of both signs changes one of them", "blocks_of_sum", constant(2, 1)),
    Slip("a record keeps all of its exclusive columns", "BlockSums.alone", reference("exclusive", "()")),
    Slip("an exchange of records changes X'X without its root of 2", "moments:moment_changes", called("sqrt", "1.0")),
    Slip(
        "the loss of one record has half of its range under add_remove",
        "gradients:value_sensitivity",
        constant(0.5, 0.25),
    ),
    Slip("an l1 norm has the sensitivity of the largest entry", "GradientNorm.__call__", reference("max", "np.sum")),
    Slip("scores of the squared loss take y at one end alone", "SquaredLoss.score_interval", constant(0, 1, nth=1)),
    Slip(
        "scores of a loss that sees rows are bounded at the lowest row alone",
        "AbstractRowLoss.score_range",
        called("_seen", "((rows[0], rows[0]),)"),
    ),
    Slip("the largest weight is left out", "weighted:of_weighted", called("asarray", "1.0", nth=0)),
    Slip(
        "the errors of a search for a minimiser are forgotten",
        "OutputPerturbation.sensitivity_value",
        constant(2.0, 0.0, nth=1),
    ),
    Slip("points of a region lie on one side of theta alone", "sets_in_balls:farthest", called("maximum", "{0}")),
    Slip("several votes of a person are one", "weighted:most", returned("None")),
    Slip(
        "the ridge of persons is for Hessians of rank one",
        "ObjectivePerturbation.ridge",
        condition("of_persons", "False"),
    ),
    Slip("shares of persons are rounded to nearest on lattices", "units:on_lattice", condition("toward_zero", "False")),
    Slip(
        "rounded scores of groups that share persons have no price",
        "lattice:rate_of",
        condition("unit is None", "True"),
    ),
)
