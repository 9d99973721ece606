"""Envelopes of the density of a quadratic loss: laws that are drawn from directly and lie above it, up to a factor."""

from kngjax.samplers.exact.envelopes.base import AbstractEnvelope as AbstractEnvelope
from kngjax.samplers.exact.envelopes.base import BaseMeasureEnvelope as BaseMeasureEnvelope
from kngjax.samplers.exact.envelopes.base import num_uniforms as num_uniforms
from kngjax.samplers.exact.envelopes.exponential_product import ExponentialProduct as ExponentialProduct
from kngjax.samplers.exact.envelopes.normal_product import NormalProduct as NormalProduct
from kngjax.samplers.exact.envelopes.tilted import TiltedInverse as TiltedInverse
