"""Laws of draws on grids: as releases draw, against exact probabilities of cells, for every kind of draw.

Each case draws many times, by the code of releases, from the same records, mostly rounded to a coarser grid than
theirs. Its records have one column each that is not 0, so that `audits.grid_laws.cells` knows the
probabilities; calibrations, where noise has one, are compared with other arithmetic in the tests. Stages of which each
knows those before are told from theirs by distribution functions, which make uniform numbers of them.
"""

import contextlib
import dataclasses
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from audits.grid_laws.cells import chi_square, frequencies
from kngjax.draws.choice import proved_draw
from kngjax.draws.grid_cells import Grid
from kngjax.draws.quadratic_draws import QuadraticDraw
from kngjax.draws.shell_draws import ShellDraw
from kngjax.mechanisms.base import AbstractMechanism

Floats = Float[np.ndarray, "..."]
# Of all p-values of a table together: a right library has one below this, over their number, no oftener.
FAILURE_RATE = 1e-4
_CELLS, _CELLS_OF_PAIRS = 20, 5


@dataclasses.dataclass(frozen=True)
class CellLaw:
    """Probabilities of cells of what is drawn.

    **Arguments:** `mechanism`, `X`, `y`: what is released of what, X perhaps with weights. `drawn_by`: the class that
    draws. `edges`: of the cells in each coordinate. `probabilities`: of their products. `exponent`: of a coarser grid;
    None: the release's own.
    """

    mechanism: AbstractMechanism
    X: Any
    y: np.ndarray | None
    drawn_by: type
    edges: Sequence[Floats]
    probabilities: Floats
    exponent: int | None = None

    def p_values(self, number: int, seed: int = 0) -> list[float]:
        """Tests the cells of so many draws together. **Arguments:** `seed`: of what stands for random bits."""
        way, data = _way(self)
        if self.exponent is not None:
            way = dataclasses.replace(way, grid=Grid((self.exponent,) * len(way.grid.exponents)))
        bits = random.Random(seed).getrandbits
        with _envelope_once(way, data):
            drawn = np.array([way.draw_alone(data, bits) for _ in range(number)])
        return [chi_square(frequencies(drawn, self.edges), self.probabilities)]


@dataclasses.dataclass(frozen=True)
class StagedLaw:
    """Numbers that are uniform and independent, if each stage has its law given those before.

    **Arguments:** as of `CellLaw`. `uniforms(way, data, number, bits)`: shape (number, stages).
    """

    mechanism: AbstractMechanism
    X: Any
    y: np.ndarray | None
    drawn_by: type
    uniforms: Callable[[Any, Any, int, Callable[[int], int]], Float[np.ndarray, "draws stages"]]

    def p_values(self, number: int, seed: int = 0) -> list[float]:
        """Tests each stage by itself, and each pair of stages that follow each other."""
        way, data = _way(self)
        found = self.uniforms(way, data, number, random.Random(seed).getrandbits)
        ends, fewer = np.linspace(0.0, 1.0, _CELLS + 1), np.linspace(0.0, 1.0, _CELLS_OF_PAIRS + 1)
        stages = range(found.shape[1])
        alone = [chi_square(frequencies(found[:, [k]], [ends]), np.full(_CELLS, 1.0 / _CELLS)) for k in stages]
        even = np.full((_CELLS_OF_PAIRS, _CELLS_OF_PAIRS), _CELLS_OF_PAIRS**-2.0)
        return alone + [chi_square(frequencies(found[:, [k, k + 1]], [fewer, fewer]), even) for k in stages[:-1]]


Law = CellLaw | StagedLaw


def are_right(p_values: Sequence[float]) -> bool:
    """Whether the least of all p-values is as large as FAILURE_RATE over their number, or larger."""
    return min(p_values) * len(p_values) >= FAILURE_RATE


def _way(law: Law) -> tuple[Any, Any]:
    """How a release of these records draws, and what it draws from."""
    way = proved_draw(law.mechanism, law.mechanism.intake.check_schema(law.X, law.y))
    if way is None or not isinstance(way, law.drawn_by):
        raise TypeError(f"releases are drawn by {type(way).__name__}, and not by {law.drawn_by.__name__}")
    return way, way.prepare(law.X, law.y)


@contextlib.contextmanager
def replaced(kind: type, name: str, method: Callable[..., Any]) -> Iterator[None]:
    """A method of a class, for as long as a case draws."""
    declared = getattr(kind, name)
    setattr(kind, name, method)
    try:
        yield
    finally:
        setattr(kind, name, declared)


@contextlib.contextmanager
def _envelope_once(way: Any, data: Any) -> Iterator[None]:
    """A function of the records alone, that takes most of the time of a draw."""
    if isinstance(way, QuadraticDraw):
        envelopes = way.envelopes(way.law(data))
        with replaced(QuadraticDraw, "envelopes", lambda *_: envelopes):
            yield
    elif isinstance(way, ShellDraw):
        envelope = way.envelope(data)
        with replaced(ShellDraw, "envelope", lambda *_: envelope):
            yield
    else:
        yield
