"""Small jobs for the tests of the command: a few hundred invented workers, short chains, recognisable values."""

import pathlib

import numpy as np
import polars as pl

# As many digits as no other number of the output shares.
SECRET_WAGE = 1234.56789012

JOB = """
[data]
path = "workers.csv"

[study]
adjacency = "replace"

[study.bounds]
wage = [20, 20000]
education = [0, 18]
experience = [0, 60]
visits = [0, 20]

[[analyses]]
method = "quantile_regression"
formula = "log(wage) ~ education + poly(experience, 2)"
tau = [0.25, 0.5]
epsilon = 0.3
domain = { box = [-20.0, 20.0] }
sampler = { type = "LineGibbs", num_sweeps = 2 }
force = true

[figure]
x = "experience"
at = { education = 12 }
units = { wage = "dollars a week", education = "years", experience = "years" }
"""
CHAIN = 'sampler = { type = "LineGibbs", num_sweeps = 2 }\n'
FIGURE = JOB[JOB.index("[figure]") :]
# Five quantiles on a line, by the default sampler, which is proved.
PROVED = (
    (" + poly(experience, 2)", ""),
    (CHAIN, ""),
    (FIGURE, ""),
    ("tau = [0.25, 0.5]", "tau = [0.1, 0.25, 0.5, 0.75, 0.9]"),
    ("epsilon = 0.3", "epsilon = 0.625"),
)


def label(tau: float, formula: str = "log(wage) ~ education") -> str:
    """The label of a release of the small job."""
    return f"1. quantile regression {formula}, tau = {tau}"


def workers(n: int = 300) -> pl.DataFrame:
    """Invented workers; the second last wage is the recognisable one and the last is beyond its bounds."""
    random = np.random.default_rng(11)
    education, experience = random.integers(0, 19, n), random.integers(-2, 62, n)
    wage = np.exp(4.5 + 0.09 * education + 0.04 * experience - 0.0007 * experience**2 + random.normal(0, 0.5, n))
    wage[-2:] = SECRET_WAGE, 98765.4321
    columns = {
        "wage": wage,
        "education": education,
        "experience": experience,
        "region": random.choice(["north", "south"], n),
        "member": random.random(n) < 0.4,
        "visits": random.poisson(2.0, n),
    }
    return pl.DataFrame(columns)


def write_job(folder: pathlib.Path, *changes: tuple[str, str], data: pl.DataFrame | None = None) -> pathlib.Path:
    """The job in a folder, each (old, new) text of its file replaced, with its data beside it."""
    text = JOB
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (workers() if data is None else data).write_csv(folder / "workers.csv")
    path = folder / "small.toml"
    path.write_text(text, encoding="utf-8")
    return path
