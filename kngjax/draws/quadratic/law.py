"""The law that is drawn from: density ∝ exp(-‖(Aθ - b)/w‖/λ) on Θ."""

from collections.abc import Sequence
from fractions import Fraction

from kngjax.core.owner_only import OwnerOnly, owner_only
from kngjax.draws.quadratic.bodies import AbstractBody
from kngjax.geometry.scaled_norms import ScaledNorm


@owner_only
class QuadraticLaw(OwnerOnly):
    """Holds the law of θ. Private. **Arguments:** `gram`: A, `moment`: b, exactly. `noise`: w and λ. `body`: Θ."""

    gram: Sequence[Sequence[Fraction]]
    moment: Sequence[Fraction]
    noise: ScaledNorm
    body: AbstractBody
