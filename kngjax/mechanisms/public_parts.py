"""Names the public parts of a mechanism from which its preparation of records and its facts about noise are made."""

import abc

import equinox as eqx

from kngjax.accounting.guarantees import Adjacency
from kngjax.core.modules import AbstractModule
from kngjax.core.representation import ShownAsTyped
from kngjax.data.bounds import Bounds
from kngjax.losses.base import AbstractLoss


class AbstractPublicParts(ShownAsTyped, AbstractModule):
    """Holds a loss, bounds of one record and an adjacency. All of it is public."""

    loss: eqx.AbstractVar[AbstractLoss]
    bounds: eqx.AbstractVar[Bounds]
    adjacency: eqx.AbstractVar[Adjacency]

    @property
    @abc.abstractmethod
    def dimension(self) -> int | None:
        """d, the number of coefficients with the intercept; None while scalar bounds leave it open."""
