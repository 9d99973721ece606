"""Private linear regressions by diffprivlib: reads names of npz files from stdin, writes coefficients to stdout.

Run by an interpreter that has diffprivlib and not kngjax: `python diffprivlib_fits.py EPSILON LARGEST_RESPONSE`.
"""

import importlib
import json
import sys
import warnings

import numpy as np


def main() -> None:
    """One regression for every file, until stdin ends: intercept and coefficients as one line of JSON."""
    epsilon, largest = float(sys.argv[1]), float(sys.argv[2])
    models = importlib.import_module("diffprivlib.models")
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        with np.load(line.strip()) as data:
            x, y = data["x"], data["y"]
        model = models.LinearRegression(epsilon=epsilon, bounds_X=(-1.0, 1.0), bounds_y=(-largest, largest))
        model.fit(x, np.clip(y, -largest, largest))
        print(json.dumps([float(model.intercept_), *map(float, model.coef_)]), flush=True)


if __name__ == "__main__":
    main()
