"""Queries whose rows differ whenever they run, or displace others, are refused by their plans; others are not."""

import duckdb
import polars as pl
import pyarrow as pa
import pytest

import kngjax as kng
from kngjax.data.engines import settled

SECRET = "123-45-6789"
PEOPLE = pa.table({"x": ["1", "2", SECRET], "y": [1.0, 2.0, 3.0], "g": ["a", "b", "a"]})
UNSETTLED = [
    "FROM people LIMIT 1",
    "FROM people OFFSET 1",
    "FROM people LIMIT 10%",
    "FROM people ORDER BY y LIMIT 1",
    "FROM people WHERE y IN (FROM (SELECT y FROM stored) LIMIT 1)",
    "FROM stored WHERE y > 5000 LIMIT 1",
    "FROM people USING SAMPLE 1",
    "FROM stored TABLESAMPLE 10%",
    "SELECT DISTINCT ON (g) * FROM people",
    "SELECT DISTINCT ON (g) x, y FROM people ORDER BY y",
    "SELECT y, random() AS r FROM people",
    "FROM people WHERE random() < 0.5",
    "SELECT y, uuid() AS x FROM people",
    "FROM people WHERE now() > '2020-01-01'",
    "SELECT y, current_date AS x FROM people",
    "FROM chosen",
    "FROM few",
    "SELECT g, first(y) AS y FROM people GROUP BY g",
    "SELECT g, arg_max(x, y) AS x FROM stored GROUP BY g",
    "FROM people POSITIONAL JOIN (SELECT y AS z FROM stored)",
]
SETTLED = [
    "FROM people ORDER BY y",
    "FROM people WHERE x = 'LIMIT 1' OR x = 'random()'",
    'SELECT y AS "limit", g AS sample FROM people',
    "SELECT p.* FROM people p JOIN stored USING (y)",
    "SELECT p.* FROM people p LEFT JOIN stored s ON p.y > s.y",
    "FROM people p SEMI JOIN stored USING (g)",
    "FROM people WHERE y > (SELECT avg(y) FROM stored)",
    "FROM people p WHERE EXISTS (FROM stored s WHERE s.y = p.y)",
    "SELECT g, sum(y) AS y FROM people GROUP BY g HAVING count(*) > 1",
    "FROM people UNION FROM people",
    "FROM people UNION ALL FROM people",
    "SELECT DISTINCT g, x FROM people",
    "SELECT y FROM people INTERSECT SELECT y FROM stored",
    "WITH a AS (FROM people WHERE y > 1) SELECT y, x[:3] AS x FROM a",
    "SELECT y, sum(y) OVER (PARTITION BY g) AS z FROM people",
    "FROM all_of_them",
]


@pytest.fixture(scope="module")
def connection():
    made = duckdb.connect()
    made.register("people", PEOPLE)
    made.execute("CREATE TABLE stored AS FROM people")
    made.execute("CREATE VIEW chosen AS FROM stored WHERE random() < 0.5")
    made.execute("CREATE VIEW few AS FROM stored LIMIT 1")
    made.execute("CREATE VIEW all_of_them AS FROM stored")
    return made


@pytest.mark.parametrize("query", UNSETTLED)
def test_a_query_of_duckdb_that_chooses_rows_is_refused(query, connection):
    with pytest.raises(TypeError, match="rows of a relation of DuckDB may differ whenever"):
        kng.stream(connection.sql(query))


@pytest.mark.parametrize("query", SETTLED)
def test_ordinary_queries_of_duckdb_are_not_refused(query, connection):
    kng.stream(connection.sql(query))


def test_relations_that_programs_compose_are_looked_through(connection):
    first = connection.sql("FROM stored LIMIT 1")
    assert not settled.relation_of_duckdb(connection.sql("FROM first"))
    assert not settled.relation_of_duckdb(first.filter("y > 0").order("y"))
    assert settled.relation_of_duckdb(connection.table("stored").filter("y > 0").order("y").distinct())
    assert settled.relation_of_duckdb(connection.sql("FROM stored WHERE y > $least", params={"least": 1}))


def test_a_plan_is_told_without_a_look_at_a_cell(connection):
    """A cast that fails is not evaluated, and the caller's settings are what they were."""
    before = connection.execute("SELECT current_setting('explain_output')").fetchall()
    for table in ("people", "stored"):
        assert settled.relation_of_duckdb(connection.sql(f"SELECT y FROM {table} WHERE CAST(x AS DOUBLE) > 0"))
        assert settled.relation_of_duckdb(connection.sql(f"SELECT max(CAST(x AS DOUBLE)) AS y FROM {table}"))
    assert connection.execute("SELECT current_setting('explain_output')").fetchall() == before


FRAME = pl.DataFrame(PEOPLE.to_pydict())
LAZY = FRAME.lazy()
Y = pl.col("y")
CHOOSING = {
    "head": LAZY.head(1),
    "tail": LAZY.tail(1),
    "below a filter": LAZY.slice(1, 2).filter(Y > 1),
    "top_k": LAZY.top_k(1, by="y"),
    "gather_every": LAZY.gather_every(2),
    "unique": LAZY.unique(subset=["g"]),
    "first of each": LAZY.filter(pl.col("g").is_first_distinct()),
    "of each group": LAZY.group_by("g").head(1),
    "the first of each group": LAZY.group_by("g").agg(Y.first()),
    "side by side": pl.concat([LAZY, LAZY.select(z=Y)], how="horizontal"),
    "a sample": LAZY.select(pl.all().sample(2, seed=1)),
    "a shuffle": LAZY.filter(pl.int_range(pl.len()).shuffle() < 2),
    "cells of a column": LAZY.select(Y.slice(0, 2)),
    "SQL": pl.SQLContext(people=LAZY).execute("SELECT * FROM people LIMIT 1"),
}
ORDINARY = {
    "sort": LAZY.sort("y"),
    "names in text": LAZY.filter(pl.col("x") == "SLICE[0] ).sample(1)"),
    "parts of a cell": LAZY.with_columns(pl.col("x").str.slice(0, 2), z=pl.col("x").str.head(1)),
    "join": LAZY.join(LAZY, on="y", how="left"),
    "groups": LAZY.group_by("g").agg(Y.sum(), pl.len()),
    "union": pl.concat([LAZY, LAZY]),
    "distinct": LAZY.unique(),
    "conditions": LAZY.select(pl.when(Y > 1).then(Y).otherwise(None)),
    "over": LAZY.with_columns(z=Y.sum().over("g")),
    "missing": LAZY.drop_nulls().with_columns(Y.fill_null(0.0)),
}


@pytest.mark.parametrize("name", CHOOSING)
def test_a_query_of_polars_that_chooses_rows_is_refused(name):
    with pytest.raises(TypeError, match="rows of a LazyFrame of polars may differ whenever"):
        kng.stream(CHOOSING[name])


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_queries_of_polars_are_not_refused(name):
    kng.stream(ORDINARY[name])


def test_files_of_which_polars_takes_some_rows_are_refused(tmp_path):
    FRAME.write_parquet(tmp_path / "a.parquet")
    assert settled.frame_of_polars(pl.scan_parquet(tmp_path / "a.parquet"))
    assert not settled.frame_of_polars(pl.scan_parquet(tmp_path / "a.parquet", n_rows=2))


def test_studies_refuse_them_before_anything_is_asked(connection):
    for table in (connection.sql("FROM people LIMIT 2"), LAZY.head(2)):
        with pytest.raises(TypeError, match="may differ whenever"):
            kng.Study(table, bounds={"y": (0, 9)}, adjacency="replace", num_records=2)


def test_a_connection_with_a_locked_configuration_says_so():
    locked = duckdb.connect()
    locked.register("people", PEOPLE)
    locked.execute("SET lock_configuration = true")
    with pytest.raises(TypeError, match="configuration of this connection of DuckDB is locked"):
        kng.stream(locked.sql("FROM people"))


@pytest.mark.slow
def test_plans_of_spark_are_looked_through():
    sql = pytest.importorskip("pyspark.sql")
    spark = sql.SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    spark.createDataFrame(PEOPLE.to_pylist()).createOrReplaceTempView("people")
    of = sql.functions
    people = spark.table("people")
    settled_ones = [
        people.distinct(),
        people.dropDuplicates(),
        people.groupBy("g").agg(of.sum("y").alias("y")),
        people.join(people.select("g").distinct(), "g"),
        spark.sql("SELECT * FROM people WHERE y IN (SELECT max(y) FROM people GROUP BY g)"),
        spark.sql("SELECT y, 'now()' AS now FROM people ORDER BY y"),
    ]
    unsettled = [
        people.limit(2),
        people.dropDuplicates(["g"]),
        people.sample(0.5),
        people.where(of.rand() < 0.5),
        people.groupBy("g").agg(of.first("y").alias("y")),
        spark.sql("SELECT * FROM people WHERE y IN (SELECT y FROM people ORDER BY y LIMIT 1)"),
        spark.sql("SELECT * FROM people p WHERE EXISTS (SELECT 1 FROM people q WHERE q.g = p.g LIMIT 1)"),
        people.where(of.current_timestamp() > of.lit("2020-01-01")),
        spark.sql("SELECT y FROM people WHERE current_date() > DATE'2020-01-01'"),
    ]
    try:
        assert [settled.frame_of_spark(one) for one in settled_ones] == [True] * len(settled_ones)
        assert [settled.frame_of_spark(one) for one in unsettled] == [False] * len(unsettled)
    finally:
        spark.stop()
