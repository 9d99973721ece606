"""Diagnostics of chains are ArviZ's, coefficient by coefficient, and quicker; a warning holds no number."""

import warnings

import numpy as np
import pytest

import kngjax as kng
from kngjax.chains.base import Info
from kngjax.owner.diagnostics import UNMIXED, DrawsSummary
from kngjax.releases import research
from tests.words import words_of

RANDOM = np.random.default_rng(0)


def correlated(chains, draws, share=0.3):
    """Chains of one coefficient whose neighbours in time share a part."""
    found = RANDOM.normal(size=(chains, draws))
    for place in range(1, draws):
        found[:, place] += share * found[:, place - 1]
    return found


CASES = {
    **{f"correlated by {share}": correlated(4, 500, share) for share in (0.0, 0.5, 0.95, 0.999, -0.5, -0.9)},
    **{f"{draws} draws": correlated(3, draws) for draws in (4, 5, 6, 7, 8, 9, 11, 50, 401)},
    "one chain": correlated(1, 100),
    "ties": correlated(3, 100).round(1),
    "two values": RANDOM.integers(0, 2, (4, 50)).astype(float),
    "chains that stand still": np.repeat(RANDOM.normal(size=(4, 50)), 4, axis=1),
    "chains apart": np.arange(4)[:, None] + 0.1 * correlated(4, 200),
    "walks": np.cumsum(RANDOM.normal(size=(4, 301)), axis=1),
}


def by_arviz(chains):
    import arviz

    rhat = arviz.rhat(chains) if len(chains) > 1 else np.nan
    # One line of ArviZ has the tails as its default, the other none.
    tail = arviz.ess(chains, method="tail", prob=(0.05, 0.95))
    return [rhat, arviz.ess(chains, method="bulk"), tail, arviz.mcse(chains)]


@pytest.mark.takes(5, "the first import of ArviZ")
def test_numbers_are_those_of_arviz():
    for name, chains in CASES.items():
        found = DrawsSummary.of(chains[..., None], ("a",))
        ours = [part[0] for part in (found.rhat, found.bulk, found.tail, found.mcse)]
        np.testing.assert_allclose(ours, by_arviz(chains), rtol=1e-12, err_msg=name)
        np.testing.assert_allclose([found.mean[0], found.deviation[0]], [chains.mean(), chains.std(ddof=1)], rtol=1e-12)


def test_of_too_few_draws_of_what_is_no_number_and_of_what_never_moved_nothing_is_said():
    for chains in (correlated(4, 3), np.full((2, 50), np.nan), np.ones((1, 1)), np.full((1, 1000), 0.3)):
        found = DrawsSummary.of(chains[..., None], ("a",))
        assert np.all(np.isnan([found.rhat, found.bulk, found.tail, found.mcse]))
        assert not found.suffices


def test_draws_are_sorted_once_a_coefficient_and_distances_from_the_median_are_merged(monkeypatch):
    """Of ten thousand chains ArviZ takes 14 seconds for R-hat and bulk sizes, and all of this 4."""
    sort, runs = np.argsort, []

    def sorted_of(numbers, **options):
        runs.append((numbers.size, np.count_nonzero(np.diff(numbers.ravel()) < 0.0) + 1))
        return sort(numbers, **options)

    monkeypatch.setattr(np, "argsort", sorted_of)
    assert DrawsSummary.of(RANDOM.normal(size=(100, 20, 3)), tuple("abc")).suffices
    assert [size for size, _ in runs] == [2000] * 6
    assert [number for _, number in runs[1::2]] == [2] * 3


@pytest.mark.parametrize(
    ("part", "number", "suffices"),
    [
        ("rhat", 1.01, True),
        ("rhat", 1.0101, False),
        ("rhat", np.nan, True),
        ("rhat", np.inf, False),
        ("bulk", 400.0, True),
        ("bulk", 399.0, False),
        ("bulk", np.nan, False),
        ("tail", 400.0, True),
        ("tail", 399.0, False),
    ],
)
def test_draws_suffice_by_r_hat_and_both_effective_sizes_of_every_coefficient(part, number, suffices):
    """One chain has no R-hat, and too few draws have no effective size."""
    parts = {"rhat": np.ones(2), "bulk": np.full(2, 500.0), "tail": np.full(2, 500.0)}
    parts[part] = np.array([parts[part][0], number])
    assert DrawsSummary(("a", "b"), *np.ones((3, 2)), **parts).suffices == suffices


def test_what_the_owner_prints_has_names_and_the_rate_over_all_the_time():
    theta = 5.0 + RANDOM.normal(size=(4, 500, 2))
    draws = kng.owner.Draws(theta, "by hand", names=("intercept", "age"), seconds=8.0)
    found = draws.summary()
    text = found.explain()
    lines = text.splitlines()
    assert "OWNER ONLY" in lines[0]
    assert [line.split()[0] for line in lines[4:6]] == ["intercept", "age"]
    for name, place in (("intercept", 4), ("age", 5)):
        numbers = [float(word) for word in lines[place].split()[1:]]
        index = draws.names.index(name)
        parts = (found.mean, found.deviation, found.mcse, found.rhat, found.bulk, found.tail)
        np.testing.assert_allclose(numbers, [part[index] for part in parts], rtol=0.05)
    assert found.rate == found.bulk.min() / 8.0
    assert f"{found.rate:.3g} effective draws a second over 8 s" in words_of(text)
    assert UNMIXED not in words_of(text)
    few = kng.owner.Draws(theta[:, :50], "by hand").summary().explain()
    assert words_of(few).endswith(UNMIXED)
    assert "value[1]" in few
    # A single draw has no deviation, and no figure says that it has.
    single = kng.owner.Draws(theta[:1, :1], "by hand").summary().explain().splitlines()[4]
    assert single.split()[2:] == ["-"] * 5
    # Numbers of columns stay apart, however large they are.
    apart = 1e12 * np.arange(4.0)[:, None, None] + theta
    assert [len(line.split()) for line in kng.owner.Draws(apart, "by hand").summary().explain().splitlines()[4:6]] == [
        7,
        7,
    ]
    np.testing.assert_array_equal(draws.rhat(), found.rhat)
    np.testing.assert_array_equal(draws.ess("tail"), found.tail)


@pytest.mark.parametrize("apart", [0.0, 1.0])
def test_chains_that_do_not_suffice_warn_in_one_fixed_sentence(monkeypatch, apart):
    """Chains that somebody else ran, of which the first thousand are looked at."""
    bounds = kng.Bounds(x={"age": (0.0, 1.0)}, y=(-1.0, 1.0))
    mechanism = kng.KNG(kng.HuberLoss(0.5), bounds, kng.Box(-2.0, 2.0), 1.0, "replace")
    data = mechanism.prepare(RANDOM.uniform(size=(30, 1)), RANDOM.uniform(-1.0, 1.0, 30))
    chains = RANDOM.normal(size=(1003, 20, 2))
    chains[:500, :, 1] += apart
    chains[1000:] += 100.0
    monkeypatch.setattr(research, "run_chains", lambda *_: (chains, Info(*4 * (chains[..., 0],))))
    monkeypatch.setattr(research, "estimate", lambda *_: np.zeros(2))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        draws = kng.sample(mechanism, data, key=kng.research_key(0), num_draws=20, num_chains=1003)
    advice = f"{UNMIXED}; the owner sees which coefficient by draws.summary().explain()"
    assert [str(one.message) for one in told] == [advice] * (apart > 0.0)
    assert (draws.names, draws.theta.shape) == (("intercept", "age"), (1003, 20, 2))
    assert draws.seconds > 0.0


def test_independent_draws_warn_of_nothing_and_have_names_where_numbers_are_one_a_column():
    bounds, key = kng.Bounds(x={"age": (0.0, 1.0)}, intercept=False), kng.research_key(0)
    for mechanism, names in (
        (kng.KNormMechanism(bounds, 1.0, "replace"), ("age",)),
        (kng.KNormMechanism(kng.Bounds(x=(0.0, 1.0), intercept=False), 1.0, "replace"), None),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            draws = kng.sample(mechanism, mechanism.prepare(np.full((5, 1), 0.5)), key=key, num_draws=5)
        assert (draws.names, draws.info, draws.theta.shape) == (names, None, (4, 5, 1))
