"""Audits: attacks on a mechanism's guarantee by searching for the neighbouring data sets that betray it most.

An audit is evidence, not proof: what it finds is a lower bound on the true ε. It is there to catch a wrong constant.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from tqdm import tqdm

from kngjax import data as data_room
from kngjax import norms
from kngjax._arrays import float64
from kngjax.accounting.guarantees import Adjacency
from kngjax.data import Bounds, Records
from kngjax.domains import AbstractDomain, Box, L1Ball, L2Ball
from kngjax.mechanisms import KNG, AbstractDensityMechanism, ExponentialMechanism

NUM_CLIMBERS = 64
FAR = 1000.0
RESOLUTIONS = {1: 401, 2: 41}

LogDensity = Callable[[Any, Any], Any]


@dataclasses.dataclass(frozen=True, eq=False)
class DensityRatioAudit:
    """The worst |log f_D(θ) - log f_D'(θ)| that a search over neighbouring data sets D, D' and over θ has found.

    **Arguments:**

    - `worst_log_ratio`: in nats: a lower bound on the true ε of the density that was audited.
    - `claimed_epsilon`: ε of the mechanism.
    - `num_pairs`: how many neighbouring pairs were evaluated, each at every point of the grid.
    - `pair`: D and D': synthetic records within the bounds, each with the design `x` of shape (n, d) and `y` of (n,).
    - `location`: θ, shape (d,), where the worst ratio is.
    """

    worst_log_ratio: float
    claimed_epsilon: float
    num_pairs: int
    pair: tuple[Records, Records]
    location: Float[np.ndarray, " dimension"]

    @property
    def ratio(self) -> float:
        """The worst log ratio as a multiple of the claimed ε."""
        return self.worst_log_ratio / self.claimed_epsilon

    @property
    def passed(self) -> bool:
        """Whether no pair exceeded the claimed ε by more than rounding."""
        return self.worst_log_ratio <= self.claimed_epsilon * (1.0 + 1e-9) + 1e-12

    def explain(self) -> str:
        """The result in one paragraph."""
        sizes = " and ".join(str(records.y.shape[0]) for records in self.pair)
        found = (
            f"Among {self.num_pairs} pairs of neighbouring data sets, the densities differed most between two of "
            f"{sizes} records: by a factor of e^{self.worst_log_ratio:.6g}, which is {self.ratio:.4g} times the "
            f"claimed epsilon of {self.claimed_epsilon:.6g}. "
        )
        if self.passed:
            return found + (
                "No pair exceeded the claim. That is evidence from a search on a grid, not a proof: a pair that was "
                "not tried may be worse, and nothing is said about the sampler that draws from the density."
            )
        return found + (
            "The claim is exceeded. With a right sensitivity that happens on no grid, so a constant of the mechanism "
            "is wrong, and this pair shows it."
        )


def density_ratio(
    mechanism: AbstractDensityMechanism,
    *,
    num_records: Sequence[int] = (1, 2, 3, 5, 10, 20),
    resolution: int | None = None,
    num_steps: int = 100,
    seed: int = 0,
    log_density: LogDensity | None = None,
    dimension: int | None = None,
    progress: bool | None = None,
) -> DensityRatioAudit:
    """Searches for max |log f_D(θ) - log f_D'(θ)| over neighbouring data sets D, D' and θ in a grid on Θ, for d ≤ 2.

    The densities are normalised on the grid, for which the proof of ε-DP holds as it does on Θ: over finitely many
    points the mechanism is an exponential mechanism with the same sensitivity. So a right mechanism never exceeds ε by
    more than rounding, however coarse the grid: there are no false alarms. The converse does not hold: what is found
    is a lower bound on the true ε. Pairs are found by 64 hill climbers, from random and from degenerate starts (all or
    half of the common records equal), with features at corners, on one axis, at zero and anywhere, and responses at
    the bounds, at 0, anywhere, and where the plane x'θ passes through a point of the grid.

    **Arguments:**

    - `mechanism`: its adjacency says what a pair is: with "replace" both have n records, with "add_remove" n + 1
        and n. Its bounds say what a record may be, and clip as they do in a release; where y has none it goes to a
        thousand times the reach of x'θ.
    - `num_records`: the values of n to search at. Ratios near ε need n·ε large, so that both laws concentrate.
    - `resolution`: grid points an axis over Θ, or over `domain.widths` about its centre if it is unbounded. Default:
        401 for d = 1, 41 for d = 2.
    - `num_steps`: steps of every climber at every n.
    - `seed`: of the search. The data are synthetic: nothing here is private.
    - `log_density`: a function (θ of shape (d,), data from `prepare`) -> log f up to a constant, under jit and vmap,
        to audit in place of `mechanism.log_density`: for instance with the constants that a paper prints.
    - `dimension`: d with the intercept, where scalar bounds leave it open.
    - `progress`: whether to show a bar; None shows it on a terminal only.

    Raises ValueError for d > 2, for an open or contradictory d, and for a log-density that is not a number.
    """
    dimension = _audited_dimension(mechanism, dimension)
    if min(num_records, default=0) < 1:
        raise ValueError(f"num_records must be positive numbers of records, got {tuple(num_records)}")
    hidden = None if progress is None else not progress
    with float64(), tqdm(total=len(num_records) * num_steps, unit="step", disable=hidden) as bar:
        grid = _grid(mechanism.domain, dimension, resolution or RESOLUTIONS[dimension])
        source = _RecordSource(mechanism, dimension, grid, np.random.default_rng(seed))
        climbs = [_climb(mechanism, source, count, num_steps, log_density, bar) for count in num_records]
    worst, place, first, second = max(climbs, key=lambda climb: climb[0])
    return DensityRatioAudit(
        worst_log_ratio=worst,
        claimed_epsilon=float(mechanism.epsilon),
        num_pairs=NUM_CLIMBERS * (num_steps + 1) * len(num_records),
        pair=(Records(first[:, :-1], first[:, -1]), Records(second[:, :-1], second[:, -1])),
        location=grid[place],
    )


def _audited_dimension(mechanism: AbstractDensityMechanism, dimension: int | None) -> int:
    fixed = mechanism.dimension
    if fixed is None and dimension is None:
        raise ValueError("scalar bounds leave the number of coefficients open: pass dimension (intercept included)")
    if fixed is not None and dimension not in (None, fixed):
        raise ValueError(f"dimension is {dimension}, but the mechanism is for {fixed} coefficients")
    number = fixed if dimension is None else dimension
    if number not in RESOLUTIONS:
        raise ValueError(
            "the density-ratio audit normalises the density on a grid, which is affordable for 1 or 2 coefficients "
            f"and not for {number}: audit kngjax.audit.restricted(mechanism, 2)"
        )
    return number


def _grid(domain: AbstractDomain, dimension: int, resolution: int) -> np.ndarray:
    """Midpoints of equal cells, so that each has the same volume, as far as they lie in Θ; shape (points, d)."""
    centre, widths = np.asarray(domain.interior_point(dimension)), np.asarray(domain.widths(dimension))
    axes = centre[:, None] + widths[:, None] * ((np.arange(resolution) + 0.5) / resolution - 0.5)
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, dimension)
    points = points[np.asarray(jax.vmap(domain.contains)(points))]
    if len(points) < 2:
        raise ValueError(f"fewer than two points of a grid of {resolution} an axis lie in the domain: raise resolution")
    return points


@functools.partial(jax.jit, static_argnames="log_density")
def _worst_log_ratios(
    mechanism: AbstractDensityMechanism,
    grid: Float[Array, "points dimension"],
    first: Float[Array, "pairs records columns"],
    second: Float[Array, "pairs others columns"],
    log_density: LogDensity | None,
) -> tuple[Float[Array, " pairs"], Int[Array, " pairs"]]:
    """For each pair of data sets the largest |log f_D - log f_D'| on the grid, and where it is."""
    density = mechanism.log_density if log_density is None else log_density

    def log_probabilities(rows: Array) -> Array:
        data = mechanism.loss.summarise(Records(rows[:, :-1], rows[:, -1]))
        values = jax.vmap(lambda theta: density(theta, data))(grid)
        return values - jax.scipy.special.logsumexp(values)

    def worst(first: Array, second: Array) -> tuple[Array, Array]:
        here, there = log_probabilities(first), log_probabilities(second)
        # Where both densities are 0 they do not differ.
        ratios = jnp.where(here == there, 0.0, jnp.abs(here - there))
        place = jnp.argmax(ratios)
        return ratios[place], place

    return jax.vmap(worst)(first, second)


class _RecordSource:
    """Synthetic records within a mechanism's bounds, as rows (features, response), extremes favoured.

    The intercept is a feature with the bounds (1, 1), so it needs no case of its own.
    """

    def __init__(
        self, mechanism: AbstractDensityMechanism, dimension: int, grid: np.ndarray, generator: np.random.Generator
    ):
        self.mechanism, self.grid, self.generator = mechanism, grid, generator
        self.lower, self.upper = (np.asarray(side) for side in mechanism.bounds.features(dimension))
        y_lower, y_upper = mechanism.bounds.y_lower, mechanism.bounds.y_upper
        if y_lower is None or y_upper is None:
            reach = float(np.max(np.abs(grid) @ np.maximum(np.abs(self.lower), np.abs(self.upper))))
            beyond = 2.0 * reach + 1.0
            self.response = -beyond, beyond
            # Far enough for a score that tends to its limit to be there.
            levels = np.array([-FAR * beyond, -beyond, 0.0, beyond, FAR * beyond])
        else:
            self.response = float(y_lower), float(y_upper)
            levels = np.clip(np.array([*self.response, 0.5 * sum(self.response), 0.0]), *self.response)
        # A loss of a discrete response says so by refusing the others.
        self.is_continuous = _accepts(mechanism, levels)
        if not self.is_continuous:
            levels = np.array([level for level in (*levels, 0.0, 1.0) if _accepts(mechanism, np.array([level]))])
        self.levels = levels
        response_width = (self.response[1] - self.response[0]) * self.is_continuous
        self.widths = np.append(self.upper - self.lower, response_width)

    def prepared(self, rows: np.ndarray) -> np.ndarray:
        """The same rows after the validation and clipping that every release goes through."""
        flat = rows.reshape(-1, rows.shape[-1])
        records = data_room.prepare(
            self.mechanism.bounds, flat[:, int(self.mechanism.bounds.intercept) : -1], flat[:, -1]
        )
        self.mechanism.loss.check_response(np.asarray(records.y))
        return np.column_stack([records.x, records.y]).reshape(rows.shape)

    def draw(self, *shape: int) -> np.ndarray:
        """Rows of this batch shape, each of its own kind."""
        random, dimension = self.generator, self.lower.size
        corner = np.where(random.random((*shape, dimension)) < 0.5, self.lower, self.upper)
        nearest_to_zero = np.clip(0.0, self.lower, self.upper)
        axis = np.where(random.integers(dimension, size=(*shape, 1)) == np.arange(dimension), corner, nearest_to_zero)
        anywhere = random.uniform(self.lower, self.upper, corner.shape)
        kind = random.random((*shape, 1))
        x = np.where(kind < 0.5, corner, np.where(kind < 0.65, axis, np.where(kind < 0.75, nearest_to_zero, anywhere)))
        y = self.levels[random.integers(self.levels.size, size=shape)]
        if self.is_continuous:
            through_grid = np.sum(x * self.grid[random.integers(len(self.grid), size=shape)], axis=-1)
            kind = random.random(shape)
            y = np.where(kind < 0.5, y, np.where(kind < 0.8, through_grid, random.uniform(*self.response, shape)))
        return self.prepared(np.concatenate([x, y[..., None]], axis=-1))

    def starts(self, num_rows: int, num_common: int) -> np.ndarray:
        """Rows for every climber, the common ones all equal, or of two values, or all different."""
        rows, one, other = (self.draw(NUM_CLIMBERS, size) for size in (num_rows, 1, 1))
        halves = np.where(self.generator.random((NUM_CLIMBERS, num_rows, 1)) < 0.5, one, other)
        kind = self.generator.integers(3, size=(NUM_CLIMBERS, 1, 1))
        is_common = np.arange(num_rows)[:, None] < num_common
        return np.where(is_common & (kind < 2), np.where(kind == 0, one, halves), rows)

    def mutated(self, rows: np.ndarray, num_common: int) -> np.ndarray:
        """One change for every climber: some of its rows become one new record, or all take the same small step."""
        random, num_rows = self.generator, rows.shape[1]
        row = np.arange(num_rows)
        own = row == num_common + random.integers(num_rows - num_common, size=(NUM_CLIMBERS, 1))
        any_one = row == random.integers(num_rows, size=(NUM_CLIMBERS, 1))
        common = np.broadcast_to(row < num_common, own.shape)
        half = common & (random.random(own.shape) < 0.5)
        kind = random.random((NUM_CLIMBERS, 1))
        changed = np.select([kind < 0.3, kind < 0.6, kind < 0.8], [own, any_one, common], half)[..., None]
        scale = 10.0 ** random.uniform(-3.0, -0.5, (NUM_CLIMBERS, 1, 1))
        stepped = rows + scale * self.widths * random.normal(size=(NUM_CLIMBERS, 1, rows.shape[2]))
        moved = np.where(random.random((NUM_CLIMBERS, 1, 1)) < 0.6, self.draw(NUM_CLIMBERS, 1), stepped)
        return self.prepared(np.where(changed, moved, rows))


def _accepts(mechanism: AbstractDensityMechanism, responses: np.ndarray) -> bool:
    try:
        mechanism.loss.check_response(responses)
    except ValueError:
        return False
    return True


def _climb(
    mechanism: AbstractDensityMechanism,
    source: _RecordSource,
    count: int,
    num_steps: int,
    log_density: LogDensity | None,
    bar: tqdm,
) -> tuple[float, int, np.ndarray, np.ndarray]:
    """The worst ratio at one n, its place in the grid, and the rows of the two data sets."""
    everyone = np.arange(count + 1)
    if mechanism.adjacency is Adjacency.REPLACE:
        first, second, num_common = everyone[:-1], np.delete(everyone, count - 1), count - 1
    else:
        first, second, num_common = everyone, everyone[:-1], count

    def evaluate(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        ratios, places = _worst_log_ratios(mechanism, source.grid, rows[:, first], rows[:, second], log_density)
        if np.any(np.isnan(np.asarray(ratios))):
            raise ValueError("the log-density is not a number, or has no mass, somewhere on the grid")
        return np.asarray(ratios), np.asarray(places)

    rows = source.starts(count + 1, num_common)
    ratios, places = evaluate(rows)
    for step in range(num_steps):
        new_rows = source.mutated(rows, num_common)
        new_ratios, new_places = evaluate(new_rows)
        better = new_ratios >= ratios
        rows = np.where(better[:, None, None], new_rows, rows)
        ratios, places = np.where(better, new_ratios, ratios), np.where(better, new_places, places)
        if step % 10 == 9:
            # The last quarter gives up and joins the leaders.
            order = np.argsort(-ratios)
            order[-NUM_CLIMBERS // 4 :] = order[: NUM_CLIMBERS // 4]
            rows, ratios, places = rows[order], ratios[order], places[order]
        bar.update()
    leader = int(np.argmax(ratios))
    return float(ratios[leader]), int(places[leader]), rows[leader, first], rows[leader, second]


def restricted(mechanism: AbstractDensityMechanism, dimension: int) -> AbstractDensityMechanism:
    """The mechanism on its first k coefficients: loss, ε and adjacency stay, bounds and Θ are cut to k coordinates.

    It is a mechanism of its own, whose sensitivity is computed anew by the same code for k coefficients. An audit of it
    tests what every dimension shares: the loss's declared intervals, the norm, the adjacency, the factor 2. It does not
    show that the sensitivity grows with d as it must, nor any error that needs more than k features to appear.

    **Arguments:** `mechanism`: KNG or the exponential mechanism on a Box, L1Ball or L2Ball, with the norm None, L1, L2
    or LInf. `dimension`: k ≥ 1, the intercept included, which comes first.

    Raises ValueError for a base measure or a norm that cannot be cut, and for k out of range.
    """
    fixed = mechanism.dimension
    if dimension < 1 or (fixed is not None and dimension > fixed):
        limit = "" if fixed is None else f" and at most {fixed}"
        raise ValueError(f"dimension must be at least 1{limit}, got {dimension}")
    bounds, domain = mechanism.bounds, mechanism.domain
    columns = dimension - bounds.intercept
    x = None
    if columns > 0 and bounds.x_lower is not None and bounds.x_upper is not None:
        x = _cut(bounds.x_lower, columns), _cut(bounds.x_upper, columns)
    y = None if bounds.y_lower is None else (bounds.y_lower, bounds.y_upper)
    if isinstance(domain, Box):
        domain = Box(_cut(domain.lower, dimension), _cut(domain.upper, dimension))
    elif not isinstance(domain, L1Ball | L2Ball):
        raise ValueError(f"a {type(domain).__name__} cannot be cut to {dimension} coefficients: give its marginal")
    parts: dict[str, Any] = {
        "loss": mechanism.loss,
        "bounds": Bounds(x=x, y=y, intercept=bounds.intercept),
        "domain": domain,
        "epsilon": mechanism.epsilon,
        "adjacency": mechanism.adjacency,
        "allow_large_epsilon": True,
    }
    if isinstance(mechanism, ExponentialMechanism):
        return ExponentialMechanism(**parts)
    if not isinstance(mechanism, KNG):
        raise ValueError(
            f"a {type(mechanism).__name__} cannot be restricted: only KNG and the exponential mechanism can"
        )
    if not isinstance(mechanism.norm, norms.L1 | norms.L2 | norms.LInf | None):
        raise ValueError(
            f"the {type(mechanism.norm).__name__} norm is for {fixed} coefficients: only None, L1, L2, LInf can be cut"
        )
    return KNG(**parts, norm=mechanism.norm)


def _cut(side: Any, size: int) -> np.ndarray:
    values = np.asarray(side)
    return np.broadcast_to(values[:size] if values.ndim else values, (size,))
