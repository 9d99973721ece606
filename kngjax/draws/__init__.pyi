from .lattice.lattice import Lattice as Lattice
from .shells.shells import Shells as Shells
