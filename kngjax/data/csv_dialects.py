"""How a CSV file is written: what lies between its cells, how its numbers and letters are, where records end. Public.

    numbers    [+-]?(digits[decimal digits] | decimal digits)([eE][+-]?digits)?, whole digits in threes where thousands
               is said: 1.234,5 with decimal = "," and thousands = "."
    all else   stays as it is; what is a number by other marks alone, as 1.5 beside decimal = ",", is a missing cell

What a cell becomes depends on it and on these settings alone.
"""

import dataclasses
import functools
import re
from typing import Any

from kngjax.core.errors import UnfitShape
from kngjax.data import cells

SEPARATORS = (",", ";", "\t", "|", ":", "^", "~")
_THOUSANDS = (",", ".", " ", "'", "_", "\u2019", "\u00a0", "\u202f", "\u2009")
# Encodings whose line breaks are the byte of ASCII; UTF-16 is read where the file's own mark says so.
_BYTES = ("utf-8", "latin-1", "cp1250", "cp1251", "cp1252", "cp850", "iso-8859-2", "iso-8859-15", "mac-roman")
_BYTES += ("gb18030", "shift_jis", "euc-jp", "euc-kr", "big5")
# No encoding that a job names may move the end of the header line: it would tell whether a record is what it names.
ENCODINGS = (*_BYTES, "utf-16")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Dialect:
    """Says how a CSV file is written. Public, and said without looking at its records.

    **Arguments:** `separator`: what lies between cells. `decimal`: the mark of decimals, "." or ",". `thousands`: the
    mark between digits in threes, or None. `encoding`: of the letters; UTF-8, and UTF-16 by its mark, need not be said.
    `quoted_line_breaks`: whether a line break within quotes is part of a cell, as in RFC 4180. Then the file must be
    well formed: one quote too many would join the records of other people, so a certificate says that this is assumed.

    `separator` may be one of the marks of numbers, as "," beside `decimal=","`: cells that hold that mark are quoted
    then, or else the line has more cells than names.

    **Raises:** `ValueError` for what none of these can be, and where `decimal` and `thousands` are one mark.
    """

    separator: str = ","
    decimal: str = "."
    thousands: str | None = None
    encoding: str = "utf-8"
    quoted_line_breaks: bool = False

    def __post_init__(self) -> None:
        for name, known in (("separator", SEPARATORS), ("decimal", (".", ",")), ("encoding", ENCODINGS)):
            if (given := getattr(self, name)) not in known:
                raise ValueError(f"{name}: must be one of {', '.join(map(repr, known))}; not {given!r}")
        if self.thousands is not None and self.thousands not in _THOUSANDS:
            marks = ", ".join(map(repr, _THOUSANDS))
            raise ValueError(f"thousands: must be one of {marks}; not {self.thousands!r}")
        if self.thousands == self.decimal:
            raise ValueError(f"thousands: must be another mark than that of decimals, {self.decimal!r}")
        if not isinstance(self.quoted_line_breaks, bool):
            raise ValueError(f"quoted_line_breaks: must be true or false, not {self.quoted_line_breaks!r}")

    @property
    def said(self) -> dict[str, Any]:
        """Returns the settings that are not those of every CSV file, JSON-ready."""
        every = {field.name: field for field in dataclasses.fields(self)}
        return {name: given for name, one in every.items() if (given := getattr(self, name)) != one.default}

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Lists, for certificates, what a guarantee assumes about how the file is written."""
        if not self.quoted_line_breaks:
            return ()
        return (
            "the CSV file is well formed, as RFC 4180 has it: each record's quotes are its own, so that line breaks "
            "within quotes are of one record, and nobody's record joins or divides those of others",
        )

    @property
    def has_plain_numbers(self) -> bool:
        """Tells whether numbers are written as `kngjax.data.cells` reads them."""
        return self.decimal == "." and self.thousands is None

    @functools.cached_property
    def _number(self) -> re.Pattern[str]:
        mark, whole = re.escape(self.decimal), "[0-9]+"
        if self.thousands is not None:
            whole = rf"(?:[0-9]{{1,3}}(?:{re.escape(self.thousands)}[0-9]{{3}})+|[0-9]+)"
        return re.compile(rf"[+-]?(?:{whole}(?:{mark}[0-9]*)?|{mark}[0-9]+)(?:[eE][+-]?[0-9]+)?")

    def plain(self, cell: str | None) -> str | None:
        """Writes a cell's number as `kngjax.data.cells` reads it.

        Other text stays as it is; None for what is a number by other marks alone.
        """
        if cell is None or self.has_plain_numbers:
            return cell
        text = cells.normal(cell)
        if self._number.fullmatch(text) is not None:
            return text.replace(self.thousands or "", "").replace(self.decimal, ".")
        return None if cells.NUMBER.fullmatch(text) is not None else cell

    def codec(self, mark: bytes) -> tuple[str, int]:
        """Returns the name of the encoding for Python, and how many bytes a mark at the start of the file has.

        **Arguments:** `mark`: the file's first bytes, three where it has so many. Raises UnfitShape for UTF-16 without
        its mark, and for its mark beside another encoding, in which one record could be several lines.
        """
        by_mark = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}.get(mark[:2])
        if self.encoding in ("utf-8", "utf-16") and by_mark is not None:
            return by_mark, 2
        if by_mark is not None:
            raise UnfitShape("encoding: the file has the mark of UTF-16: leave the encoding out")
        if self.encoding == "utf-16":
            raise UnfitShape("encoding: the file has no mark of UTF-16: write it with its mark, or as UTF-8")
        if self.encoding == "utf-8":
            return "utf-8", 3 if mark == b"\xef\xbb\xbf" else 0
        return self.encoding, 0


def advice(header: list[str]) -> str:
    """Tells which setting may be missing where a header line was read as these names; empty where none is likely."""
    text = "".join(header)
    if any("\x00" in name for name in header):
        return "The bytes look like UTF-16 without its mark: write the file with it, or as UTF-8."
    if not any(map(str.isalnum, text)):
        return "If the names stand in a later line, take out those before it."
    if len(header) == 1:
        for mark in (";", "\t", "|", ",", ":", "^", "~"):
            if mark in text:
                written = repr(mark).strip("'")
                return f'If cells lie between {mark!r}, say separator = "{written}".'
    if "\ufffd" in text:
        return 'Letters of it are no UTF-8: say encoding, like "cp1252" or "latin-1".'
    return ""
