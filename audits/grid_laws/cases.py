"""Every way in which mechanisms draw with all roundings in their proof, by name."""

from collections.abc import Callable

from audits.grid_laws import densities, noises, points, wholes
from audits.grid_laws.laws import Law

# Made when called.
CASES: dict[str, Callable[[], Law | points.PointLaw]] = {
    **noises.CASES,
    **densities.CASES,
    **points.CASES,
    **wholes.CASES,
}
