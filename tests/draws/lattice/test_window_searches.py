"""Values drawn of many records are the same to the bit in memory and in passes, and few of the records are kept."""

import random

import numpy as np
import pytest

import kngjax as kng
from kngjax.data.weights import with_weights
from kngjax.draws.lattice import lattice, windows
from kngjax.draws.lattice.check_scores import QuantileScore
from kngjax.draws.lattice.window_searches import QuantileScores
from kngjax.draws.lattice.windows import WindowScore
from kngjax.mechanisms.preparation import TOO_MANY_RECORDS
from tests.offenders import every_case

NUMBER = 6000
ADJACENCIES = ("replace", "add_remove")


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Has tables of some thousand records taken for large ones."""
    for room in (lattice, windows):
        monkeypatch.setattr(room, "FEW", 500)
    monkeypatch.setattr(windows, "_BLOCK", 1024)


def median(d, adjacency="replace", epsilon=30.0, domain=None, **bounds):
    sides = {"x": ([0.0] * (d - 1), [1.0] * (d - 1))} if d > 1 else {}
    bounds = kng.Bounds(**sides, y=(-1.0, 2.0), **bounds)
    return kng.KNG(kng.QuantileLoss(0.5), bounds, domain or kng.Box(-2.0, 2.0), epsilon, adjacency)


def table(d, number=NUMBER):
    generator = np.random.default_rng(d)
    X = generator.uniform(0.0, 1.0, (number, d - 1))
    return X, 0.3 + X @ np.linspace(0.5, 0.2, d - 1) + 0.2 * generator.standard_normal(number)


def chunks(X, y, sizes=(1, 900, 0, 2500)):
    """The records in another order, in chunks of these sizes and one of the others."""
    order = np.random.default_rng(3).permutation(len(y))
    X = np.zeros((len(y), 0)) if X is None else X
    return [(X[rows] if X.shape[1] else None, y[rows]) for rows in np.split(order, np.cumsum(sizes))]


def values(mechanism, sources, number=2):
    """Values from each source, from the same bits, and what they are drawn from."""
    sampler = kng.draws.Lattice(12, 14).resolve(mechanism, mechanism.dimension, None)
    prepared = [sampler.prepare(mechanism, *source) for source in sources]
    return [
        np.array([sampler.draw(mechanism, one, random.Random(seed).getrandbits) for seed in range(number)])
        for one in prepared
    ], prepared


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_values_are_the_same_to_the_bit_in_any_order_and_chunks(d, adjacency):
    (X, y), mechanism = table(d), median(d, adjacency)
    X = X if d > 1 else None
    sources = [(X, y), (kng.stream(chunks(X, y)),), (kng.stream(iter(chunks(X, y))),)]
    drawn, prepared = values(mechanism, sources)
    for other in drawn[1:]:
        np.testing.assert_array_equal(drawn[0], other)
    for one in prepared:
        assert isinstance(one, QuantileScores)
        assert isinstance(one.scores[0], WindowScore)
        assert len(one.scores[0]._records.counts) < NUMBER / 3


@pytest.mark.parametrize("d", [1, 2])
def test_scores_far_from_and_in_the_window_are_those_of_all_records(d):
    (X, y), mechanism = table(d), median(d)
    sampler = kng.draws.Lattice(12, 14).resolve(mechanism, d, NUMBER)
    problem = sampler.problem(mechanism, sampler.prepare(mechanism, X if d > 1 else None, y))
    full = sampler.problem(mechanism, mechanism.intake.records(X if d > 1 else None, y)).score
    assert isinstance(problem.score, WindowScore)
    assert isinstance(full, QuantileScore)
    boxes = sampler.envelope(problem)._boxes
    generator, score, held = np.random.default_rng(0), problem.score, 0
    for box in generator.integers(0, len(boxes.low), 60):
        low, high = boxes.low[box], boxes.high[box]
        k = score.coordinates.matrix @ generator.integers(low, high + 1)
        if problem.domain.contains(k):
            expected = full.at(k, full._records.everything, full._closed[0])
            assert score.at(k, boxes.runs[box], boxes.sums[box]) == expected >= int(boxes.lower[box])
            held += 1
    assert held > 20


def adversarial():
    generator = np.random.default_rng(8)
    X, noise = generator.uniform(0.0, 1.0, (1200, 1)), generator.standard_normal(1200)
    yield "all equal", X[:1].repeat(1200, 0), noise[:1].repeat(1200)
    yield "one response", X, np.zeros(1200)
    yield "a heap", X, np.where(generator.random(1200) < 0.2, 0.0, X[:, 0] + 0.1 * noise)
    yield "at the ends", X, np.where(generator.random(1200) < 0.5, -9.0, 9.0)
    yield "a feature of zeros", 0.0 * X, noise
    yield "few that differ", np.round(X, 1), np.round(noise, 1)
    yield "a straight line", X, X[:, 0]
    yield "one record more than few", X[:501], noise[:501]
    yield "one end", X, np.where(np.arange(1200) < 1190, 9.0, noise)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("first", [0, 1])
def test_values_of_adversarial_tables_are_the_same_in_memory_and_in_passes(first, adjacency):
    with every_case() as case:
        for name, X, y in list(adversarial())[first::2]:
            with case(name):
                one, other = values(median(2, adjacency, 5.0), [(X, y), (kng.stream(chunks(X, y, (400, 3))),)], 1)[0]
                np.testing.assert_array_equal(one, other)


def test_several_quantiles_share_their_passes():
    y = np.random.default_rng(5).uniform(-1.0, 2.0, NUMBER)
    levels = kng.PrivateQuantile([0.2, 0.5, 0.9], kng.Bounds(y=(-1.0, 2.0)), 60.0, "replace", budget="split")
    drawn, prepared = values(levels, [(y,), (kng.stream(chunks(None, y)),)])
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert isinstance(prepared[1], QuantileScores)
    assert [type(score) for score in prepared[1].scores] == [WindowScore] * 3
    np.testing.assert_allclose(drawn[0].mean(axis=0), [-0.4, 0.5, 1.7], atol=0.05)


def test_weights_are_absorbed_in_passes_as_in_memory():
    import pyarrow as pa

    X, y = table(2)
    weights = np.random.default_rng(1).uniform(0.5, 1.0, NUMBER)
    mechanism = median(2, weight=1.0)
    frame = pa.table({"a": X[:, 0], "y": y, "w": weights})
    source = kng.stream([frame.slice(4000), frame.slice(0, 4000)], response="y", weights="w")
    drawn, _ = values(mechanism, [(with_weights(X, weights), y), (source,)], 1)
    np.testing.assert_array_equal(drawn[0], drawn[1])


def test_more_records_than_allowed_fail_and_none_are_drawn_from():
    X, y = table(2)
    mechanism = median(2, "add_remove")
    sampler = kng.draws.Lattice(12, 14, max_records=NUMBER - 1)
    for source in ((X, y), (kng.stream(chunks(X, y)),)):
        with pytest.raises(RuntimeError, match=TOO_MANY_RECORDS[:20]):
            sampler.draw(mechanism, sampler.prepare(mechanism, *source))
    drawn, _ = values(mechanism, [(X[:0], y[:0]), (kng.stream([(X[:0], y[:0])]),), (kng.stream([]),)], 1)
    np.testing.assert_array_equal(drawn[0], drawn[1])
    np.testing.assert_array_equal(drawn[0], drawn[2])
    with pytest.raises(ValueError, match="the data are empty"):
        kng.draws.Lattice(12, 14).prepare(median(2), kng.stream([(X[:0], y[:0])]))
