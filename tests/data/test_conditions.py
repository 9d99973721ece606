"""Conditions: what they mean of each record, and that nothing else is read."""

import numpy as np
import pytest

from kngjax.data import conditions

LEVELS = {"region": ("north", "south", "west"), "grade": (1, 2, 3), "first=": ("a`b`", "c")}
VALUES = {
    "wage": np.array([499.0, 500.0, 501.0, np.nan]),
    "region": ["north", "west", "elsewhere", "south"],
    "grade": np.array([1, 2, 3, 1]),
    "house size": np.array([499.0, 500.0, 501.0, 9.0]),
    "capital-gain": np.array([1.0, 5.0, 5.0, 9.0]),
    "first=": ["a`b`", "c", "c", "c"],
    "day": np.array([18262.0, 18262.5, 18263.0, np.nan]),  # from the first of January 2020 on
}


def holds(text, missing=None):
    """Of each of the four records, whether all parts hold; None where it is dropped."""
    found = np.ones(4)
    for one in conditions.read(text, LEVELS, missing, ("day",)):
        found = found * one.of(VALUES)
    return [None if np.isnan(one) else int(one) for one in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("wage > 500", [0, 0, 1, 0]),
        ("wage >= 500", [0, 1, 1, 0]),
        ("wage < 500", [1, 0, 0, 1]),
        (" wage <= 500.0 ", [1, 1, 0, 1]),
        ("wage == 500", [0, 1, 0, 0]),
        ("`wage` == 500", [0, 1, 0, 0]),
        ("`house size` >= 500", [0, 1, 1, 0]),
        ("`capital-gain` > 4 and`house size`<501", [0, 1, 0, 1]),
        ("`first=` == 'a`b`' and `house size` < 500", [1, 0, 0, 0]),
        ("wage > -1 and wage < 500", [1, 0, 0, 1]),
        ("region == 'north'", [1, 0, 0, 0]),
        ("region == 'west'", [0, 1, 1, 0]),
        ("region != 'west'", [1, 0, 0, 1]),
        ("grade == 1", [1, 0, 0, 1]),
        ("grade == 1 and region == 'south' and wage < 500", [0, 0, 0, 1]),
        ("day > '2020-01-01'", [0, 1, 1, 0]),
        ("day >= '2020-01-01T12:00' and day < '2020-01-02'", [0, 1, 0, 0]),
        ("day == 18263", [0, 0, 1, 0]),
    ],
)
def test_conditions_hold_as_python_would_say(text, expected):
    assert holds(text, {"wage": 0.0, "region": "west", "day": 0.0}) == expected


def test_missing_cells_drop_their_records_or_are_refused():
    assert holds("wage > 500", "drop") == [0, 0, 1, None]
    assert holds("wage > 500 and region == 'south'", "drop") == [0, 0, None, None]
    assert holds("region != 'north'", {"region": "drop"}) == [0, 1, None, 1]
    with pytest.raises(ValueError, match="no declared level") as error:
        holds("region == 'north'")
    assert "elsewhere" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("wage", "no condition"),
        ("wage >", "no condition"),
        ("wage > mean(wage)", "no condition"),
        ("wage > other", "no condition"),
        ("wage - 1 > 5", "no condition"),
        ("0 < wage < 5", "no condition"),
        ("wage > 5 or wage < 1", "no condition"),
        ("not wage > 5", "no condition"),
        ("wage != 5", "no condition"),
        ("wage in (1, 2)", "no condition"),
        ("__import__('os')", "no condition"),
        ("name == 'Smith'", "no public levels"),
        ("wage > '2020-01-01'", "no public levels"),
        ("day > '01.02.2020'", "'day' has dates, and is compared with one as \"day > '2020-01-31'\" writes it"),
        ("day > 2020-01-01", "no condition"),
        ("region > 'north'", "by == or !="),
        ("region == 'east'", "with one of its levels 'north', 'south', 'west'"),
        ("wage > True", "must be a number"),
        (5, "a condition is text"),
        ("house size >= 500", 'between backticks, "`house size` > 500"'),
        ("capital-gain >= 500", "between backticks"),
        ("`house size >= 500", "no condition"),
        ("`wage` `wage` > 5", "no condition"),
        ("wage > " + "-" * 5000 + "1", "nested too deeply"),
        ("wage > " + "(" * 60 + "1" + ")" * 60, "nested too deeply"),
        ("not " * 60 + "wage > 1", "nested too deeply"),
        ("wage > " + "+".join("1" * 4000), "no condition|nested too deeply"),
        ("wage > " + "**".join("1" * 3000), "no condition|nested too deeply"),
        ("wage > " + "1" * 20_000, "at most 10000 characters"),
    ],
)
def test_everything_else_is_refused(text, message):
    with pytest.raises((ValueError, TypeError), match=message):
        conditions.read(text, LEVELS, None, ("day",))
