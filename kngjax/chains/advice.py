"""Advises what to take for a density that a requested, or any exact, sampler does not serve, from public facts alone.

Proved ways come first: a mechanism that draws from a law of its own, or an exact sampler. Then comes the one Markov
chain that serves best. `kngjax.which` prints it where a release is refused.
"""

from typing import NamedTuple

from kngjax.chains.target import Target
from kngjax.geometry.abstract_norms import AbstractNorm
from kngjax.losses.base import AbstractLoss

# From n·ε of so many times d² on, draws in the space of gradients take a few proposals even with dummies of 1% and
# correlations of .99. Measured.
GRADIENTS_UNASKED = 1500
# Beyond it rejection for the squared loss takes millions of proposals where Θ and noise are of one size and features
# are correlated.
LARGEST_EXACT_DIMENSION = 20
# From n·ε of so many times d on proposals of `GradientSpace` are accepted, some or most of them. Measured there.
GRADIENT_SPACE = 100
# Where the log-density varies by no more over Θ, one in e^12 proposals at least is accepted, whatever the records.
LITTLE_RANGE = 12.0


class Density(NamedTuple):
    """The public facts of a density that its samplers depend on.

    **Arguments:** `norm`: of KNG's gradient; None where the score is the loss itself. `is_uniform`: whether the base
    measure is uniform on Θ. `is_pointwise`: whether Δ depends on θ. `dimension`: d.
    """

    loss: AbstractLoss
    norm: AbstractNorm | None
    is_uniform: bool
    is_pointwise: bool
    dimension: int

    @classmethod
    def of(cls, target: Target) -> "Density":
        """Reads the public facts of a density off a target."""
        return cls(target.loss, target.norm, target.domain.is_uniform, target.pointwise is not None, target.dimension)


def has_slices(norm: AbstractNorm | None) -> bool:
    """Tells whether slices of this norm's score have known intervals along lines; None is the loss itself."""
    return norm is None or norm.standard.has_chords


def has_gradients(density: Density) -> bool:
    """Tells whether KNG is drawn in the space of gradients for this density."""
    declared = density.loss.has_curvature_facts and density.norm is not None
    return declared and density.is_uniform and not density.is_pointwise


def exact_serves_smooth(density: Density, information: float, log_range: float) -> bool:
    """Tells whether exact draws of a smooth loss by KNG are the default: a public rule, which decides about time alone.

    **Arguments:** `density`: with `has_gradients`. `information`: n·ε of a public n that the records are not fewer
    than. `log_range`: a public bound on how far log f varies over Θ; infinite where there is none.
    """
    return information >= GRADIENTS_UNASKED * density.dimension**2 or log_range <= LITTLE_RANGE


def chain(density: Density) -> str:
    """Returns the Markov chain that serves this density best."""
    loss, plain = density.loss, not density.is_pointwise
    if loss.is_quadratic and density.is_uniform and plain and has_slices(density.norm):
        return "SliceGibbs()"
    if loss.score_is_piecewise_constant and density.is_uniform:
        return "LineGibbs()"
    if loss.is_smooth and density.norm is not None and plain:
        return "GradientSpace()"
    return "EnsembleWalk()"


def exact(density: Density) -> str | None:
    """Says in words where `Exact` serves; None where it does not."""
    loss, uniform = density.loss, density.is_uniform
    if loss.is_quadratic:
        if (uniform and density.dimension <= LARGEST_EXACT_DIMENSION) or not (uniform or density.is_pointwise):
            return "Exact() is exact"
        return "Exact() is exact, and may need too many proposals"
    if loss.score_is_piecewise_constant and uniform and density.dimension == 1:
        return "Exact() is exact"
    return None


def advice(density: Density) -> str:
    """Advises what to take, in one or more sentences: proved ways first, then the chain to ask for by name."""
    name = chain(density)
    on_request = f"sampler=kngjax.chains.{name}"
    if name == "GradientSpace()":
        on_request += (
            f" where n*epsilon is at least {GRADIENT_SPACE} a coefficient, else sampler=kngjax.chains.EnsembleWalk()"
        )
    proved = density.loss.proved_instead(density.dimension, density.is_uniform)
    smoothed = (
        "KNG(SmoothedQuantileLoss(tau, bandwidth), ...) is proved as well where n is public and n*epsilon at least "
        f"{GRADIENTS_UNASKED * density.dimension**2:g}"
    )
    others = [smoothed] * (density.loss.score_is_piecewise_constant and density.norm is not None)
    sentences = [proved, *others, exact(density), f"of Markov chains, of which nothing is proved, ask for {on_request}"]
    return "; ".join(sentence for sentence in sentences if sentence)


def advice_for(target: Target) -> str:
    """`advice` for a target."""
    return advice(Density.of(target))
