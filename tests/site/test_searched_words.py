"""A search of the site finds every argument: its name stands in the entry of what takes it."""

import enum
import re

import kngjax as kng
from docs._generate.entries import page_of_names
from docs._generate.public_names import PAGES
from docs._generate.searched_words import arguments_of, documented, every_argument


def missing(name, one, page):
    """The arguments that the entry of a name does not have."""
    entry = re.search(rf"^::::::\{{py:\w+\}} {re.escape(name)}\b.*?^::::::$", page, flags=re.MULTILINE | re.DOTALL)
    for method, names in arguments_of(one).items():
        for argument in names:
            if entry is None or not re.search(rf"\b{argument}\b", entry[0]):
                yield f"{name} {method} {argument}"


def is_called(one):
    return not (isinstance(one, type) and issubclass(one, enum.Enum))


def test_every_argument_stands_in_its_entry():
    found, lost = 0, []
    for text, page in ((page_of_names(page), page) for page in PAGES):
        for name, one in documented(page):
            found += sum(map(len, arguments_of(one).values()))
            lost += missing(name, one, text) if is_called(one) else []
    assert found > 1500
    assert not lost


def test_an_argument_that_is_left_out_is_found():
    def f(first, second, **third): ...

    entry = "::::::{py:function} kngjax.f(first: Any) -> Any\n\n**Arguments:** `second`.\n::::::"
    assert not list(missing("kngjax.f", f, entry))
    assert list(missing("kngjax.f", f, entry.replace("second", "seconds"))) == ["kngjax.f  second"]
    assert len(list(missing("kngjax.g", f, entry))) == 2


def test_arguments_are_those_of_a_class_and_of_its_methods():
    found = arguments_of(kng.Guarantee)
    assert found["pure"] == found["bounded_range"] == ["epsilon", "adjacency"]
    assert found["of"] == ["unit"]
    assert "exact_delta" in found[""]
    # Common words that a search would leave out.
    assert {"of", "where", "what", "at"} <= every_argument()
