"""The box tree: exact draws in few dimensions for any convex loss, by rejection from a piecewise constant envelope.

Θ is covered by boxes with a lower bound L_b of the score on each, so that Σ_b vol(b) exp(-c·L_b) bounds the mass from
above: a box is chosen by its share, a point in it uniformly, and accepted with probability exp(-c(score - L_b)) if it
lies in Θ. Draws are exact whenever refinement stops and whatever the coordinates: the envelope is one in any case.

All bounds rest on the loss's convexity, which it declares. What contradicts them, a score of a record that falls as the
predictor grows, or a score below its box's bound at the centre of a box or at a proposal, ends the search as failed.
"""

import dataclasses
import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from kngjax.core.arrays import Vector
from kngjax.core.compiling import Compiled
from kngjax.data.records import Records
from kngjax.geometry.norms import k_norm_log_mass
from kngjax.losses.base import AbstractPredictorLoss
from kngjax.samplers.exact import box_bounds
from kngjax.samplers.exact.box_bounds import Coordinates, RegionRows
from kngjax.samplers.exact.boxes import Boxes, faces, halve, slabs
from kngjax.samplers.exact.refinement import refine
from kngjax.samplers.limit_law import sound_hessian
from kngjax.samplers.target import Target

# In units of the limit law's noise: boxes about θ₀ within which the rows that matter are gathered.
_RADII = (8.0, 16.0, 32.0, 64.0, 256.0, 1024.0, 4096.0)
# The core of the envelope; beyond it rays bound the score as well as boxes do.
_CORE = 32.0
# So many cells of a region's faces are tried before its rays are given up.
_MOST_CELLS = 8192
_SHARE_OF_RAYS = 0.6
# In so many regions beyond the core both kinds of bounds are worth their time.
_BOTH_BOUNDS = 2
# Refinement stops at about this acceptance, or at so many boxes: more of them would cost more than they save.
_GOALS = {1: 0.5, 2: 0.4, 3: 0.1, 4: 0.01}
_MOST_BOXES = 400_000
# In logarithms: what is not worth another shell.
_NEGLIGIBLE = 12.0
# So many proposals cost less than the boxes that would save them.
_PROPOSALS_AT_LEAST = 10000.0
_FEWEST_SPLITS, _MOST_SPLITS = 64, 8192
# At the centres of so many boxes bounds are compared with scores.
_MOST_CENTRES = 4096
# In logarithms of a density: less is rounding, and contradicts no bound.
MARGIN = 1e-6
# Proposals a call: few sizes, each of which is compiled once.
_BATCHES = (1024, 4096, 16_384)


class Region(NamedTuple):
    """A box about θ₀ in u with the rows that matter within it. **Arguments:** `centre`, `half`; `rows`."""

    centre: Float[np.ndarray, " dimension"]
    half: Float[np.ndarray, " dimension"]
    rows: RegionRows


@dataclasses.dataclass(frozen=True)
class BoxTree:
    """An envelope of a target's density. Private.

    **Arguments:** `target`; `coordinates`; `regions`: nested, the last is all of Θ; `boxes`: which cover Θ;
    `acceptance`: about the share of proposals that are accepted.
    """

    target: Target
    coordinates: Coordinates
    regions: list[Region]
    boxes: Boxes
    acceptance: float

    def draws(
        self, key: PRNGKeyArray, num_draws: int, max_proposals: int | float
    ) -> tuple[Float[np.ndarray, "draws dimension"], bool]:
        """Independent exact draws, NaN where the search was given up, and whether it succeeded.

        It fails where the bounds of a box are contradicted: the envelope is then none.
        """
        dimension = self.coordinates.centre.shape[0]
        kept, count, tried, holds = np.full((num_draws, dimension), np.nan), 0, 0, self._holds_at_centres()
        if not holds:
            return kept, False
        log_masses = self.boxes.log_volumes() - float(self.target.rate) * self.boxes.lower
        cumulative = np.cumsum(np.exp(log_masses - log_masses.max()))
        expected = 1.2 * num_draws / max(self.acceptance, 1e-6)
        batch = next((size for size in _BATCHES if size >= expected), _BATCHES[-1])
        while holds and count < num_draws and tried < max_proposals:
            uniforms = np.asarray(_uniforms(key, tried // batch, batch, dimension + 2))
            chosen = np.searchsorted(cumulative, uniforms[:, 0] * cumulative[-1], side="right")
            chosen = np.minimum(chosen, cumulative.size - 1)
            theta = self._points(chosen, uniforms[:, 1:-1])
            scores, holds = self._scores(chosen, theta)
            # 1 - U lies in (0, 1], where its logarithm is finite.
            excess = float(self.target.rate) * (scores - self.boxes.lower[chosen])
            accepted = np.flatnonzero(np.log1p(-uniforms[:, -1]) <= -excess)[: num_draws - count]
            kept[count : count + accepted.size] = theta[accepted]
            count, tried = count + accepted.size, tried + batch
        return (kept, True) if holds and count == num_draws else (np.full_like(kept, np.nan), False)

    def _holds_at_centres(self) -> bool:
        """Whether no bound is contradicted by the scores of records at its box's faces, nor by the score at its centre.

        Of very many boxes every so many are looked at. What is found is private: it is that a release fails.
        """
        number = self.boxes.lower.size
        some = (
            np.unique(np.linspace(0, number - 1, _MOST_CENTRES).astype(np.int64)) if number else np.zeros(0, np.int64)
        )
        middle = np.full((some.size, self.coordinates.centre.shape[0]), 0.5)
        return not np.isposinf(self.boxes.lower).any() and self._scores(some, self._points(some, middle))[1]

    def _points(self, chosen: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
        boxes = self.boxes
        u = boxes.centres[chosen] + boxes.halves[chosen] * (2.0 * uniforms - 1.0)
        return self.coordinates.centre + u @ np.asarray(self.coordinates.matrix).T

    def _scores(self, chosen: np.ndarray, theta: np.ndarray) -> tuple[np.ndarray, bool]:
        """The scores at points of these boxes, infinite outside of Θ, and whether none is below its box's bound."""
        within, holds = np.asarray(_lie_within(self.target.domain, theta)), True
        scores = np.full(chosen.size, np.inf)
        levels = np.where(within, self.boxes.levels[chosen], -1)
        for level, region in enumerate(self.regions):
            some = np.flatnonzero(levels == level)
            if some.size:
                found = box_bounds.scores_at(self.target, region.rows, self.coordinates, theta[some])
                slack = box_bounds.rounding_of(self.target, region.rows, found) + MARGIN / float(self.target.rate)
                # NaN contradicts nothing, and is not accepted.
                holds = holds and not np.any(found < self.boxes.lower[chosen[some]] - slack)
                scores[some] = found
        return scores, holds


@Compiled
def _lie_within(domain, theta):
    return jax.vmap(domain.contains)(jnp.asarray(theta))


@functools.partial(Compiled, static_argnames=("batch", "columns"))
def _uniforms(key, number, batch, columns):
    return jax.random.uniform(jax.random.fold_in(key, number), (batch, columns))


def require_double_precision() -> None:
    """Raises ValueError unless JAX computes in float64: bounds that are rounded outward need its digits."""
    if jnp.zeros(()).dtype != jnp.float64:
        raise ValueError(
            "Exact bounds scores to more digits than float32 has: set jax.config.update('jax_enable_x64', True), or "
            "call kngjax.release or kngjax.sample, which compute in float64"
        )


def build(target: Target, centre: Vector | None, num_draws: int = 1000, most_boxes: int = _MOST_BOXES) -> BoxTree:
    """The tree of a target, refined about an estimate of θ.

    **Arguments:** `target`: of a convex loss of x'θ and a uniform domain. `centre`: shape (d,), or None for a point in
    the middle of Θ: speed alone depends on it. `num_draws`: how many will be asked for; few draws need no fine
    envelope. `most_boxes`: at which refinement stops.
    """
    about = limit_law_coordinates(target, target.domain.interior_point(target.dimension) if centre is None else centre)
    regions = _regions(target, about)
    boxes = _first_boxes(target, about, regions)
    goal = min(_GOALS.get(target.dimension, 0.001), num_draws / _PROPOSALS_AT_LEAST)
    return _refine_tree(target, about.coordinates, regions, boxes, goal, most_boxes)


class Surroundings(NamedTuple):
    """What is known of Θ and of the limit law before any box is.

    **Arguments:** `coordinates`. `lower`, `upper`: the ends of u over Θ, shape (d,). `within`: whether θ₀ lies in Θ.
    `log_mass`: that of the limit law in u.
    """

    coordinates: Coordinates
    lower: Float[np.ndarray, " dimension"]
    upper: Float[np.ndarray, " dimension"]
    within: bool
    log_mass: float


def limit_law_coordinates(target: Target, centre: Vector) -> Surroundings:
    """In which the limit law has unit scale: θ₀ is the point of Θ nearest to the estimate, M is H^{-1} diag(1/‖e_j‖)/c.

    For the exponential mechanism M is (cH)^{-½}.
    """
    coordinates, lower, upper, within, log_mass = jax.tree.map(np.array, _limit_law_coordinates(target, centre))
    return Surroundings(Coordinates(*coordinates), lower, upper, bool(within), float(log_mass))


@Compiled
def _limit_law_coordinates(target, centre):
    domain, dimension = target.domain, target.dimension
    interior = domain.interior_point(dimension)
    estimate = jnp.where(jnp.all(jnp.isfinite(centre)), centre, interior)
    nearest = jnp.where(domain.contains(estimate), estimate, domain.project(estimate))
    # A last bit outside of Θ, rays from it would not stay within.
    nearest = jnp.where(domain.contains(nearest), nearest, interior + (1.0 - 1e-9) * (nearest - interior))
    hessian = sound_hessian(target, nearest)
    scales = jnp.ones(dimension) if target.norm is None else jax.vmap(target.norm)(jnp.eye(dimension))
    values, vectors = jnp.linalg.eigh(scales[:, None] * hessian * scales[None, :])
    values = jnp.maximum(values, 1e-12 * values[-1:])
    sizes = jnp.sqrt(target.rate * values) if target.norm is None else target.rate * values
    matrix = scales[:, None] * vectors / sizes[None, :]
    inverse = sizes[:, None] * vectors.T / scales[None, :]
    lower, upper = jax.vmap(domain.linear_interval)(inverse, inverse)
    log_mass = 0.5 * dimension * math.log(2.0 * math.pi)
    if target.norm is not None:
        log_mass = k_norm_log_mass(target.norm, 1.0, dimension) + jnp.sum(jnp.log(scales))
    coordinates, shift = (nearest, matrix, inverse, jnp.sqrt(values) / sizes), inverse @ nearest
    return coordinates, lower - shift, upper - shift, domain.contains(nearest), log_mass


def _regions(target: Target, about: Surroundings) -> list[Region]:
    """Nested boxes about θ₀; the last is the box in u around all of Θ."""
    coordinates, lower, upper = about.coordinates, about.lower, about.upper
    width = upper - lower
    lower, upper = lower - 1e-9 * width, upper + 1e-9 * width
    assert isinstance(target.loss, AbstractPredictorLoss)
    assert isinstance(target.data, Records)
    whole, regions = box_bounds.all_rows(target.data), []
    rows, all_of_them = whole, whole.count
    for radius in (np.inf, *reversed(_RADII)):
        low, high = np.maximum(lower, -radius), np.minimum(upper, radius)
        # Smaller than Θ, and by more than rounding.
        is_smaller = np.any((low - lower > 1e-9 * width) | (upper - high > 1e-9 * width))
        if radius < np.inf and (np.any(low >= high) or not is_smaller):
            continue
        centre, half = 0.5 * (low + high), 0.5 * (high - low)
        region = box_bounds.restrict_rows(target.loss, rows, coordinates, centre, half)
        regions.append(Region(centre, half, region))
        # The rows of the other regions are found among all rows, or once for all among an eighth of them.
        if radius == np.inf or (rows.count == all_of_them and 8 * region.count <= all_of_them):
            rows = region
    return regions[::-1]


def _first_boxes(target: Target, about: Surroundings, regions: list[Region]) -> Boxes:
    """A core about θ₀, and slabs around it whose bounds are those of the rays through the core's faces.

    Shells are added outward until all that is farther out can hardly matter.
    """
    rate, last = float(target.rate), len(regions) - 1
    first = _core(regions)
    pieces = [Boxes.one(regions[first].centre, regions[first].half, first)]
    if first == last:
        return pieces[0]
    if not about.within:
        return Boxes.one(regions[last].centre, regions[last].half, last)
    volume = float(np.sum(np.log(2.0 * regions[last].half)))
    for level in range(first, last):
        wanted = (volume - about.log_mass + _NEGLIGIBLE) / rate
        lower = _beyond(target, about.coordinates, regions[level], regions[last], wanted)
        outer = last if lower >= wanted else level + 1
        pieces.append(slabs(regions[level], regions[outer], outer, lower))
        if outer == last:
            break
    return Boxes.join(pieces)


def _core(regions: list[Region]) -> int:
    return next((level for level, region in enumerate(regions) if np.max(region.half) >= _CORE), len(regions) - 1)


def _beyond(target: Target, coordinates: Coordinates, region: Region, whole: Region, wanted: float) -> float:
    """A lower bound of the score on all rays through a region's faces, as good as wanted or as can be had cheaply.

    Cells of the faces are halved until their bounds are not far below what the rays through their centres say.
    """
    waiting, lowest, goal, tried = faces(region, whole), np.inf, wanted, 0
    scales = np.asarray(coordinates.moves)
    while waiting.lower.size:
        waiting = waiting.at(box_bounds.meets(target.domain, coordinates, waiting.centres, waiting.halves))
        if not waiting.lower.size:
            break
        found = box_bounds.ray_bounds(target, region.rows, coordinates, waiting.centres, waiting.halves)
        tried += found.lower.size
        goal = min(goal, _SHARE_OF_RAYS * float(np.min(found.middle)))
        short = found.lower < goal
        if tried > _MOST_CELLS or goal <= 0.0:
            short[:] = False
        lowest = min(lowest, float(np.min(found.lower[~short], initial=np.inf)))
        waiting = halve(halve(waiting.at(short), scales), scales)
    return lowest


def _refine_tree(
    target: Target, coordinates: Coordinates, regions: list[Region], boxes: Boxes, goal: float, most_boxes: int
) -> BoxTree:
    """Halves the boxes that carry most of the envelope's excess until proposals are accepted often enough."""
    rate = float(target.rate)
    unknown = np.isneginf(boxes.lower)
    boxes = Boxes.join([boxes.at(~unknown), _compute_bounds(target, coordinates, regions, boxes.at(unknown))])

    def masses(boxes: Boxes) -> tuple[np.ndarray, np.ndarray]:
        log_volumes = boxes.log_volumes()
        log_upper = log_volumes - rate * boxes.lower
        # Infinite bounds are contradictions: the draw will fail.
        with np.errstate(invalid="ignore"):
            upper = np.exp(log_upper - log_upper.max())
            # About what is accepted of a box.
            expected = np.exp(log_volumes - rate * np.maximum(boxes.middle, boxes.lower) - log_upper.max())
        return upper, upper - expected

    def replace_by_halves(boxes: Boxes, chosen: np.ndarray) -> Boxes:
        children = halve(boxes.at(chosen), np.asarray(coordinates.moves))
        children = children.at(box_bounds.meets(target.domain, coordinates, children.centres, children.halves))
        return Boxes.join([boxes.without(chosen), _compute_bounds(target, coordinates, regions, children)])

    # Half of the excess, in so many boxes at a time that calls are few.
    boxes, acceptance = refine(
        boxes,
        masses,
        replace_by_halves,
        lambda acceptance, _: acceptance >= goal,
        most_boxes,
        0.5,
        lambda _: (_FEWEST_SPLITS, _MOST_SPLITS),
    )
    return BoxTree(target, coordinates, regions, boxes, acceptance)


def _compute_bounds(target: Target, coordinates: Coordinates, regions: list[Region], boxes: Boxes) -> Boxes:
    """The boxes with bounds from the smallest region that contains each, or their parents' where those are better."""
    levels = np.full(boxes.lower.size, len(regions) - 1)
    for level in reversed(range(len(regions) - 1)):
        centre, half = regions[level].centre, regions[level].half
        levels[np.all(np.abs(boxes.centres - centre) + boxes.halves <= half, axis=1)] = level
    lower, middle = boxes.lower.copy(), boxes.middle.copy()
    core = _core(regions)
    for level, region in enumerate(regions):
        some = np.flatnonzero(levels == level)
        if some.size:
            here = (target, region.rows, coordinates, boxes.centres[some], boxes.halves[some])
            # Far out rays bound better than intervals, and tell about half of the score, as of any quadratic loss.
            if level > core and target.norm is not None:
                rays = box_bounds.ray_bounds(*here)
                lower[some], middle[some] = np.maximum(lower[some], rays.lower), 2.0 * rays.middle
            if level <= core + _BOTH_BOUNDS or target.norm is None:
                found = box_bounds.score_bounds(*here)
                lower[some], middle[some] = np.maximum(lower[some], found.lower), found.middle
    return dataclasses.replace(boxes, lower=lower, middle=middle, levels=levels)
