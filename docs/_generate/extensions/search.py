"""The search of the site leaves out words like "the", and none that is an argument, as `where` is."""

from sphinx.application import Sphinx
from sphinx.search.en import SearchEnglish

from docs._generate.searched_words import every_argument


class SearchWithArguments(SearchEnglish):
    """Indexes English without the words that say nothing."""

    stopwords = frozenset(SearchEnglish.stopwords) - every_argument()


def setup(app: Sphinx) -> dict[str, bool]:
    """An extension of Sphinx."""
    app.add_search_language(SearchWithArguments)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
