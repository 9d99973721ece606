"""Gathers all that is said and chosen before a debit, so that neighbours can be compared."""

import contextlib
import io
import json
import warnings
from collections.abc import Callable
from typing import Any
from unittest import mock

import kngjax as kng
from kngjax.inference import interval_choices, with_intervals
from kngjax.inference.offers import Offer
from kngjax.study import public_facts


class AtDebit(Exception):
    """Ends what was asked for where it would be paid."""


def said_before_the_debit(act: Callable[[], Any]) -> list[Any]:
    """Lists what this says and asks a ledger for until it pays: texts, warnings, refusals, costs, and what it returns.

    A debit is refused in the place of being made, so that no value is looked at and nothing is drawn.
    """
    asked: list[Any] = []

    def note(self: Any, guarantees: Any, what: Any = None, *, proved: bool = True) -> Any:
        asked.append(([one.to_dict() for one in guarantees], json.dumps(what, sort_keys=True, default=str), proved))

    def stop(self: Any, guarantee: Any, what: Any = None, *, proved: bool = True, drawn: bool = False) -> Any:
        note(self, [guarantee], what, proved=proved)
        raise AtDebit("here it would be paid")

    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(kng.Ledger, "require", note),
        mock.patch.object(kng.Ledger, "reserve", stop),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(record=True) as warned,
    ):
        warnings.simplefilter("always")
        try:
            found = act()
        except Exception as error:
            found = type(error).__name__, str(error)
    return [found, asked, out.getvalue(), err.getvalue(), [str(one.message) for one in warned]]


def noting_counts(monkeypatch: Any) -> list[Any]:
    """Puts stubs in the place of previews, which compile, and lists every number of records that reaches one.

    What they answer follows from it, so that it shows in what is chosen too.
    """
    seen: list[Any] = []

    def noted(count: Any, answer: Any = None) -> Any:
        seen.append(count)
        return answer

    def offered(setting: Any, covariance: Any, epsilon: float, count: Any, bandwidth: Any) -> Offer:
        share = 0.45 if count is None else 0.1 + count % 7 / 10
        return noted(count, Offer(share if covariance.share is None else covariance.share, None))

    monkeypatch.setattr(interval_choices, "usual_setting", lambda mechanism, count: noted(count))
    monkeypatch.setattr(interval_choices, "offer_of", offered)
    monkeypatch.setattr(with_intervals, "require_offer", lambda making, mechanism, count, *_: noted(count))
    monkeypatch.setattr(public_facts, "expecting", lambda analysis, count, *_: noted(count, analysis))
    return seen


def sizes_of(count: int) -> tuple[int, ...]:
    """Lists n, n + 1 and 10n."""
    return count, count + 1, 10 * count
