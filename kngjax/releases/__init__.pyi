from .certificate import Certificate as Certificate
from .curves.quantile_curves import QuantileCurves as QuantileCurves
from .opendp_measurements import make_opendp_measurement as make_opendp_measurement
from .opendp_measurements import opendp_guarantee as opendp_guarantee
from .opendp_measurements import opendp_records as opendp_records
from .simulation import Simulation as Simulation
from .which import DrawChoice as DrawChoice
