"""Plans of synthetic tables: shares, order, prices, and what is refused before anything is spent."""

import json
import math
from decimal import Decimal
from fractions import Fraction

import pytest

import kngjax as kng
from tests.words import words_of

ADJACENCIES = ("replace", "add_remove")
THREE = (0.25, 0.5, 0.75)
REGION = kng.synthesis.Category("region", ["north", "south"])
EDUCATION = kng.synthesis.Ordinal("education", 0, 3, parents=["region"])
AGE = kng.synthesis.Count("age", 0, 60, levels=THREE)
WAGE = kng.synthesis.Numeric(
    "wage", 1, 100, transform="log", heaps=[0], parents=["region"], given="education", levels=THREE
)


def plan(*columns, adjacency="replace", **changed):
    given = {"epsilon": 3.0, "adjacency": adjacency} | changed
    return kng.synthesis.plan(list(columns) or [REGION, EDUCATION, AGE, WAGE], **given)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_prices_of_all_parts_add_up_to_epsilon(adjacency):
    made = plan(adjacency=adjacency)
    parts, certificates = made.parts(), made.certificates()
    labels = ["region", "education", "age", "wage, heaps", "wage, beside heaps"]
    assert [part.label for part in parts] == (["rows"] if adjacency == "add_remove" else []) + labels
    costs = [made.price(certificates[part.label])[0] for part in parts]
    assert all(cost.adjacency is made.adjacency for cost in costs)
    assert math.fsum(cost.epsilon for cost in costs) == pytest.approx(3.0)
    assert 3.0 - 1e-12 < made.cost.epsilon <= 3.0
    assert made.cost == kng.Guarantee.composed(costs)
    for part, cost in zip(parts, costs, strict=True):
        assert cost.exact_epsilon <= part.epsilon
    assert {label for label, *_ in made.summary().rows} >= {*labels, "all together"}
    assert "noise of each has the deviation" in words_of(made)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_every_part_protects_the_unit_that_is_named(adjacency):
    made = plan(adjacency=adjacency, unit="patient")
    assert {one.guarantee.unit for one in made.certificates().values()} == {made.cost.unit} == {"patient"}
    assert made.cost.epsilon == plan(adjacency=adjacency).cost.epsilon
    again = kng.synthesis.SynthesisPlan.from_dict(json.loads(json.dumps(made.to_dict())))
    assert again == made != plan(adjacency=adjacency)
    assert again.cost.unit == "patient"


def test_numbers_beside_heaps_have_half_of_it_for_a_record_more_or_less_under_replace():
    """How many these are is private: their curves are of add_remove."""
    alone = kng.synthesis.Numeric("wage", 1, 100, transform="log", heaps=[0], levels=THREE)
    made = plan(alone, REGION, epsilon=2.0)
    table, curves, _ = made.parts()
    assert (curves.process.adjacency, curves.process.epsilon) == (kng.Adjacency.ADD_REMOVE, 0.375)
    assert made.price(made.certificates()[curves.label])[0].epsilon == pytest.approx(0.75)
    assert float(table.mechanism.epsilon) == 0.25


def test_shares_are_those_that_were_given_and_equal_parts_of_the_rest():
    columns = [
        kng.synthesis.Category(name, ["a", "b"], share=share) for name, share in (("x", 0.5), ("y", None), ("z", None))
    ]
    assert [float(part.epsilon) for part in plan(*columns, epsilon=2.0).parts()] == [1.0, 0.5, 0.5]
    assert [float(part.epsilon) for part in plan(*columns, adjacency="add_remove", rows=0.1).parts()] == pytest.approx(
        [0.3, 1.5, 0.6, 0.6]
    )
    thirds = [kng.synthesis.Category(name, ["a", "b"], share=0.3333333) for name in "xyz"]
    assert plan(*thirds).cost.epsilon == pytest.approx(3.0)


def test_a_large_epsilon_is_allowed_where_it_is_meant():
    assert plan(REGION, epsilon=1000.0, allow_large_epsilon=True).cost.epsilon == 1000.0
    alone = kng.synthesis.Numeric("wage", 1, 100, levels=THREE)
    assert plan(alone, epsilon=400.0, allow_large_epsilon=True).cost.epsilon == pytest.approx(400.0)


def test_a_plan_is_read_from_what_it_writes():
    made = plan(adjacency="add_remove", rows=0.1, max_records=5000, force=True)
    again = kng.synthesis.SynthesisPlan.from_dict(json.loads(json.dumps(made.to_dict())))
    assert again == made
    assert hash(again) == hash(made)
    assert again.rows_share == made.rows_share
    assert again != plan()
    with pytest.raises(ValueError, match="no column of the kind"):
        kng.synthesis.SynthesisPlan.from_dict(made.to_dict() | {"columns": [{"type": "Wish", "name": "it"}]})


def of(*columns, **changed):
    return lambda: plan(*columns, **changed)


def wage(**changed):
    return kng.synthesis.Numeric("wage", 1, 100, **{"levels": THREE} | changed)


REFUSED = {
    "columns auto": (
        lambda: kng.synthesis.plan("auto", epsilon=1, adjacency="replace"),
        ValueError,
        "read off the data",
    ),
    "a later parent": (of(EDUCATION, REGION), ValueError, "no earlier column, .* Put it before 'education'"),
    "a misspelt parent": (
        of(REGION, kng.synthesis.Ordinal("it", 0, 3, parents=["regoin"])),
        ValueError,
        "no earlier column, .* Did you mean 'region'",
    ),
    "its own parent": (of(kng.synthesis.Ordinal("it", 0, 3, parents=["it"])), ValueError, "no earlier column"),
    "a parent of numbers": (
        of(AGE, kng.synthesis.Ordinal("it", 0, 3, parents=["age"])),
        ValueError,
        "Category and Ordinal",
    ),
    "a parent twice": (
        of(REGION, kng.synthesis.Ordinal("it", 0, 3, parents=["region"] * 2)),
        ValueError,
        "all different",
    ),
    "given later": (
        of(wage(given="education"), REGION, EDUCATION),
        ValueError,
        "may name earlier columns, here none: put 'education' before 'wage'",
    ),
    "given misspelt": (of(REGION, EDUCATION, wage(given="educaton")), ValueError, "Did you mean 'education'"),
    "given itself": (of(wage(given="wage")), ValueError, "may name earlier columns"),
    "five coefficients": (
        of(REGION, EDUCATION, AGE, wage(given="poly(education, 2) + poly(age, 2)")),
        ValueError,
        "up to 4",
    ),
    "a column twice": (of(REGION, REGION), ValueError, "two columns are called"),
    "no column": (lambda: kng.synthesis.plan([], epsilon=1, adjacency="replace"), ValueError, "needs a column"),
    "no list": (lambda: kng.synthesis.plan({"a": REGION}, epsilon=1, adjacency="replace"), TypeError, "must be a list"),
    "names alone": (of("region"), TypeError, "Category, Ordinal, Count or Numeric"),
    "no adjacency": (lambda: kng.synthesis.plan([REGION], epsilon=1), ValueError, "adjacency"),
    "no epsilon": (of(REGION, epsilon=0), ValueError, "epsilon"),
    "much epsilon": (of(REGION, epsilon=1e4), ValueError, "epsilon"),
    "shares above one": (of(kng.synthesis.Category("it", ["a", "b"], share=1.5)), ValueError, r"in \(0, 1\]"),
    "shares without a rest": (
        of(kng.synthesis.Category("it", ["a", "b"], share=1.0), REGION),
        ValueError,
        "leave a part to columns without one",
    ),
    "shares below one": (of(kng.synthesis.Category("it", ["a", "b"], share=0.5)), ValueError, "must add up to 1"),
    "rows under replace": (of(REGION, rows=0.1), ValueError, "is public"),
    "all for rows": (of(REGION, adjacency="add_remove", rows=1.0), ValueError, "rows must be a part"),
    "a large table": (
        of(
            kng.synthesis.Ordinal("x", 0, 999),
            kng.synthesis.Ordinal("y", 0, 999, parents=["x"]),
            kng.synthesis.Ordinal("z", 0, 9, parents=["x", "y"]),
        ),
        ValueError,
        "Take fewer parents",
    ),
    "levels unsorted": (of(wage(levels=[0.5, 0.25])), ValueError, "increase"),
    "levels twice": (of(wage(levels=[0.5, 0.5])), ValueError, "increase"),
    "levels beyond": (of(wage(levels=[0.5, 1.0])), ValueError, "strictly between 0 and 1"),
    "one level": (of(wage(levels=[0.5])), ValueError, "column 'wage'.*KNG"),
    "levels of text": (of(wage(levels=["a", "b"])), TypeError, "column 'wage'.*list of numbers"),
    "the name of another release": (
        of(kng.synthesis.Category("rows", ["a", "b"]), adjacency="add_remove"),
        ValueError,
        "two releases would be called 'rows'",
    ),
    "the name of a table of heaps": (
        of(kng.synthesis.Category("wage, heaps", ["a", "b"]), wage(heaps=[0])),
        ValueError,
        "two releases would be called 'wage, heaps'",
    ),
    "a level that no file has": (
        of(kng.synthesis.Category("it", ["a", "b"], other=math.nan)),
        TypeError,
        "'it' must be text",
    ),
    "an infinite level": (
        of(kng.synthesis.Category("it", ["a", "b"], missing=math.inf)),
        TypeError,
        "'it' must be text",
    ),
    "levels of other types": (of(kng.synthesis.Category("it", [Decimal("1.5"), 2])), TypeError, "'it' must be text"),
    "a share of another type": (
        of(kng.synthesis.Category("it", ["a", "b"], share=Fraction(1))),
        TypeError,
        "'it' must be text",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_plans_that_cannot_be_are_refused(case):
    make, kind, words = REFUSED[case]
    with pytest.raises(kind, match=words):
        make()
