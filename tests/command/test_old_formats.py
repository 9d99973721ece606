"""Files of older formats are refused with the same job as it is written now, which can be read and planned."""

from fractions import Fraction

import pytest

import kngjax as kng
from kngjax.accounting.exact_costs import exactly
from kngjax.command import cli, job_file
from kngjax.command.job_plan import JobPlan
from kngjax.command.old_formats import OldFormat
from kngjax.study import public_facts
from tests.offenders import every_case

REGRESSIONS = """
[data]
path = "workers.csv"

[response]
column = "wage"
units = "dollars a week"
transform = "log"
bounds = [20, 20000]
missing = 20
missing_codes = [-1]

[[terms]]
column = "years at work"
units = "years"
bounds = [0, 60]
degree = 2

[[terms]]
column = "region"
levels = ["north", "south"]
missing = "north"

[loss]
type = "quantile"
tau = [0.25, 0.5]

[mechanism]
type = "kng"
domain = { box = [-20.0, 20.0] }

[sampler]
type = "LineGibbs"
num_sweeps = 2

[privacy]
epsilon = 0.3
adjacency = "replace"
ledger = "book"

[figure]
x = "years at work"
at = { region = "south" }
"""
RESPONSE = REGRESSIONS[REGRESSIONS.index("[response]") : REGRESSIONS.index("[[terms]]")]
TERMS = REGRESSIONS[REGRESSIONS.index("[[terms]]") : REGRESSIONS.index("[loss]")]
LOSS = 'type = "quantile"\ntau = [0.25, 0.5]'
FIGURE = REGRESSIONS[REGRESSIONS.index("[figure]") :]
SAMPLER = '[sampler]\ntype = "LineGibbs"\nnum_sweeps = 2\n'
KNG = 'type = "kng"\ndomain = { box = [-20.0, 20.0] }'
COUNTS = '[response]\ncolumn = "visits"\nbounds = [0, 20]\n\n'
SYNTHESIS = """
[data]
path = "workers.csv"

[synthesis]
epsilon = 3
adjacency = "replace"
ledger = "book"

[[synthesis.columns]]
kind = "category"
name = "region"
levels = ["north", "south"]
share = 0.1

[[synthesis.columns]]
kind = "numeric"
name = "wage"
low = 20
high = 20000
transform = "log"
given = "region"

[synthesis.draws]
tables = 2
seed = 7
"""


@pytest.fixture(autouse=True)
def no_previews(monkeypatch):
    """Plans come without previews of their noise, each of which compiles."""
    monkeypatch.setattr(public_facts, "expecting", lambda analysis, *_: analysis)


def written_anew(folder, text, *changes):
    """What is told to be written in the place of a text with each (old, new) replaced: as it is read, and its plan."""
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (folder / "old.toml").write_text(text, encoding="utf-8")
    with pytest.raises(OldFormat, match="is written as for older versions") as refusal:
        job_file.read(folder / "old.toml")
    (folder / "new.toml").write_text(refusal.value.text, encoding="utf-8")
    file = job_file.read(folder / "new.toml")
    return file, JobPlan(file, 300 if file.adjacency == "replace" else None)


def test_regressions_are_the_same_mechanisms_with_the_same_figure(tmp_path):
    file, plan = written_anew(tmp_path, REGRESSIONS)
    mechanisms = [step.part.mechanism for step in plan.steps]
    assert [float(one.epsilon) for one in mechanisms] == [0.15, 0.15]
    assert all(isinstance(one, kng.KNG) and one.bounds.y_upper == pytest.approx(9.9034875) for one in mechanisms)
    analysis = plan.steps[0].analysis
    assert analysis.names == ("intercept", "years at work", "years at work^2", "region[south]")
    assert (analysis.sampler, analysis.response.missing) == (kng.chains.LineGibbs(num_sweeps=2), 20)
    codes = {one.name: one.codes for one in plan.columns}
    assert (file.ledger, file.data.path, codes["wage"]) == ("book", "workers.csv", (-1,))
    assert (file.figure.x, file.figure.at) == ("years at work", {"region": "south"})
    assert file.figure.units == {"years at work": "years", "wage": "dollars a week"}


# Changes of the file, and the class of the mechanism that takes its place.
OTHERS = {
    "shares": ((("epsilon = 0.3", "epsilon = 0.3\nshares = [1, 2]"),), kng.KNG),
    "smoothed": (((LOSS, 'type = "smoothed_quantile"\ntau = 0.5\nbandwidth = 0.1'),), kng.KNG),
    "squared": (((LOSS, 'type = "squared"'), (SAMPLER, "")), kng.KNG),
    "robust": (((LOSS, 'type = "pseudo_huber"\nk = 1.5'), (SAMPLER, "")), kng.ObjectivePerturbation),
    "poisson": (((LOSS, 'type = "poisson"'), (SAMPLER, ""), (RESPONSE, COUNTS)), kng.ObjectivePerturbation),
    "logistic": (
        ((LOSS, 'type = "logistic"'), (SAMPLER, ""), (RESPONSE, '[response]\ncolumn = "member"\n\n')),
        kng.ObjectivePerturbation,
    ),
    "adassp": (
        (
            (KNG, 'type = "ada_ssp"'),
            (f"[loss]\n{LOSS}\n", ""),
            (SAMPLER, ""),
            ("epsilon = 0.3", "epsilon = 0.3\ndelta = 1e-6"),
        ),
        kng.AdaSSP,
    ),
    **{
        kind: (
            (
                (KNG, f'type = "{kind}"{more}'),
                (f"[loss]\n{LOSS}\n", ""),
                (SAMPLER, ""),
                (TERMS, ""),
                (FIGURE, ""),
                (RESPONSE, COUNTS),
            ),
            made,
        )
        for kind, more, made in (
            ("private_quantile", "\ntau = [0.25, 0.5]", kng.PrivateQuantile),
            ("quantile_interval", "\ntau = 0.5", kng.QuantileInterval),
            ("k_norm", '\nstatistic = "sum"', kng.KNormMechanism),
            ("geometric", "\ncounted = [1, 2]", kng.GeometricMechanism),
        )
    },
}


def test_other_mechanisms_become_analyses_of_a_study(tmp_path):
    with every_case() as case:
        for name, (changes, kind) in OTHERS.items():
            with case(name):
                file, plan = written_anew(tmp_path, REGRESSIONS, *changes)
                assert [type(step.part.mechanism) for step in plan.steps] == [kind] * len(plan.steps)
                spent = sum(float(one["epsilon"]) for one in (asked.public for asked in file.analyses))
                assert spent == pytest.approx(0.3)
    intervals = ("[privacy]", '[intervals]\ncovariance = "sandwich"\nnum_records = 900\nforce = true\n\n[privacy]')
    file, plan = written_anew(tmp_path, REGRESSIONS, (SAMPLER, ""), ('"replace"', '"add_remove"'), intervals)
    assert (file.study["num_records"], file.analyses[0].arguments["force"]) == (900, True)
    assert plan.steps[0].part.plan.covariance == kng.Sandwich(indicators=((3,),))


def test_a_synthesis_is_the_same_plan(tmp_path):
    file, plan = written_anew(tmp_path, SYNTHESIS)
    columns = [
        kng.synthesis.Category("region", ["north", "south"], share=0.1),
        kng.synthesis.Numeric("wage", 20, 20000, "log", given="region"),
    ]
    assert plan.steps[0].analysis.synthesis == kng.synthesis.plan(columns, epsilon=3, adjacency="replace")
    assert (file.drawn_files, file.ledger) == (("synthetic_1.csv", "synthetic_2.csv"), "book")


def test_the_command_prints_the_new_text_and_does_nothing_else(tmp_path, capfd):
    (tmp_path / "old.toml").write_text(SYNTHESIS, encoding="utf-8")
    assert cli.main(["release", str(tmp_path / "old.toml"), "--output", str(tmp_path / "out"), "--resume"]) == 2
    said = capfd.readouterr()
    assert said.out == ""
    first, _, text = said.err.partition("\n\n")
    assert "old.toml is written as for older versions, with [synthesis]: write this in its place" in first
    (tmp_path / "new.toml").write_text(text, encoding="utf-8")
    assert job_file.read(tmp_path / "new.toml").analyses[0].method == "synthesis"
    assert not (tmp_path / "out").exists()


def test_what_no_study_asks_for_is_refused_with_where_to_ask(tmp_path):
    text = REGRESSIONS.replace(KNG, 'type = "posterior_sample"\nregularization = 500.0')
    (tmp_path / "old.toml").write_text(text, encoding="utf-8")
    with pytest.raises(OldFormat, match=r"in Python, kngjax.release\(mechanism, X, y\)") as refusal:
        job_file.read(tmp_path / "old.toml")
    assert refusal.value.text is None


def test_parts_of_a_budget_add_up_to_no_more_than_all_of_it(tmp_path):
    for number, shares in enumerate(("[5, 1]", "[1, 2]", "[0.7, 0.1]")):
        (tmp_path / str(number)).mkdir()
        _, plan = written_anew(
            tmp_path / str(number), REGRESSIONS, ("epsilon = 0.3", f"epsilon = 1\nshares = {shares}")
        )
        parts = [exactly(float(step.part.mechanism.epsilon)) for step in plan.steps]
        assert 1 - Fraction(1, 10**12) < sum(parts) <= 1
