"""Under add_remove no command says or chooses anything by the number of records before a debit, of any job."""

import functools

import pytest

import kngjax as kng
from kngjax.command import cli, job, job_file
from tests.command import forms
from tests.command.small_jobs import CHAIN, FIGURE, workers
from tests.said import noting_counts, said_before_the_debit, sizes_of

PRIVATE = ('adjacency = "replace"', 'adjacency = "add_remove"')
GUESSED = ('adjacency = "add_remove"', 'adjacency = "add_remove"\nnum_records = 1500')
SMALL = (CHAIN, ""), (FIGURE, "")
QUANTILES = 'method = "quantile_regression"\nformula = "log(wage) ~ education + poly(experience, 2)"\ntau = [0.25, 0.5]'
BOX = "domain = { box = [-20.0, 20.0] }"


def linear(fit):
    """Changes to a linear regression."""
    new = f'method = "linear_regression"\nformula = "log(wage) ~ education"\nfit = "{fit}"'
    return (*SMALL, (QUANTILES, new), (BOX, ""), ("epsilon = 0.3", "epsilon = 2"))


ASKED = {
    "robust": (*linear("robust"), GUESSED),
    "squared": linear("squared"),
    "quantiles": (*SMALL, (" + poly(experience, 2)", "")),
}
INTERVALS = {
    f"{name}, {words}".replace("\n", ", "): (
        "regressions",
        (*changes, ("[[analyses]]", f"[intervals]\n{words}\n\n[[analyses]]")),
    )
    for name, changes in ASKED.items()
    for words in (
        "level = 0.9",
        'covariance = "sandwich"',
        *(['covariance = "sandwich"\nbandwidth = 0.3'] if name == "quantiles" else []),
    )
}
JOBS = {
    **{form: (form, ()) for form in forms.FORMS},
    "guessed study": ("study", (GUESSED,)),
    "guessed intervals": ("intervals", (GUESSED,)),
    "adassp": ("regressions", (*linear("adassp"), ("epsilon = 2", "epsilon = 2\ndelta = 1e-6"))),
    **{
        method: ("regressions", (*SMALL, (QUANTILES, f'method = "{method}"\n{asked}'), (BOX, ""), *others))
        for method, asked, others in (
            ("quantile", 'column = "wage"\ntau = [0.25, 0.5]', ()),
            ("quantile_interval", 'column = "wage"\ntau = 0.5', (GUESSED,)),
            ("sum", 'column = "visits"', ()),
            ("mean", 'column = "visits"', ()),
            ("poisson_regression", 'formula = "visits ~ education"', ()),
            ("histogram", 'column = "visits"\nedges = [0, 5, 20]', (("force = true", ""),)),
        )
    },
}


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    path = tmp_path_factory.mktemp("ledgers") / "book"
    budget = kng.Budget.approximate(1e4, 0.5)
    return kng.Ledger.create(path, budget, adjacency="add_remove", dataset="workers", unproved="allow")


def commands(path, folder, ledger):
    """What an analyst may run, and what a job makes in Python, each of the file of data beside the job."""
    config = job_file.read(path)

    def chosen():
        frame = job.load(config)
        made = job.planned_for(config, frame)
        certificates = [[one.to_dict() for one in step.certificates(len(frame))] for step in made.steps]
        return [step.label for step in made.steps], [step.words for step in made.steps], certificates

    book, output = ("--ledger", str(ledger.path)), ("--output", str(folder / "output"))
    return {
        "release": functools.partial(cli.main, ["release", str(path), *book, *output]),
        "choose": chosen,
        "plan": functools.partial(cli.main, ["plan", str(path), *book]),
        "resume": functools.partial(cli.main, ["release", str(path), *output, *book, "--resume"]),
    }


def says_the_same_of_all(form, changes, folder, ledger, sizes, which=("release",)):
    said = []
    for number in sizes:
        path = forms.write(form, folder, PRIVATE, *changes, records=2)
        workers(max(sizes))[:number].write_csv(folder / "workers.csv")
        asked = commands(path, folder, ledger)
        said.append([said_before_the_debit(asked[one]) for one in which])
    first, *others = said
    assert all(other == first for other in others), (first, others)
    return first


GUESSED_COUNTS = {None, 1500}


@pytest.mark.parametrize("name", JOBS)
def test_no_job_says_or_chooses_anything_by_it(name, tmp_path, ledger, monkeypatch):
    seen, (form, changes) = noting_counts(monkeypatch), JOBS[name]
    says_the_same_of_all(form, changes, tmp_path, ledger, sizes_of(300))
    assert set(seen) <= GUESSED_COUNTS


@pytest.mark.default_cases(*(name for name in INTERVALS if "squared" in name or "level" in name))
@pytest.mark.parametrize("name", INTERVALS)
def test_no_job_with_intervals_does(name, tmp_path, ledger, monkeypatch):
    seen = noting_counts(monkeypatch)
    says_the_same_of_all(*INTERVALS[name], tmp_path, ledger, (199, 200))
    assert set(seen) <= GUESSED_COUNTS


# Without stubs in the place of previews.
@pytest.mark.slow
@pytest.mark.parametrize("name", [*JOBS, *INTERVALS])
def test_no_job_does_whatever_its_previews_say(name, tmp_path, ledger):
    which = "release", "choose", "plan", "resume"
    says_the_same_of_all(*{**JOBS, **INTERVALS}[name], tmp_path, ledger, sizes_of(199), which)
