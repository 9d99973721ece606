"""The density-ratio audit: hill climbers over pairs of neighbouring data sets, for the largest log-ratio."""

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from tqdm import tqdm

from kngjax.accounting.guarantees import Adjacency
from kngjax.audit.attackers import NUM_CLIMBERS, RecordSource
from kngjax.audit.laws import LogDensity, points_of, worst_log_ratios
from kngjax.core.arrays import float64
from kngjax.data.records import Records
from kngjax.mechanisms.base import AbstractMechanism

RESOLUTIONS = {1: 401, 2: 41}


@dataclasses.dataclass(frozen=True, eq=False)
class DensityRatioAudit:
    """Holds the worst |log f_D(θ) - log f_D'(θ)| that a search over neighbouring data sets and over θ has found.

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
        """Returns the worst log ratio as a multiple of the claimed ε."""
        return self.worst_log_ratio / self.claimed_epsilon

    @property
    def passed(self) -> bool:
        """Tells whether no pair exceeded the claimed ε by more than rounding."""
        return self.worst_log_ratio <= self.claimed_epsilon * (1.0 + 1e-9) + 1e-12

    def explain(self) -> str:
        """Returns the result in one paragraph."""
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
    mechanism: AbstractMechanism,
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

    The densities of KNG and the exponential mechanism are normalised on the grid, for which the proof of ε-DP holds as
    it does on Θ: over finitely many points the mechanism is an exponential mechanism with the same sensitivity.
    Densities of mechanisms that draw directly are normalised already. They are compared as they are, with the atoms
    that a law on the line has at the ends of Θ, and within every gap where f is constant between jumps. So a right
    mechanism never exceeds ε by more than rounding, however coarse the grid: there are no false alarms. The converse
    does not hold: the search finds a lower bound on the true ε.

    Pairs are found by 64 hill climbers, from random and from degenerate starts (all or half of the common records
    equal), with features at corners, on one axis, at zero and anywhere, and responses at the bounds, at 0, anywhere,
    and where the plane x'θ passes through a point of the grid; without a response, with records beside such a point.

    **Arguments:**

    - `mechanism`: its adjacency says what a pair is: with "replace" both have n records, with "add_remove" n + 1
        and n. Its bounds say what a record may be, and clip as they do in a release; where y has none it goes to a
        thousand times the reach of x'θ.
    - `num_records`: the values of n to search at. Ratios near ε need n·ε large, so that both laws concentrate.
    - `resolution`: grid points per axis over Θ, or over `domain.widths` about its centre if Θ is unbounded. For a
        mechanism without Θ they lie over the bounds of the data, three times as wide for a mean, and over [-10, 10] for
        regressions. For whole outputs, the number of outputs about 0. Default: 401 for d = 1, 41 for d = 2.
    - `num_steps`: steps of every climber at every n.
    - `seed`: the seed of the search. The data are synthetic: nothing here is private.
    - `log_density`: a function (θ of shape (d,), data from `prepare`) -> log f up to a constant, under jit and vmap,
        to audit in place of `mechanism.log_density`: for instance with the constants that a paper prints. For a
        mechanism that draws directly the constant may not depend on the data, and atoms are left out.
    - `dimension`: d with the intercept, where scalar bounds leave it open.
    - `progress`: whether to show a bar; None shows it on a terminal only.

    Raises ValueError for d > 2, for an open or contradictory d, and for a log-density that is not a number; TypeError
    for a mechanism whose density has no formula.
    """
    dimension = _audited_dimension(mechanism, dimension)
    if min(num_records, default=0) < 1:
        raise ValueError(f"num_records must be positive numbers of records, got {tuple(num_records)}")
    hidden = None if progress is None else not progress
    with float64(), tqdm(total=len(num_records) * num_steps, unit="step", disable=hidden) as bar:
        points = points_of(mechanism, dimension, resolution or RESOLUTIONS[dimension])
        source = RecordSource(mechanism, dimension, points, np.random.default_rng(seed))
        climbs = [_climb(mechanism, source, points, count, num_steps, log_density, bar) for count in num_records]
    worst, location, first, second = max(climbs, key=lambda climb: climb[0])
    return DensityRatioAudit(
        worst_log_ratio=worst,
        claimed_epsilon=float(mechanism.epsilon),
        num_pairs=NUM_CLIMBERS * (num_steps + 1) * len(num_records),
        pair=(Records(first[:, :-1], first[:, -1]), Records(second[:, :-1], second[:, -1])),
        location=location,
    )


def _audited_dimension(mechanism: AbstractMechanism, dimension: int | None) -> int:
    fixed = mechanism.dimension
    if fixed is None and dimension is None:
        raise ValueError("scalar bounds leave the number of coefficients open: pass dimension (intercept included)")
    if fixed is not None and dimension not in (None, fixed):
        raise ValueError(f"dimension is {dimension}, but the mechanism is for {fixed} coefficients")
    number = fixed if dimension is None else dimension
    if number not in RESOLUTIONS:
        raise ValueError(
            "the density-ratio audit evaluates the density on a grid, which is affordable for 1 or 2 coefficients "
            f"and not for {number}: audit one like it with the bounds of fewer columns"
        )
    return number


def _climb(
    mechanism: AbstractMechanism,
    source: RecordSource,
    points: np.ndarray,
    count: int,
    num_steps: int,
    log_density: LogDensity | None,
    bar: tqdm,
) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """The worst ratio at one n, the θ where it is, and the rows of the two data sets."""
    everyone = np.arange(count + 1)
    if mechanism.adjacency is Adjacency.REPLACE:
        first, second, num_common = everyone[:-1], np.delete(everyone, count - 1), count - 1
    else:
        first, second, num_common = everyone, everyone[:-1], count

    def evaluate(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        ratios, locations = worst_log_ratios(mechanism, points, rows[:, first], rows[:, second], log_density)
        if np.any(np.isnan(ratios)):
            raise ValueError("the log-density is not a number, or has no mass, somewhere on the grid")
        # Copies: a view would keep the float64 JAX array alive.
        return np.array(ratios), np.array(locations)

    rows = source.starts(count + 1, num_common)
    ratios, locations = evaluate(rows)
    for step in range(num_steps):
        new_rows = source.mutated(rows, num_common)
        new_ratios, new_locations = evaluate(new_rows)
        better = new_ratios >= ratios
        rows = np.where(better[:, None, None], new_rows, rows)
        ratios = np.where(better, new_ratios, ratios)
        locations = np.where(better[:, None], new_locations, locations)
        if step % 10 == 9:
            # The last quarter gives up and joins the leaders.
            order = np.argsort(-ratios)
            order[-NUM_CLIMBERS // 4 :] = order[: NUM_CLIMBERS // 4]
            rows, ratios, locations = rows[order], ratios[order], locations[order]
        bar.update()
    leader = int(np.argmax(ratios))
    return float(ratios[leader]), locations[leader], rows[leader, first], rows[leader, second]
