"""States what was proved of a release, under which assumptions, by which sampler, and what is left unproved."""

import dataclasses
import functools
import importlib.metadata
import json
import math
from collections.abc import Callable
from typing import Any

from kngjax.accounting.adjacency import RECORD
from kngjax.accounting.exact_costs import outward
from kngjax.accounting.guarantees import Guarantee
from kngjax.accounting.wording import figures
from kngjax.core.representation import describe
from kngjax.core.summary_table import SummaryTable
from kngjax.data.missing import policy_of_each_column
from kngjax.data.schema import Schema
from kngjax.draws.base import IN_REALS, NONE, PROVED, TOO_MANY, AbstractDraw
from kngjax.mechanisms.base import AbstractMechanism
from kngjax.mechanisms.declared_facts import declared_facts
from kngjax.releases.division import Membership
from kngjax.releases.older_certificates import Mixture, renewed
from kngjax.releases.rounding import KEPT_DIGITS, Rounding
from kngjax.releases.told import told
from kngjax.sensitivity.gradients import Sensitivity

ASSUMPTIONS = (
    "the bounds, the domain, epsilon and every other setting were fixed without looking at these data",
    "the records were clipped to the bounds: the value is an estimate from clipped records",
    "whatever was done to the data before the call treated each record by itself",
    "nothing else that was computed from these records is published, unless the certificate names it: no run time, "
    "memory, logs, or owner-only diagnostics",
)

FAILURE = (
    "that this release did not fail is an output that the guarantee does not cover; what could have made it fail: {}"
)

IN_FLOAT64 = (
    "what float64 computes has the law of an exact draw of which every coordinate is moved by at most 2^-44 of the "
    "larger of its own size, its distance from the public centre and its public unit, but for a probability that is "
    "negligible beside rounding_delta; nobody has proved that. Then the coarse rounding of the output hides what "
    "rounding errors do, but for rounding_delta",
    "the operating system's random bytes are unpredictable and ChaCha20 is indistinguishable from random",
)
EXACT_ARITHMETIC = (
    "CPython and FLINT compute whole numbers and balls as they say, and NumPy and this processor +, -, *, / and square "
    "roots of float64 and matrix products of whole numbers as IEEE 754 does, numbers below 2^-1022 included, which was "
    "tried before this release and after its draw; and the operating system's random bytes are unpredictable",
)
# Characters of settings that `explain` shows.
_LONGEST_SETTINGS = 600
# Mechanisms whose numbers are not one a column, so that they have not the columns' names.
_OF_NO_COLUMN = frozenset({"DesignMoments", "QuantileProcess"})
# What a release computes with, of which a certificate names the versions.
COMPUTED_BY = ("kngjax", "jax", "numpyro", "numpy", "python-flint")


@functools.cache
def _versions() -> tuple[tuple[str, str], ...]:
    """Reads the versions once, since looking for them takes longer than many a draw."""
    return tuple((name, importlib.metadata.version(name)) for name in COMPUTED_BY)


@dataclasses.dataclass(frozen=True)
class Certificate:
    """States what is proved of a released value, and what is assumed. Everything in it is public.

    **Arguments:**

    - `mechanism`: its type and all its public settings.
    - `guarantee`: of one draw from exactly the mechanism's law; `cost`, `epsilon` and `delta` are those of the release.
    - `sensitivity`: Δ with its derivation.
    - `sampler`: its type and public settings. `reason`: why it was taken, from public facts alone.
    - `assurance`: "proved" if the proof includes every rounding; "in_reals" if the law is exact in real arithmetic and
        the output was rounded; "none" for a Markov chain.
    - `rounding`: of the output; None with "proved".
    - `assumptions`, `unproved`: what the guarantee rests on, and what nobody has proved of this release.
    - `versions`: of the packages that computed the release.
    - `membership`: for one group of the records, what all groups cost together; else None.
    - `num_records`: n, where it is public, under replace, and was known before the data were read; else None.
    - `mixture`: for an older release by a chain, what was proved of it; else None.
    - `proofs`: the pages of the documentation that have the proofs, as "docs/proofs/kng.md"; none in older
      certificates.
    """

    mechanism: dict[str, Any]
    guarantee: Guarantee
    sensitivity: Sensitivity
    sampler: dict[str, Any]
    reason: str
    assurance: str
    rounding: Rounding | None
    assumptions: tuple[str, ...]
    unproved: tuple[str, ...]
    versions: dict[str, str]
    membership: Membership | None = None
    num_records: int | None = None
    mixture: Mixture | None = None
    proofs: tuple[str, ...] = ()

    @classmethod
    def of(cls, draw: AbstractDraw, facts: Schema) -> "Certificate":
        """Makes the certificate of a draw, from public settings alone. **Arguments:** `facts`: of the records."""
        mechanism, is_proved = draw.mechanism, draw.assurance == PROVED
        assumptions = (
            *ASSUMPTIONS,
            *declared_facts(mechanism, getattr(draw, "sampler", None)),
            *told(mechanism.bounds, mechanism.loss.has_response),
            FAILURE.format("; ".join([*failures_of(mechanism), *draw.failures])),
            *(EXACT_ARITHMETIC if is_proved else IN_FLOAT64),
            *draw.assumptions,
        )
        return cls(
            mechanism=describe(mechanism),
            guarantee=mechanism.guarantee_for(facts.dimension).of(mechanism.bounds.protects),
            sensitivity=mechanism.sensitivity_for(facts.dimension),
            sampler={**draw.settings, **({"published": sorted(draw.published)} if draw.published else {})},
            reason=draw.method,
            assurance=draw.assurance,
            rounding=None if is_proved else Rounding.of(mechanism, facts.dimension, facts.num_records),
            assumptions=assumptions,
            unproved=draw.unproved,
            versions=dict(_versions()),
            num_records=None if facts.num_records is None else int(facts.num_records),
            proofs=_proofs_of(draw),
        )

    @property
    def names_of_columns(self) -> tuple[str, ...] | None:
        """Returns the declared names of the columns, the intercept first; None where none were declared."""
        bounds = self.mechanism.get("bounds") or {}
        declared = bounds.get("names")
        return None if declared is None else ("intercept",) * bounds["intercept"] + tuple(declared)

    @property
    def names(self) -> tuple[str, ...] | None:
        """Returns the declared names of the coefficients; None where none were declared."""
        return None if self.mechanism["type"] in _OF_NO_COLUMN else self.names_of_columns

    @property
    def exact(self) -> bool:
        """Tells whether the value is a draw from exactly the mechanism's law, in real arithmetic."""
        return self.assurance != NONE

    @property
    def _of_draw(self) -> Guarantee | None:
        """States what is proved of the draw before it is rounded; None where nothing is."""
        if self.exact:
            return self.guarantee
        epsilon, delta = (math.inf, 1.0) if self.mixture is None else self.mixture.cost(self.guarantee.epsilon)
        if not (epsilon < math.inf and delta < 1.0):
            return None
        adjacency = self.guarantee.adjacency
        made = Guarantee.approximate(epsilon, delta, adjacency) if delta else Guarantee.pure(epsilon, adjacency)
        return made.of(self.guarantee.unit)

    @property
    def cost(self) -> Guarantee | None:
        """States the guarantee of this release, which a ledger debits; None where a chain leaves it unproved.

        It holds for any law within η, in total variation, of the draw's: so much may rounding in float64 change.
        """
        law = self._of_draw
        return law if law is None or self.rounding is None else law.within(self.rounding.distance)

    @property
    def epsilon(self) -> float | None:
        """Returns the ε that this release costs; None where a chain leaves it unproved.

        A guarantee that states no ε, such as ρ-zCDP, gives infinity; `cost.at(delta=...)` has an ε at every δ above η.
        """
        return None if (cost := self.cost) is None else cost.epsilon

    @property
    def delta(self) -> float:
        """Returns the δ that this release costs, `rounding_delta` included; NaN where nothing is proved."""
        return math.nan if (cost := self.cost) is None else cost.delta

    @property
    def rounding_delta(self) -> float:
        """Says what rounding adds to δ: 0 if the proof includes it; else by the assumption about float64 in `rounding`.

        (1 + e^ε)η at the ε of the draw, or of the mechanism where that is unknown; NaN where that is infinite, and η is
        `rounding.distance`.
        """
        if self.rounding is None:
            return 0.0
        epsilon = (self._of_draw or self.guarantee).epsilon
        return math.nan if math.isinf(epsilon) else self.rounding.delta(epsilon)

    def summary(self) -> str:
        """Says in one line what is proved of the release, for a table."""
        sampler = self.sampler["type"]
        if self.exact:
            return f"{sampler}: proved {self.guarantee.explain()}{self._with_rounding()}"
        if self.cost is not None:
            return f"{sampler} (Markov chain): proved {self._proved()}"
        return f"{sampler} (Markov chain): its limit law is {self.guarantee.explain()}; this finite run is not proved"

    def explain(self) -> str:
        """Explains the certificate as text for a reader who knows statistics."""
        if self.exact:
            law = "the mechanism's law on a public grid" if self.rounding is None else "exactly the mechanism's law"
            proved = (
                f"Proved: this value is one draw from {law}, which is {self.guarantee.explain()}"
                f"{self._with_rounding()}."
            )
        elif self.mixture is not None and self.cost is not None:
            proved = (
                f"Proved: the mechanism's law is {self.guarantee.explain()}, and this value, drawn by a Markov chain, "
                f"is {self._proved()}: {self.mixture.reason}."
            )
        else:
            proved = (
                f"Proved: the mechanism's law is {self.guarantee.explain()}. Not proved: that this value, which a "
                "Markov chain approximates, follows that law."
            )
        lines = [
            f"Mechanism: {self._parts()}." + (f" Coefficients: {', '.join(self.names)}." if self.names else ""),
            proved,
            *(f"Protected: {words}." for _, words in self._protected()),
            *self._group(),
            f"Assurance: {self.assurance}, {self._assured()}.",
            f"Sensitivity: {self.sensitivity.value:.6g}, since {self.sensitivity.derivation}",
            *([f"Proofs: {', '.join(self.proofs)}."] if self.proofs else []),
            f"Settings: {_shortened(_as_call(self.mechanism))}.",
            f"Sampler: {json.dumps(self.sampler, sort_keys=True)}. {self.reason}",
            *(f"Assumed: {assumption}." for assumption in self.assumptions),
            *(f"Not proved: {statement}." for statement in self.unproved),
            "Computed by " + ", ".join(f"{name} {version}" for name, version in sorted(self.versions.items())) + ".",
        ]
        return "\n".join(lines)

    def rows(self) -> list[tuple[str, str]]:
        """Names and statements of a small table: what is proved, and what is not."""
        return [
            ("mechanism", self._parts()),
            *figures(self.cost),
            ("settings", _shortened(_as_call(self.mechanism))),
            ("of the draw", self.summary()),
            *self._protected(),
            *(("of the groups", words) for words in self._group()),
            ("assurance", f"{self.assurance}, {self._assured()}"),
            ("sensitivity", f"{self.sensitivity.value:.6g}"),
            ("sampler", f"{self.sampler['type']}. {self.reason}"),
            *(("not proved", statement) for statement in self.unproved),
        ]

    def _protected(self) -> list[tuple[str, str]]:
        """Says whom the guarantee protects, where that is not each record by itself."""
        unit, adjacency = self.guarantee.unit, self.guarantee.adjacency
        return [] if unit == RECORD else [("protects", f"each {unit}: {adjacency.pairs(unit)}")]

    def _repr_html_(self) -> str:
        return SummaryTable("Certificate", self.rows())._repr_html_()

    def _group(self) -> list[str]:
        return [] if self.membership is None else [f"Of one group: {self.membership.explain()}."]

    def _assured(self) -> str:
        if self.assurance == PROVED:
            return "every rounding is part of the proof"
        is_proved = self.assurance == IN_REALS
        said = "proved for real numbers" if is_proved else "which is less than exact, and was asked for by name"
        return said if self.rounding is None else f"{said}; {self._rounded(self.rounding)}"

    def _rounded(self, rounding: Rounding) -> str:
        how = "a grid of random offset" if rounding.units else f"public multiples of 2^-{KEPT_DIGITS} of its unit"
        added = "" if math.isnan(self.rounding_delta) else f", which adds {self.rounding_delta:.2g} to delta"
        return (
            f"output rounded to {how}; by the assumption on float64 other rounding changes the law by at most "
            f"{float(rounding.distance):.2g} in total variation{added}"
        )

    def _with_rounding(self) -> str:
        """Returns (ε, δ) of an exact draw, rounding included, where that is more than the law's."""
        if self.rounding is None:
            return ""
        near = f"within {float(self.rounding.distance):.3g} of that in total variation"
        return f"; with rounding {near if self.epsilon == math.inf else self._proved()}"

    def _proved(self) -> str:
        """Returns (ε, δ) of this release in all."""
        return f"({self.epsilon:.6g}, {self.delta:.3g})-differentially private under {self.guarantee.adjacency}"

    def _parts(self) -> str:
        words = [self.mechanism["type"]]
        for word, name in (("with", "loss"), ("on", "domain")):
            if self.mechanism.get(name):
                words += [word, self.mechanism[name]["type"]]
        return " ".join(words)

    def to_dict(self) -> dict[str, Any]:
        """Returns a JSON-ready dictionary; what is unknown is null."""
        fields = dataclasses.asdict(self)
        delta = None if math.isnan(self.delta) else self.delta
        proved: dict[str, Any] = {"epsilon": self.epsilon, "delta": delta}
        if self.epsilon == math.inf:
            # JSON has no infinity, and zCDP no (ε, 0).
            proved = {"epsilon": None, "delta": None, "rho": self.guarantee.rho}
            if self.rounding is not None:
                proved["distance"] = outward(self.rounding.distance)
        given = {name: one for name, one in fields.items() if name not in _ONLY_IF_GIVEN or one not in (None, ())}
        if self.membership is not None:
            given["membership"] = self.membership.to_dict()
        return {**given, "guarantee": self.guarantee.to_dict(), "proved_of_this_release": proved}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "Certificate":
        """Reads what `to_dict` wrote, for certificates of older releases too.

        Raises ValueError for no certificate's."""
        try:
            fields = renewed({name: value for name, value in fields.items() if name != "proved_of_this_release"})
            for name, read in _READERS.items():
                # Of all fields the rounding alone may be unknown.
                if name in fields and (name, fields[name]) != ("rounding", None):
                    fields[name] = read(fields[name])
            return cls(**fields)
        except (AttributeError, KeyError, TypeError):
            raise ValueError("these are not the fields of a certificate, as Release.to_json writes them") from None


# Fields that certificates without them leave out.
_ONLY_IF_GIVEN = frozenset({"membership", "num_records", "mixture", "proofs"})
# How the fields are read of which JSON has another form.
_READERS: dict[str, Callable[[Any], Any]] = {
    "guarantee": Guarantee.from_dict,
    "sensitivity": lambda fields: Sensitivity(**fields),
    "rounding": lambda fields: Rounding(**{name: tuple(values) for name, values in fields.items()}),
    "assumptions": tuple,
    "unproved": tuple,
    "membership": Membership.from_dict,
    "mixture": lambda fields: Mixture(**fields),
    "proofs": tuple,
}


def _as_call(described: Any) -> str:
    """Writes what `describe` made of a part as a call that names its settings; those that are None are left out."""
    if isinstance(described, dict):
        given = {name: value for name, value in sorted(described.items()) if name != "type" and value is not None}
        return f"{described['type']}({', '.join(f'{name}={_as_call(value)}' for name, value in given.items())})"
    if isinstance(described, list):
        return f"[{', '.join(map(_as_call, described))}]"
    return repr(described)


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_SETTINGS else f"{text[:_LONGEST_SETTINGS]} ... (to_json() has them whole)"


def _proofs_of(draw: AbstractDraw) -> tuple[str, ...]:
    """Lists the pages of the mechanism's proofs, of the draw's, and of what one record or person is."""
    bounds = draw.mechanism.bounds
    units = [("weights", bounds.weight is not None), ("persons", bounds.of_persons)]
    names = [*draw.mechanism.proofs, *draw.proofs, *(name for name, is_so in units if is_so)]
    return tuple(f"docs/proofs/{name}.md" for name in names)


def failures_of(mechanism: AbstractMechanism) -> list[str]:
    """Lists what can make a release of this mechanism fail after the debit, from public settings alone."""
    bounds, loss = mechanism.bounds, mechanism.loss
    causes = [
        "data that cannot be read",
        "too little memory",
        "a draw that is not a number",
        "a library that changed this process's arithmetic during the draw",
        "a ledger that cannot keep the release",
    ]
    if bounds.columns != 0 and None in policy_of_each_column(bounds.missing, 1):
        causes.append("missing values in X without a policy")
    if loss.has_response and bounds.missing_y is None:
        causes.append("responses that are missing, or that the loss has no meaning for, without a policy")
    if bounds.weight is not None and bounds.missing_weight is None:
        what = "rows without an identifier" if bounds.of_persons else "weights that are missing or no number"
        causes.append(f"{what}, without a policy")
    if getattr(mechanism, "max_records", None) is not None:
        causes += TOO_MANY
    return causes
