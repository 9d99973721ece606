"""Two curves without columns, and their joint density summed over a grid by its definition, in NumPy."""

import numpy as np
from scipy import stats

import kngjax as kng

LEVELS, SHARES, WIDTH = (0.3, 0.7), (0.3, 0.4, 0.3), 0.1
# Where shells are nearly all of the envelope, where all of Θ is, and where ellipsoids that leave Θ are.
SETTINGS = {
    "shells": {"epsilon": 4.0, "number": 60},
    "pieces": {"epsilon": 0.6, "number": 60},
    "ellipsoids": {"epsilon": 1.5, "number": 60, "low": 0.05},
}


def records(number):
    return np.linspace(0.02, 0.98, number) ** 1.3


def process_of(epsilon, number, low=-0.5):
    return kng.QuantileProcess(
        levels=LEVELS,
        bounds=kng.Bounds(y=(0.0, 1.0)),
        domain=kng.Box(low, 1.5),
        epsilon=epsilon,
        adjacency="add_remove",
        order="joint",
        bandwidth=WIDTH,
    )


# Of each curve, of the total and of the score.
CELLS, TOTALS, SCORES = 400, 160, 2000


class Grid:
    """f(θ_1, θ_2, T) = exp(-ε/2·Σ_k |H_k - π_k T|), θ_1 ≤ θ_2 in [low, 1.5], at the middles of cells."""

    def __init__(self, epsilon, number, low=-0.5):
        self.y = records(number)
        self.edges = np.linspace(low, 1.5, CELLS + 1)
        self.of_totals = number + np.linspace(-60.0, 60.0, TOTALS + 1) / epsilon
        theta, totals = ((edges[1:] + edges[:-1]) / 2.0 for edges in (self.edges, self.of_totals))
        below = np.sum(1.0 / (1.0 + np.exp(-(theta[:, None] - self.y) / WIDTH)), axis=1)
        parts = [below[:, None], below[None, :] - below[:, None], number - below[None, :]]
        # A cell on the diagonal lies in the cone by half.
        cone = np.triu(np.ones((CELLS, CELLS)), 1) + 0.5 * np.eye(CELLS)
        self.of_curves, self.of_total = np.zeros((CELLS, CELLS)), []
        self.of_scores = np.linspace(0.0, 80.0 / epsilon, SCORES + 1)
        self.of_score = np.zeros(SCORES)
        for total in totals:
            score = sum(np.abs(part - share * total) for part, share in zip(parts, SHARES, strict=True))
            mass = np.exp(-epsilon / 2.0 * score) * cone
            self.of_curves += mass
            self.of_total.append(mass.sum())
            places = np.minimum(score.reshape(-1) / self.of_scores[1], SCORES - 1).astype(int)
            self.of_score += np.bincount(places, mass.reshape(-1), minlength=SCORES)
        self.of_total = np.array(self.of_total)

    @property
    def mass(self):
        return self.of_total.sum() * (self.edges[1] - self.edges[0]) ** 2 * (self.of_totals[1] - self.of_totals[0])

    def pvalues(self, curves, totals):
        """By Kolmogorov and Smirnov, of θ_1, θ_2, their distance, T, and the score of all of them."""
        below = np.sum(1.0 / (1.0 + np.exp(-(curves - self.y) / WIDTH)), axis=2)
        parts = [below[:, 0], below[:, 1] - below[:, 0], len(self.y) - below[:, 1]]
        scores = sum(np.abs(part - share * totals[:, 0]) for part, share in zip(parts, SHARES, strict=True))
        distances = np.add.outer(-np.arange(CELLS), np.arange(CELLS))
        gaps = np.bincount(np.maximum(distances, 0).reshape(-1), self.of_curves.reshape(-1))
        width = self.edges[1] - self.edges[0]
        margins = [
            (curves[:, 0, 0], self.edges, self.of_curves.sum(axis=1)),
            (curves[:, 1, 0], self.edges, self.of_curves.sum(axis=0)),
            # The distance of two uniform places within cells k apart lies within one cell of k.
            (curves[:, 1, 0] - curves[:, 0, 0], width * (np.arange(CELLS + 1) - 0.5), gaps),
            (totals[:, 0], self.of_totals, self.of_total),
            (scores, self.of_scores, self.of_score),
        ]
        return [_pvalue(*margin) for margin in margins]


def _pvalue(found, edges, masses):
    sums = np.append(0.0, np.cumsum(masses)) / np.sum(masses)
    return stats.kstest(found, lambda value: np.interp(value, edges, sums)).pvalue
