from . import terms as terms
from .records import Data as Data
from .records import QuadraticSummary as QuadraticSummary
from .records import Records as Records
from .records import SortedValues as SortedValues
from .records import WeightedRecords as WeightedRecords
from .records import prepare as prepare
from .records import prepare_rows as prepare_rows
