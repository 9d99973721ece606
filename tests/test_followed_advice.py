"""Every refusal of a public entry names arguments of what was called, and what it says word for word can be done.

Rows are entries and what is odd about one argument. Refusals need no draw: an entry that refuses nothing stops where a
ledger would be debited.
"""

import contextlib
import functools
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest

import kngjax as kng
import kngjax.sklearn
from kngjax.releases import plan, research, simulation
from kngjax.study import expectations
from kngjax.study.analyses import Analysis
from tests.offenders import every_case
from tests.sklearn.people import BOUNDS as COLUMNS
from tests.sklearn.people import EVERY, X, response_for
from tests.study.methods import METHODS
from tests.study.people import BOUNDS, LEVELS, PEOPLE

FRAME, SOME = PEOPLE.head(60), X.head(80)
WIDE = SOME.assign(a=SOME["age"], b=SOME["skill"], c=1.0)
SHORT, LONG = "education", "education + experience + region + parttime"


class Reached(BaseException):
    """The entry would have spent and drawn."""


class Entry(NamedTuple):
    """A public entry. **Arguments:** `ask`: calls it with settings. `given`: those that it takes, and are in order.

    `takes`: names of its arguments. `odd`: by argument what else may be given, and is refused or not. `classes`: those
    whose objects its user makes. `has_plain`: whether `given` is tried by itself.
    """

    ask: Callable[..., Any]
    given: dict[str, Any]
    takes: set[str]
    odd: dict[str, tuple[Any, ...]]
    classes: frozenset[str] = frozenset(dir(kng))
    has_plain: bool = True


def named(*callables: Any) -> set[str]:
    return {name for one in callables for name in inspect.signature(one).parameters} - {"self"}


_DOMAINS = frozenset({"Box", "L1Ball", "L2Ball", "BaseMeasure"})
_OF_STUDIES = _DOMAINS | {"Sandwich", "Study", "Ledger", "Budget"}
_OF_ESTIMATORS = _DOMAINS | {"Ledger", "Budget"}
_OTHER_BOX = kng.Box([0.0] * 3, [1.0] * 3)
_FACTS = {
    "adjacency": (None, "swap"),
    "bounds": (None, {"wage": BOUNDS["wage"]}, {"wage": (5,)}, BOUNDS | {"wage": (0, 20)}),
    "levels": (None, {"region": ("a",)}),
    "missing": ("drop", {"wage": "x"}, {"nothing": 1}),
    "num_records": (5, 0, "a"),
    "weights": ("education", "nothing"),
    "dither": ({"wage": -1}, {"education": 1}, 5),
    "missing_codes": (3, {"nothing": [1]}),
    "ledger": ("book",),
}
_ANALYSES = {
    "epsilon": (None, 1000.0),
    "domain": (5, _OTHER_BOX),
    "scale": (0, "a"),
    "intervals": (3, True, kng.Sandwich(bandwidth=0.5)),
    "tau": (None, 2, [], [0.5, 0.5], "a"),
    "method": ("x", "adassp"),
    "delta": (2, 1e-6, "a"),
    "budget": ("x",),
    "level": (2,),
    "spread": (-1,),
    "edges": (0, "a", [5, 1]),
    "ddof": (-1,),
}


def _study(settings: dict[str, Any]) -> Any:
    facts = named(kng.Study)
    return kng.Study(FRAME, **{key: settings.pop(key) for key in list(settings) if key in facts})


def studies() -> Iterator[tuple[str, Entry]]:
    """Every method, of few and of many coefficients, and some of groups."""
    facts = {"bounds": BOUNDS, "levels": LEVELS, "adjacency": "replace", "epsilon": 0.5}
    for name, method in METHODS.items():
        takes = named(kng.Study, getattr(kng.Study, method.name))
        for terms in (SHORT, LONG) if name in ("quantile regression", "robust", "quantile process") else (SHORT,):
            what = method.what.replace(SHORT, LONG) if terms is LONG else method.what

            def ask(_what: Any = what, _method: Any = method, _levels: Any = None, **settings: Any) -> None:
                own = {} if _levels is None else {"levels": _levels}
                getattr(_study(settings), _method.name)(*_method.positional(_what), **own, **settings)

            # Study has levels too.
            given = facts | {"_levels" if key == "levels" else key: value for key, value in method.given.items()}
            odd = {key: values for key, values in _ANALYSES.items() if key in takes and key not in facts}
            if terms is SHORT:
                odd |= {"epsilon": _ANALYSES["epsilon"]}
            if name in ("quantile regression", "robust", "mean", "crosstab") and terms is SHORT:
                odd |= _FACTS
            yield f"Study, {name} on {terms}", Entry(ask, given, takes, odd, _OF_STUDIES, terms is SHORT)
    process = METHODS["quantile process"]

    def levels_of_process(levels: Any, **settings: Any) -> None:
        _study(settings).quantile_process(process.what, levels=levels, **settings)

    odd = {"levels": (None, [0.5, 0.2], 2, [0.5])}
    odd |= {"epsilon": (None, 1000.0), "bounds": (None,), "adjacency": (None,), "missing": ("drop",)}
    given, takes = {**facts, **process.given}, named(kng.Study, kng.Study.quantile_process)
    yield "Study, levels of a quantile process", Entry(levels_of_process, given, takes, odd, _OF_STUDIES)
    for name in ("mean", "interval", "robust"):

        def by(_method: Any = METHODS[name], num_records: Any = None, **settings: Any) -> None:
            _method.ask(_study(settings).by("region", num_records=num_records), **settings)

        odd = {"num_records": ("a", {"north": 10}), "levels": (None,), "epsilon": (1000.0,)}
        takes = named(kng.Study, kng.Study.by, getattr(kng.Study, METHODS[name].name))
        yield f"by, {name}", Entry(by, facts | {"num_records": 400}, takes, odd, _OF_STUDIES)


_ESTIMATORS = {
    "epsilon": (None, 1000.0, "1"),
    "adjacency": (None,),
    "bounds": (None, {"age": (20, 70)}, (0,), 5, [(0, 1), (0, 1)]),
    "levels": ({"age": ("a",)}, 5, {"age": ("a", "b")}),
    "missing": ("x", {"age": "x"}, "drop"),
    "ledger": ("book",),
    "num_records": (5, "a"),
}
_OF_SOME = {
    "bounds_y": (None, 5, (5, 1)),
    "missing_y": ("x", "drop", 99.0),
    "domain": (5, _OTHER_BOX),
    "scale": (0, "a"),
    "dither": (-1, "a"),
    "quantile": (None, 2, [0.1, 0.2]),
    "delta": (2, 1e-6),
    "classes": (None, ("a",)),
}


def estimators() -> Iterator[tuple[str, Entry]]:
    """Every estimator, of few and some of many columns."""
    for name, made in EVERY.items():
        for frame in (SOME, WIDE) if name in ("quantile", "robust") else (SOME,):
            bounds = {column: COLUMNS.get(column, (0, 70)) for column in frame}
            given = made.get_params() | {"bounds": bounds, "epsilon": 0.5, "force": False, "adjacency": "replace"}

            def fit(_made: Any = made, _name: str = name, _frame: Any = frame, **settings: Any) -> None:
                type(_made)(**settings).fit(_frame, response_for(_name)[: len(_frame)])

            odd = {key: values for key, values in _OF_SOME.items() if key in given}
            if name == "quantile" and frame is SOME:
                odd |= _ESTIMATORS
            yield f"{name}, {frame.shape[1]} columns", Entry(fit, given, set(given), odd, _OF_ESTIMATORS)


_BOUNDED, _OPEN = kng.Bounds(x=([-1.0], [1.0]), y=(-1.0, 1.0)), kng.Bounds(x=([-1.0], [1.0]))
_COUNTED = kng.Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0))
_SQUARE = kng.Box(-3.0, 3.0)
_PLAIN = kng.Bounds(x=([-1.0], [1.0]), intercept=False)
_ONLY = kng.Bounds(y=(-1.0, 1.0))
_RELAXED = {"delta": 1e-6, "max_records": 99}
# Mechanisms by the arguments of which some are odd.
_MECHANISMS = {
    "KNG, quantile": (kng.KNG, {"loss": kng.QuantileLoss(0.5), "domain": _SQUARE}),
    "KNG, pseudo-Huber": (kng.KNG, {"loss": kng.PseudoHuberLoss(0.5), "domain": _SQUARE}),
    "exponential": (kng.ExponentialMechanism, {"loss": kng.SquaredLoss(), "domain": _SQUARE}),
    "objective": (kng.ObjectivePerturbation, {"loss": kng.PseudoHuberLoss(0.5), "domain": None}),
    "output": (
        kng.OutputPerturbation,
        {"loss": kng.SquaredLoss(), "regularization": 9.0, "delta": 1e-6, "max_records": 99},
    ),
    "AdaSSP": (kng.AdaSSP, {"delta": 1e-6}),
    "AdaOPS": (kng.AdaOPS, {"delta": 1e-6}),
    "IRLS": (kng.PrivateIRLS, {"delta": 1e-6}),
    "mean": (kng.KNormMechanism, {"bounds": _PLAIN}),
    "quantile": (kng.PrivateQuantile, {"tau": 0.5, "bounds": _ONLY}),
    "interval": (kng.QuantileInterval, {"tau": 0.5, "bounds": _ONLY}),
}
_PARTS = {
    "epsilon": (None, 1000.0),
    "adjacency": (None, "add_remove"),
    "bounds": (None, 5, _OPEN, _COUNTED, _PLAIN, _ONLY, kng.Bounds(x=([-1.0], [1.0]), y=(-1.0, 1.0), weight=2.0)),
    "domain": (5, _OTHER_BOX),
    "loss": (None, 5, kng.LogisticLoss(), kng.PoissonLoss()),
    "delta": (None, 2),
    "tau": (None, 2, "a"),
    "max_records": (None, 0),
}
_SAMPLERS = (
    kng.draws.Lattice(),
    kng.chains.Exact(),
    kng.chains.EnsembleWalk(),
    kng.chains.LineGibbs(),
    kng.chains.SliceGibbs(),
    kng.chains.GradientSpace(),
    5,
)
_WAYS = (None, kng.Sandwich(), kng.Sandwich(share=0.45), kng.Sandwich(bandwidth=0.5), 5)
_ROWS = np.linspace(-1.0, 1.0, 60)


def mechanisms() -> Iterator[tuple[str, Entry]]:
    """Every public function of a mechanism, and intervals of it."""
    for name, (kind, own) in _MECHANISMS.items():
        given = {"bounds": _BOUNDED, "epsilon": 1.0, "adjacency": "replace"} | own
        x = None if given["bounds"] is _ONLY else _ROWS[:, None]
        y = None if given["bounds"] is _PLAIN else _ROWS

        def made(settings: dict[str, Any], _kind: Any = kind) -> Any:
            return _kind(**{key: settings.pop(key) for key in list(settings) if key in named(_kind)})

        def release(_made: Any = made, _x: Any = x, _y: Any = y, **settings: Any) -> None:
            kng.release(_made(settings), _x, _y, **settings)

        odd = {key: values for key, values in _PARTS.items() if key in named(kind)}
        if name in ("KNG, quantile", "KNG, pseudo-Huber", "AdaSSP"):
            odd |= {"sampler": _SAMPLERS}
        yield f"release, {name}", Entry(release, given, named(kind, kng.release), odd, has_plain=name != "interval")
        if name not in ("KNG, quantile", "objective"):
            continue

        def preview(_made: Any = made, **settings: Any) -> None:
            kng.preview(_made(settings), **settings)

        odd = {"target": ("x",), "bounds": (_OPEN, _COUNTED), "num_records": (0, "a")}
        takes, assumed = named(kind, kng.preview), given | {"simulate": False, "num_records": 1000}
        yield f"preview, {name}", Entry(preview, assumed, takes, odd, has_plain=False)

        def intervals(_made: Any = made, covariance: Any = None, num_records: Any = None, **settings: Any) -> None:
            kng.WithIntervals(_made(settings), covariance, num_records)

        takes = named(kind, kng.WithIntervals)
        odd = {"covariance": _WAYS, "num_records": (0, "a"), "bounds": (_COUNTED,)}
        for words, bounds, count in (("", _BOUNDED, 5000), ("no bounds of y", _OPEN, 5000), ("no n", _OPEN, None)):
            for adjacency in ("replace", "add_remove"):
                of_plan = given | {"bounds": bounds, "num_records": count, "adjacency": adjacency}
                row = f"intervals, {name}, {words}, {adjacency}"
                yield row, Entry(intervals, of_plan, takes, odd, has_plain=False)


def researches() -> Iterator[tuple[str, Entry]]:
    """Research draws."""
    given = {"key": kng.research_key(0), "sampler": None}
    odd = {"key": (5,), "sampler": (*_SAMPLERS, kng.chains.HMC()), "num_draws": (0,)}
    for name in ("KNG, quantile", "KNG, pseudo-Huber", "AdaSSP"):
        kind, settings = _MECHANISMS[name]

        def made(_kind: Any = kind, _own: Any = settings) -> Any:
            return _kind(bounds=_BOUNDED, epsilon=1.0, adjacency="replace", **_own)

        def sample(_made: Any = made, **settings: Any) -> None:
            mechanism = _made()
            kng.sample(mechanism, mechanism.prepare(_ROWS[:, None], _ROWS), **settings)

        yield f"sample, {name}", Entry(sample, given, named(kng.sample), odd)

        def simulate(_made: Any = made, num_records: Any = 10, **settings: Any) -> None:
            kng.simulate(_design, _made(), 2, num_records=num_records, **settings)

        of_simulation = {"key": (5,), "sampler": odd["sampler"], "num_records": (0,), "epsilons": ([0.0],)}
        yield f"simulate, {name}", Entry(simulate, given, named(kng.simulate), of_simulation)


def _design(key: Any, number: int) -> Any:
    return jnp.zeros((number, 1)), jnp.zeros(number), jnp.zeros(2)


def refusal(entry: Entry, settings: dict[str, Any]) -> str | None:
    """What the entry refuses these settings with; None where it would have gone on."""
    try:
        entry.ask(**settings)
    except Reached:
        return None
    except (ValueError, TypeError, RuntimeError) as error:
        return str(error)
    return None


# Others are tried every night.
DEFAULT = (
    "Study, quantile regression on education",
    "Study, robust on education + experience + region + parttime",
    "Study, quantile process on education",
    "Study, count on education",
    "Study, levels of a quantile process",
    "by, interval",
    "quantile, 2 columns",
    "quantile, 5 columns",
    "adassp, 2 columns",
    "release, KNG, quantile",
    "release, mean",
    "intervals, KNG, quantile, no bounds of y, replace",
    "intervals, objective, no bounds of y, replace",
    "sample, KNG, quantile",
    "simulate, AdaSSP",
)
# What Python and its libraries say for themselves.
RAW = re.compile(
    r"^(float|int|complex)\(\) |could not convert|not supported between|has no attribute|object (is|has|does|cannot)|"
    r"dictionary update|unsupported operand|division by zero|must be real number|unhashable|truth value"
)
ARGUMENT = re.compile(r"(?<![\w.])([a-z]\w*)=(?=[^\s=])")
CALL = re.compile(r"(?<![\w'\"])(?:kng(?:jax)?\.)?(\w+)\(")
# What stands for names in advice.
MEANT = {"kngjax": kng, "kng": kng, "lower": -9.0, "upper": 9.0, "unit": 0.1, "rows": [[0.5]]}


def end_of(text: str, start: int) -> int:
    """Where a value that begins at `start` ends: at a blank, a comma or the like outside of all brackets."""
    depth = 0
    for place in range(start, len(text)):
        depth += (text[place] in "([{") - (text[place] in ")]}")
        if depth < 0 or (depth == 0 and text[place] in " ,;:"):
            return place
    return len(text)


def spans(text: str) -> list[tuple[int, int, str]]:
    """What a text calls, innermost last, with where the arguments begin and end."""
    return [(one.end(), end_of(text, one.end() - 1), one[1]) for one in CALL.finditer(text)]


def public(name: str) -> Any:
    """What a name stands for; None for what is not ours."""
    return next((getattr(place, name) for place in (kng, kngjax.sklearn, kng.Study) if hasattr(place, name)), None)


def wrong_advice(text: str, entry: Entry, settings: dict[str, Any]) -> list[str]:
    """What of a refusal nobody can give where it was raised."""
    objects = [value for value in settings.values() if hasattr(kng, type(value).__name__)]
    takes = entry.takes | {name for value in objects for name in named(type(value))}
    classes, called, wrong = entry.classes | {type(value).__name__ for value in objects}, spans(text), []
    for start, _, name in called:
        is_within = any(outer[2] == "release" and outer[0] <= start <= outer[1] for outer in called)
        if name[0].isupper() and name not in classes and public(name) is not None and not is_within:
            wrong.append(f"{name}()")
    for found in ARGUMENT.finditer(text):
        owners = [name for start, end, name in called if start <= found.start() < end]
        if owners and (owner := public(owners[-1])) is None:
            continue
        if found[1] not in (named(owner) if owners else takes):
            wrong.append(f"{owners[-1] if owners else ''}({found[1]}=)")
    return wrong


def advised(text: str, entry: Entry) -> Iterator[tuple[str, Any]]:
    """Arguments of the entry that a refusal names with a value."""
    called = spans(text)
    for found in ARGUMENT.finditer(text):
        words = text[found.end() : end_of(text, found.end())].rstrip(".").replace("(...)", "('no', 'yes')")
        if found[1] in entry.takes and not any(start <= found.start() < end for start, end, _ in called):
            with contextlib.suppress(Exception):
                if (value := eval(words.replace("(lower, upper)", "(1.0, 30.0)"), MEANT)) is not ...:
                    yield found[1], value


def followed(settings: dict[str, Any], name: str, value: Any) -> dict[str, Any]:
    """The settings with what was advised; of a mapping the columns that were named are added."""
    before = settings.get(name)
    return settings | {name: {**before, **value} if isinstance(before, dict) and isinstance(value, dict) else value}


def is_other(told: str, text: str, name: str) -> bool:
    """Whether a refusal is neither the same again nor says what the advised argument must be."""
    return told != text and not told.startswith(f"{name} must")


@pytest.fixture
def nothing_is_drawn(monkeypatch):
    """Whatever would be debited and drawn stops there; what is expected of it is not computed."""

    def stop(*_: Any, **__: Any) -> None:
        raise Reached

    for place, name in (
        (Analysis, "release"),
        (plan, "reserve_cost"),
        (research, "estimate"),
        (research, "independent_draws"),
        (simulation.SimulatedPart, "of"),
    ):
        monkeypatch.setattr(place, name, stop)
    monkeypatch.setattr(expectations, "expect", lambda *_: None)


ROWS = {name: entry for rows in (studies, estimators, mechanisms, researches) for name, entry in rows()}


@pytest.mark.default_cases(*DEFAULT)
@pytest.mark.parametrize("row", ROWS)
def test_advice_is_of_what_was_called_and_can_be_followed(row, nothing_is_drawn):
    entry = ROWS[row]
    with every_case() as case:
        with case("as it is"):
            assert not entry.has_plain or refusal(entry, entry.given) is None
        for argument, value in ((argument, one) for argument, odd in entry.odd.items() for one in odd):
            with case(argument, value):
                settings = entry.given | {argument: value}
                if (text := refusal(entry, settings)) is None:
                    continue
                assert not RAW.search(text), text
                assert not wrong_advice(text, entry, settings), text
                # Values that were given are told of, and not advised.
                new = [(name, one) for name, one in advised(text, entry) if repr(one) != repr(settings.get(name))]
                together = functools.reduce(lambda made, one: followed(made, *one), new, settings)
                for name, one in new:
                    again = [refusal(entry, made) for made in (followed(settings, name, one), together)]
                    assert any(told is None or is_other(told, text, name) for told in again), (name, one, text)
