"""Noise on each response, so that heaps of equal responses do not blind mechanisms that count them.

The gradient of the quantile loss counts responses below a line. Where many responses are equal, as incomes rounded to
hundreds are, it jumps past 0 and is small nowhere, so KNG is nearly blind. A response that was rounded to a multiple of
w, plus noise that is uniform on [-w/2, w/2], has no heaps; what is estimated then is the quantile of that sum, at most
w/2 away. Where a model is of the logarithm y of what was rounded, e^y gets the noise, and its logarithm is taken anew.

**Privacy is what it was.** Let M be private for neighbours D, D' at (ε, δ) or at ρ of zCDP, and let every record r_i
become g(r_i, u_i) before M sees it, with independent u_i that depend on no data.

- replace: keep u_1, ..., u_n fixed. The images of D and D' differ in one record, so P(M(D_u) ∈ S) ≤ e^ε P(M(D'_u) ∈ S)
  + δ; average over u, whose law is the same for both.
- add_remove: D has one record more, with noise u_0. For every u_0 and u the images differ by that one record; average
  over both, of which the image of D' has only u.
- zCDP: Rényi's divergence of two mixtures with one mixing law is at most the largest one of their parts.

No part of this asks for the noise to be secret: whoever knows it learns no more than from M on the records g(r_i, u_i).
So it is drawn before the clip, whose bounds stay true, and what rounds in r_i + u_i is a map of the record too. It is
drawn anew in each release, and each release is debited by itself. ∎
"""

import os
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from kngjax.core.arrays import float64, is_traced, positive_parameter, require_moderate


def width(value: Any) -> Any:
    """Returns the width w of `Bounds(..., dither=w)`, None for none.

    Raises TypeError for what is no number, ValueError unless it is one, positive and finite.
    """
    if value is None:
        return None
    made = positive_parameter("dither", value, "the width in the units of y")
    if not is_traced(made):
        require_moderate("dither", made)
    return made


def dithered(
    response: Float[np.ndarray, " records"], width: Any, key: Any = None, of_log: bool = False
) -> Float[np.ndarray, " records"]:
    """Adds uniform noise u on (-w/2, w/2) to each response y: y + u, or log(e^y + u), -∞ where that is none. Private.

    **Arguments:** `width`: w, public. `key`: of a research path; None takes the operating system's random bytes.
    `of_log`: whether responses are logarithms, and e^y gets the noise.
    """
    if key is None:
        words = np.frombuffer(os.urandom(8 * response.size), "<u8")
        uniform = ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    else:
        with float64():
            uniform = np.array(jax.random.uniform(key, response.shape))
    noise = float(width) * (uniform - 0.5)
    if not of_log:
        return response + noise
    with np.errstate(all="ignore"):
        return np.log(np.maximum(np.exp(response) + noise, 0.0))


def explain(width: Any, of_log: bool) -> str:
    """Says in one sentence for a certificate which noise responses got."""
    what = "what each response is the logarithm of" if of_log else "each response"
    return (
        f"{what} got its own uniform noise of width {float(width):g} before it was clipped, drawn anew for this "
        "release and whatever the data are: a map of each record by itself"
    )
