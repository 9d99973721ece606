"""A table of norms and bodies: how each is made, and all that JAX says of it in one program."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from scipy import optimize

import kngjax as kng
from kngjax.geometry.norms import k_norm_log_mass, k_norm_noise

# Of one coefficient the properties are those of intervals: slow but for closed forms.
DIMENSIONS = (1, 2, 3)
WEIGHTS = np.array([0.5, 2.0, 1.0])
_ROOT = np.random.default_rng(11).normal(size=(3, 3))
MATRIX = _ROOT @ _ROOT.T + 0.5 * np.eye(3)
FACETS = np.concatenate([np.eye(3), 0.7 * np.random.default_rng(13).normal(size=(4, 3))])
NORMS = {
    "L1": lambda dimension: kng.L1(),
    "L2": lambda dimension: kng.L2(),
    "LInf": lambda dimension: kng.LInf(),
    "WeightedLInf": lambda dimension: kng.WeightedLInf(WEIGHTS[:dimension]),
    "Ellipsoid": lambda dimension: kng.Ellipsoid(MATRIX[:dimension, :dimension]),
    "Polytope": lambda dimension: kng.Polytope(facets=FACETS[:, :dimension]),
}
RADIUS = 1.7
LOWER, UPPER = np.array([-1.0, 0.5, -3.0]), np.array([2.0, 0.75, 4.0])
BODIES = {
    "L1Ball": lambda dimension: kng.L1Ball(RADIUS),
    "L2Ball": lambda dimension: kng.L2Ball(RADIUS),
    "Box": lambda dimension: kng.Box(LOWER[:dimension], UPPER[:dimension]),
}
NUM_VECTORS, NUM_DRAWS, RATE = 200, 5000, 2.5


def lengths(name, vectors):
    """The norms of rows, in NumPy."""
    dimension = vectors.shape[-1]
    return {
        "L1": lambda: np.abs(vectors).sum(-1),
        "L2": lambda: np.sqrt((vectors**2).sum(-1)),
        "LInf": lambda: np.abs(vectors).max(-1),
        "WeightedLInf": lambda: (np.abs(vectors) / WEIGHTS[:dimension]).max(-1),
        "Ellipsoid": lambda: np.sqrt(np.einsum("...i,ij,...j", vectors, MATRIX[:dimension, :dimension], vectors)),
        "Polytope": lambda: np.abs(vectors @ FACETS[:, :dimension].T).max(-1),
    }[name]()


def largest_product_over_the_polytope(vector):
    rows = FACETS[:, : len(vector)]
    ones = np.ones(2 * len(rows))
    return -optimize.linprog(-vector, A_ub=np.concatenate([rows, -rows]), b_ub=ones, bounds=(None, None)).fun


def half_widths(name, dimension):
    """The half widths of the smallest box around the unit ball."""
    if name == "WeightedLInf":
        return WEIGHTS[:dimension]
    if name == "Ellipsoid":
        return np.sqrt(np.diagonal(np.linalg.inv(MATRIX[:dimension, :dimension])))
    if name == "Polytope":
        return np.array([largest_product_over_the_polytope(axis) for axis in np.eye(dimension)])
    return np.ones(dimension)


def uniform_by_rejection(name, dimension, number, random):
    """Uniform points of the unit ball: those in it of so many points of the box around it."""
    points = random.uniform(-1.0, 1.0, (number, dimension)) * half_widths(name, dimension)
    return points[lengths(name, points) <= 1.0]


@jax.jit
def _measured(norm, vectors):
    mapped, dimension = jax.vmap(norm), vectors.shape[1]
    return {
        "values": mapped(vectors),
        "absolute": mapped(jnp.abs(vectors)),
        "of nothing": norm(jnp.zeros(dimension)),
        "duals": jax.vmap(norm.dual)(vectors[:4]),
        "log volume": norm.log_volume(dimension),
        "log mass": k_norm_log_mass(norm, RATE, dimension),
    }


@jax.jit
def _drawn(norm, like):
    ball, noise = jax.random.split(jax.random.key(3))
    parts = (NUM_DRAWS,), like.size
    return norm.draw_from_ball(ball, *parts), k_norm_noise(norm, noise, RATE, *parts)


@functools.cache
def norm_of(name, dimension):
    return NORMS[name](dimension)


def vectors_of(dimension):
    """Vectors of all sizes; then multiples, sums and shares of their coordinates."""
    random = np.random.default_rng(1)
    vectors = random.standard_cauchy((NUM_VECTORS, dimension))
    shares = random.uniform(size=vectors.shape)
    return vectors, -2.5 * vectors, vectors + np.roll(vectors, 1, axis=0), shares * vectors


@functools.cache
def measured(name, dimension):
    """Numbers of a norm by name; `values` and `absolute` of `vectors_of`, one group a row."""
    vectors = np.concatenate(vectors_of(dimension))
    found = {key: np.asarray(part) for key, part in _measured(norm_of(name, dimension), vectors).items()}
    return found | {key: found[key].reshape(4, NUM_VECTORS) for key in ("values", "absolute")}


@functools.cache
def drawn(name, dimension):
    """Draws from a norm's unit ball, and noise of its K-norm law at `RATE`."""
    return tuple(map(np.asarray, _drawn(norm_of(name, dimension), np.zeros(dimension))))


def excess(name, theta):
    """The distance to the body in its own norm, in NumPy: at most 0 in the body."""
    dimension = theta.shape[-1]
    if name == "Box":
        return np.maximum(LOWER[:dimension] - theta, theta - UPPER[:dimension]).max(-1)
    return np.linalg.norm(theta, ord=1 if name == "L1Ball" else 2, axis=-1) - RADIUS


def points(dimension, number, seed, spread=2.0):
    return np.random.default_rng(seed).normal(scale=spread, size=(number, dimension))


def inside_points(name, dimension, number, seed):
    drawn_points = points(dimension, 200 * number, seed, 1.0)
    return drawn_points[excess(name, drawn_points) < -1e-6][:number]


def vertices(name, dimension):
    if name == "L1Ball":
        return RADIUS * np.concatenate([np.eye(dimension), -np.eye(dimension)])
    sides = np.stack([LOWER[:dimension], UPPER[:dimension]])
    return np.stack(np.meshgrid(*sides.T, indexing="ij"), -1).reshape(-1, dimension)


@functools.cache
def body_of(name, dimension):
    return BODIES[name](dimension)


@jax.jit
def _of_body(domain, anywhere, starts, directions, ends, unconstrained):
    dimension = anywhere.shape[1]
    bijector = domain.bijector(dimension)
    projected = jax.vmap(domain.project)(anywhere)
    return {
        "contains": jax.vmap(domain.contains)(anywhere),
        "log density": jax.vmap(domain.log_density)(anywhere),
        "projected": projected,
        "projected twice": jax.vmap(domain.project)(projected),
        "projected inside": jax.vmap(domain.project)(starts),
        "chords": jax.vmap(domain.chord)(starts, directions),
        "chords from the boundary": jax.vmap(domain.chord)(projected[:20], directions),
        "linear": jax.vmap(domain.linear_interval)(ends[:, 0], ends[:, 1]),
        "interior": domain.interior_point(dimension),
        "widths": domain.widths(dimension),
        "constrained": jax.vmap(bijector)(unconstrained),
        "unconstrained": jax.vmap(bijector._inverse)(jax.vmap(bijector)(unconstrained)),
        "jacobians": jax.vmap(jax.jacfwd(bijector))(unconstrained),
        "log determinants": jax.vmap(lambda one: bijector.log_abs_det_jacobian(one, bijector(one)))(unconstrained),
        "back from the interior": bijector._inverse(domain.interior_point(dimension)),
    }


def given_to(name, dimension):
    """Points anywhere, starts inside with directions, ends of features, and unconstrained numbers."""
    directions = points(dimension, 20, 5)
    directions[::4, 1:] = 0.0  # coordinate directions, as samplers use them
    ends = np.sort(np.random.default_rng(8).normal(size=(5, 2, dimension)), axis=1)
    unconstrained = np.concatenate([np.zeros((1, dimension)), points(dimension, 5, 9, 1.5)])
    return points(dimension, 500, 1), inside_points(name, dimension, 20, 4), directions, ends, unconstrained


@functools.cache
def of_body(name, dimension):
    """Answers of the body about `given_to`, by name."""
    found = _of_body(body_of(name, dimension), *given_to(name, dimension))
    return jax.tree.map(np.asarray, found)
