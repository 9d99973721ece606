"""Draws θ with density ∝ exp(-‖(Aθ - b)/w‖/λ) on Θ, rounded once to a grid, as real arithmetic would draw it.

Proposals come from an envelope (`envelopes`) that is chosen by float64 and by the data (`choices`): none of them
changes the law of what is accepted, and neither does what was rejected before, as proposals are independent.
"""

from collections.abc import Iterator

from kngjax.draws.grid_cells import Grid
from kngjax.draws.quadratic.choices import Choice
from kngjax.draws.quadratic.envelopes import QuadraticEnvelope, Rejected
from kngjax.draws.quadratic.law import QuadraticLaw
from kngjax.draws.uniforms import Bits, decided


def draw_quadratic(
    law: QuadraticLaw, grid: Grid, bits: Bits, envelopes: Iterator[QuadraticEnvelope] | None = None
) -> list[int]:
    """Returns the cell of θ, moved inward where its point would lie outside of Θ.

    It ends with probability 1 for all data; how long it takes depends on them. **Arguments:** `envelopes`: without end,
    as `Choice` makes them; who draws several times of one law chooses once.
    """
    for envelope in envelopes or Choice(law).envelopes():
        cell = decided(envelope.propose(grid, bits))
        if not isinstance(cell, Rejected):
            return law.body.inward(cell, grid)
    raise AssertionError
