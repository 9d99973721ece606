"""One line of the table of figures."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Finding:
    """One line of the table.

    **Arguments:** `what`: was measured. `found`: in words with its number. `passed`: whether it is as promised.
    """

    what: str
    found: str
    passed: bool

    def __str__(self) -> str:
        return f"{'ok    ' if self.passed else 'FAILED'}  {self.what:48} {self.found}"
