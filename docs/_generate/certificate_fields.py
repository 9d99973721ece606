"""The fields of a certificate, and of what it is made of, with what each says."""

import dataclasses

from docs._generate.entries import docstring
from docs._generate.signatures import annotation_in_words
from docs._generate.tables import arguments_in_words, table
from kngjax.accounting.guarantees import Guarantee
from kngjax.releases.certificate import Certificate
from kngjax.releases.division import Membership
from kngjax.releases.older_certificates import Mixture
from kngjax.releases.rounding import Rounding
from kngjax.sensitivity.gradients import Sensitivity

PARTS = (Certificate, Guarantee, Sensitivity, Rounding, Membership, Mixture)
_ABOUT = """# The fields of a certificate

`release.certificate` has these fields, and `release.to_json()` writes them under `certificate`, beside `value`, the
released numbers, and `published`, where a mechanism publishes more than these. Everything in it is public.

In JSON there is one key more, `proved_of_this_release`: the `epsilon` and `delta` that this very release costs, and
`rho` in place of them where no ε is stated; null is what is unknown. `mechanism` and `sampler` have their `type` and
every public setting. `guarantee` is `adjacency`, `kind`, and the numbers of its kind: `epsilon`, `delta`, `rho`."""


def page_of_certificate() -> str:
    """The whole page in MyST Markdown."""
    parts = [_ABOUT]
    for part in PARTS:
        parts += [f"## {part.__name__}", docstring(part).split("\n\n")[0], fields_of(part)]
    return "\n\n".join(parts) + "\n"


def fields_of(kind: type) -> str:
    """The table of the fields of a dataclass: name, type, and what its docstring says of each."""
    said = arguments_in_words(kind)
    return table(
        ["field", "type", "what it says"],
        (
            [f"`{field.name}`", f"`{annotation_in_words(field.type, paths=False)}`", said.get(field.name, "")]
            for field in dataclasses.fields(kind)
        ),
    )
