"""Packages that are loaded when something of them is first used, as whoever imports kngjax need not have them."""

import importlib
from typing import TYPE_CHECKING, Any

# What installs a package with the versions that are known to serve.
_EXTRAS = {"matplotlib": "kngjax[plots]"}


class Later:
    """Stands for a package, and loads it when an attribute of it is first asked for. **Arguments:** `name`: of it."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str) -> Any:
        # Whoever looks through the names of a file asks for these.
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            package = importlib.import_module(self._name)
        except ModuleNotFoundError:
            root = self._name.partition(".")[0]
            raise ModuleNotFoundError(
                f"this needs {root}: pip install '{_EXTRAS.get(root, root)}'", name=root
            ) from None
        return getattr(package, name)


if TYPE_CHECKING:
    import matplotlib.pyplot as plt
    import pandas as pd
else:
    pd, plt = Later("pandas"), Later("matplotlib.pyplot")
