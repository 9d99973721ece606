"""Says beforehand what `release` and `sample` take for a mechanism, by the functions that decide it for them."""

import dataclasses
import textwrap

import numpy as np

from kngjax.chains.base import AbstractSampler
from kngjax.core.compiling import quick_compilation
from kngjax.data.schema import Schema
from kngjax.mechanisms.base import AbstractMechanism
from kngjax.mechanisms.declared_facts import require_declared
from kngjax.releases.certificate import Certificate, failures_of
from kngjax.releases.default_sampler import default_sampler
from kngjax.releases.draw_choice import draw_for


@dataclasses.dataclass(frozen=True, eq=False)
class DrawChoice:
    """Holds what `kngjax.which` found. All of it is public; print it to read it in words.

    **Arguments:** the first six are of `kngjax.release`, the last two of `kngjax.sample`.

    - `mechanism`: as asked. `num_records`: as asked.
    - `certificate`: names the sampler, the reason for it, the cost that a ledger is debited, and the assurance; None
        where the release is refused.
    - `duration`: roughly, in words. `failures`: what can make a release fail. `refusal`: why a release is refused, and
        what to take instead; else None.
    - `sampler`: None for a mechanism that draws from its own law. `reason`: why it is taken; None where `sample`
        refuses as a release does.
    """

    mechanism: AbstractMechanism
    num_records: int | None
    certificate: Certificate | None
    duration: str | None
    failures: tuple[str, ...] | None
    refusal: str | None
    sampler: AbstractSampler | None
    reason: str | None

    def __repr__(self) -> str:
        count = "records whose number is not known" if self.num_records is None else f"{self.num_records:,} records"
        lines = [f"{self.mechanism!r}, of {count}"]
        if self.certificate is None:
            lines.append(f"release: refused, and nothing is spent: {self.refusal}")
        else:
            lines += [
                f"release: {self.certificate.summary()}",
                f"- why: {self.certificate.reason}",
                f"- assurance: {dict(self.certificate.rows())['assurance']}",
                f"- time of a release: {self.duration}",
                f"- can fail by: {'; '.join(self.failures or ())}",
            ]
        drawn = "independent draws" if self.sampler is None else self.sampler
        lines.append("sample: refused" if self.reason is None else f"sample: {drawn}. {self.reason}")
        return "\n".join(textwrap.fill(line, 110, subsequent_indent="  ", break_on_hyphens=False) for line in lines)


def which(mechanism: AbstractMechanism, num_records: int | None = None) -> DrawChoice:
    """Says how `release` and `sample` would draw from a mechanism, why, what it costs, and what is refused.

    Nothing is drawn or spent, and no data are needed: `print(kngjax.which(mechanism, 10_000))`.

    **Arguments:** `mechanism`: any with a known number of columns. `num_records`: n; None where nobody knows it. Under
    add_remove n is private, so a release does not use it.

    Raises TypeError for anything but a mechanism, and ValueError where bounds leave the number of columns open.
    """
    if not isinstance(mechanism, AbstractMechanism):
        raise TypeError(f"mechanism must be an object like kngjax.KNG(...), not a {type(mechanism).__name__}")
    if num_records is not None and (not isinstance(num_records, int | np.integer) or num_records < 1):
        raise ValueError(f"num_records must be a whole number of at least 1 or None, not {num_records!r}")
    if (dimension := mechanism.dimension) is None:
        raise ValueError("bounds leave the number of columns open: give it, Bounds(..., columns=5)")
    sampler, reason = default_sampler(mechanism, dimension, num_records)
    try:
        require_declared(mechanism, dimension, sampler)
    except ValueError:
        # Of which a release says more.
        sampler = reason = None
    facts = Schema(dimension, mechanism.adjacency.public_count(num_records))
    try:
        with quick_compilation():
            draw = draw_for(mechanism, None, facts)
            certificate = Certificate.of(draw, facts)
    except (ValueError, TypeError, OverflowError) as refused:
        return DrawChoice(mechanism, num_records, None, None, None, str(refused), sampler, reason)
    failures = (*failures_of(mechanism), *draw.failures)
    return DrawChoice(mechanism, num_records, certificate, draw.duration, failures, None, sampler, reason)
