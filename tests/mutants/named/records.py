"""Names slips by which a record is not clipped, tells of others, or is counted though its number is private."""

from tests.mutants.named.slip import Slip
from tests.mutants.syntax import assigned, beginning, called, condition, returned

SLIPS = (
    Slip("responses are not clipped", "prepare_rows", called("clip", "{0}", nth=1)),
    Slip("columns made of records are not clipped", "MadeColumns.clipped_to", called("clip", "{0}")),
    Slip("features outside of a hull stay there", "prepare_rows", called("move_inside", "{0}")),
    Slip("responses are scaled by the largest of them", "prepare_rows", beginning("y = y / np.max(np.abs(y))")),
    Slip("a level that nobody declared is the first", "_Levels.place", called("min", "min({0}, default=0)")),
    Slip("a score counts a record too many", "QuantileScore.at", called("at", "self._records.at({0}, {1}, {2} - 16)")),
    Slip("n is public under add_remove", "AbstractIntake.public_count", returned("data.num_records")),
    Slip("a command takes n for public under add_remove", "job:public_count", condition("adjacency", "False")),
    Slip(
        "categories take types that follow from all cells",
        "PublicPipeline._transformed",
        called("with_public_types", "{0}"),
    ),
    Slip("candidates are fitted to records held out", "PrivateSearch._fit", assigned("own", "[X, y]")),
)
