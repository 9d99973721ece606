"""`which` says what `release` and `sample` then do: it asks what they ask."""

import numpy as np
import pytest

import kngjax as kng
from kngjax.releases import default_sampler
from tests.losses.test_row_losses import TooNarrow
from tests.made_once import MadeOnce

BOX = kng.Box(-2.0, 2.0)
ONE, FOUR = (kng.Bounds(x=(0.0, 1.0), y=(-1.0, 1.0), columns=number) for number in (1, 4))
# By name: the mechanism, how many records, and what is proved of a release; None where it is refused.
CASES = MadeOnce(
    {
        "squared": lambda: (kng.KNG(kng.SquaredLoss(), FOUR, BOX, 1.0, "replace"), 100, "proved"),
        "squared in another norm": lambda: (
            kng.KNG(kng.SquaredLoss(), ONE, BOX, 1.0, "replace", kng.Ellipsoid(np.eye(2))),
            100,
            "in_reals",
        ),
        "quantile": lambda: (kng.KNG(kng.QuantileLoss(0.5), ONE, BOX, 1.0, "replace"), 100, "proved"),
        "quantile of five": lambda: (kng.KNG(kng.QuantileLoss(0.5), FOUR, BOX, 1.0, "replace"), 100, None),
        "robust of two": lambda: (kng.KNG(kng.PseudoHuberLoss(0.5), ONE, BOX, 1.0, "add_remove"), 100, "proved"),
        "robust of five": lambda: (kng.KNG(kng.PseudoHuberLoss(0.5), FOUR, BOX, 1.0, "replace"), 37_500, "proved"),
        "robust of few": lambda: (kng.KNG(kng.PseudoHuberLoss(0.5), FOUR, BOX, 1.0, "replace"), 37_499, None),
        "exponential": lambda: (kng.ExponentialMechanism(kng.HuberLoss(1.0), ONE, BOX, 1.0, "replace"), 100, None),
        "perturbed": lambda: (
            kng.ObjectivePerturbation(kng.PseudoHuberLoss(0.5), FOUR, BOX, 1.0, "replace"),
            100,
            "proved",
        ),
        "quantiles": lambda: (
            kng.PrivateQuantile([0.25, 0.5], kng.Bounds(y=(0.0, 1.0)), 1.0, "replace"),
            100,
            "in_reals",
        ),
        "mean": lambda: (
            kng.KNormMechanism(kng.Bounds(x={"age": (0.0, 9.0)}, intercept=False), 1.0, "replace"),
            100,
            "proved",
        ),
    }
)


class Stop(Exception):
    """Raised where a sampler is known and nothing has been drawn."""


def arrays(mechanism, num_records):
    columns = mechanism.bounds.columns
    x = np.zeros((num_records, columns)) if columns else None
    return x, np.zeros(num_records) if mechanism.loss.has_response else None


@pytest.mark.parametrize("name", CASES)
def test_it_is_what_a_release_takes_or_refuses_with(name):
    mechanism, num_records, assurance = CASES[name]
    found = kng.which(mechanism, num_records)
    x, y = arrays(mechanism, num_records)
    shown = " ".join(repr(found).split())
    if assurance is None:
        with pytest.raises(ValueError, match="is sure to serve") as refused:
            kng.certify(mechanism, x, y)
        assert (found.refusal, found.certificate, found.duration) == (str(refused.value), None, None)
        assert f"release: refused, and nothing is spent: {refused.value}" in shown
        return
    certificate = kng.certify(mechanism, x, y)
    assert found.certificate == certificate
    assert (certificate.assurance, found.refusal) == (assurance, None)
    assert all(one in certificate.explain() for one in found.failures)
    for word in (certificate.summary(), certificate.reason, assurance, found.duration, *found.failures):
        assert " ".join(word.split()) in shown


@pytest.mark.parametrize("name", CASES)
def test_it_is_what_a_sample_takes(name, monkeypatch):
    mechanism, num_records, _ = CASES[name]
    taken = []

    def stop(_, sampler):
        taken.append(sampler)
        raise Stop

    monkeypatch.setattr(default_sampler, "require_sampler", stop)
    found, data = kng.which(mechanism, num_records), mechanism.prepare(*arrays(mechanism, num_records))
    with pytest.raises(Stop):
        kng.sample(mechanism, data, key=kng.research_key(0))
    assert repr(taken) == repr([found.sampler])
    said = "independent draws" if found.sampler is None else repr(found.sampler)
    assert f"sample: {said}. {found.reason[:30]}" in repr(found)


def test_a_private_number_of_records_decides_nothing_of_a_release():
    mechanism = kng.KNG(kng.PseudoHuberLoss(0.5), FOUR, BOX, 1.0, "add_remove")
    told = {kng.which(mechanism, count).refusal for count in (None, 10, 10**6)}
    assert len(told) == 1
    assert "not public here" in told.pop()
    # A sample is for who holds the records.
    samplers = [type(kng.which(mechanism, count).sampler) for count in (None, 1000, 10**6)]
    assert samplers == [kng.chains.EnsembleWalk, kng.chains.EnsembleWalk, kng.chains.Exact]


@pytest.mark.takes(4, "a grid is compiled twice, for a release and for a sample")
def test_of_a_loss_that_is_not_what_it_declares_a_sample_is_refused_too():
    mechanism = kng.KNG(TooNarrow(), kng.Bounds(x=(-1.0, 1.0), columns=1), BOX, 1.0, "replace")
    found = kng.which(mechanism, 5)
    with pytest.raises(ValueError, match="score_interval does not hold"):
        kng.sample(mechanism, mechanism.prepare(*arrays(mechanism, 5)), key=kng.research_key(0))
    assert "score_interval does not hold" in found.refusal
    assert (found.sampler, found.reason) == (None, None)
    assert repr(found).endswith("\nsample: refused")


def test_of_an_unknown_number_of_records_it_says_so():
    found = kng.which(CASES["squared"][0])
    assert "number is not known" in repr(found)
    assert found.certificate.num_records is None


def test_what_is_no_question_is_refused():
    with pytest.raises(TypeError, match="mechanism"):
        kng.which(kng.PseudoHuberLoss(0.5), 100)
    mechanism = CASES["squared"][0]
    for number in (0, -1, 1.5):
        with pytest.raises((ValueError, TypeError), match="num_records"):
            kng.which(mechanism, number)
    with pytest.raises(ValueError, match="columns=5"):
        kng.which(kng.KNG(kng.PseudoHuberLoss(0.5), kng.Bounds(x=(-1.0, 1.0)), BOX, 1.0, "replace"), 100)
