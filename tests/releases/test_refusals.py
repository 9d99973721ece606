"""A release that fails tells what types, shapes and settings decide, and else one constant text; it is spent."""

import gc
import itertools
import pathlib
import traceback
import tracemalloc
import warnings

import jax
import numpy as np
import polars as pl
import pytest

import kngjax as kng
from kngjax.core import errors
from kngjax.core.errors import FAILED, run_hiding_errors
from kngjax.data import schema
from kngjax.draws import noisy_sums
from kngjax.losses import distance
from kngjax.releases import float64_draws, release
from tests.offenders import every_case

PACKAGE = str(pathlib.Path(kng.__file__).parent)
BOUNDS = kng.Bounds(x=([0.0], [1.0]), y=(0.0, 1.0))
BOX = kng.Box(-2.0, 2.0)
UNIT = kng.Bounds(x=([0.0], [1.0]), intercept=False)
# Drawn in fractions and balls, and of this norm in float64.
MEAN = kng.KNormMechanism(UNIT, 0.25, "replace")
IN_FLOATS = kng.KNormMechanism(UNIT, 0.25, "replace", kng.Ellipsoid([[1.0]]))
SECRET = 0.987654321
X, Y = np.full((6, 1), SECRET), np.linspace(0.0, 1.0, 6)


def spoiled(value):
    x = X.copy()
    x[2] = value
    return x


class Exploding:
    """Private values that raise what quotes them."""

    def __array__(self, dtype=None, copy=None):
        raise OverflowError(f"cannot take {SECRET}")


class Panic(BaseException):
    """As compiled readers raise it, which is no Exception."""


class Panicking:
    """Private values whose library panics."""

    def __array__(self, dtype=None, copy=None):
        raise Panic(f"cannot take {SECRET}")


def panicking_chunks():
    yield X, None
    raise Panic(f"cannot take {SECRET}")


COUNTS = kng.PosteriorSample(BOUNDS, 100.0, 0.01, "replace", max_records=5)
LOGISTIC = kng.ObjectivePerturbation(kng.LogisticLoss(), kng.Bounds(x=([0.0], [1.0])), None, 1.0, "replace")
POISSON = kng.KNG(kng.PoissonLoss(), kng.Bounds(x=([0.0], [1.0]), y=(0.0, 9.0)), BOX, 1.0, "replace")
FAR = kng.KNG(kng.SquaredLoss(), kng.Bounds(y=(-1.0, 1.0)), kng.Box(-1.0, -0.5), 50.0, "replace")
OF_VALUES = {
    "NaN": (MEAN, (spoiled(np.nan),)),
    "infinity": (MEAN, (spoiled(-np.inf),)),
    "a list with a list in a cell": (MEAN, ([[SECRET], [[SECRET]]],)),
    "a list with a word in it": (MEAN, ([[SECRET], ["missing"]],)),
    "too many records": (COUNTS, (X, Y)),
    "labels that are not 0 or 1": (LOGISTIC, (X, Y)),
    "negative counts": (POISSON, (X, -Y)),
    "the reader's own error": (MEAN, (Exploding(),)),
    "a panic of another library": (MEAN, (Panicking(),)),
    "a stream that breaks off": (MEAN, (kng.stream([(X, None), (spoiled(np.nan), None)]),)),
}


SAMPLERS = {"negative counts": kng.chains.EnsembleWalk(num_sweeps=4)}


def frames_of_ours(error):
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return [frame for frame in frames if frame.f_code.co_filename.startswith(PACKAGE)]


def failure(name, **options):
    mechanism, data = OF_VALUES[name]
    with pytest.raises(kng.ReleaseFailed) as caught:
        kng.release(mechanism, *data, sampler=SAMPLERS.get(name), **options)
    return caught.value


def test_what_depends_on_values_is_one_constant_text_and_no_frame_of_ours_holds_the_records():
    with every_case() as case:
        for name, (_, data) in OF_VALUES.items():
            with case(name):
                error = failure(name)
                assert (type(error), str(error)) == (kng.ReleaseFailed, FAILED)
                assert (error.__cause__, error.__context__, error.args) == (None, None, (FAILED,))
                assert not any(part in "".join(traceback.format_exception(error)) for part in ("0.98", "987654"))
                (frame,) = frames_of_ours(error)
                assert frame.f_locals["function"].__name__ == "release"
                assert not {"X", "y", "data", "shards"} & set(frame.f_locals)
                given = [part for part in data if part is not None]
                assert not any(value is part for value in frame.f_locals.values() for part in given)


def test_a_stream_that_panics_fails_in_the_same_words():
    with pytest.raises(kng.ReleaseFailed) as caught:
        kng.release(MEAN, kng.stream(panicking_chunks()))
    assert (str(caught.value), caught.value.__context__) == (FAILED, None)


def test_what_ends_the_program_ends_it():
    class Interrupted:
        def __init__(self, interruption):
            self.interruption = interruption

        def __array__(self, dtype=None, copy=None):
            raise self.interruption

    for interruption in (KeyboardInterrupt, SystemExit):
        with pytest.raises(interruption):
            kng.release(MEAN, Interrupted(interruption))


def test_no_frame_of_a_refused_debit_holds_the_records(tmp_path):
    ledger = kng.Ledger.create(tmp_path / "ledger", kng.Budget.pure("0.1"), adjacency="replace", dataset="numbers")
    with pytest.raises(kng.ledger.BudgetExceeded) as caught:
        kng.release(MEAN, X, ledger=ledger)
    (frame,) = frames_of_ours(caught.value)
    assert frame.f_locals["function"].__name__ == "release"
    assert not any(value is X for value in frame.f_locals.values())


def memory_of(call):
    """The error of a call that fails, the most bytes that the call held, and those that are held while its error is."""
    error = None
    tracemalloc.start()
    try:
        call()
    except kng.ReleaseFailed as found:
        error = found
    gc.collect()
    held, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return error, most, held


def test_what_a_failed_release_computed_is_gone(monkeypatch):
    """Nothing that outlives the call holds the records that it read and clipped."""

    def interrupted(*_, **__):
        raise MemoryError

    # The sums come last of all that is made of the clipped records.
    monkeypatch.setattr(distance, "column_sums", interrupted)
    x = np.random.default_rng(0).uniform(size=(20_000, 1))
    for mechanism in (MEAN, IN_FLOATS):
        # The first release of a kind imports and compiles what stays, several times as slowly where memory is traced.
        with pytest.raises(kng.ReleaseFailed):
            kng.release(mechanism, x)
        error, most, held = memory_of(lambda mechanism=mechanism: kng.release(mechanism, x))
        assert isinstance(error, kng.ReleaseFailed)
        assert most > x.nbytes
        assert held < x.nbytes / 2


IN_WORDS = {
    "no columns": (MEAN, (np.zeros(6),), ValueError, "X must have shape"),
    "another number of columns": (MEAN, (np.zeros((6, 2)),), ValueError, "X has 2 columns"),
    "another number of rows": (LOGISTIC, (X, Y[:4]), ValueError, "different numbers of rows"),
    "no response": (LOGISTIC, (X,), ValueError, "y is missing"),
    "nothing": (MEAN, (np.zeros((0, 1)),), ValueError, "the data are empty"),
    "text": (MEAN, (np.array([["a"]]),), TypeError, "must hold real numbers"),
    "masked": (MEAN, (np.ma.masked_array(X, X > 0),), TypeError, "masked array"),
    "no sampler for it": (FAR, (None, Y), ValueError, "LineGibbs"),
}


def test_what_types_and_shapes_decide_is_told():
    with every_case() as case:
        for name, (mechanism, data, kind, words) in IN_WORDS.items():
            with case(name):
                with pytest.raises(kind, match=words) as caught:
                    kng.release(mechanism, *data, sampler=kng.chains.LineGibbs() if "sampler" in name else None)
                assert type(caught.value) is kind
                assert (caught.value.__cause__, caught.value.__context__) == (None, None)


def test_no_refusal_keeps_the_error_that_it_was_raised_of(monkeypatch):
    """Its frames lead back to those that hold the records; of a release, of one with intervals and of a study."""

    def refuse(*_, **__):
        try:
            raise KeyError("behind it")
        except KeyError as error:
            raise ValueError("told") from error

    frame = pl.DataFrame({"age": X[:, 0], "pay": Y})
    study = kng.Study(frame, bounds={"age": (0.0, 1.0), "pay": (0.0, 1.0)}, adjacency="replace")
    monkeypatch.setattr("kngjax.releases.release.draw_for", refuse)
    monkeypatch.setattr("kngjax.releases.curves.quantile_process.QuantileProcess.resolve", refuse)
    process = kng.QuantileProcess([0.25, 0.75], kng.Bounds(y=(0.0, 1.0)), BOX, 1.0, "replace")
    for work in (
        lambda: kng.release(MEAN, X),
        lambda: kng.release(process, y=Y),
        lambda: study.mean("age", epsilon=1.0, force=True),
    ):
        with pytest.raises(ValueError, match="told") as caught:
            work()
        assert (caught.value.__cause__, caught.value.__context__) == (None, None)


def test_shapes_are_looked_at_before_values():
    """Else which of two texts it is would tell whether there is a NaN."""
    texts = set()
    for y in (Y, np.full(6, np.nan), pl.Series([0.5] * 6), pl.Series([0.5] * 5 + [None])):
        for x in (np.zeros((6, 2)), np.full((6, 2), np.nan)):
            with pytest.raises(ValueError, match="X has 2 columns") as caught:
                kng.release(LOGISTIC, x, y)
            texts.add(str(caught.value))
    assert len(texts) == 1


def test_whatever_happens_inside_is_sealed(monkeypatch):
    for error in (
        ValueError("0.98"),
        KeyError("0.98"),
        MemoryError(),
        jax.errors.JaxRuntimeError("0.98"),
        StopIteration(),
    ):

        def centre(*_, error=error):
            raise error

        monkeypatch.setattr(float64_draws, "independent_draws", centre)
        monkeypatch.setattr(noisy_sums, "draw_cell", centre)
        for mechanism in (MEAN, IN_FLOATS):
            with pytest.raises(kng.ReleaseFailed) as caught:
                kng.release(mechanism, X)
            assert (str(caught.value), caught.value.__context__) == (FAILED, None)


def test_a_draw_that_is_no_number_is_not_released(monkeypatch):
    monkeypatch.setattr(float64_draws, "independent_draws", lambda *_: np.full((1, 1), np.nan))
    with pytest.raises(kng.ReleaseFailed):
        kng.release(IN_FLOATS, X)


def named(mechanism, *data):
    """Sentences of a certificate on what could have made its release fail."""
    return next(one for one in kng.certify(mechanism, *data).assumptions if "did not fail" in one)


def names_no_search_on_a_grid(metric):
    ridge = kng.OutputPerturbation(kng.SquaredLoss(), BOUNDS, 1e3, 1.0, 1e-6, "replace", metric, max_records=9)
    assert "a minimiser that was not found" not in named(ridge, X, Y)
    assert "more than max_records records" in named(ridge, X, Y)


@pytest.mark.slow
def test_a_certificate_of_noise_in_the_metric_of_curvature_names_no_search():
    names_no_search_on_a_grid("hessian")


def test_a_certificate_names_what_could_have_made_its_release_fail():
    assert "is an output that the guarantee does not cover" in named(MEAN, X)
    assert "missing values in X" in named(MEAN, X)
    assert "max_records" not in named(MEAN, X)
    assert "responses that are missing" not in named(MEAN, X)
    assert "responses that are missing" in named(LOGISTIC, X, Y)
    # On a grid no search ends without its minimiser.
    assert "a minimiser that was not found" not in named(LOGISTIC, X, Y)
    names_no_search_on_a_grid("identity")
    # Of a hull the sensitivity is not known in fractions, and float64 searches.
    hull = kng.Bounds(hull=kng.geometry.FeatureHull([[0.0], [1.0]]))
    searched = kng.ObjectivePerturbation(kng.LogisticLoss(), hull, None, 1.0, "replace")
    assert "a minimiser that was not found" in named(searched, X, Y)
    assert "changed this process's arithmetic" in named(MEAN, X)
    assert "more than max_records records" in named(COUNTS, X, Y)
    private = kng.PrivateQuantile(0.5, kng.Bounds(y=(0.0, 1.0), missing_y=0.5), 1.0, "add_remove")
    assert "more than max_records records" in named(private, Y)
    assert "missing" not in named(private, Y)


def test_warnings_about_values_are_silent_inside_and_only_there():
    def loud():
        warnings.warn("0.98 is large", RuntimeWarning, stacklevel=1)
        return np.float64(1e308) * np.array([10.0])

    value, refusal = run_hiding_errors(loud)
    assert refusal is None
    assert np.isinf(value)
    with pytest.raises(RuntimeWarning):
        loud()


def test_interruptions_are_not_swallowed():
    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_hiding_errors(interrupted)


def test_what_another_package_raises_is_not_repeated_before_a_debit_either(monkeypatch):
    """Of streams as of arrays: an error of somebody else's code may quote a value."""
    mechanism = kng.AdaSSP(kng.Bounds(x=(0.0, 1.0), y=(0.0, 1.0), columns=1), 1.0, 1e-6, "replace")

    def quotes(*_, **__):
        raise ValueError("0.98")

    monkeypatch.setattr(schema, "public_shapes", quotes)
    for data in ((X, X[:, 0]), (kng.stream([(X, X[:, 0])]),)):
        with pytest.raises(TypeError) as caught:
            kng.release(mechanism, *data)
        assert (str(caught.value), caught.value.__context__) == (errors.UNREADABLE, None)


def test_every_failure_is_spent(tmp_path):
    ledger = kng.Ledger.create(
        tmp_path / "it", kng.Budget.approximate(1, "0.1"), adjacency="replace", dataset="invented"
    )
    for _ in range(2):
        failure("NaN", ledger=ledger)
    with pytest.raises(ValueError, match="X must have shape"):
        kng.release(MEAN, np.zeros(6), ledger=ledger)
    # What a shape refuses is not.
    book = ledger.verify()
    assert (float(book.spent.exact_epsilon), book.unfinished, list(book.released)) == (0.5, [2, 4], [])


KEYS = {
    "research key": kng.research_key(1),
    "keys": jax.random.split(kng.research_key(1), 3),
    "generator": np.random.default_rng(1),
    "legacy generator": np.random.RandomState(1),
    "seed sequence": np.random.SeedSequence(1),
}


ARGUMENTS = {"mechanism": LOGISTIC, "X": X, "y": Y, "given": (None, None), "sampler": None} | {
    "ledger": None,
    "progress": None,
}


ASKED = {name: value for name, value in ARGUMENTS.items() if name != "given"}


def test_a_key_is_refused_wherever_it_is():
    with every_case() as case:
        for (name, key), place in itertools.product(KEYS.items(), ARGUMENTS):
            # Of these tests beartype refuses keys in other places first, in words of its own.
            use = kng.release if place in ("X", "y") else release._check_arguments
            with case(name, place), pytest.raises(TypeError, match="randomness comes from the operating system"):
                use(**(ASKED if use is kng.release else ARGUMENTS) | {place: (key,) if place == "given" else key})


def test_a_seed_is_refused_wherever_it_is():
    for place in ("sampler", "progress", "mechanism"):
        with pytest.raises(TypeError, match="must be"):
            release._check_arguments(**(ARGUMENTS | {place: 7}))


def test_a_key_inside_of_a_part_is_found():
    with pytest.raises(TypeError, match="randomness comes from the operating system"):
        release._check_arguments(**(ARGUMENTS | {"sampler": [kng.research_key(0)]}))
