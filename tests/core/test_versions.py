"""Sums of matrix products against NumPy, in the shapes of which one version of jaxlib made wrong ones."""

import jax
import jax.numpy as jnp
import jaxlib.version
import numpy as np
import pytest

from kngjax.core import versions

# Where that version split its work.
COUNT = 16_384 + 100


@pytest.mark.parametrize("dimension", [3, 5])
def test_sums_of_matrix_products_are_right(dimension):
    generator = np.random.default_rng(0)
    matrix, vectors = generator.normal(size=(dimension, dimension)), generator.normal(size=(COUNT, dimension))
    lengths = jax.jit(jax.vmap(lambda matrix, vector: jnp.linalg.norm(matrix @ vector), (None, 0)))(matrix, vectors)
    np.testing.assert_allclose(lengths, np.linalg.norm(vectors @ matrix.T, axis=1), rtol=1e-12)
    squares = jax.jit(lambda matrix, vectors: jnp.sum(jnp.square(matrix @ vectors.T), axis=0))(matrix, vectors)
    np.testing.assert_allclose(squares, np.sum(np.square(vectors @ matrix.T), axis=1), rtol=1e-12)


def test_a_version_that_computes_wrong_numbers_is_refused():
    for version in ("0.10.2", "0.10.2+local", "0.10.2.dev20260701"):
        with pytest.raises(ImportError, match=r"jax!=0\.10\.2"):
            versions.require_right(version)
    versions.require_right("0.10.20")
    versions.require_right(jaxlib.version.__version__)
