"""Draws the values that were kept before the package was given its present shape, from the same bits.

Where float64 chooses what to look at next, one kind of processor may need other bits than another for the same exact
law, once in some hundred draws: of such rows each value has a digest of its own. Rows are kept anew, where their laws
are changed on purpose, by `python -m tests.draws.test_kept_values ROW...`.
"""

import functools
import hashlib
import json
import pathlib
import sys

import numpy as np
import pytest

from tests.draws.cases import ROWS
from tests.offenders import every_case

KEPT = pathlib.Path(__file__).with_name("kept_values.json")
FEW, MANY = 2, 200
# Searches in float64 steer which boxes, and which roots, are looked at. Of two values one may be another, of many two
# in a hundred.
STEERED = ("KNG, Huber, boxes", "KNG, capped Poisson, boxes", "private IRLS, Wishart")


@functools.cache
def kept():
    """Digests of the first few and of many values, by row and adjacency."""
    return json.loads(KEPT.read_text(encoding="utf-8"))


def digests(name, adjacency, number):
    """Digests ten digits of each of so many values of a row, the k-th of them drawn with bits of seed k.

    What is made of published numbers in float64 may differ by its last digits where programs are compiled otherwise.
    """
    row = ROWS[name]
    records = row.records()
    values = [np.asarray(row.release(adjacency, records, seed).value, float) for seed in range(number)]
    texts = [" ".join(f"{number:.10g}" for number in value.ravel().tolist()) for value in values]
    if name in STEERED:
        return " ".join(hashlib.sha256(text.encode()).hexdigest()[:4] for text in texts)
    return hashlib.sha256("".join(texts).encode()).hexdigest()[:16]


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("number", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
def test_values_are_those_that_were_kept(name, number):
    with every_case() as case:
        for adjacency in ROWS[name].adjacencies:
            with case(adjacency):
                if name not in STEERED:
                    assert digests(name, adjacency, number) == kept()[name][adjacency][str(number)]
                    continue
                found = digests(name, adjacency, number).split()
                same = [one == two for one, two in zip(found, kept()[name][adjacency].split(), strict=False)]
                assert len(same) == number
                assert sum(same) >= number - max(1, number // 50)


if __name__ == "__main__":
    found = kept()
    for name in sys.argv[1:] or ROWS:
        found[name] = {
            adjacency: digests(name, adjacency, MANY)
            if name in STEERED
            else {str(number): digests(name, adjacency, number) for number in (FEW, MANY)}
            for adjacency in ROWS[name].adjacencies
        }
    KEPT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
