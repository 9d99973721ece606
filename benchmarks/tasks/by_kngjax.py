"""The tasks by kngjax."""

import json
import pathlib
import tempfile

FORMULA = "log(wage) ~ education + poly(experience, 2) + ethnicity + region + smsa + parttime"
ODDS = "parttime ~ education + poly(experience, 2) + ethnicity + region + smsa"


def study(people):
    import kngjax as kng

    return kng.Study(
        people,
        bounds={"wage": (20, 20_000), "education": (0, 18), "experience": (0, 60)},
        levels={
            "ethnicity": ("cauc", "afam"),
            "region": ("northeast", "midwest", "south", "west"),
            "smsa": ("no", "yes"),
            "parttime": ("no", "yes"),
        },
        adjacency="replace",
    )


def median_regression(people):
    fit = study(people).quantile_regression(FORMULA, tau=0.5, epsilon=1)
    return fit.params


JOB = """
[study]
adjacency = "replace"
[study.bounds]
wage = [20, 20000]
education = [0, 18]
experience = [0, 60]
[[analyses]]
method = "quantile_regression"
formula = "log(wage) ~ education + poly(experience, 2)"
tau = [0.1, 0.5, 0.9]
epsilon = 3
[[analyses]]
method = "median"
column = "wage"
epsilon = 1
"""


def job_in_a_file(people):
    """The file counts, and the command."""
    from kngjax.command import cli

    folder = pathlib.Path(tempfile.mkdtemp())
    (folder / "job.toml").write_text(JOB)
    people.to_csv(folder / "people.csv")
    cli.main(["release", str(folder / "job.toml"), "--data", str(folder / "people.csv"), "--output", str(folder)])
    results = json.loads((folder / "releases.json").read_text())["analyses"]
    return {"median": results[1]["result"]["releases"][0]["value"][0]}


def linear_regression(people):
    fit = study(people).linear_regression(FORMULA, epsilon=1)
    return fit.params


def logistic_regression(people):
    fit = study(people).logistic_regression(ODDS, epsilon=1)
    return fit.params


def column_estimates(people):
    import kngjax as kng

    one = kng.Study(people, bounds={"wage": (20, 20_000)}, adjacency="replace")
    mean = one.mean("wage", epsilon=0.5)
    quantiles = one.quantile("wage", tau=[0.1, 0.5, 0.9], epsilon=0.5)
    return dict(zip(["mean", "0.1", "0.5", "0.9"], [*mean.params, *quantiles.params], strict=True))


def ledger(people):
    import kngjax as kng

    path = pathlib.Path(tempfile.mkdtemp()) / "people.ledger"
    book = kng.Ledger.create(path, kng.Budget.pure(1), adjacency="replace", dataset="people")
    one = kng.Study(people, bounds={"wage": (20, 20_000)}, adjacency="replace", ledger=book)
    values = [one.mean("wage", epsilon=0.3).value for _ in range(3)]
    try:
        one.mean("wage", epsilon=0.2)
    except kng.ledger.BudgetExceeded:
        values.append(0.0)
    return dict(zip(["first", "second", "third", "refused"], values, strict=True))


def few_records(salaries):
    import kngjax as kng

    facts = {"bounds": {"salary": (30_000, 300_000), "service": (0, 60)}, "levels": {"sex": ("Male", "Female")}}
    one = kng.Study(salaries, **facts, adjacency="replace")
    fit = one.quantile_regression("salary ~ sex + service", tau=0.5, epsilon=1)
    return fit.params


def group_medians(people):
    found = study(people).by("region").median("wage", epsilon=1)
    return found.params


def counts(people):
    found = study(people).histogram("region", epsilon=1)
    return found.params


def cross_validation(people):
    """Scores by scikit-learn itself are for the owner's eyes."""
    from sklearn.model_selection import cross_val_score

    import kngjax as kng
    from kngjax.sklearn import PrivateRobustRegressor

    path = pathlib.Path(tempfile.mkdtemp()) / "people.ledger"
    book = kng.Ledger.create(path, kng.Budget.pure(5), adjacency="replace", dataset="people")
    bounds = {"education": (0, 18), "experience": (0, 60)}
    model = PrivateRobustRegressor(epsilon=1, adjacency="replace", bounds=bounds, bounds_y=(20, 2000), ledger=book)
    scores = cross_val_score(model, people[["education", "experience"]], people["wage"], cv=5, scoring="r2")
    return {"score": scores.mean(), "spent": book.read().spent.epsilon}


# Whose lines are those of a file, and of one command.
COUNTED = {"job_in_a_file": ["JOB"]}
