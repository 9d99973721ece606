"""Formulas: what they say, what is refused and why, and that none looks at two records."""

import numpy as np
import polars as pl
import pytest

from kngjax.data.formulas import read
from kngjax.data.terms import Categorical, Indicator, Polynomial, Product, Spline

BOUNDS = {"wage": (20, 20_000), "education": (0, 18), "experience": (0, 60), "years at work": (0, 50)}
LEVELS = {"region": ("north", "south", "west"), "smsa": ("no", "yes")}


def terms(right, **settings):
    return read(f"wage ~ {right}", BOUNDS, LEVELS, **settings).design.terms


def test_each_kind_of_term():
    education, region = Polynomial("education", 0, 18), Categorical("region", LEVELS["region"])
    assert terms("education") == (education,)
    assert terms("poly(experience, 2)") == (Polynomial("experience", 0, 60, degree=2),)
    assert terms("C(region)") == terms("region") == terms("region + C(region)") == (region,)
    assert terms("education + I(experience >= 10)") == (
        education,
        Indicator("experience", ">=", 10),
    )
    assert terms("I(education < -2.5)") == (Indicator("education", "<", -2.5),)
    assert terms("bs(experience, knots=[10, 20], degree=2)") == (Spline("experience", 0, 60, (10, 20), 2),)
    assert terms("bs(experience, knots=[])") == (Spline("experience", 0, 60, ()),)
    assert terms("education * region") == (education, region, Product((education, region)))
    assert terms("(education + region)**2") == terms("education * region")
    assert terms("`years at work`") == (Polynomial("years at work", 0, 50),)
    found = read("log(wage) ~ log(years)", {"wage": (20, 20_000), "years": (1, 50)})
    assert (found.response, found.transform) == ("wage", "log")
    assert found.design.terms == (Polynomial("years", 1, 50, transform="log"),)


def test_the_order_of_factors_does_not_matter():
    assert terms("education + region + education:region + region:education") == terms("education * region")
    assert terms("region:education + education + region") == terms("education:region + education + region")
    terms("education + region + smsa + education:region + smsa:region + education:smsa + smsa:education:region")


def test_a_column_is_one_thing_in_products_and_elsewhere():
    for right in (
        "bs(experience, knots=[10]) + smsa + bs(experience, knots=[20]):smsa",
        "log(wage2) + smsa + wage2:smsa",
    ):
        with pytest.raises(ValueError, match="one thing in a product"):
            read(f"wage ~ {right}", BOUNDS | {"wage2": (1, 9)}, LEVELS)
    names = read("wage ~ I(wage2 > 10000001) + I(wage2 > 10000002)", BOUNDS | {"wage2": (1, 9)}, LEVELS).design.names
    assert names[1:] == ("wage2 > 10000001", "wage2 > 10000002")


def test_what_is_missing_goes_to_every_term():
    assert [term.missing for term in terms("education + region", missing={"education": 12})] == [12, None]
    assert [term.missing for term in terms("education + region", missing="drop")] == ["drop", "drop"]


@pytest.mark.parametrize(
    ("right", "reason"),
    [
        ("center(education)", "learns a mean or spread from all records"),
        ("scale(education)", "learns a mean or spread from all records"),
        ("bs(experience, df=4)", "without public knots"),
        ("bs(experience)", "without public knots"),
        ("cr(experience, df=4)", "reads its knots off the data"),
        ("lag(education)", "values of other records"),
        ("hashed(region)", "no public bounds"),
        ("np.log(education)", "is not known"),
        ("I(education - education.max())", "is not known"),
        ("I(education + 1)", "is not known"),
        ("I(1 < education < 5)", "is not known"),
        ("C(region, contr.sum)", "is not known"),
        ("poly(education, k)", "is not known"),
        ("poly(education, degree=2)", "is not known"),
        ("{education + 1}", "is not known"),
        ("__import__('os').system('true')", "is no formula of one response"),
        ("height", "column 'height' needs public bounds"),
        ("poly(region, 2)", "column 'region' needs public bounds"),
        ("C(education)", "'education' needs public levels"),
        ("poly(education, 99)", "must be 1 to 8"),
        ("1", "has no terms"),
        ("0", "has no terms"),
        ("wage", "is the response and a term"),
        ("log(" + "-" * 2000 + "education)", "nested too deeply"),
        ("-" * 5000 + "education", "nested too deeply"),
        ("(" * 51 + "education" + ")" * 51, "nested too deeply"),
        ("I(education > " + "+".join("1" * 3000) + ")", "nested too deeply"),
        ("I(" + "**".join(["education"] * 900) + " > 1)", "nested too deeply"),
        (" + ".join(f"column_number_{k}" for k in range(900)), "at most 10000 characters"),
        ("(education + region)**9", "largest power of a sum is 8"),
        ("(education + region)^30", "largest power of a sum is 8"),
        (".", "is no formula of one response"),
        ("education | region", "is no formula of one response"),
        ("education ~ region", "is no formula of one response"),
        ("2*education", "is no formula of one response"),
    ],
)
def test_what_is_refused(right, reason):
    with pytest.raises(ValueError, match=reason) as error:
        terms(right)
    # Nothing of Python's own.
    assert not isinstance(error.value.__cause__, RecursionError | MemoryError)


@pytest.mark.parametrize("left", ["exp(wage)", "wage + education", "", "log(wage, 2)", "center(wage)"])
def test_a_response_is_a_column_or_its_log(left):
    with pytest.raises(ValueError, match="response"):
        read(f"{left} ~ education", BOUNDS, LEVELS)


def test_one_record_moves_no_other():
    formula = (
        "log(wage) ~ poly(education, 3)*C(region) + bs(experience, knots=[10, 30]) + I(experience > 40) + smsa + "
        "education:smsa + log(tenure)"
    )
    design = read(formula, BOUNDS | {"tenure": (0.5, 50)}, LEVELS, {"education": 12, "region": "north"}).design
    random = np.random.default_rng(0)
    table = {
        "education": random.integers(0, 20, 50).astype(float),
        "region": random.choice(["north", "south", "west"], 50),
        "experience": random.uniform(0, 70, 50),
        "smsa": random.choice(["no", "yes"], 50),
        "tenure": random.uniform(0, 60, 50),
    }
    extremes = {
        "education": [np.nan, 1e300, -1.0],
        "region": ["", "elsewhere"],
        "experience": [0.0, 1e9],
        "tenure": [0.0],
    }
    before = design.matrix(pl.DataFrame(table))
    for column, values in extremes.items():
        for row in (0, 31, 49):
            for value in values:
                changed = table[column].astype(object)
                changed[row] = value
                after = design.matrix(pl.DataFrame(table | {column: changed.tolist()}, strict=False))
                rest = np.arange(50) != row
                assert after[rest].tobytes() == before[rest].tobytes(), (column, value)


@pytest.mark.parametrize(
    ("right", "instead"),
    [
        ("np.log(education)", r"write log\(x\)"),
        ("I(education**2)", r"poly\(x, 2\)"),
        ("Q('years at work')", "between backticks"),
        ("educaton", "Did you mean 'education'"),
    ],
)
def test_what_other_packages_write_is_refused_with_what_to_write_instead(right, instead):
    with pytest.raises(ValueError, match=instead):
        terms(right)


def test_a_column_between_backticks_is_that_column():
    plain = Polynomial("years at work", 0, 50)
    assert terms("`years at work`") == (plain,)
    assert terms("poly(`years at work`, 2)") == (Polynomial("years at work", 0, 50, 2),)
    assert terms("I(`years at work` > 5)") == (Indicator("years at work", ">", 5),)
    assert terms("bs(`years at work`, knots=[9])") == (Spline("years at work", 0, 50, (9,)),)
    # A name that reads like a call is a name.
    bounds = {"wage": (1, 2), "log(x)": (3, 4), "x": (1, 2)}
    assert read("log(`wage`) ~ `log(x)`", bounds).design.terms == (Polynomial("log(x)", 3, 4),)
    assert read("`log(x)` ~ x", bounds).response == "log(x)"
    with pytest.raises(ValueError, match=r"column 'C\(a b\)' needs public bounds"):
        read("wage ~ `C(a b)`", bounds)
    assert read("wage ~ C(`a b`)", bounds, {"a b": ("u", "v")}).design.names == ("intercept", "a b[v]")


def test_a_category_that_is_a_response_is_written_by_its_name():
    with pytest.raises(ValueError, match=r"without C\(\)"):
        read("C(smsa) ~ education", BOUNDS, LEVELS)
