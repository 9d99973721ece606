"""Small slips in privacy-critical code, each with the default tests that must see it: data for `plant_slips`."""

from tests.audit.slips import (
    boxes,
    costs,
    counts,
    curves,
    draws,
    families,
    gaussians,
    groups,
    intervals,
    last_places,
    lattices,
    likelihoods,
    mechanisms,
    moments,
    perturbations,
    processors,
    reweighted,
    scikit_learn,
    sensitivities,
    shells,
    synthesis,
    weights,
)
from tests.audit.slips.base import Slip as Slip

_ON_GRIDS = (
    lattices.SLIPS
    + moments.SLIPS
    + gaussians.SLIPS
    + reweighted.SLIPS
    + perturbations.SLIPS
    + shells.SLIPS
    + boxes.SLIPS
    + last_places.SLIPS
    + processors.SLIPS
    + weights.SLIPS
    + counts.SLIPS
    + likelihoods.SLIPS
    + intervals.SLIPS
    + families.SLIPS
    + curves.SLIPS
)
SLIPS = (
    sensitivities.SLIPS
    + mechanisms.SLIPS
    + draws.SLIPS
    + _ON_GRIDS
    + costs.SLIPS
    + groups.SLIPS
    + synthesis.SLIPS
    + scikit_learn.SLIPS
)
