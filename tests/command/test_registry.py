"""What a file can name is what there is: every mechanism, loss and sampler with the keys of its constructor."""

import pathlib
import re

import equinox as eqx
import pytest

import kngjax as kng
from kngjax.command import registry
from kngjax.core.registry import classes, names
from kngjax.geometry.domains import AbstractDomain
from kngjax.geometry.norms import AbstractNorm
from kngjax.losses.base import AbstractLoss
from kngjax.mechanisms.base import AbstractMechanism
from kngjax.samplers.base import AbstractSampler
from tests.offenders import every_case


def public(kind):
    return {
        name
        for name in kng.__all__
        if isinstance(one := getattr(kng, name), type) and issubclass(one, kind) and one is not kind
    }


KINDS = {
    "losses": AbstractLoss,
    "norms": AbstractNorm,
    "domains": AbstractDomain,
    "mechanisms": AbstractMechanism,
    "samplers": AbstractSampler | kng.Lattice,
}


def test_the_registry_has_every_public_class_of_its_kind():
    with every_case() as case:
        for kind, base in KINDS.items():
            with case(kind):
                assert set(names(kind).values()) == public(base)
                assert all(issubclass(one, base) for one in classes(kind).values())


def test_files_name_what_a_job_can_have():
    assert set(registry.LOSSES.values()) == {one.__name__ for one in classes("losses").values() if one.has_response}
    assert set(registry.DOMAINS) == set(names("domains")) - {"base_measure"}
    without_loss = {kind for kind in registry.MECHANISMS if not registry.takes(kind, "loss")}
    assert without_loss == {
        "posterior_sample",
        "ada_ops",
        "ada_ssp",
        "private_irls",
        "private_quantile",
        "quantile_interval",
        "k_norm",
        "geometric",
    }
    without_terms = {kind for kind in registry.MECHANISMS if not registry.takes_terms(kind)}
    assert without_terms == {"private_quantile", "quantile_interval", "k_norm", "geometric"}
    assert {kind for kind in registry.MECHANISMS if registry.needs_domain(kind)} == {"kng", "exponential"}
    assert {kind for kind in registry.MECHANISMS if not registry.takes(kind, "epsilon")} == {"posterior_sample"}
    assert {"quantile", "smoothed_quantile", "squared", "huber", "pseudo_huber", "logistic", "poisson"} <= set(
        registry.LOSSES
    )
    assert list(registry.NORMS) == ["l1", "l2", "ellipsoid", "l_inf", "weighted_l_inf", "polytope"]


def test_norms_are_made_of_what_they_take():
    named = {name: getattr(kng, name) for name in kng.__all__}
    with every_case() as case:
        for written, shown in (
            ("l_inf", "LInf()"),
            ({"weighted_l_inf": [1, 2]}, "WeightedLInf([1.0, 2.0])"),
            ({"ellipsoid": [[2, 0], [0, 1]]}, "Ellipsoid([[2.0, 0.0], [0.0, 1.0]])"),
            ({"polytope": [[1, 0], [0, 1]]}, "Polytope([[1.0, 0.0], [0.0, 1.0]])"),
        ):
            with case(written):
                assert eqx.tree_equal(registry.part(written, registry.NORMS), eval(shown, named))


def test_what_names_no_norm_and_no_domain_is_refused():
    with every_case() as case:
        for wrong in ("l3", "ellipsoid", {"l1": 1}, {"box": [1]}, {"box": 1}, 3, {}, {"l1_ball": "x"}):
            for known in (registry.NORMS, registry.DOMAINS):
                with case(wrong), pytest.raises(ValueError, match="must be"):
                    registry.part(wrong, known)


TOLD = {
    "ask for sampler=kngjax.LineGibbs()": 'ask for [sampler] type = "LineGibbs"',
    "Exact(most_coefficients=5) tries": '[sampler] type = "Exact" (most_coefficients = 5) tries',
    "PrivateQuantile(0.5, ...) is proved": '[mechanism] type = "private_quantile" is proved',
    "ObjectivePerturbation(HuberLoss(k), ...) is": (
        '[mechanism] type = "objective_perturbation" and [loss] type = "huber" (k = ...) is'
    ),
    "Take SmoothedQuantileLoss(tau, bandwidth) with a public bandwidth, or KNG": (
        'Take [loss] type = "smoothed_quantile" (tau = ..., bandwidth = ...) with a public bandwidth, or '
        '[mechanism] type = "kng"'
    ),
    "is no response of LogisticLoss": 'is no response of [loss] type = "logistic"',
    "if so, say allow_large_epsilon=True": "if so, say allow_large_epsilon = true in [mechanism]",
    "give sampler=kngjax.Lattice(): the ledger needs Budget.approximate, or Budget.converted for many": (
        'give [sampler] type = "Lattice": the ledger needs kngjax ledger create --epsilon E '
        "--delta D, or kngjax ledger create --epsilon E --delta D --by-zcdp for many"
    ),
    "missing=..., or missing='drop' under": 'missing = ..., or missing = "drop" under',
    "nothing of it: [0, 1]": "nothing of it: [0, 1]",
}


def test_messages_are_translated():
    with every_case() as case:
        for told, meant in TOLD.items():
            with case(told):
                assert registry.in_toml(told) == meant


def test_keys_and_types_follow_constructors():
    lattice = registry.settings(kng.Lattice, {"theta_digits": 6, "expected_proposals": 8})
    assert (lattice["theta_digits"], lattice["expected_proposals"]) == (6, 8.0)
    assert registry.settings(kng.PrivateIRLS, {"iterations": 2})["iterations"] == 2
    assert "expansion" not in registry.keys(kng.GradientSpace)
    with pytest.raises(ValueError, match="directions: must be one of limit_law, ensemble"):
        registry.settings(kng.LineGibbs, {"directions": "up"})
    with pytest.raises(ValueError, match=r"num_sweeps: must be a whole number, not 2\.5"):
        registry.settings(kng.LineGibbs, {"num_sweeps": 2.5})


def test_the_documentation_lists_every_mechanism_and_setting():
    docs = pathlib.Path(__file__).parents[2] / "docs"
    text = (docs / "jobs.md").read_text(encoding="utf-8")
    table = text.split("| `type` | its settings |")[1].split("\n\n")[0]
    rows = [[re.findall(r"`(.*?)`", cell) for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    assert sorted(kind for (kind,), *_ in rows) == sorted(registry.MECHANISMS)
    for (kind,), given, tables in rows:
        keys = registry.keys(registry.public(registry.MECHANISMS[kind]))
        assert given == [name for name in keys if name != "allow_large_epsilon"]
        assert ("[loss]" in tables, "[[terms]]" in tables) == (
            registry.takes(kind, "loss"),
            registry.takes_terms(kind),
        )
    for name in (*registry.LOSSES, *registry.DOMAINS, *registry.NORMS):
        assert name in text
    samplers = (docs / "how-to-choose.md").read_text(encoding="utf-8").split("| sampler | serves |")[1].split("\n\n")[0]
    assert all(f"`{name}`" in samplers for name in registry.SAMPLERS)
