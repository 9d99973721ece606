"""Half of a table of cases, in which nothing is missing that is about all choices but one."""

import itertools
from collections.abc import Iterator
from typing import Any


def half_fraction(*choices: tuple[Any, Any], odd: int = 0) -> Iterator[tuple[Any, ...]]:
    """The combinations of choices of two with an even number of second choices, or with an odd one.

    Leave any one choice out, and of the others every combination is there once.
    """
    for numbers in itertools.product(range(2), repeat=len(choices)):
        if sum(numbers) % 2 == odd:
            yield tuple(choice[number] for choice, number in zip(choices, numbers, strict=True))
