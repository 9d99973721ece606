"""Names slips that leave half of a mechanism's noise, or less, or noise of another law."""

from tests.mutants.named.slip import Slip
from tests.mutants.syntax import assigned, called, comparison, constant, reference

SLIPS = (
    Slip("KNG has half of its noise", "AbstractDensityMechanism.target", constant(2.0, 1.0)),
    Slip("KNG on a lattice has half of its noise", "rate_of", constant(2, 1)),
    Slip("quadratic losses have half of their noise", "quadratic_draws:noise_of", assigned("rate", "2 * {}")),
    Slip("counts have half of their noise under replace", "NoisyCounts.wholes", reference("change", "1")),
    Slip("noise in an objective has half of its size", "ObjectiveLaw.of", reference("share", "2 * share", nth=0)),
    Slip("a ridge regression has the noise of one record removed", "NoisyRidge.of", constant(2, 1, nth=0)),
    Slip("weights of IRLS have no cap", "PrivateIRLS._moments", called("maximum", "{1}")),
    Slip("posterior draws have half of their noise", "draw_ridge", called("sqrt", "{call} / 2")),
    Slip("noise of means has half of its size", "draw_cell", reference("ball_scales", "[one / 2 for one in {}]")),
    Slip("geometric noise has one side", "draw_two_sided_geometric", called("_geometric", "0", nth=1)),
    Slip("an exchange has positive columns by fair coins", "noises:_exchanged", comparison("wanted", "bits(1)")),
    Slip(
        "points of an exchange have positive columns by fair coins",
        "uniform_points",
        comparison("both", "own < 0.5"),
    ),
    Slip("noise in blocks has half of its size", "BlockNoise.balls", assigned("radius", "{} / 2")),
    Slip("noise in blocks has a radius of D exponential numbers", "BlockNoise", constant(1, 0, nth=-1)),
    Slip(
        "joint quantiles lie in gaps that are summed alone", "JointLaw.draws", assigned("is_far", "0.0 * share > 0.0")
    ),
    Slip("points of blocks lie on the faces of their balls", "BlockNoise", constant(1, 0, nth=-2)),
    Slip(
        "sums in blocks have half of their noise",
        "BlockSums.noise_in_fractions",
        called("scaled", "self._norm.scaled({0} / 4)"),
    ),
    Slip("variances beside a mean have half of their noise", "MeanPlan.summing", reference("epsilon", "2 * {}")),
    Slip(
        "counts before intervals of groups have half of their noise",
        "CountedGroups.of",
        called("GeometricMechanism", "GeometricMechanism({0}, 2 * {1}, {2})"),
    ),
    Slip("H has half of its noise", "RegressionPlan.summing", reference("epsilons", "(2 * {}[0],)")),
    Slip(
        "sampling variances have half of their noise",
        "RegressionPlan.of_variances",
        reference("epsilons", "(0, 2 * {}[1])"),
    ),
    Slip("noise of H that is drawn again has half of its size", "block_noise_of", called("_scales", "{call} / 2")),
    Slip("noise of variances that is drawn again has half of its size", "box_noise", called("_scales", "{call} / 2")),
    Slip("K-norm noise has a radius of d exponential numbers", "k_norm_noise", constant(1, 0, nth=0)),
)
