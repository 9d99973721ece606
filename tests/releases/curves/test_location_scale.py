"""Curves as location and scale: the law by hand, draws of it, curves that never cross, prices, releases, refusals."""

import itertools
import pickle
import random
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats

import kngjax as kng
from kngjax.releases.curves.location_scale import SHARES, LocationScale

ADJACENCIES = ("replace", "add_remove")
COARSE = kng.Lattice(data_digits=4, theta_digits=2)
LEVELS = (0.25, 0.5, 0.75)
NUMBERS = kng.Bounds(y=(0.0, 1.0))


def of_numbers(adjacency, epsilon=4.0, levels=LEVELS):
    meant = kng.Adjacency.parse(adjacency)
    return LocationScale.of(levels, NUMBERS, kng.Box(0.0, 1.0), epsilon, meant, 1, 64, COARSE)


@pytest.mark.default_cases("5")
@pytest.mark.parametrize("number", [0, 1, 5, 400])
def test_curves_never_cross_where_records_may_be(number):
    """Of no record, too."""
    bounds = kng.Bounds(x={"first": (-1.0, 0.3), "second": (0.1, 1.0)})
    levels = [0.2, 0.4, 0.6, 0.8]
    made = LocationScale.of(levels, bounds, kng.L2Ball(5.0), 2.0, kng.Adjacency.ADD_REMOVE, 3, 1000)
    generator = np.random.default_rng(number)
    x = generator.uniform([-1.0, 0.1], [0.3, 1.0], (number, 2))
    records = made.prepare(x, x @ [1.0, -1.0] + generator.standard_normal(number))
    curves = made.draw(records, random.Random(number).getrandbits)
    assert curves.shape == (4, 3)
    corners = np.array([[1.0, *corner] for corner in itertools.product((-1.0, 0.3), (0.1, 1.0))])
    assert np.all(np.diff(corners @ curves.T, axis=1) >= -1e-13)


def test_residuals_and_their_quotients_are_of_each_record_by_itself():
    bounds = kng.Bounds(x=([-1.0], [1.0]), y=(-3.0, 3.0))
    made = LocationScale.of(LEVELS, bounds, kng.Box(-4.0, 4.0), 1.0, kng.Adjacency.REPLACE, 2, 50)
    generator = np.random.default_rng(0)
    x, y = generator.uniform(-1.0, 1.0, (50, 1)), generator.uniform(-3.0, 3.0, 50)
    records = made.prepare(x, y)
    location, scale = (plan.domain for plan in made.plans)
    centre = location.nearest(np.array([0.3, -0.2]) / np.ldexp(1.0, location.exponents))
    slope = scale.nearest(np.array([0.9, 0.4]) / np.ldexp(1.0, scale.exponents))
    together = made.standardised(records, centre, slope)
    alone = [made.standardised(records.at(np.array([place])), centre, slope).y[0] for place in range(50)]
    np.testing.assert_array_equal(together.y, alone)
    expected = (y - 0.3 + 0.2 * x[:, 0]) / (0.9 + 0.4 * x[:, 0])
    found = np.ldexp(together.y.astype(float), made.quantiles.plans[0].unit)
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.3])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_all_parts_together_cost_epsilon_and_as_good_as_all_of_it(adjacency, epsilon):
    assert sum(SHARES.values()) == 1
    made = of_numbers(adjacency, epsilon)
    assert made.guarantee.adjacency == adjacency
    whole = Fraction(repr(epsilon))
    assert whole * (1 - Fraction(1, 10**14)) < made.guarantee.exact_epsilon <= whole
    parts = [made.location, made.scale]
    assert [part.guarantee.exact_epsilon / whole for part in parts] == pytest.approx([0.4, 0.3])
    assert {part.adjacency for part in parts} == {adjacency}


GIVEN = {
    "levels": [0.1, 0.25, 0.5, 0.75, 0.9],
    "bounds": kng.Bounds(x={"schooling": (-1.0, 1.0)}, y=(-6.0, 6.0)),
    "domain": kng.Box({"intercept": (-8.0, 8.0), "schooling": (-3.0, 3.0)}),
    "epsilon": 2.0,
    "order": "location_scale",
}


def table(number):
    generator = np.random.default_rng(0)
    x = generator.uniform(-1.0, 1.0, (number, 1))
    return x, np.clip(0.5 * x[:, 0] + (1.0 + 0.4 * x[:, 0]) * generator.standard_normal(number), -6.0, 6.0)


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_release_is_one_debit_with_one_certificate_of_all_parts(adjacency, tmp_path):
    ledger = kng.Ledger.create(tmp_path / "book", kng.Budget.pure(2.0), adjacency=adjacency, dataset="made up")
    process = kng.QuantileProcess(**GIVEN, adjacency=adjacency)
    x, y = table(3000)
    made = kng.release(process, x, y, ledger=ledger)
    certificate = made.certificate
    assert certificate == process.certify(x, y)
    assert certificate.assurance == "exact_with_rounding"
    assert 2.0 - 1e-12 < certificate.cost.epsilon <= 2.0
    assert len(ledger.releases()) == 1
    with pytest.raises(kng.BudgetExceeded):
        kng.release(process, x, y, ledger=ledger)
    parts = certificate.sampler["location"], certificate.sampler["scale"], *certificate.sampler["parts"]
    assert {part["assurance"] for part in parts} == {"exact_with_rounding"}
    text = made.explain()
    assert "Location: KNG with QuantileLoss at the level 0.5 of all records" in text
    assert "Scale: KNG with QuantileLoss at the level 0.5 of all sizes of residuals" in text
    assert "Level 0.9: depth" in text
    for again in (kng.QuantileCurves.from_json(made.to_json()), pickle.loads(pickle.dumps(made))):
        assert again == made
        np.testing.assert_array_equal(again.value, made.value)
    assert eval(repr(process), {name: getattr(kng, name) for name in ("QuantileProcess", "Bounds", "Box")}) is not None
    z = scipy.stats.norm.ppf(GIVEN["levels"])
    np.testing.assert_allclose(made.value, np.column_stack([z, 0.5 + 0.4 * z]), atol=0.35)


REFUSED = {
    "no intercept": (
        {"bounds": kng.Bounds(x=([0.5], [1.0]), intercept=False), "domain": kng.Box(0.0, 1.0)},
        "intercept",
    ),
    "five coefficients": (
        {"bounds": kng.Bounds(x=(-np.ones(4), np.ones(4))), "domain": kng.Box(-1.0, 1.0)},
        "by location_scale takes up to 4 coefficients",
    ),
    "a bandwidth": ({"bandwidth": 0.1}, "order='joint'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_makes_no_process_is_refused_in_words(name):
    changes, words = REFUSED[name]
    with pytest.raises(ValueError, match=words):
        kng.QuantileProcess(**GIVEN | changes, adjacency="replace")


def test_previews_samplers_and_too_many_records_are_refused():
    process = kng.QuantileProcess(**GIVEN, adjacency="add_remove", max_records=400)
    x, y = table(500)
    with pytest.raises(ValueError, match="previews are of curves by halving"):
        process.making().stand_ins()
    with pytest.raises(TypeError, match="by location_scale are drawn exactly: leave the sampler out"):
        process.certify(x, y, kng.Exact())
    with pytest.raises(kng.ReleaseFailed):
        kng.release(kng.QuantileProcess(**GIVEN, adjacency="add_remove", max_records=400, force=True), x, y)
    with pytest.raises(ValueError, match="too few lie beyond"):
        kng.QuantileProcess(**GIVEN | {"epsilon": 0.1}, adjacency="replace").certify(x, y)
