"""Computes elementary functions of float64 arrays, with error bounds proved from what IEEE 754 rounds correctly.

NumPy's +, -, *, /, sqrt, rint and ldexp round each element correctly, to nearest, so that u = 2^-53 bounds the relative
error of each where nothing under- or overflows. Its exp does not say how far it errs.
"""

import numpy as np
from jaxtyping import Float

Floats = Float[np.ndarray, "..."]

UNIT = 2.0**-53
# By so much a bound is widened that takes a few dozen operations in float64: more than they round away.
WIDER = 1.0 + 2.0**-40
# The relative error of `exp` and `sigmoid`; and the absolute one that is added for numbers next to 0.
EXP_ERROR, SIGMOID_ERROR, NEXT_TO_ZERO = 2.0**-50, 2.0**-49, 2.0**-1000
# e^x for x beyond these ends is not told from e^-700, and taken for infinite.
_SMALLEST, _LARGEST = -700.0, 700.0
# log 2 in two parts: the first has 32 binary digits, so that its products with whole numbers below 2^20 are exact.
_LOG_TWO = float.fromhex("0x1.62e42fee00000p-1"), float.fromhex("0x1.a39ef35793c76p-33")
# 1/j!, rounded.
_COEFFICIENTS = (
    1.0, 1.0, 1 / 2, 1 / 6, 1 / 24, 1 / 120, 1 / 720, 1 / 5040, 1 / 40320, 1 / 362880, 1 / 3628800, 1 / 39916800,
    1 / 479001600, 1 / 6227020800,
)  # fmt: skip
# So many numbers stay in a processor's cache with what is made of them.
_AT_A_TIME = 2**14


def sum_error(terms: int) -> float:
    """Bounds γ_m = mu/(1 - mu): by that share of the sum of their sizes a sum of m products may err, in any order.

    Whether or not a product and a sum are rounded together (Higham 2002, Accuracy and Stability of Numerical
    Algorithms, section 3.1). The last factor is more than the roundings of this very line.
    """
    return terms * UNIT / (1.0 - terms * UNIT) * (1.0 + 2.0**-40)


def exp(x: Floats) -> Floats:
    """Computes e^x with a relative error of at most 2^-50 for |x| ≤ 700.

    Below -700 it is e^-700, which is too much by less than 2^-1000; above 700 it is infinite.

    Proof. x = k·log 2 + r with k = rint(x/log 2), and |r| < .347, since k errs by rounding where x/log 2 is next to the
    middle of two whole numbers alone. With log 2 = p + q + 2^-86·(less than 1), kp is exact; x - kp, below .348, errs
    by u·.348 at most, its difference from kq by as much, and kq itself and the rest of log 2 by less than 2^-72: in all
    r errs by less than .7u + 2^-72 < .75u, and e^r as much relatively. The series Σ r^j/j! up to j = 13 leaves out less
    than |r|^14/14!·1.03 < 5e-18 < .05u, and its coefficients, each rounded, err by u·(e^|r| - 1 - |r|) < .08u. In
    Horner's rule a stage v ↦ c + rv errs by u(|rv| + |c + rv|)(1 + u) and by |r| of what came before. At the last stage
    |rv| < .416 and |c + rv| < 1.415, at all before |rv| < .21 and |c + rv| < 1.21: in all less than
    1.84u + .347·1.42u/(1 - .347) < 2.6u, against e^r > .7. Together (.05u + .08u + 2.6u)/.7 + .75u < 4.7u < 2^-50.
    Multiplying by 2^k is exact.
    """
    x = np.asarray(x, np.float64)
    if x.size <= _AT_A_TIME:
        return _exp(x)
    flat = np.ravel(x)
    parts = [_exp(flat[start : start + _AT_A_TIME]) for start in range(0, flat.size, _AT_A_TIME)]
    return np.concatenate(parts).reshape(x.shape)


def _exp(x: Floats) -> Floats:
    inside = np.clip(x, _SMALLEST, _LARGEST)
    whole = np.rint(inside / (_LOG_TWO[0] + _LOG_TWO[1]))
    rest = (inside - whole * _LOG_TWO[0]) - whole * _LOG_TWO[1]
    value = np.full_like(rest, _COEFFICIENTS[-1])
    for coefficient in _COEFFICIENTS[-2::-1]:
        value *= rest
        value += coefficient
    with np.errstate(invalid="ignore"):
        powers = np.ldexp(value, whole.astype(np.int64))
    return np.where(x > _LARGEST, np.inf, powers)


def sigmoid(x: Floats) -> Floats:
    """Computes 1/(1 + e^-x) with a relative error of at most 2^-49, and 2^-1000 next to 0.

    Proof. With t = e^-|x|, known but for 4.7u relatively (see `exp`), 1 + t errs by 4.7ut + u(1 + t), relatively by at
    most 3.4u; the quotient 1/(1 + t), or t/(1 + t) for x < 0, by 4.7u + 3.4u + u and products of these: 9.2u < 2^-49.
    """
    size = exp(-np.abs(x))
    return np.where(np.asarray(x) < 0.0, size, 1.0) / (1.0 + size)
