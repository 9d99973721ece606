"""The list of slips still speaks of this package: `plant_slips`, which plants them, is run by hand."""

import ast
import collections

import pytest

from tests.audit.plant_slips import ROOT, guards, planted
from tests.audit.slips import SLIPS, Slip


@pytest.mark.parametrize("slip", SLIPS, ids=lambda slip: slip.name)
def test_a_slip_can_be_planted_and_the_tests_that_see_it_exist(slip):
    text = planted((ROOT / slip.file).read_text(encoding="utf-8"), slip)
    ast.parse(text)
    for test in slip.tests:
        file, _, name = test.partition("::")
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        found = [
            node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith(name or "test_")
        ]
        # The default tests see it.
        assert any("pytest.mark.slow" not in map(ast.unparse, node.decorator_list) for node in found)


def test_there_are_enough_of_all_rooms_and_each_is_another():
    assert len(SLIPS) >= 60
    assert len({slip.name for slip in SLIPS}) == len({(slip.file, slip.old, slip.new) for slip in SLIPS}) == len(SLIPS)
    rooms = collections.Counter(slip.file.split("/")[1] for slip in SLIPS)
    assert len(rooms) >= 11
    assert max(rooms.values()) <= len(SLIPS) // 3


def test_a_slip_that_speaks_of_another_package_is_refused():
    for text in ("nothing of it", "once, once"):
        with pytest.raises(ValueError, match="times, and not once"):
            planted(text, Slip("two", "file", "once", "twice", ()))


def test_every_refusal_of_a_file_can_be_deleted():
    found = list(guards("kngjax/releases/debits.py", ()))
    assert len(found) >= 3
    for slip in found:
        ast.parse(slip.new)
