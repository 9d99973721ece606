"""Computes what releases of the same records cost together."""

from collections.abc import Iterable, Sequence

from kngjax.accounting.guarantees import Guarantee


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
