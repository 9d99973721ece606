"""An estimate with intervals of which one part is not proved says so, however it came to be read."""

import json

import numpy as np
import pytest

import kngjax as kng

BOUNDS = kng.Bounds(x=([-0.3], [0.7]), y=(-0.4, 1.3))
MECHANISM = kng.KNG(kng.SquaredLoss(), BOUNDS, kng.Box(-1.1, 2.3), 2.1, "replace")


@pytest.fixture(scope="module")
def released():
    x = np.linspace(-0.3, 0.7, 400)[:, None]
    return kng.release(kng.WithIntervals(MECHANISM), x, 0.2 + 0.5 * x[:, 0])


def test_all_parts_together_are_proved_where_each_part_is(released):
    assert released.cost == released.guarantee
    assert "NOT PROVED" not in released.explain()


@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_part_without_a_proof_leaves_all_of_them_without(released, place):
    """A file may hold parts that a Markov chain drew: nothing is proved of them together."""
    fields = json.loads(released.to_json())
    fields["parts"][place]["certificate"]["assurance"] = "none"
    read = kng.inference.ReleaseWithIntervals.from_json(json.dumps(fields))
    assert read.parts[place].certificate.cost is None
    assert read.cost is None
    assert f"NOT PROVED to be {released.guarantee.explain()}" in read.explain()
