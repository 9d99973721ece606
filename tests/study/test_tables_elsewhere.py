"""Studies of tables on engines release what those of the same table in memory do, to the bit, from the same bits."""

import random

import cloudpickle
import dask.dataframe as dd
import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kngjax as kng
from kngjax.data.engines.clusters import AbstractCluster
from kngjax.data.engines.local import AbstractLocalEngine, Relation
from kngjax.data.tables import on_engine
from kngjax.draws.lattice import lattice, windows
from tests.draws.cases import drawn_with
from tests.study.people import PEOPLE, people, study
from tests.words import words_of

TABLE = pa.Table.from_pandas(people(1500), preserve_index=False)
ORDER = np.random.default_rng(2).permutation(1500)
SHARED = {"epsilon": 2.0}
ANALYSES = {
    "mean": lambda one: one.mean("wage", **SHARED),
    "sum": lambda one: one.sum("sick", **SHARED),
    "variance": lambda one: one.variance("education", **SHARED),
    "quantiles": lambda one: one.quantile("wage", tau=[0.25, 0.5], **SHARED),
    "an interval of a quantile": lambda one: one.quantile_interval("wage", tau=0.5, **SHARED),
    "histogram": lambda one: one.histogram("wage", edges=5, **SHARED),
    "cross table": lambda one: one.crosstab("region", "parttime", **SHARED),
    "linear": lambda one: one.linear_regression("log(wage) ~ education + region", **SHARED),
    "logistic": lambda one: one.logistic_regression("parttime ~ education", **SHARED),
    "Poisson": lambda one: one.poisson_regression("sick ~ education", **SHARED),
    "quantile": lambda one: one.quantile_regression("log(wage) ~ education", tau=0.5, **SHARED),
    "intervals": lambda one: one.linear_regression("log(wage) ~ education + region", intervals=True, epsilon=8.0),
    "groups": lambda one: one.by("region").mean("wage", **SHARED),
    "groups of regressions": lambda one: one.by("parttime").linear_regression("log(wage) ~ education", **SHARED),
}


def files(frame, folder):
    for number, rows in enumerate(np.array_split(ORDER, 3)):
        pq.write_table(frame.take(rows), folder / f"{number}.parquet")
    return folder


def relation(frame):
    connection = duckdb.connect()
    connection.register("people", frame)
    return connection.sql("FROM people ORDER BY wage")


ELSEWHERE = {
    "files": lambda frame, folder: f"{files(frame, folder)}/*.parquet",
    "DuckDB": lambda frame, folder: relation(frame),
    "Polars": lambda frame, folder: pl.from_arrow(frame).lazy(),
    "Dask": lambda frame, folder: dd.from_pandas(frame.to_pandas(), npartitions=7),
}


def released(frame, analysis, adjacency):
    is_counted = adjacency == "replace" and isinstance(frame, pa.Table | str)
    guess = {} if is_counted else {"num_records": 1500}
    with drawn_with(random.Random(5).getrandbits):
        made = analysis(study(frame, adjacency=adjacency, **guess))
    return [one.to_json() for one in made.releases]


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(one, marks=pytest.mark.takes(5, "five releases with intervals") if one == "intervals" else ())
        for one in ANALYSES
    ],
)
def test_releases_are_those_of_the_table_in_memory_to_the_bit(name, adjacency, tmp_path):
    expected = released(TABLE, ANALYSES[name], adjacency)
    for make in ELSEWHERE.values():
        assert released(make(TABLE, tmp_path), ANALYSES[name], adjacency) == expected


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_quantiles_of_many_records_are_those_of_the_table_in_memory_too(adjacency, tmp_path, monkeypatch):
    def analysis(one):
        return one.quantile_regression("wage ~ education", tau=0.5, epsilon=90.0, force=True)

    for room in (lattice, windows):
        monkeypatch.setattr(room, "FEW", 200)
    expected = released(TABLE, analysis, adjacency)
    for name in ("files", "DuckDB"):
        assert released(ELSEWHERE[name](TABLE, tmp_path), analysis, adjacency) == expected


@pytest.mark.takes(6, "a release with intervals in several passes")
def test_work_for_workers_can_be_sent_to_them(monkeypatch):
    replies = AbstractCluster.replies
    monkeypatch.setattr(
        AbstractCluster,
        "replies",
        lambda engine, choose, work, moved: replies(engine, choose, cloudpickle.loads(cloudpickle.dumps(work)), moved),
    )
    assert released(ELSEWHERE["Dask"](TABLE, None), ANALYSES["intervals"], "add_remove")


def test_a_number_stated_to_the_study_counts_for_an_engine_that_was_opened_before():
    engine = on_engine(Relation(relation(TABLE), rows=500))
    assert study(engine, num_records=1500).mean("wage", epsilon=1.0).releases[0].certificate.num_records == 1500
    with pytest.raises(kng.ReleaseFailed):
        study(engine, num_records=1499).mean("wage", epsilon=1.0)


def test_no_query_is_run_before_a_debit(monkeypatch):
    def run(*given):
        raise AssertionError("was run")

    failing = relation(TABLE).filter("CAST(region AS DOUBLE) > 0")
    with pytest.raises(ValueError, match="does not tell it without being read: state it, num_records="):
        study(relation(TABLE)).mean("wage", epsilon=1.0)
    for facts in ({"num_records": 1500}, {"adjacency": "add_remove"}):
        with pytest.raises(kng.ReleaseFailed):
            study(failing, **facts).mean("wage", epsilon=1.0)
    with pytest.raises(kng.ReleaseFailed):
        study(relation(TABLE), num_records=1501).mean("wage", epsilon=1.0)
    with pytest.raises(ValueError, match="leave num_records out"):
        study(TABLE, num_records=1500)
    monkeypatch.setattr(Relation, "replies", run)
    assert "mean" in repr(study(relation(TABLE), num_records=1500).plan().mean("wage", epsilon=1.0))


@pytest.mark.parametrize("analysis", ["groups", "groups of regressions"])
def test_groups_share_a_pass_where_they_ask_for_the_same(analysis, monkeypatch):
    taken = []
    monkeypatch.setattr(Relation, "replies", lambda *given: taken.append(1) or AbstractLocalEngine.replies(*given))
    assert ANALYSES[analysis](study(relation(TABLE), adjacency="add_remove", num_records=1500)).releases
    assert len(taken) == 1


def test_groups_whose_searches_part_ways_are_those_of_the_table_in_memory():
    def analysis(one):
        return one.by("parttime").poisson_regression("sick ~ education", **SHARED)

    assert released(relation(TABLE), analysis, "add_remove") == released(TABLE, analysis, "add_remove")


def test_groups_are_held_to_the_number_that_was_stated():
    one = study(relation(TABLE), num_records=1499)
    with pytest.raises(kng.ReleaseFailed):
        one.by("region").mean("wage", epsilon=1.0)


@pytest.mark.parametrize(("adjacency", "numbers"), [("replace", True), ("add_remove", False)])
def test_a_bar_of_passes_tells_a_number_of_records_only_where_it_is_public(adjacency, numbers, capsys):
    mechanism = kng.AdaSSP(kng.Bounds(x={"education": (0, 20)}, y=(20, 20_000)), 1.0, 1e-6, adjacency)
    chunks = [TABLE.select(["education", "wage"])]
    kng.release(mechanism, kng.stream(chunks, columns=["education"], response="wage"), progress=True)
    shown = capsys.readouterr().err
    assert "pass 1 over an iterable of chunks" in shown
    assert ("1.50k" in shown) is numbers


def test_a_record_is_in_one_group_in_all_passes_or_nothing_is_released():
    """A column of groups that is drawn anew in each pass would put records into several, or into none."""
    generator = np.random.default_rng(3)

    def drawn(frame):
        return frame.with_columns(region=pl.Series(generator.choice(["north", "south"], len(frame))))

    drawn_anew = pl.from_arrow(TABLE).lazy().map_batches(drawn)
    with pytest.raises(kng.ReleaseFailed):
        ANALYSES["Poisson"](study(drawn_anew, adjacency="add_remove", num_records=1500).by("region"))


def test_tables_without_a_record_are_released_where_their_number_is_private(tmp_path):
    empty = TABLE.slice(0, 0)
    pq.write_table(empty, tmp_path / "0.parquet")
    for name in ("mean", "Poisson", "histogram"):
        sources = (empty, relation(empty), f"{tmp_path}/*.parquet")
        assert len({str(released(source, ANALYSES[name], "add_remove")) for source in sources}) == 1, name


def test_what_public_facts_refuse_costs_nothing(tmp_path):
    ledger = kng.Ledger.create(tmp_path / "budget", kng.Budget.pure(9), adjacency="replace", dataset="invented")
    dates = TABLE.append_column("born", pa.array([[1]] * 1500))
    one = study(relation(dates), ledger=ledger, num_records=1500, bounds={"wage": (20, 20_000), "born": (0, 1)})
    with pytest.raises(TypeError, match="holds neither numbers nor text"):
        one.mean("born", epsilon=1.0)
    with pytest.raises(ValueError, match="which the data do not have"):
        study(relation(TABLE), ledger=ledger, num_records=1500, bounds={"age": (0, 1)}).mean("age", epsilon=1.0)
    for name, kind in (("0", pa.float64()), ("1", pa.list_(pa.float64()))):
        pq.write_table(pa.table({"wage": pa.array([None] * 3, kind)}), tmp_path / f"{name}.parquet")
    with pytest.raises(TypeError, match="holds neither numbers nor text"):
        study(f"{tmp_path}/*.parquet", ledger=ledger).mean("wage", epsilon=1.0)
    assert ledger.verify().num_rows == 1


def test_a_table_that_grew_is_not_released(tmp_path):
    one = study(files(TABLE, tmp_path))
    pq.write_table(TABLE.slice(0, 1), tmp_path / "9.parquet")
    with pytest.raises(ValueError, match="another number of records"):
        one.mean("wage", epsilon=1.0)


def test_missing_cells_codes_and_weights_count_as_in_memory():
    frame = people(400)
    frame.loc[::7, "wage"] = 99_999
    frame.loc[::11, "sick"] = np.nan
    known = {"missing": {"wage": 300.0, "sick": 0.0}, "missing_codes": {"wage": [99_999]}, "weights": "experience"}
    table = pa.Table.from_pandas(frame, preserve_index=False)
    for analysis in (ANALYSES["mean"], lambda one: one.linear_regression("sick ~ education", epsilon=2.0)):
        found = []
        for source, stated in ((table, None), (relation(table), 400), (pl.from_arrow(table).lazy(), 400)):
            with drawn_with(random.Random(5).getrandbits):
                found.append([one.to_json() for one in analysis(study(source, num_records=stated, **known)).releases])
        assert found[0] == found[1] == found[2]


def test_the_owner_looks_at_a_table_where_it_rests():
    lines = study(relation(TABLE), adjacency="add_remove").check().summary()
    assert lines == study(TABLE).check().summary()
    assert "records: 1500" in words_of(lines)


def test_the_owner_is_told_of_another_number_of_records_than_was_stated():
    one = study(relation(TABLE), num_records=1499)
    found = one.check()
    assert not found.fits
    assert "there are 1500 records, and num_records says 1499" in words_of(found.summary())
    with pytest.raises(kng.ReleaseFailed):
        one.mean("wage", epsilon=1.0)


def test_a_number_of_records_that_files_contradict_is_refused(tmp_path):
    with pytest.raises(ValueError, match="has 1500 records, and num_records=1499"):
        study(files(TABLE, tmp_path), num_records=1499)
    assert study(tmp_path, num_records=1500).mean("wage", epsilon=1.0).releases


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_a_synthesis_of_a_query_is_that_of_the_table(adjacency):
    columns = [kng.synthesis.Category("region", ("north", "south", "west"))]
    plan = kng.synthesis.plan(columns=columns, epsilon=2.0, adjacency=adjacency)
    stated = 1500 if adjacency == "replace" else None
    found = []
    for frame, count in ((TABLE, None), (relation(TABLE), stated)):
        with drawn_with(random.Random(5).getrandbits):
            found.append([one.to_json() for one in kng.synthesize(plan, frame, num_records=count).releases.values()])
    assert found[0] == found[1]


def test_patterns_of_csv_files_are_for_queries():
    with pytest.raises(ValueError, match="by a pattern: give a query of them"):
        study("people/*.csv")


def test_a_csv_file_is_read_by_its_path(tmp_path):
    PEOPLE.head(200).to_csv(tmp_path / "people.csv", index=False)
    with drawn_with(random.Random(5).getrandbits):
        found = study(tmp_path / "people.csv").mean("wage", epsilon=9.0)
    with drawn_with(random.Random(5).getrandbits):
        expected = study(PEOPLE.head(200)).mean("wage", epsilon=9.0)
    assert found.to_json() == expected.to_json()
