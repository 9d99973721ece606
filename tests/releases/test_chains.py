"""Mechanism and data are arguments: one compiled program a shape, and mapping over replicates is a loop."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kngjax as kng
from kngjax.releases import chains

BOUNDS = kng.Bounds(x=(0.0, 1.0), y=(-1.0, 1.0), columns=1)
LOSSES = {"squared": kng.SquaredLoss(), "quantile": kng.QuantileLoss(0.5), "pseudo-Huber": kng.PseudoHuberLoss(0.5)}


def build(name, epsilon=1.0):
    return kng.KNG(LOSSES[name], BOUNDS, kng.Box(-2.0, 2.0), epsilon, "replace")


def records(seed, n=24):
    random = np.random.default_rng(seed)
    return random.uniform(size=(n, 1)), random.uniform(-1.0, 1.0, n)


def programs():
    """How many compiled programs each jitted function holds."""
    return [
        function._cache_size()
        for function in (chains.compiled_independent_draws.plain, chains.start_chains.plain, chains.advance.plain)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["squared", "pseudo-Huber"])
def test_one_program_serves_five_data_sets_and_five_epsilons(name):
    before, after_first = programs(), None
    for seed in range(5):
        for epsilon in (0.1, 0.5, 1.0, 2.0, 8.0):
            mechanism = build(name, epsilon)
            data = mechanism.prepare(*records(seed))
            sampler = kng.chains.Exact() if name == "squared" else kng.chains.EnsembleWalk()
            key = kng.research_key(seed)
            kng.sample(mechanism, data, key=key, sampler=sampler, num_draws=5, num_chains=2, num_warmup=5)
            after_first = after_first or programs()
    assert programs() == after_first
    grown = np.subtract(after_first, before)
    assert np.array_equal(grown > 0, [name == "squared", name != "squared", name != "squared"])
    assert grown.max() <= 2  # the warm-up and the kept draws


@pytest.mark.slow
def test_releases_share_their_program_too():
    kng.release(build("squared"), *records(0), sampler=kng.chains.Exact())
    after_first = programs()
    for epsilon in (0.3, 3.0):
        kng.release(build("squared", epsilon), *records(1), sampler=kng.chains.Exact())
    assert programs() == after_first


def stacked(trees):
    return jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *trees)


def replicate_inputs(name, number=5):
    mechanism = build(name)
    data = [mechanism.prepare(*records(seed)) for seed in range(number)]
    centres = np.random.default_rng(1).uniform(-1.0, 1.0, (number, 2))
    return mechanism, data, jax.random.split(jax.random.key(2), number), centres


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "sampler"),
    [
        ("squared", kng.chains.Exact()),
        ("pseudo-Huber", kng.chains.EnsembleWalk(num_sweeps=7)),
        ("pseudo-Huber", kng.chains.GradientSpace(num_sweeps=7)),
        ("quantile", kng.chains.LineGibbs(7)),
    ],
    ids=["Exact", "EnsembleWalk", "GradientSpace", "LineGibbs"],
)
@pytest.mark.usefixtures("in_float64")
def test_mapping_a_draw_over_replicates_is_a_loop(name, sampler):
    mechanism, data, keys, centres = replicate_inputs(name)

    @jax.jit
    def one(data, key, centre):
        return kng.draw(mechanism, data, key, sampler, centre)

    loop = [one(*arguments) for arguments in zip(data, keys, centres, strict=True)]
    thetas, succeeded = jax.vmap(one)(stacked(data), keys, jnp.asarray(centres))
    assert thetas.shape == (5, 2)
    assert succeeded.all()
    np.testing.assert_allclose(thetas, [theta for theta, _ in loop], rtol=1e-9, atol=1e-12)
    assert len(np.unique(np.asarray(thetas)[:, 0])) == 5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "sampler"),
    [("quantile", kng.chains.LineGibbs(7)), ("squared", kng.chains.Exact())],
    ids=["LineGibbs", "Exact"],
)
@pytest.mark.usefixtures("in_float64")
def test_mapping_a_draw_over_epsilon_is_a_loop(name, sampler):
    _, data, keys, _ = replicate_inputs(name, 1)
    epsilons = np.array([0.2, 1.0, 5.0])

    @jax.jit
    def one(epsilon):
        return kng.draw(build(name, epsilon), data[0], keys[0], sampler)[0]

    loop = [one(epsilon) for epsilon in epsilons]
    assert len(np.unique(np.asarray(loop)[:, 0])) > 1
    np.testing.assert_allclose(jax.vmap(one)(jnp.asarray(epsilons)), loop, rtol=1e-9)


@pytest.mark.slow
def test_a_draw_that_was_given_up_is_nan_and_says_so():
    mechanism = kng.KNG(kng.SquaredLoss(), kng.Bounds(y=(-1.0, 1.0)), kng.Box(-1.0, -0.5), 50.0, "replace")
    data = mechanism.prepare(None, np.ones(4000))
    theta, succeeded = jax.jit(kng.draw)(mechanism, data, jax.random.key(3), kng.chains.Exact(max_proposals=2000))
    assert np.isnan(theta).all()
    assert not succeeded


def test_a_draw_refuses_what_a_release_refuses():
    mechanism, data, keys, _ = replicate_inputs("quantile", 1)
    with pytest.raises(ValueError, match="LineGibbs"):
        kng.draw(mechanism, data[0], keys[0], kng.chains.NUTS(step_size=0.1))
    smooth = build("pseudo-Huber")
    with pytest.raises(ValueError, match="adapt its step size to the private data"):
        kng.draw(smooth, smooth.prepare(*records(0)), keys[0], kng.chains.NUTS())


def test_blocks_cover_the_promised_number_of_sweeps():
    for sampler in (
        kng.chains.LineGibbs(),
        kng.chains.EnsembleWalk(),
        kng.chains.GradientSpace(),
        kng.chains.CoordinateWalk(num_sweeps=1234),
        kng.chains.LineGibbs(3),
    ):
        for dimension in (1, 2, 7):
            number, block = chains.blocks(sampler, dimension)
            assert number * block >= sampler.release_sweeps(dimension) > (number - 1) * block


@pytest.mark.takes(4, "a chain is compiled")
def test_a_release_of_few_sweeps_makes_no_others(monkeypatch):
    made, advance = [], chains.advance
    monkeypatch.setattr(chains, "advance", lambda *given: made.append(given[-2] * given[-1]) or advance(*given))
    kng.release(build("pseudo-Huber"), *records(0), sampler=kng.chains.CoordinateWalk(num_sweeps=10))
    assert made == [10]


FAILURES = {
    "an error": lambda *_: 1 / 0,
    "no number": lambda *_: np.full(2, np.nan),
    "infinity": lambda *_: np.full(2, np.inf),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_what_gives_a_start_alone_never_makes_a_draw_fail(failure, monkeypatch):
    """Exact draws in real numbers, and chains, begin at the interior point then."""
    monkeypatch.setattr(chains.nonprivate, "minimiser", FAILURES[failure])
    monkeypatch.setattr(chains, "_descent", FAILURES[failure])
    for one in (build("quantile"), build("pseudo-Huber")):
        np.testing.assert_array_equal(chains.estimate(one, one.prepare(*records(0))), np.zeros(2))


# Limits of the library that finds a start, in x: an entry that it refuses, and as many as it would take for 0.
LIMITS = {
    "1e15": (1e15, lambda x: np.where(np.arange(x.size) == 0, 1e15, x)),
    "9e-10": (9e-10, lambda x: np.where(np.arange(x.size) < 223, 9e-10, x)),
}


@pytest.mark.parametrize("limit", LIMITS)
def test_no_limit_of_what_finds_a_start_tells_neighbours_apart(limit):
    """At 222 records and below 1e15 a release was made, and at 223 and at 1e15 none."""
    size, change = LIMITS[limit]
    x = change(0.9 * size * np.random.default_rng(0).uniform(size=1000))[:, None]
    bounds = kng.Bounds(x=([0.0], [size]), y=(0.0, 1.0))
    mechanism = kng.KNG(LOSSES["quantile"], bounds, kng.Box(-2.0, 2.0), 1.0, "replace")
    data, reach = mechanism.prepare(x, np.linspace(0, 1, len(x))), (-1e20, 1e20)
    # The library itself finds one, so that none has to stand for it.
    found = chains.nonprivate.minimiser(mechanism.loss, chains.nonprivate.clipped(data, reach))
    np.testing.assert_array_equal(found, chains.estimate(mechanism, data))
    assert np.all(np.isfinite(found))


@pytest.mark.parametrize(
    ("discarded", "kept", "thinning", "num_chains", "longest", "sweeps"),
    [
        (100, 1000, 1, 100, 500, 1100),
        (20, 100, 1, 100, 100, 125),
        (150, 150, 1, 20, 100, 300),
        (500, 1000, 1, 4, 500, 1500),
        (0, 1, 1, 1, 500, 1),
        (10, 100, 1, 10_000, 500, 110),
        (500, 1, 1, 1, 500, 576),
        (100, 20, 50, 4, 100, 1100),
        (100, 20, 700, 4, 500, 14_700),
    ],
)
def test_blocks_do_few_more_sweeps_than_are_asked_for(discarded, kept, thinning, num_chains, longest, sweeps):
    """One program runs every block, so that the last of the warm-up, and of what is kept, may do more."""
    kept_a_block = chains._kept_a_block(discarded, kept, thinning, num_chains, longest)
    block = kept_a_block * thinning
    assert block <= max(longest, thinning)
    assert (-(-discarded // block) - (-kept // kept_a_block)) * block == sweeps


@pytest.mark.takes(4, "the programs of a chain are compiled")
def test_the_sweeps_of_the_warm_up_are_not_kept(monkeypatch):
    """Of two calls of one block the first is."""
    mechanism, made, advance = build("squared"), [], chains.advance

    def noted(*arguments):
        made.append(advance(*arguments))
        return made[-1]

    monkeypatch.setattr(chains, "advance", noted)
    settings = {"sampler": kng.chains.CoordinateWalk(), "num_warmup": 20, "num_draws": 20, "num_chains": 2}
    data = mechanism.prepare(*records(0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        draws = kng.sample(mechanism, data, key=kng.research_key(0), progress=False, **settings)
    blocks = [np.asarray(positions) for _, positions, _ in made]
    assert [len(block) for block in blocks] == [20] * 2
    np.testing.assert_array_equal(np.swapaxes(draws.theta, 0, 1), blocks[1])
