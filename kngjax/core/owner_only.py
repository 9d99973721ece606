"""Objects made from private data that are not released: they say so, and refuse to become numbers, lists or files."""

import dataclasses
from typing import Any, ClassVar, NoReturn, TypeVar, dataclass_transform

# The banner of whatever shows private numbers to their owner.
OWNER_BANNER = "OWNER ONLY: not private, do not publish"
_Kind = TypeVar("_Kind", bound=type)


class _Dictionary:
    """Stands in for `__dict__`, which objects with slots lack, so that `vars` fails with the sentence of refusal."""

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return {} if instance is None else instance._refuse()


class OwnerOnly:
    """Shows a label of what only the data owner may see, and refuses every way out but its named attributes.

    Attributes and methods that a subclass names are the owner's own and stay open. This stops accidents: a log line, a
    crash report, a cache, an array made of the wrong thing. It stops nobody who wants the numbers.
    """

    __slots__ = ()
    __dict__ = _Dictionary()  # pyright: ignore[reportAssignmentType]

    # The sentence of a refusal ends with what to do instead.
    instead: ClassVar[str] = "publish what kngjax.release returns"

    def __repr__(self) -> str:
        return f"<{type(self).__name__}; OWNER ONLY, computed from private data, not a release>"

    def __str__(self) -> str:
        return repr(self)

    def __format__(self, specification: str) -> str:
        return repr(self)

    def __dir__(self) -> list[str]:
        return sorted({name for kind in type(self).__mro__ for name in vars(kind)})

    def _refuse(self, *arguments: Any, **options: Any) -> NoReturn:
        raise TypeError(
            f"a {type(self).__name__} is computed from private data: it is not pickled, copied, converted to numbers, "
            f"or taken apart; {self.instead}"
        )

    __reduce__ = __reduce_ex__ = __copy__ = __deepcopy__ = __replace__ = _refuse
    __array__ = __float__ = __int__ = __complex__ = __index__ = __bool__ = _refuse
    __iter__ = __len__ = __getitem__ = __contains__ = __reversed__ = _refuse


class _Fields:
    """The fields of a dataclass, for the class alone: `dataclasses.asdict` and `replace` ask the object and fail."""

    def __init__(self, fields: Any):
        self._fields = fields

    def __get__(self, instance: OwnerOnly | None, owner: type | None = None) -> Any:
        return self._fields if instance is None else instance._refuse()


def without_fields(kind: _Kind) -> _Kind:
    """Changes an `OwnerOnly` dataclass or Equinox module so that `dataclasses.asdict` refuses its objects."""
    kind.__dataclass_fields__ = _Fields(kind.__dataclass_fields__)
    return kind


@dataclass_transform(frozen_default=True, eq_default=False)
def owner_only(kind: _Kind) -> _Kind:
    """Makes a frozen dataclass of an `OwnerOnly`, equal to itself alone, that neither `vars` nor `asdict` takes apart.

    Equinox modules rest in a dictionary, as JAX needs them: for those `without_fields` is all there is.
    """
    made = dataclasses.dataclass(frozen=True, eq=False, repr=False, slots=True)(kind)
    return without_fields(made)
