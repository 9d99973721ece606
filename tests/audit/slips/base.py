"""What a slip is."""

from typing import NamedTuple


class Slip(NamedTuple):
    """A slip. **Arguments:** `old`: exists once in `file`, and becomes `new`. `tests`: of which one must fail."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


def slip(name: str, file: str, old: str, new: str, *tests: str) -> Slip:
    """A slip in a room of the package, seen by these files or tests."""
    return Slip(name, f"kngjax/{file}.py", old, new, tuple(f"tests/{test}" for test in tests))
