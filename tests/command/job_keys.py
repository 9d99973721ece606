"""The keys of a job's file: of each what may stand in its place, and what may not, with the words that refuse it."""

from typing import NamedTuple

from tests.command.forms import STUDY, STUDY_WITH_INTERVALS
from tests.command.small_jobs import CHAIN, FIGURE


class Wrong(NamedTuple):
    """A text of the file of a form, what must not stand in its place, and the words of the refusal, as a pattern.

    `made`: the file itself is in order, and is refused when its mechanisms are made.
    """

    form: str
    old: str
    new: str
    words: str
    made: bool = False


class Valid(NamedTuple):
    """A text of the file of a form, what else may stand there, and whether that makes another job of it."""

    form: str
    old: str
    new: str
    decides: bool = True


_REGRESSIONS = [
    ("[figure]", "[figures]", r"unknown table 'figures'; known are data, study"),
    ("[study.bounds]", "[study.bound]", r"\[study\] has an unknown key 'bound'; known are bounds"),
    ("LineGibbs", "Gibbs", r"number 1, quantile_regression: sampler: must be .*CoordinateWalk", True),
    ("num_sweeps", "sweeps", r"sampler: LineGibbs has an unknown setting 'sweeps'", True),
    ("num_sweeps = 2", "num_sweeps = 2.5", r"sampler: num_sweeps: must be a whole number, not 2.5", True),
    ("force = true", 'by = ["region"]', "number 1, quantile_regression: sampler: groups take none"),
    ("epsilon = 0.3", "", r"number 1, quantile_regression, needs the key 'epsilon'"),
    ("epsilon = 0.3", "epsilon = -0.3", r"number 1, quantile_regression: epsilon must be positive", True),
    ("epsilon = 0.3", "epsilon = 3000.0", r"number 1, quantile_regression: epsilon = 3000", True),
    ("epsilon = 0.3", "epsilon = 0.3\ndelta = 1e-6", r"has an unknown key 'delta'; known are formula"),
    ("[0.25, 0.5]", "[0.25, 1.5]", r"number 1, quantile_regression: tau must lie", True),
    ("{ box = [-20.0, 20.0] }", "{ cube = 3.0 }", r"domain: must be one of .*{ l1_ball = radius }", True),
    ("{ box = [-20.0, 20.0] }", '"box"', r"domain: must be one of .*{ box = \[lower, upper\] }", True),
    ("[-20.0, 20.0]", "[20.0, -20.0]", r"number 1, quantile_regression: domain: ", True),
    ("experience, 2", "experience, 12", r"quantile_regression: the degree for column 'experience'", True),
    ('x = "experience"\n', "", r"\[figure\] needs the key 'x'"),
    ('x = "experience"', 'x = "region"', r"\[figure\] x: must be a column of numbers in the formula", True),
    ("at = { education = 12 }", "", r"\[figure\] at: must have a value for each of education", True),
    ("education = 12", "education = 19", r"\[figure\] at: education = 19 is outside", True),
    ("education = 12", "education = [12]", r"\[figure\] at: must be a table"),
    ("[figure]", "[figure]\nanalysis = 2", r"\[figure\] analysis: must be the number of one of 1"),
    ('"years" }', "3 }", r"\[figure\] units: must be a table"),
    ('path = "workers.csv"', 'path = "a.csv"\nrdatasets = "A::B"', r"\[data\] needs either path"),
    ('path = "workers.csv"', 'duckdb = "a.db"', r"\[data\] query: is of duckdb and spark"),
    ("[study]", "[study", r"is not TOML"),
]
_STUDY = [
    ('column = "wage"', 'column = "wage"\nfit = "squared"', r"number 2, median, has an unknown key 'fit'"),
    (STUDY[STUDY.index("[[analyses]]") :], "", r"the table \[analyses\] is missing"),
    ("[study.missing]", "[study.gaps]", r"\[study\] has an unknown key 'gaps'; known are bounds"),
    ('adjacency = "replace"', "", r"\[study\] needs the key 'adjacency': 'replace'"),
    ('adjacency = "replace"', 'adjacency = "replace"\nledger = 3', r"\[study\] ledger: must be the path"),
    ('"median"', '"mode"', r"\[\[analyses\]\] number 2 needs the key 'method', one of .*median.*; not 'mode'"),
    ('column = "wage"', 'column = "wage"\ntau = 0.5', r"number 2, median, has an unknown key 'tau'; known are column"),
    ("epsilon = 0.25", "", r"number 1, quantile_regression, needs the key 'epsilon'"),
]
_MADE_STUDY = [
    (
        'column = "wage"',
        'column = "height"',
        r"number 2, median: \[study.bounds\] height: column 'height' needs public bounds in own units",
    ),
    ("[0, 18]", "[18, 0]", r"study.toml: \[study\] the bounds of 'education' must be finite numbers"),
    ("log(wage) ~ education", "log(wage) ~ scale(education)", r"number 1, quantile_regression: .*scale"),
    ("tau = [0.25, 0.5]", "tau = [0.5, 0.5]", "number 1, quantile_regression: tau must be one level"),
    (
        "tau = [0.25, 0.5]",
        "tau = 0.5\ndomain = { cube = 3 }",
        "number 1, quantile_regression: domain: must be one of .*{ box = ",
    ),
]
_INTERVALS = [
    ('covariance = "sandwich"\nshare', 'covariance = "bootstrap"\nshare', "covariance: must be one of sandwich"),
    ('covariance = "sandwich"\n', "", r"\[intervals\] needs the key 'covariance', .* for share"),
    ("share = 0.4", "number = 4", "unknown setting 'number'; known are share, bandwidth"),
    ("share = 0.4", "share = 1.4", "share must lie strictly between 0 and 1"),
    ("level = 0.9", "level = 95", r"\[intervals\] level: must lie between 0 and 1, like 0\.95, not 95"),
    ("bandwidth = 0.3", "bandwidth = 0.3, level = 0.5", r"intervals: the level is said once"),
    ("intervals = { covar", 'intervals = "sandwich" # { covar', "intervals: must be a table, like"),
    (
        "bandwidth = 0.3 }",
        "bandwidth = 0.3 }\nnum_records = 900",
        r"num_records: must be the number .* of each group of by",
    ),
    ("share = 0.4", "share = 0.4\nnum_records = 900", r"num_records: a guess of .* in the table \[study\]"),
    ("bandwidth = 0.3", "bandwidth = 0.3, num_records = 900", r"num_records: a guess of .* in the table \[study\]"),
    ("share = 0.4", "share = 0.4\nforce = true", r"force: is said of each analysis, force = true in \[\[analyses\]\]"),
]
_MADE_INTERVALS = [
    ("share = 0.4", "share = 0.001", r"no intervals are offered of linear regression.*intervals = false releases"),
    ("bandwidth = 0.3", "bandwidth = -0.3", "bandwidth must be a positive number in units of y"),
]
_SYNTHESIS = [
    ("epsilon = 3", "epsilon = 3\ndelta = 0.1", r"number 1, synthesis, has an unknown key 'delta'; known are columns"),
    ("epsilon = 3", "", r"number 1, synthesis, needs the key 'epsilon'"),
    ("epsilon = 3", 'epsilon = 3\nadjacency = "replace"', "synthesis, has an unknown key 'adjacency'"),
    (
        '"ordinal"',
        '"text"',
        r"number 2 needs the key 'kind', one of category, ordinal, count, numeric; not",
    ),
    ("high = 18", "heigh = 18", "number 2, ordinal, has an unknown key 'heigh'; known are name"),
    ("high = 18", "", "number 2, ordinal, needs the key 'high'"),
    ("seed = 7", "key = 7", r"\[analyses.draws\] has an unknown key 'key'; known are tables"),
    ("tables = 2", "tables = 0", r"\[analyses.draws\] tables: must be at least 1, not 0"),
    ("seed = 7", 'file = "../a.csv"', r"file: must be a name that ends in \.csv"),
    ("seed = 7", 'file = "a.json"', r"file: must be a name that ends in \.csv"),
]
# Refused of public facts alone, but for the last, for which the number of records is one.
MADE_SYNTHESIS = [
    ("high = 18", "high = -1", r"\[\[analyses.columns\]\] number 2, ordinal: low and high of 'education'"),
    ('["region"]', '["regio"]', r"number 1, synthesis: 'regio', a parent of 'education', is no earlier column"),
    ('name = "region"', 'name = "region"\nlevels = "auto"', "number 1, category: levels of 'region' may not be 'auto'"),
    ("share = 0.1", "share = 0.6", r"number 1, synthesis: the shares must add up to 1 of epsilon"),
    ("epsilon = 3", "epsilon = 3\nrows = 0.1", r"number 1, synthesis: under replace the number of records is public"),
    ("num_rows = 50", "num_rows = 100_000_001", r"\[analyses.draws\] num_rows: must be at most"),
    ('"replace"', '"replace"\nweights = "wage"', r"\[study\] weights: a synthesis takes none"),
    ('"replace"', '"replace"\ndither = { wage = 2 }', r"\[study.dither\] wage: a synthesis reads this column without"),
    ("epsilon = 3", "epsilon = 0.1", "of 300 records too few lie beyond the outer levels"),
]
WRONG = [
    *(Wrong("regressions", *row) for row in _REGRESSIONS),
    *(Wrong("study", *row) for row in _STUDY),
    *(Wrong("study", *row, True) for row in _MADE_STUDY),
    *(Wrong("intervals", *row) for row in _INTERVALS),
    *(Wrong("intervals", *row, True) for row in _MADE_INTERVALS),
    *(Wrong("synthesis", *row) for row in _SYNTHESIS),
    *(Wrong("synthesis", *row, True) for row in MADE_SYNTHESIS),
]
_QUANTILES = STUDY_WITH_INTERVALS[STUDY_WITH_INTERVALS.rindex("[[analyses]]") :]
VALID = [
    # Neither the folder nor the file of data is a part of a job: the ledger says which records they are.
    Valid("regressions", "workers.csv", "others.csv", False),
    Valid("regressions", "at = { education = 12 }", "at = { education = 13 }", False),
    Valid("regressions", FIGURE, "", False),
    Valid("regressions", "tau = [0.25", "tau = [0.2"),
    Valid("regressions", '"replace"', '"add_remove"'),
    Valid("regressions", "[-20.0, 20.0]", "[-20.0, 21.0]"),
    Valid("regressions", "num_sweeps = 2", "num_sweeps = 3"),
    Valid("regressions", CHAIN, ""),
    Valid("study", "workers.csv", "w.csv", False),
    Valid("study", "[0, 18]", "[0, 19]"),
    Valid("study", "epsilon = 0.5", "epsilon = 0.6"),
    Valid("study", '"median"', '"mean"'),
    Valid("study", "wage = 20\n", "wage = 30\n"),
    Valid("study", '[[analyses]]\nmethod = "median"\ncolumn = "wage"\nepsilon = 0.5\nforce = true', ""),
    Valid("intervals", "level = 0.9", "level = 0.8", False),
    Valid("intervals", "share = 0.4", "share = 0.5"),
    Valid("intervals", "bandwidth = 0.3", "bandwidth = 0.4"),
    Valid("intervals", _QUANTILES, ""),
    # What is drawn of a table that is released decides nothing of what is released.
    Valid("synthesis", "tables = 2", "tables = 3", False),
    Valid("synthesis", "num_rows = 50", "num_rows = 60", False),
    Valid("synthesis", "seed = 7", "seed = 8", False),
    Valid("synthesis", "share = 0.5", "share = 0.4"),
    Valid("synthesis", "levels = [0.25, 0.75]", "levels = [0.25, 0.5, 0.75]"),
]
