"""kngjax: statistical estimates under differential privacy, correctly and fast, in JAX.

loss -> gradient -> norm -> sensitivity -> log-density on a domain -> sampler -> release with a certificate
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kngjax import accounting as accounting
    from kngjax import audit as audit
    from kngjax import data as data
    from kngjax.accounting.guarantees import Adjacency as Adjacency
    from kngjax.accounting.guarantees import Guarantee as Guarantee
    from kngjax.core import side_doors as side_doors
    from kngjax.core.errors import ReleaseFailed as ReleaseFailed
    from kngjax.core.randomness import research_key as research_key
    from kngjax.core.randomness import secure_key as secure_key
    from kngjax.data import terms as terms
    from kngjax.data.bounds import Bounds as Bounds
    from kngjax.data.shards import shard as shard
    from kngjax.data.streams import stream as stream
    from kngjax.geometry.domains import BaseMeasure as BaseMeasure
    from kngjax.geometry.domains import Box as Box
    from kngjax.geometry.domains import L1Ball as L1Ball
    from kngjax.geometry.domains import L2Ball as L2Ball
    from kngjax.geometry.feature_hulls import FeatureHull as FeatureHull
    from kngjax.geometry.norms import L1 as L1
    from kngjax.geometry.norms import L2 as L2
    from kngjax.geometry.norms import Ellipsoid as Ellipsoid
    from kngjax.geometry.norms import LInf as LInf
    from kngjax.geometry.norms import WeightedLInf as WeightedLInf
    from kngjax.geometry.norms import k_norm_noise as k_norm_noise
    from kngjax.geometry.polytopes import Polytope as Polytope
    from kngjax.ledger import Budget as Budget
    from kngjax.ledger import BudgetExceeded as BudgetExceeded
    from kngjax.ledger import Ledger as Ledger
    from kngjax.ledger import LedgerError as LedgerError
    from kngjax.ledger import Reservation as Reservation
    from kngjax.losses import GeometricMedianLoss as GeometricMedianLoss
    from kngjax.losses import HuberLoss as HuberLoss
    from kngjax.losses import LogisticLoss as LogisticLoss
    from kngjax.losses import PoissonLoss as PoissonLoss
    from kngjax.losses import PseudoHuberLoss as PseudoHuberLoss
    from kngjax.losses import QuantileLoss as QuantileLoss
    from kngjax.losses import SmoothedQuantileLoss as SmoothedQuantileLoss
    from kngjax.losses import SquaredDistanceLoss as SquaredDistanceLoss
    from kngjax.losses import SquaredLoss as SquaredLoss
    from kngjax.mechanisms import KNG as KNG
    from kngjax.mechanisms import AdaOPS as AdaOPS
    from kngjax.mechanisms import AdaSSP as AdaSSP
    from kngjax.mechanisms import ExponentialMechanism as ExponentialMechanism
    from kngjax.mechanisms import KNormMechanism as KNormMechanism
    from kngjax.mechanisms import ObjectivePerturbation as ObjectivePerturbation
    from kngjax.mechanisms import OutputPerturbation as OutputPerturbation
    from kngjax.mechanisms import PosteriorSample as PosteriorSample
    from kngjax.mechanisms import PrivateIRLS as PrivateIRLS
    from kngjax.mechanisms import PrivateQuantile as PrivateQuantile
    from kngjax.owner import nonprivate as nonprivate
    from kngjax.owner import per_instance as per_instance
    from kngjax.owner.draws import CouplingBound as CouplingBound
    from kngjax.owner.draws import Draws as Draws
    from kngjax.owner.draws import coupling_bound as coupling_bound
    from kngjax.owner.per_instance import PerInstanceReport as PerInstanceReport
    from kngjax.owner.per_instance import PerInstanceSummary as PerInstanceSummary
    from kngjax.owner.per_instance import per_instance_privacy as per_instance_privacy
    from kngjax.releases.certificate import Certificate as Certificate
    from kngjax.releases.chains import draw as draw
    from kngjax.releases.lattice import Lattice as Lattice
    from kngjax.releases.release import Release as Release
    from kngjax.releases.release import certify as certify
    from kngjax.releases.release import release as release
    from kngjax.releases.release import sample as sample
    from kngjax.releases.simulation import Simulation as Simulation
    from kngjax.releases.simulation import simulate as simulate
    from kngjax.samplers import HMC as HMC
    from kngjax.samplers import NUTS as NUTS
    from kngjax.samplers import CoordinateWalk as CoordinateWalk
    from kngjax.samplers import CoordinateWalkKernel as CoordinateWalkKernel
    from kngjax.samplers import EnsembleWalk as EnsembleWalk
    from kngjax.samplers import Exact as Exact
    from kngjax.samplers import GradientSpace as GradientSpace
    from kngjax.samplers import IndependenceMH as IndependenceMH
    from kngjax.samplers import LineGibbs as LineGibbs
    from kngjax.samplers import SliceGibbs as SliceGibbs
    from kngjax.sensitivity.change_sets import SensitivitySet as SensitivitySet
    from kngjax.sensitivity.gradients import Sensitivity as Sensitivity
    from kngjax.sensitivity.gradients import sensitivity_set as sensitivity_set

# Public names in reading order, by the room they live in. They are imported when first used, so that
# `kngjax --help` loads no JAX.
_ROOMS = {
    "kngjax.losses": (
        "QuantileLoss",
        "SmoothedQuantileLoss",
        "SquaredLoss",
        "HuberLoss",
        "PseudoHuberLoss",
        "LogisticLoss",
        "PoissonLoss",
        "SquaredDistanceLoss",
        "GeometricMedianLoss",
    ),
    "kngjax.data.bounds": ("Bounds",),
    "kngjax.data.streams": ("stream",),
    "kngjax.data.shards": ("shard",),
    "kngjax.geometry.feature_hulls": ("FeatureHull",),
    "kngjax.geometry.domains": ("Box", "L1Ball", "L2Ball", "BaseMeasure"),
    "kngjax.geometry.norms": ("L1", "L2", "LInf", "WeightedLInf", "Ellipsoid", "k_norm_noise"),
    "kngjax.geometry.polytopes": ("Polytope",),
    "kngjax.sensitivity.gradients": ("Sensitivity", "sensitivity_set"),
    "kngjax.sensitivity.change_sets": ("SensitivitySet",),
    "kngjax.accounting.guarantees": ("Adjacency", "Guarantee"),
    "kngjax.mechanisms": (
        "KNG",
        "ExponentialMechanism",
        "KNormMechanism",
        "PrivateQuantile",
        "PrivateIRLS",
        "ObjectivePerturbation",
        "OutputPerturbation",
        "PosteriorSample",
        "AdaOPS",
        "AdaSSP",
    ),
    "kngjax.samplers": (
        "Exact",
        "GradientSpace",
        "IndependenceMH",
        "SliceGibbs",
        "LineGibbs",
        "EnsembleWalk",
        "CoordinateWalk",
        "NUTS",
        "HMC",
        "CoordinateWalkKernel",
    ),
    "kngjax.releases.lattice": ("Lattice",),
    "kngjax.releases.release": ("release", "sample", "Release", "certify"),
    "kngjax.core.errors": ("ReleaseFailed",),
    "kngjax.ledger": ("Ledger", "Budget", "Reservation", "BudgetExceeded", "LedgerError"),
    "kngjax.releases.chains": ("draw",),
    "kngjax.releases.simulation": ("simulate", "Simulation"),
    "kngjax.releases.certificate": ("Certificate",),
    "kngjax.owner.draws": ("Draws", "coupling_bound", "CouplingBound"),
    "kngjax.owner.per_instance": ("per_instance_privacy", "PerInstanceReport", "PerInstanceSummary"),
    "kngjax.core.randomness": ("research_key", "secure_key"),
}
_HOMES = {name: room for room, names in _ROOMS.items() for name in names}
_SUBMODULES = ("accounting", "audit", "data", "nonprivate", "per_instance", "side_doors", "terms")

__all__ = [*_HOMES, *_SUBMODULES]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
    elif name in _SUBMODULES:
        value = importlib.import_module(f"kngjax.{name}")
    else:
        raise AttributeError(f"module 'kngjax' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
