from .change_sets import SensitivitySet as SensitivitySet
from .gradients import Sensitivity as Sensitivity
from .gradients import sensitivity_set as sensitivity_set
