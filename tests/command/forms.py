"""Files of small jobs: one regression with a figure, several analyses, with intervals, and a synthesis."""

import pathlib

from tests.command.small_jobs import JOB, workers

FORMULA = "log(wage) ~ education"
STUDY = f"""
[data]
path = "workers.csv"

[study]
adjacency = "replace"

[study.bounds]
wage = [20, 20000]
education = [0, 18]
visits = [0, 20]

[study.levels]
region = ["north", "south"]

[study.missing]
wage = 20

[[analyses]]
method = "quantile_regression"
formula = "{FORMULA}"
tau = [0.25, 0.5]
epsilon = 0.25
force = true

[[analyses]]
method = "median"
column = "wage"
epsilon = 0.5
force = true
"""
STUDY_WITH_INTERVALS = """
[data]
path = "workers.csv"

[study]
adjacency = "replace"

[study.bounds]
wage = [20, 20000]
education = [0, 18]

[study.levels]
region = ["north", "south"]

[study.missing]
wage = 20

[intervals]
covariance = "sandwich"
share = 0.4
level = 0.9

[[analyses]]
method = "linear_regression"
formula = "log(wage) ~ education"
epsilon = 6

[[analyses]]
method = "quantile_regression"
formula = "log(wage) ~ education"
tau = 0.5
epsilon = 6
intervals = { covariance = "sandwich", bandwidth = 0.3 }

[[analyses]]
method = "median"
column = "wage"
epsilon = 0.5
"""
SYNTHESIS = """
[data]
path = "workers.csv"

[study]
adjacency = "replace"

[study.bounds]
wage = [20, 20000]

[study.levels]
region = ["north", "south"]

[[analyses]]
method = "synthesis"
epsilon = 3

[[analyses.columns]]
kind = "category"
name = "region"
other = "south"
share = 0.1

[[analyses.columns]]
kind = "ordinal"
name = "education"
low = 0
high = 18
parents = ["region"]

[[analyses.columns]]
kind = "numeric"
name = "wage"
transform = "log"
given = "education"
levels = [0.25, 0.75]
share = 0.5

[analyses.draws]
tables = 2
num_rows = 50
seed = 7
"""
# The text of each form, its file, and of how many records its data are.
FORMS = {
    "regressions": (JOB, "small.toml", 300),
    "study": (STUDY, "study.toml", 40),
    "intervals": (STUDY_WITH_INTERVALS, "study.toml", 1500),
    "synthesis": (SYNTHESIS, "table.toml", 300),
}


def write(form: str, folder: pathlib.Path, *changes: tuple[str, str], records: int | None = None) -> pathlib.Path:
    """The job of this form in a folder, each (old, new) text of its file replaced, with its data beside it."""
    text, name, number = FORMS[form]
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    workers(records or number).write_csv(folder / "workers.csv")
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name
