from .book import LedgerError as LedgerError
from .ledgers import BudgetExceeded as BudgetExceeded
from .ledgers import Reservation as Reservation
