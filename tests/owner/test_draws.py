"""Draws are the owner's: they say so, are not pickled, and go to ArviZ in the form of its version."""

import copy
import pickle

import jax
import matplotlib
import numpy as np
import pytest

import kngjax as kng

# Log-densities of draws are compared in the last digits of float64.
pytestmark = pytest.mark.float64

matplotlib.use("Agg")


def mechanism(loss):
    return kng.KNG(loss, kng.Bounds(x={"age": (0.0, 1.0)}, y=(-1.0, 1.0)), kng.Box(-2.0, 2.0), 1.0, "replace")


def records(n=30):
    random = np.random.default_rng(1)
    return random.uniform(size=(n, 1)), random.uniform(-1.0, 1.0, n)


def research(loss, key=None, **options):
    built = mechanism(loss)
    options = {"num_draws": 60, "num_chains": 3, "num_warmup": 20} | options
    return kng.sample(built, built.prepare(*records()), key=kng.research_key(2) if key is None else key, **options)


@pytest.fixture(scope="module")
def chains():
    return research(kng.HuberLoss(0.5))


@pytest.fixture(scope="module")
def independent():
    """Numbers in the place of draws of an exact sampler: compiling one takes longer than all tests of this file."""
    return kng.owner.Draws(np.random.default_rng(0).normal(size=(3, 400, 2)), "Exact")


@pytest.mark.slow
def test_exact_draws_have_no_chain_behind_them():
    found = research(kng.SquaredLoss(), num_draws=400)
    assert (found.theta.shape, found.info, found.sampler) == ((3, 400, 2), None, "Exact")
    assert np.all(found.rhat() < 1.02)


@pytest.fixture(params=["chains", "independent"])
def draws(request):
    return request.getfixturevalue(request.param)


def test_shapes(chains, independent):
    assert chains.theta.shape == (3, 60, 2)
    assert (chains.theta.dtype, type(chains.theta)) == (np.float64, np.ndarray)
    assert [np.shape(part) for part in chains.info if part is not None] == [(3, 60)] * 2
    assert independent.info is None
    assert (chains.sampler, independent.sampler) == ("EnsembleWalk", "Exact")


def test_draws_say_whose_they_are(draws):
    assert "OWNER ONLY" in repr(draws)
    assert not any(f"{value:.3f}" in repr(draws) for value in draws.theta[0, :5].ravel())
    assert "OWNER ONLY" in (kng.owner.Draws.__doc__ or "")


@pytest.mark.parametrize("write", [pickle.dumps, copy.copy, copy.deepcopy], ids=lambda write: write.__name__)
def test_draws_are_not_pickled(draws, write):
    with pytest.raises(TypeError, match=r"not pickled.*save_for_owner"):
        write(draws)


def test_the_owner_can_keep_them(draws, tmp_path):
    draws.save_for_owner(tmp_path / "draws.npz")
    with np.load(tmp_path / "draws.npz") as kept:
        np.testing.assert_array_equal(kept["theta"], draws.theta)


def test_equal_keys_give_equal_draws_and_others_do_not(chains):
    np.testing.assert_array_equal(research(kng.HuberLoss(0.5)).theta, chains.theta)
    other = research(kng.HuberLoss(0.5), key=kng.research_key(3)).theta
    assert not np.any(other == chains.theta)
    assert not np.any(chains.theta[0] == chains.theta[1])


@pytest.mark.slow
def test_thinning_keeps_every_second_sweep():
    settings = {"num_warmup": 8, "num_chains": 1, "sampler": kng.chains.LineGibbs()}
    every = research(kng.QuantileLoss(0.5), num_draws=8, **settings)
    thinned = research(kng.QuantileLoss(0.5), num_draws=4, thinning=2, **settings)
    np.testing.assert_allclose(thinned.theta, every.theta[:, 1::2], rtol=1e-12)


def test_only_typed_keys_are_taken():
    built = mechanism(kng.SquaredLoss())
    data = built.prepare(*records())
    with pytest.raises(TypeError, match=r"old-style key.*use kngjax\.research_key\(seed\)"):
        kng.sample(built, data, key=jax.random.PRNGKey(0))
    # A run-time type checker, where one is on, may be the first to speak.
    for key in (0, None, np.zeros(2, np.uint32)):
        with pytest.raises(TypeError, match="key"):
            kng.sample(built, data, key=key)


@pytest.mark.parametrize("count", ["num_draws", "num_chains", "thinning"])
def test_counts_must_be_positive(count):
    with pytest.raises(ValueError, match=f"{count} must be at least 1, got 0"):
        research(kng.SquaredLoss(), **{count: 0})


@pytest.mark.parametrize(
    ("loss", "sampler", "message"),
    [
        (kng.QuantileLoss(0.5), kng.chains.NUTS(), "LineGibbs"),
        (kng.HuberLoss(0.5), kng.chains.LineGibbs(), "quantile loss"),
        (kng.HuberLoss(0.5), kng.chains.Exact(), "squared loss"),
    ],
)
def test_samplers_that_cannot_serve_are_refused_in_research_too(loss, sampler, message):
    with pytest.raises(ValueError, match=message):
        research(loss, sampler=sampler)


@pytest.mark.parametrize("version", [None, "1.3.0"])
def test_arviz_gets_its_groups_with_names_as_coordinates(chains, independent, monkeypatch, version):
    """The installed line, and the other one, whose objects are xarray's own."""
    import arviz

    if version is not None:
        monkeypatch.setattr(arviz, "__version__", version)
    converted = chains.to_arviz()
    theta = converted["posterior"]["theta"]
    np.testing.assert_array_equal(theta, chains.theta)
    assert theta.dims == ("chain", "draw", "coefficient")
    assert list(theta.coords["coefficient"].values) == ["intercept", "age"]
    np.testing.assert_array_equal(theta.sel(coefficient="age"), chains.theta[..., 1])
    assert set(converted["sample_stats"].data_vars) == {"lp", "acceptance_rate"}
    np.testing.assert_array_equal(converted["sample_stats"]["lp"], chains.info.log_density)
    other = independent.to_arviz()
    assert list(other["posterior"]["theta"].coords["coefficient"].values) == [0, 1]
    assert "sample_stats" not in (other.children if hasattr(other, "children") else other.groups())
    kind = "DataTree" if int(arviz.__version__.split(".")[0]) >= 1 else "InferenceData"
    assert type(converted).__name__ == kind


def test_tables_of_arviz_have_the_names(chains):
    import arviz

    assert list(arviz.summary(chains.to_arviz()).index) == ["theta[intercept]", "theta[age]"]


def test_the_recorded_log_density_is_that_of_the_draws(chains):
    built = mechanism(kng.HuberLoss(0.5))
    data = built.prepare(*records())
    for chain, place in ((0, 0), (1, 30), (2, 59)):
        recomputed = built.log_density(chains.theta[chain, place], data)
        np.testing.assert_allclose(chains.info.log_density[chain, place], recomputed, rtol=1e-12)


def test_diagnostics_of_independent_draws_are_good(independent):
    assert independent.rhat().shape == (2,)
    assert np.all(independent.rhat() < 1.02)
    for method in ("bulk", "tail"):
        effective = independent.ess(method)
        assert effective.shape == (2,)
        assert np.all((effective > 600) & (effective < 2400))


def test_diagnostics_see_chains_that_disagree(independent):
    shifted = independent.theta + np.array([0.0, 3.0, 6.0])[:, None, None]
    assert np.all(kng.owner.Draws(shifted, "by hand").rhat() > 1.5)


def test_plots(draws):
    for plot in (draws.plot_trace, draws.plot_rank):
        assert plot() is not None
    matplotlib.pyplot.close("all")
