"""Canaries in the cells of tables on engines are in nothing that these print or write; the search finds them."""

import struct

import pytest

from audits import canaries


def test_the_search_finds_canaries_in_every_form(tmp_path):
    for written in (canaries.TEXT.encode(), struct.pack("<d", canaries.WAGE), b"738291645103", b"x 7.310585786 y"):
        assert canaries.has_canary(b"\0" + written + b"\0")
    assert canaries.has_canary(canaries.TEXT.encode("utf-16-le"))
    assert not canaries.has_canary(b"7.31058 canary")


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["DuckDB", "Dask", "Dask, two processes", "Spark"])
def test_no_engine_tells_a_cell(engine, tmp_path):
    if engine == "Spark":
        pytest.importorskip("pyspark")
    if engine == "Dask, two processes":
        pytest.importorskip("distributed")
    found = canaries.search(engine, tmp_path)
    assert found.passed, found
    # DuckDB spills cells as they are, which shows that files are searched while they are there.
    assert bool(found.spilled) == (engine == "DuckDB")
