"""Where the documentation is: the built site, the pages of a checkout, the address of an installed package."""

import email.message
import importlib.metadata
import pathlib
import subprocess
import sys

import pytest

from kngjax.command import cli
from kngjax.command.of_documentation import place

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def checkout(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# Documentation\n")
    (tmp_path / "pyproject.toml").write_text("")
    return tmp_path


def of_metadata(monkeypatch, *urls):
    found = email.message.Message()
    for url in urls:
        found["Project-URL"] = url
    monkeypatch.setattr(importlib.metadata, "metadata", lambda name: found)


def test_the_command_prints_a_page_that_exists(capfd):
    assert cli.main(["docs"]) == 0
    said = capfd.readouterr().out
    assert said.count("\n") == 1
    assert pathlib.Path(said.strip()).is_file()
    assert pathlib.Path(said.strip()).is_relative_to(ROOT)


def test_pages_of_a_checkout_until_the_site_is_built(checkout):
    assert place(checkout) == str(checkout / "docs" / "index.md")
    site = checkout / "output" / "site" / "index.html"
    site.parent.mkdir(parents=True)
    site.write_text("<html></html>")
    assert place(checkout) == str(site)


def test_the_address_of_an_installed_package(checkout, monkeypatch):
    """Its folder has pages of another package."""
    (checkout / "pyproject.toml").unlink()
    for urls, address in (
        (["Homepage, https://a.org", "Documentation, https://b.org/docs"], "https://b.org/docs"),
        (["Changelog, https://c.org", "repository, https://d.org/kngjax"], "https://d.org/kngjax"),
    ):
        of_metadata(monkeypatch, *urls)
        assert place(checkout) == address


def test_without_any_of_them_the_sources_are_named(tmp_path, monkeypatch, capfd):
    of_metadata(monkeypatch)
    with pytest.raises(FileNotFoundError, match="they are the folder docs/ of its sources"):
        place(tmp_path)
    monkeypatch.setattr("kngjax.__file__", str(tmp_path / "kngjax" / "__init__.py"))
    assert cli.main(["docs"]) == 2
    assert capfd.readouterr().err.startswith("kngjax: error: kngjax ")


def test_it_loads_no_jax():
    program = (
        "import sys\nfrom kngjax.command.cli import main\nassert main(['docs']) == 0\nassert 'jax' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
