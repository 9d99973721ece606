"""What processes that share the rows of one release do once, on the first of them, and tell the others."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils
from jaxtyping import Float, PRNGKeyArray

from kngjax.core import randomness
from kngjax.core.arrays import float64, is_traced

FIRST_REFUSED = "the first process was refused by its ledger, and nothing is released: its own message says why"


@dataclasses.dataclass(frozen=True)
class Processes:
    """The processes of one release. Holds no rows, so that an error may hold it.

    **Arguments:** `are_several`: whether there are others besides this one, all at the same place of the same program.
    """

    are_several: bool = False

    def secure_key(self) -> PRNGKeyArray:
        """A fresh key from the operating system of the first process, the same on all: one release and not several."""
        key = randomness.secure_key()
        if not self.are_several:
            return key
        words = multihost_utils.broadcast_one_to_all(np.asarray(jax.random.key_data(key)))
        return randomness.from_words(np.asarray(words))

    def on_first(self, work: Callable[[], Any]) -> Any:
        """work() on the first process alone, once; None on the others. If it raises, all of them do."""
        if not self.are_several:
            return work()
        part, failure = None, None
        if jax.process_index() == 0:
            try:
                part = work()
            except BaseException as error:
                # The other processes wait for this one, whatever it was.
                failure = error
        refused = multihost_utils.broadcast_one_to_all(np.array(failure is not None))
        if failure is not None:
            raise failure
        if refused:
            raise RuntimeError(FIRST_REFUSED)
        return part

    def is_so_on_any(self, flag: bool) -> bool:
        """Whether this flag is set on one of the processes: the same answer on all."""
        if not self.are_several:
            return flag
        return bool(np.any(multihost_utils.process_allgather(np.array(flag))))

    def first(self, value: Float[np.ndarray, " dimension"]) -> Float[np.ndarray, " dimension"]:
        """The first process's value, to the same bits on all."""
        if not self.are_several:
            return value
        with float64():
            return np.array(multihost_utils.broadcast_one_to_all(value))


ALONE = Processes()


def are_on_one_host(data: Any) -> bool:
    """Whether this process holds all of these arrays, and no other a part; of what is traced nothing is known."""
    arrays = (leaf for leaf in jax.tree.leaves(data) if isinstance(leaf, jax.Array) and not is_traced(leaf))
    return all(array.is_fully_addressable for array in arrays)
