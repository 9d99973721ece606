"""A release is one value and its certificate: what it holds, what it hides, and what it refuses to do."""

import dataclasses
import json
import random

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pandas as pd
import pytest

import kngjax as kng
from kngjax.core import randomness
from kngjax.data.schema import Schema
from kngjax.releases import chains
from kngjax.releases.certificate import Certificate
from kngjax.releases.draw_choice import draw_for
from tests.made_once import MadeOnce

BOUNDS = kng.Bounds(x=(0.0, 1.0), y=(-1.0, 1.0), columns=1)
PARTS = (BOUNDS, kng.Box(-2.0, 2.0), 1.0, "replace")
MECHANISMS = MadeOnce(
    {
        "exact": lambda: kng.KNG(kng.SquaredLoss(), *PARTS),
        # In a norm for which there are no exact draws.
        "line draws": lambda: kng.KNG(kng.QuantileLoss(0.5), *PARTS, kng.Ellipsoid(np.eye(2))),
        "boxes": lambda: kng.KNG(kng.QuantileLoss(0.5), *PARTS),
        "walk": lambda: kng.KNG(kng.HuberLoss(0.5), *PARTS, kng.Ellipsoid(np.eye(2))),
        "exact exponential": lambda: kng.ExponentialMechanism(kng.SquaredLoss(), *PARTS),
    }
)
# What is not proved is asked for by name.
CHAINS = {"line draws": kng.chains.LineGibbs(num_sweeps=3), "walk": kng.chains.EnsembleWalk(num_sweeps=3)}

every_mechanism = pytest.mark.parametrize("name", MECHANISMS)


def records(seed=0, n=40):
    random = np.random.default_rng(seed)
    return random.uniform(size=(n, 1)), random.uniform(-1.0, 1.0, n)


def released(name):
    return kng.release(MECHANISMS[name], *records(), sampler=CHAINS.get(name))


def certified(name):
    return kng.certify(MECHANISMS[name], *records(), sampler=CHAINS.get(name))


class Releases(dict):
    """One of each mechanism, made when it is first asked for."""

    def __missing__(self, name):
        # What is proved of a chain's draw does not depend on it: compiling the chain takes seconds.
        self[name] = kng.Release._of(np.array([0.125, -0.3]), certified(name)) if name in CHAINS else released(name)
        return self[name]


@pytest.fixture(scope="module")
def releases():
    return Releases()


@pytest.mark.default_cases(1)
@every_mechanism
def test_the_value_is_a_read_only_vector_in_the_domain(releases, name):
    value = releases[name].value
    assert (type(value), value.dtype, value.shape) == (np.ndarray, np.float64, (2,))
    assert np.all(np.abs(value) <= 2.0)
    with pytest.raises(ValueError, match="read-only"):
        value[0] = 0.0
    with pytest.raises(AttributeError):
        releases[name].value = np.zeros(2)


@pytest.mark.default_cases("boxes", "walk", "line draws")
@every_mechanism
def test_json_round_trip_is_exact(releases, name):
    text = releases[name].to_json()
    again = kng.Release.from_json(text)
    np.testing.assert_array_equal(again.value, releases[name].value)
    assert not again.value.flags.writeable
    assert again == releases[name]
    assert hash(again) == hash(releases[name])
    assert again.certificate.explain() == releases[name].certificate.explain()
    assert text == json.dumps(json.loads(text), sort_keys=True)
    assert set(json.loads(text)) == {"value", "certificate"}


@pytest.mark.default_cases("exact", "boxes")
@every_mechanism
def test_two_releases_of_the_same_data_differ(releases, name):
    again, before = released(name), released(name) if name in CHAINS else releases[name]
    assert MECHANISMS[name].domain.contains(jnp.asarray(again.value))
    assert np.all(again.value != before.value)
    assert again != before
    assert again.certificate == before.certificate == certified(name)


@pytest.mark.default_cases("exact")
@pytest.mark.parametrize("name", ["exact", "walk"])
def test_a_release_takes_all_its_randomness_from_the_operating_system_and_the_key_once(releases, monkeypatch, name):
    asked = []

    def known(size):
        asked.append(size)
        return bytes(range(size))

    monkeypatch.setattr(randomness.os, "urandom", known)
    # What `secrets` takes it from.
    monkeypatch.setattr(random, "_urandom", known)
    sampler = CHAINS.get(name, kng.chains.Exact())

    def in_floats():
        return kng.release(MECHANISMS[name], *records(), sampler=sampler)

    first, second = (in_floats() for _ in range(2))
    # A key, and an offset of the rounding for each coefficient.
    assert asked == [32, 8, 8, 32, 8, 8]
    # The bytes are all the randomness there is: equal ones give equal releases, and fresh ones others.
    assert np.array_equal(first.value, second.value)
    assert not np.array_equal(first.value, releases[name].value)
    monkeypatch.undo()
    assert not np.array_equal(first.value, in_floats().value)


@pytest.mark.parametrize("name", ["exact", "boxes", "exact exponential"])
def test_exact_draws_are_certified_as_proved(name):
    certificate = certified(name)
    assert (certificate.exact, certificate.epsilon, certificate.delta) == (True, 1.0, 0.0)
    assert certificate.cost == certificate.guarantee
    assert certificate.unproved == ()
    assert "Proved: this value is one draw from the mechanism's law on a public grid" in certificate.explain()
    assert "Not proved" not in certificate.explain()
    assert certificate.to_dict()["proved_of_this_release"] == {"delta": 0, "epsilon": 1}


def test_a_guarantee_without_an_epsilon_is_certified_by_its_rho():
    exact = Certificate.of(draw_for(MECHANISMS["exact"], kng.chains.Exact(), Schema(2)), Schema(2))
    certificate = dataclasses.replace(exact, guarantee=kng.Guarantee.zcdp("0.1", "replace"))
    assert certificate.epsilon == np.inf
    fields = json.loads(json.dumps(certificate.to_dict(), allow_nan=False))
    distance = fields["proved_of_this_release"].pop("distance")
    assert fields["proved_of_this_release"] == {"epsilon": None, "delta": None, "rho": 0.1}
    assert 0.0 < distance == pytest.approx(float(certificate.rounding.distance), rel=1e-12)
    assert kng.releases.Certificate.from_dict(fields) == certificate
    assert "0.1-zCDP, hence (" in certificate.explain()


def test_releases_carry_names_and_publish_declared_ones_alone():
    x, y = np.linspace(0.0, 1.0, 40), np.zeros(40)
    frame = pd.DataFrame({"of no use": x, "age": x})
    bounds = kng.Bounds(x={"age": (0.0, 1.0)}, y=(-1.0, 1.0))
    declared = kng.KNG(kng.SquaredLoss(), bounds, kng.Box(-2.0, 2.0), 1.0, "replace")
    named = kng.release(declared, frame, y)
    assert named.names == named.certificate.names == ("intercept", "age")
    assert kng.Release.from_json(named.to_json()).names == ("intercept", "age")
    assert repr(named).startswith(f"<Release intercept = {named.value[0]:.6g}, age = ")
    assert "Coefficients: intercept, age." in named.certificate.explain()
    assert "age" in named._repr_html_()
    # A file without a header line has a record for names: those of a frame go nowhere.
    found = kng.release(MECHANISMS["exact"], pd.DataFrame({"0.98765": x}), y)
    assert found.names == ("intercept", "0.98765")
    for text in (found.to_json(), repr(found), found._repr_html_(), found.certificate.explain()):
        assert "98765" not in text
    assert kng.Release.from_json(found.to_json()) == found
    assert kng.Release.from_json(found.to_json()).names is None
    assert kng.release(MECHANISMS["exact"], x[:, None], y).names is None


def test_certificates_state_what_becomes_of_missing_values_and_what_makes_a_release_fail():
    text = Certificate.of(draw_for(MECHANISMS["exact"], kng.chains.Exact(), Schema(2)), Schema(2)).explain()
    assert "in X they make a release fail, in the response they make a release fail" in text
    for cause in ("missing values in X without a policy", "a search that reaches its public limit of proposals"):
        assert cause in text
    bounds = kng.Bounds(x={"age": (0.0, 1.0)}, y=(-1.0, 1.0), missing=0.5, missing_y=0)
    mechanism = kng.AdaSSP(bounds, 1.0, 1e-6, "replace")
    text = Certificate.of(draw_for(mechanism, None, Schema(2)), Schema(2)).explain()
    assert "in X they count as 0.5, in the response they count as 0.0" in text
    assert "this release did not fail is an output that the guarantee does not cover" in text
    assert "without a policy" not in text


@pytest.mark.parametrize("name", CHAINS)
def test_chains_are_certified_in_other_words_and_their_delta_is_unknown(name):
    certificate = certified(name)
    assert not certificate.exact
    assert certificate.epsilon is None
    assert np.isnan(certificate.delta)
    assert "Not proved: that this value" in certificate.explain()
    assert "one draw from exactly" not in certificate.explain()
    assert "proved pure" not in certificate.summary()
    assert any("delta of this release is unknown" in statement for statement in certificate.unproved)
    fields = certificate.to_dict()
    assert fields["proved_of_this_release"] == {"delta": None, "epsilon": None}
    if name == "line draws":
        assert certificate.sampler["directions"] == "ensemble"
    assert certificate.guarantee.epsilon == 1.0


@every_mechanism
def test_the_certificate_states_what_a_reader_needs(name):
    certificate, mechanism = certified(name), MECHANISMS[name]
    assert certificate.guarantee == mechanism.guarantee
    assert certificate.sensitivity == mechanism.sensitivity_for(2)
    fields = certificate.mechanism
    assert (fields["type"], fields["epsilon"], fields["adjacency"]) == (type(mechanism).__name__, 1.0, "replace")
    assert fields["bounds"]["x_upper"] == [1.0]
    assert fields["domain"] == {"type": "Box", "lower": -2.0, "upper": 2.0}
    assert set(certificate.versions) == {"kngjax", "jax", "numpyro", "numpy", "python-flint"}
    text = certificate.explain()
    for needed in ("the bounds, the domain, epsilon", certificate.sensitivity.derivation, certificate.sampler["type"]):
        assert needed in text


@pytest.mark.parametrize(
    ("name", "adjacency"),
    [
        ("exact", "replace"),
        ("exact", "add_remove"),
        pytest.param("boxes", "add_remove", marks=pytest.mark.slow),
    ],
)
def test_nothing_in_a_certificate_depends_on_the_data(name, adjacency):
    mechanism = MECHANISMS[name]
    mechanism = type(mechanism)(mechanism.loss, BOUNDS, mechanism.domain, 1.0, adjacency)
    spread = records(1)
    degenerate = np.full((40, 1), 7.0), np.full(40, -55.0)  # clipped to a single repeated record
    certificates = [kng.release(mechanism, *data).certificate for data in (spread, degenerate)]
    if adjacency == "add_remove":
        # The number of records is private too.
        certificates.append(kng.release(mechanism, *records(2, 43)).certificate)
    for certificate in certificates[1:]:
        assert certificate == certificates[0]
        assert certificate.explain() == certificates[0].explain()


@pytest.mark.parametrize("name", list(CHAINS))
def test_a_chain_is_never_taken_unasked(name):
    """Before the data are touched: these must not be."""
    mechanism = MECHANISMS[name]

    class Untouched:
        dtype = np.dtype(float)

        def __init__(self, *shape):
            self.shape = shape

        def __array__(self, dtype=None, copy=None):
            raise AssertionError("the data were touched")

    with pytest.raises(ValueError, match=r"not proved to be private: .*ask for sampler=kngjax\.chains\.\w+\(\)"):
        kng.release(mechanism, Untouched(40, 1), Untouched(40))


@pytest.mark.parametrize(
    ("name", "sampler", "assurance"),
    [
        ("boxes", None, "proved"),
        ("exact exponential", None, "proved"),
        ("exact", kng.chains.Exact(), "in_reals"),
        ("walk", kng.chains.EnsembleWalk(num_sweeps=3), "none"),
    ],
)
def test_certificates_name_their_assurance(name, sampler, assurance):
    certificate = kng.certify(MECHANISMS[name], *records(), sampler=sampler)
    assert certificate.assurance == assurance
    assert f"Assurance: {assurance}, " in certificate.explain()
    if assurance == "proved":
        assert (certificate.rounding, certificate.rounding_delta) == (None, 0.0)
        return
    # Θ is 4 wide: cells of 2^-20 of its half, of which errors of 2^-44 of that part two values in a share of 2^-23.
    assert certificate.rounding.exponents == (-19, -19)
    assert certificate.rounding_delta == pytest.approx((1 + np.e) * 2 * 2.0**-23, rel=1e-9)


@pytest.mark.parametrize("argument", ["key", "seed", "rng_key"])
def test_seeds_are_refused(argument):
    with pytest.raises(TypeError, match=f"takes no {argument}: its randomness comes from the operating system"):
        kng.release(MECHANISMS["exact"], *records(), **{argument: kng.research_key(0)})


@pytest.mark.parametrize("count", ["num_draws", "num_chains"])
def test_a_release_is_one_draw(count):
    with pytest.raises(TypeError, match=f"takes no {count}"):
        kng.release(MECHANISMS["exact"], *records(), **{count: 2})


@pytest.mark.parametrize(
    ("name", "sampler", "message"),
    [
        ("line draws", kng.chains.NUTS(step_size=0.1), r"gradients.*zero almost everywhere.*LineGibbs"),
        ("line draws", kng.chains.HMC(step_size=0.1), r"gradients.*zero almost everywhere.*LineGibbs"),
        ("line draws", kng.chains.Exact(), r"SmoothedQuantileLoss.*sampler=kngjax\.chains\.LineGibbs\(\)"),
        ("walk", kng.chains.NUTS(), r"adapt its step size to the private data.*NUTS\(step_size=...\)"),
        ("walk", kng.chains.HMC(), "adapt its step size to the private data"),
        ("walk", kng.chains.LineGibbs(), r"needs the quantile loss.*ObjectivePerturbation\(.*sampler=kngjax\."),
        ("exact", kng.chains.LineGibbs(), "needs the quantile loss"),
    ],
    ids=repr,
)
def test_samplers_that_cannot_serve_are_refused_and_one_that_can_is_named(name, sampler, message):
    with pytest.raises(ValueError, match=message):
        kng.release(MECHANISMS[name], *records(), sampler=sampler)


def test_exact_says_what_it_serves():
    mechanism = kng.KNG(kng.HuberLoss(0.5), *PARTS)
    with pytest.raises(ValueError, match=r"Exact serves the squared loss.*KNG with smooth losses.*sampler=kngjax\."):
        kng.release(mechanism, *records(), sampler=kng.chains.Exact())


@pytest.mark.parametrize(
    ("sampler", "settings"),
    [
        (kng.chains.EnsembleWalk(num_sweeps=3), {"type": "EnsembleWalk", "num_sweeps": 3}),
        (kng.chains.NUTS(step_size=0.05, num_sweeps=3), {"type": "NUTS", "step_size": 0.05}),
    ],
    ids=["EnsembleWalk", "NUTS"],
)
def test_a_sampler_asked_for_is_taken_and_named(sampler, settings):
    certificate = kng.certify(MECHANISMS["walk"], *records(), sampler=sampler)
    assert settings.items() <= certificate.sampler.items()
    assert (certificate.exact, certificate.reason) == (False, "Asked for by the caller.")
    assert kng.chains.CoordinateWalk(tuning="limit_law").for_release().tuning == "public"


def test_a_search_that_is_given_up_releases_nothing_and_its_owner_is_told_why(monkeypatch):
    monkeypatch.setattr(chains, "compiled_independent_draws", lambda *_: (jnp.zeros((1, 2)), jnp.asarray(False)))
    with pytest.raises(kng.ReleaseFailed) as failed:
        kng.release(MECHANISMS["exact"], *records(), sampler=kng.chains.Exact())
    assert failed.value.__cause__ is None
    settings = {"key": kng.research_key(0), "sampler": kng.chains.Exact(), "num_draws": 1, "num_chains": 1}
    with pytest.raises(RuntimeError, match=r"public limit of proposals.*Enlarge the domain"):
        kng.sample(MECHANISMS["exact"], MECHANISMS["exact"].prepare(*records()), **settings)


@pytest.mark.slow
def test_an_exact_search_that_is_given_up_releases_nothing():
    # θ̂ = 1 is far outside Θ, and n and ε are so large that neither envelope is ever accepted.
    mechanism = kng.KNG(kng.SquaredLoss(), kng.Bounds(y=(-1.0, 1.0)), kng.Box(-1.0, -0.5), 10.0, "replace")
    data, sampler = (None, np.ones(20_000)), kng.chains.Exact(max_proposals=20)
    with pytest.raises(kng.ReleaseFailed):
        kng.release(mechanism, *data, sampler=sampler)


@pytest.mark.slow
def test_the_owner_of_data_is_told_why_an_exact_search_was_given_up():
    mechanism = kng.KNG(kng.SquaredLoss(), kng.Bounds(y=(-1.0, 1.0)), kng.Box(-1.0, -0.5), 10.0, "replace")
    data, sampler = (None, np.ones(20_000)), kng.chains.Exact(max_proposals=20)
    with pytest.raises(RuntimeError, match=r"public limit of proposals.*Enlarge the domain"):
        kng.sample(mechanism, mechanism.prepare(*data), key=kng.research_key(0), sampler=sampler, num_draws=1)


SETTINGS = MadeOnce(
    {
        "epsilon": lambda: {"epsilon": 2.0},
        "adjacency": lambda: {"adjacency": "add_remove"},
        "bounds of x": lambda: {"bounds": kng.Bounds(x=(0.0, 2.0), y=(-1.0, 1.0), columns=1)},
        "bounds of y": lambda: {"bounds": kng.Bounds(x=(0.0, 1.0), y=(-1.0, 3.0), columns=1)},
        "intercept": lambda: {"bounds": kng.Bounds(x=(0.0, 1.0), y=(-1.0, 1.0), intercept=False)},
        "tau": lambda: {"loss": kng.QuantileLoss(0.25)},
        "domain": lambda: {"domain": kng.Box(-2.0, 2.5)},
        "norm": lambda: {"norm": kng.LInf()},
        "base measure": lambda: {"domain": kng.BaseMeasure(dist.Normal(0.0, 1.0))},
        "its scale": lambda: {"domain": kng.BaseMeasure(dist.Normal(0.0, 2.0))},
        "written as a vector": lambda: {"domain": kng.BaseMeasure(dist.Normal(0.0, 3.0).expand((2,)).to_event(1))},
        "and its scale": lambda: {"domain": kng.BaseMeasure(dist.Normal(0.0, 4.0).expand((2,)).to_event(1))},
        "truncated": lambda: {"domain": kng.BaseMeasure(dist.TruncatedNormal(0.0, 1.0, low=-1.0, high=1.0))},
        "truncated and its scale": lambda: {
            "domain": kng.BaseMeasure(dist.TruncatedNormal(0.0, 2.0, low=-1.0, high=1.0))
        },
    }
)


@pytest.mark.slow
def test_two_mechanisms_that_differ_in_a_public_setting_have_different_certificates():
    plain = {"loss": kng.QuantileLoss(0.5), "bounds": BOUNDS, "domain": kng.Box(-2.0, 2.0), "epsilon": 1.0}
    plain["adjacency"] = "replace"
    described = {"plain": plain} | {name: plain | change for name, change in SETTINGS.items()}
    texts = {}
    for name, parts in described.items():
        certificate = Certificate.of(draw_for(kng.KNG(**parts), kng.chains.EnsembleWalk(), Schema(2)), Schema(2))
        text = json.dumps(certificate.to_dict(), sort_keys=True, allow_nan=False)
        assert text not in texts, f"{name!r} reads as {texts[text]!r}"
        texts[text] = name
