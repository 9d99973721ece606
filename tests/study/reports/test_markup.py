"""Whatever is not markup is escaped, and JSON within a page neither ends its element nor changes."""

import json

import pytest

from kngjax.study.reports.markup import document_in, element, embedded, joined

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "<!-- <script>",
    '"><img src=x onerror=alert(1)>',
    "'; DROP TABLE people",
    "&lt;b&gt;",
    "\u202ereversed",
    "\u061cmark",
    "\ud800",
    "\x00\x1b[31m",
)


@pytest.mark.parametrize("text", HOSTILE)
def test_text_and_attributes_are_escaped(text):
    made = element("p", text, title=text)
    inside = made.removeprefix("<p ").removesuffix("</p>")
    assert "<" not in inside
    assert inside.count(">") == 1
    assert inside.count('"') == 2
    made.encode("utf-8")
    assert not {"\u202e", "\u061c", "\x00", "\x1b"} & set(made)


def test_markup_is_kept_and_none_is_left_out():
    assert element("p", element("b", "a < b"), None, " & c") == "<p><b>a &lt; b</b> &amp; c</p>"
    assert element("rect", class_="one", aria_label=None) == '<rect class="one"/>'
    assert joined("<", element("i", 1)) == "&lt;<i>1</i>"


@pytest.mark.parametrize("text", HOSTILE)
def test_json_comes_back_and_holds_no_mark_of_html(text):
    document = {text: [text, 0.1, None]}
    made = embedded(document)
    _, inside = made.split(">", 1)
    assert not set("<>&") & set(inside.removesuffix("</script>"))
    assert document_in(f"<p>{made}</p>") == document
    assert json.loads(inside.removesuffix("</script>")) == document


def test_a_page_with_another_or_no_document_is_refused():
    with pytest.raises(ValueError, match="no report of kngjax"):
        document_in("<p>nothing</p>")
    with pytest.raises(ValueError, match="once"):
        document_in(embedded(1) + embedded(2))
