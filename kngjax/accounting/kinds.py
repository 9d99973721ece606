"""Lists the kinds of facts that a guarantee rests on. Imports no JAX."""

import enum


class Kind(enum.StrEnum):
    """Names what is known of a mechanism's outputs on neighbouring data sets.

    `pure`: |log f_D - log f_D'| ≤ ε, hence ρ = ε²/2. `bounded_range`: it also varies by at most ε over the outputs, so
    ρ = ε²/8. `approximate`: |·| ≤ ε but for a probability of δ; nothing is said of ρ. `zcdp`: the Rényi divergence of
    every order α > 1 is at most αρ. `gaussian`: no easier to tell apart than N(0, 1) and N(μ, 1), so ρ = μ²/2.
    `composed`: several releases of the same records together.
    `near`: for every data set the law lies within a distance in total variation of one with another guarantee.
    """

    BOUNDED_RANGE = "bounded_range"
    PURE = "pure"
    APPROXIMATE = "approximate"
    ZCDP = "zcdp"
    GAUSSIAN = "gaussian"
    COMPOSED = "composed"
    NEAR = "near"


# ρ = ε²/factor.
FACTORS = {Kind.BOUNDED_RANGE: 8, Kind.PURE: 2}
