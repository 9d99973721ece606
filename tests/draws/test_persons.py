"""Rows of persons in draws with every rounding in their proof: whole laws on lattices, and noises in fractions."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

import kngjax as kng
from audits.lattices import lattice_law, lattice_loss
from kngjax.data import persons
from kngjax.data.schema import Schema
from kngjax.data.streams import stream
from kngjax.data.weights import WeightedTable
from kngjax.draws.choice import proved_draw
from kngjax.draws.lattice import lattice, lattice_plan, lattice_sums, units, windows

BOX = kng.Box(-1.5, 1.5)
HALVES = slice(0, 225), slice(225, 450)


def lattice_ratio(m, digits=8):
    """Ends around the loss between whole laws, point by point and by the code that draws, as a person comes or goes.

    The person has m rows, whose weights are no multiples of a unit of the lattice; others draw the law to the middle.
    """
    facts = kng.Bounds(x=([0.0], [0.7]), y=(0.0, 1.0), unit=kng.Unit("patient", most_rows=1))
    mechanism = kng.KNG(kng.QuantileLoss(0.5), facts, kng.Box(-2.0, 2.0), 1.0, "add_remove")
    x, y, ids = np.full((24 + m, 1), 0.7), np.zeros(24 + m), np.append(np.arange(24), np.full(m, 24))
    y[:14] = 1.0
    sampler = kng.draws.Lattice(data_digits=digits, theta_digits=4)
    tables = [mechanism.intake.records(persons.with_persons(x[:n], ids[:n]), y[:n]) for n in (24 + m, 24)]
    return lattice_loss(*(lattice_law(mechanism, records, sampler) for records in tables))


@pytest.mark.parametrize("m", [1, 3, 7, 300])
def test_a_person_counts_once_on_a_lattice(m):
    least, most = lattice_ratio(m)
    assert most <= 1.0
    assert least > 0.8 or m == 300, "but for rows so many that each rounds to nothing"


@pytest.mark.default_cases("300-8")
@pytest.mark.parametrize(("m", "digits"), [(300, 8), (5000, 12)])
def test_rounding_shares_to_nearest_on_a_lattice_is_seen(monkeypatch, m, digits):
    """A control: errors of rounding add up over the rows of a person."""
    nearest = units.on_lattice
    monkeypatch.setattr(lattice_sums, "on_lattice", lambda values, exponent, _=False: nearest(values, exponent))
    monkeypatch.setattr(lattice_plan, "_away", lattice_plan._rounded)
    assert lattice_ratio(m, digits)[0] > 1.05


@pytest.mark.parametrize("most", [1.0, 3.0])
def test_ends_on_a_lattice_hold_every_sum_of_shares(most):
    """Of each person, and of each part of a person by its own share, in fractions; ends of no room at all."""
    random = np.random.default_rng(0)
    for digits in (8, 20, 50):
        for size in (0.7, 1.0, 1.0 - 2.0**-53, 1e-7, 3.3e8):
            end = most * size
            exponent = units.exponent_of(end) - digits
            _, upper = lattice_plan._away((-end, end), exponent)
            for m in (1, 3, 7, 300, 4877):
                each = persons.shares(np.zeros(m, int), int(most), np.zeros(m, np.uint64)).weights
                x = np.where(random.random(m) < 0.8, size, random.uniform(0.0, size, m))
                for signs in (np.ones(m), random.choice([-1.0, 1.0], m)):
                    whole = units.on_lattice(each * x * signs, exponent, True)
                    part = signs > 0
                    assert sum(map(int, whole[part])) <= Fraction(float(np.sum(each[part]) / most)) * upper
                    assert -sum(map(int, whole[~part])) <= Fraction(float(np.sum(each[~part]) / most)) * upper


WAYS = {
    "quadratic": lambda facts: kng.KNG(kng.SquaredLoss(), facts, BOX, 1.0, "replace"),
    "boxes": lambda facts: kng.KNG(kng.PseudoHuberLoss(0.5), facts, BOX, 1.0, "replace"),
    "counts": lambda facts: kng.GeometricMechanism(facts, 1.0, "replace"),
    "moments": lambda facts: kng.AdaSSP(facts, 1.0, 1e-6, "replace"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("k", [1, 3])
def test_proved_draws_have_the_noise_of_one_record_or_of_a_weight_of_k(way, k):
    """In fractions, which the law of what is drawn follows from."""
    parts = {"y": (0, 2)} if way == "counts" else {"x": (np.array([-1.0]), np.array([1.0])), "y": (-1.0, 1.0)}
    without = kng.Bounds(**parts, weight=None if k == 1 and way != "counts" else float(k))
    facts = Schema(1 if way == "counts" else 2, 50)
    of_persons = kng.Bounds(**parts, unit=kng.Unit("patient", most_rows=k))
    draws = [proved_draw(WAYS[way](bounds), facts) for bounds in (of_persons, without)]
    assert draws[0] is not None
    assert draws[0].takes_weights
    if way == "counts":
        assert draws[0].mechanism.change == draws[1].mechanism.change == 2 * k * 2 ** (19 if k == 1 else 18)
    else:
        assert public(draws[0]) == public(draws[1])


def public(draw):
    """What a draw knows of its law, but for the mechanism, which names whom it protects."""
    return {
        field.name: repr(getattr(draw, field.name)) for field in dataclasses.fields(draw) if field.name != "mechanism"
    }


@pytest.mark.parametrize("k", [1, 3])
def test_the_exact_ridge_of_persons_is_for_hessians_of_any_rank(k):
    """γ(1-q)ε ≥ λ, of the logistic loss λ = k(1 + 1)/4, in fractions and by hardly more."""
    facts = kng.Bounds((np.array([-1.0]), np.array([1.0])), unit=kng.Unit("patient", most_rows=k))
    mechanism = kng.ObjectivePerturbation(kng.LogisticLoss(), facts, None, 1.0, "replace", output_share=0.0625)
    law = proved_draw(mechanism, Schema(2, 50)).law
    least = Fraction(k, 2) / (Fraction(15, 16) * (1 - Fraction(float(mechanism.noise_share))))
    assert least <= law.ridge < least * (1 + Fraction(1, 10**20))


@pytest.mark.default_cases("3000")
@pytest.mark.parametrize("groups", [3, 3000, 20_000])
def test_rounded_scores_of_groups_that_share_persons_have_their_price(groups):
    """A person has one row in each of many groups: scores that are rounded down change by more than shares say."""
    made = {}
    for number in (None, groups):
        facts = kng.Bounds(y=(0.0, 1.0), unit=kng.Unit("patient", most_rows=1, groups=number))
        made[number] = kng.KNG(kng.QuantileLoss(0.5), facts, kng.Box(-0.5, 1.5), 1.0, "add_remove")
    assert most_of_groups(made[None], groups) > 1.0, "a control: without room for it one epsilon is not enough"
    assert most_of_groups(made[groups], groups) <= 1.0


def most_of_groups(mechanism, groups):
    """The largest loss of a person with a row in each group."""
    sampler, most = kng.draws.Lattice(data_digits=20, theta_digits=4), 0.0
    shares = np.append(np.ones(24), 2**19 // groups / 2**19)
    for high in (13, 14):
        y = (np.arange(25) < high).astype(float)
        laws = []
        for n in (25, 24):
            given = WeightedTable(None, persons.Shares(shares[:n], n, np.arange(n)))
            laws.append(lattice_law(mechanism, mechanism.intake.records(given, y[:n]), sampler))
        most = max(most, lattice_loss(*laws)[0] * groups)
    return most


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_a_promise_of_many_records_is_one_of_persons(adjacency, monkeypatch):
    """How many rows there are neither fails a draw nor plans its lattice, in memory and in passes."""
    for module in (lattice, windows):
        monkeypatch.setattr(module, "FEW", 20)
    facts = kng.Bounds(y=(0.0, 1.0), unit=kng.Unit("patient", most_rows=1))
    mechanism = kng.KNG(kng.QuantileLoss(0.5), facts, kng.Box(-0.5, 1.5), 1.0, adjacency)
    ids, y = np.repeat(np.arange(50), 9), np.random.default_rng(0).random(450)
    sampler = kng.draws.Lattice(max_records=50, data_digits=20, theta_digits=22)
    made = persons.shares(ids, 1, np.zeros(450, np.uint64))
    batches = [(WeightedTable(None, persons.Shares(made.weights[at], 25, ids[at])), y[at]) for at in HALVES]
    given = persons.with_persons(None, ids), stream(batches).held(50 if adjacency == "replace" else None)
    for prepared in (sampler.prepare(mechanism, given[0], y), sampler.prepare(mechanism, given[1])):
        assert prepared.num_records == 50
        assert sampler.draw(mechanism, prepared).shape == (1,)
        if adjacency == "add_remove":
            with pytest.raises(RuntimeError, match="max_records"):
                dataclasses.replace(sampler, max_records=49).draw(mechanism, prepared)


def test_groups_of_groups_are_as_many_as_their_product():
    """Of a process in one of five groups the two nodes of a depth are two of ten parts that a person may be in."""
    facts = kng.Bounds(([-1.0], [1.0]), (-1.0, 1.0), unit=kng.Unit("patient", most_rows=1, groups=5))
    halving = kng.QuantileProcess([0.25, 0.5, 0.75], facts, kng.Box(-2.0, 2.0), 1.0, "add_remove").halving()
    assert [one.bounds.unit.groups for one in halving.mechanisms] == [10, 5, 10]
