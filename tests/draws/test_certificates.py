"""Certificates of draws of which every rounding is proved: what they say, and nothing of the number of records."""

import numpy as np
import pytest

import kngjax as kng
from kngjax.accounting.guarantees import Adjacency
from kngjax.ledger.book import canonical, guarantee_of
from tests.draws.cases import ROWS, all_draws, ledger_of, seeded


def test_no_way_of_drawing_is_left_out():
    assert all_draws() <= {row.drawn_by for row in ROWS.values()}


@pytest.mark.parametrize("name", ROWS)
def test_a_certificate_proves_the_mechanisms_own_guarantee_with_every_rounding_and_is_what_is_debited(name, tmp_path):
    row = ROWS[name]
    for adjacency in row.adjacencies:
        mechanism, records = row.made(adjacency), row.records()
        ledger = ledger_of(tmp_path, adjacency, kng.Budget.approximate(1e9, 0.5))
        with seeded(0):
            released = row.release_of(mechanism, records, ledger=ledger)
        certificate = released.certificate
        assert ledger.verify().parts == ((guarantee_of(canonical(certificate.cost.to_dict())), 1),)
        assert list(ledger.releases().values()) == [released.to_json()]
        assert certificate == row.certify(adjacency, records)
        assert (certificate.assurance, certificate.rounding) == ("proved", None)
        assert (certificate.rounding_delta, certificate.unproved) == (0.0, ())
        guarantee = mechanism.guarantee_for(len(released.value))
        assert certificate.cost == certificate.guarantee == guarantee
        assert guarantee.adjacency is Adjacency.parse(adjacency)
        assert (certificate.epsilon, certificate.delta) == (guarantee.epsilon, guarantee.delta)
        assert certificate.mechanism["type"] == type(mechanism).__name__
        assert certificate.num_records == (row.count if adjacency == "replace" else None)
        assert "every rounding is part of the proof" in certificate.explain()
        assert "as IEEE 754 does" in " ".join(certificate.assumptions)
        way = row.way(adjacency, records)
        assert type(way) is row.drawn_by
        published = {"published": sorted(way.published)} if way.published else {}
        assert certificate.sampler == {**way.settings, **published}
        assert kng.Release.from_json(released.to_json()) == released


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if "add_remove" in row.adjacencies])
def test_under_add_remove_nothing_public_depends_on_the_number_of_records(name):
    row = ROWS[name]
    certificate = row.certify("add_remove", row.records())
    # One record more, ten times as many, and so many that a lattice that knew of them would take other digits.
    for count in (row.count + 1, 10 * row.count, 300_000):
        assert row.certify("add_remove", row.records(count)) == certificate
    assert certificate.num_records is None


def test_under_replace_the_certificate_may_depend_on_it_so_that_the_comparison_can_fail():
    row = ROWS["interval"]
    certificates = [row.certify("replace", row.records(count)) for count in (40, 300_000)]
    assert [one.num_records for one in certificates] == [40, 300_000]
    assert certificates[0].sampler != certificates[1].sampler


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if "add_remove" in row.adjacencies])
def test_no_record_is_released_as_one_is(name):
    row = ROWS[name]
    none, one = (row.release("add_remove", row.records(count)) for count in (0, 1))
    assert none.value.shape == one.value.shape
    assert none.certificate == one.certificate
    assert np.all(np.isfinite(none.value))
