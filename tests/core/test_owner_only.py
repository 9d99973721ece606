"""What is the owner's alone shows a label, and no accident makes a file, a number, a list or a log line of it."""

import copy
import dataclasses
import itertools
import json
import logging
import operator
import pickle
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flint import arb

import kngjax as kng
from audits.lattices import LatticeLaw
from kngjax.core.owner_only import OwnerOnly
from kngjax.core.summary_table import SummaryTable
from kngjax.data.exact_sums import ExactSums
from kngjax.data.number_columns import MadeColumns
from kngjax.data.persons import Identifiers, Shares
from kngjax.data.records import Counts, QuadraticSummary, Records, SortedValues, WeightedRecords
from kngjax.data.weights import WeightedTable
from kngjax.draws.lattice.window_searches import QuantileScores
from kngjax.draws.minima.objectives_by_passes import objective_of
from kngjax.draws.minima.smooth_objectives import Objective
from kngjax.draws.quadratic.bodies import body_of
from kngjax.draws.quadratic.envelopes import QuadraticLaw
from kngjax.draws.shells.shell_certificate import ShellCertificate
from kngjax.draws.shells.shell_envelope import ShellEnvelope
from kngjax.draws.shells.shell_records import ShellRecords
from kngjax.geometry.scaled_norms import ScaledNorm
from kngjax.losses.smooth_scores import PseudoHuberScore
from kngjax.losses.verified_scores import HuberScore
from kngjax.owner.per_instance.everyone import ForAll
from kngjax.owner.per_instance.pairs_of_laws import PosteriorPair
from kngjax.study.checks import Check
from tests.offenders import every_case

# As many digits as nothing else shows.
SECRET = 1.2345678
VALUES = np.full(3, SECRET)
FOR_ALL = ForAll(SECRET, SECRET, "none")
PAIR = PosteriorPair(VALUES, VALUES, np.asarray(SECRET))
TABLE = np.full((3, 3), SECRET)
PERTURBED = kng.ObjectivePerturbation(
    kng.HuberLoss(1.0), kng.Bounds(x=(0.0, 2.0), y=(0.0, 2.0), columns=1), kng.Box(-1.0, 1.0), 1.0, "replace"
)
CERTIFICATE = ShellCertificate(
    *(VALUES, [arb(SECRET)], TABLE, [arb(SECRET)]), *6 * (SECRET,), (), SECRET, SECRET, VALUES, SECRET
)
OBJECTS = {
    "draws": kng.owner.Draws(np.full((1, 2, 3), SECRET), "Exact"),
    "summary of draws": kng.owner.DrawsSummary(("a",), *6 * (VALUES[:1],), SECRET),
    "report": kng.owner.per_instance.PerInstanceReport(
        0.1, VALUES, VALUES, VALUES, PAIR, FOR_ALL, SECRET, "OPS", "removed"
    ),
    "summary": kng.owner.per_instance.PerInstanceSummary(
        SECRET, SECRET, SECRET, {0.5: SECRET}, {1.0: SECRET}, FOR_ALL, SECRET, 0.1, ""
    ),
    "for all": FOR_ALL,
    "pair": PAIR,
    "utility": kng.owner.UtilityReport(SECRET, {}, {}, None, None, {"it": (["a"], VALUES, VALUES)}),
    "fit": kng.owner.nonprivate.NonprivateFit(VALUES, VALUES),
    "records": Records(np.full((3, 2), SECRET), VALUES),
    "identifiers": Identifiers(VALUES),
    "shares": Shares(VALUES, 3, np.arange(len(VALUES))),
    "made columns": MadeColumns(np.full((1, 3), SECRET)),
    "weighted records": WeightedRecords(Records(np.full((3, 2), SECRET), VALUES), VALUES),
    "weighted table": WeightedTable(TABLE, VALUES),
    "sums": QuadraticSummary(np.asarray(SECRET), np.full((3, 3), SECRET), VALUES, np.asarray(SECRET)),
    "objective": Objective.of(
        Records(np.full((3, 2), SECRET), VALUES), HuberScore(1.0), Fraction(1234567), Fraction(1234567)
    ),
    "exact sums": ExactSums(3, np.full((3, 3), 1234567), np.full(3, 1234567), 1234567),
    "quadratic law": QuadraticLaw(
        [[Fraction(1234567)]],
        [Fraction(1234567)],
        ScaledNorm("sum", (Fraction(1),), Fraction(1)),
        body_of(kng.L2Ball(1.0).exact_shape(1)),
    ),
    "records of a smooth loss": ShellRecords.of(TABLE, VALUES, PseudoHuberScore(1.0)),
    "certificate": CERTIFICATE,
    "envelope": ShellEnvelope(CERTIFICATE, VALUES, VALUES, VALUES, VALUES, SECRET, SECRET),
    "law on a lattice": LatticeLaw(np.full((2, 3), SECRET), np.full(2, 1234567), Fraction(1, 2)),
    "sorted values": SortedValues(VALUES),
    "check": Check(True, SummaryTable("Check", [("cells", "1.2345")])),
    "counts": Counts(VALUES, np.asarray(SECRET)),
    "stream": kng.stream([(np.full((3, 1), SECRET), VALUES)]),
    "objective by passes": objective_of(
        PERTURBED, kng.stream([(TABLE[:, :1], VALUES)]), None, HuberScore(1.0), Fraction(1234567), Fraction(1234567)
    ),
    "scores": QuantileScores(1234567, 1, []),
    "shards": kng.shard(np.full((3, 1), SECRET), VALUES),
}
# JAX and streams need their dictionaries.
WITH_DICTIONARY = (
    "pair",
    "records",
    "weighted records",
    "weighted table",
    "sums",
    "sorted values",
    "counts",
    "stream",
    "shards",
    "objective by passes",
)


def saved(thing, tmp_path):
    np.savez(tmp_path / "file.npz", thing=thing)


def logged(thing):
    record = logging.LogRecord("name", logging.INFO, "path", 1, "found %s and %r", (thing, thing), None)
    return record.getMessage()


SHOWN_BY = {
    "repr": repr,
    "str": str,
    "format": format,
    "a format of numbers": "{:.3f}".format,
    "a format of text": "{0!s:>3}".format,
    "a log line": logged,
}


def test_only_a_label_is_shown():
    with every_case() as case:
        for (name, thing), (way, show) in itertools.product(OBJECTS.items(), SHOWN_BY.items()):
            with case(name, way):
                shown = show(thing)
                assert type(thing).__name__ in shown
                assert not any(part in shown for part in ("1.23", "23456", "1.2"))
                assert "private" in shown


WAYS = {
    "pickle": pickle.dumps,
    "old pickle": lambda thing: pickle.dumps(thing, protocol=0),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "in a list": lambda thing: copy.deepcopy([thing]),
    "float": float,
    "int": int,
    "complex": complex,
    "index": operator.index,
    "bool": bool,
    "list": list,
    "length": len,
    "first": lambda thing: thing[0],
    "membership": lambda thing: SECRET in thing,
    "array": np.asarray,
    "array of a list": lambda thing: np.asarray([thing], dtype=float),
    "sum": np.sum,
    "JAX": jnp.asarray,
    "replace": lambda thing: getattr(copy, "replace", type(thing).__replace__)(thing),
}


def test_no_way_out_is_taken_by_accident():
    with every_case() as case:
        for (name, thing), (way, take) in itertools.product(OBJECTS.items(), WAYS.items()):
            with case(name, way):
                with pytest.raises(TypeError) as caught:
                    take(thing)
                assert way == "JAX" or f"a {type(thing).__name__} is computed from private data" in str(caught.value)
                assert "1.23" not in str(caught.value)


def test_files_are_refused(tmp_path):
    with every_case() as case:
        for name, thing in OBJECTS.items():
            with case(name, "NumPy's file"), pytest.raises(TypeError, match="computed from private data"):
                saved(thing, tmp_path)
            with case(name, "JSON"):
                with pytest.raises(TypeError, match="not JSON serializable"):
                    json.dumps({"found": thing})
                assert "1.23" not in json.dumps({"found": thing}, default=str)


@dataclasses.dataclass
class Outer:
    found: object


def test_an_object_is_not_taken_apart():
    takes = (dataclasses.asdict, dataclasses.astuple, dataclasses.fields, dataclasses.replace)
    with every_case() as case:
        for name, thing in OBJECTS.items():
            ways = {"asdict of what holds it": lambda thing: dataclasses.asdict(Outer(thing))}
            if name not in ("stream", "shards", "objective by passes"):
                assert dataclasses.is_dataclass(thing)
                ways |= {take.__name__: take for take in takes}
            if name not in WITH_DICTIONARY:
                ways["vars"] = vars
            for way, take in ways.items():
                with case(name, way), pytest.raises(TypeError, match="computed from private data"):
                    take(thing)


def test_the_owner_reads_her_attributes_and_jax_its_leaves():
    np.testing.assert_array_equal(OBJECTS["draws"].theta, SECRET)
    assert "1.2346" in OBJECTS["summary"].explain()
    doubled = jax.jit(lambda data: jax.tree.map(lambda leaf: 2 * leaf, data))(OBJECTS["records"])
    np.testing.assert_allclose(doubled.y, 2 * VALUES)


def test_every_class_of_the_owner_is_tried():
    kinds, waiting = set(), [OwnerOnly]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if kind.__module__.startswith("kngjax") and kind is not OwnerOnly and not kind.__name__.startswith("Abstract"):
            kinds.add(kind.__qualname__)
    tried = {type(thing).__qualname__ for thing in OBJECTS.values()}
    assert kinds <= tried | {"ShiftPair", "ObjectivePair"}


def test_no_draws_become_a_release():
    released = kng.release(kng.PrivateQuantile(0.5, kng.Bounds(y=(0.0, 1.0)), 1.0, "replace"), np.full(9, 0.5))
    for arguments in ((OBJECTS["draws"].theta[0, 0], released.certificate), (released.value, released.certificate)):
        with pytest.raises(TypeError, match=r"made by kngjax\.release"):
            kng.Release(*arguments)
    with pytest.raises(TypeError, match=r"made by kngjax\.release"):
        dataclasses.replace(released, value=OBJECTS["draws"].theta[0, 0])
    assert not isinstance(OBJECTS["draws"], kng.Release)
    assert not hasattr(OBJECTS["draws"], "to_json")
    for again in (pickle.loads(pickle.dumps(released)), copy.deepcopy(released)):
        assert again == released
        assert not again.value.flags.writeable
