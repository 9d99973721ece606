"""One draw and its certificate: routes, rounding, what a ledger is debited; research draws and simulations."""
