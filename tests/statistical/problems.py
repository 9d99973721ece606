"""Small regression problems and the quadrature that their densities are judged by."""

import jax
import jax.numpy as jnp
import numpy as np

import kngjax as kng
from tests.oracles.goodness_of_fit import assert_cell_frequencies, assert_same_law

LOSSES = {
    "quantile": kng.QuantileLoss(tau=0.3),
    "squared": kng.SquaredLoss(),
    "pseudo_huber": kng.PseudoHuberLoss(k=0.5),
    "logistic": kng.LogisticLoss(),
    "poisson": kng.PoissonLoss(),
    "smoothed_quantile": kng.SmoothedQuantileLoss(tau=0.3, bandwidth=0.25),
    "gaussian_quantile": kng.SmoothedQuantileLoss(tau=0.3, bandwidth=0.4, kernel="gaussian"),
    "expectile": kng.ExpectileLoss(tau=0.8),
}
RESPONSE_BOUNDS = {"logistic": None, "poisson": (0.0, 9.0)}
MECHANISMS = {"kng": kng.KNG, "exponential": kng.ExponentialMechanism}


def records(loss: str, dimension: int, num_records: int = 40, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """X without the intercept's column, correlated on purpose, and y."""
    generator = np.random.default_rng(seed)
    x = generator.uniform(-0.2, 1.0, (num_records, dimension - 1))
    predictor = 0.3 + x.sum(axis=1)
    if loss == "logistic":
        return x, (generator.uniform(size=num_records) < 1.0 / (1.0 + np.exp(-predictor))).astype(float)
    if loss == "poisson":
        return x, generator.poisson(np.exp(predictor)).astype(float)
    return x, np.clip(predictor + 0.5 * generator.standard_normal(num_records), -3.0, 3.0)


def problem(loss: str, mechanism: str, dimension: int, epsilon: float = 3.0, domain=None, num_records: int = 40):
    """A mechanism with `dimension` coefficients, the intercept among them, and its prepared data."""
    built = MECHANISMS[mechanism](
        loss=LOSSES[loss],
        bounds=kng.Bounds(
            x=(-1.0, 1.0) if dimension > 1 else None,
            y=RESPONSE_BOUNDS.get(loss, (-3.0, 3.0)),
            columns=dimension - 1 or None,
        ),
        domain=kng.Box(-2.0, 2.5) if domain is None else domain,
        epsilon=epsilon,
        adjacency="replace",
    )
    x, y = records(loss, dimension, num_records)
    return built, built.prepare(x if dimension > 1 else None, y)


@jax.jit
def _log_densities(mechanism, thetas, data):
    return jax.lax.map(lambda theta: mechanism.log_density(theta, data), thetas, batch_size=64)


# Beyond e^-25 of its largest value a density has no mass that a test could see.
FARTHEST = 25.0
COARSE = 100
# Of a rule in each coordinate, by dimension: for hundreds of draws, whose laws no finer rule tells apart.
POINTS = {1: 10_000, 2: 200}


class Quadrature:
    """The law of a density on a box by midpoint quadrature; `uniforms` maps its draws to uniform variables.

    Rosenblatt's transform: F_1(θ_1) and F_{2|1}(θ_2 | θ_1) are independent and uniform if θ follows the density. The
    rule is laid about the points of a coarse one where log f is within 25 of its largest value.
    """

    def __init__(self, mechanism, data, lower: float, upper: float, points: int):
        self.dimension = data.dimension
        ends = np.full(self.dimension, lower), np.full(self.dimension, upper)
        if self.dimension > 1:
            edges, values = self._values(mechanism, data, ends, COARSE)
            near = np.argwhere(values >= values.max() - FARTHEST)
            first, last = np.maximum(near.min(axis=0) - 1, 0), np.minimum(near.max(axis=0) + 2, COARSE)
            ends = tuple(edges[side, np.arange(self.dimension)] for side in (first, last))
        self.edges, values = self._values(mechanism, data, ends, points)
        self.masses = np.exp(values - values.max())
        self.masses /= self.masses.sum()

    def _values(self, mechanism, data, ends, points: int) -> tuple[np.ndarray, np.ndarray]:
        """The edges of the cells, shape (points + 1, dimension), and log f at their middles."""
        edges = np.linspace(*ends, points + 1)
        middles = 0.5 * (edges[1:] + edges[:-1])
        grid = np.stack(np.meshgrid(*middles.T, indexing="ij"), axis=-1).reshape(-1, self.dimension)
        # In pieces of one shape, so that one program serves both rules.
        pieces = np.resize(grid, (-(-len(grid) // COARSE**2), COARSE**2, self.dimension))
        values = np.concatenate([_log_densities(mechanism, jnp.asarray(piece), data) for piece in pieces])
        return edges, values[: len(grid)].reshape([points] * self.dimension)

    def uniforms(self, theta: np.ndarray) -> list[np.ndarray]:
        """One array of uniform variables a coordinate, from draws of shape (draws, dimension)."""
        marginal = self.masses if self.dimension == 1 else self.masses.sum(axis=1)
        first = np.interp(theta[:, 0], self.edges[:, 0], np.concatenate([[0.0], np.cumsum(marginal)]))
        if self.dimension == 1:
            return [first]
        rows = np.clip(np.searchsorted(self.edges[:, 0], theta[:, 0]) - 1, 0, len(marginal) - 1)
        cumulative = np.cumsum(self.masses, axis=1)
        totals = np.where(cumulative[:, -1:] > 0, cumulative[:, -1:], 1.0)
        cumulative = np.concatenate([np.zeros((len(marginal), 1)), cumulative], axis=1) / totals
        cuts = self.edges[:, 1]
        second = [np.interp(value, cuts, cumulative[row]) for value, row in zip(theta[:, 1], rows, strict=True)]
        return [first, np.asarray(second)]


def assert_follows(theta: np.ndarray, law: Quadrature) -> None:
    """Draws, shape (draws, dimension), have the law of the quadrature: each coordinate, and cells of both."""
    uniforms = law.uniforms(theta)
    for uniform in uniforms:
        assert_same_law(uniform, lambda value: np.clip(value, 0.0, 1.0))
    if len(uniforms) == 2:
        counts, _, _ = np.histogram2d(*uniforms, bins=6, range=[(0.0, 1.0)] * 2)
        assert_cell_frequencies(counts.ravel(), np.full(36, 1.0 / 36.0))
