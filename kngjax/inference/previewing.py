"""Previews what a release will be worth, before anything is spent, from public facts alone."""

import dataclasses
import functools
from typing import Any

import numpy as np

from kngjax.core.summary_table import names_of
from kngjax.data.terms import Design
from kngjax.inference.estimands import target_in_words
from kngjax.inference.interval_choices import interval_plan_of
from kngjax.inference.interval_previews import IntervalPreview
from kngjax.inference.previews import Preview
from kngjax.inference.score_laws import Responses
from kngjax.inference.settings import Scenario
from kngjax.inference.simulated import simulated_noise
from kngjax.inference.with_intervals import WithIntervals
from kngjax.mechanisms.base import AbstractMechanism
from kngjax.sensitivity import weighted


def preview(
    mechanism: AbstractMechanism | WithIntervals,
    *,
    num_records: int,
    design: Any = None,
    residual: Any = None,
    simulate: bool | None = None,
    target: Any = None,
    coefficients: Any = None,
) -> Preview:
    """Previews what a release of n records would be worth, with no data and nothing spent.

    At the released θ̃ the gradient is noise of a known law, ∇ℓ_n(θ̃) = z, so that θ̃ - θ0 ≈ H^{-1}(z - S) with
    H = Σρ''xx' and S ≈ N(0, Σs²xx') at the θ0 that records scatter about. H and the law of S follow from the
    assumptions below (Reimherr and Awan 2019, Theorem 3.2). Objective perturbation has z = -(b + γ(θ̃ - c)); output
    perturbation and AdaSSP add their noise in closed form.

    **Arguments:** all public.

    - `mechanism`: any, or a plan `WithIntervals`, whose `width` then says how wide its intervals will be. The noise of
        `AdaOPS` and `PrivateIRLS` is not known beforehand, and counts and moments of designs have no standard error:
        the preview then has None. All weights of records are taken to be the largest.
    - `num_records`: n, or under add_remove a guess of it.
    - `design`: what the features will be like. None takes them to be spread evenly over their bounds, which is the best
        case: real ones fill less of their bounds, and figures are withheld. Else rows, (m, columns), public or made up;
        or a function of a key and a number of rows to such; or `kngjax.terms.Design`, for an even spread in own units.
    - `residual`: the law of responses about the regression, as a NumPyro distribution or as the standard deviation of
        a normal one; for logistic and Poisson regression the law of the responses, for a quantile of numbers that of
        the numbers. None takes a tenth of the width of the bounds of y; half of the responses 1; a mean count of a
        tenth of its bound.
    - `simulate`: whether to draw from the mechanism itself on a hundred made-up tables, which takes seconds to
        minutes. None does so for regressions with n·ε < 30d, where the limit law says little, unless they are
        hopeless. Records with weights are not simulated.
    - `target`: the estimand that `bias` refers to: "mean", "median" or the level of a quantile of responses given
        features. None takes the level of a quantile loss, smoothed or not, and the mean for the squared, Huber and
        pseudo-Huber losses; expectiles are their own target.
    - `coefficients`: a guess of the coefficients, shape (d,), the intercept first. The noise of `AdaSSP` on X'X depends
        on them; other mechanisms ignore the guess. None takes the middle of the bounds of y and slopes of 0, and
        `explain` says by how much noise may then be larger. With a guess nothing is simulated.

    Raises ValueError where the number of columns or the scatter of responses is left open, and for more records than
    the mechanism's `max_records`.
    """
    if not isinstance(num_records, int | np.integer) or num_records < 1:
        raise ValueError(f"num_records must be a whole number of at least 1, not {num_records!r}")
    assumed = design, residual, target, coefficients
    if isinstance(mechanism, WithIntervals):
        found = _of_plan(mechanism, int(num_records), assumed)
    elif isinstance(mechanism, AbstractMechanism):
        found = _of(mechanism, int(num_records), assumed)
    else:
        raise TypeError(f"a preview is of a mechanism, such as KNG(...), and not of {type(mechanism).__name__}")
    setting, expected = found.setting, found.expected
    if setting is None or expected is None or setting.rows is None:
        return found
    if setting.coefficients is not None and expected.noise.at is not None:
        # Made-up tables have slopes of 0.
        return found
    if simulate is False or (simulate is None and (found.has_enough or found.hopeless is not None)):
        return found
    return dataclasses.replace(found, simulated=simulated_noise(setting, num_records, expected))


def _of(given: AbstractMechanism, num_records: int, assumed: tuple[Any, ...]) -> Preview:
    """Previews a mechanism. **Arguments:** `assumed`: design, residual, target and coefficients."""
    given.intake.check_count(num_records)
    mechanism = given.for_count(num_records)
    setting = Scenario.of(mechanism, *assumed)
    expected = None if setting is None else setting.expected(num_records)
    found = Preview(type(mechanism).__name__, num_records, setting, expected, _names(mechanism, setting))
    if setting is not None and expected is not None and not expected.noise.is_exact:
        found = dataclasses.replace(found, withheld=_why_withheld(setting, *assumed[:2]))
    if getattr(mechanism, "statistic", None) == "sum":
        # It is n times a mean, and W times that where every record has the largest weight.
        times = num_records * weighted.largest(mechanism.bounds)
        found = found.shown_in(found.names, times * np.eye(len(found.names)))
    if mechanism is not given:
        found = dataclasses.replace(found, again=functools.partial(_of_count, given, assumed))
    return found


def _of_plan(plan: WithIntervals, num_records: int, assumed: tuple[Any, ...]) -> Preview:
    """Previews the estimate of a plan, which has a part of ε, and its intervals."""
    setting = Scenario.of(plan.mechanism, *assumed)
    making = interval_plan_of(plan.mechanism, plan.covariance, plan.num_records or num_records, None, setting)
    found = _of(making.mechanism, num_records, assumed)
    kept = float(making.mechanism.epsilon) / float(plan.mechanism.epsilon)
    if (of_one := found.again) is not None:
        found = dataclasses.replace(found, again=lambda count, epsilon: of_one(count, kept * epsilon))
    found = dataclasses.replace(found, kept=kept)
    if setting is None or found.expected is None:
        return found
    return dataclasses.replace(found, intervals=IntervalPreview(making, setting, num_records))


def _of_count(mechanism: Any, assumed: tuple[Any, ...], num_records: int, epsilon: float) -> Scenario | None:
    """Makes the assumptions about a mechanism whose settings follow from n; None where n is too small for it.

    **Arguments:** `assumed`: as of `_of`.
    """
    try:
        made = mechanism.at_epsilon(epsilon).for_count(num_records)
    except ValueError:
        return None
    return Scenario.of(made, *assumed)


def _why_withheld(setting: Scenario, design: Any, residual: Any) -> str | None:
    """Says what nobody described of the records that the noise goes by; None where all of that was, or there is none.

    Regressions have the noise that is previewed to a factor of 1.3 with rows that lie as the table's do, and up to 16
    times more or less with any usual ones; of losses that are not of the mean it goes by how responses scatter as well.
    """
    if setting.responses is None:
        return None
    is_described = not (design is None or isinstance(design, Design))
    # Where all rows are alike, as of an intercept alone, there is nothing to describe.
    has_rows = is_described or setting.rows is None or not np.any(np.ptp(setting.rows, axis=0))
    # Without a law of residuals the responses are 0 or 1, or counts, which no standard deviation describes.
    has_scatter, is_number = setting.responses.law is not None, isinstance(residual, int | float | np.number)
    has_law = residual is not None and not isinstance(residual, Responses) and (has_scatter or not is_number)
    if has_rows and (has_law or (setting.rows is not None and setting.target == target_in_words("mean"))):
        return None
    of_rows = "how far responses scatter" if has_scatter else "the law of responses, Bernoulli(0.1) or Poisson(2.0)"
    of_law = "the law of values" if setting.rows is None else of_rows
    lacks = [] if has_rows else ["design=rows, public or made-up ones that lie as the table's do"]
    lacks += [] if has_law else [f"residual=, {of_law}"]
    what = "how values lie" if setting.rows is None else "how columns and responses lie"
    needed = f"preview({', '.join(lacks)})"
    return f"it depends on {what}, and any usual guess may be wrong by a factor of 1.3 or more: describe them, {needed}"


def _names(mechanism: AbstractMechanism, setting: Scenario | None) -> tuple[str, ...]:
    declared = mechanism.bounds.coefficients
    if setting is None or (declared is not None and len(declared) == setting.dimension):
        return declared or ()
    return names_of(None, setting.dimension)
