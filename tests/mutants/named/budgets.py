"""Names slips in what releases cost together: shares, conversions, debits."""

from tests.mutants.named.slip import Slip
from tests.mutants.syntax import assigned, called, condition, constant, reference, returned, without_raise

SLIPS = (
    Slip("bounded range costs half of its rho", "FACTORS", constant(8, 16)),
    Slip("delta is that of one order of neighbours", "with_both_orders", returned("delta", nth=1)),
    Slip(
        "each of several quantiles on a lattice has the whole budget",
        "PrivateQuantile.densities",
        assigned("epsilon", "inward(exactly(float(self.epsilon)))"),
    ),
    Slip("shares of moments add up to more than the whole", "NoisyMoments.of", called("sum", "1")),
    Slip(
        "AdaOPS has all of delta beside its failures", "AdaOPS.plan", called("renyi_budget", "renyi_budget({0}, delta)")
    ),
    Slip(
        "IRLS spends its budget in each iteration",
        "PrivateIRLS._spending",
        assigned("by_sums", "shares * epsilon", nth=0),
    ),
    Slip(
        "an exchanged record costs one of its two groups",
        "group_plans:_exchanged",
        assigned("twice", "Guarantee.bounded_range(cost.epsilon, Adjacency.REPLACE)"),
    ),
    Slip(
        "an estimate with intervals has all of epsilon", "interval_choices:_divided", assigned("first", "inward(whole)")
    ),
    Slip(
        "an estimate with intervals costs what it costs alone",
        "AbstractIntervalPlan.owed",
        reference("costs", "{}[:1]", nth=0),
    ),
    Slip(
        "intervals of counted groups have all of epsilon beside their counts",
        "GroupedAnalyses._ask_counted",
        assigned("named", "dict(named)", nth=0),
    ),
    Slip("any number of records costs what one does", "exchanges:of_records", returned("guarantee")),
    Slip("OpenDP charges no release that failed", "make_opendp_measurement", condition("ReleaseFailed", "False")),
    Slip("a ledger takes OpenDP's loss of records of public number", "opendp_guarantee", without_raise("domain")),
    Slip("a debit counts beside no other", "Ledger._debits", reference("parts", "()")),
    Slip("an analysis is not debited", "_release_missing", assigned("debit", "None", nth=0)),
    Slip(
        "a resumed job draws again what was paid",
        "resuming:earlier_releases",
        returned("Earlier(known.run + 1, dict())", nth=1),
    ),
)
