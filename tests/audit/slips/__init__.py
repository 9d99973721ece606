"""Small slips in privacy-critical code, each with the default tests that must see it: data for `plant_slips`."""

from tests.audit.slips import costs, draws, lattices, mechanisms, sensitivities
from tests.audit.slips.base import Slip as Slip

SLIPS = sensitivities.SLIPS + mechanisms.SLIPS + draws.SLIPS + lattices.SLIPS + costs.SLIPS
