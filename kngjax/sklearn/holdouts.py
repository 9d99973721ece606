"""Chooses the held-out records without a look at any record, and proves what the choice costs.

Let A be released from the training records at guarantee G, and then, given what A released, B from the held-out ones
at guarantee H. Which record is in which part is drawn first, with a law in which each record's part does not depend on
what any record holds, nor on how the records are ordered:

    add_remove    each record by a coin of its own
    replace       a uniformly random subset of a public size

Then releasing both satisfies every bound, on the privacy loss of either order of neighbours, that G and H both satisfy.

Proof. Fix the parts. Under replace let r' take the place of r, and the part that r has; the other n - 1 records have
theirs in both data sets. Under add_remove let r be one record more, in either part. If r is in training, A's outputs
have the guarantee G, and given any of them B sees the same records: what B releases is post-processing. If r is held
out, A's outputs have one law in both data sets, and given any of them B's have the guarantee H. So for fixed parts the
pair (A, B) is bounded by the worse of both. The law of the parts is the same in both data sets: under replace all
subsets of that size are as likely in any order of the records, also where exchanging a record reorders a sorted file;
under add_remove the coins of the common records are, and r's is thrown where there is no r as well. To show the parts
beside the outputs gives a pair of laws whose privacy loss is that for fixed parts, and to hide them again is
post-processing. ∎

Of persons with several rows the same holds with a person in the place of a record: all rows of one lie in one part, by
one coin a person or as a uniformly random subset of the persons, whichever rows they have. A row without identifier has
weight 0, and lies in training.

So where H is no worse than G the choice costs nothing more: `kngjax.sklearn.PrivateSearch` then debits the fits alone.
Under add_remove the size of a part tells of n, and is not shown.
"""

import os
import secrets

import numpy as np
from jaxtyping import Int

from kngjax.accounting.adjacency import Adjacency
from kngjax.accounting.guarantees import Guarantee
from kngjax.accounting.kinds import Kind


def parts(count: int, share: float, adjacency: Adjacency) -> tuple[np.ndarray, np.ndarray]:
    """Returns positions of the training records and of those that are held out, each in increasing order.

    **Arguments:** `count`: n. `share`: the share that is held out, in (0, 1). Raises ValueError under replace, where n
    is public, if a part would be empty.
    """
    if adjacency is Adjacency.ADD_REMOVE:
        coins = np.frombuffer(os.urandom(4 * count), np.uint32)
        held_out = coins < share * 2.0**32
    else:
        number = round(share * count)
        if not 0 < number < count:
            raise ValueError(f"of {count} records holdout={share!r} leaves one of both parts empty")
        held_out = np.zeros(count, bool)
        held_out[secrets.SystemRandom().sample(range(count), number)] = True
    return np.flatnonzero(~held_out), np.flatnonzero(held_out)


def parts_of_persons(
    codes: Int[np.ndarray, " rows"], share: float, adjacency: Adjacency
) -> tuple[np.ndarray, np.ndarray, int]:
    """Returns positions of the rows to train on, of those that are held out, and how many persons the latter are of.

    **Arguments:** `codes`: whose row each is, as `kngjax.data.persons.codes_of` numbers persons. Others, and what is
    raised, as of `parts`.
    """
    _, chosen = parts(int(np.max(codes, initial=-1)) + 1, share, adjacency)
    held_out = np.isin(codes, chosen)
    return np.flatnonzero(~held_out), np.flatnonzero(held_out), len(chosen)


def is_covered(choice: Guarantee, fits: list[Guarantee]) -> bool:
    """Tells whether one of the fits costs at least as much as the choice, in every sum that a ledger makes.

    The choice is of bounded range. A ledger adds up ε and δ as stated, and ρ of the parts that have one beside ε and δ
    of those that have none: neither is less with the fit in the place of the choice if its ε is at least the choice's,
    and its ρ, if it has one. Gaussian parts it adds up by their μ as well, and laws that are near others by their
    distance, which the choice has not: none of them covers it.
    """
    assert choice.exact_epsilon is not None
    assert choice.exact_rho is not None
    return any(
        part.kind in (Kind.PURE, Kind.BOUNDED_RANGE, Kind.APPROXIMATE)
        and part.exact_epsilon is not None
        and part.exact_epsilon >= choice.exact_epsilon
        and (part.exact_rho is None or part.exact_rho >= choice.exact_rho)
        for fit in fits
        for part, _ in fit.parts or ((fit, 1),)
    )
