"""The tasks by statsmodels, without privacy: what the others' numbers are compared with, and standard errors."""

FORMULA = "np.log(wage) ~ education + experience + I(experience**2) + ethnicity + region + smsa + parttime"
ODDS = "works ~ education + experience + I(experience**2) + ethnicity + region + smsa"


def median_regression(people):
    import numpy as np  # noqa: F401  (the formula names it)
    import statsmodels.formula.api as smf

    fit = smf.quantreg(FORMULA, people).fit(q=0.5)
    return fit.params, fit.bse


def linear_regression(people):
    import numpy as np  # noqa: F401
    import statsmodels.formula.api as smf

    fit = smf.ols(FORMULA, people).fit()
    return fit.params, fit.bse


def logistic_regression(people):
    import statsmodels.formula.api as smf

    fit = smf.logit(ODDS, people.assign(works=(people["parttime"] == "yes").astype(int))).fit(disp=False)
    return fit.params, fit.bse


def column_estimates(people):
    wage = people["wage"]
    mean, quantiles = wage.mean(), wage.quantile([0.1, 0.5, 0.9])
    return dict(zip(["mean", "0.1", "0.5", "0.9"], [mean, *quantiles], strict=True)), _errors(wage)


def group_medians(people):
    groups = people.groupby("region", observed=True)["wage"]
    return groups.median(), {region: _errors(wage)["0.5"] for region, wage in groups}


def counts(people):
    found = people["region"].value_counts()
    return found, found**0.5


def few_records(salaries):
    import statsmodels.formula.api as smf

    fit = smf.quantreg("salary ~ sex + service", salaries).fit(q=0.5)
    return fit.params, fit.bse


def _errors(wage):
    """Of the mean, and of quantiles by the spacing of those a twentieth away."""
    errors = {"mean": wage.std() / len(wage) ** 0.5}
    for level in (0.1, 0.5, 0.9):
        density = 0.1 / (wage.quantile(level + 0.05) - wage.quantile(level - 0.05))
        errors[str(level)] = (level * (1 - level) / len(wage)) ** 0.5 / density
    return errors
