"""Runs of records beside loops over each of them."""

from fractions import Fraction

import numpy as np

from kngjax.draws.lattice.runs import Runs, first_above, sums_away


def some_runs(generator, sizes):
    """Values that do not fall within runs of these sizes, some of them equal; and where each run starts and stops."""
    stops = np.cumsum(sizes)
    values = np.concatenate([np.sort(generator.integers(-5, 6, size)) for size in sizes]).astype(float)
    return values, stops - sizes, stops


def test_the_first_above_a_bound_is_that_of_a_look_at_each():
    generator = np.random.default_rng(0)
    for longest in (1, 2, 3, 9, 40):
        values, starts, stops = some_runs(generator, generator.integers(1, longest + 1, 50))
        # Parts of runs, empty ones too.
        starts = generator.integers(starts, stops + 1)
        stops = generator.integers(starts, stops + 1)
        bounds = generator.integers(-13, 14, (2, 50)) / 2.0
        found = first_above(values, starts, stops, bounds)
        for (start, stop), bound, place in zip(np.stack([starts, stops], 1), bounds.T, found.T, strict=True):
            expected = [next((at for at in range(start, stop) if values[at] > each), stop) for each in bound]
            assert place.tolist() == expected


def test_sums_away_from_an_origin_are_near_those_of_fractions_however_large_others_are():
    generator = np.random.default_rng(1)
    for longest in (1, 2, 9, 40):
        sizes = generator.integers(1, longest + 1, 30)
        _, starts, stops = some_runs(generator, sizes)
        origins = generator.integers(starts, stops + 1)
        values = generator.uniform(0.0, 1.0, len(np.repeat(starts, sizes))) * 10.0 ** generator.integers(
            -9, 9, stops[-1]
        )
        found = sums_away(values, np.repeat(origins, sizes), int(np.max(sizes)))
        for origin, start, stop in zip(origins, starts, stops, strict=True):
            for place in range(start, stop):
                between = range(origin, place + 1) if place >= origin else range(place, origin)
                exact = sum(Fraction(values[other]) for other in between)
                assert abs(Fraction(found[place]) - exact) <= exact * Fraction(1, 2**49)


def test_runs_of_boxes_are_taken_apart_and_told_one_by_one():
    boxes = [np.array([[0, 5], [2, 6]]), np.empty((2, 0), np.int64), np.array([[1], [4]])]
    runs = Runs.of(boxes)
    assert all(np.array_equal(*pair) for pair in zip(runs.apart(), boxes, strict=True))
    assert runs.sizes().tolist() == [3, 0, 3]
    assert runs.records().tolist() == [0, 1, 5, 1, 2, 3]
    assert runs.on(np.array([2, 1])).records().tolist() == [1, 2, 3]
