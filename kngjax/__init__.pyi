"""The public names of kngjax, in reading order. They are imported when first used: `import kngjax` loads no JAX.

This list is also the registry: the command line, the documentation and the tests of conformance find losses, norms,
domains, mechanisms and samplers here, each by its room.
"""

from . import accounting as accounting
from . import audit as audit
from . import chains as chains
from . import data as data
from . import draws as draws
from . import geometry as geometry
from . import inference as inference
from . import ledger as ledger
from . import owner as owner
from . import releases as releases
from . import sensitivity as sensitivity
from .accounting.adjacency import Adjacency as Adjacency
from .accounting.guarantees import Guarantee as Guarantee
from .core import side_doors as side_doors
from .core.errors import ReleaseFailed as ReleaseFailed
from .core.randomness import research_key as research_key
from .core.randomness import secure_key as secure_key
from .data import terms as terms
from .data.bounds import Bounds as Bounds
from .data.persons import Unit as Unit
from .data.shards import shard as shard
from .data.streams import stream as stream
from .geometry.base_measures import BaseMeasure as BaseMeasure
from .geometry.domains import Box as Box
from .geometry.domains import L1Ball as L1Ball
from .geometry.domains import L2Ball as L2Ball
from .geometry.norms import L1 as L1
from .geometry.norms import L2 as L2
from .geometry.norms import Ellipsoid as Ellipsoid
from .geometry.norms import LInf as LInf
from .geometry.norms import WeightedLInf as WeightedLInf
from .geometry.polytopes import Polytope as Polytope
from .inference.covariances import Sandwich as Sandwich
from .inference.observations import observe as observe
from .inference.previewing import preview as preview
from .inference.with_intervals import WithIntervals as WithIntervals
from .ledger.budgets import Budget as Budget
from .ledger.ledgers import Ledger as Ledger
from .losses.contradictions import check_loss as check_loss
from .losses.distance import GeometricMedianLoss as GeometricMedianLoss
from .losses.distance import SquaredDistanceLoss as SquaredDistanceLoss
from .losses.expectile import ExpectileLoss as ExpectileLoss
from .losses.huber import HuberLoss as HuberLoss
from .losses.huber import PseudoHuberLoss as PseudoHuberLoss
from .losses.logistic import LogisticLoss as LogisticLoss
from .losses.poisson import CappedPoissonLoss as CappedPoissonLoss
from .losses.poisson import PoissonLoss as PoissonLoss
from .losses.quantile import QuantileLoss as QuantileLoss
from .losses.smoothed_quantile import SmoothedQuantileLoss as SmoothedQuantileLoss
from .losses.squared import SquaredLoss as SquaredLoss
from .mechanisms.ada_ops import AdaOPS as AdaOPS
from .mechanisms.ada_ssp import AdaSSP as AdaSSP
from .mechanisms.exponential import ExponentialMechanism as ExponentialMechanism
from .mechanisms.geometric import GeometricMechanism as GeometricMechanism
from .mechanisms.irls import PrivateIRLS as PrivateIRLS
from .mechanisms.k_norm import KNormMechanism as KNormMechanism
from .mechanisms.kng import KNG as KNG
from .mechanisms.objective_perturbation import ObjectivePerturbation as ObjectivePerturbation
from .mechanisms.output_perturbation import OutputPerturbation as OutputPerturbation
from .mechanisms.posterior_sample import PosteriorSample as PosteriorSample
from .mechanisms.private_quantile import PrivateQuantile as PrivateQuantile
from .mechanisms.quantile_interval import QuantileInterval as QuantileInterval
from .owner.per_instance.privacy import per_instance_privacy as per_instance_privacy
from .releases.chains import draw as draw
from .releases.curves.quantile_process import QuantileProcess as QuantileProcess
from .releases.release import Release as Release
from .releases.release import certify as certify
from .releases.release import release as release
from .releases.research import sample as sample
from .releases.simulation import simulate as simulate
from .releases.which import which as which
from .study import synthesis as synthesis
from .study.results import Results as Results
from .study.study import Study as Study
from .study.synthesis.synthetic_tables import synthesize as synthesize

__version__: str
