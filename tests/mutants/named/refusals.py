"""Names slips that remove a guard before a release, in a ledger or after a failure."""

from tests.mutants.named.slip import Slip
from tests.mutants.syntax import called, comparison, constant, without_call, without_raise

SLIPS = (
    Slip(
        "noise of scale 1/n is added where n is private", "KNormMechanism.__check_init__", without_raise("ADD_REMOVE")
    ),
    Slip("groups of public sizes are released", "plan_of_groups", without_raise("ADD_REMOVE")),
    Slip("a reservation of another guarantee is taken", "require_cover", without_raise("covers")),
    Slip("one reservation pays for many releases", "reserve_cost", without_call("take")),
    Slip("a draw that was interrupted is made again", "reserve_cost", constant(True, False)),
    Slip("what was not proved is debited as proved", "Ledger._debits", without_raise("unproved")),
    Slip("side doors are not looked for", "Plan.release", without_call("refuse")),
    Slip(
        "a failed release tells of the records",
        "run_hiding_errors",
        called("ReleaseFailed", "ReleaseFailed(repr(__import__('sys').exception()))"),
    ),
    Slip("a query whose limit lets records displace others is released", "engine_of", without_raise("UNSETTLED")),
    Slip("what is left of a source is taken for all", "Passes._require_there", without_raise("_READ_BEFORE")),
    Slip("rows of a ledger need not follow one another", "Book.of", comparison("previous", "False")),
    Slip(
        "clones of an estimator fit without a ledger",
        "AbstractPaidFits.__sklearn_clone__",
        constant(True, False),
    ),
)
