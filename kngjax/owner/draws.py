"""Draws for the owner's eyes: ArviZ data, R-hat, effective sample sizes, trace and rank plots; how far a chain is off.

Everything here is computed from private data and nothing of it is a private release.
"""

import functools
import pathlib
from typing import Any, ClassVar

import jax
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from kngjax.core.arrays import float64
from kngjax.core.html import html_table
from kngjax.core.owner_only import OwnerOnly, owner_only
from kngjax.core.randomness import require_typed_key
from kngjax.data.records import Data
from kngjax.mechanisms.density import AbstractDensityMechanism
from kngjax.owner import nonprivate
from kngjax.samplers.base import Info
from kngjax.samplers.chains import couplings
from kngjax.samplers.chains.slice_gibbs import SliceGibbs


@owner_only
class Draws(OwnerOnly):
    """Research draws: OWNER ONLY. Publish a `Release` instead.

    **Arguments:** `theta`: shape (chains, draws, d). `sampler`: its name. `info`: per kept sweep, of shape
    (chains, draws); None for independent draws.
    """

    theta: Float[np.ndarray, "chains draws dimension"]
    sampler: str
    info: Info | None = None
    instead: ClassVar[str] = (
        "for ArviZ, for the owner's eyes, call to_arviz() or summary(); if the owner keeps it, call save_for_owner; to "
        "publish, call kngjax.release"
    )

    def __repr__(self) -> str:
        chains, draws, dimension = self.theta.shape
        return (
            f"<Draws by {self.sampler}: {chains} chains x {draws} draws x {dimension} coefficients; OWNER ONLY, "
            "computed from private data, not a release>"
        )

    def _repr_html_(self) -> str:
        sizes = zip(("chains", "draws", "coefficients"), self.theta.shape, strict=True)
        secret = ("OWNER ONLY", "computed from private data, not a release")
        return html_table("Draws", [secret, ("sampler", self.sampler), *sizes])

    def save_for_owner(self, path: str | pathlib.Path) -> None:
        """Writes the draws to a NumPy file; whoever reads it sees private information."""
        np.savez(path, theta=self.theta, sampler=np.asarray(self.sampler))

    def _dataset(self) -> Any:
        import xarray

        names = ("chain", "draw", "coefficient")
        coordinates = {name: np.arange(size) for name, size in zip(names, self.theta.shape, strict=True)}
        return xarray.Dataset({"theta": (names, self.theta)}, coords=coordinates)

    def to_arviz(self) -> Any:
        """The draws for ArviZ, with groups posterior and sample_stats: InferenceData in 0.x, DataTree in 1.x."""
        import arviz
        import xarray

        groups = {"posterior": self._dataset()}
        if self.info is not None:
            names = {"log_density": "lp", "acceptance": "acceptance_rate", "num_steps": "n_steps"}
            stats = {names.get(name, name): part for name, part in self.info._asdict().items()}
            groups["sample_stats"] = xarray.Dataset({name: (("chain", "draw"), part) for name, part in stats.items()})
        if int(arviz.__version__.split(".")[0]) >= 1:
            return xarray.DataTree.from_dict(groups)
        return arviz.InferenceData(**groups)

    def rhat(self) -> Float[np.ndarray, " dimension"]:
        """Rank-normalised split R-hat of each coefficient (Vehtari et al. 2021); below 1.01 is good, needs 2 chains."""
        import arviz

        return np.asarray(arviz.rhat(self._dataset())["theta"])  # pyright: ignore[reportIndexIssue]

    def ess(self, method: str = "bulk") -> Float[np.ndarray, " dimension"]:
        """Effective sample size of each coefficient, "bulk" or "tail"."""
        import arviz

        return np.asarray(arviz.ess(self._dataset(), method=method)["theta"])

    def summary(self) -> Any:
        """ArviZ's table of means, deviations, Monte Carlo errors, R-hat and effective sample sizes."""
        import arviz

        return arviz.summary(self.to_arviz())

    def plot_trace(self, **options: Any) -> Any:
        """ArviZ's trace plot."""
        import arviz

        return arviz.plot_trace(self.to_arviz(), **options)

    def plot_rank(self, **options: Any) -> Any:
        """ArviZ's rank plot: uniform ranks in every chain mean that the chains agree."""
        import arviz

        return arviz.plot_rank(self.to_arviz(), **options)


@owner_only
class CouplingBound(OwnerOnly):
    """How far the law of `SliceGibbs` is from the density after each number of sweeps: OWNER ONLY.

    An average over pairs of chains on the observed data: evidence, and no proof.

    **Arguments:** `total_variation`: shape (sweeps + 1,), the estimated bound after 0, 1, … sweeps; infinite where some
    pair never met.
    """

    total_variation: Float[np.ndarray, " sweeps"]
    instead: ClassVar[str] = "its numbers, for the owner, are total_variation and sweeps_to"

    def __repr__(self) -> str:
        return (
            f"<CouplingBound after 0 to {self.total_variation.size - 1} sweeps; OWNER ONLY, estimated on private data>"
        )

    def sweeps_to(self, distance: float = 1e-3) -> int:
        """The fewest sweeps after which the bound is at most `distance`; raises RuntimeError if it never is."""
        within = np.flatnonzero(self.total_variation <= distance)
        if not within.size:
            raise RuntimeError(
                "the pairs of chains did not meet often enough to bound the distance: give coupling_bound more sweeps; "
                "where features are correlated the coupling is slower than the chain"
            )
        return int(within[0])


def coupling_bound(
    mechanism: AbstractDensityMechanism,
    data: Data,
    *,
    key: PRNGKeyArray,
    num_pairs: int = 500,
    lag: int = 20,
    num_sweeps: int = 300,
) -> CouplingBound:
    """An estimate of a bound on the total variation between `SliceGibbs` after t sweeps and the density.

    With chains X and Y such that X_t and Y_{t-L} stay together once they meet, at τ = inf {t > L : X_t = Y_{t-L}},
    TV(law of X_t, f) ≤ E max(0, ⌈(τ - L - t)/L⌉) (Biswas, Jacob and Vanetti 2019, Theorem 2.5). The expectation is a
    mean over independent pairs, which start as a release does. Owner-only: computed from private data, as evidence;
    it does not enter a guarantee.

    **Arguments:** `data`: from `mechanism.prepare`. `key`: a research key. `num_pairs`: of chains. `lag`: L; a longer
    one gives a tighter bound at small t. `num_sweeps`: after which a pair is given up.

    Raises ValueError where `SliceGibbs` cannot draw from this density.
    """
    require_typed_key(key)
    for name, count in (("num_pairs", num_pairs), ("lag", lag), ("num_sweeps", num_sweeps)):
        if count < 1:
            raise ValueError(f"{name} must be at least 1, got {count}")
    with float64():
        SliceGibbs().check(jax.eval_shape(mechanism.target, data))
        reach = mechanism.domain.linear_interval(*mechanism.bounds_of_rows(data.dimension).features(data.dimension))
        centre = nonprivate.centre(mechanism.loss, data, reach)
        bounds = np.array(_coupling_bounds(mechanism, data, centre, key, num_pairs, lag, num_sweeps))
    return CouplingBound(bounds)


@functools.partial(jax.jit, static_argnames=("num_pairs", "lag", "num_sweeps"))
def _coupling_bounds(mechanism, data, centre, key, num_pairs, lag, num_sweeps):
    times = couplings.meeting_times(mechanism.target(data), centre, key, num_pairs, lag, num_sweeps)
    return couplings.convergence_bound(times, lag, num_sweeps)
