"""Audits of the joint density of several curves in any dimension: its score replayed on a neighbour."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from kngjax.audit.replay import Replay
from kngjax.core.arrays import float64
from kngjax.core.compiling import programs_run_once
from kngjax.core.randomness import research_key
from kngjax.releases.curves.joint import Joint
from kngjax.samplers.chains.gradient_space import GradientSpace
from kngjax.samplers.curves_target import CurvesTarget

# T is tried so many times as far from 0 as S, and curves so much closer to one another than Θ is wide.
_FAR = 3.0
_NARROW = 2.0


def replayed_curves(
    joint: Joint, first: tuple, second: tuple, *, seed: int = 0, num_draws: int = 24, num_points: int = 400
) -> Replay:
    """2c·|s(θ, T; D) - s(θ, T; D')|/ε at its largest over many (θ, T), c = ε/(2Δ): at most 1, whatever the dimension.

    Points are draws on D by the chain, where bins are smooth; curves anywhere in Θ; and curves of any distances along
    one line. Of these both densities leave some out, as those that cross; where one alone does, or a score is no
    number, the ratio is infinite. T is a draw's own, or anywhere about S and 0. Both data sets go the way of a release,
    through validation, clipping and the hull of the bounds.

    **Arguments:** `joint`: the density, of smooth bins or not. `first`, `second`: pairs (X, y), neighbours by its
    adjacency, made up. `num_draws`: of the chain, which smooth bins alone have; 0 for none, as its program takes long
    to compile. `num_points`: all others, before some are left out.
    """
    data = [joint.prepare(*pair) for pair in (first, second)]
    key = research_key(seed)
    recorded = joint.draws(data[0], GradientSpace(), key, num_draws) if num_draws else None
    with float64(), programs_run_once():
        here, there = (joint.target(each) for each in data)
        curves, totals = _points(joint, here, jax.random.fold_in(key, 1), num_points)
        if recorded is not None:
            curves = np.concatenate([recorded.curves, curves])
            totals = np.concatenate([recorded.totals, totals])

        # A program of its own each time: what was planted since the last one is in it.
        @jax.jit
        def changes(first, second, curves, totals):
            def change(point):
                theta, total = point
                found = 2.0 * first.rate * jnp.abs(first.score(theta, total) - second.score(theta, total))
                bases = jnp.array([first.log_base(theta), second.log_base(theta)])
                # No number is no proof, and what one of the densities leaves out tells them apart for certain.
                found = jnp.where(jnp.isnan(found) | (bases[0] != bases[1]), jnp.inf, found)
                return jnp.where(jnp.all(bases == -jnp.inf), jnp.nan, found)

            return jax.lax.map(change, (curves, totals), batch_size=64)

        found = np.asarray(changes(here, there, curves, totals))
    return Replay(float(np.nanmax(found)) / float(joint.first.epsilon), int(np.sum(~np.isnan(found))))


def _points(
    joint: Joint, target: CurvesTarget, key: PRNGKeyArray, number: int
) -> tuple[Float[np.ndarray, "points levels d"], Float[np.ndarray, "points d"]]:
    """Curves anywhere in Θ, or along one line, with totals that are far from S, each coordinate by itself."""
    half, levels = max(number // 2, 1), len(joint.levels)
    keys = jax.random.split(key, 4)
    anywhere, narrow = (
        np.asarray(target.domain.draw(one, (half, some), joint.dimension))
        for one, some in zip(keys[:2], (levels, 2), strict=True)
    )
    width = np.min(np.asarray(target.domain.widths(joint.dimension)))
    places = np.sort(np.asarray(jax.random.uniform(keys[2], (half, levels, 1), minval=-0.5, maxval=0.5)), axis=1)
    along = np.mean(narrow, axis=1, keepdims=True) / _NARROW + places * joint.direction * width / _NARROW
    scale = np.abs(np.asarray(target.totals())) + np.max(np.abs(joint.vertices), axis=0)
    wide = np.asarray(jax.random.uniform(keys[3], (2 * half, joint.dimension), minval=-1.0, maxval=1.0))
    return np.concatenate([anywhere, along]), _FAR * scale * wide
