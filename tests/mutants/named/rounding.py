"""Names slips of rounding: to the wrong side, by too few digits, or guessed where it is in doubt."""

from tests.mutants.named.slip import Slip
from tests.mutants.syntax import called, reference, returned

SLIPS = (
    Slip("costs are rounded to nearest", "exact_costs:outward", returned("nearest", nth=-1)),
    Slip("the upper end of a ball is its lower end", "upper_end", reference("upper", "ball.lower")),
    Slip("a share of epsilon is rounded to nearest", "budget_of", called("inward", "float({0})")),
    Slip("a sensitivity on a lattice is rounded down", "problems:_whole", reference("ceil", "math.floor")),
    Slip("the radius of a ball on a lattice is rounded up", "DomainLattice.of", reference("floor", "math.ceil", nth=1)),
    Slip("values lie beside their lattice", "DomainLattice.values", returned("{} + 1e-9")),
    Slip("sums are made in float32", "exact_sums:products", reference("float64", "np.float32")),
    Slip("a cell in doubt is guessed", "Grid.cell", called("unique_fmpz", "steps.mid().floor().unique_fmpz()")),
    Slip("an envelope leaves out how the Hessian changes", "ShellCertificate.bound", reference("bend", "0.0")),
)
