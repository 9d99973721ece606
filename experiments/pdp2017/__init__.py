"""The simulations of Wang, "Per-instance Differential Privacy" (2019), with exact privacy losses, and what follows.

`figure1` compares differential privacy, the privacy of everybody given the data, and that of the people in the data;
`figure2` shows the people as box plots, and privacy against excess risk; `efficiency` compares the estimators that the
paper leads to on simulated and on real data. The settings of the paper's figures are lost with its captions: these
are ours.
"""

import functools

from experiments import run_figure

FIGURES = ("figure1", "figure2", "efficiency")
run = functools.partial(run_figure, __name__, FIGURES)
