"""The reference of the site is complete: names, fields, keys, commands and errors; all without Sphinx."""

import argparse
import ast
import dataclasses
import inspect
import pathlib
import re

import pytest

import kngjax as kng
from docs._generate import command_line, error_texts, made_pages, toml_keys
from docs._generate.certificate_fields import PARTS, fields_of
from docs._generate.entries import docstring, first_sentence, is_elsewhere, members, page_of_names, shared_classes
from docs._generate.public_names import PAGES, full_name, public_names
from docs._generate.signatures import annotation_in_words, default_in_words, signature_in_words
from docs._generate.tables import arguments_in_words, table
from kngjax.command import named_parts as jobs
from kngjax.command.job_file import methods, parameters
from kngjax.command.synthesis_file import KINDS
from kngjax.core import errors, registry
from kngjax.core.error_anchors import anchor_of
from tests.offenders import every_case

PACKAGE = pathlib.Path(kng.__file__).parent


@pytest.fixture(scope="module")
def texts():
    return {page: page_of_names(page) for page in PAGES}


def test_every_public_name_is_on_one_page():
    listed = [name for page in PAGES if page.package == "kngjax" for name in public_names(page)]
    modules = {name for name in registry.public_names() if inspect.ismodule(getattr(kng, name))}
    assert sorted(listed) == sorted(set(registry.public_names()) - modules)
    of_modules = {page.package for page in PAGES if not page.files}
    assert {getattr(kng, name).__name__ for name in modules} <= of_modules


def test_every_name_has_an_entry_with_its_docstring(texts):
    with every_case() as case:
        for page in PAGES:
            assert public_names(page)
            for name, one in public_names(page).items():
                if is_elsewhere(page, name):
                    continue
                with case(page.slug, name):
                    entry = rf"^::::::\{{py:\w+\}} {re.escape(full_name(page, name))}\b"
                    assert re.search(entry, texts[page], re.MULTILINE)
                    assert docstring(one) in texts[page]


def test_what_only_a_base_class_says_is_there_once(texts):
    everywhere = "".join(texts.values())
    assert everywhere.count("{py:class} kngjax.mechanisms.base.AbstractMechanism\n") == 1
    shared = [base for page in PAGES for base in shared_classes(page)]
    assert len(shared) == len(set(shared)) > 10


def test_members_are_those_that_a_class_itself_documents():
    found = dict(members(kng.releases.Certificate))
    assert {"explain", "epsilon", "names", "to_dict"} <= found.keys()
    assert not found.keys() & {"_of_draw", "mechanism", "versions"}
    assert "plan" in dict(members(kng.Study))
    assert {"REPLACE", "ADD_REMOVE"} <= dict(members(kng.Adjacency)).keys()


def test_signatures_are_python():
    for page in PAGES:
        for one in public_names(page).values():
            if callable(one):
                ast.parse(f"def f{signature_in_words(one)}: ...")
    assert signature_in_words(kng.QuantileLoss) == "(tau: Any)"
    assert signature_in_words(kng.shard).endswith("-> Shards")
    assert annotation_in_words(kng.Bounds | None) == "kngjax.Bounds | None"
    assert default_in_words(kng.Adjacency.REPLACE) == "Adjacency.REPLACE"
    assert default_in_words("x" * 50) == "..."


def test_no_docstring_opens_a_tag():
    class Comparing:
        """P(a <b) and `<c>`."""

    assert docstring(Comparing) == r"P(a \<b) and `<c>`."
    assert first_sentence(Comparing) == r"P(a \<b) and `<c>`."


def test_dots_within_a_sentence_do_not_end_it():
    class Levels:
        """Curves at τ_1 < ... < τ_m. More."""

    assert first_sentence(Levels) == "Curves at τ_1 < ... < τ_m."


def test_every_field_of_a_certificate_is_explained():
    for part in PARTS:
        said, page = arguments_in_words(part), fields_of(part)
        names = [field.name for field in dataclasses.fields(part)]
        assert not [(part.__name__, name) for name in names if not said[name] or f"| `{name}` |" not in page]


def test_arguments_are_read_in_both_forms():
    class Inline:
        """One. **Arguments:** `a`: first, of `b`. `b`, `c`:
        two at once.

        Raises nothing.
        """

    assert arguments_in_words(Inline) == {"a": "first, of `b`.", "b": "two at once.", "c": "two at once."}


def test_bars_in_cells_are_no_borders():
    assert table(["a"], [["x | y"]]).splitlines()[-1] == r"| x \| y |"


def test_every_key_of_a_job_is_listed():
    page = toml_keys.page_of_keys()
    for name, kind in toml_keys.TABLES.items():
        rows = list(toml_keys.keys_of_table(kind))
        section = page.split(f"# {name}\n")[1].split("\n##")[0]
        assert [row[0] for row in rows] == [f"`{field.name}`" for field in dataclasses.fields(kind)]
        assert all(f"| {row[0]} |" in section for row in rows)
    assert all(f'### sampler type = "{sampler}"' in page for sampler in jobs.SAMPLERS)
    for kind, name in KINDS.items():
        section = page.split(f'### [[analyses.columns]] kind = "{kind}"\n')[1].split("\n###")[0]
        assert all(f"| `{key}` |" in section for key in inspect.signature(jobs.public(name)).parameters)
    for method in (*methods(), "synthesis"):
        section = page.split(f'### [[analyses]] method = "{method}"\n')[1].split("\n###")[0]
        assert all(f"| `{key}` |" in section for key in parameters(method) if key != "columns" or method == "crosstab")
    assert "| `fit` |" in page
    study = page.split("## [study]\n")[1].split("\n##")[0]
    assert "| `adjacency` |" in study


def test_every_command_and_option_is_listed():
    page = command_line.page_of_commands()
    found = list(command_line.commands())
    assert {one.prog for one in found} >= {"kngjax release", "kngjax ledger verify", "kngjax plan"}
    for one in found:
        assert f"## {one.prog}\n" in page
        options = [option for action in one._actions for option in action.option_strings]
        assert all(f"`{option}" in page for option in options if option not in ("-h", "--help"))
        assert not isinstance(one, argparse._SubParsersAction)


def raised_with_words():
    """The lines of the package that raise something with words in their very statement; found by text alone."""
    for path in sorted(PACKAGE.rglob("*.py")):
        lines = path.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines, start=1):
            if found := re.match(r"\s*raise (\w+)\((f?[\"'].*)?$", line):
                following = found[2] or lines[number].strip()
                if re.match(r"f?[\"']\w+ \w+", following):
                    yield path.relative_to(PACKAGE).parts[0], found[1], number


def test_every_error_with_words_is_listed():
    listed = {(one.room.removesuffix(".py"), one.exception, one.line) for one in error_texts.error_texts(PACKAGE)}
    raised = list(raised_with_words())
    assert len(raised) > 300
    assert not [one for one in raised if (one[0].removesuffix(".py"), *one[1:]) not in listed]


ANCHOR = re.compile(r'^- <a id="([a-z0-9]+(?:-[a-z0-9]+){0,3}-[0-9a-f]{4})"></a>', flags=re.MULTILINE)


def test_every_error_text_has_an_anchor_of_its_own_words():
    page, places = error_texts.page_of_errors(PACKAGE), error_texts.texts_with_places(PACKAGE)
    anchors = ANCHOR.findall(page)
    assert len(anchors) == len(set(anchors)) == page.count("\n- ") == len(places) > 900
    # It is the same wherever the text stands, and in a bookmark of another year.
    assert set(anchors) == {anchor_of(text) for text in places}
    assert anchor_of("tau must lie strictly\n  between 0 and 1") == "tau-must-lie-strictly-98e6"
    assert anchor_of("tau must lie strictly between 0 and 2") != "tau-must-lie-strictly-98e6"


@pytest.mark.parametrize("failed", [*(name for name in vars(errors) if name.startswith("FAILED")), "of a job"])
def test_a_release_that_failed_names_its_anchor(failed):
    text = jobs.FAILED if failed == "of a job" else getattr(errors, failed)
    [note] = errors.ReleaseFailed(text).__notes__
    page, anchor = re.search(r"See (\S+)#(\S+) of", note).groups()
    assert f"generated/{pathlib.PurePath(page).stem}" == made_pages.ERRORS
    assert f'id="{anchor}"' in error_texts.page_of_errors(PACKAGE)


def in_words(expression, **constants):
    parsed = {name: ast.parse(repr(text), mode="eval").body for name, text in constants.items()}
    return error_texts.in_words(ast.parse(expression, mode="eval").body, parsed)


READ_OFF = {
    "'tau must be below 1'": "tau must be below 1",
    "f'{name} must lie in {low_end:g} to {float(high)}'": "‹name› must lie in ‹low end› to …",
    "f'{_FAILED}: why' + ' not'": "failed: why not",
    "_FAILED.format(1)": "failed",
    'f\'give {"one" if one else "two of"} norm\'': "give (one / two of) norm",
    "str(error)": "",
    "message": "",
}


def test_texts_are_read_off_expressions():
    assert {expression: in_words(expression, _FAILED="failed") for expression in READ_OFF} == READ_OFF


def test_known_errors_are_on_the_page():
    page = error_texts.page_of_errors(PACKAGE)
    for words in (
        "tau must lie strictly between 0 and 1, got …",
        "the release did not complete, and nothing is released",
        "under replace the number of records is that of the table: leave num\\_records out",
    ):
        assert words in page


def test_made_pages_have_a_title_and_a_row_in_the_index():
    made = {"generated/one": "# One\n", **{f"generated/{page.slug}": f"# {page.title}\n" for page in PAGES}}
    listed = made_pages.table_of_made_pages({name: text for name, text in made.items() if name != "generated/one"})
    assert all(f"[{page.title}](generated/{page.slug}.md)" in listed for page in PAGES)
