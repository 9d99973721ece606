"""The quantile process: regression curves of several levels for one ε, which never cross."""

import dataclasses
import functools
from typing import Any

import numpy as np

from kngjax.accounting.guarantees import Adjacency
from kngjax.core import arithmetic
from kngjax.core.arrays import parameter
from kngjax.core.errors import holding_no_records
from kngjax.core.representation import ShownAsTyped, describe
from kngjax.data.passes import Passes
from kngjax.data.schema import Schema
from kngjax.draws.lattice.lattice import LARGEST_DIMENSION
from kngjax.draws.lattice_draws import LatticeDraw
from kngjax.mechanisms.parameters import check_count, check_epsilon, order_domain, require_part
from kngjax.releases.certificate import Certificate
from kngjax.releases.curves.halving import Halving
from kngjax.releases.curves.quantile_curves import QuantileCurves
from kngjax.releases.debits import in_json, owed
from kngjax.releases.plan import AbstractReleasePlan, Plan
from kngjax.releases.release import Release

# Under add_remove, where nothing else is said.
MOST_RECORDS = 2**20
# By halving a curve takes about half a second, of 20,000 records and two coefficients on one core: all percentiles
# about a minute. What lies between released levels costs nothing.
MOST_LEVELS = 99
_REASON = (
    "Every curve is an exact draw on a lattice, of the records between the curves that were drawn before, on the part "
    "of the domain where it lies between them. No draw is given up."
)
# An outer level has so many times the noise of a node, in records, beyond it.
_CLEAR = 4.0


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class QuantileProcess(ShownAsTyped, AbstractReleasePlan):
    """Plans quantile regressions at m levels τ_1 < ... < τ_m, all for one ε, for `kngjax.release`.

    Levels are drawn by halving, in the order of a balanced tree of depth L = ⌈log₂(m + 1)⌉ (Kaplan, Schnapp and Stemmer
    2022, for numbers): first one in the middle, then one on either side of it, and so on. A level τ between the nearest
    drawn levels a < τ < b, with curves θ_a and θ_b, is a draw of `KNG` with the check loss at the relative level
    t = (τ - a)/(b - a), from the records between these curves,

        f(θ) ∝ exp(-ε'/2·max_j |G_j(θ)|/w_j),    G(θ) = Σ_i (1{y_i ≤ x_i'θ} - t)·x_i,  i with x_i'θ_a < y_i ≤ x_i'θ_b

    on the part of Θ where x'θ_a ≤ x'θ ≤ x'θ_b for all x within the bounds; the vertices of their polytope decide it. So
    curves never cross there, and their noise grows with L, not with m. w is the most by which one record can change G
    at t (`kngjax.sensitivity`): Δ = 1 in this norm.

    Proof: `docs/proofs/halving.md`. Depths cost ε/L each, and compose to ε and ρ = ε²/(8L).

    Everything is decided in whole numbers. Records are rounded to a lattice, each by itself. Whether y > x'θ, whether θ
    lies between two curves, and the draw itself (`kngjax.draws.Lattice`, whose proof holds on every part of Θ) involve
    no rounding. A part of Θ is never empty, since the curves at its ends lie in it. A draw is never given up, so no
    failure depends on the data.

    The tree is a most balanced one of least depth; its relative levels have four decimals.

    **Arguments:** all public.

    - `levels`: two to 99 levels τ in (0, 1), in increasing order; `QuantileCurves.quantiles` interpolates. Levels
        chosen from the data void the guarantee.
    - `bounds`: of one record; `Bounds(..., hull=)` where columns are functions of one another. No weights.
    - `domain`: Θ of every curve: `Box`, `L1Ball` or `L2Ball`. Up to four coefficients.
    - `epsilon`: ε in nats, of all curves together; at most 100 unless `allow_large_epsilon`.
    - `adjacency`: "replace" or "add_remove".
    - `max_records`: under add_remove a number that n does not exceed, 2^20 if it is left out; a release of more fails.
    - `force`: release also levels that `refusal` speaks of.

    Raises ValueError for levels that are no such list (for one level take `KNG`), and for parts without a proof. A
    release, or `certify`, raises it for levels that public facts show to be little but noise (`refusal`), if n is
    public or `max_records` is given.
    """

    levels: Any = None
    bounds: Any = None
    domain: Any = None
    epsilon: Any = None
    adjacency: Any = None
    max_records: Any = None
    force: bool = dataclasses.field(default=False, kw_only=True)
    allow_large_epsilon: bool = dataclasses.field(default=False, kw_only=True)

    def __post_init__(self):
        def keep(name: str, value: Any) -> None:
            object.__setattr__(self, name, value)

        keep("levels", _levels(self.levels))
        keep("domain", order_domain(require_part("domain", self.domain), require_part("bounds", self.bounds)))
        keep("epsilon", float(check_epsilon(require_part("epsilon", self.epsilon), self.allow_large_epsilon)))
        keep("adjacency", Adjacency.parse(self.adjacency))
        if self.max_records is not None:
            meaning = "a number that n does not exceed"
            keep("max_records", int(check_count("max_records", self.max_records, meaning)))
        keep("force", bool(self.force))
        if self.max_records is not None and self.adjacency is Adjacency.REPLACE:
            raise ValueError("under 'replace' the number of records is public: leave max_records out")
        if self.bounds.weight is not None and not self.bounds.has_one_vote:
            raise ValueError(
                "QuantileProcess takes no weights of records, and of persons one vote alone: leave "
                "Bounds(..., weight=...) out, or say most_rows=1"
            )
        if self.bounds.dimension is not None:
            # What no lattice serves is refused here, and again where n is known.
            self.halving()

    @property
    def dimension(self) -> int | None:
        """Returns d, the number of coefficients of a curve; None while scalar bounds leave it open."""
        return self.bounds.dimension

    @holding_no_records
    def certify(self, X: Any = None, y: Any = None) -> Certificate:
        """Returns the certificate of all curves together, before a value is looked at."""
        [certificate] = self.planned(X, y).certificates
        return certificate

    def halving(self, num_records: int | None = None, dimension: int | None = None) -> Halving:
        """Returns how all curves are drawn, whatever facts refuse.

        **Arguments:** `num_records`: n, where public. `dimension`: d, where the bounds leave it open.
        """
        known = int(dimension or self.dimension or 1 + self.bounds.intercept)
        if known > LARGEST_DIMENSION:
            raise ValueError(
                f"a quantile process takes up to {LARGEST_DIMENSION} coefficients with the intercept, not {known}: "
                "leave columns out, or release a regression of each level by SmoothedQuantileLoss"
            )
        given = self.levels, self.bounds, self.domain, self.epsilon, self.adjacency, known
        return Halving.of(*given, num_records or self.max_records or MOST_RECORDS)

    def admit(self, X: Any, y: Any) -> Schema:
        return self.halving().first.intake.check_schema(X, y)

    def resolve(self, facts: Schema) -> Plan:
        halving = self.halving(facts.num_records, facts.dimension)
        count = self.max_records if facts.num_records is None else facts.num_records
        if count is not None and not self.force and (why := self._unclear(halving, count)) is not None:
            raise ValueError(why)
        first, settings = halving.first, self.settings()
        # Under replace their number is public, and nothing is limited.
        limit = None if first.adjacency is Adjacency.REPLACE else halving.most
        draw = LatticeDraw(first, dataclasses.replace(halving.settings, max_records=limit), _REASON)
        of_first = Certificate.of(draw, facts)
        certificate = dataclasses.replace(
            of_first,
            mechanism=settings,
            sampler=halving.sampler(settings["levels"]),
            guarantee=halving.guarantee,
            sensitivity=halving.sensitivity,
            proofs=("docs/proofs/halving.md", *of_first.proofs),
        )
        drawing = functools.partial(_drawn, halving, certificate)
        return Plan((certificate,), *owed(certificate), drawing, lambda releases: [QuantileCurves(*releases)])

    def refusal(self, num_records: int) -> str | None:
        """Says in words which levels would be little but noise: min(τ, 1 - τ)·n is below four times their own noise.

        None where none would. **Arguments:** `num_records`: n, or a guess of it. Bounds must say how many columns there
        are.
        """
        return self._unclear(self.halving(), num_records)

    def _unclear(self, halving: Halving, count: int) -> str | None:
        clear = [
            level
            for level, noise in zip(self.levels, halving.noises, strict=True)
            if min(level, 1.0 - level) * count >= _CLEAR * noise
        ]
        if len(clear) == len(self.levels):
            return None
        usable = f"of these the outermost are {min(clear):g} and {max(clear):g}" if clear else "none of these has them"
        return (
            f"of {count} records too few lie beyond the outer levels at this epsilon: a level needs four times its "
            f"noise, in records, beyond it, and {usable}. Take fewer levels, or a larger epsilon"
        )

    def settings(self) -> dict[str, Any]:
        return in_json(
            {
                "type": "QuantileProcess",
                "levels": list(self.levels),
                "bounds": describe(self.bounds),
                "domain": describe(self.domain),
                "epsilon": self.epsilon,
                "adjacency": str(self.adjacency),
                "order": "halving",
                "max_records": self.max_records,
            }
        )


def _drawn(halving: Halving, certificate: Certificate, records: tuple[Any, Any], _: bool | None) -> list[Release]:
    X, y = records
    X = X.held(certificate.num_records) if isinstance(X, Passes) else X
    numbers = halving.draw(halving.prepare(X, y)).reshape(-1)
    # A library may have changed the arithmetic since it was tried: then nobody knows what was drawn.
    if arithmetic.broken():
        raise RuntimeError("the arithmetic that proofs rest on was changed during the draw")
    return [Release._of(numbers, certificate)]


def _levels(levels: Any) -> tuple[float, ...]:
    try:
        given = np.array(parameter(require_part("levels", levels)), np.float64)
    except (TypeError, ValueError) as error:
        if levels is None:
            raise
        raise TypeError(f"levels must be a list of numbers like [0.1, 0.5, 0.9], got {levels!r}") from error
    if given.ndim != 1 or not np.all((given > 0.0) & (given < 1.0)):
        raise ValueError(f"levels must be a list of numbers strictly between 0 and 1, got {levels!r}")
    if given.size < 2:
        raise ValueError("a quantile process has at least two levels: of one take KNG(QuantileLoss(tau), ...)")
    if given.size > MOST_LEVELS:
        raise ValueError(
            f"a quantile process has up to {MOST_LEVELS} levels, not {given.size}: of more a release takes minutes. "
            "Take fewer; release.quantiles(x, tau) has any level between them, for nothing"
        )
    if np.any(np.diff(given) <= 0.0):
        meant = sorted(set(given.tolist()))
        raise ValueError(f"levels must increase, each given once: levels={meant}{' would do' * (len(meant) > 1)}")
    return tuple(given.tolist())
