"""Searches what JAX and XLA write down for private data: dumps, lowered programs, the compilation cache.

A child process releases recognisable records with all of these switched on, and every file is searched. Snapshots of
arguments (--xla_dump_hlo_snapshots) hold the data by design and are not switched on; `kngjax.core.side_doors` refuses
them.
"""

import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from audits.every_mechanism import CASES
from kngjax.core import side_doors
from kngjax.core.arrays import float64

NUM_RECORDS = 24
# Part of the name of the program that closes over the records, to show that the search would find them.
_PLANTED = "planted_closure"
_LONGEST = 1800.0
_CHILD = "import sys; from audits import dumps; dumps._release_all(int(sys.argv[1]), sys.argv[2:])"


@dataclasses.dataclass(frozen=True)
class DumpSearch:
    """Counts the private records that a search found in dumps.

    **Arguments:** `mechanisms`: their names. `files`, `bytes_searched`: of all that was written, after decompression.
    `bytes_found`: of records, of sums over them, or of their decimals; 8 for each number. `bytes_planted`: the same in
    the dumps of a program that closes over the records.
    """

    mechanisms: tuple[str, ...]
    files: int
    bytes_searched: int
    bytes_found: int
    bytes_planted: int

    @property
    def passed(self) -> bool:
        """Nothing was found, by a search that finds what was planted."""
        return self.bytes_found == 0 < self.bytes_planted


def data_in_dumps(
    mechanisms: Sequence[str] | None = None, folder: str | pathlib.Path | None = None, seed: int = 0
) -> DumpSearch:
    """Releases recognisable records in a child process that dumps all it compiles, and searches what it wrote.

    Looked for are the float64 bytes of every record, of the sorted responses, of X'X, X'y and y'y, in own units and as
    the mechanisms have them, pairs of neighbours in float32, all of these in hexadecimal, and their decimals; in the
    files and in what zlib or zstandard make of them.

    **Arguments:** `mechanisms`: names among `audits.every_mechanism.CASES`, None for all. `folder`: where to write,
    None for one that is removed afterwards. `seed`: of the invented records.

    Raises RuntimeError where the child fails.
    """
    names = tuple(mechanisms or CASES)
    with tempfile.TemporaryDirectory() as temporary:
        root = pathlib.Path(folder or temporary).absolute()
        settings = {
            "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} --xla_dump_to={root / 'xla'} --xla_dump_hlo_as_text "
            "--xla_dump_hlo_as_proto",
            "JAX_COMPILATION_CACHE_DIR": str(root / "cache"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
            "JAX_DUMP_IR_TO": str(root / "lowered"),
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }
        done = subprocess.run(
            [sys.executable, "-c", _CHILD, str(seed), *names],
            env=os.environ | settings,
            capture_output=True,
            text=True,
            timeout=_LONGEST,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"the releases whose dumps were to be searched failed: {done.stderr[-2000:]}")
        sought = _Sought(*_records(seed))
        found: dict[bool, set[int]] = {True: set(), False: set()}
        kinds, files, size = set(), 0, 0
        for path in sorted(part for part in root.rglob("*") if part.is_file()):
            files += 1
            kinds.add(path.relative_to(root).parts[0])
            for content in _contents(path.read_bytes()):
                size += len(content)
                found[_PLANTED in str(path.relative_to(root))] |= sought.within(content)
    if kinds != {"xla", "cache", "lowered"}:
        raise RuntimeError(f"this JAX wrote {sorted(kinds)} alone: nothing is known of the rest")
    return DumpSearch(names, files, size, 8 * len(found[False]), 8 * len(found[True]))


def _records(seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    return random.uniform(0.1, 0.9, (NUM_RECORDS, 2)), random.uniform(0.1, 0.9, NUM_RECORDS)


class _Sought:
    """All forms in which a number of the records can be written."""

    def __init__(self, x: np.ndarray, y: np.ndarray):
        design = np.column_stack([np.ones(len(y)), x])
        arrays = [design, y, np.sort(y), design.T @ design, design.T @ y, np.asarray([y @ y]), x.mean(axis=0)]
        # And what each mechanism makes of them, which may be in units of its own.
        for make in CASES.values():
            case = make()
            arrays += jax.tree.leaves(case.mechanism.prepare(*case.given(x, y)))
        numbers = np.unique(np.concatenate([np.ravel(array) for array in arrays]).astype(np.float64))
        # Ones, and their sums, are no secret.
        numbers = numbers[numbers != np.round(numbers)]
        pairs = [
            np.stack([part[:-1], part[1:]], -1) for part in (y, np.sort(y), x.ravel(), x.T.ravel(), design.ravel())
        ]
        narrow = np.concatenate(pairs).astype("<f4")
        self._words = np.unique(np.concatenate([numbers.view("<u8"), np.ascontiguousarray(narrow).view("<u8").ravel()]))
        # Most words of a file are none of these by their lowest bytes alone.
        self._lowest = np.zeros(2**16, bool)
        self._lowest[self._words.view("<u2")[::4]] = True
        digits = [re.sub(r"\D", "", f"{number:.16e}".partition("e")[0]) for number in numbers]
        short = [re.sub(r"\D", "", f"{np.float32(number):.8e}".partition("e")[0]) for number in numbers]
        self._digits = {digit[:12]: place for place, digit in enumerate(digits)}
        self._short = {digit[:9]: place for place, digit in enumerate(short)}

    def within(self, content: bytes) -> set[int]:
        """Finds the places of those numbers that a file holds."""
        found = self._as_bytes(content)
        for run in re.findall(rb"(?<![0-9A-Fa-f])(?:[0-9A-Fa-f]{2}){8,}", content):
            found |= self._as_bytes(bytes.fromhex(run.decode()))
        for whole, rest in re.findall(rb"(\d)\.(\d{8,})", content):
            digits = (whole + rest).decode().lstrip("0")
            for known, length in ((self._digits, 12), (self._short, 9)):
                if len(digits) >= length and digits[:length] in known:
                    found.add(-1 - known[digits[:length]])
        return found

    def _as_bytes(self, content: bytes) -> set[int]:
        found: set[int] = set()
        for start in range(min(8, max(len(content) - 7, 0))):
            words = np.frombuffer(content, "<u8", (len(content) - start) // 8, start)
            words = words[self._lowest[words.view("<u2")[::4]]]
            found |= set(words[np.isin(words, self._words)].tolist())
        return found


def _contents(raw: bytes) -> Iterator[bytes]:
    yield raw
    decompressors: list[Any] = [zlib.decompress]
    try:
        import zstandard  # pyright: ignore[reportMissingImports]

        decompressors.append(lambda content: zstandard.ZstdDecompressor().decompress(content, max_output_size=2**30))
    except ImportError:
        pass
    for decompress in decompressors:
        try:
            yield decompress(raw)
        except Exception:
            continue


def _release_all(seed: int, names: Sequence[str]) -> None:
    x, y = _records(seed)
    with side_doors.allowed():
        for name in names:
            CASES[name]().release(x, y)
    with float64():

        def planted_closure(theta: Any) -> Any:
            return jnp.asarray(x) @ theta + jnp.asarray(y)

        jax.jit(planted_closure)(np.ones(2)).block_until_ready()
