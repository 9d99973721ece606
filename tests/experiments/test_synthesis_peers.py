"""The peers of synthetic tables: public codes of columns, and tables by another interpreter."""

import sys

import numpy as np
import pandas as pd
import pytest

import kngjax as kng
from experiments import synthesis
from experiments.synthesis import marginal_peers

COLUMNS = [column for table in synthesis.TABLES.values() for column in table.columns]


@pytest.mark.parametrize("column", COLUMNS, ids=[column.name for column in COLUMNS])
def test_a_cell_stays_in_its_bin(column):
    coding, random = marginal_peers.Coding.of(column), np.random.default_rng(0)
    low, high = (0, 1) if column.is_parent else (column.low, column.high)
    values = np.array(column.labels) if column.is_parent else np.linspace(low, high, 501)
    codes = coding.codes(column.read(values))
    assert codes.min() == 0
    assert codes.max() == coding.size - 1
    drawn = coding.values(codes, random)
    assert coding.codes(column.read(drawn)).tolist() == codes.tolist()
    if not column.is_parent:
        assert coding.size in (40, 37, 31, 60)
        assert np.all((drawn >= low) & (drawn <= high))


def test_whole_numbers_are_drawn_alike_within_their_bin():
    coding = marginal_peers.Coding.of(kng.synthesis.Count("age", 0, 119))
    drawn = coding.values(np.full(30_000, 4), np.random.default_rng(0))
    found, counts = np.unique(drawn, return_counts=True)
    assert found.tolist() == [12, 13, 14]
    np.testing.assert_allclose(counts / 10_000, 1.0, atol=4.0 * np.sqrt(2.0 / 30_000))


@pytest.fixture
def source(tmp_path):
    """Mechanisms that give the rows back twice, in the places of MST and `mbi`."""
    (tmp_path / "mst.py").write_text(
        "import mbi, numpy\n"
        "def MST(data, epsilon, delta):\n"
        "    print('a line that is no number')\n"
        "    assert (epsilon, delta) == (2.0, 1e-6) and data.domain == {'city': 2, 'wage': 60}\n"
        "    return mbi.Dataset({name: numpy.repeat(one, 2) for name, one in data.columns.items()}, data.domain)\n"
    )
    (tmp_path / "mbi.py").write_text(
        "class Domain:\n"
        "    fromdict = staticmethod(dict)\n"
        "class Dataset:\n"
        "    def __init__(self, columns, domain):\n"
        "        self.columns, self.domain = columns, domain\n"
        "    def to_dict(self):\n"
        "        return self.columns\n"
    )
    return str(tmp_path)


def test_a_table_by_another_interpreter_has_its_codes(source):
    plan = kng.synthesis.plan(
        [
            kng.synthesis.Category("city", ["no", "yes"], other="no"),
            kng.synthesis.Numeric("wage", 20, 5000, transform="log"),
        ],
        epsilon=2.0,
        adjacency="replace",
        force=True,
    )
    frame = pd.DataFrame({"city": ["no", "yes", "yes"], "wage": [20.0, 300.0, 9999.0]})
    made = list(marginal_peers.tables(sys.executable, source, "MST", plan, frame, 2.0, range(3)))
    assert len(made) == 3
    for drawn, seconds in made:
        assert seconds >= 0.0
        assert drawn["city"].tolist() == ["no", "no", "yes", "yes", "yes", "yes"]
        np.testing.assert_allclose(np.log(drawn["wage"]), np.log(np.repeat([20.0, 300.0, 5000.0], 2)), atol=0.0921)
    assert not np.array_equal(made[0][0]["wage"], made[1][0]["wage"])


def test_an_interpreter_that_stops_is_told(tmp_path):
    plan = kng.synthesis.plan(
        [kng.synthesis.Category("city", ["no", "yes"])], epsilon=2.0, adjacency="replace", force=True
    )
    frame = pd.DataFrame({"city": ["no", "yes"]})
    with pytest.raises(RuntimeError, match="stopped"):
        list(marginal_peers.tables(sys.executable, str(tmp_path), "MST", plan, frame, 2.0, range(1)))
