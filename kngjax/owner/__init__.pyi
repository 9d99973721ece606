from . import nonprivate as nonprivate
from . import per_instance as per_instance
from .draws import Draws as Draws
from .per_instance.report import PerInstanceReport as PerInstanceReport
from .per_instance.report import PerInstanceSummary as PerInstanceSummary
from .utility_report import UtilityReport as UtilityReport
from .utility_report import utility as utility
