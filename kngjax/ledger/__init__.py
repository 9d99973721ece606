"""A budget of privacy in an SQLite file: every release is debited before it is made, whoever makes it. Imports no JAX.

    reserve (on the disk) -> touch the data -> draw -> commit (on the disk) -> return the release

A reservation that is never committed stays spent: a refund for what failed would be an answer about the data that
nobody paid for. Debits are exact fractions, kept in rows of which each holds the SHA-256 of the one before; triggers
refuse to change or delete them, `verify` follows the chain and adds up again. Any number of processes may share the
file, and any of them may be killed at any moment.

It holds public labels, guarantees, settings of mechanisms and the releases themselves, so that what was paid for is
never lost, and nothing else of the data. Which reservations led to no release may depend on the data: the file is for
their owner.

What is debited is what is proved of the release: of the law, of the Markov chain that approximates it, and of the
rounding of its output. A release of which nothing is proved is refused, unless the ledger was created to allow it,
which every sum of it then says.

**What it cannot find out.** It guards against accidents, races and crashes, not against its owner:

- a file that was set back to an earlier copy, or deleted and made anew, as by restoring a backup. Note `head()`
  elsewhere, where the file's writer cannot change it: `verify(head=...)` refuses what does not contain it.
- an edited file whose digests were all computed again: the same note helps.
- a second ledger for the same data, or releases without one: their costs add up outside of its sight.
- one person with several records, or in several data sets: the guarantee is of one record of this one.
- whether a debit's guarantee is true. With `unproved="allow"` what is not proved is counted as if it were, and said.
- disks that say that they have written and have not, and network file systems whose locks do not work.
- when a release was made and how long it took: the file's own times and its rows tell whoever can read it.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
