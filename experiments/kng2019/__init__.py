"""The simulations of Reimherr and Awan, "KNG: The K-Norm Gradient Mechanism" (NeurIPS 2019), drawn again.

`figure1` is linear regression (section 4.3), `figure2` quantile regression (section 4.5.1), `limit` looks at the limit
law of Theorem 3.2, which the paper proves and does not show, and `beyond` compares what came after on the same axes.
"""

import importlib
import pathlib
from typing import Any

import jax

FIGURES = ("figure1", "figure2", "limit", "beyond")


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
    importlib.import_module(f"experiments.kng2019.{figure}").run(settings, output, smoke)
