"""The pages that are made from the code, and those of the repository with the links of the site."""

import ast
import hashlib
import importlib.metadata
import pathlib

from docs._generate.certificate_fields import page_of_certificate
from docs._generate.command_line import page_of_commands
from docs._generate.entries import page_of_names
from docs._generate.error_texts import page_of_errors
from docs._generate.links import (
    MADE,
    OUTSIDE,
    name_of_outside,
    parts_of_index,
    trees,
    with_links_of_site,
    with_parts_of_others,
)
from docs._generate.public_names import PAGES
from docs._generate.tables import table
from docs._generate.toml_keys import page_of_keys
from kngjax.core.error_anchors import PAGE

ROOT = pathlib.Path(__file__).parents[2]
# Of the index: what stands in its place on the site.
PLACE = "<!-- the reference that the site is built with -->"
# The page that errors name, `kngjax.core.error_anchors`.
ERRORS = f"{MADE}/{PAGE.removesuffix('.html')}"
# The end of a notebook's header.
_KERNEL = "  display_name: Python 3\n"


def made_pages() -> dict[str, str]:
    """The pages of the reference by their documents, in reading order."""
    names = {f"{MADE}/{page.slug}": page_of_names(page) for page in PAGES}
    return names | {
        f"{MADE}/certificate-fields": page_of_certificate(),
        f"{MADE}/toml-keys": page_of_keys(),
        f"{MADE}/command-line": page_of_commands(),
        ERRORS: page_of_errors(ROOT / "kngjax"),
    }


def table_of_made_pages(pages: dict[str, str]) -> str:
    """For the index: each page of the reference, and the names that it has."""
    says = {f"{MADE}/{page.slug}": page.says for page in PAGES} | {
        f"{MADE}/certificate-fields": "What a certificate says, field by field.",
        f"{MADE}/toml-keys": "What a job's file may have, with types and defaults.",
        f"{MADE}/command-line": "Commands, arguments and exit statuses.",
        ERRORS: "What an error says, and what to do about it.",
    }
    rows = ([f"[{text.splitlines()[0].removeprefix('# ')}]({name}.md)", says[name]] for name, text in pages.items())
    return table(["page", "what it has"], rows)


def digest_of_sources() -> str:
    """Of all that decides what cells print: the package's code, and the versions of what it computes with.

    Comments, docstrings and the layout of lines decide nothing: no cell prints them.
    """
    versions = sorted(f"{one.name} {one.version}" for one in importlib.metadata.distributions())
    digest = hashlib.sha256("\n".join(versions).encode())
    for file in sorted((ROOT / "kngjax").rglob("*.py")):
        digest.update(f"{file.relative_to(ROOT).as_posix()}\0{_without_words(file.read_text('utf-8'))}".encode())
    return digest.hexdigest()[:16]


def _without_words(source: str) -> str:
    """The syntax of a module without its docstrings and comments."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            del node.body[0]
    return ast.dump(tree)


def known_pages() -> frozenset[str]:
    """The hand-written pages of `docs/`, from the root of the repository."""
    files = (file.relative_to(ROOT) for file in (ROOT / "docs").rglob("*.md"))
    return frozenset(file.as_posix() for file in files if file.parts[1] not in (MADE, "_generate"))


def write(pages: dict[str, str]) -> None:
    """Writes those whose text has changed, so that Sphinx reads no other again, and removes what is made no more."""
    folder = ROOT / "docs" / MADE
    folder.mkdir(exist_ok=True)
    wanted = {ROOT / "docs" / f"{name}.md": text for name, text in pages.items()}
    for file in folder.glob("*.md"):
        if file not in wanted:
            file.unlink()
    for file, text in wanted.items():
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")


def outside_pages() -> dict[str, str]:
    """The pages of the site that show those outside of `docs/`."""
    return {name_of_outside(file): text for file, text in _outside_pages(f"docs/{MADE}").items()}


def _outside_pages(target: str) -> dict[str, str]:
    known = known_pages()
    return {file: with_links_of_site((ROOT / file).read_text(encoding="utf-8"), "", target, known) for file in OUTSIDE}


def with_site(text: str, document: str, made: dict[str, str]) -> str:
    """A hand-written page as the site has it; the index with the pages of the reference, and with the navigation.

    **Arguments:** `document`: the page's path in `docs/`, without its suffix. `made`: what `made_pages` made.
    """
    if document == "index":
        parts = parts_of_index(text)
        parts["Reference"] = [*made, *parts["Reference"]]
        parts["Project"] = [name_of_outside(file) for file in OUTSIDE]
        text = f"{text.replace(PLACE, table_of_made_pages(made))}\n\n{trees(parts)}"
    folder = str(pathlib.PurePosixPath("docs", document).parent)
    linked = with_links_of_site(text, folder, folder, known_pages() | {f"docs/{name}.md" for name in made})
    # Where cells do not run nothing else says in which language they are.
    in_python = linked.replace(_KERNEL, f"{_KERNEL}  language: python\n", 1)
    return with_parts_of_others(in_python, _outside_pages(folder))
