from .certificate import Certificate as Certificate
from .curves.quantile_curves import QuantileCurves as QuantileCurves
from .simulation import Simulation as Simulation
from .which import DrawChoice as DrawChoice
