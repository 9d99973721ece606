"""The subcommand that says where the documentation is. It loads no JAX."""

import argparse
import importlib.metadata
import pathlib

import kngjax

# Of the addresses that a package's metadata may have, the first of these that it has.
_LABELS = ("documentation", "homepage", "repository", "source")


def show(_: argparse.Namespace) -> int:
    """Prints the place in one line, for a browser or an editor to open."""
    print(place(pathlib.Path(kngjax.__file__).parents[1]))
    return 0


def place(root: pathlib.Path) -> str:
    """Finds the documentation: the site that was built in a checkout, else its pages, else the address in the metadata.

    Whoever installed kngjax from an index has no checkout, and its metadata may name an address.

    **Arguments:** `root`: the folder that the package lies in.

    Raises FileNotFoundError where there is none of the three.
    """
    # A folder of installed packages may have a `docs` as well, of anybody's, and has no pyproject.toml.
    if (root / "pyproject.toml").is_file():
        for page in (root / "output" / "site" / "index.html", root / "docs" / "index.md"):
            if page.is_file():
                return str(page)
    urls = importlib.metadata.metadata("kngjax").get_all("Project-URL") or []
    addresses = {label.lower(): address for label, address in (url.split(", ", 1) for url in urls)}
    for label in _LABELS:
        if label in addresses:
            return addresses[label]
    raise FileNotFoundError(
        f"kngjax {kngjax.__version__} was installed without its pages, and its metadata name no address: they are the "
        "folder docs/ of its sources"
    )
