"""Under add_remove nothing that a study says or chooses before a debit follows from the number of records."""

import functools

import pytest

import kngjax as kng
from tests.said import noting_counts, said_before_the_debit, sizes_of
from tests.study.methods import METHODS
from tests.study.people import LEVELS, PEOPLE, study

GUESSES = (None, 3_000)
INTERVALS = {
    "mean": (True,),
    "robust": (True,),
    "logistic": (True,),
    "quantile regression": (kng.Sandwich(bandwidth=0.3),),
}


def facts(guess, ledger=None):
    return {"adjacency": "add_remove", "num_records": guess, "ledger": ledger, "levels": LEVELS | {"half": ("a", "b")}}


def ways(method, guess, ledger, **given):
    """Lists what an analysis can be asked of, each a function of the frame."""

    def release(frame, divided=False):
        made = study(frame, **facts(guess, ledger))
        return method.ask(made.by("half") if divided else made, **given)

    return [release, functools.partial(release, divided=True)] if method.groups else [release]


def says_the_same_of_all(name, ledger, guess, sizes, **given):
    people = PEOPLE.assign(half="a")
    for way in ways(METHODS[name], guess, ledger, **given):
        first, *others = (said_before_the_debit(functools.partial(way, people[:count])) for count in sizes)
        assert all(other == first for other in others)


@pytest.fixture
def ledger(tmp_path):
    return kng.Ledger.create(tmp_path / "book", kng.Budget.approximate(1e3, 0.5), adjacency="add_remove", dataset="x")


@pytest.mark.parametrize("name", METHODS)
def test_no_method_says_or_chooses_anything_by_it(name, ledger, monkeypatch):
    seen = noting_counts(monkeypatch)
    says_the_same_of_all(name, ledger, None, sizes_of(400))
    says_the_same_of_all(name, ledger, 3_000, (400, 401))
    assert set(seen) <= {None, 3_000, 1_500}


@pytest.mark.parametrize(("name", "asked"), [(name, one) for name, every in INTERVALS.items() for one in every])
@pytest.mark.parametrize("guess", GUESSES)
def test_no_method_with_intervals_does(name, asked, guess, ledger, monkeypatch):
    seen = noting_counts(monkeypatch)
    says_the_same_of_all(name, ledger, guess, (400, 401), intervals=asked)
    assert set(seen) <= {None, 3_000, 1_500}


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("guess", GUESSES)
def test_no_method_does_whatever_its_previews_say(name, guess, ledger):
    for given in ({}, *({"intervals": one} for one in INTERVALS.get(name, ()))):
        says_the_same_of_all(name, ledger, guess, sizes_of(400), **given)
