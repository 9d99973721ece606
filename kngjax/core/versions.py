"""Refuses versions of jaxlib that compute wrong numbers."""

# jaxlib 0.10.2, on processors: where products of a matrix with more than 16,384 vectors of float64 are summed in one
# compiled program, as in sum(square(F @ Z), axis=0), all sums from there on are wrong, for matrices of 3 or 5 rows for
# instance (https://github.com/jax-ml/jax/issues/39103). A gradient's norm or a leverage may be such a sum, so that no
# proof would hold. Versions before and after are right.
WRONG = ("0.10.2",)


def require_right(version: str) -> None:
    """Raises ImportError for a version of jaxlib that is known to compute wrong numbers."""
    if version.split("+")[0].split(".dev")[0] in WRONG:
        raise ImportError(
            f"jaxlib {version} computes wrong sums of matrix products on processors "
            "(https://github.com/jax-ml/jax/issues/39103), so that no estimate, and no guarantee, could be relied on. "
            "Install another version: pip install 'jax!=0.10.2' 'jaxlib!=0.10.2'"
        )
