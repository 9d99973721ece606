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

from kngjax.core.errors import UnfitType, hiding

# What a plan may choose rows by, as engines call it.
_OF_SPARK = ("GlobalLimit", "LocalLimit", "Sample", "Offset", "Tail", "First", "Last", "AnyValue", "MaxBy", "MinBy")
_OF_SPARK += ("CurrentTimestamp", "Now", "CurrentDate", "LocalTimestamp", "CurrentTime")
_OF_DUCKDB = ("LIMIT", "SAMPLE", "POSITIONAL_JOIN")
_OF_POLARS = re.compile(
    r"^\s*(?:SLICE|HCONCAT)\b|^\s*UNIQUE\b.*BY Some|\.(?:sample|sample_n|shuffle|is_first_distinct|is_last_distinct)\("
    # Those of the cells of a column; `.str.slice(...)` and the like are of one cell.
    r"|\)\.(?:first|last|slice|gather|gather_every|top_k|top_k_by|bottom_k|bottom_k_by)\(",
    flags=re.MULTILINE,
)
# Functions of DuckDB, whose plan has some of them, and whose query's text has others: a plan shows names of columns.
_UNSETTLED = "random|uuid(?:v4|v7)?|gen_random_uuid|nextval|currval|now|today|transaction_timestamp|txid_current"
_TIMES = "get_current_time(?:stamp)?|current_localtime(?:stamp)?|current_date"
# One row of each key: a plan has the first of these for what is one number anyway.
_ONE = "first|last|any_value|arbitrary|arg_(?:max|min)(?:_null)?|arg(?:max|min)|(?:max|min)_by|reservoir_quantile"
_BARE = "current_(?:date|time|timestamp)|localtime(?:stamp)?"
_IN_PLAN = re.compile(rf"\b(?:{_UNSETTLED}|{_TIMES})\(", flags=re.IGNORECASE)
_IN_TEXT = re.compile(
    rf'"function_name":"(?:{_UNSETTLED}|{_TIMES}|{_ONE})"|"column_names":\["(?:{_BARE})"\]', flags=re.IGNORECASE
)
_ASKED = "kngjax_asks"


def frame_of_spark(frame: Any) -> bool:
    """Tells whether the rows of a DataFrame of Spark are settled; one of Spark Connect, without a plan, passes.

    Of that, marks of its records are compared pass by pass.
    """
    execution = getattr(frame, "_jdf", None)
    if execution is None:
        return True
    plan = execution.queryExecution().analyzed()
    waiting = [(plan, True)]
    while waiting:
        node, is_plan = waiting.pop()
        name = node.nodeName()
        # Distinct rows are deduplicated by all columns.
        is_one_of_each_key = name == "Deduplicate" and node.keys().size() < node.output().size()
        if name in _OF_SPARK or is_one_of_each_key:
            return False
        waiting += [(one, is_plan) for one in _listed(node.children())]
        if is_plan:
            waiting += [(one, True) for one in _listed(node.subqueries())]
            waiting += [(one, False) for one in _listed(node.expressions())]
    return bool(plan.deterministic())


def _listed(found: Any) -> list[Any]:
    """Lists a sequence of Java's."""
    return [found.apply(place) for place in range(found.size())]


def frame_of_polars(frame: Any) -> bool:
    """Tells whether the rows of a LazyFrame of Polars are settled."""
    return _OF_POLARS.search(re.sub(r'"[^"\n]*"', "", frame.explain(optimized=False))) is None


def relation_of_duckdb(relation: Any) -> bool:
    """Tells whether the rows of a relation of DuckDB are settled."""
    # It is parsed elsewhere, with no table in sight.
    with contextlib.closing(sys.modules["duckdb"].connect()) as parser:
        [[text]] = parser.execute("SELECT json_serialize_sql(?)", [relation.sql_query()]).fetchall()
    if _IN_TEXT.search(text):
        return False

    def ask(what: str) -> Any:
        return relation.query(_ASKED, what)

    # `EXPLAIN` alone gives what an optimizer made by the statistics of cells.
    refusal = UnfitType("the configuration of this connection of DuckDB is locked, so that no plan can be looked at")
    [[before]] = ask("SELECT current_setting('explain_output')").fetchall()
    hiding(lambda: ask("SET explain_output = 'all'"), refusal)
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
