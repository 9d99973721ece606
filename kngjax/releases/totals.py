"""Computes what releases of the same records cost together, as their certificates say."""

from collections.abc import Iterable, Sequence

from kngjax.accounting.guarantees import Guarantee
from kngjax.releases.certificate import Certificate


def total_cost(certificates: Iterable[Certificate]) -> Guarantee | None:
    """States what is proved of these releases together; None if nothing is proved of one of them."""
    return total(certificate.cost for certificate in certificates)


def total(costs: Iterable[Guarantee | None]) -> Guarantee | None:
    """States what is proved of releases of these costs together; None for no release, or one with nothing proved."""
    given = list(costs)
    proved = [cost for cost in given if cost is not None]
    return composed(proved) if proved and len(proved) == len(given) else None


def composed(costs: Sequence[Guarantee]) -> Guarantee:
    """Composes releases of the same records, stated at the sum of their stated δ where no sum of ε is finite."""
    if len(costs) == 1:
        # A composition states its own (ε, δ), which a composition of it would forget.
        return costs[0]
    total, delta = Guarantee.composed(costs), sum(cost.exact_delta for cost in costs)
    return total.stated(delta) if total.exact_epsilon is None and delta < 1 else total


def explain_cost(certificates: Iterable[Certificate]) -> str:
    """Says in words what releases cost besides the sums over the laws; empty where they cost no more."""
    cost = total_cost(certificates)
    if cost is None:
        return ". That is of the laws that Markov chains approximate, and NOT PROVED of these releases"
    if cost.exact_distance:
        return f"; with the rounding of these outputs ({cost.epsilon:g}, {cost.delta:.3g})-DP"
    return ""
