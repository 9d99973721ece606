"""The pages can be heard and skimmed: pictures have texts, and no level of headings is left out."""

import pathlib
import re

import pytest

from docs._generate import made_pages
from docs._generate.links import OUTSIDE

ROOT = pathlib.Path(__file__).parents[2]
WRITTEN = [*OUTSIDE, *sorted(made_pages.known_pages())]
FENCED = re.compile(r"^(`{3,}|:{3,}).*?^\1\s*$", flags=re.DOTALL | re.MULTILINE)
CELL = re.compile(r"^```\{code-cell\}.*?\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
# In one line, or after a mark in several.
ALTERNATIVE = re.compile(
    r"\A---\nmystnb:\n(?:  .*\n)*?  image:\n(?:    .*\n)*?    alt: (?:>-?\n((?: {6}.*\n)+)|(?!>)(.*)\n)"
)
# Shorter than this it names the picture, and does not say what is seen.
FEWEST_WORDS = 4


def text(page):
    return (ROOT / page).read_text(encoding="utf-8")


def levels(markdown):
    """Those of the headings in their order; what stands in a block of code is none."""
    return [len(marks) for marks in re.findall(r"^(#+) ", FENCED.sub("", markdown), flags=re.MULTILINE)]


def skips(found):
    """The places of headings more than one level below that before."""
    return [place for place, (before, after) in enumerate(zip([0, *found], found, strict=False)) if after > before + 1]


def pictures(markdown):
    """Of the pictures of a page and of its cells: the text that stands in place of each, "" of one without."""
    yield from re.findall(r"!\[([^\]]*)\]\(", FENCED.sub("", markdown))
    for cell in CELL.findall(markdown):
        if "plt.show()" in cell:
            found = ALTERNATIVE.match(cell)
            yield " ".join((found[1] or found[2]).split()) if found else ""


def test_a_level_that_is_left_out_is_found():
    assert levels("# A\n\n```sh\n# no heading\n```\n\n### B\n") == [1, 3]
    assert skips([1, 3]) == [1]
    assert skips([2, 1]) == [0]
    assert not skips([1, 2, 3, 2, 1, 2])
    assert list(wrong_headings("it", "# A\n\n### B\n\n# C\n")) == [
        "it has 2 titles",
        "it leaves a level of headings out",
    ]


def test_a_picture_without_a_text_is_found():
    cell = "```{code-cell} python\n---\nmystnb:\n  image:\n    alt: Seen so.\n---\nplt.show()\n```\n"
    assert list(pictures(f"![](a.png) ![two words](b.png)\n\n{cell}")) == ["", "two words", "Seen so."]
    assert list(pictures("```{code-cell} python\nplt.show()\n```\n")) == [""]
    assert list(pictures(cell.replace("Seen so.", ">-\n      Seen\n      so."))) == ["Seen so."]
    assert list(pictures(cell.replace("Seen so.", ">-"))) == [""]


def wrong_headings(name, markdown):
    """Faults in the headings of a page: several titles or none, or a level that is left out."""
    found = levels(markdown)
    if found.count(1) != 1:
        yield f"{name} has {found.count(1)} titles"
    if skips(found):
        yield f"{name} leaves a level of headings out"


@pytest.fixture(scope="module")
def made():
    return made_pages.made_pages()


def test_headings_of_a_page_skip_no_level(made):
    pages = {page: text(page) for page in WRITTEN} | made
    assert not [wrong for name, markdown in pages.items() for wrong in wrong_headings(name, markdown)]


def test_pictures_say_what_is_seen():
    said = [(page, alternative) for page in WRITTEN for alternative in pictures(text(page))]
    assert len(said) > 10
    assert not [one for one in said if len(one[1].split()) < FEWEST_WORDS]
