"""What is printed, word by word: where its lines break is nobody's to compare."""


def words_of(shown):
    """The words of what an object prints as, with one space between them."""
    return " ".join(str(shown).split())
