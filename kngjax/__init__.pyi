"""The public names of kngjax, in reading order. They are imported when first used: `import kngjax` loads no JAX.

This list is also the registry: the command line, the documentation and the tests of conformance find losses, norms,
domains, mechanisms and samplers here, each by its room.
"""

from . import accounting as accounting
from . import audit as audit
from . import data as data
from .accounting.adjacency import Adjacency as Adjacency
from .accounting.guarantees import Guarantee as Guarantee
from .core import side_doors as side_doors
from .core.errors import ReleaseFailed as ReleaseFailed
from .core.randomness import research_key as research_key
from .core.randomness import secure_key as secure_key
from .data import terms as terms
from .data.bounds import Bounds as Bounds
from .data.shards import shard as shard
from .data.streams import stream as stream
from .geometry.base_measures import BaseMeasure as BaseMeasure
from .geometry.domains import Box as Box
from .geometry.domains import L1Ball as L1Ball
from .geometry.domains import L2Ball as L2Ball
from .geometry.feature_hulls import FeatureHull as FeatureHull
from .geometry.norms import L1 as L1
from .geometry.norms import L2 as L2
from .geometry.norms import Ellipsoid as Ellipsoid
from .geometry.norms import LInf as LInf
from .geometry.norms import WeightedLInf as WeightedLInf
from .geometry.norms import k_norm_noise as k_norm_noise
from .geometry.polytopes import Polytope as Polytope
from .ledger.book import LedgerError as LedgerError
from .ledger.budgets import Budget as Budget
from .ledger.ledgers import BudgetExceeded as BudgetExceeded
from .ledger.ledgers import Ledger as Ledger
from .ledger.ledgers import Reservation as Reservation
from .losses.distance import GeometricMedianLoss as GeometricMedianLoss
from .losses.distance import SquaredDistanceLoss as SquaredDistanceLoss
from .losses.expectile import ExpectileLoss as ExpectileLoss
from .losses.huber import HuberLoss as HuberLoss
from .losses.huber import PseudoHuberLoss as PseudoHuberLoss
from .losses.logistic import LogisticLoss as LogisticLoss
from .losses.poisson import PoissonLoss as PoissonLoss
from .losses.quantile import QuantileLoss as QuantileLoss
from .losses.smoothed_quantile import SmoothedQuantileLoss as SmoothedQuantileLoss
from .losses.squared import SquaredLoss as SquaredLoss
from .mechanisms.ada_ops import AdaOPS as AdaOPS
from .mechanisms.ada_ssp import AdaSSP as AdaSSP
from .mechanisms.exponential import ExponentialMechanism as ExponentialMechanism
from .mechanisms.irls import PrivateIRLS as PrivateIRLS
from .mechanisms.k_norm import KNormMechanism as KNormMechanism
from .mechanisms.kng import KNG as KNG
from .mechanisms.objective_perturbation import ObjectivePerturbation as ObjectivePerturbation
from .mechanisms.output_perturbation import OutputPerturbation as OutputPerturbation
from .mechanisms.posterior_sample import PosteriorSample as PosteriorSample
from .mechanisms.private_quantile import PrivateQuantile as PrivateQuantile
from .owner import nonprivate as nonprivate
from .owner import per_instance as per_instance
from .owner.draws import CouplingBound as CouplingBound
from .owner.draws import Draws as Draws
from .owner.draws import coupling_bound as coupling_bound
from .owner.per_instance.privacy import per_instance_privacy as per_instance_privacy
from .owner.per_instance.report import PerInstanceReport as PerInstanceReport
from .owner.per_instance.report import PerInstanceSummary as PerInstanceSummary
from .releases.certificate import Certificate as Certificate
from .releases.chains import draw as draw
from .releases.lattice.lattice import Lattice as Lattice
from .releases.release import Release as Release
from .releases.release import certify as certify
from .releases.release import release as release
from .releases.research import sample as sample
from .releases.simulation import Simulation as Simulation
from .releases.simulation import simulate as simulate
from .samplers.chains.coordinate_walk import CoordinateWalk as CoordinateWalk
from .samplers.chains.ensemble_walk import EnsembleWalk as EnsembleWalk
from .samplers.chains.gradient_space import GradientSpace as GradientSpace
from .samplers.chains.hamiltonian import HMC as HMC
from .samplers.chains.hamiltonian import NUTS as NUTS
from .samplers.chains.independence import IndependenceMH as IndependenceMH
from .samplers.chains.line_gibbs import LineGibbs as LineGibbs
from .samplers.chains.numpyro_kernel import CoordinateWalkKernel as CoordinateWalkKernel
from .samplers.chains.slice_gibbs import SliceGibbs as SliceGibbs
from .samplers.exact.exact import Exact as Exact
from .sensitivity.change_sets import SensitivitySet as SensitivitySet
from .sensitivity.gradients import Sensitivity as Sensitivity
from .sensitivity.gradients import sensitivity_set as sensitivity_set

__version__: str
