"""Small releases with hostile names, and what tests read off a page."""

import html.parser
import itertools

import numpy as np
import pandas as pd

import kngjax as kng

NAMED = '<script>alert("x")</script>'
LEVELS = ("</script>", "<b>south</b>")


def people(seed=0, number=300):
    """Makes up a table whose column and levels have names that would run, were they not escaped."""
    random = np.random.default_rng(seed)
    return pd.DataFrame({NAMED: random.uniform(0, 10, number), "region": random.choice(LEVELS, number)})


def study_of(adjacency="replace", ledger=None):
    """Makes a study of these people."""
    facts = {"bounds": {NAMED: (0.0, 10.0)}, "levels": {"region": LEVELS}}
    return kng.Study(people(), **facts, adjacency=adjacency, ledger=ledger)


def paid_study(folder, adjacency="replace"):
    """Makes a study of these people on a ledger in a folder; returns both."""
    file = folder / "people.ledger"
    ledger = kng.Ledger.create(file, kng.Budget.pure(2), adjacency=adjacency, dataset="people <&>")
    return study_of(adjacency, ledger), ledger


class Outline(html.parser.HTMLParser):
    """Reads a page: its elements with their attributes, in order, and the texts of some."""

    def __init__(self, page):
        super().__init__()
        self.elements, self.open, self.texts = [], [], []
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in {"meta"}:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        self.texts.append((self.open[-1] if self.open else "", data))

    def named(self, tag):
        """The attributes of every element of this name."""
        return [attributes for name, attributes in self.elements if name == tag]


def require_a_good_page(page):
    """Asserts what every page promises: a title, headings in order, names, nothing from elsewhere or that runs."""
    seen = Outline(page)
    assert page.startswith("<!doctype html>\n<html lang=")
    levels = [int(tag[1]) for tag, _ in seen.elements if tag in {"h1", "h2", "h3", "h4"}]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert [one.get("type") for one in seen.named("script")] in ([], ["application/json"])
    every = [value for _, attributes in seen.elements for value in attributes.values() if value]
    assert not [value for value in every if "//" in value or value.startswith(("javascript:", "data:"))]
    assert not {tag for tag, _ in seen.elements} & {"a", "img", "link", "iframe", "object", "base", "form"}
    assert not [name for _, attributes in seen.elements for name in attributes if name.startswith("on")]
    assert [one for one in seen.named("meta") if "default-src 'none'" in (one.get("content") or "")]
    assert [one for one in seen.named("meta") if one.get("name") == "viewport"]
    ids = [attributes["id"] for _, attributes in seen.elements if "id" in attributes]
    assert len(set(ids)) == len(ids)
    for drawing in seen.named("svg"):
        assert drawing["role"] == "img"
        assert {drawing["aria-labelledby"], drawing["aria-describedby"]} <= set(ids)
    tables = len(seen.named("table"))
    assert tables == len(seen.named("caption")) == sum("aria-label" in one for one in seen.named("div"))
    assert all(one["scope"] in {"col", "row"} for one in seen.named("th"))
    return seen
