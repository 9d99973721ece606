"""What engines do to rows if nobody sees to it, of which no other test tells: each is closed or refused."""

import pickle
import random

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import kngjax as kng
from kngjax.data.engines.clusters import AbstractCluster
from kngjax.data.passes import Passes
from kngjax.data.work import NamedParts, Total
from tests.draws.cases import drawn_with

COUNT = 500
WAGES = np.random.default_rng(0).integers(0, 2001, COUNT) / 2 - 0.5
FACTS = {"bounds": {"wage": (0, 900)}, "adjacency": "replace"}


class Twice(AbstractCluster):
    """Replies for a part as often as it is told to, as an engine might that runs a part again."""

    name = "a table in parts"
    parts: tuple[int, ...] = ()

    def declared(self, choose):
        return [self.source]

    def _run(self, choose, work):
        return [(part, work.reply([self.source])) for part in self.parts]


def one_by_one(pair):
    return Total(len(pair[1]), len(pair[1]))


def test_a_part_that_replies_twice_is_not_counted_twice():
    engine = Twice(pa.table({"y": [1.0, 2.0]}), 64)
    records = Passes(engine, NamedParts(None, "y"))
    engine.parts = (0, 1, 2)
    assert records.total(one_by_one) == 6
    engine.parts = (0, 1, 1)
    with pytest.raises(ValueError, match="an error of a worker, and nothing of it is used"):
        records.total(one_by_one)


def test_a_part_that_replies_with_a_failure_spoils_the_whole(monkeypatch):
    engine = Twice(pa.table({"y": [1.0]}), 64)
    monkeypatch.setattr(engine, "_run", lambda choose, work: [(0, pickle.dumps(Total(1, 1))), (1, pickle.dumps(None))])
    with pytest.raises(ValueError, match="an error of a worker, and nothing of it is used"):
        Passes(engine, NamedParts(None, "y")).total(one_by_one)


def query(table, select):
    connection = duckdb.connect()
    connection.register("people", table)
    return connection.sql(f"SELECT {select} FROM people")


def released(frame, **facts):
    with drawn_with(random.Random(5).getrandbits):
        made = kng.Study(frame, **{**FACTS, "num_records": None if isinstance(frame, pa.Table) else COUNT, **facts})
        return made.mean("wage", epsilon=1.0).releases[0].to_json()


def test_types_that_engines_choose_change_nothing():
    """Halves are no ties to round, decimals no other numbers, and text is read cell by cell, whatever stands below."""
    table = pa.table({"wage": WAGES})
    expected = released(table)
    for select in ("wage::DECIMAL(18, 1) AS wage", "wage::FLOAT AS wage", "wage::VARCHAR AS wage"):
        assert released(query(table, select)) == expected, select
    whole = pa.table({"wage": 2.0 * WAGES})
    doubled = released(whole)
    for select in ("wage::SMALLINT AS wage", "wage::HUGEINT AS wage"):
        assert released(query(whole, select)) == doubled, select


def test_sums_beyond_whole_numbers_of_an_engine_do_not_wrap():
    table = pa.table({"y": pa.array([2**62, -(2**62), 2**62, 2**62, 2**62], pa.int64())})
    mean = kng.KNormMechanism(kng.Bounds(x=(-(2.0**62), 2.0**62), intercept=False), 1.0, "replace")
    for select in ("y", "y::HUGEINT AS y", "y::DOUBLE AS y"):
        found = mean.intake.exact_sums(kng.stream(query(table, select)))
        assert found.moment.tolist() == mean.intake.exact_sums(table).moment.tolist() != [0], select


@pytest.mark.parametrize("cell", ["NULL", "'nan'::DOUBLE", "'inf'::DOUBLE"])
def test_a_missing_cell_of_a_query_is_no_bound(cell):
    """`greatest(least(NULL, 1), 0)` is 1 on engines: here it is what the study says, and without that no release."""
    table = pa.table({"wage": WAGES})
    holed = query(table, f"CASE WHEN wage > 500 THEN {cell} ELSE wage END AS wage")
    with pytest.raises(kng.ReleaseFailed):
        released(holed)
    filled = pa.table({"wage": np.where(WAGES > 500, 250.0, WAGES)})
    assert released(holed, missing={"wage": 250.0}) == released(filled, missing={"wage": 250.0})
