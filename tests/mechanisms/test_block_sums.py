"""Sums with noise in blocks: what one record changes by brute force, the law, and what is refused."""

import itertools
import random
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import kngjax as kng
from kngjax.data.persons import Identifiers
from kngjax.data.weights import WeightedTable
from kngjax.draws.choice import proved_draw
from kngjax.inference.noise_of_sums import block_noise
from kngjax.mechanisms.block_sums import BlockSums
from tests.oracles.goodness_of_fit import assert_mean_within, assert_same_law, assert_two_samples_agree

ADJACENCIES = ("replace", "add_remove")
# Two groups with one sign, one with both, whose columns lie among one another, and two columns by themselves.
LOWER = np.array([0.0, -1.0, 0.0, 2.0, -0.5, 0.0, -3.0, -2.0, -1.0])
UPPER = np.array([1.0, 0.5, 3.0, 5.0, 2.0, 0.5, 0.0, 0.0, 0.25])
GROUPS = (0, 2, 5), (1, 4), (7, 6)
ALONE = 3, 8
BOUNDS = kng.Bounds(x=(LOWER, UPPER), intercept=False)
SIZES = np.maximum(np.abs(LOWER), np.abs(UPPER))


def norms(changes, adjacency, half=1.0, widths=None):
    """The law's norm of each row, by hand. **Arguments:** `half`: of the widths, for a control; `widths`: of ALONE."""
    y, parts = changes / SIZES, []
    for group in GROUPS:
        above, below = (np.maximum(sign * y[:, group], 0.0).sum(axis=1) for sign in (1.0, -1.0))
        if adjacency == "add_remove":
            parts.append(above + below)
        else:
            parts.append((above + below) / 2.0 if group == (1, 4) else np.maximum(above, below))
    if widths is None:
        widths = UPPER - LOWER if adjacency == "replace" else SIZES
    parts += [np.abs(changes[:, j]) / widths[j] for j in ALONE]
    return np.max(parts, axis=0) / half


def records(scale=1.0):
    """Corners of the bounds with one column of each group, others with all, random ones, and some far beyond them."""
    generator = np.random.default_rng(0)
    corners = generator.choice([0.0, 1.0], (16, 9)) * (UPPER - LOWER) + LOWER
    single = corners.copy()
    for group in GROUPS:
        chosen = generator.choice(group, 16)
        for j in group:
            single[chosen != j, j] = 0.0
    wild = generator.standard_cauchy((8, 9)) * scale
    ties = np.where(LOWER < 0.0, LOWER, UPPER)[None]
    return np.concatenate([corners, single, generator.uniform(LOWER, UPPER, (8, 9)), wild, -wild, ties, 0.0 * ties])


def mechanism_of(adjacency, epsilon=0.7):
    return BlockSums(BOUNDS, epsilon, adjacency, GROUPS)


def changes_of(mechanism, rows):
    """How the exact sum changes when each record comes, and when it is exchanged for each other one."""
    fewer = mechanism.intake.exact_sums(rows[:1]).moment
    sums = [mechanism.intake.exact_sums(np.vstack([rows[:1], row])).moment for row in rows]
    alone = np.array([[float(Fraction(a) - Fraction(b)) for a, b in zip(one, fewer, strict=True)] for one in sums])
    if str(mechanism.adjacency) == "add_remove":
        return np.concatenate([alone, -alone])
    return (alone[:, None] - alone[None]).reshape(-1, 9)


@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e200])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_no_record_changes_the_sum_by_more_than_1_and_one_by_as_much(adjacency, scale):
    """Whatever records are: those that break the promise too. Half of the widths would be seen."""
    changes = changes_of(mechanism_of(adjacency), records(scale))
    assert norms(changes, adjacency).max() == pytest.approx(1.0, abs=1e-12)
    assert norms(changes, adjacency, half=0.5).max() > 1.5


PERSONS = {
    "one vote": ({"unit": kng.Unit("patient", most_rows=1)}, 1.0),
    "three votes": ({"unit": kng.Unit("patient", most_rows=3)}, 3.0),
    "weights": ({"weight": 3.0}, 3.0),
}


def persons_and_what_they_share(name, random):
    """Tables of one person each, of 1 to 7 rows at corners, random or wild; or of one row with a weight."""
    rows, tables = records(), []
    for size in [1] * 60 + [2, 3, 4, 5, 6, 7] * 8:
        table = rows[random.integers(0, len(rows), 1 if name == "weights" else size)]
        shares = random.choice([0.0, 1.7, 3.0, 9.0], 1) if name == "weights" else Identifiers([5] * size)
        tables.append(WeightedTable(table, shares))
    return tables


# Of columns 3 and 8, by what weights add up to: in [2, 5] and [-1, .25], and with private sums of weights 0 besides.
WIDTHS = {
    ("replace", 1.0): (3.0, 1.25),
    ("replace", 3.0): (15.0, 3.75),
    ("add_remove", 1.0): (5.0, 1.0),
    ("add_remove", 3.0): (15.0, 3.0),
}


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("name", PERSONS)
def test_no_person_changes_the_sum_by_more_than_1_and_one_by_as_much(name, adjacency):
    """Rows are exclusive one by one, and a person's together are not: several levels of it are then not 0.

    Norms are by hand, those of the bounds times what weights add up to; without weights one would be seen.
    """
    given, most = PERSONS[name]
    made = BlockSums(kng.Bounds((LOWER, UPPER), intercept=False, **given), 0.7, adjacency, GROUPS)
    tables = persons_and_what_they_share(name, np.random.default_rng(0))
    sums = np.array([made.intake.exact_sums(one).moment.astype(float) for one in tables])
    changes = sums if adjacency == "add_remove" else (sums[:, None] - sums[None]).reshape(-1, 9)
    widths = WIDTHS[adjacency, most]
    weights = made.noise_in_fractions(9, 1).weights
    assert tuple(float(weights[j]) for j in ALONE) == widths
    by_hand = dict(zip(ALONE, np.array(widths) / most, strict=True))
    assert norms(changes / most, adjacency, widths=by_hand).max() == pytest.approx(1.0, abs=1e-9)
    if name == "weights":
        return
    # All rows of a person with weight 1 each are a change far beyond it.
    plain = np.array([mechanism_of(adjacency).intake.exact_sums(one.table).moment.astype(float) for one in tables])
    assert norms(plain / most, adjacency).max() > 1.5
    several = [one for one, own in zip(sums, tables, strict=True) if len(own.table) > 2]
    assert max(np.count_nonzero(one[list(GROUPS[0])]) for one in several) > 1


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_every_block_is_as_narrow_as_can_be(adjacency):
    """Of some pair of records each block changes by 1, and so no weight could be smaller."""
    noise, changes = (
        mechanism_of(adjacency, 1.0).noise_in_fractions(9, 1),
        changes_of(mechanism_of(adjacency), records()),
    )
    weights = np.array([float(weight) for weight in noise.weights])
    for kind, columns in noise.blocks:
        above, below = (np.maximum(sign * changes / weights, 0.0)[:, columns].sum(axis=1) for sign in (1.0, -1.0))
        found = np.maximum(above, below) if kind == "exchange" else above + below
        assert found.max() == pytest.approx(1.0, abs=1e-12)


def test_the_noise_is_that_of_the_law_in_fractions():
    kinds = {adjacency: mechanism_of(adjacency).noise_in_fractions(9, 1) for adjacency in ADJACENCIES}
    exchange, both = kinds["replace"], kinds["add_remove"]
    assert [tuple(block) for block in exchange.blocks] == [
        ("exchange", (0, 2, 5)), ("sum", (1, 4)), ("exchange", (7, 6)), ("sum", (3,)), ("sum", (8,)),
    ]  # fmt: skip
    assert exchange.weights == tuple(map(Fraction, (1, 2, 3, 3, 4, 0.5, 3, 2, 1.25)))
    assert {block.kind for block in both.blocks} == {"sum"}
    assert both.weights == tuple(map(Fraction, SIZES))
    assert exchange.scale_squared == both.scale_squared == Fraction(100, 49)


def test_of_each_group_the_largest_column_is_kept_and_of_ties_the_first():
    x = np.array([[0.5, 0.5, 0.4, 3.0, -0.5, 0.5, -1.0, -1.0, 0.2], [0.1, 0.2, 0.3, 2.0, 0.1, 0.0, 0.0, -0.1, -1.0]])
    kept = np.array([[0.5, 0.5, 0, 3.0, 0, 0, 0, -1.0, 0.2], [0, 0.2, 0.3, 2.0, 0, 0, 0, -0.1, -1.0]])
    before = x.copy()
    np.testing.assert_array_equal(mechanism_of("replace").alone(x), kept)
    np.testing.assert_array_equal(x, before)


def test_without_exclusive_columns_the_noise_is_that_of_a_box():
    for adjacency in ADJACENCIES:
        box = kng.KNormMechanism(BOUNDS, 0.7, adjacency, statistic="sum")
        for groups in ((), [(0,), (4,)]):
            made = BlockSums(BOUNDS, 0.7, adjacency, groups)
            assert made.noise_in_fractions(9, 1).weights == box.noise_in_fractions(9, 1).weights
            np.testing.assert_allclose(made.noise.deviations(9, None), box.noise.deviations(9, None), rtol=1e-12)
            np.testing.assert_allclose(made.noise.least(9, None), box.noise.least(9, None), rtol=1e-6)


def drawn(mechanism, rows, number, seed):
    """Releases less the sum, by the path that releases take."""
    way = proved_draw(mechanism, mechanism.intake.check_schema(rows, None))
    data, bits = way.prepare(rows, None), random.Random(seed).getrandbits
    return np.array([way.draw(data, bits) for _ in range(number)]) - np.array([float(one) for one in data.moment])


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_norm_of_the_noise_has_its_gamma_law_and_coordinates_their_deviations(adjacency):
    """Half of the noise is noticed."""
    mechanism = mechanism_of(adjacency)
    z = drawn(mechanism, records()[:7], 700, 3)
    law = stats.gamma(9, scale=1.0 / 0.7).cdf
    assert_same_law(norms(z, adjacency), law)
    assert_mean_within(z, np.zeros(9))
    assert_mean_within(z**2, mechanism.noise.deviations(9, None) ** 2)
    with pytest.raises(AssertionError, match="below the suite's rate"):
        assert_same_law(norms(z / 2.0, adjacency), law)
    again = block_noise(mechanism, np.random.default_rng(4), 4000)
    assert again.dtype == np.float64
    assert_same_law(norms(again, adjacency), law)
    for one, other in zip(z.T, again.T, strict=True):
        assert_two_samples_agree(one, other)


def test_research_draws_have_the_same_law():
    mechanism = mechanism_of("replace")
    data = mechanism.prepare(records()[:7])
    theta = kng.sample(mechanism, data, key=kng.research_key(1), num_draws=1000, num_chains=4).theta.reshape(-1, 9)
    z = theta - np.asarray(data.moment)
    assert_same_law(norms(z, "replace"), stats.gamma(9, scale=1.0 / 0.7).cdf)
    for one, other in zip(z.T, block_noise(mechanism, np.random.default_rng(4), 4000).T, strict=True):
        assert_two_samples_agree(one, other)
    density = np.array([float(mechanism.log_density(one, data)) for one in theta[:5]])
    np.testing.assert_allclose(
        density - density[0], -0.7 * (norms(z[:5], "replace") - norms(z[:1], "replace")), rtol=1e-4
    )


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_it_is_released_with_a_certificate_and_from_streams_alike(adjacency, tmp_path, monkeypatch):
    names = [f"c{j}" for j in range(9)]
    bounds = kng.Bounds(x={name: pair for name, *pair in zip(names, LOWER, UPPER, strict=True)}, intercept=False)
    mechanism, rows = BlockSums(bounds, 0.5, adjacency, GROUPS), records()
    ledger = kng.Ledger.create(tmp_path / "a.ledger", kng.Budget.pure(2), adjacency=adjacency, dataset="invented")
    released = []
    for make in (
        lambda: rows,
        lambda: pd.DataFrame(rows, columns=names),
        lambda: kng.stream(iter([(rows[:30], None), (rows[30:], None)])),
    ):
        monkeypatch.setattr("secrets.randbits", random.Random(5).getrandbits)
        released.append(kng.release(mechanism, make(), ledger=ledger))
    for one in released:
        np.testing.assert_array_equal(one.value, released[0].value)
        assert (one.certificate.assurance, one.certificate.epsilon, one.certificate.delta) == ("proved", 0.5, 0.0)
        assert one.certificate.rounding is None
    assert released[0].names == tuple(names)
    assert kng.Release.from_json(released[0].to_json()) == released[0]
    assert "over columns (0, 2, 5)" in mechanism.sensitivity.derivation
    assert mechanism.sensitivity.value == 1.0
    assert len(ledger.releases()) == 3


def test_no_record_is_released_like_any():
    assert kng.release(mechanism_of("add_remove"), np.zeros((0, 9))).value.shape == (9,)


@pytest.mark.slow
def test_a_quarter_of_the_noise_is_found_out_by_a_black_box():
    """An exchange of (1, 0) for (0, 1), which moves one sum up and the other down."""
    bounds = kng.Bounds(x=([0.0, 0.0], [1.0, 1.0]), intercept=False)
    mechanism, bold = (BlockSums(bounds, epsilon, "replace", [(0, 1)]) for epsilon in (1.0, 4.0))
    pair = (np.array([[1.0, 0.0]] * 2), None), (np.eye(2), None)
    settings = {"key": kng.research_key(0), "num_draws": 20_000}
    found = kng.audit.black_box(mechanism, *pair, **settings)
    assert found.passed
    assert not kng.audit.black_box(bold, *pair, claimed=mechanism.guarantee, **settings).passed


def test_what_is_no_exclusive_column_is_refused():
    for groups in ([(0, 0)], [(0, 1), (1, 2)], [(0, 9)], [(-1, 0)]):
        with pytest.raises(ValueError, match="columns 0 to 8 at most once"):
            BlockSums(BOUNDS, 1.0, "replace", groups)
    with pytest.raises(ValueError, match="must contain 0"):
        BlockSums(BOUNDS, 1.0, "replace", [(2, 3)])
    with pytest.raises(TypeError):
        BlockSums(BOUNDS, 1.0, "replace", [("a", "b")])
    with pytest.raises(ValueError, match="columns open"):
        BlockSums(kng.Bounds(x=(0.0, 1.0), intercept=False), 1.0, "replace")
    with pytest.raises(ValueError, match="no record changes it"):
        BlockSums(kng.Bounds(x=([0.0, 1.0], [1.0, 1.0]), intercept=False), 1.0, "replace")
    with pytest.raises(ValueError, match="neither intercept nor response"):
        BlockSums(kng.Bounds(x=(LOWER, UPPER)), 1.0, "replace")
    triangle = kng.geometry.FeatureHull([[0.0, 1.0], [2.0, 0.0], [0.0, 0.0]])
    with pytest.raises(ValueError, match="leave the hull out"):
        BlockSums(kng.Bounds(hull=triangle, intercept=False), 1.0, "replace")


def test_groups_of_any_signs_change_by_1_and_no_more():
    """Of two records at their farthest."""
    signs = [(0.0, 0.0, 1.0, 2.0), (-1.0, -2.0, 0.0, 0.0), (-1.0, 0.0, 1.0, 2.0), (-1.0, 0.0, 0.0, 2.0)]
    for ends in (*signs, (-0.1, -0.1, 1.0, 1.0)):
        sides = np.reshape(ends, (2, 2))
        norm = BlockSums(kng.Bounds(x=tuple(sides), intercept=False), 1.0, "replace", [(0, 1)]).score_norm(2)
        rows = [np.eye(2)[j] * side[j] for side in sides for j in (0, 1)]
        found = [float(norm(one - other)) for one, other in itertools.product(rows, repeat=2)]
        assert max(found) == pytest.approx(1.0, rel=1e-6)


def test_a_group_without_a_column_excludes_nothing():
    bounds = kng.Bounds((np.zeros(3), np.ones(3)), intercept=False)
    made = BlockSums(bounds, 1.0, "replace", [(0, 1), ()])
    assert made.exclusive == ((0, 1),)
    assert np.all(np.isfinite(kng.release(made, np.eye(3)).value))
