"""What public facts say of an analysis before it is paid for: its noise, and whether it would be little but noise."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

import kngjax as kng
from kngjax.estimators.analyses import Analysis, Part
from kngjax.estimators.responses import Response
from kngjax.inference.previews import LITTLE
from kngjax.inference.settings import Setting
from kngjax.mechanisms.base import AbstractMechanism

_UNKNOWN_COUNT = (
    "not checked: under add_remove the number of records is private, and without a public guess, num_records=10_000, "
    "nothing is known of the noise"
)

_WEIGHTED = "checked as if every record had the largest weight: with smaller ones noise is larger, and they are private"


@dataclasses.dataclass(frozen=True)
class Expectations:
    """What was expected of the releases of one analysis, in words and numbers. Public.

    **Arguments:** `noise`: of each release the standard deviation of the noise of each number in own units, None where
    it is not known. `words`: how it is known. `warning`: why the releases are little but noise, or that nobody knows.
    """

    noise: tuple[tuple[float, ...] | None, ...]
    words: str | None = None
    warning: str | None = None

    @classmethod
    def from_dict(cls, fields: dict[str, Any] | None) -> "Expectations | None":
        """The inverse of `dataclasses.asdict`."""
        if fields is None:
            return None
        noise = tuple(None if one is None else tuple(one) for one in fields["noise"])
        return cls(noise, fields["words"], fields["warning"])


def preview_of(
    analysis: Analysis,
    part: Part,
    count: int | None,
    design: Any = None,
    residual: Any = None,
    simulate: Any = False,
) -> kng.Preview | None:
    """The preview of one release in own units; None where n is not known, and for mechanisms of other kinds.

    **Arguments:** all public. `part`: of `Analysis.previewed`. `count`: n, or a guess of it. `design`, `residual`,
    `simulate`: as of `kngjax.preview`, or as `design` a frame or a mapping of public or made-up cells in own units.
    """
    is_served = isinstance(analysis.response, Response) and isinstance(part.mechanism, AbstractMechanism)
    if not count or not is_served:
        return None
    terms = analysis.design
    if isinstance(design, Mapping) or hasattr(design, "columns"):
        # Made-up or public cells in own units; a mean or a quantile has none of its own.
        read = None if terms is None else terms.matrix_of if isinstance(design, Mapping) else terms.matrix
        design = None if read is None else read(design)
    assumed = {
        "design": terms if design is None else design,
        "residual": analysis.scale if residual is None else residual,
    }
    found = kng.preview(part.whole, num_records=count, simulate=simulate, **assumed)
    if part.kept != 1.0:
        found = dataclasses.replace(found, kept=part.kept, mechanism="QuantileProcess")
    if analysis.remake is not None:
        labels = [one.label for one in analysis.parts]
        place, number = labels.index(part.label), len(labels)

        def again(count: int, epsilon: float) -> Setting | None:
            made = analysis.at(number * epsilon, count)
            return None if made is None else Setting.of(made.parts[place].mechanism, **assumed)

        found = dataclasses.replace(found, again=again)
    if terms is not None:
        return found.shown_in(analysis.names, terms.own_units_matrix)
    names = analysis.names_of(part)
    units = np.eye(len(names)) if found.own_units is None else found.own_units
    return found.shown_in(names, units)


def expect(analysis: Analysis, count: int | None) -> Expectations:
    """What is expected of an analysis; raises ValueError for one that would be little but noise, unless it is forced.

    **Arguments:** `count`: n, or a guess of it.
    """
    parts = analysis.previewed
    if not isinstance(analysis.response, Response):
        # Of counts and sums the noise is known exactly, and stands beside each number.
        return Expectations((None,) * len(parts))
    if analysis.unweighted is not None:
        # What is little but noise if every record has the largest weight is so with smaller ones.
        of_weights = [preview_of(analysis, part, count) for part in parts]
        if any(one is None or one.expected is None for one in of_weights):
            at_best = expect(analysis.unweighted, count)
        else:
            at_best = expect(dataclasses.replace(analysis, unweighted=None), count)
        return Expectations((None,) * len(parts), warning=at_best.warning or _WEIGHTED)
    if not count:
        return Expectations((None,) * len(parts), warning=_UNKNOWN_COUNT)
    warning = _unclear(analysis, count)
    previews = [preview_of(analysis, part, count) for part in parts]
    for part, preview in zip(parts, previews, strict=True):
        if preview is None or warning is not None or (why := preview.hopeless) is None:
            continue
        of_part = f"{analysis.title}, {part.label}" if len(previews) > 1 else analysis.title
        warning = f"{of_part} would be little but noise: of {count:,} records at epsilon = {preview.epsilon:g} {why}"
        if not analysis.force:
            raise ValueError(
                f"{warning}. {preview.enough()[0].upper()}{preview.enough()[1:]}. Nothing was spent; force=True "
                "releases it all the same"
            )
        warning = warning.replace(
            "would be little but noise", "is little but noise, and was asked for by force=True", 1
        )
    for part, preview in zip(parts, previews, strict=True):
        if preview is None or warning is not None or _has_width(preview):
            continue
        warning = f"no intervals are expected of {part.label}, as there is too much noise"
        # Of features that are spread evenly over their bounds, at best.
        if not analysis.force and not _has_width(kng.preview(part.whole, num_records=count, simulate=False)):
            raise ValueError(
                f"{warning}, of {count:,} records at epsilon = {preview.epsilon:g}. Fewer terms, a larger epsilon or "
                "share, or another covariance would do, as preview() says; intervals=False releases the estimate "
                "alone. Nothing was spent; force=True releases it all the same, but not KNG whose estimate may come "
                "from far off"
            )
    known = [preview for preview in previews if preview is not None and preview.noise is not None]
    noise = tuple(
        None if preview is None or preview.noise is None else tuple(map(float, preview.noise)) for preview in previews
    )
    return Expectations(noise, _in_words(known), warning)


def _unclear(analysis: Analysis, count: int) -> str | None:
    """Why levels of a quantile process have too few records beyond them; raises ValueError unless it is forced."""
    for plan in (part.plan for part in analysis.parts if isinstance(part.plan, kng.QuantileProcess)):
        if (why := plan.refusal(count)) is None:
            continue
        if not analysis.force:
            raise ValueError(f"{why}. Nothing was spent; force=True releases it all the same")
        return f"{why}; it was asked for by force=True"
    return None


def _has_width(preview: kng.Preview) -> bool:
    """Whether intervals are expected, or none were asked for, or nobody knows."""
    return preview.width is None or bool(np.all(np.isfinite(preview.width)))


def expecting(analysis: Analysis, count: int | None) -> Analysis:
    """The analysis with what is expected of it; raises as `expect`."""
    return dataclasses.replace(analysis, expected=expect(analysis, count))


def _in_words(previews: list[kng.Preview]) -> str | None:
    """How the noise is known."""
    if not previews:
        return None
    expected, setting = previews[0].expected, previews[0].setting
    assert expected is not None
    assert setting is not None
    what = "the standard deviation of what is added for privacy"
    if expected.noise.is_exact:
        return f"{what}: exact, whatever the records are"
    pulls = [float(np.max(np.diag(one.expected.noise.pull))) for one in previews if one.expected is not None]
    bias = f"; beside it a ridge takes up to {max(pulls):.0%} of a coefficient" if max(pulls) > 0.01 else ""
    far = max(one.expected.far or 0.0 for one in previews if one.expected is not None)
    left_out = f"; with probability {far:.0%} a draw comes from anywhere in the domain instead" if far > LITTLE else ""
    return f"{what}, previewed from public facts: {'; '.join(setting.words)}{bias}{left_out}"
