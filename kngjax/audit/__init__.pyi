from .black_box import BlackBoxAudit as BlackBoxAudit
from .black_box import black_box as black_box
from .search import DensityRatioAudit as DensityRatioAudit
from .search import density_ratio as density_ratio
