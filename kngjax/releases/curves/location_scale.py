"""How curves of several levels are drawn as one location and multiples of one scale, with every rounding proved."""

import dataclasses
import secrets
from fractions import Fraction
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from kngjax.accounting.exact import exactly, inward
from kngjax.accounting.guarantees import Adjacency, Guarantee
from kngjax.core.arrays import float64
from kngjax.core.balls import DEFAULT_DIGITS, precision
from kngjax.data.bounds import Bounds
from kngjax.data.records import Records
from kngjax.geometry.domains import AbstractDomain, Box
from kngjax.losses.quantile import QuantileLoss
from kngjax.mechanisms.kng import KNG
from kngjax.releases.certificate import WITH_ROUNDING, describe
from kngjax.releases.curves.halving import Halving
from kngjax.releases.lattice.envelope import Envelope
from kngjax.releases.lattice.lattice import Lattice, Problem, rate_of
from kngjax.releases.lattice.plans import Plan
from kngjax.releases.lattice.problems import WholeRecords, check_score, prepared, whole_records
from kngjax.releases.lattice.regions import Region, vertices_of
from kngjax.samplers.grid.uniforms import Bits
from kngjax.sensitivity.gradients import Sensitivity

# Of ε: the location, the scale, and the levels of what is standardised by both.
SHARES = {"location": Fraction(2, 5), "scale": Fraction(3, 10), "levels": Fraction(3, 10)}
# Residuals are held to so many scales, which are medians of their sizes: of a normal law 2^-87 lies beyond.
MOST_SCALES = 16.0
# The least scale is so small a part of the width of Θ's intercept.
_LEAST_SCALE = 12

Point = Int[np.ndarray, " dimension"]


@dataclasses.dataclass(frozen=True, eq=False)
class LocationScale:
    """Draws of `kngjax.QuantileProcess` as location and scale: whole numbers decide all of it. All of it is public.

        θ_j = μ + q_j·γ,    x'γ > 0 for all x that the bounds allow,    q_1 ≤ ... ≤ q_m

    **Proof.** All three parts are of all records, one after the other. μ is a draw of KNG with the check loss at ½ of
    the records (x_i, y_i): at ε_1 by its own proof (`kngjax.Lattice`). Given μ, each record's residual y_i - x_i'μ is a
    function of this record and of μ alone, which is known: neighbours stay neighbours, of as many records, and γ, KNG
    with the check loss at ½ of the records (x_i, |y_i - x_i'μ|) on a public part of its domain, costs ε_2. Given both,
    so is (y_i - x_i'μ)/(x_i'γ), and the levels q of these numbers, by halving (`Halving`), cost ε_3. A mechanism may
    know what was released before it: ε_1 + ε_2 + ε_3 ≤ ε, for the adjacency of each, which is that of the process. The
    curves are made of μ, γ and q. ∎ Residuals are sums of products of whole numbers; a quotient is one division of
    float64, rounded to a lattice: a function of its record whatever its rounding.

    **Arguments:** `location`, `scale`: KNG at ε_1 and ε_2. `quantiles`: of the standardised residuals, at ε_3.
    `settings`: of the lattice. `plans`: of location and scale, which have one lattice of records and one of Θ.
    `vertices`: of the polytope of the bounds. `dimension`: d. `most`: a number that n does not exceed.
    """

    location: KNG
    scale: KNG
    quantiles: Halving
    settings: Lattice
    plans: tuple[Plan, Plan]
    vertices: Float[np.ndarray, "vertices dimension"]
    dimension: int
    most: int

    @classmethod
    def of(
        cls,
        levels: Any,
        bounds: Bounds,
        domain: AbstractDomain,
        epsilon: float,
        adjacency: Adjacency,
        dimension: int,
        most: int,
        settings: Lattice | None = None,
    ) -> "LocationScale":
        """**Arguments:** as of `Halving.of`. Raises ValueError, in words, for what no lattice serves, and for bounds
        without an intercept, by which a scale is positive.
        """
        if not bounds.intercept:
            raise ValueError("order='location_scale' needs an intercept, which makes scales positive: take 'halving'")
        budgets = {name: inward(exactly(float(epsilon)) * share) for name, share in SHARES.items()}
        rest = {"adjacency": adjacency, "allow_large_epsilon": True}
        location = KNG(QuantileLoss(0.5), bounds, domain, budgets["location"], **rest)
        scale = KNG(QuantileLoss(0.5), bounds, _of_scales(domain), budgets["scale"], **rest)
        given = dataclasses.replace(settings or Lattice(), max_records=most)
        data, theta = given.plan(location, dimension, most).digits
        made = dataclasses.replace(given, data_digits=data, theta_digits=theta)
        of_location, of_scale = (made.plan(mechanism, dimension, most) for mechanism in (location, scale))
        # Θ of scales is as wide as that of locations, so that residuals are whole numbers of the same unit.
        assert (of_location.unit, of_location.exponents) == (of_scale.unit, of_scale.exponents)
        ends = Bounds(y=(-MOST_SCALES, MOST_SCALES)), Box(-MOST_SCALES, MOST_SCALES)
        quantiles = Halving.of(levels, *ends, budgets["levels"], adjacency, 1, most, settings)
        with float64():
            vertices = vertices_of(bounds.feature_blocks(dimension))
        return cls(location, scale, quantiles, made, (of_location, of_scale), vertices, dimension, most)

    @property
    def guarantee(self) -> Guarantee:
        """Of all curves together."""
        return Guarantee.composed([self.location.guarantee, self.scale.guarantee, self.quantiles.guarantee])

    @property
    def sensitivity(self) -> Sensitivity:
        """Of the score of each part in its own norm, and how the parts share ε."""
        return Sensitivity(1.0, _DERIVATION)

    @property
    def first(self) -> KNG:
        """The location, of all records: it says which ones are admitted."""
        return self.location

    @property
    def noises(self) -> list[float]:
        """Of each level, in increasing order, the standard deviation of the noise on how many records lie below it.

        Those are the records whose standardised residual is at most q_j, whatever location and scale are.
        """
        return self.quantiles.noises

    @property
    def reason(self) -> str:
        """Why they are drawn so, in words."""
        return (
            "The location, the scale and the levels of the residuals standardised by both are exact draws on lattices, "
            "each of all records. No draw is given up."
        )

    def sampler(self, levels: Any) -> dict[str, Any]:
        """What a certificate says of the draw: location and scale, and the levels as of `Halving.sampler`."""
        return self.quantiles.sampler(levels) | {
            "location": self._part(self.location),
            "scale": self._part(self.scale),
        }

    def _part(self, mechanism: KNG) -> dict[str, Any]:
        return {
            "mechanism": "KNG with QuantileLoss",
            "relative_level": 0.5,
            "adjacency": str(mechanism.adjacency),
            "epsilon": float(mechanism.epsilon),
            "lattice": describe(self.settings),
            "assurance": WITH_ROUNDING,
        }

    def prepare(self, X: Any, y: Any, *, dither_key: Any = None) -> WholeRecords:
        """Records, validated, clipped and rounded to the lattice, each by itself. Private.

        Raises RuntimeError for more than `most` of them.
        """
        return prepared(self.location, X, y, self.plans[0], self.most, dither_key)

    def location_problem(self, records: WholeRecords) -> Problem:
        """Of which μ is drawn. Private."""
        return self._problem(self.location, records, self.plans[0])

    def scale_problem(self, records: WholeRecords, location: Point) -> Problem:
        """Of which γ is drawn: the records (x_i, |y_i - x_i'μ|). Private."""
        sizes = np.minimum(np.abs(records.y - records.x @ location), self.plans[1].reach)
        return self._problem(self.scale, WholeRecords(records.x, sizes), self.plans[1])

    @property
    def region(self) -> Region:
        """The γ with x'γ at least the least scale for all x that the bounds allow; never empty."""
        domain = self.plans[1].domain
        least = np.zeros(self.dimension, np.int64)
        least[0] = max(1, int(domain.high[0] - domain.low[0]) >> _LEAST_SCALE)
        return Region(self.vertices, domain.exponents, least, None)

    def location_envelope(self, records: WholeRecords) -> Envelope:
        """From which μ is drawn. Private."""
        return self.settings.envelope(self.location_problem(records))

    def scale_envelope(self, records: WholeRecords, location: Point) -> Envelope:
        """From which γ is drawn. Private."""
        return self.settings.envelope(self.scale_problem(records, location), self.region)

    def standardised(self, records: WholeRecords, location: Point, scale: Point) -> WholeRecords:
        """(y_i - x_i'μ)/(x_i'γ) of each record by itself, on the lattice of `quantiles`. Private."""
        residuals = (records.y - records.x @ location).astype(np.float64)
        # Rounded features may lie beside the polytope, by less than a unit of theirs.
        scales = np.maximum(records.x @ scale, 1).astype(np.float64)
        numbers = np.clip(residuals / scales, -MOST_SCALES, MOST_SCALES)
        with float64():
            return whole_records(Records(np.ones((len(numbers), 1)), numbers), self.quantiles.plans[0])

    def draw(self, records: WholeRecords, bits: Bits = secrets.randbits) -> Float[np.ndarray, "levels dimension"]:
        """One draw of all curves, in increasing order of their levels; no draw is given up.

        **Arguments:** `bits`: fair and independent; those of the operating system for whatever is published.
        """
        with precision(DEFAULT_DIGITS):
            location = self.location_envelope(records).draw(bits)
            scale = self.scale_envelope(records, location).draw(bits)
        numbers = self.quantiles.draw(self.standardised(records, location, scale), bits)
        centre, slope = self.plans[0].domain.values(location), self.plans[1].domain.values(scale)
        return centre + numbers * slope

    def _problem(self, mechanism: KNG, records: WholeRecords, plan: Plan) -> Problem:
        return Problem(check_score(mechanism, records, plan), plan.domain, rate_of(mechanism))


def _of_scales(domain: AbstractDomain) -> AbstractDomain:
    """Half of the differences of Θ's points, (Θ - Θ)/2: as far as a curve of Θ lies from the middle of two others."""
    if not isinstance(domain, Box):
        return domain
    with float64():
        half = (np.asarray(domain.upper, np.float64) - np.asarray(domain.lower, np.float64)) / 2.0
        return Box(-half, half)


_DERIVATION = (
    "each part is of all records: KNG of the location and KNG of the sizes of residuals about it, each in the norm in "
    "which its own score has sensitivity 1, and quantiles by halving of the residuals over the scale; 2/5, 3/10 and "
    "3/10 of epsilon."
)
