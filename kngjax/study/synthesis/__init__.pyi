from .columns import Category as Category
from .columns import Ordinal as Ordinal
from .numbers import Count as Count
from .numbers import Numeric as Numeric
from .plans import SynthesisPlan as SynthesisPlan
from .plans import plan as plan
from .synthetic_tables import SyntheticTable as SyntheticTable
