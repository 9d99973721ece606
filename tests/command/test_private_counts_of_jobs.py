"""Under add_remove no command says or chooses anything by the number of records before a debit, of any job."""

import functools

import pytest

import kngjax as kng
from kngjax.command import cli, job
from kngjax.command import config as configuration
from tests.command import forms
from tests.command.small_jobs import workers
from tests.command.test_mechanisms_of_jobs import COMPILE_FOR_LONG, FIGURE, LOSS, MECHANISM, NAMED, SAMPLER
from tests.said import noting_counts, said_before_the_debit, sizes_of

PRIVATE = ('adjacency = "replace"', 'adjacency = "add_remove"')
KNG = (SAMPLER, ""), (FIGURE, ""), (LOSS, '[loss]\ntype = "pseudo_huber"\nk = 0.5\n')
SQUARED = (SAMPLER, ""), (FIGURE, ""), (LOSS, '[loss]\ntype = "squared"\n'), ("epsilon = 0.3", "epsilon = 2")
PERTURBED = (*KNG, ('type = "kng"', 'type = "objective_perturbation"'))
QUANTILES = (SAMPLER, ""), (FIGURE, "")


def with_intervals(changes, words):
    """The changes and a table [intervals]."""
    return (*changes, ("[privacy]", f"[intervals]\n{words}\n\n[privacy]"))


INTERVALS = {
    f"{name}, {words}".replace("\n", ", "): ("regressions", with_intervals(changes, words))
    for name, changes in {"KNG": KNG, "squared": SQUARED, "perturbed": PERTURBED, "quantiles": QUANTILES}.items()
    for words in (
        "level = 0.9",
        "num_records = 5000",
        'covariance = "sandwich"',
        *(['covariance = "sandwich"\nbandwidth = 0.3'] if name == "quantiles" else []),
        'covariance = "groups"',
        'covariance = "groups"\nnum_records = 700',
        'covariance = "groups"\nnumber = 4',
    )
}
GUESSED = ('adjacency = "add_remove"', 'adjacency = "add_remove"\nnum_records = 1500')
JOBS = {
    **{form: (form, ()) for form in forms.FORMS},
    "guessed study": ("study", (GUESSED,)),
    "guessed intervals": ("intervals", (GUESSED,)),
    **{
        name: ("regressions", ((MECHANISM, words), (SAMPLER, ""), (FIGURE, ""), *others))
        for name, (words, others, _) in NAMED.items()
        if name not in COMPILE_FOR_LONG
    },
}


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    path = tmp_path_factory.mktemp("ledgers") / "book"
    budget = kng.Budget.approximate(1e4, 0.5)
    return kng.Ledger.create(path, budget, adjacency="add_remove", dataset="workers", unproved="allow")


def commands(path, folder, ledger):
    """What an analyst may run, and what a job makes in Python, each of the file of data beside the job."""
    config = configuration.read(path)

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


GUESSED_COUNTS = {None, 1500, 5000, 700}


@pytest.mark.parametrize("name", JOBS)
def test_no_job_says_or_chooses_anything_by_it(name, tmp_path, ledger, monkeypatch):
    seen, (form, changes) = noting_counts(monkeypatch), JOBS[name]
    says_the_same_of_all(form, changes, tmp_path, ledger, sizes_of(300))
    assert set(seen) <= GUESSED_COUNTS


@pytest.mark.default_cases(*(name for name in INTERVALS if "KNG" in name or "level" in name or "700" in name))
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
