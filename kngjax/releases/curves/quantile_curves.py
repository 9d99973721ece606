"""Holds the release of a quantile process: curves with a certificate, and what follows from them."""

import functools
from typing import Any

import jax
import numpy as np
import scipy.special
from jaxtyping import Float, PRNGKeyArray

from kngjax.accounting.guarantees import Guarantee
from kngjax.core.arrays import float64
from kngjax.core.kept_as_json import AbstractKeptAsJson
from kngjax.core.randomness import require_typed_key
from kngjax.core.summary_table import AbstractSummarised, SummaryTable, names_of
from kngjax.releases.certificate import Certificate
from kngjax.releases.release import Release


class QuantileCurves(AbstractKeptAsJson, AbstractSummarised):
    """Holds released quantile regression curves of several levels; whatever is made of these curves costs nothing.

    **Arguments:** `release`: of a `kngjax.QuantileProcess`: a number for each level and coefficient, one certificate.
    """

    def __init__(self, release: Release):
        if not isinstance(release, Release) or release.certificate.mechanism.get("type") != "QuantileProcess":
            raise TypeError("curves are made by kngjax.release(kngjax.QuantileProcess(...), X, y), or read from_json")
        self.release = release

    @property
    def levels(self) -> Float[np.ndarray, " levels"]:
        """Returns the levels τ, increasing."""
        return np.array(self.certificate.mechanism["levels"])

    @functools.cached_property
    def value(self) -> Float[np.ndarray, "levels dimension"]:
        """Returns the coefficients of each level, shape (m, d), intercept first; read-only."""
        return self.release.value.reshape(len(self.levels), -1)

    @property
    def certificate(self) -> Certificate:
        """Returns the certificate, which says what was proved of all curves together and what each of them cost."""
        return self.release.certificate

    @property
    def cost(self) -> Guarantee | None:
        """Returns what all curves together cost."""
        return self.certificate.cost

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names the coefficients as the bounds declare them, the intercept first; None where none are declared."""
        return self.certificate.names_of_columns

    def quantiles(self, x: Any, tau: Any) -> Float[np.ndarray, "rows ..."]:
        """Predicts quantiles at public rows, increasing with their level: linear in Φ⁻¹(τ) between the released levels.

        x'θ_j at the released levels is sorted for each row, which changes nothing where x lies within the bounds.
        Beyond the outer levels the lines are continued. Quantiles stay within the bounds of y, where there are any.

        **Arguments:** `x`: shape (rows, columns), without the intercept. `tau`: one level in (0, 1), for shape (rows,),
        or several, for shape (rows, levels).
        """
        tau = np.asarray(tau, np.float64)
        if tau.ndim > 1 or not np.all((tau > 0.0) & (tau < 1.0)):
            raise ValueError(f"tau must be a level strictly between 0 and 1, or a list of them, got {tau.tolist()!r}")
        curves = self._curves(x)
        found = self._at(curves, np.broadcast_to(np.atleast_1d(tau), (len(curves), tau.size)))
        return found if tau.ndim else found[:, 0]

    def draw(self, x: Any, key: PRNGKeyArray) -> Float[np.ndarray, " rows"]:
        """Draws a response for each public row from the released quantiles: `quantiles` at a uniform level.

        **Arguments:** `x`: as of `quantiles`. `key`: `kngjax.research_key(seed)`; it may be public.
        """
        require_typed_key(key)
        curves = self._curves(x)
        with float64():
            uniform = np.asarray(jax.random.uniform(key, (len(curves), 1)))
        least = 2.0**-53
        return self._at(curves, np.clip(uniform, least, 1.0 - least))[:, 0]

    def _curves(self, x: Any) -> Float[np.ndarray, "rows levels"]:
        """Computes x'θ of each row at each level, increasing."""
        has_intercept = self.certificate.mechanism["bounds"]["intercept"]
        rows, columns = np.asarray(x, np.float64), self.value.shape[1] - has_intercept
        if rows.ndim != 2 or rows.shape[1] != columns or not np.all(np.isfinite(rows)):
            raise ValueError(f"x must be finite rows of {columns} numbers, without the intercept, not {rows.shape}")
        design = np.column_stack([np.ones((len(rows), int(has_intercept))), rows])
        return np.sort(design @ self.value.T, axis=1)

    def _at(self, curves: np.ndarray, tau: Float[np.ndarray, "rows number"]) -> Float[np.ndarray, "rows number"]:
        knots, places = scipy.special.ndtri(self.levels), scipy.special.ndtri(tau)
        left = np.clip(np.searchsorted(knots, places, side="right") - 1, 0, len(knots) - 2)
        share = (places - knots[left]) / (knots[left + 1] - knots[left])
        low, high = (np.take_along_axis(curves, left + step, axis=1) for step in (0, 1))
        found = low + share * (high - low)
        bounds = self.certificate.mechanism["bounds"]
        return found if bounds["y_lower"] is None else np.clip(found, bounds["y_lower"], bounds["y_upper"])

    def explain(self) -> str:
        """Explains the certificate as text, with a line for each curve: how it was drawn, and what it cost."""
        sampler = self.certificate.sampler
        # Parts of releases that were made when curves could be drawn as location and scale.
        lines = [
            f"{name.capitalize()}: {part['mechanism']} at the level {part['relative_level']:g} of all {of} for "
            f"{part['adjacency']} at epsilon = {part['epsilon']:.6g}, {part['assurance']}."
            for name, of in (("location", "records"), ("scale", "sizes of residuals"))
            if (part := sampler.get(name)) is not None
        ]
        lines += [
            f"Level {part['level']:g}: depth {part['depth']}, of the records {_between(part['between'])}, at their "
            f"level {part['relative_level']:g}; {part['mechanism']} for {part['adjacency']} at epsilon = "
            f"{part['epsilon']:.6g}, {part['assurance']}."
            for part in sampler.get("parts", [])
        ]
        return "\n".join([self.certificate.explain(), *lines])

    def __repr__(self) -> str:
        levels = ", ".join(f"{level:g}" for level in self.levels)
        return f"<QuantileCurves of levels {levels}; {self.certificate.summary()}; explain() says more>"

    def summary(self) -> SummaryTable:
        """Lays out the coefficients, a line a level, and their certificate."""
        heads = ("level", *names_of(self.names, self.value.shape[1]))
        rows = [(f"{level:g}", *row) for level, row in zip(self.levels, self.value.tolist(), strict=True)]
        return SummaryTable("Quantile curves", self.certificate.rows(), heads, rows)

    def to_json(self) -> str:
        """Writes the release as canonical JSON."""
        return self.release.to_json()

    @classmethod
    def from_json(cls, text: str) -> "QuantileCurves":
        """Reads what `to_json` wrote, or what a ledger keeps of it."""
        return cls(Release.from_json(text))


def _between(ends: list[float | None]) -> str:
    low, high = ends
    above = [] if low is None else [f"above the curve of {low:g}"]
    below = [] if high is None else [f"not above that of {high:g}"]
    return " and ".join([*above, *below]) or "all together"
