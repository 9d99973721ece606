"""A public, well-conditioned regression basis from named columns of a data frame.

The noise of a private regression grows with the public bounds of the columns and with how nearly parallel
they are. Raw powers of, say, years of experience are bad in both ways; Legendre polynomials of the column
mapped to [-1, 1] are bounded by 1 and nearly orthogonal, and the noise is several times smaller. The
coefficients in the column's own units v follow from the released ones, theta, by a public matrix M:

    u = (2 v - lower - upper) / (upper - lower),     P_j(u) = sum_i M_ij v^i,     in own units: M theta.

A cell becomes a number or a level by the rule of `kngjax.data.cells`. One that is missing, infinite, no number or no
declared level is treated as the term's public `missing` says, in the same way whatever it was:

    missing=VALUE or LEVEL    the cell counts as this
    missing="drop"            its columns are NaN, for `Bounds(..., missing="drop")` to drop the record (add_remove)
    missing=None              the data are refused

Everything in a `Design` is public and chosen before the data are seen; it maps each record by itself.
"""

from kngjax.data.terms.categorical import Categorical as Categorical
from kngjax.data.terms.design import Design as Design
from kngjax.data.terms.indicator import Indicator as Indicator
from kngjax.data.terms.polynomial import Polynomial as Polynomial
from kngjax.data.terms.product import Product as Product
from kngjax.data.terms.spline import Spline as Spline
