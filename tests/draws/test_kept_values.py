"""Draws the values that were kept before the package was given its present shape, from the same bits.

`python -m tests.draws.test_kept_values` keeps them anew, where a law is changed on purpose.
"""

import functools
import hashlib
import json
import pathlib

import numpy as np
import pytest

from tests.draws.cases import ROWS
from tests.offenders import every_case

KEPT = pathlib.Path(__file__).with_name("kept_values.json")
FEW, MANY = 2, 200


@functools.cache
def kept():
    """Digests of the first few and of many values, by row and adjacency."""
    return json.loads(KEPT.read_text(encoding="utf-8"))


def digest(name, adjacency, number):
    """Digests ten digits of so many values of a row, the k-th of them drawn with bits of seed k.

    What is made of published numbers in float64 may differ by its last digits where programs are compiled otherwise.
    """
    row, digested = ROWS[name], hashlib.sha256()
    records = row.records()
    for seed in range(number):
        value = np.asarray(row.release(adjacency, records, seed).value, float)
        digested.update(" ".join(f"{number:.10g}" for number in value.ravel().tolist()).encode())
    return digested.hexdigest()[:16]


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("number", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
def test_values_are_those_that_were_kept(name, number):
    with every_case() as case:
        for adjacency in ROWS[name].adjacencies:
            with case(adjacency):
                assert digest(name, adjacency, number) == kept()[name][adjacency][str(number)]


if __name__ == "__main__":
    found = {
        name: {
            adjacency: {str(number): digest(name, adjacency, number) for number in (FEW, MANY)}
            for adjacency in row.adjacencies
        }
        for name, row in ROWS.items()
    }
    KEPT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
