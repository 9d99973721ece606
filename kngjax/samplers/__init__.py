"""Samplers: they know a `Target` (a log-density, its domain, the structure of its loss), never a mechanism."""

from kngjax.samplers.base import AbstractChainSampler as AbstractChainSampler
from kngjax.samplers.base import AbstractIndependentSampler as AbstractIndependentSampler
from kngjax.samplers.base import AbstractSampler as AbstractSampler
from kngjax.samplers.coordinate_walk import CoordinateWalk as CoordinateWalk
from kngjax.samplers.ensemble_walk import EnsembleWalk as EnsembleWalk
from kngjax.samplers.exact import Exact as Exact
from kngjax.samplers.gradient_space import GradientSpace as GradientSpace
from kngjax.samplers.hamiltonian import HMC as HMC
from kngjax.samplers.hamiltonian import NUTS as NUTS
from kngjax.samplers.independence import IndependenceMH as IndependenceMH
from kngjax.samplers.line_gibbs import LineGibbs as LineGibbs
from kngjax.samplers.numpyro_kernel import CoordinateWalkKernel as CoordinateWalkKernel
from kngjax.samplers.slice_gibbs import SliceGibbs as SliceGibbs
