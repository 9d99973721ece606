"""What a newcomer asks of a library, written as its documentation has it: a file a library, a function a task.

A function gets the table and returns the numbers that it estimates, by name; `NAMES` has the tasks in their order. A
task that a library has no means for is left out of its file. `python -m benchmarks.ten_tasks` counts lines and errors.
"""

# To add one: a line here, and a function of this name in the files of the libraries that have a means for it. Counted
# are its lines and those of the helpers that it uses, without signatures, documentation, comments and what it returns.
NAMES = {
    "median_regression": "median regression of log wage with ten coefficients",
    "job_in_a_file": "three quantile regressions and a median, declared in a file",
    "linear_regression": "linear regression of log wage with ten coefficients",
    "logistic_regression": "logistic regression of part-time work with nine coefficients",
    "column_estimates": "mean, median and two quantiles of wages",
    "ledger": "three analyses on one budget, and a fourth that it refuses",
    "group_medians": "median of wages in each of four regions",
    "counts": "workers in each of four regions",
    "cross_validation": "five-fold cross-validation of a linear regression, every fit paid for",
    "few_records": "median regression of 397 salaries with three coefficients",
}
