"""Adds the likelihood of a release, without its records, to the analyst's own NumPyro model."""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kngjax.core.arrays import float64, is_traced
from kngjax.inference.designs import rows_of
from kngjax.inference.released_gradients import (
    ReleasedGradient,
    ScoreMoments,
    moments_of_means,
    moments_of_regressions,
)
from kngjax.releases.release import Release

# The least n·ε/d: below it neither the limit law of KNG nor its normaliser is near.
LIKELIHOOD_FROM = 50.0


def observe(
    release: Any,
    *,
    record: Any,
    design: Any = None,
    num_records: Any = None,
    name: str = "release",
) -> None:
    """Adds log p(θ̃ | φ) of a release to a NumPyro model of its records, of which nothing but the release is known.

    ∇ℓ_n(θ̃; D) is a sum of n independent scores of records at the point that was released. So given the parameters φ of
    a model of one record it is n·m(θ̃; φ) + S with S ~ N(0, n·C(θ̃; φ)), and z = ∇ℓ_n(θ̃) + γ(θ̃ - c₀) has a public law:

        log p(θ̃, S | φ) = -c‖n·m(θ̃; φ) + S + γ(θ̃ - c₀)‖_K + log det (n·E ρ''xx' + γI)(φ)
                          + log N(S; 0, n·C(θ̃; φ)) + const

    where the ridge γ and its centre c₀ are 0 except for objective perturbation. S is latent, with d numbers a release;
    the site `{name}_score` holds it in coordinates in which it is nearly standard normal whatever φ is, so that NUTS
    need not find its scale. m, C and the determinant are computed by quadrature over the law of a response, clipped as
    the responses were. For KNG the determinant approximates the normaliser to second order; for objective perturbation
    it is the Jacobian at θ̃, exactly.

    **Arguments:**

    - `release`: by `KNG` with a loss that has a slope (squared, pseudo-Huber, Huber, logistic, Poisson, expectile,
        smoothed quantile; of means the squared distance), `ObjectivePerturbation`, or a mean by `KNormMechanism`; read
        from its JSON by `Release.from_json`, if you were not there. Or several releases from the same records, whose
        scores are then one sum of vectors. Independent studies are two calls, with two names.
    - `record`: the model of one record. For regressions a function of rows of features, (m, d), the intercept's 1
        first, to the law of the response at each, of batch shape (m,): `lambda x: dist.Normal(x @ beta, sigma)`.
        StudentT, Laplace, Logistic and other laws with `icdf`, BernoulliLogits, Poisson and other counts serve too.
        For means a law of batch shape (d,), of independent columns.
    - `design`: what the features of the records are like: public or made-up rows, (m, columns), without the intercept,
        as `kngjax.preview` takes them; a few hundred will do. An assumption that the release does not check, and the
        posterior is no better than it. Required of regressions.
    - `num_records`: n, where the certificate does not hold it: under add_remove a public number or a latent one.
    - `name`: of the sites.

    It assumes that records are independent, that no missing value was replaced, and that Θ does not bind. Raises
    TypeError for what is no release; ValueError for a mechanism or loss that has no likelihood here, for a value on the
    boundary of Θ, and below n·ε = 50d, where the limit law is not near. The rule is checked where n is a number.

    Source: the limit law is Theorem 3.2 of Reimherr and Awan (2019); a score's central limit theorem is used in place
    of latent records, as Ju et al. (2022) have them.
    """
    parts = _parts(release)
    count = _count(parts, num_records)
    rows = None
    if all(part.is_regression for part in parts):
        rows = _rows(parts, design)
    elif any(part.is_regression for part in parts):
        raise ValueError("means and regressions are not stacked: their records are modelled differently. Observe one")
    elif design is not None:
        raise ValueError("a mean has no design: record is the law of the columns themselves, and design is left out")
    add_likelihood(parts, record, rows, count, name)


def add_likelihood(
    parts: tuple[ReleasedGradient, ...], record: Any, rows: tuple[np.ndarray, ...] | None, num_records: Any, name: str
) -> None:
    """Adds the likelihood as `observe` does, for releases whose values may be traced: one program serves all data sets.

    **Arguments:** `parts`: releases from the same records. `rows`: of each the clipped features, None of means.
    `record`, `num_records`, `name`: as there.
    """
    import numpyro
    from numpyro import distributions

    if rows is None:
        moments = moments_of_means(parts, _law_of_columns(record, parts[0].dimension))
    else:
        moments = moments_of_regressions(parts, rows, _function(record), num_records)
    base = distributions.Normal(0.0, 1.0).expand(moments.mean.shape).to_event(1)
    score = jnp.asarray(numpyro.sample(f"{name}_score", base))
    numpyro.factor(name, log_likelihood(parts, moments, num_records, score) - base.log_prob(score))


def log_likelihood(
    parts: tuple[ReleasedGradient, ...], moments: ScoreMoments, num_records: Any, score: Float[Array, " scores"]
) -> Float[Array, ""]:
    """Computes log p(θ̃, u | φ) + const for S in the coordinates u that `observe` describes.

    With z = Lζ, LL' the known covariance of z, μ = L^{-1}(n·m + γθ̃) and RR' = L^{-1}nCL^{-T} the exponent of
    N(S; 0, nC) is -½|R^{-1}(ζ - μ)|². Were z normal, ζ given φ would be N((I + RR')^{-1}μ, R(I + R'R)^{-1}R'). So ζ is
    put at that mean plus R·T^{-T}u with TT' = I + R'R, whose Jacobian is det R/det T; det R cancels the density's. So u
    is nearly standard normal both where privacy's noise is large next to S and where it is small.

    **Arguments:** `parts`: releases of the same records. `moments`: m, C and the determinants at φ. `num_records`: n.
    `score`: u.
    """
    sizes = [part.dimension for part in parts]
    scale = jax.scipy.linalg.block_diag(*(part.scale for part in parts))
    ridges = [part.noise.pull(jnp.asarray(part.value)) for part in parts]
    identity = jnp.eye(sum(sizes))
    # Scores of two releases may be the same, and rounding must not take more than all of a variance.
    jitter = 20.0 * jnp.finfo(moments.mean.dtype).eps * jnp.trace(moments.covariance) * identity
    root = jnp.sqrt(num_records) * jax.scipy.linalg.solve_triangular(
        scale, jnp.linalg.cholesky(moments.covariance + jitter), lower=True
    )
    centre = jax.scipy.linalg.solve_triangular(scale, num_records * moments.mean + jnp.concatenate(ridges), lower=True)
    precision = jnp.linalg.cholesky(identity + root.T @ root)
    moved = jax.scipy.linalg.solve_triangular(precision, score, lower=True, trans=1)
    shrunk = jnp.linalg.solve(identity + root @ root.T, centre)
    standard = moved - root.T @ shrunk
    noise = scale @ (shrunk + root @ moved)
    log_density = -0.5 * jnp.sum(standard**2) - jnp.sum(jnp.log(jnp.diagonal(precision))) + moments.log_determinants
    start = 0
    for part, size in zip(parts, sizes, strict=True):
        log_density -= part.noise.rate * part.noise.norm(noise[start : start + size])
        start += size
    return log_density


def _parts(release: Any) -> tuple[ReleasedGradient, ...]:
    releases = (release,) if isinstance(release, Release) else release
    if not isinstance(releases, Sequence) or not releases or not all(isinstance(one, Release) for one in releases):
        raise TypeError(
            f"release must be a Release or several from the same records, not a {type(release).__name__}: of JSON text "
            "take kngjax.Release.from_json(text)"
        )
    return tuple(map(ReleasedGradient.of, releases))


def _count(parts: tuple[ReleasedGradient, ...], given: Any) -> Any:
    """Returns n, on which certificates and the caller agree. Raises ValueError where it is open, or too small."""
    known = {part.num_records for part in parts if part.num_records is not None}
    if len(known) > 1:
        raise ValueError(f"the releases have {sorted(known)} records, so they are not from the same ones: call twice")
    count = next(iter(known), None)
    if given is not None and count is not None and (is_traced(given) or given != count):
        raise ValueError(f"the certificate says that there were {count} records: leave num_records out")
    count = given if count is None else count
    if count is None:
        raise ValueError(
            "the certificate does not hold the number of records, which is private under add_remove: give num_records, "
            "a public number or a latent one with a prior"
        )
    if is_traced(count):
        return count
    for part in parts:
        least = LIKELIHOOD_FROM * part.dimension / float(part.mechanism.epsilon)
        if not float(count) >= least:
            raise ValueError(
                f"{float(count):g} records are too few for a likelihood: at epsilon = "
                f"{float(part.mechanism.epsilon):g} and {part.dimension} coefficients the law of what is released is "
                f"near its limit from {math.ceil(least)} on"
            )
    return count


def _rows(parts: tuple[ReleasedGradient, ...], design: Any) -> tuple[np.ndarray, ...]:
    """Returns the features of each release.

    Raises ValueError where they are missing, or not the same after clipping."""
    if design is None and any(part.mechanism.bounds.x_lower is not None for part in parts):
        raise ValueError(
            "a regression needs a design, public or made-up rows of features, (rows, columns): what the records' "
            "features are like is an assumption that the release does not contain"
        )
    with jax.ensure_compile_time_eval(), float64():
        rows = tuple(rows_of(design, part.mechanism.bounds, part.dimension) for part in parts)
    if any(not np.array_equal(one, rows[0]) for one in rows):
        raise ValueError(
            "the bounds of these releases clip the rows of the design differently, or add an intercept to some: give "
            "rows within the bounds of all"
        )
    return rows


def _function(record: Any) -> Any:
    # Distributions can be called, and would draw.
    if not callable(record) or hasattr(record, "batch_shape"):
        raise TypeError(
            "record must be a function of rows of features to the law of the response, like "
            f"lambda x: dist.Normal(x @ beta, sigma), not a {type(record).__name__}"
        )
    return record


def _law_of_columns(record: Any, dimension: int) -> Any:
    if getattr(record, "batch_shape", None) != (dimension,):
        raise TypeError(
            f"record must be the law of the {dimension} columns, a distribution of batch shape ({dimension},)"
        )
    if record.is_discrete:
        raise ValueError("the law of the columns of a mean must be one of numbers, with icdf, and this one counts")
    return record
