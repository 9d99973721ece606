"""Envelopes of the density of a quadratic loss: laws that are drawn from directly and lie above it, up to a factor."""

from kngjax.samplers.envelopes.base import AbstractEnvelope as AbstractEnvelope
from kngjax.samplers.envelopes.base import BaseMeasureEnvelope as BaseMeasureEnvelope
from kngjax.samplers.envelopes.base import num_uniforms as num_uniforms
from kngjax.samplers.envelopes.exponential_product import ExponentialProduct as ExponentialProduct
from kngjax.samplers.envelopes.normal_product import NormalProduct as NormalProduct
from kngjax.samplers.envelopes.tilted import TiltedInverse as TiltedInverse
