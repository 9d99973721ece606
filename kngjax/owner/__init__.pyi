from . import nonprivate as nonprivate
from . import per_instance as per_instance
from .comparisons import UtilityReport as UtilityReport
from .comparisons import utility as utility
