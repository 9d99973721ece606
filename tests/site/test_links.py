"""Links and navigation of the site, made from pages that read well where they lie."""

import importlib.metadata
import pathlib
import re

import pytest

from docs._generate import links, made_pages
from tests.pages import CELL, EXECUTED, text

INDEX = """# Title

## Tutorials

| question | page |
| --- | --- |
| a | [A](tutorials/a.md) |

## How-to

[B](b.md#part), [B again](b.md), [out](../README.md).

## Empty
"""


MOVED = {
    "[a](ledger.md#x)": "[a](../ledger.md#x)",
    "[a](../README.md)": "[a](../generated/readme.md)",
    "[two\nlines](../CONTRIBUTING.md#words)": "[two\nlines](../generated/contributing.md#words)",
    "[a](../configs/b.toml)": "a",
    "![a](../results/b.png)": "![a](../../results/b.png)",
    "[a](https://b.org/c.md)": "[a](https://b.org/c.md)",
    "[a](#b)": "[a](#b)",
}


def test_links_lead_to_pages_of_the_site():
    known = frozenset({"docs/ledger.md"})
    found = {text: links.with_links_of_site(text, "docs", "docs/tutorials", known) for text in MOVED}
    assert found == MOVED


def test_the_parts_of_the_index_are_those_of_the_site():
    parts = links.parts_of_index(INDEX)
    assert parts == {"Tutorials": ["tutorials/a"], "How-to": ["b"], "Empty": []}
    trees = links.trees(parts)
    assert trees.count("```{toctree}") == 2
    assert ":caption: How-to\n\nb\n```" in trees


def test_parts_of_other_pages_stand_where_comments_name_them():
    pages = {"README.md": "# R\n\n## One\n\n```sh\n1\n```\n\n## Two\n\n2\n\n## Three\n"}
    text = "a\n\n<!-- README.md: Two, One -->\n\nb <!-- README.md: Two -->\n"
    included = "a\n\n## Two\n\n2\n\n## One\n\n```sh\n1\n```\n\nb <!-- README.md: Two -->\n"
    assert links.with_parts_of_others(text, pages) == included
    for wrong in ("<!-- README.md: Four -->", "<!-- OTHER.md: One -->"):
        with pytest.raises(KeyError):
            links.with_parts_of_others(wrong, pages)


def test_the_index_shows_the_first_example_of_the_readme():
    site = made_pages.with_site((made_pages.ROOT / "docs" / "index.md").read_text(encoding="utf-8"), "index", {})
    readme = (made_pages.ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n.*?^```$", readme, flags=re.DOTALL | re.MULTILINE)
    assert blocks[0] in site
    assert "\n## Install\n" in site
    assert "[studies](studies.md)" in site


def test_the_navigation_has_every_page():
    made = {"generated/owner": "# kngjax.owner\n"}
    site = made_pages.with_site((made_pages.ROOT / "docs" / "index.md").read_text(encoding="utf-8"), "index", made)
    trees = site.split("```{toctree}", 1)[1]
    for page in made_pages.known_pages() - {"docs/index.md"}:
        assert f"\n{pathlib.PurePosixPath(page).relative_to('docs').with_suffix('')}\n" in trees
    parts = [line.removeprefix(":caption: ") for line in trees.splitlines() if line.startswith(":caption:")]
    assert parts == ["Tutorials", "How-to", "Reference", "Explanation", "Proofs", "Project"]
    assert made_pages.PLACE not in site
    assert "[kngjax.owner](generated/owner.md)" in site


def test_code_that_is_a_public_name_leads_to_its_entry():
    known = frozenset({"kngjax.KNG", "kngjax.Study.by", "kngjax.release"})
    named = {
        "KNG": "kngjax.KNG",
        "kng.KNG(loss, bounds)": "kngjax.KNG",
        "Study.by": "kngjax.Study.by",
        "release": None,
        "kng.release": "kngjax.release",
        "release(mechanism, X)": "kngjax.release",
        "Laplace": None,
        "KNG and more": None,
    }
    assert {code: links.named_in(code, known) for code in named} == named


def test_what_cells_printed_is_kept_by_the_code_that_printed_it(tmp_path, monkeypatch):
    (tmp_path / "kngjax").mkdir()
    source = tmp_path / "kngjax" / "a.py"
    source.write_text('"""One."""\nx = 1\ndef f():\n    """Two."""\n    return "Two."\n')
    monkeypatch.setattr(made_pages, "ROOT", tmp_path)
    monkeypatch.setattr(importlib.metadata, "distributions", lambda: [])
    before = made_pages.digest_of_sources()
    assert before == made_pages.digest_of_sources()
    # Words that no cell prints.
    source.write_text('"""Another."""\n\nx = 1  # more\ndef f():\n    """Words."""\n    return "Two."\n')
    assert made_pages.digest_of_sources() == before
    source.write_text(source.read_text().replace('return "Two."', 'return "Words."'))
    assert made_pages.digest_of_sources() != before


def test_no_cell_prints_a_docstring():
    cells = [cell for page in EXECUTED for cell in CELL.findall(text(page))]
    assert len(cells) > 50
    assert not [cell for cell in cells if re.search(r"\bhelp\(|__doc__|^\s*\?|\?\s*$", cell, flags=re.MULTILINE)]


def test_notebooks_say_their_language_where_no_cell_runs():
    for page in [page for page in EXECUTED if CELL.search(text(page))]:
        document = page.relative_to(made_pages.ROOT / "docs").with_suffix("").as_posix()
        assert "\n  language: python\n---\n" in made_pages.with_site(text(page), document, {})


def test_only_pages_that_changed_are_written(tmp_path, monkeypatch):
    monkeypatch.setattr(made_pages, "ROOT", tmp_path)
    folder = tmp_path / "docs" / links.MADE
    folder.mkdir(parents=True)
    (folder / "old.md").write_text("gone")
    made_pages.write({"generated/a": "1"})
    written = (folder / "a.md").stat().st_mtime_ns
    made_pages.write({"generated/a": "1"})
    assert [file.name for file in folder.iterdir()] == ["a.md"]
    assert (folder / "a.md").stat().st_mtime_ns == written
