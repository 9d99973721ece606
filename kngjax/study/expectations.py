"""Foresees by public facts alone the noise of an analysis, and refuses one that would be little but noise."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

import kngjax as kng
from kngjax.inference.previews import LITTLE, MOST_NOISE
from kngjax.inference.score_laws import Responses, scatter_is_known
from kngjax.inference.settings import EVEN, Scenario
from kngjax.mechanisms.base import AbstractMechanism
from kngjax.mechanisms.parameters import rounded_up
from kngjax.study.analyses import Analysis, Part
from kngjax.study.column_estimates import CentredSquares, least_noise
from kngjax.study.grouping import GroupSize
from kngjax.study.responses import Response

_UNKNOWN_COUNT = (
    "not checked: under add_remove the number of {} is private, and without a public guess beside adjacency, "
    "num_records=10_000, nothing is known of the noise"
)

_WHAT = "the standard deviation of what is added for privacy"

HOLDS_WITH_IT = "the interval allows for it"

_LEAVE = "Nothing was spent; force=True releases it all the same"

_OPEN_SCATTER = (
    "not checked: how far responses scatter about the regression is not known; their public bounds, or a guess, "
    "scale=, would tell"
)

_WEIGHTED = (
    "noise was checked as if every record had the largest weight: smaller weights, which are private, give more noise"
)

_IN_ONE_GROUP = (
    "checked as if the rows of each {0} lay in one group: where they lie in several, votes of a group are fewer, its "
    "noise is larger, and how they lie is private"
)

_ALL_VOTES = "checked as if each {0} had all {1} votes: with fewer noise is larger, and how many there are is private"


@dataclasses.dataclass(frozen=True)
class Expectations:
    """Holds what was expected of the releases of one analysis, in words and numbers. Public.

    **Arguments:** `noise`: for each release the standard deviation of the noise of each number in own units, where that
    does not depend on the records, but for their number; else None. `words`: how the noise is known, or why it is not.
    `warning`: why the releases are little but noise, or that nobody knows.
    """

    noise: tuple[tuple[float, ...] | None, ...]
    words: str | None = None
    warning: str | None = None


def preview_of(
    analysis: Analysis,
    part: Part,
    count: int | None,
    design: Any = None,
    residual: Any = None,
    times: float = 1.0,
) -> kng.inference.Preview | None:
    """Returns the preview of one release in own units; None where n is not known, and for mechanisms of other kinds.

    **Arguments:** all public. `part`: of `Analysis.previewed`. `count`: n, or a guess of it. `design`, `residual`:
    as of `kngjax.preview`, or as `design` a frame or a mapping of public or made-up cells in own units.
    `times`: as of `expect`.
    """
    is_served = isinstance(analysis.response, Response) and isinstance(part.mechanism, AbstractMechanism)
    if not count or not is_served or (residual is None and _has_open_scatter(analysis, part)):
        return None
    terms = analysis.design
    if isinstance(design, Mapping) or hasattr(design, "columns"):
        # Made-up or public cells in own units; a mean or a quantile has none of its own.
        read = None if terms is None else terms.matrix_of if isinstance(design, Mapping) else terms.matrix
        design = None if read is None else read(design)
    assumed = {
        "design": terms if design is None else design,
        "residual": _usual_of(analysis) if residual is None else residual,
    }
    found = kng.preview(part.whole, num_records=count, simulate=False, **assumed)
    if part.kept != 1.0:
        found = dataclasses.replace(found, kept=part.kept, mechanism="QuantileProcess")
    if analysis.remake is not None:
        labels = [one.label for one in analysis.parts]
        place, number = labels.index(part.label), len(labels)

        def again(count: int, epsilon: float) -> Scenario | None:
            made = analysis.at(number * epsilon, count)
            return None if made is None else Scenario.of(made.parts[place].mechanism, **assumed)

        found = dataclasses.replace(found, again=again)
    found = found.of_group(times)
    if terms is not None:
        return found.shown_in(analysis.names, terms.own_units_matrix)
    names = analysis.names_of(part)
    units = np.eye(len(names)) if found.own_units is None else found.own_units
    return found.shown_in(names, units)


def setting_of(analysis: Analysis, part: Part, count: int | None) -> Scenario | None:
    """Makes the usual assumptions of records for a regression's release; None where nothing tells enough of them."""
    if not count or not isinstance(analysis.response, Response) or _has_open_scatter(analysis, part):
        return None
    return Scenario.of(part.mechanism, analysis.design, _usual_of(analysis))


def _usual_of(analysis: Analysis) -> Any:
    """Guesses how far responses scatter, or None; for rates, the law of the counts at the largest exposure."""
    response = analysis.response
    if not isinstance(response, Response) or response.exposure is None or response.ends is None:
        return analysis.scale
    # Not by how large a rate is allowed to be: what that costs is to be seen.
    largest, longest = response.ranges[response.column][1], response.exposure.bounds[1]
    return Responses.of_rates(min(response.ends[1], largest / longest), longest)


def expect(analysis: Analysis, count: int | None, size: GroupSize | None = None, times: float = 1.0) -> Expectations:
    """Foresees the noise of an analysis; raises ValueError for one that would be little but noise, unless it is forced.

    **Arguments:** `count`: n, or a guess of it. `size`: the size of a group; None for a whole table. `times`: ε of all
    groups over that of one: what is said of ε is in terms of the former, which was asked for.
    """
    parts = analysis.previewed
    if isinstance(analysis.response, CentredSquares):
        return Expectations((None,) * len(parts), warning=_of_sums(analysis, count, times))
    if not isinstance(analysis.response, Response):
        # The noise of counts and sums is known exactly, and stands beside each number.
        return Expectations((None,) * len(parts))
    has_whole_votes = size is None and all(one.mechanism.bounds.has_one_vote for one in analysis.parts)
    if analysis.unweighted is not None and not has_whole_votes:
        # An analysis that is little but noise if every record has the largest weight is so with smaller ones.
        of_weights = [preview_of(analysis, part, count) for part in parts]
        is_known = all(one is not None and one.expected is not None for one in of_weights)
        known = dataclasses.replace(analysis, unweighted=None) if is_known else analysis.unweighted
        at_best = expect(known, count, size, times)
        return Expectations((None,) * len(parts), warning=at_best.warning or _as_checked(analysis))
    if not count:
        counted = parts[0].mechanism.bounds.counted
        return Expectations((None,) * len(parts), warning=_UNKNOWN_COUNT.format(counted))
    warning = _unclear(analysis, count)
    if warning is None and any(_has_open_scatter(analysis, part) for part in parts):
        warning = _OPEN_SCATTER
    previews = [preview_of(analysis, part, count, times=times) for part in parts]
    for part, preview in zip(parts, previews, strict=True):
        if preview is None or warning is not None or (why := preview.hopeless) is None:
            continue
        of_part = f"{analysis.title}, {part.label}" if len(previews) > 1 else analysis.title
        counted = part.mechanism.bounds.counted
        warning = f"{of_part} would be little but noise: of {count:,} {counted} at epsilon = {preview.epsilon:g} {why}"
        if not analysis.force:
            enough, assumed = preview.enough(), _assumed(preview)
            raise ValueError(f"{warning}. {enough[0].upper()}{enough[1:]}{assumed}. {_LEAVE}")
        warning = _as_forced(warning)
    for part, preview in zip(parts, previews, strict=True):
        if preview is None or warning is not None or not part.has_intervals:
            continue
        intervals = preview.intervals
        if intervals is None or (warning := intervals.why_not(f"{analysis.title}, {part.label}")) is None:
            continue
        if not analysis.force:
            raise ValueError(
                f"{warning}; intervals=False releases the estimate alone. Nothing was spent; force=True releases them "
                "all the same, and they may be very wide"
            )
    noise = tuple(_stated(preview, size) for preview in previews)
    return Expectations(noise, _in_words(analysis, previews, None not in noise, size), warning)


def _as_checked(analysis: Analysis) -> str:
    """Says of records with weights, or of persons, how many votes the check took them to have."""
    bounds = analysis.parts[0].mechanism.bounds
    if not bounds.of_persons:
        return _WEIGHTED
    words = _IN_ONE_GROUP if bounds.has_one_vote else _ALL_VOTES
    return words.format(bounds.protects, bounds.unit.most_rows)


def _unclear(analysis: Analysis, count: int) -> str | None:
    """Says why levels of a quantile process have too few records beyond them; raises ValueError unless it is forced."""
    for plan in (part.plan for part in analysis.parts if isinstance(part.plan, kng.QuantileProcess)):
        if (why := plan.refusal(count)) is None:
            continue
        if not analysis.force:
            raise ValueError(f"{why}. Nothing was spent; force=True releases it all the same")
        return f"{why}; it was asked for by force=True"
    return None


def _of_sums(analysis: Analysis, count: int | None, of_all: float) -> str | None:
    """Says why a variance, or a mean of a private number, is little but noise at best; raises ValueError unless forced.

    Its noise is least where the mean lies in the middle of the bounds. A variance is known to lie within [0, h²], and a
    mean within [-h, h] about it. **Arguments:** `of_all`: `times` of `expect`.
    """
    columns, (part,) = analysis.response, analysis.parts
    assert isinstance(columns, CentredSquares)
    if not count:
        return None
    half, of = columns.half_width, part.label
    noise, room = least_noise(part, count), EVEN * (2.0 * half if of == "mean" else half**2)
    epsilon, times = of_all * float(part.mechanism.epsilon), noise / (MOST_NOISE * room)
    if times < 1.0:
        return None
    counted = part.mechanism.bounds.counted
    warning = (
        f"{analysis.title} would be little but noise: of {count:,} {counted} at epsilon = {epsilon:g} noise of "
        f"standard deviation {noise:.2g} or more is expected in a {of} that is known to {room:.2g} by the public "
        "bounds alone"
    )
    if analysis.force:
        return _as_forced(warning)
    enough = f"{rounded_up(times * count)} {counted} or epsilon = {rounded_up(times * epsilon)} would do"
    raise ValueError(f"{warning}. {enough}. {_LEAVE}")


def _as_forced(warning: str) -> str:
    return warning.replace("would be little but noise", "is little but noise, and was asked for by force=True", 1)


def _assumed(preview: kng.inference.Preview) -> str:
    """Says in words what the refusal assumes of the records; empty where the noise is exact."""
    assert preview.expected is not None
    assert preview.setting is not None
    return "" if preview.expected.noise.is_exact else f", with {'; '.join(preview.setting.words)}"


def _has_open_scatter(analysis: Analysis, part: Part) -> bool:
    """Whether nobody said how far the responses of a regression scatter: neither their bounds nor a scale."""
    return analysis.design is not None and analysis.scale is None and not scatter_is_known(part.mechanism)


def expecting(analysis: Analysis, *of: Any) -> Analysis:
    """Adds its expectations to an analysis. **Arguments:** `of`: those of `expect`, which raises."""
    return dataclasses.replace(analysis, expected=expect(analysis, *of))


def _stated(preview: kng.inference.Preview | None, size: GroupSize | None) -> tuple[float, ...] | None:
    """The noise of a release if it follows from public facts alone, without assumptions on the records; else None.

    Such noise is exact, or that of a mean, which depends on n alone.
    """
    if preview is None or preview.noise is None or preview.expected is None:
        return None
    is_of_count = _is_of_mean(preview) and (size is None or size.is_known) and preview.trusted
    return tuple(map(float, preview.noise)) if preview.expected.noise.is_exact or is_of_count else None


def _is_of_mean(preview: kng.inference.Preview) -> bool:
    setting = preview.setting
    return setting is not None and setting.responses is None and setting.rows is None


def _in_words(analysis: Analysis, previews: list[Any], is_stated: bool, size: GroupSize | None) -> str | None:
    """Says how the noise is known, or why it is not. **Arguments:** `is_stated`: which of the two."""
    known = [one for one in previews if one is not None and one.expected is not None and one.setting is not None]
    if not known:
        return None
    if all(one.expected.noise.is_exact for one in known):
        return f"{_WHAT}: exact, whatever the records are"
    if is_stated:
        return f"{_WHAT}: exact if records are {(size or GroupSize(None)).in_words}"
    pulls = [float(np.max(np.diag(one.expected.noise.pull))) for one in known]
    corrected = ", for which estimates are corrected" * any(part.has_intervals for part in analysis.parts)
    bias = f"; a ridge is expected to take up to {max(pulls):.0%} of a coefficient{corrected}" * (max(pulls) > 0.01)
    far = max(one.expected.far or 0.0 for one in known)
    left_out = f"; with probability {far:.0%} a draw comes from anywhere in the domain" if far > LITTLE else ""
    return f"not stated: {_why_not(analysis, known, size)}{bias}{left_out}{_of_rare(analysis, known)}"


def _of_rare(analysis: Analysis, known: list[kng.inference.Preview]) -> str:
    """Says above which mean of the counts a Poisson regression is more than noise: the number of events is private."""
    shares = [one.least_curvature() for one in known if analysis.link == "rate" and one.hopeless is None]
    responses = known[0].setting.responses if known[0].setting is not None else None
    if not shares or responses is None:
        return ""
    least = max(shares) * float(np.mean(responses.quantiles))
    return f"; it was checked with {responses.words}: where the mean is below {least:.2g} it is little but noise"


def _why_not(analysis: Analysis, known: list[kng.inference.Preview], size: GroupSize | None) -> str:
    """Says in words which unknown facts the noise depends on."""
    if all(map(_is_of_mean, known)):
        if size is not None and not size.is_known:
            return size.why_unknown
        return "of so few records it depends on where in the bounds the mean lies"
    instead = "preview(residual=...) says what it is of values that lie as you assume"
    if analysis.design is None:
        if any(isinstance(part.mechanism, kng.QuantileInterval) for part in analysis.parts):
            return HOLDS_WITH_IT
        return f"it depends on how near to each other values lie there, and is large beside ties; {instead}"
    if any(part.has_intervals for part in analysis.parts):
        return "the intervals allow for it"
    return f"it depends on how columns and responses lie, which is private; {instead.replace('(', '(design=..., ')}"
