"""Samplers: they know a `Target` (a log-density, its domain, the structure of its loss), never a mechanism."""

from kngjax.samplers.base import AbstractChainSampler as AbstractChainSampler
from kngjax.samplers.base import AbstractIndependentSampler as AbstractIndependentSampler
from kngjax.samplers.base import AbstractSampler as AbstractSampler
from kngjax.samplers.chains.coordinate_walk import CoordinateWalk as CoordinateWalk
from kngjax.samplers.chains.ensemble_walk import EnsembleWalk as EnsembleWalk
from kngjax.samplers.chains.gradient_space import GradientSpace as GradientSpace
from kngjax.samplers.chains.hamiltonian import HMC as HMC
from kngjax.samplers.chains.hamiltonian import NUTS as NUTS
from kngjax.samplers.chains.independence import IndependenceMH as IndependenceMH
from kngjax.samplers.chains.line_gibbs import LineGibbs as LineGibbs
from kngjax.samplers.chains.numpyro_kernel import CoordinateWalkKernel as CoordinateWalkKernel
from kngjax.samplers.chains.slice_gibbs import SliceGibbs as SliceGibbs
from kngjax.samplers.exact.exact import Exact as Exact
