"""Names slips in what is claimed about a release: its intervals, a person's privacy, what an attack found."""

from tests.mutants.named.slip import Slip
from tests.mutants.syntax import called, reference, returned, without_raise

SLIPS = (
    Slip("intervals leave out the noise of the estimate", "errors_of", reference("z", "0.0 * z")),
    Slip("a group has as many records as were counted", "GroupSize.margin", returned("0 * ({})", nth=1)),
    Slip("records without a value are counted", "counted_groups:_cells", called("isnan", "(places < 0)")),
    Slip("a likelihood has noise at half its rate", "observations:log_likelihood", reference("rate", "0.5 * {}")),
    Slip("the largest residual is at the upper end of y", "largest_residual", called("max", "max({0}, {2})")),
    Slip("data sets that are no neighbours are attacked", "check_neighbours", without_raise("allowed")),
)
