"""Changes of syntax do what they say on little texts, and refuse what they do not find once."""

import pathlib
import textwrap

import pytest

from tests.mutants.named import SLIPS, Planted, Slip
from tests.mutants.syntax import (
    assigned,
    beginning,
    called,
    comparison,
    condition,
    constant,
    reference,
    returned,
    without_call,
    without_raise,
)

ROOT = pathlib.Path(__file__).parents[2]
FUNCTION = '''
    # Before it: é.
    def scaled(x, rate: float = 2.0) -> float:
        """Scales a number."""
        log(x)
        if x < 0 or rate == 0:
            raise ValueError(f"no number of {rate}")
        half, whole = rate / 2, min(x, key=abs)
        total: int = one.sum(x, axis=0)
        return (total
                + half) if whole else max(x, 0)  # é

    WIDTH = 3
    '''


def planted(folder: pathlib.Path, change, text: str = FUNCTION, where: str = "scaled") -> Planted:
    file = folder / "kngjax" / "room" / "some.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
    return Slip("a bug", where, change).planted(folder)


def differing(found: Planted, text: str = FUNCTION) -> list[str]:
    """The lines that are new."""
    old = textwrap.dedent(text).lstrip("\n").split("\n")
    return [line.strip() for line in found.source.split("\n") if line not in old]


@pytest.mark.parametrize(
    ("change", "lines"),
    [
        (returned("{} / 2"), ["return ((total + half if whole else max(x, 0)) / 2)  # é"]),
        (assigned("half", "2 * {}"), ["half, whole = (2 * (rate / 2)), min(x, key=abs)"]),
        (assigned("total", "0"), ["total: int = 0"]),
        (called("min", "max({0}, key={key})"), ["half, whole = rate / 2, (max(x, key=abs))"]),
        (called("sum", "-{call}"), ["total: int = (-(one.sum(x, axis=0)))"]),
        (called("max", "{0}"), ["+ half) if whole else x  # é"]),
        (reference("abs", "len"), ["half, whole = rate / 2, min(x, key=len)"]),
        (reference("sum", "{}.of"), ["total: int = one.sum.of(x, axis=0)"]),
        (reference("rate", "1", nth=-1), ["half, whole = 1 / 2, min(x, key=abs)"]),
        (constant(2.0, {"a": 1}), ["def scaled(x, rate: float = ({'a': 1})) -> float:"]),
        (constant(2, 4), ["half, whole = rate / 4, min(x, key=abs)"]),
        (comparison("rate", "False"), ["if x < 0 or False:"]),
        (condition("rate", "not {}"), ["if (not (x < 0 or rate == 0)):"]),
        (condition("whole", "True"), ["+ half) if True else max(x, 0)  # é"]),
        (without_raise("number"), ["pass"]),
        (without_raise("rate"), ["pass"]),
        (without_call("log"), ["pass"]),
        (beginning("x = 1"), ["x = 1"]),
    ],
)
def test_a_change_is_made_at_its_place_and_nowhere_else(change, lines, tmp_path):
    found = planted(tmp_path, change)
    assert differing(found) == lines
    assert found.path == "kngjax/room/some.py"
    before = found.source.encode().split(b"\n")[: found.line - 1]
    assert before == textwrap.dedent(FUNCTION).lstrip("\n").encode().split(b"\n")[: found.line - 1]


def test_the_line_of_a_slip_is_the_first_of_its_statement(tmp_path):
    found = planted(tmp_path, reference("half", "0"))
    assert (found.line, found.last) == (9, 10)
    assert planted(tmp_path, without_raise("number")).line == 6


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (reference("x", "y"), "x: 5 places match, and not one"),
        (constant(0, 1, nth=4), "0: 4 places match, and none is number 4"),
        (constant(True, False), "0 places match"),
        (constant(1, 2), "0 places match"),
        (called("mean", "0"), "0 places match"),
        (comparison("whole", "False"), "0 places match"),
        (without_raise("nothing"), "0 places match"),
        (without_call("sum"), "0 places match"),
        (reference("abs", "abs"), "the same with the change"),
    ],
)
def test_a_change_without_one_place_is_refused_by_name(change, found, tmp_path):
    with pytest.raises(LookupError, match=f"a bug: scaled.*{found}"):
        planted(tmp_path, change)


def test_a_place_is_a_function_a_method_a_class_or_a_constant_of_any_file(tmp_path):
    text = """
    WIDTH: int = 3
    @overload
    def run(): return 1
    def run():
        return 2
    class Body:
        depth = 5
        def run(self):
            return 7
    """
    for where, old, new in (("WIDTH", 3, 4), ("run", 2, 4), ("Body", 5, 4), ("Body.run", 7, 4), ("some:run", 2, 4)):
        assert len(differing(planted(tmp_path, constant(old, new), text, where), text)) == 1
    for where, times in (("walk", 0), ("Body.walk", 0), ("other:run", 0)):
        with pytest.raises(LookupError, match=f"{where} is there {times} times"):
            planted(tmp_path, constant(2, 4), text, where)
    (tmp_path / "kngjax" / "other.py").write_text("def run():\n    return 2\n", encoding="utf-8")
    with pytest.raises(LookupError, match="run is there 2 times"):
        planted(tmp_path, constant(2, 4), text, "run")
    assert planted(tmp_path, constant(2, 4), text, "other:run").path == "kngjax/other.py"


def test_what_is_no_longer_python_is_not_planted(tmp_path):
    with pytest.raises(SyntaxError):
        planted(tmp_path, returned("("))


def test_each_slip_has_another_name():
    assert 55 <= len(SLIPS) <= 110
    assert len({slip.name for slip in SLIPS}) == len(SLIPS)


@pytest.mark.slow
def test_each_slip_finds_its_place():
    """By night alone: a function that gets another name must turn nothing red at once but what calls it."""
    lost = []
    for slip in SLIPS:
        try:
            slip.planted(ROOT)
        except LookupError as error:
            lost.append(str(error))
    assert not lost
