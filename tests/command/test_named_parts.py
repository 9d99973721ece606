"""What a file can name is what there is, by the keys of its constructor; and errors in the words of a file."""

import equinox as eqx
import pytest

import kngjax as kng
from kngjax.chains.base import AbstractSampler
from kngjax.command import error_words, named_parts
from kngjax.core.errors import about
from kngjax.core.registry import classes, names
from kngjax.geometry.domains import AbstractDomain
from kngjax.geometry.norms import AbstractNorm
from kngjax.losses.base import AbstractLoss
from kngjax.mechanisms.base import AbstractMechanism
from tests.offenders import every_case


def public(kind):
    return {
        name
        for module in (kng, kng.chains, kng.draws)
        for name in module.__all__
        if isinstance(one := getattr(module, name), type) and issubclass(one, kind) and one is not kind
    }


KINDS = {
    "losses": AbstractLoss,
    "norms": AbstractNorm,
    "domains": AbstractDomain,
    "mechanisms": AbstractMechanism,
    "samplers": AbstractSampler | kng.draws.Lattice | kng.draws.Shells,
}


def test_the_registry_has_every_public_class_of_its_kind():
    with every_case() as case:
        for kind, base in KINDS.items():
            with case(kind):
                assert set(names(kind).values()) == public(base)
                assert all(issubclass(one, base) for one in classes(kind).values())


def test_domains_are_made_of_what_they_take():
    named = {name: getattr(kng, name) for name in kng.__all__}
    with every_case() as case:
        for written, shown in (
            ({"box": [-9, 9]}, "Box(-9.0, 9.0)"),
            ({"box": [[-9, -1], [9.0, 1]]}, "Box([-9.0, -1.0], [9.0, 1.0])"),
            ({"l1_ball": 3}, "L1Ball(3.0)"),
            ({"l2_ball": 3}, "L2Ball(3.0)"),
        ):
            with case(written):
                assert eqx.tree_equal(named_parts.domain(written), eval(shown, named))
    assert set(named_parts.DOMAINS) == set(names("domains")) - {"base_measure"}
    for wrong in ("l1_ball", {"box": [1]}, {"box": 1}, 3, {}, {"l1_ball": "x"}, {"l1_ball": 1, "l2_ball": 1}):
        with pytest.raises(ValueError, match="must be"):
            named_parts.domain(wrong)


def test_samplers_are_made_of_the_keys_of_their_constructors():
    lattice = named_parts.sampler({"type": "Lattice", "theta_digits": 6, "expected_proposals": 8})
    assert (lattice.theta_digits, lattice.expected_proposals) == (6, 8.0)
    for wrong, words in (
        ("LineGibbs", r'must be { type = "..." } with one of .*LineGibbs'),
        ({"type": "Gibbs"}, "not 'Gibbs'"),
        ({"type": "LineGibbs", "directions": "up"}, "directions: must be one of limit_law, ensemble"),
        ({"type": "LineGibbs", "num_sweeps": 2.5}, r"num_sweeps: must be a whole number, not 2\.5"),
    ):
        with pytest.raises(ValueError, match=words):
            named_parts.sampler(wrong)


def test_errors_name_the_key_of_the_study_that_they_are_about():
    bounds = error_words.in_words(about(ValueError("no bounds"), "bounds", "wage"))
    assert bounds == "[study.bounds] wage: no bounds"
    assert (
        error_words.in_words(about(ValueError("force=True does"), "num_records"))
        == "[study] num_records: force = true does"
    )
    assert error_words.in_words(about(ValueError("of another function"), "columns")) == "of another function"
    assert error_words.in_words(ValueError("intervals=False releases")) == "intervals = false releases"
