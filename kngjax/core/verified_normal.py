"""Computes the normal distribution function and density of float64 arrays, with proved error bounds."""

import functools
import math

import numpy as np
from flint import arb
from jaxtyping import Float

from kngjax.core.balls import lower_end, precision
from kngjax.core.verified import Floats, exp

# The absolute error of `normal_probability`; and the relative and the absolute error of `normal_density`.
NORMAL_ERROR, DENSITY_ERROR = 2.0**-51, (2.0**-49, 2.0**-53)
# Φ is told from 0 and 1 up to so many deviations; nodes are so many to a deviation; the series end with h^9.
_FARTHEST, _NODES, _ORDER = 9, 16, 9
_DIGITS = 128


@functools.cache
def _coefficients() -> Float[np.ndarray, "orders nodes"]:
    """Φ^(j)(c)/j! for j = 0, ..., 9 and c = -9, -9 + 1/16, ..., 9, each rounded to the nearest float64 number.

    Φ^(j) = (-1)^(j-1) He_{j-1} φ with Hermite's polynomials He_{j+1}(c) = c·He_j(c) - j·He_{j-1}(c).
    """
    columns = []
    with precision(_DIGITS):
        for node in range(-_FARTHEST * _NODES, _FARTHEST * _NODES + 1):
            place = arb(node) / _NODES
            density = (-place * place / 2).exp() / (2 * arb.pi()).sqrt()
            hermite, found = [arb(1), place], [(-place / arb(2).sqrt()).erfc() / 2]
            for order in range(1, _ORDER + 1):
                found.append((-1) ** (order - 1) * hermite[order - 1] * density / math.factorial(order))
                hermite.append(place * hermite[order] - order * hermite[order - 1])
            columns.append([float(lower_end(one)) for one in found])
    return np.array(columns).T.copy()


def normal_probability(t: Floats) -> Floats:
    """Computes Φ(t) with an absolute error of at most 2^-51.

    Proof. Beyond ±9 it is taken as at ±9, which Φ(-9) < 1.2e-19 covers. With c the multiple of 1/16 nearest to t, the
    difference h = t - c is exact (Sterbenz's lemma, or c = 0), |h| ≤ 1/32, and Σ_{j≤9} Φ^(j)(c)h^j/j! leaves out no
    more than max|φ^(9)|·|h|^10/10! < .44·√(9!)·2^-50/10! < 7e-20, as |He_j(t)|·exp(-t²/4) < 1.09·√(j!) (Cramér's
    inequality). Each coefficient a_j is rounded, by u relatively; |a_j| < .4 for j ≥ 1, so that these errors add up to
    less than u(1 + .4/31) < 1.02u. In Horner's rule a stage v ↦ a + hv errs by u(|hv| + |a + hv|)(1 + u), and by |h| of
    what came before: for j ≥ 1, where |v| < .42, by less than .45u in all; at the last stage, where the sum is below
    1.02, by less than 1.04u + .45u/32 < 1.06u. Together less than 2.1u < 2^-51.
    """
    inside = np.clip(np.asarray(t, np.float64), -_FARTHEST, _FARTHEST)
    node = np.rint(inside * _NODES)
    rest = inside - node / _NODES
    places = np.where(np.isnan(node), 0.0, node).astype(np.int64) + _FARTHEST * _NODES
    table = _coefficients()
    value = table[_ORDER][places]
    for order in range(_ORDER - 1, -1, -1):
        value = table[order][places] + rest * value
    return value


def normal_density(t: Floats) -> Floats:
    """Computes φ(t) = exp(-t²/2)/√(2π) with a relative error of at most 2^-49 and an absolute one of at most 2^-53.

    Proof. t² is rounded, by u relatively, which changes φ by at most u·max(½t²φ) < .15u; half of it is exact. `exp`
    errs by 2^-50 relatively and next to 0 by 2^-1000, 1/√(2π) as it is written by u, the product by u: together less
    than 2^-50 + 2.1u < 2^-49, and .16u in absolute terms.
    """
    with np.errstate(over="ignore"):
        return exp(-0.5 * np.square(t)) * 0.3989422804014327
