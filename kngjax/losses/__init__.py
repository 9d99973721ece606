"""Losses ℓ(θ; record), each written for one record, with the facts that the sensitivity proofs rest on."""

from kngjax.losses.base import AbstractLoss as AbstractLoss
from kngjax.losses.base import AbstractPredictorLoss as AbstractPredictorLoss
from kngjax.losses.base import AbstractResidualLoss as AbstractResidualLoss
from kngjax.losses.distance import GeometricMedianLoss as GeometricMedianLoss
from kngjax.losses.distance import SquaredDistanceLoss as SquaredDistanceLoss
from kngjax.losses.extended import TangentExtension as TangentExtension
from kngjax.losses.huber import HuberLoss as HuberLoss
from kngjax.losses.huber import PseudoHuberLoss as PseudoHuberLoss
from kngjax.losses.logistic import LogisticLoss as LogisticLoss
from kngjax.losses.poisson import PoissonLoss as PoissonLoss
from kngjax.losses.quantile import QuantileLoss as QuantileLoss
from kngjax.losses.quantile import SmoothedQuantileLoss as SmoothedQuantileLoss
from kngjax.losses.squared import SquaredLoss as SquaredLoss
