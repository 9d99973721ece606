"""Names slips in what is claimed about a release: its intervals, a person's privacy, what an attack found."""

from tests.mutants.named.slip import Slip
from tests.mutants.syntax import called, reference

SLIPS = (
    Slip("intervals leave out the noise of the estimate", "errors_of", reference("z", "0.0 * z")),
    Slip("a likelihood has noise at half its rate", "observations:log_likelihood", reference("rate", "0.5 * {}")),
    Slip("the largest residual is at the upper end of y", "largest_residual", called("max", "max({0}, {2})")),
    Slip("an attack takes shares of draws for their bounds", "log_ratio_bound", reference("risk", "0.5", nth=0)),
)
