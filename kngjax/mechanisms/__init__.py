"""Mechanisms: what is drawn from. Each knows its sensitivity and its guarantee, and no sampler."""

from kngjax.mechanisms.ada_ops import AdaOPS as AdaOPS
from kngjax.mechanisms.ada_ssp import AdaSSP as AdaSSP
from kngjax.mechanisms.base import AbstractDensityMechanism as AbstractDensityMechanism
from kngjax.mechanisms.base import AbstractDirectMechanism as AbstractDirectMechanism
from kngjax.mechanisms.base import AbstractMechanism as AbstractMechanism
from kngjax.mechanisms.exponential import ExponentialMechanism as ExponentialMechanism
from kngjax.mechanisms.k_norm import KNormMechanism as KNormMechanism
from kngjax.mechanisms.kng import KNG as KNG
from kngjax.mechanisms.objective_perturbation import ObjectivePerturbation as ObjectivePerturbation
from kngjax.mechanisms.output_perturbation import OutputPerturbation as OutputPerturbation
from kngjax.mechanisms.posterior_sample import PosteriorSample as PosteriorSample
from kngjax.mechanisms.private_quantile import PrivateQuantile as PrivateQuantile
