"""The simulations of Reimherr and Awan, "KNG: The K-Norm Gradient Mechanism" (NeurIPS 2019), drawn again.

`figure1` is linear regression (section 4.3), `figure2` quantile regression (section 4.5.1), `limit` looks at the limit
law of Theorem 3.2, which the paper proves and does not show, and `beyond` compares what came after on the same axes.
"""

import functools

from experiments import run_figure

FIGURES = ("figure1", "figure2", "limit", "beyond")
run = functools.partial(run_figure, __name__, FIGURES)
