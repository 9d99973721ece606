"""Chooses how a release draws with every rounding in its proof, by an ordered table."""

from typing import Any

from kngjax.data.schema import Schema
from kngjax.draws.ada_ops_draw import NoisyAdaOPS
from kngjax.draws.ada_ssp_draw import NoisyMoments
from kngjax.draws.base import AbstractDraw
from kngjax.draws.box_draws import BoxDraw
from kngjax.draws.exact_choice import ExactChoice
from kngjax.draws.exact_interval import ExactInterval
from kngjax.draws.irls_iterates import IteratesOnGrid
from kngjax.draws.lattice_draws import LatticeDraw
from kngjax.draws.noisy_counts import NoisyCounts
from kngjax.draws.noisy_minimizers import NoisyMinimum, NoisyRidge
from kngjax.draws.noisy_sums import NoisyMean
from kngjax.draws.perturbed_minimizers import PerturbedMinimizer
from kngjax.draws.quadratic_draws import QuadraticDraw
from kngjax.draws.ridge_posterior import NoisyPosterior
from kngjax.draws.shell_draws import ShellDraw

# In the order in which they are asked. Boxes stand before shells: they end for all records, those without an estimate
# in Θ too, about which shells may search on.
DRAWS: tuple[type[AbstractDraw], ...] = (
    NoisyMean,
    NoisyCounts,
    NoisyMoments,
    NoisyAdaOPS,
    NoisyPosterior,
    NoisyRidge,
    NoisyMinimum,
    PerturbedMinimizer,
    IteratesOnGrid,
    ExactChoice,
    ExactInterval,
    QuadraticDraw,
    BoxDraw,
    ShellDraw,
    LatticeDraw,
)


def proved_draw(mechanism: Any, facts: Schema) -> AbstractDraw | None:
    """Returns the first draw of the table that serves a mechanism, with all its settings; None where none does.

    **Arguments:** `facts`: of the records, all of them public. Raises ValueError where public facts allow no release.
    """
    for draw in DRAWS:
        found = draw.of(mechanism, facts) if isinstance(mechanism, draw.serves) else None
        if found is not None and (found.takes_weights or mechanism.bounds.weight is None):
            return found
    return None
