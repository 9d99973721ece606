"""Results that were written as six classes, each with a format of its own, are read and say the same."""

import json
import pathlib

import pytest

import kngjax as kng

OLDER = pathlib.Path(__file__).parent / "older"
KINDS = {
    **dict.fromkeys(("estimate", "estimate_with_interval"), "estimate"),
    **dict.fromkeys(("moment", "sum"), "moment"),
    **dict.fromkeys(("count", "table"), "table"),
    **dict.fromkeys(("regression", "regression_with_intervals", "logistic"), "regression"),
    "process": "process",
    **dict.fromkeys(("groups_of_regressions", "groups_of_tables"), "groups"),
}
NEW = {"education": [8, 12], "region": ["north", "north"]}


def said(results):
    """The summary but for the assurance, all numbers, and predictions where there are some, as the kept texts do.

    Its layout is not kept: each fact and note is a line.
    """
    summary, tables = results.summary(), [results.to_frame()]
    if "design" in dir(results) or "regression" in results.title:
        tables.append(results.predict(NEW))
    lines = [f"{name}: {words}\n" for name, words in summary.facts if name != "assurance"]
    return "".join([f"{summary.title}\n", *lines, *(one.to_csv(index=False, float_format="%.10g") for one in tables)])


@pytest.mark.parametrize("name", KINDS)
def test_older_results_say_what_they_said(name):
    text = (OLDER / f"{name}.json").read_text(encoding="utf-8")
    assert "kind" not in json.loads(text)
    results = kng.Results.from_json(text)
    assert results.view.kind == KINDS[name]
    for one in (results, kng.Results.from_json(results.to_json())):
        assert said(one) == (OLDER / f"{name}.txt").read_text(encoding="utf-8")
