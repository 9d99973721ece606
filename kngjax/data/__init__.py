"""Private records: public bounds, the one gate that every record passes, files, streams and shards."""

from kngjax.data.records import Data as Data
from kngjax.data.records import QuadraticSummary as QuadraticSummary
from kngjax.data.records import Records as Records
from kngjax.data.records import SortedValues as SortedValues
from kngjax.data.records import prepare as prepare
