"""Draws by rejection from boxes: each decision is the one that real arithmetic makes.

Box b is chosen with probability k_b/K, for whole numbers k_b with the sum K, and u uniformly within it. θ(u) ∈ Θ
is accepted with probability

    exp(t - ‖G(θ)‖)·vol(b)/(ωk_b) ≤ 1,       as k_b ≥ exp(t - T_b)·vol(b)/ω and ‖G‖ ≥ T_b on b,

so that it has density ∝ exp(-‖G(θ)‖) on Θ whatever the boxes, their floors T_b, t and ω are. Proposals that float64
certainly rejects are not looked at again; all others are decided in balls, with the gradient in float64 as long as its
error leaves nothing open. Proposals are independent: boxes may be refined after any number of rejections.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from flint import arb
from jaxtyping import Float, Int

from kngjax.core.balls import ball_of, power_of_two
from kngjax.core.verified import exp
from kngjax.draws.boxes.boxes import BoundedBoxes
from kngjax.draws.boxes.cover import Cover
from kngjax.draws.boxes.record_sums import BoxCoordinates, RecordSums
from kngjax.draws.grid_cells import Grid
from kngjax.draws.quadratic.bodies import AbstractBody
from kngjax.draws.uniforms import Bits, Uniform, decided
from kngjax.geometry.scaled_norms import ScaledNorm

# Digits of the first uniform numbers, which float64 looks at; and those up to which float64 has the gradient.
_FIRST = 64
# Weights of boxes are whole numbers of about so many digits or fewer.
_WEIGHT_DIGITS = 40
_WIDER = 1.0 + 2.0**-30
# Proposals at a time, and boxes: at first, and at most.
_FEWEST, _MOST = 64, 2**14
_FIRST_BOXES, _MOST_BOXES, _BOXES_EACH = 20_000, 2_000_000, 8


class Weights(NamedTuple):
    """k_b and their sums, t, ω = 2^e, and about vol(b)/ω. Private."""

    whole: Int[np.ndarray, " boxes"]
    sums: Int[np.ndarray, " boxes"]
    level: float
    exponent: int
    volumes: Float[np.ndarray, " boxes"]

    def __repr__(self) -> str:
        return "<Weights; OWNER ONLY>"

    @classmethod
    def of(cls, boxes: BoundedBoxes) -> "Weights":
        level = float(boxes.floors.min())
        # A relative error of some units for each side, and of 2^-50 of the exponential, whose argument errs by less.
        sides = boxes.upper - boxes.lower
        exponents = np.floor(np.log2(sides.max(axis=0))).astype(int)
        volumes = np.prod(np.ldexp(sides, -exponents), axis=1)
        # Above, by the error of exp and of all before it.
        fall = np.maximum(level - boxes.floors, -690.0) * (1.0 - 2.0**-40)
        masses = volumes * exp(fall) * _WIDER
        shift = _WEIGHT_DIGITS - math.ceil(math.log2(float(masses.max())))
        whole = np.floor(np.ldexp(masses, shift)).astype(np.int64) + 1
        return cls(whole, np.cumsum(whole), level, int(exponents.sum()) - shift, np.ldexp(volumes, shift))


def cover_of(sums: RecordSums, gauge: ScaledNorm, body: AbstractBody) -> Cover:
    """Boxes that cover Θ. Draws refine them, and what one refined serves the next: proposals are independent of it."""
    with np.errstate(all="ignore"):
        return Cover(sums, gauge, body.shape, sums.coordinates.whole(body))


def draw(cover: Cover, sums: RecordSums, gauge: ScaledNorm, body: AbstractBody, grid: Grid, bits: Bits) -> list[int]:
    """Returns the cell of one draw, moved inward where its point would lie outside of Θ."""
    with np.errstate(all="ignore"):
        most = _FIRST_BOXES
        while True:
            cover.refine(most)
            proposals = BoxProposals(sums, gauge, body, cover, bits)
            # Proposals take longer than boxes do.
            number = int(np.clip(2.0 / max(cover.acceptance, 1e-9), _FEWEST, min(_MOST, most // _BOXES_EACH)))
            for _ in range(max(1, most // (_BOXES_EACH * number))):
                found = proposals.first_accepted(number)
                if found is not None:
                    return body.inward(found.cell(grid), grid)
            most = min(2 * most, _MOST_BOXES)


class BoxProposal:
    """Holds a proposed point, of which more digits are drawn while any decision is open. Private."""

    def __init__(self, coordinates: BoxCoordinates, lower: np.ndarray, upper: np.ndarray, shares: Sequence[Uniform]):
        self._coordinates, self._shares = coordinates, shares
        self._ends = list(zip(lower.tolist(), upper.tolist(), strict=True))

    def __repr__(self) -> str:
        return "<BoxProposal; OWNER ONLY>"

    def place(self, digits: int) -> list[arb]:
        """θ(u) in balls."""
        pairs = zip(self._ends, self._shares, strict=True)
        inside = [arb(low) + (arb(high) - arb(low)) * share.ball(digits) for (low, high), share in pairs]
        return self._coordinates.places(inside)

    def cell(self, grid: Grid) -> list[int]:
        """Returns the cell that θ(u) lies in."""
        return decided(lambda digits: grid.cell(self.place(digits)))

    @property
    def volume(self) -> arb:
        """Computes the volume of the point's box."""
        total = arb(1)
        for low, high in self._ends:
            total *= arb(high) - arb(low)
        return total


class BoxProposals:
    """Draws proposals from one cover and decides which are accepted. Private."""

    def __init__(self, sums: RecordSums, gauge: ScaledNorm, body: AbstractBody, cover: Cover, bits: Bits):
        self._sums, self._gauge, self._body, self._bits = sums, gauge, body, bits
        self._boxes, self._known = cover.boxes, cover.known
        self._weights = Weights.of(cover.boxes)

    def __repr__(self) -> str:
        return "<BoxProposals; OWNER ONLY>"

    def first_accepted(self, number: int) -> BoxProposal | None:
        """Returns the first of so many proposals that is accepted."""
        chosen = self._choose(number)
        dimension = self._sums.dimension
        # 64 digits of each number: of d for the place, and of one for the decision.
        words = np.frombuffer(
            self._bits(_FIRST * number * (dimension + 1)).to_bytes(8 * number * (dimension + 1), "little"), "<u8"
        ).reshape(number, dimension + 1)
        for k in np.flatnonzero(~self._are_rejected(chosen, words)):
            shares = [Uniform(self._bits, int(word), _FIRST) for word in words[k]]
            box = chosen[k]
            proposal = BoxProposal(self._sums.coordinates, self._boxes.lower[box], self._boxes.upper[box], shares[:-1])
            if self._is_accepted(proposal, int(self._weights.whole[box]), shares[-1]):
                return proposal
        return None

    def _choose(self, number: int) -> np.ndarray:
        """Draws the numbers of boxes with probabilities in proportion to their weights, exactly."""
        sums = self._weights.sums
        total = int(sums[-1])
        digits, found = total.bit_length(), []
        mask = (1 << digits) - 1
        while len(found) < number:
            more = 2 * (number - len(found))
            drawn = self._bits(64 * more).to_bytes(8 * more, "little")
            places = np.frombuffer(drawn, "<u8") & np.uint64(mask)
            found.extend(places[places < total].tolist())
        return np.searchsorted(sums, np.array(found[:number], np.int64), side="right")

    def _are_rejected(self, chosen: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Marks the proposals that are certainly rejected, by bounds on G over their boxes or as they lie outside Θ."""
        boxes = self._boxes
        lower, upper = boxes.lower[chosen], boxes.upper[chosen]
        shares = words.astype(np.float64) * 2.0**-64
        places = lower + (upper - lower) * shares[:, :-1]
        blur = 2.0**-48 * (np.abs(lower) + np.abs(upper)) + 2.0**-1000
        which = boxes.which[chosen]
        least = self._known.sizes(np.maximum(which, 0), places, blur)[0]
        level = np.maximum(self._gauge.below(np.maximum(least, 0.0)), boxes.floors[chosen])
        level = np.where(which < 0, boxes.floors[chosen], level)
        rejected = ~self._body.shape.may_meet(*self._sums.coordinates.hull(places, blur))
        rejected |= self._are_above(chosen, shares[:, -1], level)
        # The bounds over some boxes tell little of their points.
        left = np.flatnonzero(~rejected)
        if left.size:
            level = self._gauge.below(np.maximum(self._sums.least(places[left], blur[left])[0], 0.0))
            rejected[left] = self._are_above(
                chosen[left], shares[left, -1], np.maximum(level, boxes.floors[chosen[left]])
            )
        return rejected

    def _are_above(self, chosen: np.ndarray, share: np.ndarray, level: np.ndarray) -> np.ndarray:
        """Marks the shares that certainly exceed the probability to accept where ‖G‖ is at least this level."""
        weights = self._weights
        fall = np.minimum(weights.level - level + 2.0**-48 * (abs(weights.level) + level), 700.0)
        odds = exp(fall) * weights.volumes[chosen] / weights.whole[chosen] * _WIDER
        return share * (1.0 - 2.0**-40) - 2.0**-60 > odds

    def _is_accepted(self, proposal: BoxProposal, whole: int, share: Uniform) -> bool:
        level, unit = arb(self._weights.level), power_of_two(self._weights.exponent) * whole

        def attempt(digits: int) -> bool | None:
            theta = proposal.place(digits)
            inside = self._body.shape.contains(theta)
            if inside is False:
                return False
            gradient = (self._sums.gradient if digits <= _FIRST else self._sums.gradient_in_balls)(theta)
            odds = level - self._gauge(gradient) + (proposal.volume / ball_of(unit)).log()
            doubt = share.ball(digits).log()
            if doubt > odds:
                return False
            return True if inside and doubt <= odds else None

        return decided(attempt)
