"""Synthetic tables of codes by MST and AIM, as their authors wrote them: reads requests from stdin, says how it went.

Run by an interpreter that has `mbi` and not kngjax: `python marginal_tables.py MECHANISMS`, the folder of that name in
a checkout of github.com/ryan112358/mbi, which has `mst.py` and `aim.py` (McKenna, Miklau and Sheldon 2021; McKenna,
Mullins, Sheldon and Miklau 2022). Each line of stdin is JSON with `mechanism`, `epsilon`, `delta`, `seed`, `sizes` (how
many codes each column has) and `table` (the npz file of the codes, in whose place the synthetic ones are written);
each line of stdout the seconds of the processor.
"""

import contextlib
import importlib
import itertools
import json
import sys
import time

import numpy as np


def synthetic(mechanism: str, data, epsilon: float, delta: float):
    """A data set of `mbi` of about as many rows: all settings are the authors'."""
    if mechanism == "MST":
        return importlib.import_module("mst").MST(data, epsilon, delta)
    pairs = [(pair, 1.0) for pair in itertools.combinations(data.domain, 2)]
    return importlib.import_module("aim").AIM(epsilon, delta).run(data, pairs)[1]


def main() -> None:
    """One table for each line, until stdin ends."""
    sys.path.insert(0, sys.argv[1])
    mbi = importlib.import_module("mbi")
    for line in sys.stdin:
        asked = json.loads(line)
        with np.load(asked["table"]) as codes:
            data = mbi.Dataset({name: codes[name] for name in asked["sizes"]}, mbi.Domain.fromdict(asked["sizes"]))
        # They draw from NumPy's global generator.
        np.random.seed(asked["seed"])  # noqa: NPY002
        start = time.process_time()
        with contextlib.redirect_stdout(sys.stderr):
            found = synthetic(asked["mechanism"], data, asked["epsilon"], asked["delta"])
        seconds = time.process_time() - start
        drawn = {name: np.asarray(column) for name, column in found.to_dict().items()}
        np.savez(asked["table"], allow_pickle=False, **drawn)
        print(seconds, flush=True)


if __name__ == "__main__":
    main()
