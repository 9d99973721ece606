"""Codes that count as missing in every analysis, and the owner's check: what would fail, told before anybody pays."""

import datetime
import json
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest

import kngjax as kng
from kngjax.study.study import Study
from tests.study.methods import METHODS
from tests.study.people import BOUNDS, LEVELS, PEOPLE
from tests.words import words_of

POLICIES = {"wage": 500, "education": 12, "sick": 2, "region": "north", "parttime": "no"}
CODES = {"wage": [9999999, -1], "education": 99, "sick": [-7], "region": ["refused"], "parttime": ["?", 8]}


def coded(frame, share=7):
    """Every seventh cell of each column holds a code, another one a row later in the next column."""
    made = frame.astype(object)
    for start, (name, codes) in enumerate(CODES.items()):
        held = np.arange(len(frame)) % share == start
        listed = codes if isinstance(codes, list) else [codes]
        made.loc[held, name] = [listed[place % len(listed)] for place in range(held.sum())]
    return made


def gaps(frame, share=7):
    """The same with nothing in these cells."""
    made = frame.astype(object)
    for start, name in enumerate(CODES):
        made.loc[np.arange(len(frame)) % share == start, name] = None
    return made


def study_of(frame, **settings):
    bounds, levels = BOUNDS, {**LEVELS}
    policies = {name: value for name, value in POLICIES.items() if name in {**bounds, **levels}}
    return kng.Study(frame, bounds=bounds, levels=levels, adjacency="replace", missing=policies, **settings)


@pytest.fixture
def asked(monkeypatch):
    """Studies answer with what would be released, and of which frame."""
    monkeypatch.setattr(
        Study, "_carry_out", lambda self, analysis, results: (self.facts.weighted(analysis), self._frame)
    )


def same(one, other):
    if isinstance(one, tuple):
        return all(same(first, second) for first, second in zip(one, other, strict=True))
    return (one is None and other is None) or np.asarray(one).tobytes() == np.asarray(other).tobytes()


@pytest.mark.parametrize("name", METHODS)
def test_a_code_counts_as_a_missing_cell(asked, name):
    """In every method, and in groups: bit for bit what the same table with nothing in these cells gives."""
    held, empty = study_of(coded(PEOPLE), missing_codes=CODES), study_of(gaps(PEOPLE))
    for by in ((), ("region",)):
        if by and (
            not METHODS[name].groups or name in ("histogram", "crosstab") or "region" in str(METHODS[name].what)
        ):
            continue
        made = [METHODS[name].ask(one.by(*by, num_records=1000) if by else one) for one in (held, empty)]
        found = [analysis.records(frame) for analysis, frame in made]
        assert same(*found)
        told = " ".join(made[0][0].told)
        columns = {*made[0][0].columns} if not by else {*by, *made[0][0].analyses[0].columns}
        assert all((f" in {column}" in told) == (column in columns) for column in CODES)
        assert made[1][0].told == ()


def test_certificates_and_debits_tell_of_codes(tmp_path):
    frame = pl.DataFrame({"w": [*[1500.0] * 1800, *[9_999_999.0] * 200], "g": ["a", "b"] * 1000})
    ledger = kng.Ledger.create(tmp_path / "book", kng.Budget.pure(9), adjacency="replace", dataset="d")
    facts = {"bounds": {"w": (0, 3000)}, "levels": {"g": ("a", "b")}, "missing": {"w": 1500}, "adjacency": "replace"}
    coded = kng.Study(frame, **facts, ledger=ledger, missing_codes={"w": [9_999_999]})
    words = "cells that hold a code count as missing: 9999999 in w"
    one = coded.mean("w", epsilon=1)
    assert abs(one.value - 1500) < 40
    assert words in json.loads(one.to_json())["releases"][0]["certificate"]["assumptions"]
    assert words in str(ledger.path.read_bytes())
    grouped = coded.by("g").mean("w", epsilon=1)
    assert words in grouped.to_json()
    plain = kng.Study(frame, **facts).mean("w", epsilon=1)
    assert "hold a code" not in plain.to_json()
    one_code = kng.Study(frame, **facts, missing_codes={"w": 9_999_999})
    assert abs(one_code.mean("w", epsilon=1).value - 1500) < 40


def test_weights_have_codes_too():
    frame = pd.DataFrame({"v": [1.0, 3.0], "u": [2.0, 99.0]})
    facts = {"bounds": {"v": (0, 9), "u": (0, 4)}, "missing": {"u": 0.0}, "adjacency": "add_remove", "weights": "u"}
    study = kng.Study(frame, **facts, missing_codes={"u": 99})
    analysis = study.plan().sum("v", epsilon=1)
    assert analysis.records(frame)[2].tolist() == [2.0, 0.0]
    assert analysis.told == ("cells that hold a code count as missing: 99 in u",)


DAYS = pd.date_range("2020-01-01", periods=2000)
DATES = (datetime.date(2020, 1, 1), datetime.date(2020, 12, 31))
WAGES = np.linspace(1, 1999, 2000)


def wages(places, value):
    column = WAGES.astype(object)
    column[places] = value
    return column


# A column with what was said of it, whether releases can read it, and what the owner is told, in words.
CHECKED = {
    "right": (WAGES, {}, True, "v 0 0"),
    "missing": (wages(slice(3), None), {}, False, "3 cells are missing, no number or no declared level"),
    "missing, with a policy": (wages(slice(3), None), {"missing": {"v": 7}}, True, "v 0.0015 0.0015"),
    "marks": (wages(slice(20), "1,234"), {"missing": {"v": 7}}, True, "20 cells are numbers with other marks"),
    "currencies": (wages(slice(20), "$ 1 234.50"), {}, False, "20 cells are numbers with other marks"),
    "decimal commas": (wages(slice(20), "12,5"), {}, False, "20 cells are numbers with other marks"),
    "text": (wages(slice(20), "refused"), {}, False, "20 cells are text that is no number"),
    "a code beyond": (wages(slice(50), 9999999), {}, True, "50 cells hold 9999999, beyond the bounds"),
    "a code at the end": (wages(slice(50), 99999), {"bounds": {"v": (0, 99999)}}, True, "missing_codes={'v': [99999]}"),
    "a code below": (wages(slice(50), -9), {}, True, "50 cells hold -9, beyond the bounds"),
    "a code that was said": (
        wages(slice(50), 9999999),
        {"missing": {"v": 7}, "missing_codes": {"v": 9999999}},
        True,
        "50 cells hold a code of missing_codes",
    ),
    "dates in bounds": (DAYS, {"bounds": {"v": DATES}}, True, "v 0.817 0"),
    "dates beyond": (
        [*[datetime.date(9999, 12, 31)] * 50, *DAYS[50:]],
        {"bounds": {"v": DATES}},
        True,
        "50 cells hold 9999-12-31, beyond the bounds, where they count as the end: if it is a code for what is "
        "missing, say missing_codes={'v': ['9999-12-31']}",
    ),
    "dates at the end": (
        [*[datetime.datetime(1900, 1, 1)] * 50, *DAYS[50:]],
        {"bounds": {"v": (datetime.date(1900, 1, 1), DATES[1])}},
        True,
        "50 cells hold 1900-01-01, at an end of the bounds: if it is a code for what is missing, say "
        "missing_codes={'v': ['1900-01-01']}",
    ),
    "a date that was said": (
        [*["9999-12-31"] * 50, *map(str, DAYS[50:])],
        {"bounds": {"v": DATES}, "missing": {"v": DATES[0]}, "missing_codes": {"v": "9999-12-31"}},
        True,
        "50 cells hold a code of missing_codes",
    ),
    "dates as others write them": (
        [*["31.12.2020"] * 50, *map(str, DAYS[50:])],
        {"bounds": {"v": DATES}},
        False,
        "Say missing={'v': ...} of those that are left once the others below were converted [2] v: 50 cells hold "
        "something that is no date as 2020-01-31 is written, and count as missing: convert the column",
    ),
    "no date, with a policy": (
        ["31.12.2020"] * 2000,
        {"bounds": {"v": DATES}, "missing": {"v": DATES[0]}},
        True,
        "no cell is read: every record counts as missing={'v': ...} says, whatever it holds [2] v: 2000 cells hold",
    ),
    "no number, with a policy": (["1.234,5"] * 2000, {"missing": {"v": 7}}, True, "no cell is read: every record"),
    "numbers where dates are due": (
        WAGES,
        {"bounds": {"v": DATES}},
        False,
        "v: the bounds of column 'v' are dates, and",
    ),
    "dates": (DAYS, {}, False, "the column's type holds neither numbers nor text"),
    "levels": (
        ["a", "b", "east", None] * 500,
        {"levels": {"v": ("a", "b")}},
        False,
        "500 cells have none of the declared levels: 'east' (500)",
    ),
    "levels, with a policy": (
        ["a", "b", "east", None] * 500,
        {"levels": {"v": ("a", "b")}, "missing": {"v": "a"}},
        True,
        "v 0.5 0.25",
    ),
}


@pytest.mark.parametrize(("column", "said", "fits", "words"), CHECKED.values(), ids=CHECKED)
def test_the_owner_is_told_what_would_fail(column, said, fits, words):
    facts = {"bounds": {} if "levels" in said else {"v": (0, 2000)}, "adjacency": "replace"} | said
    check = kng.Study(pd.DataFrame({"v": column, "other": 1}), **facts).check()
    assert check.fits == fits, check.summary()
    assert words in words_of(check.summary())
    assert "records: 2000" in words_of(check.summary())


def test_no_value_is_told_but_those_that_recur():
    secret = wages(slice(3), "a secret note")
    secret[7:12] = 8_765_432.1
    text = kng.Study(pd.DataFrame({"v": secret}), bounds={"v": (0, 2000)}, adjacency="replace").check().summary()
    assert "3 cells are text that is no number\n" in text + "\n"
    assert "secret" not in text
    assert "8765432" not in text


def test_a_plan_is_checked_with_its_analyses():
    frame = pd.DataFrame({"v": wages(slice(3), None), "u": WAGES})
    plan = kng.Study(frame, bounds={"v": (0, 2000), "u": (0, 2000)}, adjacency="replace").plan()
    plan.mean("u", epsilon=1)
    assert plan.check().fits
    assert "1. mean of u" in words_of(plan.check().summary())
    plan.mean("v", epsilon=1)
    assert not plan.check().fits
    assert "REFUSED: the response, column 'v', has cells that are missing" in words_of(plan.check().summary())


def test_what_a_check_found_is_for_the_owner_alone():
    check = kng.Study(pd.DataFrame({"v": WAGES}), bounds={"v": (0, 2000)}, adjacency="replace").check()
    assert "2000" not in repr(check) + str(check) + f"{check}"
    assert "OWNER ONLY" in repr(check)
    assert check.summary().startswith("=")
    assert check.summary().endswith("OWNER ONLY: not private, do not publish")
    for out in (pickle.dumps, list, bool, vars):
        with pytest.raises(TypeError, match="its text, for the owner, is summary"):
            out(check)
