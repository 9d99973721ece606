"""Names the folder in which what cells printed is kept, where cells run at all."""

from sphinx.application import Sphinx
from sphinx.config import Config

from docs._generate.made_pages import ROOT, digest_of_sources


def _name(_: Sphinx, config: Config) -> None:
    # `-D nb_execution_cache_path=FOLDER` names another one, whose outputs may be of other code.
    if config.nb_execution_mode == "cache" and not config.nb_execution_cache_path:
        config.nb_execution_cache_path = str(ROOT / "output" / "executed" / digest_of_sources())


def setup(app: Sphinx) -> dict[str, bool]:
    """An extension of Sphinx."""
    app.connect("config-inited", _name)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
