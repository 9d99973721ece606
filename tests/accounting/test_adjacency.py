"""Units: whom guarantees protect, in words, in JSON, and in everything that accounting makes of them."""

import pytest

from kngjax import accounting
from kngjax.accounting import Guarantee
from kngjax.accounting.adjacency import Adjacency, plural
from kngjax.accounting.parallel import in_parallel

KINDS = {
    "pure": Guarantee.pure("0.3", "add_remove"),
    "bounded range": Guarantee.bounded_range("0.3", "add_remove"),
    "approximate": Guarantee.approximate("0.3", "1e-6", "add_remove"),
    "zcdp": Guarantee.zcdp("0.02", "add_remove", delta="1e-6"),
    "gaussian": Guarantee.gaussian("0.2", "add_remove", delta="1e-6"),
    "composed": Guarantee.composed([Guarantee.pure("0.3", "add_remove"), Guarantee.zcdp("0.1", "add_remove")]),
    "near": Guarantee.pure("0.3", "add_remove").within("1e-9"),
    "composed of near": Guarantee.composed([Guarantee.pure("0.3", "add_remove").within("1e-9")] * 2),
}


@pytest.mark.parametrize(
    ("unit", "several"),
    {
        "patient": "patients",
        "household": "households",
        "company": "companies",
        "survey day": "survey days",
        "bus": "buses",
        "branch": "branches",
        "child": "children",
        "adopted child": "adopted children",
        "woman": "women",
        "human": "humans",
    }.items(),
)
def test_several_units_have_a_plural(unit, several):
    assert plural(unit) == several
    assert f"the same number of {several} that differ in all rows of one {unit}," in Adjacency.REPLACE.pairs(unit)
    assert Adjacency.ADD_REMOVE.pairs(unit) == (
        f"two tables of which one has one {unit} more, with all rows of that {unit}, however many"
    )


@pytest.mark.parametrize("name", KINDS)
def test_a_unit_is_kept_in_json_and_by_whatever_is_made_of_a_guarantee(name):
    guarantee = KINDS[name].of("patient")
    assert Guarantee.from_dict(guarantee.to_dict()) == guarantee
    assert guarantee.of("record") == KINDS[name]
    made = [
        guarantee.to_replace(),
        Guarantee.composed([guarantee, guarantee]),
        guarantee.within("1e-8"),
        guarantee.apart()[0],
    ]
    assert {one.unit for one in made} == {"patient"}
    assert {part.unit for one in made for part, _ in one.parts} <= {"patient"}
    assert "rows of one patient, however many" in guarantee.to_replace().explain()
    assert "unit" not in KINDS[name].to_dict()


def test_accountants_keep_the_unit():
    guarantee = Guarantee.bounded_range("0.3", "replace").of("patient")
    together = Guarantee.composed([guarantee] * 3)
    assert accounting.compare(together, 1e-6) == accounting.compare(together.of("record"), 1e-6)


def test_groups_of_persons_share_votes_or_compose():
    """A patient with rows in each of three groups changes all of them: a third each, or, with all votes, as a whole."""
    one = Guarantee.bounded_range("0.3", "add_remove").of("patient")
    with pytest.raises(ValueError, match="rows of one patient may lie in several groups"):
        Guarantee.parallel([one] * 3)
    assert in_parallel([one] * 3, shared=True) == one
    # Of one record two groups change at most, of persons all.
    near = one.within("1e-9")
    assert in_parallel([near] * 5, shared=True) == one.within("5e-9")
    assert Guarantee.parallel([near.of("record")] * 5) == one.of("record").within("2e-9")
    together = Guarantee.composed([near, one])
    assert in_parallel([together] * 3, shared=True).exact_distance == 3 * near.exact_distance
    unknown = Guarantee.approximate(1, "1e-6", "add_remove").of("patient")
    with pytest.raises(ValueError, match="may lie in several groups"):
        in_parallel([unknown] * 2, shared=True)


@pytest.mark.parametrize("make", [Guarantee.composed, Guarantee.parallel])
def test_guarantees_of_different_units_do_not_compose(make):
    one = Guarantee.pure(1, "add_remove")
    with pytest.raises(ValueError, match="protect different units"):
        make([one, one.of("patient")])


@pytest.mark.parametrize("name", ["composed", "near", "composed of near"])
@pytest.mark.parametrize("units", [("patient", "record"), ("record", "patient")])
def test_a_record_whose_parts_protect_another_unit_is_refused(name, units):
    inner, outer = units
    fields = KINDS[name].of(inner).to_dict() | {"unit": outer}
    with pytest.raises(ValueError, match="protects another unit"):
        Guarantee.from_dict(fields)


def test_a_unit_that_is_no_text_is_refused():
    with pytest.raises(ValueError, match="do not fit together"):
        Guarantee.from_dict(KINDS["pure"].to_dict() | {"unit": 3})
