"""Mechanisms: what is drawn from. Each knows its sensitivity and its guarantee, and no sampler."""

from kngjax.mechanisms.base import AbstractDensityMechanism as AbstractDensityMechanism
from kngjax.mechanisms.exponential import ExponentialMechanism as ExponentialMechanism
from kngjax.mechanisms.kng import KNG as KNG
