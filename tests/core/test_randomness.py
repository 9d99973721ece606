"""ChaCha20 against RFC 8439, its life as a JAX key, and the two kinds of keys kept apart."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from numpyro.infer import MCMC, NUTS
from scipy import stats

from kngjax.core import randomness
from kngjax.core.randomness import key_from, require_typed_key, research_key, secure_key


def fixed_key(number=0):
    """A known ChaCha20 key: what a release never has, and a test of statistics needs."""
    return randomness._wrap(bytes((number + 7 * i) % 256 for i in range(32)))


def key_stream(key_bytes, nonce_bytes, counter):
    """One block of the cipher as bytes."""
    key = np.frombuffer(key_bytes, dtype="<u4").astype(np.uint32)
    counters = jnp.asarray([counter], dtype=jnp.uint32)
    words = randomness._blocks(jnp.asarray(key), randomness._nonce(nonce_bytes), counters)
    return np.asarray(words).astype("<u4").tobytes()


def same(left, right):
    return np.array_equal(jax.random.key_data(left), jax.random.key_data(right))


# RFC 8439: key, nonce, block counter, key stream.
VECTORS = {
    "2.3.2": (
        bytes(range(32)),
        "000000090000004a00000000",
        1,
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e",
    ),
    "A.1 #1": (
        bytes(32),
        "000000000000000000000000",
        0,
        "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
        "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586",
    ),
    "A.1 #2": (
        bytes(32),
        "000000000000000000000000",
        1,
        "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
        "29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f",
    ),
    "A.1 #3": (
        bytes(31) + b"\x01",
        "000000000000000000000000",
        1,
        "3aeb5224ecf849929b9d828db1ced4dd832025e8018b8160b82284f3c949aa5a"
        "8eca00bbb4a73bdad192b5c42f73f2fd4e273644c8b36125a64addeb006c13a0",
    ),
    "A.1 #4": (
        b"\x00\xff" + bytes(30),
        "000000000000000000000000",
        2,
        "72d54dfbf12ec44b362692df94137f328fea8da73990265ec1bbbea1ae9af0ca"
        "13b25aa26cb4a648cb9b9d1be65b2c0924a66c54d545ec1b7374f4872e99f096",
    ),
    "A.1 #5": (
        bytes(32),
        "000000000000000000000002",
        0,
        "c2c64d378cd536374ae204b9ef933fcd1a8b2288b3dfa49672ab765b54ee27c7"
        "8a970e0e955c14f3a88e741b97c286f75f8fc299e8148362fa198a39531bed6d",
    ),
}


@pytest.mark.parametrize("name", VECTORS)
def test_the_vectors_of_rfc_8439(name):
    key, nonce, counter, expected = VECTORS[name]
    assert key_stream(key, bytes.fromhex(nonce), counter).hex() == expected


def test_every_purpose_has_its_own_nonce():
    assert len({randomness._FOR_BITS, randomness._FOR_SPLIT, randomness._FOR_FOLD}) == 3


def test_split_children_and_folded_keys_differ_from_the_bits_and_from_each_other():
    key = fixed_key()
    bits = np.asarray(jax.random.bits(key, (4, 16)))[:, :8]
    children = np.asarray(jax.random.key_data(jax.random.split(key, 4)))
    folded = np.stack([jax.random.key_data(jax.random.fold_in(key, i)) for i in range(4)])
    words = np.concatenate([bits, children, folded, np.asarray(jax.random.key_data(key))[None]])
    assert np.unique(words).size == words.size


@pytest.mark.slow
@pytest.mark.parametrize("width", [8, 16, 32])
def test_narrow_bits_are_the_key_stream_in_order(width):
    key = fixed_key()
    stream = np.asarray(jax.random.bits(key, (35,), "uint32")).astype("<u4").tobytes()
    bits = np.asarray(jax.random.bits(key, (5, 7), f"uint{width}"))
    assert bits.dtype == f"uint{width}"
    assert bits.tobytes() == stream[: bits.nbytes]


def test_64_bits_with_and_without_64_bit_types():
    key = fixed_key()
    stream = np.asarray(jax.random.bits(key, (40,), "uint32")).astype("<u4").tobytes()
    with jax.enable_x64(True):
        bits = np.asarray(jax.random.bits(key, (20,), "uint64"))
        uniform = np.asarray(jax.random.uniform(key, (1000,), "float64"))
    assert bits.tobytes() == stream
    assert uniform.dtype == np.float64
    assert np.any(uniform != uniform.astype(np.float32))
    with jax.enable_x64(False):
        # JAX itself then asks for 32 bits; a request for 64 must not lose half of them unseen.
        assert jax.random.uniform(key, (3,)).dtype == np.float32
        with pytest.raises(TypeError, match="jax_enable_x64"):
            randomness._random_bits(jax.random.key_data(key), 64, (3,))


def test_no_random_numbers_and_too_many():
    assert jax.random.bits(fixed_key(), (0, 3)).shape == (0, 3)
    assert jax.random.split(fixed_key(), 0).shape == (0,)
    with pytest.raises(ValueError, match="split the key"):
        randomness._counters(2**32)


@pytest.mark.default_cases("uniform")
@pytest.mark.parametrize(
    ("draw", "distribution"),
    [
        (jax.random.uniform, stats.uniform()),
        (jax.random.normal, stats.norm()),
        (jax.random.exponential, stats.expon()),
        pytest.param(lambda key, shape: jax.random.gamma(key, 0.7, shape), stats.gamma(0.7), marks=pytest.mark.slow),
    ],
    ids=["uniform", "normal", "exponential", "gamma"],
)
def test_the_usual_distributions(draw, distribution):
    sample = np.asarray(draw(fixed_key(1), (20_000,)), dtype=np.float64)
    assert stats.kstest(sample, distribution.cdf).pvalue > 1e-3


def test_bits_are_balanced_and_uncorrelated_between_children():
    keys = jax.random.split(fixed_key(2), 2)
    left, right = (np.unpackbits(np.asarray(jax.random.bits(key, (50_000,), "uint8"))) for key in keys)
    for bits in (left, right, left ^ right):
        assert abs(bits.mean() - 0.5) < 4 * 0.5 / np.sqrt(bits.size)


@pytest.mark.slow
def test_discrete_draws():
    counts = np.bincount(jax.random.categorical(fixed_key(3), jnp.log(jnp.arange(1.0, 4.0)), shape=(12_000,)))
    assert stats.chisquare(counts, [2_000, 4_000, 6_000]).pvalue > 1e-3
    assert sorted(jax.random.permutation(fixed_key(4), 50).tolist()) == list(range(50))


@pytest.mark.default_cases("bits")
@pytest.mark.parametrize(
    "draw",
    [
        lambda key: jax.random.normal(key, (5,)),
        pytest.param(lambda key: jax.random.gamma(key, 0.7, (3,)), marks=pytest.mark.slow),
        pytest.param(lambda key: jax.random.permutation(key, 9), marks=pytest.mark.slow),
        lambda key: jax.random.bits(key, (3,), "uint8"),
        lambda key: jax.random.key_data(jax.random.fold_in(key, 3)),
        lambda key: jax.random.key_data(jax.random.split(key, (2, 2))),
    ],
    ids=["normal", "gamma", "permutation", "bits", "fold_in", "split"],
)
def test_vmap_and_jit_equal_the_loop(draw):
    keys = jax.random.split(fixed_key(5), 6)
    loop = np.stack([draw(key) for key in keys])
    assert np.array_equal(jax.vmap(draw)(keys), loop)
    assert np.array_equal(jax.jit(jax.vmap(draw))(keys), loop)


@pytest.mark.slow
def test_scan_equals_the_loop():
    def step(key, _):
        key, ours = jax.random.split(key)
        return key, jax.random.uniform(ours)

    key, loop = fixed_key(6), []
    last, scanned = jax.lax.scan(step, key, None, length=4)
    for _ in range(4):
        key, value = step(key, None)
        loop.append(value)
    assert np.array_equal(scanned, np.stack(loop))
    assert same(last, key)


def test_secure_keys_are_secure_scalar_and_different():
    one, other = secure_key(), secure_key()
    assert one.shape == ()
    assert not same(one, other)
    assert one.dtype == other.dtype
    secure = jax.random.key_impl(one)
    for child in (jax.random.fold_in(one, 1), jax.random.split(one, 3)):
        assert jax.random.key_impl(child) == secure
    assert jax.random.key_impl(research_key(0)) != secure


def test_secure_key_takes_32_bytes_of_the_operating_system(monkeypatch):
    monkeypatch.setattr(randomness.os, "urandom", lambda size: bytes(range(size)))
    words = np.asarray(jax.random.key_data(secure_key()))
    assert words.astype("<u4").tobytes() == bytes(range(32))


def test_a_key_is_of_256_given_bits_the_first_byte_first():
    asked = []

    def bits(number):
        asked.append(number)
        return int.from_bytes(bytes(range(32)), "big")

    words = np.asarray(jax.random.key_data(key_from(bits)))
    assert asked == [256]
    assert jax.random.key_impl(key_from(bits)) == jax.random.key_impl(secure_key())
    assert words.astype("<u4").tobytes() == bytes(range(32))


def test_a_secure_key_has_no_seed():
    secure_type = jax.random.key_impl(secure_key())
    with pytest.raises(TypeError, match="never of a seed"):
        jax.random.key(0, impl=secure_type)


def test_a_secure_key_cannot_become_a_constant_of_a_program():
    with pytest.raises(RuntimeError, match="pass it as an argument"):
        jax.jit(lambda: jax.random.uniform(secure_key()))()


@pytest.mark.parametrize("seed", [0, 7, 2**31, 2**32 - 1, np.int64(7)])
def test_a_research_key_is_jax_threefry(seed):
    assert same(research_key(seed), jax.random.key(np.uint32(seed), impl="threefry2x32"))
    assert same(research_key(seed), research_key(int(seed)))


@pytest.mark.parametrize("seed", [True, np.True_, -1, 2**32, 2**40 + 5])
def test_research_key_refuses_seeds_that_jax_would_change(seed):
    kind = (ValueError, TypeError) if seed is np.True_ else ValueError  # a run-time type checker may be first
    with pytest.raises(kind, match="seed"):
        research_key(seed)


@pytest.mark.parametrize("seed", [1.0, "7", None])
def test_research_key_refuses_what_is_not_a_number(seed):
    with pytest.raises(TypeError, match="seed"):
        research_key(seed)


@pytest.mark.parametrize("key", [0, None, np.zeros(2, np.uint32), jnp.zeros(2, jnp.uint32), jnp.zeros(3)])
def test_only_typed_keys_are_keys(key):
    with pytest.raises(TypeError, match=r"research_key\(seed\)"):
        require_typed_key(key)


def test_typed_keys_are_accepted():
    for key in (research_key(1), jax.random.split(secure_key(), 2)):
        assert require_typed_key(key) is None
    assert jax.jit(require_typed_key)(secure_key()) is None


@pytest.mark.slow
def test_numpyro_nuts_runs_on_a_secure_key():
    def potential(theta):
        return -dist.MultivariateNormal(jnp.array([1.0, -2.0]), jnp.eye(2)).log_prob(theta)

    mcmc = MCMC(NUTS(potential_fn=potential), num_warmup=200, num_samples=600, progress_bar=False)
    mcmc.run(fixed_key(8), init_params=jnp.zeros(2))
    assert np.allclose(np.mean(mcmc.get_samples(), axis=0), [1.0, -2.0], atol=0.3)


@pytest.mark.slow
def test_the_import_makes_no_arrays_and_no_key_type():
    program = (
        "import jax\n"
        "before = len(jax.live_arrays()), jax.config.jax_enable_x64\n"
        "from kngjax.core import randomness\n"
        "assert (len(jax.live_arrays()), jax.config.jax_enable_x64) == before\n"
        "assert randomness._chacha20.cache_info().currsize == 0\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
