"""A release depends on the records as a set, clipped to the bounds, and on the random bits, and on nothing else."""

import jax
import numpy as np
import pytest

import kngjax as kng
from kngjax.data.weights import with_weights
from tests.draws.cases import ROWS, Records


@pytest.mark.parametrize(("name", "adjacency"), [(name, one) for name, row in ROWS.items() for one in row.adjacencies])
def test_the_order_of_records_changes_nothing_and_other_bits_change_the_value(name, adjacency):
    row = ROWS[name]
    records = row.records()
    order = np.random.default_rng(0).permutation(row.count)
    if row.sizes and adjacency == row.adjacencies[0]:
        # Sizes of 1 to 10^-14 beside each other, where the time of a draw depends on no record.
        records = records._replace(x=records.x * 10.0 ** -(np.arange(row.count) % 15)[:, None])
        one = row.release(adjacency, records)
    else:
        one = row.usual(adjacency)
    assert row.release(adjacency, records.changed(lambda part: part[order])) == one
    seeds = range(1, 1 + row.certain)
    assert any(not np.array_equal(row.release(adjacency, records, seed).value, one.value) for seed in seeds)


@pytest.mark.parametrize("name", ROWS)
def test_records_in_passes_draw_the_same_in_any_order_of_their_parts(name):
    row = ROWS[name]
    records = row.records()
    parts = [records.changed(lambda part, rows=rows: part[rows]) for rows in np.split(np.arange(row.count), [7, 19])]
    pairs = [(with_weights(part.x, part.weights), part.y) for part in parts]
    for adjacency in row.adjacencies:
        # How many records a generator has is not known beforehand, and under replace they decide grids.
        for source in (pairs[::-1], iter(pairs))[: 1 + (adjacency == "add_remove" and records.weights is None)]:
            other = row.release(adjacency, Records(kng.stream(source), None))
            np.testing.assert_array_equal(row.usual(adjacency).value, other.value)


@pytest.mark.parametrize("name", ROWS)
def test_records_far_beyond_the_bounds_count_as_those_at_the_bounds(name):
    row = ROWS[name]
    for adjacency in row.adjacencies:
        bounds = row.made(adjacency).bounds
        ends, far = row.records(), row.records()
        generator = np.random.default_rng(5)
        if ends.x is not None:
            above = generator.random(ends.x.shape) < 0.5
            ends = ends._replace(x=np.where(above, bounds.x_upper, bounds.x_lower))
            far = far._replace(x=np.where(above, 1e300, -1e300))
        if bounds.y_lower is not None:
            above = generator.random(row.count) < 0.5
            ends = ends._replace(y=np.where(above, bounds.y_upper, bounds.y_lower))
            # Counts are not negative.
            lowest = bounds.y_lower if np.isnan(row.made(adjacency).loss.responses(np.array([-1e300]))[0]) else -1e300
            far = far._replace(y=np.where(above, 1e300, lowest))
        if ends.weights is not None:
            ends, far = (
                one._replace(weights=np.full(row.count, w)) for one, w in ((ends, bounds.weight), (far, 1e300))
            )
        one, other = row.release(adjacency, ends), row.release(adjacency, far)
        np.testing.assert_array_equal(one.value, other.value)
        assert np.all(np.isfinite(one.value))


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.sizes])
def test_columns_of_any_size_have_a_value_for_many_records_and_for_few(name):
    row = ROWS[name]
    for adjacency in row.adjacencies:
        for size in row.sizes:
            for count in (row.count, 1, 0)[: 2 + (adjacency == "add_remove")]:
                released = row.release(adjacency, row.records(count, size), size=size)
                assert np.all(np.isfinite(released.value))
                assert released.certificate.assurance == "proved"
                domain = getattr(row.made(adjacency, size), "domain", None)
                if domain is not None:
                    sides = domain.exact_shape(len(released.value))
                    assert np.all((sides.lower <= released.value) & (released.value <= sides.upper))


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.sizes and row.responses])
def test_responses_that_a_plane_separates_have_a_value_at_any_size(name):
    row = ROWS[name]
    for adjacency in row.adjacencies:
        for size in (1.0, *row.sizes):
            records = row.records(size=size)
            records = records._replace(y=(records.x[:, 0] > 0).astype(float))
            assert np.all(np.isfinite(row.release(adjacency, records, size=size).value))


@pytest.mark.parametrize("name", ROWS)
def test_a_value_is_the_same_where_jax_has_float32_alone(name):
    row = ROWS[name]
    records = row.records()
    for adjacency in row.adjacencies:
        expected = row.usual(adjacency)
        with jax.enable_x64(False):
            found = row.release_of_new(adjacency, records)
        assert found == expected
