"""What mechanisms share: admission and preparation of data, and for two of them a density exp(-ε/(2Δ)·score)·ν."""

import abc
import contextlib
import dataclasses
import inspect
import math
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from kngjax.accounting.guarantees import Adjacency, Guarantee
from kngjax.core.arrays import Scalar, Vector, float64, is_traced
from kngjax.core.errors import UnfitShape, UnfitType
from kngjax.core.representation import ShownAsTyped
from kngjax.data import admission
from kngjax.data import records as data_room
from kngjax.data.admission import Facts
from kngjax.data.bounds import Bounds
from kngjax.data.exact_sums import ExactSums
from kngjax.data.records import Data, Records
from kngjax.data.shards import Shards
from kngjax.data.streams import RECORDS_NEEDED, Stream
from kngjax.geometry.abstract_norms import AbstractNorm
from kngjax.geometry.domains import AbstractDomain
from kngjax.losses.base import AbstractLoss, AbstractPredictorLoss
from kngjax.mechanisms.parameters import LARGEST_SENSIBLE_EPSILON
from kngjax.samplers.target import Target
from kngjax.sensitivity.gradients import Sensitivity

MAX_RECORDS = "a public number that n does not exceed"
MAX_RECORDS_ASSUMPTION = (
    "that there are at most max_records records was known in public; data with more are refused, and that refusal is "
    "not covered"
)
TOO_MANY_RECORDS = "there are more records than max_records, the public promise that the guarantee rests on"


class AbstractMechanism(ShownAsTyped, eqx.Module):
    """A mechanism: what is computed from the records, with which bounds, at which ε, for which neighbours.

    `takes_shards`: whether rows of zeros change nothing of its law. `has_regressors`: whether it explains a response.
    """

    loss: eqx.AbstractVar[AbstractLoss]
    bounds: eqx.AbstractVar[Bounds]
    epsilon: eqx.AbstractVar[Scalar]
    adjacency: eqx.AbstractVar[Adjacency]
    takes_shards: ClassVar[bool] = False
    has_regressors: ClassVar[bool] = True

    @property
    @abc.abstractmethod
    def guarantee(self) -> Guarantee:
        """The guarantee of one draw from exactly the mechanism's law, from the mechanism's own fields."""

    def guarantee_for(self, dimension: int) -> Guarantee:
        """The guarantee for d coefficients, where it depends on d and scalar bounds leave that open."""
        return self.guarantee

    @abc.abstractmethod
    def sensitivity_for(self, dimension: int) -> Sensitivity:
        """Δ for d coefficients with its derivation."""

    def __hash__(self) -> int:
        # By identity, so that `jax.jit(mechanism.log_density)` works although the fields are arrays.
        return id(self)

    def __check_init__(self):
        if self.adjacency is Adjacency.REPLACE and self.bounds.drops:
            raise ValueError(
                "missing='drop' leaves records out, and under 'replace' their number is public, where an exchanged one "
                "would change it: give a public value in place of missing ones, or adjacency='add_remove'"
            )
        self.loss.check_bounds(self.bounds)

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

        Where scalar bounds leave the number of columns open, it is given if it is the same for every number;
        else ValueError: call `sensitivity_for(dimension)`.
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

    def admit(self, X: Any = None, y: Any = None) -> Facts:
        """What is public of these data and known before a value is looked at: d, the names, and under replace n.

        Arguments as of `prepare`. Raises TypeError and ValueError for all that types, names, shapes, engines and counts
        of columns show to be no data for this mechanism: a release calls this before anything is spent.
        """
        require_own_responses(X, y)
        if isinstance(X, Shards):
            self._check_shards(X)
            return X.together(lambda: dataclasses.replace(self.admit(X.X, X.y), num_records=None), self)
        if isinstance(X, Stream):
            if not self.loss.is_quadratic:
                raise UnfitType(RECORDS_NEEDED)
            may_be_empty = self.adjacency is Adjacency.ADD_REMOVE
            return self._facts(admission.shape_of_stream(X, self._admitted, may_be_empty), None)
        columns, rows = self._admitted(X, y)
        count = columns.rows if rows.rows is None else rows.rows
        if count == 0 and self.adjacency is Adjacency.REPLACE:
            raise UnfitShape(admission.EMPTY)
        return self._facts(columns, count)

    def _facts(self, columns: admission.Shape | None, count: int | None) -> Facts:
        if self.dimension is None:
            raise UnfitShape(admission.UNKNOWN_COLUMNS)
        names = self.bounds.coefficients
        if names is None and columns is not None and columns.names is not None:
            names = ("intercept",) * self.bounds.intercept + columns.names
        return Facts(self.dimension, count if self.adjacency is Adjacency.REPLACE else None, names)

    def _admitted(self, X: Any, y: Any) -> tuple[admission.Shape, admission.Shape]:
        X, y = self.as_records(X, y)
        return admission.public_shapes(
            self.bounds,
            X,
            y,
            has_response=self.loss.has_response,
            dimension=self._dimension_of_records,
            reads_text=self.loss.reads_text,
        )

    def as_records(self, X: Any, y: Any) -> tuple[Any, Any]:
        """What was given as columns and as response, where that is another than it was given as."""
        return X, y

    @property
    def _dimension_of_records(self) -> int | None:
        """The number of features of a record, the intercept included; None while scalar bounds leave it open."""
        return self.dimension

    def prepare(self, X: Any = None, y: Any = None) -> Data:
        """Validated and clipped data, summarised where the loss has a sufficient statistic. Private.

        See `kngjax.data.prepare` for the arguments and errors. X may also be a `kngjax.stream` of records, for losses
        with a sufficient statistic, or `kngjax.shard`s of them; both bring their own responses.
        """
        require_own_responses(X, y)
        if isinstance(X, Stream):
            return self.total(X, self.loss.sums).summary()
        if isinstance(X, Shards):
            return self._of_shards(X)
        return self.summarise(self.records(X, y))

    def _of_shards(self, shards: Shards) -> Data:
        """What `prepare` gives of the rows of all processes, resting on the devices where records are needed."""
        self._check_shards(shards)
        if self.loss.is_quadratic:
            total = shards.total(shards.together(lambda: self._sums(shards.X, shards.y), self))
            self.check_count(total.count)
            return total.summary()
        records = shards.together(lambda: self.records(shards.X, shards.y), self)
        self.check_count(shards.count(records))
        return shards.spread_rows(records)

    def _sums(self, X: Any, y: Any) -> ExactSums:
        return self.total(X, self.loss.sums) if isinstance(X, Stream) else self.loss.sums(self.records(X, y))

    def _check_shards(self, shards: Shards) -> None:
        """Raises UnfitType unless the law is that of the rows, wherever they rest: of public settings alone."""
        if self.loss.is_quadratic:
            return
        if not (self.takes_shards and isinstance(self.loss, AbstractPredictorLoss)):
            raise UnfitType(
                "rows are spread over devices for KNG and the exponential mechanism in regression, and for every "
                "mechanism of a loss with a sufficient statistic: give X and y as they are"
            )
        if shards.spans_processes and self.loss.score_is_piecewise_constant:
            raise UnfitType(
                f"chains for {type(self.loss).__name__} start from a linear programme, which needs all rows on one "
                "host: take a smoothed loss, or one process"
            )

    def total(self, stream: Stream, summary_of: Callable[[Records], Any]) -> Any:
        """The sum over a stream's chunks, each validated and clipped like any records, of their summaries. Private.

        **Arguments:** `summary_of`: what is summed, with `num_records`. Without chunks it is that of no record.
        """
        if not self.loss.is_quadratic:
            raise UnfitType(RECORDS_NEEDED)
        total = None
        with contextlib.closing(stream.chunks()) as chunks:
            for chunk in chunks:
                summary = summary_of(self.records(*chunk))
                total = summary if total is None else total + summary
                self.check_count(total.num_records)
        if total is not None:
            return total
        if self.adjacency is Adjacency.REPLACE or self.dimension is None:
            raise ValueError(data_room.EMPTY)
        return summary_of(Records(np.zeros((0, self.dimension)), np.zeros(0)))

    def records(self, X: Any = None, y: Any = None) -> Records:
        """Validated and clipped records, one by one: what `prepare` summarises. Private."""
        X, y = self.as_records(X, y)
        return data_room.prepare(
            self.bounds,
            X,
            y,
            has_response=self.loss.has_response,
            dimension=self._dimension_of_records,
            responses=self.loss.responses,
            reads_text=self.loss.reads_text,
            may_be_empty=self.adjacency is Adjacency.ADD_REMOVE,
        )

    def summarise(self, records: Records) -> Data:
        """The least that the mechanism needs of validated records. Private."""
        self.check_count(records.y.shape[0])
        return self.loss.summarise(records)

    def public_count(self, data: Any) -> int | None:
        """n of these data under replace, where it is public; None under add_remove."""
        return data.num_records if self.adjacency is Adjacency.REPLACE else None

    def check_count(self, count: int | float) -> None:
        """Raises ValueError for more records than `max_records`, where the mechanism has such a public promise."""
        promised = getattr(self, "max_records", None)
        if promised is not None and count > float(promised):
            raise ValueError(TOO_MANY_RECORDS)


class AbstractDirectMechanism(AbstractMechanism):
    """A mechanism that draws from its own law directly: it needs no sampler.

    `method`: how, in words, for the certificate. `assumptions`: what its guarantee needs besides those of every
    release. `runs_on_host`: whether `draws` computes in NumPy and cannot be compiled. `advice`: what to do if a draw
    failed. `failures`: what can make a release by it fail, besides what can for every one.
    """

    method: ClassVar[str]
    runs_on_host: ClassVar[bool] = False
    advice: ClassVar[str] = "the draw failed, and nothing is released"
    assumptions: ClassVar[tuple[str, ...]] = ()
    failures: ClassVar[tuple[str, ...]] = ()

    @abc.abstractmethod
    def draws(
        self, data: Data, key: PRNGKeyArray, num_draws: int
    ) -> tuple[Float[Array, "draws dimension"], Bool[Array, ""]]:
        """Independent draws for these data, NaN where one failed, and whether all succeeded. Private but for one."""

    def log_density(self, theta: Vector, data: Data) -> Float[Array, ""]:
        """log f(θ), normalised; raises TypeError where no formula is known. Private: a function of the data."""
        raise TypeError(f"no formula is known for the density of {type(self).__name__}")

    def least_noise(self, dimension: int, num_records: int | None) -> Any:
        """How large each coefficient's noise is at least, from public settings; 0 where that is private."""
        return np.zeros(dimension)

    def boundary_log_masses(self, data: Data) -> Float[Array, " atoms"]:
        """log P(θ = its lower end), log P(θ = its upper end) where θ ∈ R falls on the ends of Θ; shape (0,): never.

        Private: a function of the data.
        """
        return jnp.zeros(0)

    def jumps(self, data: Data) -> Float[Array, " jumps"] | None:
        """Where f may jump in each coordinate, its support's ends included, if it is constant in between; else None.

        Private: a function of the data.
        """
        return None


class AbstractDensityMechanism(AbstractMechanism):
    """A mechanism that draws θ with density proportional to exp(-ε/(2Δ)·score(θ; D)) with respect to ν."""

    domain: eqx.AbstractVar[AbstractDomain]
    takes_shards: ClassVar[bool] = True

    @abc.abstractmethod
    def score_norm(self, dimension: int) -> AbstractNorm | None:
        """The norm of the gradient that is the score; None if the score is the loss itself."""

    @abc.abstractmethod
    def sensitivity_value(self, dimension: int) -> Float[Array, ""]:
        """Δ for d coefficients; runs under jit."""

    @abc.abstractmethod
    def record_range(self, dimension: int) -> Float[Array, ""]:
        """By how much one record's share of the score can vary over Θ and the bounds, in units of the score."""

    def log_range(self, dimension: int, num_records: int) -> float:
        """R = ε/(2Δ)·n·(range of one record's share): how far log f varies over Θ at most, for any n records.

        Public where n is: under replace.
        """
        with float64():
            share = float(self.record_range(dimension)) / float(self.sensitivity_value(dimension))
        # Outward, by far more than these few operations round.
        return 0.5 * float(self.epsilon) * num_records * share * (1.0 + 1e-12)

    def _check(self) -> None:
        if is_traced(*jax.tree.leaves(self)):
            return
        self._check_parts()
        with float64():
            value = float(self.sensitivity_value(self.dimension or 1 + self.bounds.intercept))
        if not (math.isfinite(value) and value > 0):
            advice = (
                "one record's influence grows with x'theta. Give a bounded domain (L1Ball, L2Ball or Box), or a loss "
                "with a bounded score (quantile, Huber, pseudo-Huber, logistic)"
                if self.loss.has_response
                else "one record's influence grows with its distance to theta. Give a bounded domain (L1Ball, L2Ball "
                "or Box) and bounds of x that leave every column some width, or name a norm"
            )
            raise ValueError(f"the sensitivity of {type(self.loss).__name__} is not finite over this domain: {advice}")

    @property
    def guarantee(self) -> Guarantee:
        """Pure ε-DP and (ε²/8)-zCDP of one exact draw, from the mechanism's own ε."""
        return Guarantee.bounded_range(float(self.epsilon), self.adjacency)

    def target(self, data: Data) -> Target:
        """The density for these data, as samplers see it. Private."""
        dimension = data.dimension
        rate = self.epsilon / (2.0 * self.sensitivity_value(dimension))
        return Target(self.loss, data, self.domain, self.score_norm(dimension), rate)

    def log_density(self, theta: Vector, data: Data) -> Float[Array, ""]:
        """log f(θ) = -ε/(2Δ)·score(θ; D) + log ν(θ), unnormalised; -inf outside Θ. Private: a function of the data.

        **Arguments:** `theta`: shape (d,), intercept first. `data`: from `prepare`. In the caller's own precision.
        """
        return self.target(data).log_density(theta)

    def numpyro_model(self, data: Data) -> Callable[[], None]:
        """The mechanism's density as a NumPyro model with one site, `theta`, for research with any NumPyro kernel.

        The base measure is the prior, -ε/(2Δ)·score a factor. Private: its draws are computed from the data. NumPyro
        will run NUTS on the quantile loss's piecewise-constant density without a warning, and wrongly: use our
        samplers there.
        """

        import numpyro

        def model() -> None:
            target = self.target(data)
            theta = numpyro.sample("theta", target.domain.distribution(target.dimension))
            numpyro.factor("score", -target.rate * target.score(theta))

        return model


def require_own_responses(X: Any, y: Any) -> None:
    """Raises UnfitShape for responses beside a stream or shards."""
    if isinstance(X, Stream | Shards) and y is not None:
        raise UnfitShape(f"a {type(X).__name__.lower()} brings its own responses: leave y out here")
