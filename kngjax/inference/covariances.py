"""Estimates H and J at the released θ̃ from noisy sums: what of them is released, and what is assumed of the rest."""

import abc
import dataclasses
from typing import Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from kngjax.accounting.adjacency import Adjacency
from kngjax.core.arrays import float64
from kngjax.data.bounds import Bounds
from kngjax.data.products import changed_columns, product_ranges, products, symmetric, with_shared_columns
from kngjax.data.records import Records
from kngjax.inference import gaussian_sums
from kngjax.inference.noise_of_sums import box_noise, gaussian_noise
from kngjax.inference.score_moments import Floats, RecordCurvature
from kngjax.inference.without_intervals import OF_NO_DESIGN
from kngjax.mechanisms.k_norm import KNormMechanism
from kngjax.releases.release import Release

# An eigenvalue of H below this share of their mean is more likely noise.
_FLOOR = 1e-3
NOISES = ("pure", "zcdp")
NOTHING_ASSUMED = "records are independent, and so many that sums of scores are normal and H is constant nearby"


class Matrices(NamedTuple):
    """Holds plausible H and J, given the released sums. **Arguments:** `hessian`, `score`: shape (draws, d, d)."""

    hessian: Float[np.ndarray, "draws dimension dimension"]
    score: Float[np.ndarray, "draws dimension dimension"]


class Block(NamedTuple):
    """Columns of which sums are released. **Arguments:** `lower`, `upper`: public bounds of each."""

    lower: Floats
    upper: Floats


class AbstractSums(abc.ABC):
    """A covariance from released sums over the records, for a share of ε. All of it is public.

    A sum over records of bounded numbers has K-norm noise of its own box of changes (`kngjax.KNormMechanism`); columns
    that no exchange of records changes have none. `share`: what of ε is for it, the rest is for the estimate. The
    `curvature` of scores, with the bounds of features, comes with the mechanism. `is_gaussian`: whether noise is
    Gaussian, the share is of ρ, and all together are zCDP and not pure.
    """

    share: float
    bandwidth: float | None
    is_gaussian: ClassVar[bool] = False
    # Whether widths are known beforehand; not where they follow from what the estimate publishes.
    is_previewed: ClassVar[bool] = True
    assumptions: ClassVar[tuple[str, ...]] = (NOTHING_ASSUMED,)

    def __post_init__(self):
        if not (isinstance(self.share, int | float) and 0.0 < self.share < 1.0):
            raise ValueError(f"share must lie strictly between 0 and 1: what of epsilon is for it; got {self.share!r}")

    @property
    @abc.abstractmethod
    def method(self) -> str:
        """Says how the covariance is known, in words."""

    @abc.abstractmethod
    def _blocks(self, dimension: int, lower: Floats, upper: Floats) -> list[Block]:
        """The bounds of what is summed. **Arguments:** `lower`, `upper`: of the features, shape (d,)."""

    @abc.abstractmethod
    def _columns(self, x: Floats, curvature: Floats, square: Floats) -> list[Floats]:
        """Computes each record's part of the sums, by itself. Private. **Arguments:** of `RecordCurvature.of`."""

    @abc.abstractmethod
    def _matrices(self, parts: list[Floats], dimension: int) -> Matrices:
        """H and J in units of the largest curvature and squared score; NaN where they are none."""

    def settings(self) -> dict[str, Any]:
        """Returns the settings, JSON-ready."""
        return {"type": type(self).__name__, **vars(self)}

    def check(self, mechanism: Any) -> None:
        """Raises ValueError for settings that do not suit the mechanism of the estimate."""
        if self.bandwidth is not None and not 0.0 < self.bandwidth < np.inf:
            raise ValueError(f"bandwidth must be a positive number in units of y, got {self.bandwidth!r}")

    def given(self, mechanism: Any, first: Release) -> "AbstractSums":
        """Returns the covariance to take beside this release: another where that publishes more than its value."""
        return self

    def ranges(self, dimension: int, bounds: Bounds) -> list[Block]:
        """The bounds of all columns, with those that are constant."""
        with float64():
            lower, upper = (np.asarray(side, np.float64) for side in bounds.features(dimension))
        return self._blocks(dimension, lower, upper)

    def _sides(
        self, dimension: int, bounds: Bounds, adjacency: Adjacency
    ) -> tuple[Floats, Floats, Bool[np.ndarray, " columns"]]:
        """The bounds of all columns, and which of these a record changes, so that their sums are released."""
        lower, upper = (np.concatenate(side) for side in zip(*self.ranges(dimension, bounds), strict=True))
        return lower, upper, changed_columns(lower, upper, adjacency)

    def mechanism(self, dimension: int, curvature: RecordCurvature, budget: float, adjacency: Adjacency) -> Any:
        """Returns the mechanism that releases the sums. **Arguments:** `budget`: their ε, of Gaussian ones their μ."""
        lower, upper, kept = self._sides(dimension, curvature.bounds, adjacency)
        columns = Bounds((lower[kept], upper[kept]), intercept=False)
        return KNormMechanism(columns, budget, adjacency, statistic="sum", allow_large_epsilon=True)

    def noise_draws(self, summing: Any, random: Any, number: int) -> Float[np.ndarray, "draws columns"]:
        """Draws of noise as that of the sums. **Arguments:** `summing`: what released them."""
        return box_noise(summing, random, number)

    def columns(
        self, records: Records, theta: Floats, curvature: RecordCurvature, adjacency: Adjacency
    ) -> Float[np.ndarray, "records columns"]:
        """Makes a row for each record, of which the mechanism releases the sum. Private."""
        return self.columns_of(
            np.asarray(records.x, np.float64), *curvature.of(records, theta), curvature.bounds, adjacency
        )

    def columns_of(
        self, x: Floats, curvature: Floats, square: Floats, bounds: Bounds, adjacency: Adjacency
    ) -> Float[np.ndarray, "records columns"]:
        """Makes the row of each record from features, curvatures and squared scores over units. Private, or made up."""
        _, _, kept = self._sides(x.shape[1], bounds, adjacency)
        # There may be no record.
        return np.column_stack(self._columns(x, curvature, square))[:, kept]

    def mean_sums(
        self, x: Floats, curvature: Floats, square: Floats, bounds: Bounds, adjacency: Adjacency
    ) -> Float[np.ndarray, " numbers"]:
        """Averages what one record adds to the released sums. **Arguments:** as of `columns_of`, made up."""
        return self.columns_of(x, curvature, square, bounds, adjacency).mean(axis=0)

    def matrices(
        self,
        sums: Float[np.ndarray, "draws columns"],
        dimension: int,
        curvature: RecordCurvature,
        theta: Floats,
        adjacency: Adjacency,
        num_records: int | None,
    ) -> Matrices:
        """H and J of sums as they may be without noise, of those that are plausible.

        **Arguments:** all public. `num_records`: n, where it is public.
        """
        parts = self._parts(sums, dimension, curvature.bounds, adjacency, num_records)
        hessian, score = self._matrices(parts, dimension)
        # In units of the bounds, so that it is no matter what columns are measured in.
        scaled, of_score = (gaussian_sums.in_public_units(one, curvature.bounds) for one in (hessian, score))
        trace = np.trace(scaled, axis1=1, axis2=2)
        known = np.isfinite(trace) & (trace > 0.0) & (np.trace(of_score, axis1=1, axis2=2) > 0.0)
        hessian, score, scaled, trace = hessian[known], score[known], scaled[known], trace[known]
        shifted = scaled - (_FLOOR * trace / dimension)[:, None, None] * np.eye(dimension)
        plausible = np.all(np.linalg.eigvalsh(shifted) > 0.0, axis=1)
        curvature_unit, square_unit = curvature.units(theta)
        with np.errstate(over="ignore"):
            hessian, score = hessian[plausible] * curvature_unit, score[plausible] * square_unit
        finite = np.all(np.isfinite(hessian) & np.isfinite(score), axis=(1, 2))
        return Matrices(hessian[finite], score[finite])

    def _parts(
        self,
        sums: Float[np.ndarray, "draws columns"],
        dimension: int,
        bounds: Bounds,
        adjacency: Adjacency,
        num_records: int | None,
    ) -> list[Floats]:
        """The sums of all blocks of columns."""
        lower, _, kept = self._sides(dimension, bounds, adjacency)
        whole = with_shared_columns(sums, kept, lower, num_records)
        return np.split(whole, np.cumsum([len(block.lower) for block in self.ranges(dimension, bounds)])[:-1], axis=1)


@dataclasses.dataclass(frozen=True)
class Sandwich(AbstractSums):
    """H = Σwxx' and J = Σs²xx' at θ̃, both released: nothing is assumed of the errors.

    With noise="zcdp" it is Gaussian and isotropic in the Frobenius norm (`kngjax.inference.gaussian_sums`), and smaller
    by far from half a dozen coefficients on. Then the estimate and its covariance together are (ε²/8)-zCDP, as KNG
    alone is, or (ε²/2)-zCDP as what is known to be ε-DP alone, and not ε-DP: a ledger of pure ε refuses them.

    **Arguments:** `share`: of ε; with Gaussian noise of ρ. `bandwidth`: of the quantile loss, how near to the
    regression a response counts for its density there; None takes 2.1·n^{-1/5} of a tenth of the width of the bounds of
    y. `noise`: "pure" or "zcdp".
    """

    share: float = 0.3
    bandwidth: float | None = None
    noise: str = "pure"

    def __post_init__(self):
        super().__post_init__()
        if self.noise not in NOISES:
            raise ValueError(f"noise must be 'pure' or 'zcdp', got {self.noise!r}")

    @property
    def is_gaussian(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.noise == "zcdp"

    @property
    def method(self) -> str:
        kind, of = ("Gaussian noise", "rho") if self.is_gaussian else ("noise", "epsilon")
        return (
            f"H and J at the released value, from sums with {kind} of their own for {self.share:g} of {of}; the "
            "quantiles are those of H^-1(z - S) over what the noise may have been"
        )

    def mechanism(self, dimension: int, curvature: RecordCurvature, budget: float, adjacency: Adjacency) -> Any:
        if self.is_gaussian:
            return gaussian_sums.summing_of(curvature, dimension, budget, adjacency)
        return super().mechanism(dimension, curvature, budget, adjacency)

    def noise_draws(self, summing: Any, random: Any, number: int) -> Float[np.ndarray, "draws columns"]:
        return gaussian_noise(summing, random, number) if self.is_gaussian else box_noise(summing, random, number)

    def columns_of(
        self, x: Floats, curvature: Floats, square: Floats, bounds: Bounds, adjacency: Adjacency
    ) -> Float[np.ndarray, "records columns"]:
        if self.is_gaussian:
            return gaussian_sums.rows_of(x, curvature, square, bounds)
        return super().columns_of(x, curvature, square, bounds, adjacency)

    def mean_sums(
        self, x: Floats, curvature: Floats, square: Floats, bounds: Bounds, adjacency: Adjacency
    ) -> Float[np.ndarray, " numbers"]:
        if self.is_gaussian:
            # The moments of these rows are what is released.
            return gaussian_sums.mean_moments(self.columns_of(x, curvature, square, bounds, adjacency))
        return super().mean_sums(x, curvature, square, bounds, adjacency)

    def _parts(
        self,
        sums: Float[np.ndarray, "draws columns"],
        dimension: int,
        bounds: Bounds,
        adjacency: Adjacency,
        num_records: int | None,
    ) -> list[Floats]:
        if self.is_gaussian:
            return gaussian_sums.in_own_units(sums, dimension, bounds)
        return super()._parts(sums, dimension, bounds, adjacency, num_records)

    def _blocks(self, dimension: int, lower: Floats, upper: Floats) -> list[Block]:
        # Times a number in [0, 1].
        least, most = product_ranges(lower, upper)
        block = Block(np.minimum(least, 0.0), np.maximum(most, 0.0))
        return [block, block]

    def _columns(self, x: Floats, curvature: Floats, square: Floats) -> list[Floats]:
        pairs = products(x)
        return [curvature[:, None] * pairs, square[:, None] * pairs]

    def _matrices(self, parts: list[Floats], dimension: int) -> Matrices:
        return Matrices(symmetric(parts[0], dimension), symmetric(parts[1], dimension))


@dataclasses.dataclass(frozen=True)
class IndependentErrors(AbstractSums):
    """H = (Σw/n)·X'X and J = (Σs²/n)·X'X, which holds where errors are independent of the features, and else not.

    **Arguments:** as of `Sandwich`.
    """

    share: float = 0.3
    bandwidth: float | None = None
    assumptions: ClassVar[tuple[str, ...]] = (NOTHING_ASSUMED, "errors are independent of the features")

    @property
    def method(self) -> str:
        return (
            f"X'X and the mean curvature and squared score, with noise of their own for {self.share:g} of epsilon; the "
            "quantiles are those of H^-1(z - S) over what the noise may have been"
        )

    def _blocks(self, dimension: int, lower: Floats, upper: Floats) -> list[Block]:
        return [ONE, UNIT, UNIT, Block(*product_ranges(lower, upper))]

    def _columns(self, x: Floats, curvature: Floats, square: Floats) -> list[Floats]:
        return [np.ones(len(x)), curvature, square, products(x)]

    def _matrices(self, parts: list[Floats], dimension: int) -> Matrices:
        return proportional(parts[0][:, 0], parts[1][:, 0], parts[2][:, 0], symmetric(parts[3], dimension))


@dataclasses.dataclass(frozen=True, init=False, eq=False)
class PublicDesign(AbstractSums):
    """H = Σw·G and J = Σs²·G with G of public rows, which must be as the records' features are.

    **Arguments:** `rows`: public features in units of the mechanism, shape (m, columns), without the intercept, or with
    it where there is none. Of a `Study` a frame of public records in own units, with the columns of the terms, and text
    where they have levels: its terms make rows of it as of the private records. `share`: of ε. `bandwidth`: as of
    `Sandwich`.
    """

    rows: Any
    share: float = 0.05
    bandwidth: float | None = None
    assumptions: ClassVar[tuple[str, ...]] = (
        NOTHING_ASSUMED,
        "errors are independent of the features",
        "the features of the records are as those of the public rows that were given",
    )

    def __init__(self, rows: Any = None, share: float = 0.05, bandwidth: float | None = None):
        if rows is None:
            raise ValueError(OF_NO_DESIGN)
        # The terms of a study say what becomes of a frame's columns.
        given = rows if hasattr(rows, "columns") else _finite_rows(rows).tolist()
        for name, value in {"rows": given, "share": share, "bandwidth": bandwidth}.items():
            object.__setattr__(self, name, value)
        self.__post_init__()

    def settings(self) -> dict[str, Any]:
        return super().settings() | {"rows": self._matrix.tolist()}

    def by_terms(self, design: Any) -> "PublicDesign":
        """Replaces its frame by the rows that terms make of it, as of private records; itself without a frame.

        **Arguments:** `design`: the terms. Raises ValueError or TypeError for a frame that they make none of.
        """
        if not hasattr(self.rows, "columns"):
            return self
        made = design.matrix(self.rows)
        # Records without a cell are dropped, as private ones are.
        return dataclasses.replace(self, rows=made[np.all(np.isfinite(made), axis=1)])

    @property
    def _matrix(self) -> Float[np.ndarray, "rows columns"]:
        return _finite_rows(self.rows)

    @property
    def method(self) -> str:
        return (
            f"the design of public rows, and the mean curvature and squared score with noise of their own for "
            f"{self.share:g} of epsilon; the quantiles are those of H^-1(z - S) over what the noise may have been"
        )

    def _blocks(self, dimension: int, lower: Floats, upper: Floats) -> list[Block]:
        return [ONE, UNIT, UNIT]

    def check(self, mechanism: Any) -> None:
        super().check(mechanism)
        columns, need = self._matrix.shape[1], mechanism.dimension - mechanism.bounds.intercept
        if columns != need:
            raise ValueError(f"the public rows have {columns} columns, and {need} of the records' are bounded")

    def _columns(self, x: Floats, curvature: Floats, square: Floats) -> list[Floats]:
        return [np.ones(len(x)), curvature, square]

    def _matrices(self, parts: list[Floats], dimension: int) -> Matrices:
        rows = self._matrix
        rows = np.hstack([np.ones((len(rows), dimension - rows.shape[1])), rows])
        count, curvature, square = (part[:, 0] for part in parts)
        return proportional(count, curvature, square, count[:, None, None] * (rows.T @ rows / len(rows)))


def _finite_rows(rows: Any) -> Float[np.ndarray, "rows columns"]:
    words = "rows must be finite numbers of public records, shape (m, columns)"
    try:
        made = np.asarray(rows, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{words}: a frame with other columns is for a Study, whose terms make rows of it") from None
    if made.ndim != 2 or not len(made) or not np.all(np.isfinite(made)):
        raise ValueError(f"{words}, not {made.shape}")
    return made


ONE, UNIT = Block(np.ones(1), np.ones(1)), Block(np.zeros(1), np.ones(1))


def proportional(count: Floats, curvature: Floats, square: Floats, gram: Floats) -> Matrices:
    """(Σw/n)·G and (Σs²/n)·G, with shares of at most 1; NaN where one is not positive."""
    with np.errstate(all="ignore"):
        shares = [
            np.where((count > 0.0) & (part > 0.0), np.minimum(part / count, 1.0), np.nan)
            for part in (curvature, square)
        ]
    return Matrices(*(share[:, None, None] * gram for share in shares))
