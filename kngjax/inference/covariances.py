"""Ways to know H = Σ w xx' at the released θ̃: what of it is released, and what it may have been given that."""

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from kngjax.core.arrays import float64
from kngjax.data.bounds import Bounds
from kngjax.data.distinct_products import DistinctProducts
from kngjax.inference.noise_of_sums import block_noise, block_noise_of
from kngjax.inference.positive_definite import BlockNoiseLaw, MatrixFamily, matrices_given, start_between
from kngjax.inference.score_moments import Floats, RecordCurvature
from kngjax.mechanisms.block_sums import BlockSums
from kngjax.releases.release import Release
from kngjax.sensitivity import weighted

# For post-processing of what is public any numbers serve, and the same ones make the same interval.
_SEED = 0
_GRAMS = 1000
_ALIKE = 1e-6
_FAR = 1e100
NOTHING_ASSUMED = "records are independent, and so many that sums of scores are normal and H is constant nearby"
BY_PERSON = "persons are independent of one another, and so many that sums of their scores are normal and H is constant"

Matrices = Float[np.ndarray, "draws dimension dimension"]


@dataclasses.dataclass(frozen=True)
class Sandwich:
    """Releases H = Σwxx' at θ̃, each of its different numbers once, and assumes nothing of the errors.

    The numbers get noise in blocks (`BlockSums`). Intervals draw H from its law given the released numbers and given
    that it is positive definite, so that there always are intervals.

    **Arguments:** `share`: the share of ε for H, usually .35 or .45; None takes the share that previewed noise needs.
    `bandwidth`: for the quantile loss, how near to the regression a response counts towards its density there; None
    takes 2.1·n^{-1/5} of a tenth of the width of the bounds of y. `indicators`: groups of coefficients, by place, whose
    columns are 0 or 1, with at most one 1 in a record, such as the levels of a category. `slopes`: groups of other
    columns, at most one of which is not 0 in a record. A `Study` fills in both.
    """

    share: float | None = None
    bandwidth: float | None = None
    indicators: Sequence[Sequence[int]] = ()
    slopes: Sequence[Sequence[int]] = ()

    def __post_init__(self):
        share = self.share
        if share is not None and not (isinstance(share, int | float) and 0.0 < share < 1.0):
            raise ValueError(f"share must lie strictly between 0 and 1: what of epsilon is for H; got {share!r}")
        for name in ("indicators", "slopes"):
            groups = tuple(tuple(map(int, group)) for group in getattr(self, name))
            object.__setattr__(self, name, groups)

    @property
    def method(self) -> str:
        """Says how H is known, in words."""
        return (
            f"the Hessian H at the released value ({self.share or 0.0:g} of epsilon), drawn given its noise and that "
            "it is positive definite, and a sampling variance of each number"
        )

    def products(self, mechanism: Any) -> DistinctProducts:
        """Returns the numbers that are released of H."""
        dimension, bounds = mechanism.dimension, mechanism.bounds
        has_curvature = weighted.most(bounds) is not None or not mechanism.loss.is_quadratic
        with float64():
            lower, upper = (np.asarray(side, np.float64) for side in bounds.features(dimension))
        return DistinctProducts(lower, upper, self.indicators, self.slopes, mechanism.adjacency, has_curvature)

    def settings(self) -> dict[str, Any]:
        """Returns the settings, JSON-ready."""
        return {"type": type(self).__name__, **vars(self)}

    def check(self, mechanism: Any) -> None:
        """Raises ValueError for settings that do not suit the mechanism of the estimate."""
        if self.bandwidth is not None and not 0.0 < self.bandwidth < np.inf:
            raise ValueError(f"bandwidth must be a positive number in units of y, got {self.bandwidth!r}")
        self.products(mechanism)

    def summing(self, mechanism: Any, epsilon: float) -> Any:
        """Returns the mechanism that releases sums for H, whatever θ̃ is."""
        found, whose = self.products(mechanism), mechanism.bounds
        # Rows of persons share votes in sums too, and other weights are in the rows.
        bounds = Bounds(found.ends, intercept=False, unit=whose.unit if whose.of_persons else whose.unit_alone)
        return BlockSums(bounds, epsilon, mechanism.adjacency, found.exclusive, allow_large_epsilon=True)

    def columns(self, x: Floats, curvature: Floats, mechanism: Any) -> Floats:
        """Computes each record's part of these sums, by itself. Private. **Arguments:** as of `RecordCurvature.of`."""
        return self.products(mechanism).of(x, curvature)

    def hessians(
        self, sums: Floats, summing: Any, first: Release, mechanism: Any, curvature: RecordCurvature
    ) -> Matrices:
        """Draws H as it may be, always positive definite, given what was released. **Arguments:** `first`: of θ̃."""
        products = self.products(mechanism)
        count = None if products.has_curvature else first.certificate.num_records
        # The largest w at θ̃, within what leaves H and its inverse in float64, however far off θ̃ is.
        unit = min(max(curvature.units(first.value)[0], 1.0 / _FAR), _FAR)
        return _matrices_of(sums, products, block_noise_of(summing), count) * unit

    def made_up(self, hessian: Floats, summing: Any, mechanism: Any, seed: int) -> Matrices | None:
        """Draws H as it may be given a made-up release, where it is this matrix; None for one of no such records.

        **Arguments:** `hessian`: over the largest w, as are the draws.
        """
        products = self.products(mechanism)
        noise = block_noise(summing, np.random.default_rng(seed), 1)[0]
        count = None if products.has_curvature else float(hessian[0, 0])
        numbers, scale = products.numbers_of(hessian), np.sqrt(np.diagonal(hessian))
        away = (family_of(products, count).matrices(numbers) - hessian) / np.outer(scale, scale)
        # Assumed rows need not be those of categories.
        if np.max(np.abs(away)) > _ALIKE:
            return None
        return _matrices_of(numbers + noise, products, block_noise_of(summing), count)


def family_of(products: DistinctProducts, count: int | float | None) -> MatrixFamily:
    """Returns the family of matrices that numbers make. **Arguments:** `count`: Σw, where it is known."""
    return MatrixFamily(*products.basis, products.base(count))


def _matrices_of(
    numbers: Floats, products: DistinctProducts, noise: BlockNoiseLaw, count: int | float | None
) -> Matrices:
    """Draws Σ w xx' given its released numbers. **Arguments:** `count`: Σw, where it is known; else it is guessed."""
    usual, weights = products.numbers_of(products.guess), 1.0 / noise.width**2
    # Least squares of the released numbers on those of made-up records, and no less than noise makes of it.
    square = float(np.sum(weights * usual**2))
    size = max(float(np.sum(weights * usual * numbers)) / square, 1.0 / (noise.epsilon * np.sqrt(square)))
    family = family_of(products, count)
    start = start_between(numbers, usual * (size if count is None else count), family)
    return matrices_given(numbers, family, noise, start, _SEED)


@dataclasses.dataclass(frozen=True)
class PublishedMoments:
    """Takes H = X'X from the noisy moments that an estimate such as `AdaSSP` publishes, and releases nothing more.

    Draws subtract fresh noise of the same law from the moments. In public units the eigenvalues of the difference are
    kept at least at a hundredth of the noise's deviation. It has the settings of `Sandwich`, which are None.
    """

    share: None = None
    bandwidth: None = None
    method: ClassVar[str] = "the published moments, whose noise is drawn again, and a sampling variance of each number"

    def settings(self) -> dict[str, Any]:
        """Returns the settings, JSON-ready."""
        return {"type": type(self).__name__, **vars(self)}

    def hessians(
        self, sums: Floats, summing: Any, first: Release, mechanism: Any, curvature: RecordCurvature
    ) -> Matrices:
        """Draws H as it may be. **Arguments:** as of `Sandwich.hessians`."""
        moments = mechanism.released_moments(first.published)
        return moments.grams(np.random.default_rng(_SEED), _GRAMS, least=0.01 * moments.on_matrix)
