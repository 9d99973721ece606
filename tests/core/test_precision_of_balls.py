"""The precision of balls, which all threads share, is set in one place and by one thread at a time."""

import ast
import dataclasses
import pathlib
import random
import sys
import threading
import time

import numpy as np
import pytest
from flint import arb, ctx

import kngjax as kng
from kngjax.core.balls import DEFAULT_DIGITS, precision
from kngjax.draws.choice import proved_draw

PACKAGE = pathlib.Path(kng.__file__).parent
HOME = PACKAGE / "core" / "balls.py"
SETTERS = {"workprec", "workdps", "extraprec", "extradps"}
SETTINGS = {"prec", "dps"}
PLANE = kng.Bounds(x={"one": (-0.3, 0.7), "two": (0.1, 0.9)}, y=(-0.4, 1.3), intercept=False)


def changes_of_precision(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and (
            node.attr in SETTERS or (node.attr in SETTINGS and isinstance(node.ctx, ast.Store | ast.Del))
        ):
            yield f"{path.name}:{node.lineno}"


def others_that_name(*words):
    """The package's files but `HOME` whose text has one of these words."""
    texts = ((path, path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py") if path != HOME)
    return [path for path, text in texts if any(word in text for word in words)]


def test_nothing_else_sets_the_precision():
    named = others_that_name("prec", "dps")
    assert [place for path in named for place in changes_of_precision(path)] == []
    assert len(list(changes_of_precision(HOME))) == 1


def test_no_generator_stops_within_a_precision():
    """It would go on holding it for as long as nobody asks for the next."""
    for path in others_that_name("precision("):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.With):
                continue
            calls = [item.context_expr for item in node.items if isinstance(item.context_expr, ast.Call)]
            if any(isinstance(call.func, ast.Name) and call.func.id == "precision" for call in calls):
                assert not [one for one in ast.walk(node) if isinstance(one, ast.Yield | ast.YieldFrom)], path


def test_it_is_restored():
    assert ctx.prec == DEFAULT_DIGITS
    with precision(100):
        assert ctx.prec == 100
        with precision(200):
            assert ctx.prec == 200
        with pytest.raises(ZeroDivisionError), precision(300):
            raise ZeroDivisionError
        assert ctx.prec == 100
    assert ctx.prec == DEFAULT_DIGITS


def both(first, second):
    """What two threads return that run at once and change places as often as Python lets them."""
    found, often = {}, sys.getswitchinterval()
    start = threading.Barrier(2)

    def run(number, work):
        start.wait()
        found[number] = work()

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate((first, second))]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(often)
    return found[0], found[1]


def test_two_threads_have_the_digits_that_they_ask_for():
    def widths(digits):
        found = set()
        for _ in range(100):
            with precision(digits):
                root = arb(2).sqrt()
                time.sleep(0)
                found.add((ctx.prec, float((arb(3).sqrt() * root).rad())))
        return found

    one, two = both(lambda: widths(40), lambda: widths(900))
    assert {digits for digits, _ in one} == {40}
    assert {digits for digits, _ in two} == {900}
    assert len(one) == len(two) == 1
    assert ctx.prec == DEFAULT_DIGITS


MECHANISMS = {
    "noisy sums": kng.AdaSSP(PLANE, 1.0, 1e-5, "replace"),
    "noise about a law": kng.KNG(kng.SquaredLoss(), PLANE, kng.Box([-0.7, -0.2], [0.3, 0.9]), 1.0, "replace"),
    "boxes": kng.KNG(kng.LogisticLoss(), kng.Bounds(x=([-1.0], [1.0]), y=(0, 1)), kng.L2Ball(2.0), 1.0, "replace"),
    "minima": kng.ObjectivePerturbation(
        kng.LogisticLoss(), kng.Bounds(x=([-1.0], [1.0]), y=(0, 1)), kng.L2Ball(2.0), 1.0, "replace"
    ),
    "perturbed sums": kng.ObjectivePerturbation(kng.SquaredLoss(), PLANE, kng.L2Ball(2.0), 1.0, "replace"),
}


def records(mechanism, count=30):
    x = np.random.default_rng(3).uniform(0.1, 0.7, (count, 2))
    if isinstance(mechanism, kng.AdaSSP) or mechanism.loss.is_quadratic:
        return x, x @ [0.3, 0.4]
    return x[:, :1], (x[:, 0] + 0.3 * x[:, 1] > 0.5).astype(float)


@pytest.mark.default_cases("noise about a law", "boxes")
@pytest.mark.parametrize("name", MECHANISMS)
def test_a_draw_is_the_same_beside_another_one(name):
    """As when it is alone, from the same bits."""
    mechanism = MECHANISMS[name]
    data = records(mechanism)
    way = proved_draw(mechanism, mechanism.intake.check_schema(*data))
    assert way is not None
    prepared = way.prepare(*data)

    def values(seed):
        bits = random.Random(seed).getrandbits
        return [way.draw_alone(prepared, bits).tolist() for _ in range(2)]

    expected = values(1), values(2)
    assert both(lambda: values(1), lambda: values(2)) == expected


def test_a_draw_does_not_depend_on_the_precision_that_others_left():
    mechanism = MECHANISMS["boxes"]
    data = records(mechanism)
    way = proved_draw(mechanism, mechanism.intake.check_schema(*data))
    prepared = way.prepare(*data)
    seen = []

    class Seen(type(way)):
        def draw(self, data, bits):
            seen.append(ctx.prec)
            return type(way).draw(self, data, bits)

    noticed = Seen(**{field.name: getattr(way, field.name) for field in dataclasses.fields(way) if field.init})
    plain = noticed.draw_alone(prepared, random.Random(4).getrandbits).tolist()
    with precision(10):
        assert noticed.draw_alone(prepared, random.Random(4).getrandbits).tolist() == plain
    assert seen == [DEFAULT_DIGITS] * 2
