"""Tables of things that are costly to make, so that importing a test file compiles nothing."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any


class MadeOnce(Mapping[str, Any]):
    """Names and what they stand for, each made by its function when it is first looked up."""

    def __init__(self, makers: Mapping[str, Callable[[], Any]]):
        self.makers: dict[str, Callable[[], Any]] = dict(makers)
        self.made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self.made:
            self.made[name] = self.makers[name]()
        return self.made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.makers)

    def __len__(self) -> int:
        return len(self.makers)
