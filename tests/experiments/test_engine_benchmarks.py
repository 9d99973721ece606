"""The table of engines, and the model of what passes cost, in small."""

import types

import numpy as np
import pytest
from pyarrow import parquet

from benchmarks import _turns, engines


def options(**given):
    made = {"rows": 2000, "slopes": None, "kept": None, "turns": 1}
    return types.SimpleNamespace(**made | {"engines": ("memory", "files"), "analyses": ("mean",)} | given)


@pytest.fixture
def here(monkeypatch):
    """Takes one turn of each task, in this process."""

    def measured(engine, tasks, *given):
        return [_turns.one(engine, task, *given) | {"MiB": 1.0} for task in tasks]

    monkeypatch.setattr(_turns, "measured", measured)
    monkeypatch.setattr(_turns, "_MOST_TURNS", 1)
    monkeypatch.setattr(engines, "loading", lambda program: 0.0)


def test_the_files_have_all_rows_whatever_the_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(_turns, "GROUP", 100)
    _turns.write(tmp_path, 1999)
    table = parquet.read_table(tmp_path)
    assert table.num_rows == 1999
    assert table.column_names == [*_turns.COLUMNS]
    wages = table["wage"].to_numpy()
    assert len(np.unique(wages)) == 1999
    assert parquet.ParquetFile(tmp_path / "0.parquet").num_row_groups == 4


@pytest.mark.takes(5, "compiles a release where it is the first one")
def test_a_table_has_a_row_an_analysis_and_engine(here, tmp_path, capsys):
    engines.table(options(), tmp_path)
    rows = [line.split(" | ")[:2] for line in capsys.readouterr().out.splitlines() if line.startswith("| ")][2:]
    found = {(task.strip("| "), engine) for task, engine in rows}
    assert found == {("mean", "memory"), ("mean", "files"), *((name, "files") for name in _turns.PASSES)}


def test_slopes_are_kept_and_printed(here, tmp_path, capsys, monkeypatch):
    kept = tmp_path / "kept.json"
    engines.slopes(options(slopes=[20_000], kept=kept, engines=("files",)), tmp_path)
    said = capsys.readouterr().out
    assert "| mean | files | 1 | " in said
    monkeypatch.setattr(_turns, "measured", None)
    engines.slopes(options(slopes=[20_000], kept=kept, engines=("files",)), tmp_path)
    assert capsys.readouterr().out.splitlines()[2:] == said.splitlines()[2:]


def test_constants_are_those_of_a_straight_line():
    def turn(rows, passes):
        return {"passes": passes, "in passes": passes * (0.5 + 2e-6 * rows), "work": passes * (0.5 + 2e-6 * rows) + 1.0}

    made = engines.Constants([(10**5, turn(10**5, 7)), (10**6, turn(10**6, 6))])
    assert (made.passes, made.start, made.record) == pytest.approx((6, 0.5, 2e-6))
    assert (made.fixed, made.alone) == pytest.approx((1.0, 0.0))
    assert made.work(10**7, 7) == pytest.approx(turn(10**7, 7)["work"])
    alone = engines.Constants([(10**5, turn(10**5, 7)), (10**6, turn(10**6, 6) | {"work": 30.0})], (100, 0.0))
    assert (alone.fixed, alone.alone) == pytest.approx((1.0, 0.0))
    assert engines.replies({10: {"bytes": 100}, 20: {"bytes": 105}}) == (105, 0.0)
    assert engines.replies({10: {"bytes": 100}, 20: {"bytes": 180}}) == pytest.approx((20.0, 8.0))


@pytest.mark.takes(5, "a process of its own, which imports the package")
def test_a_task_that_fails_says_so(tmp_path):
    (made,) = _turns.measured("files", ["mean"], tmp_path / "nothing", 2000, 1)
    assert made["failed"].startswith("FileNotFoundError")
