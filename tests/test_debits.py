"""A release with a ledger: debited before the data are touched and before anything is drawn, whatever happens then."""

import copy
import hashlib
from fractions import Fraction

import numpy as np
import pytest

import kngjax as kng
from kngjax import debits, releases
from kngjax.certificate import Certificate
from kngjax.ledger.book import canonical, guarantee_of

BOUNDS = kng.Bounds(x=([-1.0], [1.0]), y=(-1.0, 1.0))
BOX = kng.Box(-2.0, 2.0)
NUMBERS = kng.Bounds(y=(0.0, 1.0))
HALF = kng.KNormMechanism(kng.Bounds(x=([0.0], [1.0]), intercept=False), 0.5, "replace")
MECHANISMS = {
    "KNG": kng.KNG(kng.SquaredLoss(), BOUNDS, BOX, 0.3, "replace"),
    "open dimension": kng.KNG(kng.SquaredLoss(), kng.Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0)), BOX, 0.3, "replace"),
    "exponential": kng.ExponentialMechanism(kng.SquaredLoss(), BOUNDS, BOX, 0.3, "add_remove"),
    "means": HALF,
    "quantile": kng.PrivateQuantile(0.5, NUMBERS, 0.7, "replace"),
    "quantiles": kng.PrivateQuantile([0.25, 0.5], NUMBERS, 0.7, "replace"),
    "objective": kng.ObjectivePerturbation(kng.PseudoHuberLoss(0.5), BOUNDS, BOX, 0.1, "replace"),
    "output": kng.OutputPerturbation(kng.SquaredLoss(), BOUNDS, 1000.0, 1.0, 1e-6, "replace", max_records=10**4),
    "reweighted": kng.PrivateIRLS(BOUNDS, 0.9, 1e-6, "replace"),
    "posterior": kng.PosteriorSample.calibrated(BOUNDS, 1000.0, 1.0, 1e-6, "add_remove", max_records=10**4),
    "AdaOPS": kng.AdaOPS(BOUNDS, 1.0, 1e-6, "replace"),
    "AdaSSP": kng.AdaSSP(BOUNDS, 1.0, 1e-6, "add_remove"),
}


def ledger(folder, budget, adjacency="replace"):
    return kng.Ledger.create(folder / "budget.ledger", budget, adjacency=adjacency, dataset="invented")


def values(n=40):
    return np.random.default_rng(0).uniform(size=(n, 1))


class Watched:
    """Private values that say when somebody touches them."""

    def __init__(self, touched):
        self.touched = touched

    def __array__(self, dtype=None, copy=None):
        self.touched()
        return values()


def never():
    raise AssertionError("the data were touched")


@pytest.mark.parametrize("name", MECHANISMS)
def test_what_is_reserved_is_what_is_certified(tmp_path, name):
    mechanism = MECHANISMS[name]
    cost = debits.cost(mechanism)
    certificate = Certificate.of(mechanism, None, "", mechanism.dimension or 2) if name not in SAMPLED else None
    certified = mechanism.guarantee_for(mechanism.dimension or 2) if certificate is None else certificate.guarantee
    assert cost == certified
    own = ledger(tmp_path, kng.Budget.approximate(100, "0.1"), cost.adjacency)
    reserved = debits.reserve(own, mechanism, None)
    assert reserved.covers(certified)
    kept = own.read()
    assert kept.what[2]["what"]["type"] == type(mechanism).__name__
    assert kept.parts == ((guarantee_of(canonical(certified.to_dict())), 1),)


SAMPLED = ("KNG", "open dimension", "exponential")


def test_a_release_is_debited_and_committed(tmp_path):
    own = ledger(tmp_path, kng.Budget.pure(1))
    released = kng.release(HALF, values(), ledger=own)
    book = own.verify()
    assert book.spent.exact_epsilon == Fraction(1, 2)
    digest = hashlib.sha256(released.to_json().encode()).hexdigest()
    assert book.released == {2: {"certificate": digest, "exact": True}}
    # How long it took depends on the data.
    assert "time" not in book.released[2]
    kng.release(HALF, values(), ledger=own)
    with pytest.raises(kng.BudgetExceeded, match="0 of epsilon = 1 is left"):
        kng.release(HALF, values(), ledger=own)


@pytest.mark.slow
def test_samplers_are_debited_and_chains_are_marked(tmp_path):
    own = ledger(tmp_path, kng.Budget.pure("0.5"))
    kng.release(MECHANISMS["KNG"], values(), values()[:, 0], ledger=own)
    walk = kng.KNG(kng.PseudoHuberLoss(0.5), BOUNDS, BOX, 0.2, "replace")
    kng.release(walk, values(), values()[:, 0], sampler=kng.EnsembleWalk(num_sweeps=4), ledger=own, progress=False)
    book = own.verify()
    assert book.spent.exact_epsilon == Fraction(1, 2)
    assert [one["exact"] for one in book.released.values()] == [True, False]


def test_a_spent_budget_refuses_before_the_data_are_touched(tmp_path, monkeypatch):
    own = ledger(tmp_path, kng.Budget.pure("0.4"))
    monkeypatch.setattr(releases, "secure_key", never)
    with pytest.raises(kng.BudgetExceeded, match=r"0\.4 of epsilon = 0\.4 is left, and epsilon = 0\.5 was asked"):
        kng.release(HALF, Watched(never), ledger=own)
    # The check itself can fail.
    touched = []
    with pytest.raises(kng.ReleaseFailed):
        kng.release(HALF, Watched(lambda: touched.append(True) or never()))
    assert touched
    assert own.verify().num_rows == 1


def test_the_debit_is_on_the_disk_before_the_data_are_touched_and_anything_is_drawn(tmp_path, monkeypatch):
    own, seen = ledger(tmp_path, kng.Budget.pure(1)), []

    def look():
        seen.append(kng.Ledger(own.path).read().unfinished)

    secure = releases.secure_key
    monkeypatch.setattr(releases, "secure_key", lambda: (look(), secure())[1])
    kng.release(HALF, Watched(look), ledger=own)
    assert len(seen) >= 2
    assert all(unfinished == [2] for unfinished in seen)
    assert own.read().unfinished == []


def test_what_fails_after_the_data_were_touched_stays_spent(tmp_path, monkeypatch):
    own = ledger(tmp_path, kng.Budget.pure("1.2"))
    with pytest.raises(kng.ReleaseFailed):
        kng.release(HALF, np.full((3, 1), np.nan), ledger=own)
    monkeypatch.setattr(debits, "commit", lambda *_: (_ for _ in ()).throw(kng.LedgerError("the disk is full")))
    # A release that could not be committed is not returned.
    with pytest.raises(kng.LedgerError, match="the disk is full"):
        kng.release(HALF, values(), ledger=own)
    monkeypatch.undo()
    with pytest.raises(kng.BudgetExceeded):
        kng.release(HALF, values(), ledger=own)
    assert own.verify().unfinished == [2, 3]


def test_what_is_refused_for_its_settings_spends_nothing(tmp_path):
    own = ledger(tmp_path, kng.Budget.pure(1))
    with pytest.raises(TypeError, match="release takes no seed"):
        kng.release(HALF, values(), ledger=own, seed=1)
    with pytest.raises((TypeError, ValueError), match="sampler"):
        kng.release(HALF, values(), sampler=kng.Exact(), ledger=own)
    open_cost = kng.PosteriorSample(kng.Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0)), 1000.0, 1.0, "replace", 10**4, 1e-6)
    with pytest.raises(ValueError, match="depends on the number of columns"):
        kng.release(open_cost, values(), values()[:, 0], ledger=own)
    with pytest.raises(TypeError):
        kng.release(HALF, values(), ledger=str(own.path))
    assert own.verify().num_rows == 1


def test_other_adjacencies_need_a_reservation_of_their_reduction(tmp_path):
    own = ledger(tmp_path, kng.Budget.pure(1))
    mechanism = kng.PrivateQuantile(0.5, NUMBERS, 0.5, "add_remove")
    with pytest.raises(ValueError, match="to_replace"):
        kng.release(mechanism, Watched(never), ledger=own)
    reservation = own.reserve(mechanism.guarantee.to_replace())
    with pytest.raises(ValueError, match="made for another guarantee"):
        kng.release(HALF, Watched(never), ledger=reservation)
    kng.release(mechanism, values()[:, 0], ledger=reservation)
    book = own.verify()
    assert (book.spent.exact_epsilon, list(book.released)) == (1, [2])
    with pytest.raises(kng.LedgerError, match="led to a release already"):
        kng.release(mechanism, Watched(never), ledger=reservation)


class Estimator:
    """Cloned as scikit-learn does it: from a deep copy of its arguments."""

    def __init__(self, ledger):
        self.ledger = ledger

    def clone(self):
        return Estimator(**copy.deepcopy({"ledger": self.ledger}))

    def fit(self, X):
        return kng.release(HALF, X, ledger=self.ledger)


def test_clones_do_not_reset_the_budget(tmp_path):
    estimator = Estimator(ledger(tmp_path, kng.Budget.pure(1)))
    for _ in range(2):
        estimator = estimator.clone()
        estimator.fit(values())
    with pytest.raises(kng.BudgetExceeded):
        estimator.clone().fit(values())
