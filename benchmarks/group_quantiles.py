"""How often 95% intervals of a group's median hold it, where groups are counted first, and how wide they are.

    python -m benchmarks.group_quantiles [--epsilon 1] [--replicates 1500] [--releases 300] [--adjacency replace]

Tables are of two groups of log-normal numbers, whose sizes are private. By the laws in NumPy: two-sided geometric noise
on the count, the package's own bound from below and ranks, and both ends jointly with density in proportion to
exp(-ε·s/Δ), s = max(0, a, b) - min(0, a, b), over the gaps between the values themselves. Beside it stands what would
hold of an equal share of the table as if each group had it. With `--releases` so many tables of the first sizes are
released as a study does. Widths are over those of order statistics without privacy, of the same values.
"""

import argparse
import functools
from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import stats

import kngjax as kng
from kngjax.study.counted_groups import FOR_COUNTS
from kngjax.study.grouping import GroupSize

LEVEL, TAU, BOUNDS, SPREAD = 0.95, 0.5, (20.0, 20_000.0), 500.0
TRUTH = float(np.exp(6.0))
SIZES = ((500, 3000), (150, 3350), (800, 2700), (2000, 2000))


def values(number: int, random: np.random.Generator) -> np.ndarray:
    """Draws numbers about as wages are spread."""
    return random.lognormal(6.0, 0.6, number)


def mechanism(size: GroupSize, epsilon: float) -> kng.QuantileInterval | None:
    """Makes the interval of a group of at least this size, or None where it is refused."""
    given = {"num_records": size.count, "miss": size.miss, "spread": SPREAD}
    made = kng.QuantileInterval(TAU, kng.Bounds(y=BOUNDS), epsilon, "add_remove", LEVEL, **given)
    return None if made.refusal() is not None else made


@functools.lru_cache(maxsize=256)
def law(size: GroupSize, epsilon: float, count: int) -> tuple[list[np.ndarray], np.ndarray] | None:
    """Lists the ranks that the ends of so many values may have, and exp(-ε·s/Δ) of each pair; None if it is refused."""
    if (made := mechanism(size, epsilon)) is None:
        return None
    rate = float(made.epsilon) / made.sensitivity_for(2).value
    wanted = [rank / (made.num_records or 1) * count for rank in made.ranks()]
    reach = int(np.ceil(30.0 / rate))
    places = [np.arange(max(int(one) - reach, 0), min(int(one) + reach, count) + 1) for one in wanted]
    a, b = places[0][:, None] - wanted[0], places[1][None, :] - wanted[1]
    # Both ends in one gap are in order half of the time.
    order = 0.5 * np.sign(places[1][None, :] - places[0][:, None]) + 0.5
    spread = np.maximum(np.maximum(a, b), 0.0) - np.minimum(np.minimum(a, b), 0.0)
    return places, order * np.exp(-rate * spread)


def drawn(size: GroupSize, epsilon: float, numbers: np.ndarray, random: np.random.Generator) -> list[np.ndarray]:
    """Draws both ends of the interval of these values; none where a group of this size is refused."""
    if (found := law(size, epsilon, len(numbers))) is None:
        return []
    ordered = np.concatenate([[BOUNDS[0]], np.sort(numbers), [BOUNDS[1]]])
    places, kernel = found
    gaps = [ordered[place + 1] - ordered[place] for place in places]
    firsts = np.cumsum(gaps[0] * (kernel @ gaps[1]))
    first = int(np.searchsorted(firsts, firsts[-1] * random.random()))
    lasts = np.cumsum(kernel[first] * gaps[1])
    last = int(np.searchsorted(lasts, lasts[-1] * random.random()))
    own = ((places[0][first], gaps[0][first]), (places[1][last], gaps[1][last]))
    return [np.sort([ordered[place] + gap * random.random() for place, gap in own])]


def without_privacy(numbers: np.ndarray) -> float:
    """Computes the width of the interval by two order statistics of the values."""
    tail = 0.5 * (1.0 - LEVEL)
    first, last = stats.binom.ppf([tail, 1.0 - tail], len(numbers), TAU).astype(int)
    ordered = np.sort(numbers)
    return float(ordered[last] - ordered[first - 1])


def shown(found: list[np.ndarray], widths: list[float], asked: int) -> str:
    """Writes coverage with its error, the median width over that without privacy, and how many are refused."""
    if not found:
        return "all refused"
    made = np.array(found)
    held = float(np.mean((made[:, 0] <= TRUTH) & (made[:, 1] >= TRUTH)))
    error = np.sqrt(held * (1.0 - held) / len(made))
    wide = float(np.median(made[:, 1] - made[:, 0]) / np.median(widths))
    refused = asked - len(made)
    return f"{held:.3f} ± {error:.3f} / {wide:.2f}" + (f", {refused} of {asked} refused" if refused else "")


def by_law(size: int, share: int, epsilon: float, replicates: int, adjacency: str, seed: int = 0) -> tuple[str, str]:
    """Covers a group of this size by an equal share, and by counts that come first."""
    each = 0.5 if adjacency == "replace" else 1.0
    random, part = np.random.default_rng([seed, size]), float(FOR_COUNTS)
    rate = each * part * epsilon
    noise, chance = 1.0 / (np.sqrt(2.0) * np.sinh(0.5 * rate)), -np.expm1(-rate)
    widths, shares, counted = [], [], []
    for _ in range(replicates):
        numbers = values(size, random)
        widths.append(without_privacy(numbers))
        shares += drawn(GroupSize(share), each * epsilon, numbers, random)
        released = GroupSize(int(size + random.geometric(chance) - random.geometric(chance)), float(noise))
        counted += drawn(released.at_least(LEVEL), each * (1.0 - part) * epsilon, numbers, random)
    return shown(shares, widths, replicates), shown(counted, widths, replicates)


def by_releases(sizes: Sequence[int], epsilon: float, replicates: int, adjacency: str, seed: int = 1) -> list[str]:
    """Covers each group by whole releases of a study."""
    random, names = np.random.default_rng(seed), ("first", "second")
    widths: dict[str, list[float]] = {name: [] for name in names}
    found: dict[str, list[np.ndarray]] = {name: [] for name in names}
    for _ in range(replicates):
        frame = pd.DataFrame({"v": values(sum(sizes), random), "g": np.repeat(names, sizes)})
        study = kng.Study(frame, bounds={"v": BOUNDS}, levels={"g": names}, adjacency=adjacency)
        made = study.by("g").quantile_interval("v", tau=TAU, epsilon=epsilon, level=LEVEL, spread=SPREAD)
        for name in names:
            widths[name].append(without_privacy(frame["v"].to_numpy()[frame["g"] == name]))
            if isinstance(one := made[name].intervals(), kng.inference.Interval):
                found[name].append(np.array([one.lower[0], one.upper[0]]))
    return [shown(found[name], widths[name], replicates) for name in names]


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--replicates", type=int, default=1500)
    parser.add_argument("--releases", type=int, default=0)
    parser.add_argument("--adjacency", choices=("replace", "add_remove"), default="replace")
    asked = parser.parse_args(arguments)
    print("group: equal share; counts first")
    for sizes in SIZES:
        for size in dict.fromkeys(sizes):
            cells = by_law(size, sum(sizes) // 2, asked.epsilon, asked.replicates, asked.adjacency)
            print(f"{size:,} of {sum(sizes):,}: {'; '.join(cells)}", flush=True)
    if asked.releases:
        cells = by_releases(SIZES[0], asked.epsilon, asked.releases, asked.adjacency)
        print(f"{asked.releases} whole releases of {SIZES[0]}: {'; '.join(cells)}")


if __name__ == "__main__":
    main()
