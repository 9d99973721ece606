"""A picture without a text in its place is a warning, whether a page has it or a cell drew it."""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging

_LOGGER = logging.getLogger(__name__)


class RequireTexts(SphinxPostTransform):
    """Looks at every picture, once it is settled which output of a cell is shown."""

    default_priority = 900

    def run(self, **_: object) -> None:
        """Warns of each picture whose text is absent or empty."""
        for image in self.document.findall(nodes.image):
            if not str(image.get("alt", "")).strip():
                cure = "write it in the brackets of ![...], or under mystnb: image: alt: of the cell"
                _LOGGER.warning("a picture has no alternative text: %s", cure, location=image, type="accessibility")


def setup(app: Sphinx) -> dict[str, bool]:
    """An extension of Sphinx."""
    app.add_post_transform(RequireTexts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
