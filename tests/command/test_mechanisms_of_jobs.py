"""A job can have every mechanism with its own settings, and what does not fit together is refused in words."""

import numpy as np
import polars as pl
import pytest

import kngjax as kng
from kngjax.command import config as configuration
from kngjax.command import job, planning, report
from tests.command.small_jobs import JOB, workers, write_job
from tests.offenders import every_case

LOSS = '[loss]\ntype = "quantile"\ntau = [0.25, 0.5]\n'
MECHANISM = 'type = "kng"\ndomain = { box = [-20.0, 20.0] }'
SAMPLER = '[sampler]\ntype = "LineGibbs"\nnum_sweeps = 2\n'
FIGURE = '[figure]\nx = "experience"\nat = { education = 12 }\n'
TERMS = JOB[JOB.index("[[terms]]") : JOB.index("[loss]")]
EPSILON = "epsilon = 0.3"
WITH_DELTA = (EPSILON, "epsilon = 0.3\ndelta = 2e-6")


def make(folder, *changes):
    return configuration.read(write_job(folder, *changes))


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


# Making one of these compiles for longer than all others together.
COMPILE_FOR_LONG = ("ada_ops", "posterior_sample", "private_irls")


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    def made(name):
        words, others, _ = NAMED[name]
        return make(tmp_path_factory.mktemp(name), (MECHANISM, words), (SAMPLER, ""), (FIGURE, ""), *others)

    return made


def is_made_with_its_own_settings(name, config):
    words, _, kind = NAMED[name]
    planned = planning.regressions(config)
    assert all(type(one.mechanism) is kind for one in planned)
    total = planning.together(planned)
    if config.privacy.epsilon is not None:
        assert total.epsilon <= 0.3 * (1 + 1e-12)
        assert total.delta <= 2e-6
    shown = repr(planned[0].mechanism)
    for part in words.splitlines()[1:]:
        assert part.split(" = ")[0] + "=" in shown


def test_mechanisms_are_made_with_their_own_settings(jobs):
    with every_case() as case:
        for name in [name for name in NAMED if name not in COMPILE_FOR_LONG]:
            with case(name):
                is_made_with_its_own_settings(name, jobs(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPILE_FOR_LONG)
def test_a_mechanism_that_compiles_when_it_is_made_has_its_own_settings(jobs, name):
    is_made_with_its_own_settings(name, jobs(name))


def test_levels_of_a_mechanism_and_their_types(jobs):
    assert repr(planning.regressions(jobs("objective_perturbation"))[1].mechanism).endswith(
        'epsilon=0.15, adjacency="replace", norm=L2(), noise_share=0.4, output_share=0.01, centre=[6.5, 0.0, 0.0, 0.0])'
    )


FIRST_NAMES = {
    "ada_ssp": "intercept",
    "private_quantile": "0.25-quantile of log wage",
    "quantile_interval": "0.5-quantile of log wage, lower end",
    "k_norm": "sum of log wage",
    "geometric": "count of visits = 1",
}


def is_released_and_written(name, config):
    results = job.run(config, workers(), progress=False)
    table = report.table(config, results)
    for own in planning.names(config, results[0].regression.mechanism)[1]:
        assert own in table
    written = job.planned(config).to_dict(results)
    privacy = written["privacy"]
    assert written["releases"][0]["names"][0] == FIRST_NAMES[name]
    assert privacy["guarantee_of_the_laws"]["delta"] == (2e-6 if name == "ada_ssp" else 0.0)
    # The rounding of these outputs is part of what they cost, or of their proof.
    costs = [result.release.certificate.cost for result in results]
    is_charged = name == "private_quantile"
    assert privacy["delta"] == pytest.approx(sum(cost.delta for cost in costs))
    assert (privacy["delta"] > privacy["guarantee_of_the_laws"]["delta"]) == is_charged
    assert ("with the rounding of these outputs" in privacy["composition"]) == is_charged
    assert ("2e-06" if name == "ada_ssp" else "pure epsilon = 0.3") in privacy["composition"]
    assert len(results[0].coefficients) == len(written["releases"][0]["names"])


def test_jobs_of_other_mechanisms_are_released_and_written(jobs):
    with every_case() as case:
        for name in [name for name in FIRST_NAMES if name != "ada_ssp"]:
            with case(name):
                is_released_and_written(name, jobs(name))


@pytest.mark.slow
def test_a_job_of_sums_with_noise_is_released_and_written(jobs):
    is_released_and_written("ada_ssp", jobs("ada_ssp"))


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


def test_settings_that_a_mechanism_has_not_are_refused(tmp_path):
    with every_case() as case:
        for wrong, (more, message) in WRONG.items():
            with case(wrong), pytest.raises(ValueError, match=message):
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


def test_tables_that_do_not_fit_one_another_are_refused(tmp_path):
    with every_case() as case:
        for wrong, (change, message) in TABLES.items():
            with case(wrong), pytest.raises(ValueError, match=message):
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


def drops_records_with_missing_cells(name, folder):
    words, others, _ = NAMED[name]
    changes = [(MECHANISM, words), (SAMPLER, ""), (FIGURE, ""), *others]
    if name == "k_norm":
        changes += [("bounds = [20, 20000]", "bounds = [20, 20000]\nmissing = 20")]
    else:
        changes += [
            ('adjacency = "replace"', 'adjacency = "add_remove"'),
            ("bounds = [20, 20000]", 'bounds = [20, 20000]\nmissing = "drop"'),
        ]
    holed = workers().with_columns(wage=pl.when(pl.col("wage") > 400).then(None).otherwise(pl.col("wage")))
    (result,) = job.run(make(folder, *changes), holed, progress=False)
    assert np.all(np.isfinite(result.release.value))
    said = result.release.certificate.explain()
    assert ("dropped" in said or "left out" in said) == (name != "k_norm")


def test_records_with_missing_cells_are_dropped_where_the_file_says_so(tmp_path):
    for name in ("private_quantile", "k_norm"):
        drops_records_with_missing_cells(name, tmp_path)


@pytest.mark.slow
def test_records_with_missing_cells_are_dropped_from_sums_with_noise(tmp_path):
    drops_records_with_missing_cells("ada_ssp", tmp_path)
