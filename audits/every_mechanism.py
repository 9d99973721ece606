"""Lists a mechanism of every kind with the sampler that draws from it: audits of releases release each.

All are for two columns in [0, 1] and responses in [0, 1], or for as much of these as they take.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from kngjax.chains.base import AbstractSampler
from kngjax.chains.ensemble_walk import EnsembleWalk
from kngjax.chains.exact.exact import Exact
from kngjax.chains.gradient_space import GradientSpace
from kngjax.chains.line_gibbs import LineGibbs
from kngjax.chains.slice_gibbs import SliceGibbs
from kngjax.data.bounds import Bounds
from kngjax.draws.lattice.lattice import Lattice
from kngjax.geometry.domains import Box, L2Ball
from kngjax.ledger.ledgers import Ledger
from kngjax.losses.huber import PseudoHuberLoss
from kngjax.losses.quantile import QuantileLoss
from kngjax.losses.squared import SquaredLoss
from kngjax.mechanisms.ada_ops import AdaOPS
from kngjax.mechanisms.ada_ssp import AdaSSP
from kngjax.mechanisms.base import AbstractMechanism
from kngjax.mechanisms.block_sums import BlockSums
from kngjax.mechanisms.exponential import ExponentialMechanism
from kngjax.mechanisms.geometric import GeometricMechanism
from kngjax.mechanisms.irls import PrivateIRLS
from kngjax.mechanisms.k_norm import KNormMechanism
from kngjax.mechanisms.kng import KNG
from kngjax.mechanisms.objective_perturbation import ObjectivePerturbation
from kngjax.mechanisms.output_perturbation import OutputPerturbation
from kngjax.mechanisms.posterior_sample import PosteriorSample
from kngjax.mechanisms.private_quantile import PrivateQuantile
from kngjax.releases.release import Release, release

BOUNDS = Bounds(x=([0.0, 0.0], [1.0, 1.0]), y=(0.0, 1.0))
BOX = Box(-2.0, 2.0)
# Where the loss needs none.
_OPEN = Bounds(x=([0.0, 0.0], [1.0, 1.0]))
_PARTS = (BOUNDS, BOX, 1.0, "replace")


@dataclasses.dataclass(frozen=True)
class Case:
    """Holds a mechanism, how it is drawn from, and which data it takes.

    **Arguments:** `mechanism`. `sampler`: or None. `takes`: "x", "y" or "xy", what it has for data; of "y" alone its
    values are whole, or stay within the bounds.
    """

    mechanism: AbstractMechanism
    sampler: AbstractSampler | Lattice | None = None
    takes: str = "xy"

    def given(self, X: Any, y: Any) -> tuple[Any, Any]:
        """X and y, None for what it does not take."""
        return X if "x" in self.takes else None, y if "y" in self.takes else None

    def release(self, X: Any, y: Any, ledger: Ledger | None = None) -> Release:
        """Releases these records by `kngjax.release`."""
        return release(self.mechanism, *self.given(X, y), sampler=self.sampler, ledger=ledger, progress=False)

    def admits(self, theta: np.ndarray) -> bool:
        """Whether a released value is finite, of the right shape, and in the mechanism's range."""
        if theta.shape != (self.mechanism.dimension,) or not np.all(np.isfinite(theta)):
            return False
        if getattr(self.mechanism, "is_whole", False):
            return bool(np.all(theta == np.round(theta)))
        if self.takes == "y":
            return bool(np.all((theta >= 0.0) & (theta <= 1.0)))
        domain = getattr(self.mechanism, "domain", None)
        return domain is None or bool(np.asarray(domain.contains(theta)))


# By name, made when called: some are calibrated first.
CASES: dict[str, Callable[[], Case]] = {
    "means": lambda: Case(
        KNormMechanism(Bounds(x=([0.0, 0.0], [1.0, 1.0]), intercept=False), 1.0, "replace"), takes="x"
    ),
    "quantile": lambda: Case(PrivateQuantile(0.5, Bounds(y=(0.0, 1.0)), 1.0, "replace"), takes="y"),
    "two quantiles": lambda: Case(PrivateQuantile([0.25, 0.5], Bounds(y=(0.0, 1.0)), 1.0, "replace"), takes="y"),
    "counts": lambda: Case(GeometricMechanism(Bounds(y=(0.0, 1.0), missing_y=0.0), 1.0, "replace"), takes="y"),
    "sums": lambda: Case(
        KNormMechanism(Bounds(x=([0.0, 0.0], [1.0, 1.0]), intercept=False), 1.0, "add_remove", statistic="sum"),
        takes="x",
    ),
    "sums in blocks": lambda: Case(
        BlockSums(Bounds(x=([0.0, 0.0], [1.0, 1.0]), intercept=False), 1.0, "replace", [(0, 1)]), takes="x"
    ),
    "squared, lattice": lambda: Case(KNG(SquaredLoss(), *_PARTS), Lattice()),
    "median, lattice": lambda: Case(KNG(QuantileLoss(0.5), _OPEN, BOX, 1.0, "replace"), Lattice()),
    "squared": lambda: Case(KNG(SquaredLoss(), *_PARTS), Exact()),
    "squared, exponential": lambda: Case(ExponentialMechanism(SquaredLoss(), *_PARTS), Exact()),
    "squared, slices": lambda: Case(KNG(SquaredLoss(), *_PARTS), SliceGibbs(num_sweeps=8)),
    "median, lines": lambda: Case(KNG(QuantileLoss(0.5), *_PARTS), LineGibbs(num_sweeps=8)),
    "pseudo-Huber, no bounds of y": lambda: Case(
        KNG(PseudoHuberLoss(0.5), _OPEN, BOX, 1.0, "replace"), EnsembleWalk(num_sweeps=8)
    ),
    "pseudo-Huber": lambda: Case(KNG(PseudoHuberLoss(0.5), *_PARTS)),
    "pseudo-Huber, gradients": lambda: Case(KNG(PseudoHuberLoss(0.5), *_PARTS), GradientSpace(num_sweeps=8)),
    "objective": lambda: Case(
        ObjectivePerturbation(PseudoHuberLoss(0.5), BOUNDS, L2Ball(2.0), 1.0, "replace", centre=[0.5, 0, 0])
    ),
    "output": lambda: Case(OutputPerturbation(SquaredLoss(), BOUNDS, 1000.0, 1.0, 1e-6, "replace", max_records=9999)),
    "posterior": lambda: Case(PosteriorSample.calibrated(BOUNDS, 1000.0, 1.0, 1e-6, "replace", max_records=9999)),
    "AdaOPS": lambda: Case(AdaOPS(BOUNDS, 1.0, 1e-6, "replace")),
    "AdaSSP": lambda: Case(AdaSSP(BOUNDS, 1.0, 1e-6, "replace")),
    "reweighted": lambda: Case(PrivateIRLS(BOUNDS, 1.0, 1e-6, "replace")),
}
