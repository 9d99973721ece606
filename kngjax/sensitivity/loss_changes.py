"""Bounds how far one record moves the sums of losses of a private choice."""

from fractions import Fraction

from kngjax.accounting.guarantees import Adjacency
from kngjax.sensitivity.gradients import Sensitivity


def loss_changes(adjacency: Adjacency) -> tuple[int, int]:
    """The least and the largest change of Σ_i l_ki by one record, for every k alike, if each l_ki is in [0, 1].

    Exchanging a record takes one loss of [0, 1] away and adds another: between -1 and 1. One record more adds its own:
    between 0 and 1; one less is the same pair in the other order.
    """
    return (-1, 1) if adjacency is Adjacency.REPLACE else (0, 1)


def choice_rate(epsilon: Fraction, adjacency: Adjacency) -> Fraction:
    """c = ε/(largest - least change), for which P(k) ∝ exp(-c Σ_i l_ki) is of ε-bounded range.

    c times the changes of all sums lie in an interval of length ε, so that the logarithm of P(k)/P'(k), which is such
    a change and a constant, varies by ε at most over k (Durfee and Rogers 2019).
    """
    least, largest = loss_changes(adjacency)
    return epsilon / (largest - least)


def explain_loss_changes(adjacency: Adjacency) -> Sensitivity:
    """The length of the interval of changes, with its derivation."""
    least, largest = loss_changes(adjacency)
    how = "exchanging one record" if adjacency is Adjacency.REPLACE else "one record more"
    return Sensitivity(
        float(largest - least),
        f"each record's loss of each candidate lies in [0, 1], and {how} changes every sum of them by a number in "
        f"[{least}, {largest}], an interval of length {largest - least}.",
    )
