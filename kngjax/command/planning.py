"""The public parts of a job, made before its data are read: basis, bounds, one mechanism a regression, the sampler.

Whatever the library refuses of them is told in the terms of the job's file.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

import kngjax as kng
from kngjax.accounting.exact import inward
from kngjax.accounting.guarantees import Kind
from kngjax.command import registry
from kngjax.command.config import Config, Term
from kngjax.data import terms
from kngjax.estimators.analyses import Analysis, Part, bounds_of, bounds_of_values, names_of_values
from kngjax.estimators.carrying_out import Released
from kngjax.mechanisms.parameters import whole_epsilon
from kngjax.releases import totals
from kngjax.releases.certificate import describe
from kngjax.releases.debits import in_json, settings

# The guarantee of all releases together is also stated at this delta.
DELTA = 1e-6


NOTE = (
    "coefficients are the released basis coefficients (release.value) times a public matrix: post-processing, which "
    "costs no privacy. Predict with the basis: high powers in own units lose digits."
)


@dataclasses.dataclass(frozen=True)
class Result:
    """Holds one release of a job: nothing in it is private.

    **Arguments:** `regression`; `release`, whose value are basis coefficients; `coefficients`, shape (k + 1,), the
    same in the data's own units.
    """

    regression: Part
    release: Released
    coefficients: np.ndarray


def translate_errors(config: Any, table: str, make: Callable[[], Any]) -> Any:
    """Calls `make`; its errors, which are about public settings, are told in the file's terms and with the table."""
    try:
        return make()
    except (TypeError, ValueError) as error:
        message = registry.in_toml(str(error))
        # Whatever takes them, these are keys of one table; and some messages name theirs.
        table = "privacy" if message.startswith(("epsilon ", "delta ")) else table
        raise type(error)(f"{config.path}: {message if message.startswith('[') else f'[{table}] {message}'}") from None


def design(config: Config) -> terms.Design | None:
    """The public basis of the job's terms, None without terms; raises as `kngjax.data.terms` does."""

    def of(term: Term) -> terms.Polynomial | terms.Categorical:
        if term.bounds is not None:
            return terms.Polynomial(term.column, *term.bounds, degree=term.degree, missing=term.missing)
        return terms.Categorical(term.column, term.levels or (), missing=term.missing)

    if not config.terms:
        return None
    return translate_errors(config, "terms", lambda: terms.Design(tuple(of(term) for term in config.terms)))


def regressions(config: Config) -> list[Part]:
    """Makes one mechanism a regression, with epsilon and delta split as the job declares. Public: made without data.

    **Raises:** `ValueError` or `TypeError` naming the file and the table whose settings make no mechanism.
    """
    kind = registry.public(registry.MECHANISMS[config.mechanism.type])
    given = {"bounds": _bounds(config), "adjacency": config.privacy.adjacency}
    given |= translate_errors(config, "mechanism", lambda: registry.settings(kind, config.mechanism.settings))
    takes = registry.parameters(kind)
    if config.privacy.delta is not None and "delta" not in takes:
        raise ValueError(f"{config.path}: [privacy] delta: the guarantee of {kind.__name__} has none: leave it out")
    planned = []
    for label, loss, epsilon, delta in zip(config.labels, _losses(config), config.parts, config.deltas, strict=True):
        shared = {"loss": loss, "epsilon": epsilon, "delta": delta}
        numbers = {
            name: _rounded_down(part) if isinstance(part, Fraction) else part
            for name, part in shared.items()
            if part is not None
        }
        mechanism = translate_errors(config, "mechanism", lambda numbers=numbers: kind(**given, **numbers))
        planned.append(Part(label, mechanism, epsilon))
    if config.privacy.epsilon is not None and not config.mechanism.settings.get("allow_large_epsilon"):
        # Whatever each has of it.
        translate_errors(config, "privacy", functools.partial(whole_epsilon, config.privacy.epsilon, False))
    return planned


def analysis(config: Config, num_records: int | None = None) -> Analysis:
    """All regressions of the job: they share their records. Raises as `regressions` and `sampler`.

    **Arguments:** `num_records`: n, where it is public and known, for the intervals.
    """
    parts, basis = tuple(regressions(config)), design(config)
    if config.intervals is not None:
        asked = None if config.intervals.asked is True else config.intervals.asked
        if isinstance(asked, kng.PublicDesign) and basis is not None:
            asked = translate_errors(config, "intervals", functools.partial(asked.by_terms, basis))
        parts = tuple(
            translate_errors(config, "intervals", functools.partial(_with_intervals, config, one, asked, num_records))
            for one in parts
        )
    asked = sampler(config)
    return Analysis(config.name, config.response.public, basis, parts, sampler=asked, codes=config.codes)


def _with_intervals(config: Config, part: Part, covariance: Any, num_records: int | None) -> Part:
    """Raises ValueError, of public facts alone, where intervals in own units are expected to have no ends."""
    assert config.intervals is not None
    basis, intervals = design(config), config.intervals
    asked = kng.WithIntervals(part.mechanism, covariance, intervals.num_records, force=intervals.force)
    plan = asked.settled(num_records)
    plan.require_ends(num_records, basis, None if basis is None else basis.own_units_matrix)
    # That is decided, and with the terms.
    plan = dataclasses.replace(plan, force=True)
    return dataclasses.replace(part, mechanism=plan.making().mechanism, plan=plan)


def interval(config: Config, result: Result) -> kng.Interval | kng.NoInterval:
    """Returns the interval of the coefficients in own units, or of a mean, at the level of the job."""
    basis = design(config)
    assert config.intervals is not None
    assert isinstance(result.release, kng.ReleaseWithIntervals)
    return result.release.intervals(config.intervals.level, None if basis is None else basis.own_units_matrix)


def interval_in_json(config: Config, result: Result) -> dict[str, Any]:
    """Returns an interval as JSON-ready fields, or the reason why there is none."""
    found = interval(config, result)
    if isinstance(found, kng.NoInterval):
        return {"none": found.reason}
    ends = {"lower": found.lower.tolist(), "upper": found.upper.tolist()}
    return ends | {"level": found.level, "method": found.method, "assumptions": list(found.assumptions)}


def records(config: Config, frame: Any) -> tuple[np.ndarray | None, np.ndarray]:
    """The basis columns and the transformed response, as `Analysis.records`. Private."""
    x, y, _ = analysis(config).records(frame)
    return x, y


def public_settings(config: Config) -> dict[str, Any]:
    """All that decides what is released, whatever the file is called; JSON-ready."""
    asked = sampler(config)
    return {
        "response": dataclasses.asdict(config.response),
        "terms": [dataclasses.asdict(term) for term in config.terms],
        "sampler": None if asked is None else in_json(describe(asked)),
        "regressions": [[one.label, str(one.epsilon), settings(one.mechanism)] for one in regressions(config)],
        **({} if config.intervals is None else {"intervals": config.intervals.written}),
    }


def _losses(config: Config) -> list[Any]:
    """The loss of each release; None for a mechanism that has its own."""
    loss = config.loss
    if loss is None:
        return [None]
    choices = [loss.settings] if loss.tau is None else [{"tau": tau} | loss.settings for tau in loss.tau]
    kind = registry.public(registry.LOSSES[loss.type])
    return [translate_errors(config, "loss", lambda choice=choice: kind(**choice)) for choice in choices]


def _bounds(config: Config) -> kng.Bounds:
    basis, response = design(config), config.response.public
    if basis is not None:
        # Of classes the logistic loss knows the bounds.
        are_classes = config.loss is not None and config.loss.type == "logistic" and response.levels is not None
        return bounds_of(basis, response, {} if are_classes else None)
    if response.ends is None:
        raise ValueError(f"{config.path}: [response] needs the key 'bounds': [lower, upper] of the column, public")
    if config.mechanism.type == "k_norm":
        return bounds_of_values(response, response.ends)
    return bounds_of(None, response)


def _rounded_down(exact: Fraction) -> float:
    """The largest float64 that is at most this number, so that parts never add up to more than the whole."""
    # In binary and as the decimal that it prints as, which is what sums are made of.
    nearest = inward(exact)
    return nearest if Fraction(nearest) <= exact else math.nextafter(nearest, 0.0)


def sampler(config: Config) -> Any:
    """The sampler that the job asks for, or None for the mechanism's best; raises ValueError for unknown settings."""
    if config.sampler is None:
        return None
    kind, given = registry.public(config.sampler.type), config.sampler.settings
    return translate_errors(config, "sampler", lambda: kind(**registry.settings(kind, given)))


def names(config: Config, mechanism: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names the parts of a released value, in the basis and in the data's own units."""
    if (basis := design(config)) is not None:
        return tuple(basis.basis_names), tuple(basis.names)
    of_values = names_of_values(mechanism, config.response.name)
    return of_values, of_values


def together(planned: Sequence[Part]) -> kng.Guarantee:
    """The guarantee of these releases together, each with its exact ε where that is all there is to it."""
    return totals.composed([one.law for one in planned])


def composition(planned: Sequence[Part]) -> str:
    """How releases of the same records compose, in one sentence, with exact sums."""
    guarantee = together(planned)
    start = "all releases of the same records together: "
    if guarantee.delta > 0:
        return start + guarantee.explain()
    converted = guarantee.at(delta=DELTA)
    rho = "" if guarantee.rho is None else f"; and {guarantee.rho:g}-zCDP, the sum of {_rule(planned)}"
    return (
        f"{start}pure epsilon = {guarantee.epsilon:g}, the exact sum of "
        f"{' + '.join(str(one.epsilon) for one in planned)}{rho}"
        # For few releases the conversion says nothing new.
        + (f", hence ({converted:.4g}, {DELTA:g})-DP" if converted < 0.99 * guarantee.epsilon else "")
    )


def statement(results: Sequence[Result]) -> str:
    """How these releases compose, and what is proved of them besides: not that of their laws, or more."""
    certificates = [one for result in results for one in certificates_of(result.release)]
    return composition([result.regression for result in results]) + totals.explain_cost(certificates)


def certificates_of(release: Released) -> list[kng.Certificate]:
    """Lists the certificates of a release: with intervals, of each part."""
    parts = release.parts if isinstance(release, kng.ReleaseWithIntervals) else (release,)
    return [one.certificate for one in parts]


def _rule(planned: Sequence[Part]) -> str:
    if any(one.plan is not None and len(one.making.laws) > 1 for one in planned):
        return "those of the estimates and of what their intervals are made of"
    ranges = all(one.law.kind is Kind.BOUNDED_RANGE for one in planned)
    return "epsilon^2/8" if ranges else "epsilon^2/2"
