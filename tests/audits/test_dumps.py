"""Private records are not in what JAX and XLA write down; the search finds them where they were planted."""

import functools
import zlib

import jax
import numpy as np
import pytest

from audits import dumps, every_mechanism
from audits.dumps import data_in_dumps


def check(search):
    assert search.passed
    assert search.files > 100
    # All 72 numbers of the records, in bytes at least.
    assert search.bytes_planted >= 8 * 72
    assert (search.bytes_found, search.bytes_searched > 10**6) == (0, True)


@pytest.mark.slow
def test_a_mean_and_a_walk_leave_nothing_of_the_data():
    search = data_in_dumps(["means", "pseudo-Huber, no bounds of y"])
    assert search.mechanisms == ("means", "pseudo-Huber, no bounds of y")
    check(search)


@pytest.mark.slow
def test_no_mechanism_leaves_anything_of_the_data():
    search = data_in_dumps()
    assert search.mechanisms == tuple(every_mechanism.CASES)
    check(search)


X, Y = dumps._records(0)
FORMS = {
    "float64": lambda x: b"\0\1\2" + x.astype("<f8").tobytes() + b"\3",
    "float32": lambda x: b"\0" + np.ascontiguousarray(x).astype("<f4").tobytes(),
    "hexadecimal": lambda x: b'dense<"0x' + x.astype("<f8").tobytes().hex().upper().encode() + b'">',
    "float32 in hexadecimal": lambda x: b"0x" + x.astype("<f4").tobytes().hex().encode(),
    "decimals": lambda x: " ".join(map(repr, x.ravel().tolist())).encode(),
    "scientific": lambda x: " ".join(f"{value:.17E}" for value in x.ravel()).encode(),
    "float32 in decimals": lambda x: " ".join(f"{value:.9g}" for value in np.float32(x.ravel())).encode(),
}


@pytest.fixture(scope="module")
def sought():
    """The numbers looked for in one mechanism's dump: its own sums beside the records."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dumps, "CASES", {"AdaSSP": every_mechanism.CASES["AdaSSP"]})
        return dumps._Sought(X, Y)


@pytest.mark.parametrize("form", FORMS)
def test_the_search_knows_every_form(form, sought):
    for part in (X, Y, np.sort(Y)):
        # Some float32 numbers have few decimals.
        assert len(sought.within(FORMS[form](part))) > 0.5 * part.size
    other = np.random.default_rng(99).uniform(0.1, 0.9, (200, 2))
    assert not sought.within(FORMS[form](other))


def test_the_search_opens_what_is_compressed(sought):
    # Zeros in between, since what is random is stored as it is.
    packed = zlib.compress(np.hstack([X, np.zeros((24, 400))]).tobytes())
    assert [len(sought.within(part)) for part in dumps._contents(packed)] == [0, 48]


def test_sums_over_records_are_looked_for_too(sought):
    design = np.column_stack([np.ones(len(Y)), X])
    assert len(sought.within((design.T @ Y).tobytes())) == 3


def test_the_lowered_text_of_a_release_holds_no_data(sought):
    """The same in one process, on the program of the release itself; and that a closure would be seen."""
    from kngjax.releases import chains

    case = every_mechanism.CASES["AdaSSP"]()
    data = case.mechanism.prepare(X, Y)
    key = jax.random.key(0)
    text = chains.compiled_independent_draws.plain.lower(case.mechanism, data, None, key, 1).as_text().encode()
    assert len(text) > 1000
    assert not sought.within(text)
    drawn = functools.partial(chains.compiled_independent_draws.__wrapped__, case.mechanism, data, None, num_draws=1)
    closed = jax.jit(drawn)
    assert sought.within(closed.lower(key).as_text().encode())


@pytest.mark.slow
def test_a_child_that_fails_is_no_success():
    with pytest.raises(RuntimeError, match="failed"):
        data_in_dumps(["no such mechanism"])
