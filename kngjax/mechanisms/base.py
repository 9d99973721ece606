"""Defines the base class of mechanisms: their guarantee, their sensitivity, and whether their parts agree."""

import abc
import inspect
from typing import Any, ClassVar

import equinox as eqx
import numpy as np

from kngjax.accounting.guarantees import Adjacency, Guarantee
from kngjax.core.arrays import Scalar, is_traced
from kngjax.core.modules import AbstractModule
from kngjax.core.representation import ShownAsTyped
from kngjax.data.bounds import Bounds
from kngjax.data.records import Data
from kngjax.losses.base import AbstractLoss
from kngjax.mechanisms.noise_facts import AbstractNoiseFacts, UnknownNoise
from kngjax.mechanisms.parameters import LARGEST_SENSIBLE_EPSILON, check_epsilon, require_part
from kngjax.mechanisms.preparation import AbstractIntake, PlainIntake
from kngjax.sensitivity.gradients import Sensitivity

RESTS_ON_RANK = "its proof rests on the rank of one record's Hessian, and several records have more"


class AbstractMechanism(ShownAsTyped, AbstractModule):
    """Describes what is computed from the records: with which bounds, at which ε, for which neighbours.

    `has_regressors`: whether it explains a response. `takes_weights`: whether it is proved for records with weights; a
    mechanism without such a proof refuses bounds that declare weights. `no_persons`: why there is no proof for rows
    that share the vote of a person; None where there is one. `proofs`: the pages of `docs/proofs/` that its guarantee
    rests on, by name.
    """

    loss: eqx.AbstractVar[AbstractLoss]
    bounds: eqx.AbstractVar[Bounds]
    adjacency: eqx.AbstractVar[Adjacency]
    epsilon: eqx.AbstractVar[Scalar]
    has_regressors: ClassVar[bool] = True
    takes_weights: ClassVar[bool] = False
    no_persons: ClassVar[str | None] = "nobody has proved it for them"
    proofs: ClassVar[tuple[str, ...]] = ()

    def _set_parts(self, bounds: Any, epsilon: Any, adjacency: Any, allow_large_epsilon: bool) -> None:
        """Checks and keeps the parts that nearly every mechanism has, while it is made."""
        self.bounds = require_part("bounds", bounds)
        self.epsilon = check_epsilon(require_part("epsilon", epsilon), allow_large_epsilon)
        self.adjacency = Adjacency.parse(adjacency)

    def _own(self, data: Any, kinds: Any) -> Any:
        """Returns data of these kinds; raises TypeError for others, which the mechanism has not prepared."""
        if not isinstance(data, kinds):
            name = type(self).__name__
            raise TypeError(f"{name} needs data from its own prepare, not {type(data).__name__}")
        return data

    @property
    def intake(self) -> AbstractIntake:
        """Validates, clips and summarises records for this mechanism."""
        return PlainIntake(self)

    @property
    def noise(self) -> AbstractNoiseFacts:
        """Says what is known in public of the noise of what it releases."""
        return UnknownNoise(self)

    def prepare(
        self, X: Any = None, y: Any = None, *, weights: Any = None, person: Any = None, dither_key: Any = None
    ) -> Data:
        """Validated and clipped data, summarised where the loss has a sufficient statistic. Private.

        `kngjax.data.prepare` has the arguments and errors. `weights`, private, has one number for each record if the
        bounds declare a largest weight. `person` has one identifier for each row if the bounds are for persons. X may
        also be a `kngjax.stream` or `kngjax.shard`s of records, which bring their own responses.
        """
        return self.intake.prepare(X, y, weights=weights, person=person, dither_key=dither_key)

    @property
    @abc.abstractmethod
    def guarantee(self) -> Guarantee:
        """The guarantee of one draw from exactly the mechanism's law, from the mechanism's own fields."""

    def at_epsilon(self, epsilon: float) -> "AbstractMechanism | None":
        """The mechanism at another ε, with all other settings as they are; None where there is none. Public."""
        return eqx.tree_at(lambda one: one.epsilon, self, np.asarray(float(epsilon)))

    def proved_at(self, epsilon: float) -> "AbstractMechanism":
        """Returns the mechanism at another ε, with all checks of its proof. Raises ValueError where there is none."""
        moved: Any = self.at_epsilon(epsilon)
        if moved is None:
            raise ValueError(f"{type(self).__name__} has no settings with which it is private at epsilon = {epsilon:g}")
        moved.__check_init__()
        return moved

    def for_count(self, num_records: int) -> "AbstractMechanism":
        """The mechanism of n records, where settings follow from that; itself where none do."""
        return self

    def guarantee_for(self, dimension: int) -> Guarantee:
        """The guarantee for d coefficients, where it depends on d and scalar bounds leave that open."""
        return self.guarantee

    @abc.abstractmethod
    def sensitivity_for(self, dimension: int) -> Sensitivity:
        """Δ for d coefficients with its derivation."""

    def densities(self) -> "tuple[AbstractMechanism, ...]":
        """The densities whose draws, one by one and in increasing order, make a draw of this mechanism.

        A lattice draws from them. Raises ValueError where there are none, which public settings decide.
        """
        raise ValueError(f"{type(self).__name__} draws from its own law directly: leave the sampler out")

    def __hash__(self) -> int:
        # By identity, so that `jax.jit(mechanism.log_density)` works although the fields are arrays.
        return id(self)

    def __check_init__(self):
        if self.adjacency is Adjacency.REPLACE and self.bounds.drops:
            raise ValueError(
                "'drop' leaves records with missing cells out, and under 'replace' their number is public, which an "
                "exchanged one would change: give a public value in place of missing ones, or adjacency='add_remove'"
            )
        if self.bounds.dither is not None and not self.loss.score_is_piecewise_constant:
            raise ValueError(
                "dither is for mechanisms of the quantile loss, which count responses: leave Bounds(..., dither=...) "
                f"out with {type(self.loss).__name__}, to which heaps of responses do no harm"
            )
        if self.bounds.weight is not None:
            self._check_weights()
        self.loss.check_bounds(self.bounds)

    def _check_weights(self) -> None:
        """Raises ValueError unless this mechanism and its loss are proved for records with weights."""
        instead = "KNG and ObjectivePerturbation do, of least squares AdaSSP; or leave Bounds(..., weight=...) out"
        if self.bounds.of_persons and (why := self.no_persons) is not None:
            raise ValueError(
                f"{type(self).__name__} takes no rows of persons, Bounds(..., unit=): {why}. KNG, "
                "ObjectivePerturbation, AdaSSP, KNormMechanism and GeometricMechanism do; or make one record of each "
                "person's rows"
            )
        if not self.takes_weights:
            raise ValueError(f"{type(self).__name__} takes no weights of records: {instead}")
        if not self.loss.takes_weights:
            raise ValueError(f"{type(self.loss).__name__} takes no weights of records: leave Bounds(..., weight=) out")

    def _check_parts(self) -> None:
        """Raises ValueError where the loss lacks bounds or the parts contradict each other."""
        if self.loss.needs_response_bounds and self.bounds.y_lower is None:
            raise ValueError(
                f"{type(self.loss).__name__} needs public bounds of the response, bounds=Bounds(..., y=(lower, upper)):"
                " without them one record can change the score without limit"
            )
        if not self.loss.has_response and (self.bounds.intercept or self.bounds.y_lower is not None):
            raise ValueError(
                "a mean or a median has neither intercept nor response: give "
                "Bounds(x={'age': (0, 99)}, intercept=False)"
            )
        dimensions = {
            name: part.dimension
            for name in ("bounds", "domain", "norm")
            if (part := getattr(self, name, None)) is not None and part.dimension is not None
        }
        if len(set(dimensions.values())) > 1:
            raise ValueError(f"the parts disagree about the number of coefficients (intercept included): {dimensions}")
        if self.dimension is not None and self.dimension < 1 + (self.bounds.intercept and self.bounds.columns != 0):
            raise ValueError(f"the domain is for {self.dimension} coefficients: too few for these bounds")

    def _argument(self, parameter: inspect.Parameter) -> Any:
        if parameter.name != "allow_large_epsilon" or hasattr(self, parameter.name) or is_traced(self.epsilon):
            return super()._argument(parameter)
        # That a large ε was allowed is not kept, and has to be said again.
        return bool(np.max(np.asarray(self.epsilon)) > LARGEST_SENSIBLE_EPSILON)

    @property
    def dimension(self) -> int | None:
        """d, the number of coefficients with the intercept; None while scalar bounds leave it open."""
        parts = [getattr(self, name, None) for name in ("bounds", "domain", "norm")]
        return next((part.dimension for part in parts if part is not None and part.dimension is not None), None)

    @property
    def sensitivity(self) -> Sensitivity:
        """Δ with its derivation.

        Scalar bounds leave the number of columns open. Raises ValueError if Δ depends on it: then call
        `sensitivity_for(dimension)`.
        """
        if self.dimension is not None:
            return self.sensitivity_for(self.dimension)
        first = 1 + self.bounds.intercept
        trials = [self.sensitivity_for(dimension) for dimension in (first, first + 1, first + 2)]
        if len({trial.value for trial in trials}) > 1:
            raise ValueError(
                "the sensitivity depends on the number of columns, which scalar bounds leave open: give bounds.x one "
                "value a column, or call sensitivity_for(dimension)"
            )
        return trials[0]
