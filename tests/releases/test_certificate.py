"""Certificates say whom they protect, in text, in a table and in JSON; those of one record are as they were."""

import json
import pathlib

import numpy as np
import pytest

import kngjax as kng
from kngjax.data.schema import Schema
from kngjax.mechanisms.base import AbstractMechanism
from kngjax.mechanisms.private_choice import PrivateChoice
from kngjax.releases.certificate import Certificate
from kngjax.releases.draw_choice import draw_for

OLDER = pathlib.Path(__file__).parent / "older"
PROOFS = pathlib.Path(__file__).parents[2] / "docs" / "proofs"
PAIRS = {
    "replace": "two tables of the same number of households that differ in all rows of one household, however many",
    "add_remove": "two tables of which one has one household more, with all rows of that household, however many",
}
Y = np.linspace(0.0, 1.0, 40)


def certificate(unit, adjacency, most_rows):
    whom = None if unit is None else kng.Unit(unit, most_rows)
    bounds = kng.Bounds(x={"y": (0.0, 1.0)}, intercept=False, unit=whom)
    mechanism = kng.KNG(kng.SquaredDistanceLoss(), bounds, kng.Box(0.0, 1.0), 0.1, adjacency)
    person = None if most_rows is None else np.repeat(np.arange(10), 4)
    return kng.release(mechanism, Y[:, None], person=person).certificate


@pytest.mark.parametrize("adjacency", PAIRS)
@pytest.mark.parametrize("most_rows", [None, 1, 3])
def test_the_reader_is_told_whom_it_protects(adjacency, most_rows):
    made = certificate("household", adjacency, most_rows)
    assert f"Protected: each household: {PAIRS[adjacency]}." in made.explain().splitlines()
    assert ("protects", f"each household: {PAIRS[adjacency]}") in made.rows()
    assert PAIRS[adjacency] in made.summary()
    assert PAIRS[adjacency] in made._repr_html_()
    fields = made.to_dict()
    assert fields["guarantee"]["unit"] == "household"
    assert Certificate.from_dict(fields) == made
    # Which rows are of one household is said too.
    said = "each record is one household" if most_rows is None else "rows of one household are those with one"
    assert said in made.explain()


def test_of_one_record_nothing_more_is_said():
    made = certificate(None, "replace", None)
    assert "unit" not in made.to_dict()["guarantee"]
    assert "Protected" not in made.explain()
    assert "protects" not in dict(made.rows())


@pytest.mark.parametrize("path", sorted(OLDER.glob("*.json")), ids=lambda path: path.stem)
def test_certificates_of_earlier_versions_protect_one_record(path):
    made = kng.Release.from_json(path.read_text()).certificate
    assert made.guarantee.unit == "record"
    assert made.cost is None or made.cost.unit == "record"
    assert not made.proofs
    assert "Proofs" not in made.explain()


CANDIDATES = kng.Bounds(x={"a": (0, 1), "b": (0, 1)}, intercept=False)
MEDIAN = kng.KNG(kng.QuantileLoss(0.5), kng.Bounds(), kng.Box(0.0, 1.0), 0.5, "replace")


@pytest.mark.parametrize(
    ("mechanism", "sampler", "named"),
    [
        (MEDIAN, None, "kng sensitivities lattice check-scores"),
        (MEDIAN, kng.chains.Exact(), "kng sensitivities rounding"),
        (MEDIAN, kng.chains.LineGibbs(), "kng sensitivities"),
        (kng.PrivateQuantile(0.5, kng.Bounds(y=(0.0, 1.0)), 1.0, "replace"), None, "quantiles lattice check-scores"),
        (PrivateChoice(CANDIDATES, 1.0, "replace"), None, "kng balls"),
        (kng.PrivateQuantile([0.2, 0.5], kng.Bounds(y=(0.0, 1.0)), 1.0, "replace"), None, "quantiles rounding"),
        (kng.AdaSSP(kng.Bounds(y=(0.0, 1.0), weight=2.0), 1.0, 1e-6, "replace"), None, "ada-ssp balls weights"),
    ],
)
def test_a_certificate_names_the_pages_of_its_proofs(mechanism, sampler, named):
    facts = Schema(mechanism.dimension, num_records=40)
    made = Certificate.of(draw_for(mechanism, sampler, facts), facts)
    pages = tuple(f"docs/proofs/{name}.md" for name in named.split())
    assert made.proofs == made.to_dict()["proofs"] == pages
    assert f"Proofs: {', '.join(pages)}." in made.explain().splitlines()
    assert Certificate.from_dict(json.loads(json.dumps(made.to_dict()))).proofs == made.proofs


@pytest.mark.parametrize("name", ["guarantee", "sensitivity", "assumptions", "unproved"])
def test_fields_that_are_missing_or_null_are_no_certificate(name):
    """The rounding alone may be null."""
    fields = Certificate.of(draw_for(MEDIAN, None, Schema(1, 40)), Schema(1, 40)).to_dict()
    assert Certificate.from_dict(fields | {"rounding": None}).rounding is None
    for broken in (fields | {name: None}, {key: value for key, value in fields.items() if key != name}):
        with pytest.raises(ValueError, match="not the fields of a certificate"):
            Certificate.from_dict(broken)


def test_curves_of_persons_rest_on_halving_and_on_one_vote():
    bounds = kng.Bounds(unit=kng.Unit("household", 1))
    process = kng.QuantileProcess([0.25, 0.5], bounds, kng.Box(0.0, 1.0), 1.0, "replace", force=True)
    [made] = process.resolve(Schema(dimension=1, num_records=40)).certificates
    assert made.proofs[0] == "docs/proofs/halving.md"
    assert made.proofs[-1] == "docs/proofs/persons.md"


def rooted(kind):
    return [kind, *(one for below in kind.__subclasses__() for one in rooted(below))]


def test_every_page_of_proofs_is_named_by_a_certificate():
    mechanisms = [one for one in rooted(AbstractMechanism) if one.__module__.startswith("kngjax.")]
    assert len(mechanisms) > 15
    by_draws_and_units = {"lattice", "check-scores", "balls", "rounding", "halving", "groups", "weights", "persons"}
    named = by_draws_and_units.union(*(one.proofs for one in mechanisms))
    assert named == {page.stem for page in PROOFS.glob("*.md")}
