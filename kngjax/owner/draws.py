"""Draws for the owner's eyes: diagnostics by coefficient, ArviZ data, trace and rank plots.

Everything here is computed from private data and nothing of it is a private release.
"""

import pathlib
from typing import Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float

from kngjax.chains.base import Info
from kngjax.core.owner_only import OwnerOnly, owner_only
from kngjax.core.summary_table import SummaryTable, names_of
from kngjax.owner.diagnostics import DrawsSummary


@owner_only
class Draws(OwnerOnly):
    """Holds research draws: OWNER ONLY. Publish a `Release` instead.

    **Arguments:** `theta`: shape (chains, draws, d). `sampler`: its name. `info`: per kept sweep, of shape
    (chains, draws); None for independent draws. `names`: the coefficients' names, the intercept first; None for
    numbers. `seconds`: how long the draws took in all; None if it is unknown.
    """

    theta: Float[np.ndarray, "chains draws dimension"]
    sampler: str
    info: Info | None = None
    names: tuple[str, ...] | None = None
    seconds: float | None = None
    instead: ClassVar[str] = (
        "for ArviZ, for the owner's eyes, call to_arviz(), for R-hat and the like summary().explain(); if the owner "
        "keeps it, call save_for_owner; to publish, call kngjax.release"
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
        facts = [secret, ("sampler", self.sampler), *((name, str(size)) for name, size in sizes)]
        return SummaryTable("Draws", facts)._repr_html_()

    def save_for_owner(self, path: str | pathlib.Path) -> None:
        """Writes the draws to a NumPy file; whoever reads it sees private information."""
        np.savez(path, theta=self.theta, sampler=np.asarray(self.sampler))

    def to_arviz(self) -> Any:
        """Returns the draws for ArviZ, with groups posterior and sample_stats: InferenceData in 0.x, DataTree in 1.x.

        `theta` has the names of the coefficients as coordinates, numbers where there are none.
        """
        import arviz
        import xarray

        dimensions = ("chain", "draw", "coefficient")
        coordinates = {} if self.names is None else {"coefficient": list(self.names)}
        numbered = {name: np.arange(size) for name, size in zip(dimensions, self.theta.shape, strict=True)}
        groups: dict[str, Any] = {
            "posterior": xarray.Dataset({"theta": (dimensions, self.theta)}, coords=numbered | coordinates)
        }
        if self.info is not None:
            names = {"log_density": "lp", "acceptance": "acceptance_rate", "num_steps": "n_steps"}
            stats = {names.get(name, name): part for name, part in self.info._asdict().items() if part is not None}
            groups["sample_stats"] = xarray.Dataset({name: (("chain", "draw"), part) for name, part in stats.items()})
        if int(arviz.__version__.split(".")[0]) >= 1:
            return xarray.DataTree.from_dict(groups)
        return arviz.InferenceData(**groups)

    def rhat(self) -> Float[np.ndarray, " dimension"]:
        """Computes rank-normalised split R-hat (Vehtari et al. 2021) from 2 chains or more; below 1.01 is good."""
        return self.summary().rhat

    def ess(self, method: Literal["bulk", "tail"] = "bulk") -> Float[np.ndarray, " dimension"]:
        """Computes the effective sample size of each coefficient."""
        summary = self.summary()
        return {"bulk": summary.bulk, "tail": summary.tail}[method]

    def summary(self) -> DrawsSummary:
        """Summarises each coefficient: R-hat, effective sizes, Monte Carlo errors; `explain()` prints them by name."""
        return DrawsSummary.of(self.theta, names_of(self.names, self.theta.shape[2]), self.seconds)

    def plot_trace(self, **options: Any) -> Any:
        """Draws ArviZ's trace plot."""
        import arviz

        return arviz.plot_trace(self.to_arviz(), **options)

    def plot_rank(self, **options: Any) -> Any:
        """Draws ArviZ's rank plot: uniform ranks in every chain mean that the chains agree."""
        import arviz

        return arviz.plot_rank(self.to_arviz(), **options)
