"""Pages read well where they lie; on the site their links, and the order of its parts, are made from them."""

import posixpath
import re
from collections.abc import Mapping

# Pages outside of `docs/` that are pages of the site too.
OUTSIDE = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
# Where made pages lie, in `docs/`.
MADE = "generated"
_LINK = re.compile(r"(!?\[[^\]]*\]\()(?!https?:|#)([^)#\s]+)(#[^)]*)?\)", flags=re.DOTALL)
_NAME = re.compile(r"(?:kng(?:jax)?\.)?((?:[a-z]+\.)?[A-Za-z_]\w*(?:\.[a-z_]\w*)?)(?:\(.*\))?", flags=re.DOTALL)
_PART = re.compile(r"^## (.*)$", flags=re.MULTILINE)
# In a page: `<!-- README.md: Install, A mechanism by itself -->`, where the site has these parts of that page.
_PARTS_OF = re.compile(r"^<!-- (\S+\.md): (.+) -->$", flags=re.MULTILINE)


def name_of_outside(file: str) -> str:
    """The document of the site that shows a page outside of `docs/`: "generated/contributing"."""
    return f"{MADE}/{file.removesuffix('.md').lower()}"


def with_links_of_site(text: str, folder: str, target: str, known: frozenset[str]) -> str:
    """A page's text with its links as the site has them.

    Links between pages, and to pages outside of `docs/`, become links of the site. Of others that lead out of `docs/`
    the text stays; pictures stay what they are.

    **Arguments:** `folder`: of the page, from the root of the repository: "docs/tutorials", or "" for the README.
    `target`: the folder that the text will be read in. `known`: the pages of `docs/`, as "docs/ledger.md".
    """

    def moved(found: re.Match[str]) -> str:
        opening, named, anchor = found[1], found[2], found[3] or ""
        file = posixpath.normpath(posixpath.join(folder, named))
        if file in OUTSIDE:
            file = f"docs/{name_of_outside(file)}.md"
        elif file not in known and not opening.startswith("!"):
            return opening[1:-2]
        return f"{opening}{posixpath.relpath(file, target)}{anchor})"

    return _LINK.sub(moved, text)


def parts(text: str) -> dict[str, str]:
    """What stands under each heading of second level, by the headings, in their order."""
    pieces = _PART.split(text)[1:]
    return dict(zip(pieces[::2], pieces[1::2], strict=True))


def parts_of_index(index: str) -> dict[str, list[str]]:
    """The parts of the site, its headings of second level, and the documents that each links to, in their order."""
    return {
        title: list(dict.fromkeys(name.removesuffix(".md") for _, name, _ in _LINK.findall(body) if "../" not in name))
        for title, body in parts(index).items()
    }


def with_parts_of_others(text: str, pages: Mapping[str, str]) -> str:
    """A page with the parts of other pages that its comments name, so that what both show is written once.

    Where the page lies nobody sees the comment.

    **Arguments:** `pages`: the text of each page that may be named, with the links that it will have.

    Raises KeyError for a page or part that is not there.
    """

    def included(found: re.Match[str]) -> str:
        there = parts(pages[found[1]])
        return "\n\n".join(f"## {title}\n\n{there[title].strip()}" for title in found[2].split(", "))

    return _PARTS_OF.sub(included, text)


def trees(parts: dict[str, list[str]]) -> str:
    """The hidden tables of contents that Sphinx makes the navigation of."""
    return "\n".join(
        "\n".join(["```{toctree}", ":hidden:", f":caption: {title}", "", *documents, "```", ""])
        for title, documents in parts.items()
        if documents
    )


def named_in(code: str, known: frozenset[str]) -> str | None:
    """The full public name that code in a text is of: "kngjax.KNG" of "KNG" and "kng.KNG(...)"; None if it is of none.

    A name in small letters is one only where it is called or says whose it is, as `release` may be anything's.
    """
    found = _NAME.fullmatch(code)
    if found is None or f"kngjax.{found[1]}" not in known:
        return None
    plain = code == found[1] and code.islower() and "." not in code
    return None if plain else f"kngjax.{found[1]}"
