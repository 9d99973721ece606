from . import nonprivate as nonprivate
from . import per_instance as per_instance
from .diagnostics import DrawsSummary as DrawsSummary
from .draws import Draws as Draws
from .utility_report import UtilityReport as UtilityReport
from .utility_report import utility as utility
