"""Guarantees are numbers that follow from each other, tied to an adjacency, and survive JSON."""

import json
from fractions import Fraction

import numpy as np
import pytest

from kngjax.accounting.guarantees import Adjacency, Guarantee, Kind


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 8.0])
def test_the_numbers(epsilon):
    guarantee = Guarantee.bounded_range(epsilon, Adjacency.parse("replace"))
    assert guarantee.epsilon == epsilon
    assert guarantee.delta == 0.0
    assert guarantee.rho == pytest.approx(epsilon**2 / 8.0, rel=1e-15)


def worst_divergence(epsilon, order):
    """The largest Rényi divergence of two laws whose log-ratio takes two values, `epsilon` apart."""
    first = np.linspace(1e-3, 1.0 - 1e-3, 999)
    # log Q/P is a on the first outcome and a - ε on the second; Q sums to one.
    a = -np.log(first + (1.0 - first) * np.exp(-epsilon))
    powers = first * np.exp((1.0 - order) * a) + (1.0 - first) * np.exp((1.0 - order) * (a - epsilon))
    return np.max(np.log(powers) / (order - 1.0))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_rho_covers_the_worst_bounded_range_pair_and_not_much_more(epsilon):
    guarantee = Guarantee.bounded_range(epsilon, Adjacency.parse("replace"))
    for order in (1.01, 2.0, 5.0, 40.0):
        assert worst_divergence(epsilon, order) <= guarantee.rho * order
    assert worst_divergence(0.1, 1.01) >= 0.99 * 1.01 * 0.1**2 / 8.0


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_json_round_trip(adjacency):
    guarantee = Guarantee.bounded_range(0.3, Adjacency.parse(adjacency))
    fields = json.loads(json.dumps(guarantee.to_dict()))
    assert fields["adjacency"] == adjacency
    assert Guarantee.from_dict(fields) == guarantee


def test_a_pure_guarantee_has_the_general_rho():
    guarantee = Guarantee.pure(0.7, Adjacency.parse("replace"))
    assert (guarantee.epsilon, guarantee.rho, guarantee.delta) == (0.7, pytest.approx(0.245), 0.0)
    assert Guarantee.from_dict(guarantee.to_dict()) == guarantee


def test_composed_guarantees_add_up_within_one_adjacency():
    first = Guarantee.bounded_range(1.0, Adjacency.parse("replace"))
    second = Guarantee.pure(0.5, Adjacency.parse("replace"))
    both = Guarantee.composed([first, second])
    assert (both.epsilon, both.rho) == (1.5, 0.125 + 0.125)
    assert Guarantee.from_dict(both.to_dict()) == both
    with pytest.raises(ValueError, match="one and the same adjacency"):
        Guarantee.composed([first, Guarantee.pure(0.5, Adjacency.parse("add_remove"))])


@pytest.mark.parametrize(
    "change", [{"rho": 0.001}, {"kind": "pure"}, {"epsilon": 0.1}, {"kind": None}, {"kind": "composed", "rho": 0.6}]
)
def test_a_record_whose_numbers_do_not_fit_together_is_refused(change):
    fields = Guarantee.bounded_range(1.0, Adjacency.parse("replace")).to_dict() | change
    with pytest.raises(ValueError, match="do not fit together"):
        Guarantee.from_dict(fields)


CONTRADICTIONS = [
    {"kind": "zcdp", "epsilon": 0.1, "delta": 1e-6, "rho": 10.0},
    {"kind": "zcdp", "epsilon": 0.1, "delta": 1e-6, "rho": None},
    {"kind": "gaussian", "epsilon": 0.1, "delta": 1e-6, "rho": 10.0, "mu": 0.01},
    {"kind": "gaussian", "epsilon": 0.1, "delta": 1e-6, "mu": 0.01},
    {"kind": "gaussian", "epsilon": 40.0, "delta": 1e-6, "rho": 10.0, "mu": 0.01},
    {"kind": "approximate", "epsilon": 1.0, "delta": 1e-6, "rho": 1e-5},
    {"kind": "composed", "epsilon": 2.0, "delta": 0.0, "rho": 1.25, "parts": [
        {**Guarantee.pure(1.0, "replace").to_dict(), "count": 3},
        {**Guarantee.pure(0.5, "replace").to_dict(), "count": -2},
    ]},
    {"kind": "composed", "epsilon": 0.0, "delta": 0.0, "rho": None, "parts": [
        {**Guarantee.pure(1.0, "replace").to_dict(), "count": 0},
    ]},
]  # fmt: skip


@pytest.mark.parametrize("fields", CONTRADICTIONS, ids=range(len(CONTRADICTIONS)))
def test_a_record_that_contradicts_itself_is_refused(fields):
    with pytest.raises(ValueError, match="do not fit together"):
        Guarantee.from_dict({"adjacency": "replace", **fields})


@pytest.mark.parametrize("number", [1.0000049, 0.99999949, 123456.7, 1e-9])
def test_no_digit_of_a_cost_is_lost_in_words(number):
    words = Guarantee.pure(number, "replace").explain().split("-differential")[0].removeprefix("pure ")
    assert number <= float(words) <= number * (1.0 + 1e-4)


def test_a_guarantee_is_stated_where_it_is_asked_for():
    total = Guarantee.composed([Guarantee.gaussian("0.2", "replace"), Guarantee.pure("0.1", "replace")])
    assert total.epsilon == np.inf
    stated = total.stated(1e-6)
    assert (stated.epsilon, stated.delta) == (total.at(delta=1e-6), 1e-6)
    assert stated.at(epsilon=0.7) == total.at(epsilon=0.7)
    assert Guarantee.from_dict(json.loads(json.dumps(stated.to_dict()))) == stated
    assert total.stated(1e-6, 2).epsilon == 2.0
    with pytest.raises(ValueError, match="is not"):
        total.stated(1e-6, 0.5)
    with pytest.raises(ValueError, match="is what it states"):
        Guarantee.pure(1, "replace").stated(1e-6)
    # Σε of the pure part and the exact profile of the Gaussian one are less than what Σρ gives here.
    assert stated.epsilon == pytest.approx(0.1 + Guarantee.gaussian("0.2", "replace").at(delta=1e-6), rel=1e-9)
    assert stated.epsilon < Guarantee.zcdp(total.rho, "replace").at(delta=1e-6)


def test_a_stated_number_that_rounds_up_what_follows_is_kept():
    total = Guarantee.counted([(Guarantee.approximate("0.1999999999998", "1e-7", "replace"), 4)])
    stated = total.stated("4e-7", "0.8")
    assert stated.epsilon == Guarantee.from_dict(json.loads(json.dumps(stated.to_dict()))).epsilon == 0.8


EARLIER = [
    '{"kind": "bounded_range", "epsilon": 0.3, "delta": 0.0, "rho": 0.01125, "adjacency": "replace"}',
    '{"kind": "pure", "epsilon": 0.7, "delta": 0.0, "rho": 0.24499999999999997, "adjacency": "add_remove"}',
    '{"kind": "approximate", "epsilon": 1.0, "delta": 1e-06, "rho": null, "adjacency": "replace"}',
]


@pytest.mark.parametrize("text", EARLIER)
def test_certificates_of_earlier_releases_still_load(text):
    fields = json.loads(text)
    guarantee = Guarantee.from_dict(fields)
    assert (guarantee.kind, guarantee.epsilon, guarantee.delta) == tuple(
        fields[name] for name in ("kind", "epsilon", "delta")
    )
    assert guarantee.rho == (None if fields["rho"] is None else pytest.approx(fields["rho"], rel=1e-15))
    assert Guarantee.from_dict(guarantee.to_dict()) == guarantee
    assert guarantee.at(delta=fields["delta"]) == fields["epsilon"]
    assert fields["adjacency"] == "add_remove" or guarantee.explain().endswith("that differ in one record")
    twice = Guarantee.composed([guarantee, guarantee])
    assert (twice.epsilon, twice.delta) == (2 * fields["epsilon"], 2 * fields["delta"])
    if fields["adjacency"] == "replace":
        assert guarantee.to_replace() is guarantee
    else:
        assert guarantee.to_replace().epsilon == 2 * fields["epsilon"]


SUMS_ALONE = {"kind": "composed", "epsilon": 1.5, "delta": 0.0, "rho": 0.25, "adjacency": "replace"}


def test_a_composition_that_names_no_parts_is_read_for_what_its_sums_prove():
    """Earlier releases wrote sums alone, of which no ρ below ε²/2 follows: it depends on the parts."""
    assert Guarantee.from_dict(SUMS_ALONE) == Guarantee.pure("1.5", "replace")
    forged = SUMS_ALONE | {"epsilon": 5.0, "rho": 1e-9}
    assert Guarantee.from_dict(forged).rho == 12.5
    approximate = SUMS_ALONE | {"delta": 1e-6, "rho": None}
    assert Guarantee.from_dict(approximate) == Guarantee.approximate("1.5", "1e-6", "replace")
    for change in ({"rho": 2.0}, {"epsilon": None}, {"rho": None}, {"delta": 1e-6}):
        with pytest.raises(ValueError, match="do not fit together"):
            Guarantee.from_dict(SUMS_ALONE | change)
    with pytest.raises(ValueError, match="do not fit together"):
        Guarantee(Kind.COMPOSED, Adjacency.REPLACE, Fraction(5), Fraction(0), Fraction(1, 10**9))


WORDS = [
    (Guarantee.pure(0.5, "replace"), "pure 0.5-differential privacy, and 0.125-zCDP (rho = epsilon^2/2)"),
    (Guarantee.approximate(1.0, 1e-6, "replace"), "(1, 1e-06)-differential privacy"),
    (
        Guarantee.zcdp("0.125", "replace"),
        "0.125-zCDP, hence (2.4191, 1e-06)-differential privacy (optimal Renyi conversion)",
    ),
    (
        Guarantee.gaussian(1, "replace", delta=1e-5),
        "1-Gaussian differential privacy, hence 0.5-zCDP and (4.37718, 1e-05)-differential privacy",
    ),
    (
        Guarantee.composed([Guarantee.bounded_range("0.1", "replace")] * 50),
        "pure 5-differential privacy, and 0.0625-zCDP (sums over the 50 parts), hence (1.65998, 1e-06)-differential "
        "privacy",
    ),
]


@pytest.mark.parametrize(("guarantee", "law"), WORDS, ids=lambda case: str(getattr(case, "kind", "")))
def test_every_kind_is_explained_with_its_numbers(guarantee, law):
    assert guarantee.explain() == f"{law}, for any two data sets of the same size that differ in one record"
    assert str(guarantee) == guarantee.explain()


def test_the_two_adjacencies_are_explained_in_different_words():
    texts = {name: Guarantee.bounded_range(1.0, Adjacency.parse(name)).explain() for name in ("replace", "add_remove")}
    assert "same size that differ in one record" in texts["replace"]
    assert "one has one record more" in texts["add_remove"]
    assert all("pure 1-differential privacy" in text and "0.125-zCDP" in text for text in texts.values())


def test_the_adjacency_must_be_named():
    with pytest.raises(ValueError, match="adjacency must be named"):
        Adjacency.parse(None)
    for wrong in ("swap", "Replace", ""):
        with pytest.raises(ValueError, match="must be 'replace' or 'add_remove'"):
            Adjacency.parse(wrong)
    assert Adjacency.parse(Adjacency.parse("replace")) is Adjacency.parse("replace")


def test_guarantees_do_not_change():
    guarantee = Guarantee.bounded_range(1.0, Adjacency.parse("replace"))
    with pytest.raises(AttributeError):
        guarantee.epsilon = 0.1
