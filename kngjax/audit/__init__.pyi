from .black_box import BlackBoxAudit as BlackBoxAudit
from .black_box import black_box as black_box
from .neighbours import worst_neighbours as worst_neighbours
from .replay import Replay as Replay
from .replay import replayed_sensitivity as replayed_sensitivity
from .restriction import restricted as restricted
from .search import DensityRatioAudit as DensityRatioAudit
from .search import density_ratio as density_ratio
