"""Envelopes of exp(-‖(Aθ - b)/w‖/λ) on Θ: noise in some rows, a law of its own for the coordinates of the others.

Let S be some rows, N the others, z = Aθ - b, ‖·‖ the norm with its weights and over λ, and A_SS invertible. Then
θ ↦ (z_S, θ_N) is one-to-one, with a constant Jacobian. A proposal draws θ_N with density ∝ exp(q'θ_N - rρ(θ_N))
(`bodies`), and z_S with density ∝ exp(-‖z_S‖ - p_S'z_S) (`tilted_noises`), ‖p‖_* ≤ 1. Where ‖z‖ ≥ ‖z_S‖ - p_N'z_N, on Θ

    -‖z‖ + ‖z_S‖ + p_S'z_S - q'θ_N + rρ(θ_N)  ≤  v'θ + rρ(θ_N) - p'b  ≤  M,    q = (Ap)_N,  v = ((Ap)_S, 0),

for M = sup {v'θ + rρ(θ_N) : θ ∈ Θ} - p'b. That is so for p_N = 0, without rows, and for the sum as norm. So θ ∈ Θ is
accepted with the probability exp(left-hand side - M): what is accepted has the law.

All rows and p = 0 are noise about A^{-1}b, with M = 0: every θ in Θ is accepted. No rows are a law about as wide as Θ.
Some are for A that is singular, or so small in some directions that noise would go far beyond Θ. Tilts p are for
A^{-1}b outside of Θ.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

from flint import arb, arb_mat, ctx

from kngjax.core.balls import ball_of
from kngjax.core.owner_only import OwnerOnly, owner_only
from kngjax.draws.grid_cells import Grid
from kngjax.draws.linear_algebra import dot, times
from kngjax.draws.quadratic.bodies import AbstractBody
from kngjax.draws.quadratic.tilted_noises import above, plain_noise, tilted_noise
from kngjax.draws.uniforms import Bits, Uniform
from kngjax.geometry.scaled_norms import ScaledNorm, norm_in_balls


@owner_only
class QuadraticLaw(OwnerOnly):
    """Holds the law of θ. Private. **Arguments:** `gram`: A, `moment`: b, exactly. `noise`: w and λ. `body`: Θ."""

    gram: Sequence[Sequence[Fraction]]
    moment: Sequence[Fraction]
    noise: ScaledNorm
    body: AbstractBody


class Rejected(NamedTuple):
    """Marks a proposal that is not accepted."""


class _Balls(NamedTuple):
    """Numbers of an envelope at one precision."""

    inverse: arb_mat
    across: arb_mat | None
    below: list[list[arb]]
    moment: list[arb]
    scales: list[arb]


class QuadraticEnvelope:
    """Proposes θ from one envelope, and decides whether it is accepted. Private.

    **Arguments:** `rows`: S, in any order; A_SS is invertible. `tilt`: p, of all rows. `pull`: r. Tilt and pull may be
    any numbers: those that no proof allows are replaced.
    """

    def __init__(self, law: QuadraticLaw, rows: Sequence[int], tilt: Sequence[Fraction], pull: Fraction):
        self._law, self._rows, dimension = law, list(rows), len(law.moment)
        within = set(rows)
        self._rest = [axis for axis in range(dimension) if axis not in within]
        if rows and law.noise.kind != "sum":
            tilt = [one if row in within else Fraction(0) for row, one in enumerate(tilt)]
        self._noise = law.noise.of(self._rows)
        whole = tilted_noise(law.noise, tilt)
        own_tilt = [tilt[row] for row in self._rows]
        # Proofs that ‖h‖_* < 1 may differ in their last digit: both are needed.
        if whole is None or (any(own_tilt) and tilted_noise(self._noise, own_tilt) is None):
            whole, tilt = None, [Fraction(0)] * dimension
        images = [sum((a * one for a, one in zip(line, tilt, strict=True) if one), Fraction(0)) for line in law.gram]
        shift = sum((one * number for one, number in zip(tilt, law.moment, strict=True)), Fraction(0))
        self._tilt = [tilt[row] for row in self._rows]
        floor = Fraction(0)
        if whole is not None and (length := above(whole.dual)):
            # ‖z_S‖ is at least -p'z/‖p‖_*.
            floor = max(floor, (shift - law.body.most(images, floor, [])) / length)
        self._tilted = tilted_noise(self._noise, self._tilt, floor)
        self._slopes = [images[axis] for axis in self._rest]
        self._pull = law.body.wide_enough(self._slopes, pull) if self._rest else Fraction(0)
        own = [image if row in within else Fraction(0) for row, image in enumerate(images)]
        self._most = law.body.most(own, self._pull, self._rest) - shift
        self._accepts_all = not self._rest and self._tilted is None
        self._known: dict[int, _Balls | None] = {}

    def propose(self, grid: Grid, bits: Bits) -> Callable[[int], list[int] | Rejected | None]:
        """Returns a new proposal: what becomes of it as far as so many digits tell, its cell or that it is rejected."""
        body, rows, rest = self._law.body, self._rows, self._rest
        free = body.draw(rest, self._slopes, self._pull, bits) if rest else lambda digits: []
        drawn = None
        if rows:
            drawn = plain_noise(self._noise, bits) if self._tilted is None else self._tilted.draw(bits)
        level = Uniform(bits)

        def attempt(digits):
            balls = self._balls()
            if balls is None:
                return None
            elsewhere, standard = free(digits), drawn.balls(digits) if drawn else []
            noise = [one * balls.scales[row] for one, row in zip(standard, rows, strict=True)]
            theta = self._place(balls, noise, elsewhere)
            inside = body.shape.contains(theta)
            if inside is False:
                return Rejected()
            if inside is None:
                return None
            if not self._accepts_all:
                doubt = self._doubt(balls, standard, noise, elsewhere, theta) + (drawn.doubt(digits) if drawn else 0)
                size = -level.ball(digits).log()
                if size < doubt:
                    return Rejected()
                if not size >= doubt:
                    return None
            return grid.cell(theta)

        return attempt

    def _place(self, balls: _Balls, noise: list[arb], elsewhere: list[arb]) -> list[arb]:
        """θ, from z_S and θ_N."""
        found: list[arb] = [arb(0)] * len(self._law.moment)
        for axis, number in zip(self._rest, elsewhere, strict=True):
            found[axis] = number
        if self._rows:
            sums = [balls.moment[row] + z for row, z in zip(self._rows, noise, strict=True)]
            if balls.across is not None:
                sums = [one - other for one, other in zip(sums, times(balls.across, elsewhere), strict=True)]
            for row, number in zip(self._rows, times(balls.inverse, sums), strict=True):
                found[row] = number
        return found

    def _doubt(self, balls, standard: list[arb], noise: list[arb], elsewhere: list[arb], theta: list[arb]) -> arb:
        """-log of the probability to accept θ, without that of z_S."""
        kind, doubt = self._law.noise.kind, ball_of(self._most)
        others = [
            (dot(line, theta) - balls.moment[axis]) / balls.scales[axis]
            for axis, line in zip(self._rest, balls.below, strict=True)
        ]
        doubt += norm_in_balls(kind, [*standard, *others])
        if self._rows:
            doubt -= norm_in_balls(kind, standard)
            doubt -= sum((ball_of(p) * z for p, z in zip(self._tilt, noise, strict=True) if p), arb(0))
        doubt += sum((ball_of(q) * t for q, t in zip(self._slopes, elsewhere, strict=True) if q), arb(0))
        return doubt - self._law.body.fall(elsewhere, self._pull)

    def _balls(self) -> _Balls | None:
        """Computes the numbers at the precision that is set; None if it is not enough to invert A_SS."""
        if ctx.prec not in self._known:
            self._known[ctx.prec] = self._at_this_precision()
        return self._known[ctx.prec]

    def _at_this_precision(self) -> _Balls | None:
        law, rows, rest = self._law, self._rows, self._rest

        def block(one: list[int], other: list[int]) -> list[list[arb]]:
            return [[ball_of(law.gram[row][column]) for column in other] for row in one]

        inverse = arb_mat(0, 0)
        try:
            if rows:
                inverse = arb_mat(block(rows, rows)).inv()
        except ZeroDivisionError:
            return None
        across = arb_mat(block(rows, rest)) if rows and rest else None
        below = block(rest, list(range(len(law.moment))))
        return _Balls(inverse, across, below, [ball_of(one) for one in law.moment], law.noise.ball_scales)
