"""Pages that are made from the code are written before Sphinx reads, and others are read with the links of the site."""

from sphinx.application import Sphinx

from docs._generate.links import MADE
from docs._generate.made_pages import made_pages, outside_pages, with_site, write


def setup(app: Sphinx) -> dict[str, bool]:
    """An extension of Sphinx."""
    made: dict[str, str] = {}

    def make(_: Sphinx) -> None:
        made.update(made_pages())
        write(made | outside_pages())

    def read(_: Sphinx, document: str, source: list[str]) -> None:
        if not document.startswith(f"{MADE}/"):
            source[0] = with_site(source[0], document, made)

    app.connect("builder-inited", make)
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
