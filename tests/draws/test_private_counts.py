"""Under add_remove nothing that is said, chosen or certified before a debit follows from the number of records."""

import dataclasses
import functools

import numpy as np
import pytest

import kngjax as kng
from tests.draws.cases import ROWS, ledger_of
from tests.said import noting_counts, said_before_the_debit, sizes_of

BOUNDS = kng.Bounds(x=(np.array([-0.5, 0.0]), np.array([1.0, 2.0])), y=(-3.0, 4.0))
COVARIANCES = {
    "the default": lambda: None,
    "sandwich": kng.Sandwich,
    "a share": lambda: kng.Sandwich(share=0.3),
    "slopes": lambda: kng.Sandwich(slopes=((1, 2),)),
}
LOSSES = {
    "pseudo-Huber": (kng.KNG, kng.PseudoHuberLoss(0.7)),
    "perturbed": (kng.ObjectivePerturbation, kng.PseudoHuberLoss(0.7)),
    "squared": (kng.KNG, kng.SquaredLoss()),
    "quantile": (kng.KNG, kng.QuantileLoss(0.5)),
}


def table(count):
    generator = np.random.default_rng(3)
    x = generator.uniform([-0.5, 0.0], [1.0, 2.0], (count, 2))
    return x, np.clip(0.5 + x @ [0.8, -0.4] + 0.5 * generator.standard_normal(count), -3.0, 4.0)


def is_the_same_of_all(ask, sizes):
    """Compares what is said of n, n + 1 and 10n records, and returns it."""
    first, *others = (said_before_the_debit(functools.partial(ask, count)) for count in sizes)
    for other in others:
        assert other == first
    return first


# Making one of these compiles for longer than all others together.
COMPILE_FOR_LONG = ("output, squared, hessian", "posterior sample", "private IRLS, Laplace")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name in COMPILE_FOR_LONG))
        for name, row in ROWS.items()
        if "add_remove" in row.adjacencies
    ],
)
def test_no_mechanism_says_or_chooses_anything_by_it(name, tmp_path):
    ledger, row = ledger_of(tmp_path, "add_remove", kng.Budget.approximate(1e6, 0.5)), ROWS[name]
    many = row.records(10 * row.count)

    def of_first(count):
        return many.changed(lambda part: part[:count])

    def certify(count):
        return row.certify("add_remove", of_first(count)).to_dict()

    def release(count):
        return row.release_of(row.made("add_remove"), of_first(count), ledger=ledger)

    certificate, *_ = is_the_same_of_all(certify, sizes_of(row.count))
    assert "num_records" not in certificate
    said, asked, *_ = is_the_same_of_all(release, sizes_of(row.count))
    assert (said[0], len(asked)) == ("AtDebit", 1)


def is_the_same_of_a_plan(plan, ledger, *each):
    """Compares all that a plan says of tables of these sizes."""
    x, y = table(2000)

    def certify(count):
        return [one.to_dict() for one in plan.certify(x[:count], y[:count])]

    def release(count):
        return kng.release(plan, x[:count], y[:count], ledger=ledger)

    for sizes in each:
        is_the_same_of_all(certify, sizes[:2])
        is_the_same_of_all(release, sizes)
    [(kind, words), *_] = is_the_same_of_all(plan.making, sizes_of(199))
    assert (kind, "under add_remove the number of records is private" in words) == ("ValueError", True)


def plan_of(loss, covariance, guess):
    kind, given = LOSSES[loss]
    return kng.WithIntervals(kind(given, BOUNDS, kng.Box(-6.0, 6.0), 2.0, "add_remove"), covariance, guess)


def covariance_of(loss, name):
    """Gives the covariance of this name, of a quantile loss with a bandwidth."""
    covariance = COVARIANCES[name]()
    is_given = loss == "quantile" and covariance is not None
    return dataclasses.replace(covariance, bandwidth=0.3) if is_given else covariance


def of_each_plan(test):
    """Runs a test for each loss with each covariance that serves it without a guess of n."""
    pairs = [(loss, name) for loss in LOSSES for name in COVARIANCES]
    return pytest.mark.parametrize(("loss", "name"), [pair for pair in pairs if pair != ("quantile", "the default")])(
        test
    )


@pytest.mark.parametrize("guess", [None, 20_000])
@pytest.mark.default_cases(17)
@of_each_plan
def test_no_plan_with_intervals_does(loss, name, guess, tmp_path, monkeypatch):
    ledger, seen = ledger_of(tmp_path, "add_remove", kng.Budget.approximate(1e6, 0.5)), noting_counts(monkeypatch)
    is_the_same_of_a_plan(plan_of(loss, covariance_of(loss, name), guess), ledger, (199, 1990))
    assert set(seen) <= {guess}


# Without stubs in the place of previews.
@pytest.mark.slow
@pytest.mark.parametrize("guess", [None, 700, 20_000])
@of_each_plan
def test_no_plan_does_whatever_its_previews_say(loss, name, guess, tmp_path):
    ledger = ledger_of(tmp_path, "add_remove", kng.Budget.approximate(1e6, 0.5))
    is_the_same_of_a_plan(plan_of(loss, covariance_of(loss, name), guess), ledger, sizes_of(199), (1, 2, 3))
