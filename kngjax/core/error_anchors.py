"""Makes anchors of error texts, of a text's own words, for the page of the site that lists all texts."""

import hashlib
import re

# The page is made by `docs/_generate/error_texts.py`.
PAGE = "error-texts.html"
# Words that a reader recognises, and hexadecimal digits that tell apart texts that begin alike.
_WORDS, _DIGITS = 4, 4


def anchor_of(text: str) -> str:
    """Makes the anchor of an error text: its first words, and digits of its digest: "tau-must-lie-strictly-1f0c".

    It depends on nothing but the text, however its lines are broken, and changes when the text does.
    """
    text = " ".join(text.split())
    words = re.findall(r"[a-z0-9]+", text.lower())[:_WORDS]
    return "-".join([*words, hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]])


def pointer(text: str) -> str:
    """Names the page and the anchor of a text in which nothing is filled in."""
    return f"{PAGE}#{anchor_of(text)}"
