"""Names slips in what is claimed about a release: its intervals, a person's privacy, what an attack found."""

from tests.mutants.named.slip import Slip
from tests.mutants.syntax import assigned, called, reference, returned, without_raise

SLIPS = (
    Slip("intervals leave out the noise of the estimate", "ErrorDraws.of", reference("z", "0.0 * z")),
    Slip("an interval of a count has half of its noise", "margin_of_count", returned("({}) // 2")),
    Slip("an interval of a sum has half of its noise", "margin_of_sum", returned("0.5 * ({})")),
    Slip(
        "a count of a population has half of its noise", "count_of_population", assigned("q", "math.exp(-2.0 * rate)")
    ),
    Slip("counts that are drawn again have half of their noise", "counts_given", reference("rate", "2.0 * {}")),
    Slip("the other cells of a row have no noise", "share_of_row", assigned("rest", "0 * first")),
    Slip("a group has as many records as were counted", "GroupSize.margin", returned("0 * ({})", nth=1)),
    Slip("records without a value are counted", "counted_groups:_cells", called("isnan", "(places < 0)")),
    Slip("a likelihood has noise at half its rate", "observations:log_likelihood", reference("rate", "0.5 * {}")),
    Slip("the largest residual is at the upper end of y", "largest_residual", called("max", "max({0}, {2})")),
    Slip("data sets that are no neighbours are attacked", "check_neighbours", without_raise("allowed")),
)
