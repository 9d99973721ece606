"""What a file can name is what there is: every mechanism, loss and sampler with the keys of its constructor."""

import pathlib
import re

import equinox as eqx
import numpy as np
import polars as pl
import pytest

import kngjax as kng
from kngjax.command import config as configuration
from kngjax.command import job, planning, registry
from kngjax.core.registry import classes, names
from kngjax.geometry.domains import AbstractDomain
from kngjax.geometry.norms import AbstractNorm
from kngjax.losses.base import AbstractLoss
from kngjax.mechanisms.base import AbstractMechanism
from kngjax.samplers.base import AbstractSampler
from tests.command.small_jobs import JOB, workers, write_job

LOSS = '[loss]\ntype = "quantile"\ntau = [0.25, 0.5]\n'
MECHANISM = 'type = "kng"\ndomain = { box = [-20.0, 20.0] }'
SAMPLER = '[sampler]\ntype = "LineGibbs"\nnum_sweeps = 2\n'
FIGURE = '[figure]\nx = "experience"\nat = { education = 12 }\n'
TERMS = JOB[JOB.index("[[terms]]") : JOB.index("[loss]")]
EPSILON = "epsilon = 0.3"
WITH_DELTA = (EPSILON, "epsilon = 0.3\ndelta = 2e-6")


def make(folder, *changes):
    return configuration.read(write_job(folder, *changes))


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


@pytest.mark.parametrize("kind", KINDS)
def test_the_registry_has_every_public_class_of_its_kind(kind):
    assert set(names(kind).values()) == public(KINDS[kind])
    assert all(issubclass(one, KINDS[kind]) for one in classes(kind).values())


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


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("l_inf", "LInf()"),
        ({"weighted_l_inf": [1, 2]}, "WeightedLInf([1.0, 2.0])"),
        ({"ellipsoid": [[2, 0], [0, 1]]}, "Ellipsoid([[2.0, 0.0], [0.0, 1.0]])"),
        ({"polytope": [[1, 0], [0, 1]]}, "Polytope([[1.0, 0.0], [0.0, 1.0]])"),
    ],
)
def test_norms_are_made_of_what_they_take(written, shown):
    made = registry.part(written, registry.NORMS)
    assert eqx.tree_equal(made, eval(shown, vars(kng) | {name: getattr(kng, name) for name in kng.__all__}))


@pytest.mark.parametrize("wrong", ["l3", "ellipsoid", {"l1": 1}, {"box": [1]}, {"box": 1}, 3, {}, {"l1_ball": "x"}])
def test_what_names_no_norm_and_no_domain_is_refused(wrong):
    for known in (registry.NORMS, registry.DOMAINS):
        with pytest.raises(ValueError, match="must be"):
            registry.part(wrong, known)


# What replaces [mechanism], with other changes; the class, its delta, its epsilon.
NAMED = {
    "objective_perturbation": (
        'type = "objective_perturbation"\nnorm = "l2"\nnoise_share = 0.4\ncentre = [6.5, 0, 0, 0]',
        (
            (
                LOSS,
                '[loss]\ntype = "smoothed_quantile"\ntau = [0.25, 0.5]\nbandwidth = 0.1\nkernel = "gaussian"\n',
            ),
        ),
        kng.ObjectivePerturbation,
    ),
    "output_perturbation": (
        'type = "output_perturbation"\nregularization = 20.0\nmax_records = 1000',
        (
            (
                'column = "wage"\nunits = "dollars a week"\ntransform = "log"\nbounds = [20, 20000]',
                'column = "region"\nlevels = ["north", "south"]',
            ),
            (LOSS, '[loss]\ntype = "logistic"\n'),
            WITH_DELTA,
        ),
        kng.OutputPerturbation,
    ),
    "ada_ssp": ('type = "ada_ssp"\nshares = [0.5, 0.25, 0.25]', ((LOSS, ""), WITH_DELTA), kng.AdaSSP),
    "ada_ops": ('type = "ada_ops"', ((LOSS, ""), WITH_DELTA), kng.AdaOPS),
    "private_irls": (
        'type = "private_irls"\niterations = 2\nmoment_noise = "laplace"\naccounting = "basic"',
        ((LOSS, ""), WITH_DELTA),
        kng.PrivateIRLS,
    ),
    "posterior_sample": (
        'type = "posterior_sample"\nregularization = 500.0\ngamma = 1e-4\nmax_records = 1000',
        ((LOSS, ""), (EPSILON + "\n", "")),
        kng.PosteriorSample,
    ),
    "private_quantile": (
        'type = "private_quantile"\ntau = [0.25, 0.5]',
        ((LOSS, ""), (TERMS, "")),
        kng.PrivateQuantile,
    ),
    "quantile_interval": (
        'type = "quantile_interval"\ntau = 0.5\nlevel = 0.9\nspread = 0.5',
        ((LOSS, ""), (TERMS, "")),
        kng.QuantileInterval,
    ),
    "k_norm": ('type = "k_norm"\nstatistic = "sum"', ((LOSS, ""), (TERMS, "")), kng.KNormMechanism),
    "geometric": (
        'type = "geometric"\ncounted = [1, 2]',
        (
            (LOSS, ""),
            (TERMS, ""),
            (
                'column = "wage"\nunits = "dollars a week"\ntransform = "log"\nbounds = [20, 20000]',
                'column = "visits"\nbounds = [0, 3]',
            ),
        ),
        kng.GeometricMechanism,
    ),
}


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    def made(name):
        words, others, _ = NAMED[name]
        return make(tmp_path_factory.mktemp(name), (MECHANISM, words), (SAMPLER, ""), (FIGURE, ""), *others)

    return made


@pytest.mark.parametrize("name", NAMED)
def test_every_mechanism_is_made_with_its_own_settings(jobs, name):
    config = jobs(name)
    planned = planning.regressions(config)
    assert all(type(one.mechanism) is NAMED[name][2] for one in planned)
    total = planning.together(planned)
    if config.privacy.epsilon is not None:
        assert total.epsilon <= 0.3 * (1 + 1e-12)
        assert total.delta <= 2e-6
    shown = repr(planned[0].mechanism)
    for part in NAMED[name][0].splitlines()[1:]:
        assert part.split(" = ")[0] + "=" in shown


def test_levels_of_a_mechanism_and_their_types(jobs):
    assert repr(planning.regressions(jobs("objective_perturbation"))[1].mechanism).endswith(
        'epsilon=0.15, adjacency="replace", norm=L2(), noise_share=0.4, output_share=0.01, centre=[6.5, 0.0, 0.0, 0.0])'
    )
    assert planning.regressions(jobs("private_irls"))[0].mechanism.iterations == 2


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("name", ["private_quantile", "quantile_interval", "k_norm", "ada_ssp", "geometric"])
def test_a_job_of_another_mechanism_is_released_and_written(jobs, tmp_path, name):
    from kngjax.command import report

    config = jobs(name)
    results = job.run(config, workers(), progress=False)
    table = report.table(config, results)
    for own in planning.names(config, results[0].regression.mechanism)[1]:
        assert own in table
    written = job.planned(config).to_dict(results)
    first = (
        "intercept",
        "0.25-quantile of log wage",
        "0.5-quantile of log wage, lower end",
        "sum of log wage",
        "count of visits = 1",
    )
    assert written["releases"][0]["names"][0] in first
    assert written["privacy"]["guarantee_of_the_laws"]["delta"] == (2e-6 if name == "ada_ssp" else 0.0)
    # The rounding of these outputs is part of what they cost, or of their proof.
    costs = [result.release.certificate.cost for result in results]
    is_charged = name == "private_quantile"
    assert written["privacy"]["delta"] == pytest.approx(sum(cost.delta for cost in costs))
    assert (written["privacy"]["delta"] > written["privacy"]["guarantee_of_the_laws"]["delta"]) == is_charged
    assert ("with the rounding of these outputs" in written["privacy"]["composition"]) == is_charged
    assert ("2e-06" if name == "ada_ssp" else "pure epsilon = 0.3") in written["privacy"]["composition"]
    assert len(results[0].coefficients) == len(written["releases"][0]["names"])


def test_a_response_of_text_counts_by_its_declared_levels(tmp_path):
    words = 'column = "wage"\nunits = "dollars a week"\ntransform = "log"\nbounds = [20, 20000]'
    change = (words, 'column = "region"\nlevels = ["south", "north"]'), (LOSS, '[loss]\ntype = "logistic"\n')
    config = make(tmp_path, *change)
    _, y = planning.records(config, workers())
    assert y.tolist() == [float(region == "north") for region in workers()["region"]]
    assert planning.regressions(config)[0].mechanism.bounds.y_lower is None


WRONG = {
    "setting": (
        "\nnoise_chare = 0.4",
        r"\[mechanism\] KNG has an unknown setting 'noise_chare'; known are domain, norm",
    ),
    "norm": ('\nnorm = "l3"', r'\[mechanism\] norm: must be one of "l1", "l2", "l_inf"'),
    "kind of setting": ("\npointwise_sensitivity = 1", r"pointwise_sensitivity: must be true or false, not 1"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_settings_that_a_mechanism_has_not_are_refused(tmp_path, wrong):
    more, message = WRONG[wrong]
    with pytest.raises(ValueError, match=message):
        planning.regressions(make(tmp_path, (MECHANISM, MECHANISM + more)))


TABLES = {
    "loss": ((MECHANISM, 'type = "ada_ssp"'), r"\[mechanism\] type = 'ada_ssp' has no \[loss\]"),
    "no loss": ((LOSS, ""), r"the table \[loss\] is missing"),
    "type": (
        ('"kng"', '"kgn"'),
        r"\[mechanism\] type: must be one of ada_ops, ada_ssp, exponential, .*kng",
    ),
    "list of types": (('"kng"', '["kng"]'), r"\[mechanism\] type: must be one of .*kng"),
    "epsilon": ((EPSILON, ""), r"\[privacy\] needs the key 'epsilon'"),
    "levels": (
        ('units = "dollars a week"', 'levels = ["a", "a"]'),
        r"\[response\] levels: must be two different levels",
    ),
}


@pytest.mark.parametrize("wrong", TABLES)
def test_tables_that_do_not_fit_one_another_are_refused(tmp_path, wrong):
    change, message = TABLES[wrong]
    with pytest.raises(ValueError, match=message):
        make(tmp_path, change)


def test_a_delta_that_is_missing_is_asked_of_its_table(tmp_path):
    changes = (MECHANISM, 'type = "ada_ssp"'), (LOSS, ""), (SAMPLER, ""), (FIGURE, "")
    with pytest.raises(ValueError, match=r"small\.toml: \[privacy\] delta is missing"):
        planning.regressions(make(tmp_path, *changes))


def test_a_delta_of_a_pure_mechanism_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"\[privacy\] delta: the guarantee of KNG has none"):
        planning.regressions(make(tmp_path, WITH_DELTA))


def test_refusals_speak_toml_and_cost_nothing(tmp_path):
    """Five coefficients: no exact sampler serves."""
    ledger = kng.Ledger.create(tmp_path / "budget", kng.Budget.pure(1.0), adjacency="replace", dataset="workers")
    config = make(tmp_path, (SAMPLER, ""), ("degree = 2", "degree = 3"))
    with pytest.raises(ValueError, match="no exact sampler") as refusal:
        job.run(config, workers(), progress=False, ledger=ledger)
    text = str(refusal.value)
    assert text.startswith(f"{config.path}: [sampler] ")
    assert '[sampler] type = "LineGibbs"' in text
    assert '[mechanism] type = "objective_perturbation" and [loss] type = "smoothed_quantile"' in text
    assert "kngjax." not in text
    assert ledger.read().num_rows == 1


@pytest.mark.parametrize(
    ("told", "meant"),
    [
        ("ask for sampler=kngjax.LineGibbs()", 'ask for [sampler] type = "LineGibbs"'),
        ("Exact(most_coefficients=5) tries", '[sampler] type = "Exact" (most_coefficients = 5) tries'),
        ("PrivateQuantile(0.5, ...) is proved", '[mechanism] type = "private_quantile" is proved'),
        (
            "ObjectivePerturbation(HuberLoss(k), ...) is",
            '[mechanism] type = "objective_perturbation" and [loss] type = "huber" (k = ...) is',
        ),
        (
            "Take SmoothedQuantileLoss(tau, bandwidth) with a public bandwidth, or KNG",
            'Take [loss] type = "smoothed_quantile" (tau = ..., bandwidth = ...) with a public bandwidth, or '
            '[mechanism] type = "kng"',
        ),
        ("is no response of LogisticLoss", 'is no response of [loss] type = "logistic"'),
        ("if so, say allow_large_epsilon=True", "if so, say allow_large_epsilon = true in [mechanism]"),
        (
            "Lattice() draws without; else the ledger needs Budget.approximate, or Budget.converted for many",
            '[sampler] type = "Lattice" draws without; else the ledger needs kngjax ledger create --epsilon E '
            "--delta D, or kngjax ledger create --epsilon E --delta D --by-zcdp for many",
        ),
        ("missing=..., or missing='drop' under", 'missing = ..., or missing = "drop" under'),
        ("nothing of it: [0, 1]", "nothing of it: [0, 1]"),
    ],
)
def test_messages_are_translated(told, meant):
    assert registry.in_toml(told) == meant


def test_keys_and_types_follow_constructors():
    lattice = planning.registry.settings(kng.Lattice, {"theta_digits": 6, "expected_proposals": 8})
    assert (lattice["theta_digits"], lattice["expected_proposals"]) == (6, 8.0)
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


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ada_ssp", "private_quantile", "k_norm"])
def test_records_with_missing_cells_are_dropped_where_the_file_says_so(tmp_path, name):
    words, others, _ = NAMED[name]
    changes = [
        (MECHANISM, words),
        (SAMPLER, ""),
        (FIGURE, ""),
        ('adjacency = "replace"', 'adjacency = "add_remove"'),
        ("bounds = [20, 20000]", 'bounds = [20, 20000]\nmissing = "drop"'),
        *others,
    ]
    if name == "k_norm":
        changes[3] = ("bounds = [20, 20000]", "bounds = [20, 20000]\nmissing = 20")
        del changes[4]
    config = make(tmp_path, *changes)
    holed = workers().with_columns(wage=pl.when(pl.col("wage") > 400).then(None).otherwise(pl.col("wage")))
    (result,) = job.run(config, holed, progress=False)
    assert np.all(np.isfinite(result.release.value))
    assert (
        "dropped" in result.release.certificate.explain() or "left out" in result.release.certificate.explain()
    ) == (name != "k_norm")
