"""Tells from a query's plan, without running it, whether its rows are settled: the same whenever it is computed.

A limit, a sample or one row of each key lets one record more move others; random numbers and the time differ in each
pass. Plans are looked at before an optimizer reads statistics of cells, so that an answer tells nothing of them. Ranks
and other windows are let through, and so is what a function of the caller's own does.
"""

import contextlib
import json
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any

# What a plan may choose rows by, as engines call it.
_OF_SPARK = ("GlobalLimit", "LocalLimit", "Sample", "Offset", "Tail", "Deduplicate")
_OF_DUCKDB = ("LIMIT", "SAMPLE")
_OF_POLARS = re.compile(
    r"^\s*SLICE\b|^\s*UNIQUE\b.*BY Some|\.(?:sample|sample_n|shuffle|is_first_distinct|is_last_distinct)\("
    # Those of the cells of a column; `.str.slice(...)` and the like are of one cell.
    r"|\)\.(?:slice|gather|gather_every|top_k|top_k_by|bottom_k|bottom_k_by)\(",
    flags=re.MULTILINE,
)
# Functions of DuckDB, whose plan has some of them, and whose query's text has others: a plan shows names of columns.
_UNSETTLED = "random|uuid(?:v4|v7)?|gen_random_uuid|nextval|currval|now|today|transaction_timestamp|txid_current"
_TIMES = "get_current_time(?:stamp)?|current_localtime(?:stamp)?|current_date"
_BARE = "current_(?:date|time|timestamp)|localtime(?:stamp)?"
_IN_PLAN = re.compile(rf"\b(?:{_UNSETTLED}|{_TIMES})\(", flags=re.IGNORECASE)
_IN_TEXT = re.compile(
    rf'"function_name":"(?:{_UNSETTLED}|{_TIMES})"|"column_names":\["(?:{_BARE})"\]', flags=re.IGNORECASE
)
_ASKED = "kngjax_asks"


def frame_of_spark(frame: Any) -> bool:
    """Whether the rows of a DataFrame of Spark are settled; one of Spark Connect has no plan here, and is let through.

    Of that, marks of its records are compared pass by pass.
    """
    execution = getattr(frame, "_jdf", None)
    if execution is None:
        return True
    plan = execution.queryExecution().analyzed()
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        if node.nodeName() in _OF_SPARK:
            return False
        children = node.children()
        waiting += [children.apply(place) for place in range(children.size())]
    return bool(plan.deterministic())


def frame_of_polars(frame: Any) -> bool:
    """Whether the rows of a LazyFrame of Polars are settled."""
    return _OF_POLARS.search(re.sub(r'"[^"\n]*"', "", frame.explain(optimized=False))) is None


def relation_of_duckdb(relation: Any) -> bool:
    """Whether the rows of a relation of DuckDB are settled."""
    # It is parsed elsewhere, with no table in sight.
    with contextlib.closing(sys.modules["duckdb"].connect()) as parser:
        [[text]] = parser.execute("SELECT json_serialize_sql(?)", [relation.sql_query()]).fetchall()
    if _IN_TEXT.search(text):
        return False

    def ask(what: str) -> Any:
        return relation.query(_ASKED, what)

    # `EXPLAIN` alone gives what an optimizer made by the statistics of cells.
    [[before]] = ask("SELECT current_setting('explain_output')").fetchall()
    ask("SET explain_output = 'all'")
    try:
        plans = dict(ask(f"EXPLAIN (FORMAT json) FROM {_ASKED}").fetchall())
    finally:
        ask(f"SET explain_output = '{before}'")
    return not any(
        node["name"] in _OF_DUCKDB
        or (node["name"] == "DISTINCT" and _is_one_of_each_key(node))
        or _IN_PLAN.search(re.sub("'[^']*'", "", json.dumps(node.get("extra_info", {}))))
        for node in _nodes(json.loads(plans["logical_plan"]))
    )


def _nodes(trees: Iterable[Any]) -> Iterator[Any]:
    for node in trees:
        yield node
        yield from _nodes(node["children"])


def _is_one_of_each_key(distinct: Any) -> bool:
    """Whether rows are compared by fewer columns than there are: `DISTINCT ON`, and not `DISTINCT`."""
    lists = [node["extra_info"]["Expressions"] for node in _nodes(distinct["children"]) if node["name"] == "PROJECTION"]
    width, targets = (_length(lists[0]) if lists else 0), _length(distinct["extra_info"]["Distinct Targets"])
    return targets < width


def _length(shown: list[str] | str) -> int:
    return len(shown) if isinstance(shown, list) else 1
