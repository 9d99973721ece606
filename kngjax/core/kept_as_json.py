"""Objects that may be published are equal, copied and pickled by the JSON that they are kept as."""

import abc
from typing import Any


class AbstractKeptAsJson(abc.ABC):
    """Holds public facts alone, all of which are in its JSON."""

    @abc.abstractmethod
    def to_json(self) -> str:
        """Writes canonical JSON: sorted keys, shortest decimals that round-trip."""

    @classmethod
    @abc.abstractmethod
    def from_json(cls, text: str) -> Any:
        """Reads what `to_json` wrote."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_json, (self.to_json(),)
