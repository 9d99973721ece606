"""Per-instance differential privacy of a mechanism on given data, person by person (Wang 2019)."""

from typing import Any

import numpy as np

from kngjax._arrays import float64
from kngjax.accounting.guarantees import Adjacency
from kngjax.data import QuadraticSummary, Records, prepare
from kngjax.losses import AbstractPredictorLoss
from kngjax.mechanisms import OutputPerturbation, PosteriorSample
from kngjax.mechanisms.base import AbstractMechanism, checked_delta
from kngjax.per_instance import everyone, leave_one_out, ridge
from kngjax.per_instance.chunks import CHUNK, by_chunks
from kngjax.per_instance.laws import AbstractPair, ShiftPair
from kngjax.per_instance.report import PerInstanceReport, epsilons_at, spread_out

# Each of these is as costly as a person of a smooth loss.
_MOST_TRIALS = 256
