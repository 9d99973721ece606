"""The pages stay true: code runs and prints what they show, links lead somewhere, tables are complete."""

import importlib.util
import pathlib
import re

import matplotlib
import matplotlib.pyplot as plt
import pytest

from kngjax.command import job_file, named_parts
from kngjax.core import registry
from kngjax.losses.base import AbstractLoss, AbstractPredictorLoss, AbstractResidualLoss, AbstractRowLoss
from tests.offenders import every_case
from tests.pages import BLOCK, CELL, DOCS, EXECUTED, ROOT, programs, text
from tests.public import PUBLIC
from tests.test_architecture import ROOMS

PAGES = [*EXECUTED, *(ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"))]
MOST_LINES_OF_THE_README = 120
# Of all pages but those that are looked up, and proofs; and of one of them.
MOST_WORDS, MOST_WORDS_OF_A_PAGE = 35_000, 2_200
# Of code that a page has in a row as README.md has it: imports, and the generator of made-up data.
MOST_LINES_IN_COMMON = 4
# Their programs run or compile for long. Of notebooks the build of the site runs all cells, and CI runs the blocks of
# all others; what they name is looked up in `tests/site/test_names_in_pages.py` by default.
SLOW = {
    "adding-a-loss.md",
    "attack-a-guarantee.md",
    "categories.md",
    "choosing-epsilon.md",
    "coming-from.md",
    "each-person.md",
    "first-median.md",
    "for-the-owner.md",
    "how-to-choose.md",
    "hundred-thousand-releases.md",
    "intervals.md",
    "kng-in-pictures.md",
    "missing-data.md",
    "new-loss.md",
    "plan-a-year.md",
    "posteriors.md",
    "published-to-posterior.md",
    "quantile-processes.md",
    "scikit-learn-pipeline.md",
    "scikit-learn.md",
    "several-records.md",
    "streams.md",
    "studies.md",
    "synthetic-tables.md",
    "tables-on-spark.md",
    "teach.md",
    "visits-of-patients.md",
    "wage-curves.md",
    "weights.md",
}
# What the tests do not install, since it is large or needs a program besides, and what may be missing.
NEEDED = {"opendp.md": "opendp", "tables-on-spark.md": "pyspark"}


def marks(page):
    if page.name in SLOW:
        yield pytest.mark.slow
    if page.name in NEEDED:
        needed = NEEDED[page.name]
        yield pytest.mark.skipif(importlib.util.find_spec(needed) is None, reason=f"{needed} is not installed")
        # Its session starts processes, and lives on in Java; pandas may be newer than it knows.
        yield pytest.mark.filterwarnings(
            "ignore:os.fork", "ignore:PySpark does not", "ignore::pytest.PytestUnraisableExceptionWarning"
        )


def of_every_page(mark):
    pages = [page for page in EXECUTED if mark in text(page)]
    cases = [pytest.param(page, marks=list(marks(page))) for page in pages]
    return pytest.mark.parametrize("page", cases, ids=lambda page: page.name)


def matches(printed, shown):
    """Whether this was printed: any white space is as good as any other, and `...` stands for anything."""
    parts = [re.escape(" ".join(part.split())) for part in shown.split("...")]
    return re.fullmatch(r"\s?.*\s?".join(parts), " ".join(printed.split())) is not None


def test_outputs_are_compared_word_by_word():
    for shown, same in (("a b\nc", True), ("a ... c", True), ("a ...", True), ("a c", False), ("a b c ... d", False)):
        assert matches("a  b\nc\n", shown) == same


@of_every_page("```python")
def test_the_python_blocks_run_and_print_what_is_shown(page, capsys):
    """A page is one program: its blocks in their order. The text block below a block is what it prints."""
    blocks = BLOCK.findall(text(page))
    assert len(blocks) == text(page).count("```python")
    names = {"__name__": page.stem}
    for program, shown in blocks:
        exec(compile(program, page.name, "exec"), names)
        printed = capsys.readouterr().out
        assert matches(printed, shown), f"{page.name} shows\n{shown}\nand this was printed:\n{printed}"


@of_every_page("```{code-cell}")
def test_the_cells_of_a_notebook_run(page, monkeypatch):
    """What they print differs each time, and is nobody's to compare; a picture is drawn."""
    monkeypatch.setattr(plt, "show", lambda: shown.append(plt.gcf()))
    cells, shown, names = CELL.findall(text(page)), [], {"__name__": page.stem}
    assert len(cells) == text(page).count("```{code-cell}")
    with matplotlib.rc_context({"backend": "agg"}):
        for program in cells:
            exec(compile(program, page.name, "exec"), names)
    assert shown
    plt.close("all")


def test_the_readme_is_short():
    assert len(text(ROOT / "README.md").splitlines()) <= MOST_LINES_OF_THE_README


def test_pages_are_read_to_their_end():
    _, _, rest = text(DOCS / "index.md").partition("## Reference")
    looked_up = [DOCS / name for name in re.findall(r"\]\(([\w/-]+\.md)\)", rest.partition("\n## ")[0])]
    assert len(looked_up) == 5
    read = [page for page in EXECUTED if DOCS in page.parents and page not in looked_up]
    words = {page.name: len(text(page).split()) for page in read if page.parent != DOCS / "proofs"}
    assert sum(words.values()) <= MOST_WORDS, sum(words.values())
    assert {name: number for name, number in words.items() if number > MOST_WORDS_OF_A_PAGE} == {}
    assert max(words[name] for name in ("how-to-choose.md", "intervals.md")) <= 2000


def test_the_commands_name_what_exists():
    commands = re.findall(r"^python3 -m venv .*$", text(ROOT / "README.md"), flags=re.MULTILINE)
    assert len(commands) == 2
    config = re.search(r"kngjax release (\S+)", commands[0])
    assert config is not None
    assert (ROOT / config.group(1)).is_file()
    run = (ROOT / ".ci" / "run").read_text()
    assert "python3 -m venv .*pytest" in run
    named = re.findall(r"(tests/[\w/.]+)(?:::(\w+))?", run)
    assert len(named) > 10
    for path, test in named:
        assert (ROOT / path).exists()
        assert not test or f"def {test}(" in text(ROOT / path)


def lines_in_common(program, others):
    """The most lines in a row, empty ones left out, that a program shares with one of others."""
    mine = [line.strip() for line in program.splitlines() if line.strip()]
    longest = 0
    for other in others:
        theirs = "\n".join(["", *(line.strip() for line in other.splitlines() if line.strip()), ""])
        for start in range(len(mine)):
            while start + longest < len(mine) and "\n".join(["", *mine[start : start + longest + 1], ""]) in theirs:
                longest += 1
    return longest


def test_lines_in_common_are_counted():
    assert lines_in_common("a\n\nb\nc\nd\n", ["b\nc\n", "c\n\n  d\na\nb\n", "bcd"]) == 2
    assert lines_in_common("a", ["ab", ""]) == 0


def test_the_code_of_the_readme_is_written_once():
    """The site shows it in the index as well, from the same file."""
    pages = [page for page in EXECUTED if page != ROOT / "README.md"]
    others = [program for page in pages for program in programs(page)]
    for program, _ in BLOCK.findall(text(ROOT / "README.md")):
        assert lines_in_common(program, others) <= MOST_LINES_IN_COMMON, f"a page repeats this of README.md:\n{program}"
    install = re.findall(r"^python3 -m venv .*$", text(ROOT / "README.md"), flags=re.MULTILINE)
    assert set(re.findall(r"^python3 -m venv .*$", text(ROOT / "CONTRIBUTING.md"), flags=re.MULTILINE)) <= set(install)


def anchors(page):
    """What can be linked to within a page: its headings, as hosts of repositories spell them."""
    headings = re.findall(r"^#+ (.*)$", text(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def leads_nowhere(page):
    """The links of a page, and the paths that it names, of which there is nothing."""
    links = re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", text(page))
    for target, anchor in [link for link in links if not link[0].startswith("https://")]:
        named = page.parent / target if target else page
        if not named.exists() or (anchor and anchor not in anchors(named)):
            yield f"{page.name} links to {target}#{anchor}"
    for path in re.findall(r"`((?:kngjax|configs|docs|experiments|results|tests)/[^` ]*)`", text(page)):
        if not (ROOT / path).exists():
            yield f"{page.name} names {path}"


def test_every_link_and_path_leads_somewhere():
    assert not [wrong for page in PAGES for wrong in leads_nowhere(page)]


def test_every_page_is_in_the_index():
    index = text(DOCS / "index.md")
    pages = [page.relative_to(DOCS).as_posix() for page in EXECUTED if DOCS in page.parents]
    assert all(f"]({page})" in index for page in pages if page != "index.md")


@pytest.mark.parametrize("page", sorted((DOCS / "proofs").glob("*.md")), ids=lambda page: page.stem)
def test_a_proof_has_its_five_parts_and_names_code_and_tests_that_exist(page):
    _, *parts = re.split(r"^## (.*)\n", text(page), flags=re.MULTILINE)
    assert parts[::2] == ["Statement", "Assumptions", "Proof", "Code", "Test"]
    assert all(part.strip() for part in parts)
    code, tests = (part.strip().splitlines() for part in parts[7::2])
    for line in code:
        found = re.fullmatch(r"- `(\w+)` in `(kngjax/[\w/]+\.py)`", line)
        assert found, line
        assert re.search(rf"^(def|class) {found[1]}\b", text(ROOT / found[2]), flags=re.MULTILINE), line
    assert all(re.fullmatch(r"- `tests/[\w/]+\.py`", line) and (ROOT / line[3:-1]).exists() for line in tests)


def test_the_errors_of_the_literature_are_shown_by_tests_that_exist():
    """And those that are slow are called so."""
    page = text(DOCS / "explanation" / "literature-errors.md")
    named = re.findall(r"`(tests/[^`]*\.py)`,\s+`(test_\w+)`(\s+\(slow\))?", page)
    assert len(named) == len(re.findall(r"`test_", page)) > 10
    for file, test, slow in named:
        found = re.search(rf"^((?:@.*\n|[ )\]].*\n)*)def {test}\(", text(ROOT / file), flags=re.MULTILINE)
        assert found, f"{file} has no {test}"
        assert ("@pytest.mark.slow" in found[1]) == bool(slow), f"is {test} slow?"


def test_the_page_of_architecture_has_every_room_in_its_order():
    page = text(DOCS / "explanation" / "architecture.md")
    assert tuple(re.findall(r"^\| `(\w+)` \|", page, flags=re.MULTILINE)) == ROOMS
    drawn = re.search(r"ROOMS = \(\n(.*?)\)", page, flags=re.DOTALL)
    assert drawn is not None
    assert tuple(re.findall(r"\w+", drawn[1])) == ROOMS


def homes(*rooms):
    """The public names that files of these rooms define, and the files."""
    public = {name: getattr(one, "__module__", "") for name, one in PUBLIC.items()}
    return {name: home for name, home in public.items() if home.split(".")[1:2] and home.split(".")[1] in rooms}


def test_the_table_of_symbols_is_complete():
    """Every file that defines a public name of mathematics is in the table, by itself or with its folder."""
    table = text(DOCS / "from-paper-to-code.md")
    for home in set(homes("geometry", "losses", "sensitivity", "mechanisms", "chains", "releases").values()):
        file = pathlib.PurePosixPath(home.replace(".", "/"))
        named = [f"{file}.py", *(f"{folder}/" for folder in file.parents)]
        assert any(f"`{name}`" in table for name in named), f"{named[0]} is not in the table"


def test_the_table_of_symbols_names_files_that_exist():
    named = re.findall(r"`(kngjax/[^`]*)`", text(DOCS / "from-paper-to-code.md"))
    assert len(named) > 100
    assert [name for name in named if not (DOCS.parent / name).exists()] == []


def test_every_sampler_mechanism_and_loss_can_be_chosen():
    page = text(DOCS / "how-to-choose.md")
    chosen = {name: rf"`{name}\b" for name in homes("chains", "mechanisms")}
    assert len(chosen) > 20
    served = {name: rf"\b{name}\b" for name in registry.names("losses").values()}
    assert not [name for name, pattern in (chosen | served).items() if not re.search(pattern, page)]


def test_the_page_of_jobs_names_all_that_a_job_can():
    page = text(DOCS / "jobs.md")
    known = (*job_file.methods(), *named_parts.DOMAINS)
    assert not [name for name in known if not re.search(rf"`({{ |\")?{name}\b", page)]


def test_the_page_of_losses_names_every_fact():
    """And says of those without a default that they must be written."""
    page = text(DOCS / "adding-a-loss.md")
    with every_case() as case:
        for kind in (AbstractLoss, AbstractRowLoss, AbstractPredictorLoss, AbstractResidualLoss):
            with case(kind.__name__):
                assert not [name for name in vars(kind) if not name.startswith("_") and f"`{name}" not in page]
                row = re.search(rf"^\| `{kind.__name__}` \|(.*)$", page, flags=re.MULTILINE)
                assert row is not None
                assert set(re.findall(r"`(\w+)`", row[1])) == kind.__abstractmethods__
