"""Makes secure keys from the operating system and research keys from a seed, and tells the two apart.

A release is private only as long as nobody can guess its random numbers. JAX's own generator takes a seed
of 32 bits (when 64-bit types are off), and all of them can be tried in minutes; so a release uses ChaCha20
(RFC 8439) with a key of 256 bits from the operating system. It is an ordinary JAX key type: everything in
`jax.random` and NumPyro accepts it, under `jit`, `vmap` and `scan`.

The keys form a tree. For a key K and a public nonce per purpose,

    random bits:  ChaCha20(K, nonce "bits",  counter 0), ChaCha20(K, nonce "bits", counter 1), ...
    split:        child i = first 256 bits of ChaCha20(K, nonce "split", counter i)
    fold_in:      child   = first 256 bits of ChaCha20(K, nonce "fold", counter data)

so that no triple (key, nonce, counter) ever serves two purposes.
"""

import functools
import math
import operator
import os
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import jax
import jax.core
import jax.extend.random
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

# Plain integers, so that the import makes no arrays.
_CONSTANTS = tuple(int.from_bytes(b"expand 32-byte k"[i : i + 4], "little") for i in range(0, 16, 4))
_MOST_BLOCKS = 2**32  # the block counter has 32 bits


def _nonce(purpose: bytes) -> tuple[int, int, int]:
    """The three words of a 12-byte purpose."""
    first, second, third = (int.from_bytes(purpose[i : i + 4], "little") for i in (0, 4, 8))
    return first, second, third


_FOR_BITS, _FOR_SPLIT, _FOR_FOLD = _nonce(b"kngjax bits "), _nonce(b"kngjax split"), _nonce(b"kngjax fold ")


def secure_key() -> Array:
    """Makes a fresh ChaCha20 key of 256 bits from the operating system's generator, never from a seed.

    **Returns:** a typed JAX key of shape (), to be used once and kept private: who has it can undo the noise.

    **Raises:** `RuntimeError` inside a compiled function (`jit`, `scan`), where the key would become a
    constant of the program and every call would use the same one. Inside a bare `vmap` JAX shows no sign of
    the mapping, and all its members would share the key: make the key outside and split it.

    Source: RFC 8439 (the cipher); `os.urandom` (the entropy).
    """
    # While JAX traces a program even a constant key comes back as a tracer.
    if isinstance(_wrap(bytes(32)), jax.core.Tracer):
        raise RuntimeError(
            "secure_key() was called inside a compiled function, which would use one key for ever; "
            "make the key outside and pass it as an argument."
        )
    return _wrap(os.urandom(32))


def key_from(bits: Callable[[int], int]) -> Array:
    """Returns the ChaCha20 key of 256 of these bits, for one draw of a release: those of the operating system."""
    return _wrap(bits(256).to_bytes(32, "big"))


def research_key(seed: int | np.integer) -> Array:
    """Makes a repeatable key for simulations, JAX's threefry seeded with `seed`; never for a release.

    **Arguments:** `seed`, public, a whole number in [0, 2**32).

    **Raises:** `ValueError` for a bool, a negative number, or 2**32 and more: with 64-bit types off JAX keeps
    the lowest 32 bits and silently returns the key of another seed. `TypeError` for anything else.
    """
    if isinstance(seed, (bool, np.bool_)):
        raise ValueError("research_key needs a whole number as its seed, and a bool is not one; try seed=0.")
    try:
        number = operator.index(seed)
    except TypeError:
        raise TypeError(
            f"research_key needs a whole number as its seed, not a {type(seed).__name__}; try seed=0."
        ) from None
    if not 0 <= number < 2**32:
        raise ValueError(
            f"research_key needs a seed in [0, 2**32), not {number}: JAX would cut it to 32 bits silently."
        )
    return jax.random.key(np.uint32(number), impl="threefry2x32")


def require_typed_key(key: Any) -> None:
    """Raises a `TypeError` with advice unless `key` is a typed JAX key (of any shape, traced or not)."""
    if isinstance(key, (jax.Array, jax.core.Tracer)) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        return
    if getattr(key, "dtype", None) == np.uint32:
        found = "a raw uint32 array (an old-style key, as from jax.random.PRNGKey)"
    else:
        found = f"a {type(key).__name__}"
    raise TypeError(
        f"key must be a typed JAX key, not {found}; for research use kngjax.research_key(seed) or "
        "jax.random.key(seed); releases draw their own secure key."
    )


@functools.cache
def _chacha20() -> Hashable:
    """The key type, defined once and at first use: JAX tells types apart by these function objects."""
    return jax.extend.random.define_prng_impl(
        key_shape=(8,),
        seed=_seed,
        split=_split,
        random_bits=_random_bits,
        fold_in=_fold_in,
        name="kngjax_chacha20",
        tag="chacha20",
    )


def _wrap(key_bytes: bytes) -> Array:
    """The typed key of 32 given bytes: for `secure_key`, and for tests that need a known key."""
    # RFC 8439 section 2.3 reads the key as little-endian words.
    words = np.frombuffer(key_bytes, dtype="<u4").astype(np.uint32)
    return jax.random.wrap_key_data(jnp.asarray(words), impl=_chacha20())


def _seed(seed: Any) -> Array:
    raise TypeError(
        "a ChaCha20 key is made of 32 bytes from the operating system and never of a seed, which could be "
        "guessed: call kngjax.secure_key(), or kngjax.research_key(seed) for a repeatable simulation."
    )


def _split(key: Array, shape: Sequence[int]) -> Array:
    children = _blocks(key, _FOR_SPLIT, _counters(math.prod(shape)))[:, :8]
    return children.reshape(*shape, 8)


def _fold_in(key: Array, data: Any) -> Array:
    return _blocks(key, _FOR_FOLD, jnp.asarray(data, jnp.uint32).reshape(1))[0, :8]


def _random_bits(key: Array, bit_width: int, shape: Sequence[int]) -> Array:
    """Unsigned integers of `bit_width` (8, 16, 32 or 64) bits, read from the key stream little-endian."""
    if bit_width not in (8, 16, 32, 64):
        raise TypeError(f"random bits come in widths of 8, 16, 32 or 64, not {bit_width}.")
    # jax.random asks for 64 bits only with 64-bit types on; otherwise half of the bits would be lost unseen.
    if bit_width == 64 and not jax.dtypes.canonicalize_dtype("uint64") == "uint64":
        raise TypeError("random bits of width 64 need jax_enable_x64; ask for two of width 32 instead.")
    size = math.prod(shape)
    words = _blocks(key, _FOR_BITS, _counters(-(-size * bit_width // 512))).reshape(-1)
    if bit_width == 64:
        low, high = words[0::2].astype(jnp.uint64), words[1::2].astype(jnp.uint64)
        words = low | (high << 32)
    elif bit_width < 32:
        shifts = jnp.arange(0, 32, bit_width, dtype=jnp.uint32)
        words = (words[:, None] >> shifts[None, :]).astype(f"uint{bit_width}").reshape(-1)
    return words[:size].reshape(shape)


def _counters(number: int) -> Array:
    if number >= _MOST_BLOCKS:
        raise ValueError("too many random numbers for one key (2**38 bytes or more); split the key first.")
    return jnp.arange(number, dtype=jnp.uint32)


@functools.partial(jax.jit, static_argnames="nonce")
def _blocks(key: Array, nonce: tuple[int, int, int], counters: Array) -> Array:
    """The ChaCha20 block function: key (8,), nonce of three words, counters (m,) -> words (m, 16).

    Section 2.3 of RFC 8439; the four rows of the 4 x 4 state are held as arrays (4, m), which makes a column
    round one quarter round and a diagonal round another between two rotations of the rows.
    """

    def row(words: Any) -> Array:
        return jnp.broadcast_to(jnp.asarray(words, jnp.uint32)[:, None], (4, counters.size))

    last = jnp.concatenate([counters[None], row((0, *nonce))[1:]])
    start = (row(_CONSTANTS), row(key[:4]), row(key[4:]), last)
    end = lax.fori_loop(0, 10, _double_round, start)
    state = jnp.concatenate([before + after for before, after in zip(start, end, strict=True)])
    return state.T


def _double_round(_: Any, rows: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
    a, b, c, d = _quarter_round(*rows)
    a, b, c, d = _quarter_round(a, jnp.roll(b, -1, 0), jnp.roll(c, -2, 0), jnp.roll(d, -3, 0))
    return a, jnp.roll(b, 1, 0), jnp.roll(c, 2, 0), jnp.roll(d, 3, 0)


def _quarter_round(a: Array, b: Array, c: Array, d: Array) -> tuple[Array, Array, Array, Array]:
    """RFC 8439 section 2.1, on four whole rows at once; `a`, ..., `d` are its names."""
    a = a + b
    d = _rotate(d ^ a, 16)
    c = c + d
    b = _rotate(b ^ c, 12)
    a = a + b
    d = _rotate(d ^ a, 8)
    c = c + d
    b = _rotate(b ^ c, 7)
    return a, b, c, d


def _rotate(words: Array, places: int) -> Array:
    return (words << places) | (words >> (32 - places))
