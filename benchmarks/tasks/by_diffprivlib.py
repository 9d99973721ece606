"""The tasks by diffprivlib. It has no quantile regression, and no jobs in a file.

Its models take numbers alone, in their own units: the columns of categories and powers are the caller's.
"""

COLUMNS = ["education", "experience", "experience^2", "ethnicity[afam]", "region[midwest]", "region[south]"]
COLUMNS += ["region[west]", "smsa[yes]", "parttime[yes]"]


def columns(people):
    import pandas as pd

    dummies = pd.get_dummies(people[["ethnicity", "region", "smsa", "parttime"]], drop_first=True)
    x = pd.concat([people[["education", "experience"]], people["experience"] ** 2, dummies], axis=1)
    x.columns = COLUMNS
    return x.to_numpy(float)


def linear_regression(people):
    import numpy as np
    from diffprivlib.models import LinearRegression

    # In own units its coefficients are off by hundreds.
    scale = np.array([18, 60, 3600, 1, 1, 1, 1, 1, 1])
    y = np.log(people["wage"].clip(20, 20_000))
    model = LinearRegression(epsilon=1, bounds_X=(0, 1), bounds_y=(np.log(20), np.log(20_000)))
    model.fit(columns(people) / scale, y)
    return dict(zip(["intercept", *COLUMNS], [model.intercept_, *(model.coef_ / scale)], strict=True))


def logistic_regression(people):
    import numpy as np
    from diffprivlib.models import LogisticRegression

    scale = np.array([18, 60, 3600, 1, 1, 1, 1, 1])
    model = LogisticRegression(epsilon=1, data_norm=6**0.5, C=100)
    model.fit(columns(people)[:, :-1] / scale, people["parttime"] == "yes")
    return dict(zip(["intercept", *COLUMNS], [*model.intercept_, *(model.coef_[0] / scale)], strict=False))


def column_estimates(people):
    from diffprivlib import tools

    wage = people["wage"].to_numpy()
    mean = tools.mean(wage, epsilon=0.5, bounds=(20, 20_000))
    quantiles = tools.quantile(wage, [0.1, 0.5, 0.9], epsilon=0.5, bounds=(20, 20_000))
    return dict(zip(["mean", "0.1", "0.5", "0.9"], [mean, *quantiles], strict=True))


def ledger(people):
    from diffprivlib import BudgetAccountant, tools
    from diffprivlib.utils import BudgetError

    accountant, wage = BudgetAccountant(epsilon=1), people["wage"].to_numpy()
    given = {"bounds": (20, 20_000), "accountant": accountant}
    values = [tools.mean(wage, epsilon=0.3, **given) for _ in range(3)]
    try:
        tools.mean(wage, epsilon=0.2, **given)
    except BudgetError:
        values.append(0.0)
    return dict(zip(["first", "second", "third", "refused"], values, strict=True))


def group_medians(people):
    """What groups cost together is for the user to know: a record that changes its group is in two of them."""
    from diffprivlib import tools

    found = {}
    for region in ("northeast", "midwest", "south", "west"):
        wage = people.loc[people["region"] == region, "wage"].to_numpy()
        found[region] = tools.median(wage, epsilon=0.5, bounds=(20, 20_000))
    return found


def counts(people):
    from diffprivlib import tools

    regions = ("northeast", "midwest", "south", "west")
    places = people["region"].map(dict(zip(regions, range(4), strict=True))).to_numpy(float)
    found, _ = tools.histogram(places, epsilon=1, bins=4, range=(-0.5, 3.5))
    return dict(zip(regions, found, strict=True))


def cross_validation(people):
    """A clone has no budget of its own: the accountant is in the model."""
    from diffprivlib import BudgetAccountant
    from diffprivlib.models import LinearRegression
    from sklearn.model_selection import cross_val_score

    x = people[["education", "experience"]].to_numpy(float) / [18, 60]
    accountant = BudgetAccountant(epsilon=5)
    model = LinearRegression(epsilon=1, bounds_X=(0, 1), bounds_y=(20, 2000), accountant=accountant)
    scores = cross_val_score(model, x, people["wage"].clip(20, 2000), cv=5, scoring="r2")
    return {"score": scores.mean(), "spent": accountant.total()[0]}
