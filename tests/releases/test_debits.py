"""A release with a ledger: debited before the data are touched and before anything is drawn, whatever happens then."""

import copy
import dataclasses
import hashlib
import secrets
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest
import scipy.sparse

import kngjax as kng
from kngjax.data.schema import Schema
from kngjax.ledger.book import canonical, guarantee_of
from kngjax.releases import debits
from kngjax.releases.certificate import Certificate
from kngjax.releases.draw_choice import draw_for
from kngjax.releases.float64_draws import DirectDraw
from kngjax.releases.release import OneRelease
from tests.made_once import MadeOnce

BOUNDS = kng.Bounds(x=([-1.0], [1.0]), y=(-1.0, 1.0))
BOX = kng.Box(-2.0, 2.0)
NUMBERS = kng.Bounds(y=(0.0, 1.0))
MEANS = kng.Bounds(x=([0.0], [1.0]), intercept=False)
# Of this norm float64 draws the noise, and of the default one fractions and balls.
HALF = kng.KNormMechanism(MEANS, 0.5, "replace", kng.Ellipsoid([[1.0]]))
EXACT_HALF = kng.KNormMechanism(MEANS, 0.5, "replace")
MECHANISMS = MadeOnce(
    {
        "KNG": lambda: kng.KNG(kng.SquaredLoss(), BOUNDS, BOX, 0.3, "replace"),
        "open dimension": lambda: kng.KNG(
            kng.SquaredLoss(), kng.Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0)), BOX, 0.3, "replace"
        ),
        "exponential": lambda: kng.ExponentialMechanism(kng.SquaredLoss(), BOUNDS, BOX, 0.3, "add_remove"),
        "means": lambda: HALF,
        "exact means": lambda: EXACT_HALF,
        "quantile": lambda: kng.PrivateQuantile(0.5, NUMBERS, 0.7, "replace"),
        "quantiles": lambda: kng.PrivateQuantile([0.25, 0.5], NUMBERS, 0.7, "replace"),
        "objective": lambda: kng.ObjectivePerturbation(kng.PseudoHuberLoss(0.5), BOUNDS, BOX, 0.1, "replace"),
        "output": lambda: kng.OutputPerturbation(
            kng.SquaredLoss(), BOUNDS, 1000.0, 1.0, 1e-6, "replace", max_records=10**4
        ),
        "reweighted": lambda: kng.PrivateIRLS(BOUNDS, 0.9, 1e-6, "replace"),
        "posterior": lambda: kng.PosteriorSample.calibrated(BOUNDS, 1000.0, 1.0, 1e-6, "add_remove", max_records=10**4),
        "AdaOPS": lambda: kng.AdaOPS(BOUNDS, 1.0, 1e-6, "replace"),
        "AdaSSP": lambda: kng.AdaSSP(BOUNDS, 1.0, 1e-6, "add_remove"),
    }
)


def ledger(folder, budget, adjacency="replace", name="budget.ledger", unproved="refuse"):
    return kng.Ledger.create(folder / name, budget, adjacency=adjacency, dataset="invented", unproved=unproved)


def values(n=40):
    return np.random.default_rng(0).uniform(size=(n, 1))


class Watched:
    """Private values that say when somebody touches them."""

    def __init__(self, touched, shape=None):
        self.touched = touched
        if shape is not None:
            self.shape, self.dtype, self.ndim = shape, np.dtype(float), len(shape)

    def __array__(self, dtype=None, copy=None):
        self.touched()
        return values()


def never():
    raise AssertionError("the data were touched")


def of(epsilon):
    """A budget with room for what float64's rounding adds to delta."""
    return kng.Budget.approximate(epsilon, "0.1")


@pytest.mark.default_cases("KNG", "means", "quantiles", "AdaSSP")
@pytest.mark.parametrize("name", MECHANISMS)
def test_what_is_reserved_is_what_is_certified_of_the_release(tmp_path, name):
    mechanism = MECHANISMS[name]
    facts = Schema(mechanism.dimension or 2)
    draw = draw_for(mechanism, kng.chains.Exact(), facts) if name in SAMPLED else DirectDraw(mechanism)
    certificate = Certificate.of(draw, facts)
    cost = certificate.cost
    # The rounding of the output is part of it.
    assert cost.apart() == (certificate.guarantee, certificate.rounding.distance)
    assert cost.exact_delta > certificate.guarantee.exact_delta
    own = ledger(tmp_path, of(100), cost.adjacency)
    reserved = debits.reserve_cost(own, *debits.owed(certificate), debits.settings(mechanism))
    assert reserved.covers(cost)
    assert not reserved.covers(certificate.guarantee)
    kept = own.read()
    assert kept.what[2]["what"]["type"] == type(mechanism).__name__
    assert kept.parts == ((guarantee_of(canonical(cost.to_dict())), 1),)


def test_a_certificate_is_had_without_a_release(tmp_path):
    certificate = kng.certify(HALF, Watched(never, shape=(40, 1)))
    assert certificate.cost == kng.release(HALF, values()).certificate.cost
    own = ledger(tmp_path, of(1))
    kng.release(HALF, values(), ledger=own.reserve(certificate.cost))
    assert own.verify().spent.exact_delta == certificate.cost.exact_delta
    with pytest.raises(ValueError, match=r"kngjax\.certify\(mechanism, X, y\)\.cost"):
        kng.release(HALF, values(), ledger=own.reserve(HALF.guarantee))


@pytest.mark.parametrize("budget", [kng.Budget.pure(9), kng.Budget.zcdp(9), kng.Budget.converted(9, 1e-9, 0)], ids=str)
def test_budgets_without_room_for_rounding_refuse_floats_and_take_lattices(tmp_path, budget):
    own = ledger(tmp_path, budget)
    with pytest.raises(kng.ledger.BudgetExceeded, match=r"rounded in float64.*needs (a )?[Bb]udget") as refused:
        kng.release(HALF, Watched(never, shape=(40, 1)), ledger=own)
    # It takes no sampler.
    assert "ampler" not in str(refused.value)
    median = kng.KNG(kng.QuantileLoss(0.5), NUMBERS, kng.Box(0.0, 1.0), 0.2, "replace")
    with pytest.raises(kng.ledger.BudgetExceeded, match=r"rounded in float64.*\. Leave the sampler out: of that draw"):
        kng.release(median, None, Watched(never, shape=(40,)), sampler=kng.chains.Exact(), ledger=own)
    # Nor is another draw advised that there is no room for.
    large = dataclasses.replace(median, epsilon=10.0)
    with pytest.raises(kng.ledger.BudgetExceeded) as refused:
        kng.release(large, None, Watched(never, shape=(40,)), sampler=kng.chains.Exact(), ledger=own)
    assert "ampler" not in str(refused.value)
    assert own.verify().num_rows == 1
    assert kng.certify(median, None, values()[:, 0]).cost.exact_delta == 0
    kng.release(kng.PrivateQuantile(0.5, NUMBERS, 0.7, "replace"), values()[:, 0], ledger=own)
    assert own.verify().spent.exact_epsilon == Fraction(7, 10)
    kng.release(EXACT_HALF, values(), ledger=own)
    assert own.verify().num_rows == 7


def test_what_is_not_proved_is_debited_from_ledgers_that_allow_it_alone(tmp_path):
    walk = kng.KNG(kng.PseudoHuberLoss(0.5), BOUNDS, BOX, 0.2, "replace")
    data, sampler = (values(), values()[:, 0]), kng.chains.EnsembleWalk(num_sweeps=4)
    assert kng.certify(walk, *data, sampler=sampler).cost is None
    strict, lax = ledger(tmp_path, of(9)), ledger(tmp_path, of(9), unproved="allow", name="lax.ledger")
    with pytest.raises(kng.ledger.BudgetExceeded, match="nothing is proved of this release"):
        kng.release(walk, Watched(never, shape=(40, 1)), data[1], sampler=sampler, ledger=strict)
    # What was reserved as proved is not for what is not.
    with pytest.raises(ValueError, match="made for another guarantee"):
        kng.release(walk, *data, sampler=sampler, ledger=lax.reserve(walk.guarantee))
    reserved = debits.reserve_cost(lax, *debits.owed(kng.certify(walk, *data, sampler=sampler)), "a walk")
    assert not reserved.proved
    assert lax.verify().not_proved == [3]


SAMPLED = ("KNG", "open dimension", "exponential")


def test_a_release_is_debited_and_committed(tmp_path):
    own = ledger(tmp_path, of(1))
    released = kng.release(HALF, values(), ledger=own)
    book = own.verify()
    assert book.spent.exact_epsilon == Fraction(1, 2)
    digest = hashlib.sha256(released.to_json().encode()).hexdigest()
    assert book.released == {2: {"certificate": digest, "exact": True, "release": released.to_json()}}
    assert kng.Release.from_json(own.releases()[2]) == released
    # How long it took depends on the data.
    assert "time" not in book.released[2]
    kng.release(HALF, values(), ledger=own)
    with pytest.raises(kng.ledger.BudgetExceeded, match="0 of epsilon = 1 and"):
        kng.release(HALF, values(), ledger=own)


@pytest.mark.slow
def test_samplers_are_debited_and_chains_are_marked(tmp_path):
    own = ledger(tmp_path, of("0.5"), unproved="allow")
    kng.release(MECHANISMS["KNG"], values(), values()[:, 0], ledger=own)
    walk = kng.KNG(kng.PseudoHuberLoss(0.5), BOUNDS, BOX, 0.2, "replace")
    kng.release(
        walk, values(), values()[:, 0], sampler=kng.chains.EnsembleWalk(num_sweeps=4), ledger=own, progress=False
    )
    book = own.verify()
    assert book.spent.exact_epsilon == Fraction(1, 2)
    assert [one["exact"] for one in book.released.values()] == [True, False]


def test_a_spent_budget_refuses_before_the_data_are_touched(tmp_path, monkeypatch):
    own = ledger(tmp_path, of("0.4"))
    monkeypatch.setattr(secrets, "randbits", never)
    with pytest.raises(
        kng.ledger.BudgetExceeded,
        match=r"0\.4 of epsilon = 0\.4 and 0\.1 of delta = 0\.1 is left, and epsilon = 0\.5 at delta",
    ):
        kng.release(HALF, Watched(never), ledger=own)
    # The check itself can fail.
    touched = []
    with pytest.raises(kng.ReleaseFailed):
        kng.release(HALF, Watched(lambda: touched.append(True) or never()))
    assert touched
    assert own.verify().num_rows == 1


@pytest.mark.parametrize("mechanism", [HALF, EXACT_HALF], ids=["1", "2"])
def test_the_debit_is_on_the_disk_before_the_data_are_touched_and_anything_is_drawn(tmp_path, monkeypatch, mechanism):
    own, seen = ledger(tmp_path, of(1)), []

    def look():
        book = kng.Ledger(own.path).read()
        assert book.drawn == {2}
        seen.append(book.unfinished)

    secure = secrets.randbits
    monkeypatch.setattr(secrets, "randbits", lambda *numbers: (look(), secure(*numbers))[1])
    kng.release(mechanism, Watched(look), ledger=own)
    assert len(seen) >= 2
    assert all(unfinished == [2] for unfinished in seen)
    assert own.read().unfinished == []


def test_a_draw_that_is_interrupted_is_not_made_again_of_its_reservation(tmp_path, monkeypatch):
    """A process may be killed in a draw for what its data are, and a second draw would be a second answer."""
    own = ledger(tmp_path, of(1))

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(secrets, "randbits", interrupted)
        with pytest.raises(KeyboardInterrupt):
            kng.release(EXACT_HALF, values(), ledger=own)
    with pytest.raises(kng.ledger.LedgerError, match="was drawn from already"):
        kng.release(EXACT_HALF, values(), ledger=kng.ledger.Reservation(own, 2))
    assert own.read().unfinished == [2]


def test_what_fails_after_the_data_were_touched_stays_spent(tmp_path, monkeypatch):
    own = ledger(tmp_path, of("1.2"))
    with pytest.raises(kng.ReleaseFailed):
        kng.release(HALF, np.full((3, 1), np.nan), ledger=own)
    monkeypatch.setattr(
        kng.ledger.Reservation,
        "commit",
        lambda *_, **__: (_ for _ in ()).throw(kng.ledger.LedgerError("the disk is full")),
    )
    # A release that could not be committed is not returned.
    with pytest.raises(kng.ledger.LedgerError, match="the disk is full"):
        kng.release(HALF, values(), ledger=own)
    monkeypatch.undo()
    with pytest.raises(kng.ledger.BudgetExceeded):
        kng.release(HALF, values(), ledger=own)
    assert own.verify().unfinished == [2, 4]


def test_what_is_refused_for_its_settings_spends_nothing(tmp_path):
    own = ledger(tmp_path, kng.Budget.pure(1))
    with pytest.raises(TypeError, match="release takes no seed"):
        kng.release(HALF, values(), ledger=own, seed=1)
    with pytest.raises((TypeError, ValueError), match="sampler"):
        kng.release(HALF, values(), sampler=kng.chains.Exact(), ledger=own)
    open_cost = kng.PosteriorSample(kng.Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0)), 1000.0, 1.0, "replace", 10**4, 1e-6)
    with pytest.raises(ValueError, match=r"the bounds do not say how many columns X has.*columns=3"):
        kng.release(open_cost, kng.stream(iter([(values(), values()[:, 0])])), ledger=own)
    with pytest.raises(ValueError, match="LineGibbs needs the quantile loss"):
        kng.release(MECHANISMS["KNG"], values(), values()[:, 0], sampler=kng.chains.LineGibbs(), ledger=own)
    with pytest.raises(TypeError):
        kng.release(HALF, values(), ledger=str(own.path))
    assert own.verify().num_rows == 1


class Unread:
    """A stream's items that nobody may ask for."""

    def __iter__(self):
        return self

    def __next__(self):
        raise AssertionError("the stream was read")


FRAME = {"a": [0.25, 0.5], "b": [0.5, 1.0]}
PAIR = kng.Bounds(x=([0.0, 0.0], [1.0, 1.0]), y=(0.0, 1.0))
OF_PAIRS = kng.AdaSSP(PAIR, 0.5, 1e-6, "replace")
MEDIAN = kng.KNG(kng.QuantileLoss(0.5), PAIR, BOX, 0.5, "replace")
X, Y = np.column_stack(list(FRAME.values())), np.array([0.25, 0.75])
REFUSED = {
    "a query of polars": (
        OF_PAIRS,
        (pl.LazyFrame(FRAME), Y),
        TypeError,
        "not yet run, a LazyFrame: give a",
    ),
    "a sparse matrix": (OF_PAIRS, (scipy.sparse.csr_matrix(X), Y), TypeError, r"sparse matrix: pass X.toarray\(\)"),
    "a sparse array": (OF_PAIRS, (scipy.sparse.coo_array(X), Y), TypeError, "sparse matrix"),
    "a column of text": (OF_PAIRS, (pd.DataFrame(FRAME).assign(b=["u", "v"]), Y), TypeError, r"positions \[1\]"),
    "a column of objects": (OF_PAIRS, (pd.DataFrame(FRAME).astype(object), Y), TypeError, r"positions \[0, 1\]"),
    "an array of text": (OF_PAIRS, (X.astype(str), Y), TypeError, "this array holds text"),
    "an array of text for y": (OF_PAIRS, (X, np.array(["no", "yes"])), TypeError, r"text: .*LogisticLoss\(levels="),
    "text for y": (OF_PAIRS, (X, pl.Series(["u", "v"])), TypeError, "y is not a series of numbers"),
    "a column too many": (OF_PAIRS, (pd.DataFrame(FRAME).assign(c=1.0), Y), ValueError, "X has 3 columns"),
    "a column too few": (OF_PAIRS, (pa.table({"a": [1.0, 2.0]}), Y), ValueError, "X has 1 columns"),
    "another length": (OF_PAIRS, (X, Y[:1]), ValueError, "different numbers of rows"),
    "a list of another length": (OF_PAIRS, (X.tolist(), [*Y, 0.5]), ValueError, "different numbers of rows"),
    "a column for y": (OF_PAIRS, (X, Y[:, None]), ValueError, "y must have shape"),
    "a frame for y": (OF_PAIRS, (X, pl.DataFrame({"y": Y})), ValueError, "y must have shape"),
    "another index": (
        OF_PAIRS,
        (pd.DataFrame(FRAME, index=[1, 0]), pd.Series(Y)),
        ValueError,
        r"different pandas indices.*y.loc\[X.index\]",
    ),
    "one name twice": (OF_PAIRS, (pd.DataFrame(X, columns=["a", "a"]), Y), ValueError, "one name"),
    "masked": (OF_PAIRS, (np.ma.masked_array(X), Y), TypeError, "masked array"),
    "a dictionary": (OF_PAIRS, (FRAME, Y), TypeError, "a dict is no table"),
    "a generator": (OF_PAIRS, (iter(X), Y), TypeError, "is no table"),
    "nothing": (OF_PAIRS, (X[:0], Y[:0]), ValueError, "the data are empty"),
    "shards": (kng.PrivateQuantile(0.5, NUMBERS, 0.5, "replace"), (kng.shard(Y),), TypeError, "are for research"),
    "responses beside a stream": (OF_PAIRS, (kng.stream(Unread()), Y), ValueError, "brings its own responses"),
    "a stream of other columns": (
        OF_PAIRS,
        (kng.stream(pl.LazyFrame(FRAME | {"c": Y, "y": Y}), response="y"),),
        ValueError,
        "X has 3 columns",
    ),
    "a stream without its column": (
        OF_PAIRS,
        (kng.stream(pyarrow.dataset.dataset(pa.table(FRAME)), response="y"),),
        ValueError,
        "the column 'y', which is not there",
    ),
    "a stream of text": (
        OF_PAIRS,
        (kng.stream([pa.table(FRAME | {"b": ["u", "v"], "y": Y})], response="y"),),
        TypeError,
        r"positions \[1\]",
    ),
    "a lattice of what it does not serve": (
        kng.KNG(kng.PseudoHuberLoss(0.5), PAIR, BOX, 0.5, "replace"),
        (X, Y),
        ValueError,
        "Lattice needs whole scores",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_types_and_shapes_refuse_costs_nothing(tmp_path, name):
    mechanism, data, kind, words = REFUSED[name]
    own = ledger(tmp_path, kng.Budget.approximate(1, "0.1"))
    with pytest.raises(kind, match=words) as caught:
        kng.release(mechanism, *data, sampler=kng.draws.Lattice() if "lattice" in name else None, ledger=own)
    assert (type(caught.value), caught.value.__context__) == (kind, None)
    assert own.verify().num_rows == 1


def test_columns_of_files_are_compared_before_they_are_paid_for(tmp_path):
    own = ledger(tmp_path, kng.Budget.approximate(1, "0.1"))
    (tmp_path / "people.csv").write_text("a,b,c,y\n0.5,0.5,0.5,0.5\n")
    pd.DataFrame(FRAME).assign(b=["u", "v"], y=Y).to_parquet(tmp_path / "people.parquet")
    for file, kind, words in (("people.csv", ValueError, "X has 3 columns"), ("people.parquet", TypeError, "numbers")):
        with pytest.raises(kind, match=words):
            kng.release(OF_PAIRS, kng.stream(tmp_path / file, response="y"), ledger=own)
    assert own.verify().num_rows == 1


def test_no_refusal_tells_how_long_a_text_is_nor_what_a_reader_inferred():
    """An array's type says how long its longest text is, and of objects narwhals infers a type from the values."""
    told = set()
    for text in ("u", "a name of nobody's business"):
        for frame in (np.array([["0", text], ["0", "1"]]), pd.DataFrame({"a": [0.5, 0.5], "b": [text, "1"]})):
            with pytest.raises(TypeError) as caught:
                kng.release(OF_PAIRS, frame, Y)
            told.add(str(caught.value))
    assert len(told) == 2
    objects = [pd.DataFrame({"a": 0.5, "b": np.array(cells, dtype=object)}) for cells in (["u", "v"], [0.5, "v"])]
    for frame in (*objects, pd.DataFrame({"a": 0.5, "b": np.array([True, False], dtype=object)})):
        with pytest.raises(TypeError) as caught:
            kng.release(OF_PAIRS, frame, Y)
        told.add(str(caught.value))
    assert len(told) == 2


def test_the_certificate_is_made_before_the_debit_and_the_draw(tmp_path, monkeypatch):
    own, seen = ledger(tmp_path, of(1)), []

    def recorded(draw, facts):
        seen.append(own.read().num_rows)
        return certify(draw, facts)

    certify = Certificate.of
    monkeypatch.setattr(Certificate, "of", recorded)
    released = kng.release(HALF, Watched(lambda: seen.append("touched")), ledger=own)
    assert seen[:2] == [1, "touched"]
    assert released.certificate.guarantee == HALF.guarantee


def test_other_adjacencies_need_a_reservation_of_their_reduction(tmp_path):
    own = ledger(tmp_path, kng.Budget.pure(1))
    mechanism = kng.PrivateQuantile(0.5, NUMBERS, 0.5, "add_remove")
    with pytest.raises(ValueError, match="to_replace"):
        kng.release(mechanism, Watched(never), ledger=own)
    reservation = own.reserve(kng.certify(mechanism, None, values()[:, 0]).cost.to_replace())
    with pytest.raises(ValueError, match="made for another guarantee"):
        kng.release(HALF, Watched(never), ledger=reservation)
    kng.release(mechanism, values()[:, 0], ledger=reservation)
    book = own.verify()
    assert (book.spent.exact_epsilon, list(book.released)) == (1, [2])
    with pytest.raises(kng.ledger.LedgerError, match="drawn from already"):
        kng.release(mechanism, Watched(never), ledger=reservation)


def test_a_reservation_is_not_drawn_from_again_after_a_draw_that_failed(tmp_path):
    own = ledger(tmp_path, of(1))
    reservation = own.reserve(kng.certify(HALF, values(3)).cost)
    with pytest.raises(kng.ReleaseFailed):
        kng.release(HALF, np.full((3, 1), np.nan), ledger=reservation)
    with pytest.raises(kng.ledger.LedgerError, match="drawn from already"):
        kng.release(HALF, Watched(never, shape=(3, 1)), ledger=reservation)
    assert own.verify().unfinished == [2]


class Estimator:
    """Cloned as scikit-learn does it: from a deep copy of its arguments."""

    def __init__(self, ledger):
        self.ledger = ledger

    def clone(self):
        return Estimator(**copy.deepcopy({"ledger": self.ledger}))

    def fit(self, X):
        return kng.release(HALF, X, ledger=self.ledger)


def test_clones_do_not_reset_the_budget(tmp_path):
    estimator = Estimator(ledger(tmp_path, of(1)))
    for _ in range(2):
        estimator = estimator.clone()
        estimator.fit(values())
    with pytest.raises(kng.ledger.BudgetExceeded):
        estimator.clone().fit(values())


def test_a_release_that_costs_more_than_was_reserved_is_not_committed(tmp_path):
    """The last of two guards: whatever becomes of a certificate on the way, the ledger has what is released."""
    own = ledger(tmp_path, kng.Budget.approximate(2, "0.1"))
    twice = OneRelease(kng.KNormMechanism(HALF.bounds, 1.0, "replace")).resolve(Schema(1))
    plan = dataclasses.replace(OneRelease(HALF).resolve(Schema(1)), draw=twice.draw)
    with pytest.raises(kng.ledger.LedgerError, match=r"costs? another guarantee than was reserved"):
        plan.release(lambda: (values(), None), own, "half")
    assert own.read().unfinished == [2]
