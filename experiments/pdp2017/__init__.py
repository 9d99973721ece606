"""The simulations of Wang, "Per-instance Differential Privacy" (2019), with exact privacy losses, and what follows.

`figure1` compares differential privacy, the privacy of everybody given the data, and that of the people in the data;
`figure2` shows the people as box plots, and privacy against excess risk; `efficiency` compares the estimators that the
paper leads to on simulated and on real data. The settings of the paper's figures are lost with its captions: these
are ours.
"""

import importlib
import pathlib
from typing import Any

import jax

FIGURES = ("figure1", "figure2", "efficiency")


def run(settings: dict[str, Any], output: pathlib.Path, smoke: bool) -> None:
    """Run the figure that `settings["figure"]` names, in float64.

    **Arguments**: `settings`, the keys of the TOML file; `output`, an existing directory; `smoke`, whether to do the
    least work that shows it running.
    """
    settings = dict(settings)
    figure = settings.pop("figure", None)
    if figure not in FIGURES:
        raise ValueError(f"figure must be one of {', '.join(FIGURES)}; not {figure!r}")
    jax.config.update("jax_enable_x64", True)
    importlib.import_module(f"experiments.pdp2017.{figure}").run(settings, output, smoke)
