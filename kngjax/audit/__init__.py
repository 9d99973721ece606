"""Audits: attacks on a mechanism's guarantee by searching for the neighbouring data sets that betray it most.

An audit is evidence, not proof: what it finds is a lower bound on the true ε. It is there to catch a wrong constant.
"""

from kngjax.audit.black_box import BlackBoxAudit as BlackBoxAudit
from kngjax.audit.black_box import black_box as black_box
from kngjax.audit.dumps import DumpSearch as DumpSearch
from kngjax.audit.dumps import data_in_dumps as data_in_dumps
from kngjax.audit.files import READERS as READERS
from kngjax.audit.files import FilePairs as FilePairs
from kngjax.audit.files import file_pairs as file_pairs
from kngjax.audit.files import hostile_files as hostile_files
from kngjax.audit.hostile import HostileInputs as HostileInputs
from kngjax.audit.hostile import hostile_inputs as hostile_inputs
from kngjax.audit.lattices import LatticeLaw as LatticeLaw
from kngjax.audit.lattices import lattice_law as lattice_law
from kngjax.audit.lattices import lattice_loss as lattice_loss
from kngjax.audit.lattices import lattice_spread as lattice_spread
from kngjax.audit.neighbours import worst_neighbours as worst_neighbours
from kngjax.audit.replay import Replay as Replay
from kngjax.audit.replay import replayed_sensitivity as replayed_sensitivity
from kngjax.audit.restriction import restricted as restricted
from kngjax.audit.search import DensityRatioAudit as DensityRatioAudit
from kngjax.audit.search import density_ratio as density_ratio
from kngjax.audit.support import impossible_outputs as impossible_outputs
from kngjax.audit.support import laplace_values as laplace_values
