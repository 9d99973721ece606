"""The keys of a job's file: of each what may stand in its place, and what may not, with the words that refuse it."""

from typing import NamedTuple

from tests.command.forms import STUDY, STUDY_WITH_INTERVALS


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


_LOSS = 'type = "quantile"\ntau = [0.25, 0.5]'
_RESPONSE = "bounds = [20, 20000]"
_REGRESSIONS = [
    ('units = "dollars a week"', 'unit = "dollars a week"', r"\[response\].*'unit'; known are column"),
    ("[sampler]", "[samplers]", r"unknown table 'samplers'; known are data"),
    ('adjacency = "replace"', "", r"\[privacy\] needs the key 'adjacency': 'replace'"),
    ('"replace"', '"zero-out"', r"\[privacy\] adjacency: must be one of replace, add_remove"),
    ("bounds = [0, 18]", "bounds = [18, 0]", r"\[\[terms\]\] number 1 bounds: .*\[18, 0\]"),
    ("bounds = [0, 18]", "", r"number 1 column 'education' needs either bounds"),
    (
        f'transform = "log"\n{_RESPONSE}',
        'levels = ["1", " 1"]',
        r"\[response\] levels: must be two different levels",
    ),
    (f'transform = "log"\n{_RESPONSE}', 'levels = ["keep", "drop"]', r"\[response\] levels: \"drop\" may not be one"),
    (_RESPONSE, "bounds = [0, 20000]", r"\[response\] log\(wage\) needs public bounds of 'wage' with a lower end"),
    ("epsilon = 0.3", "epsilon = -0.3", r"\[privacy\] epsilon: must be positive, not -0.3"),
    ("epsilon = 0.3", 'epsilon = "small"', r"\[privacy\] epsilon: must be a number, not 'small'"),
    ("epsilon = 0.3", "epsilon = inf", r"\[privacy\] epsilon: must be finite"),
    ("epsilon = 0.3", "epsilon = 0.3\nshares = [1]", r"\[privacy\] shares: 1 shares for 2 regressions"),
    ("tau = [0.25, 0.5]", "", r"\[loss\] type 'quantile' needs tau; given: nothing"),
    (
        _LOSS,
        'type = "smoothed_quantile"\ntau = 0.5',
        r"\[loss\] type 'smoothed_quantile' needs tau, bandwidth, and takes kernel; given: tau",
    ),
    (
        _LOSS,
        'type = "smoothed_quantile"\ntau = 0.5\nbandwidth = 0.1\nkernel = "normal"',
        r"\[loss\] kernel: must be one of logistic, gaussian; not 'normal'",
    ),
    (_LOSS, 'type = "huber"\nk = "two"', r"\[loss\] k: must be a number, not 'two'"),
    (
        _RESPONSE,
        f"{_RESPONSE}\nmissing = 20001",
        r"\[response\] missing: 20001 lies outside of the bounds \[20\.0, 20000\.0\]",
    ),
    (_RESPONSE, f"{_RESPONSE}\nmissing = -1", r"\[response\] missing: -1 lies outside"),
    ("tau = [0.25, 0.5]", "tau = [0.5, 0.5]", r"\[loss\] tau: every quantile level"),
    ("LineGibbs", "Gibbs", r"\[sampler\] type: must be one of .*CoordinateWalk, EnsembleWalk"),
    ("at = { education = 12 }", "", r"\[figure\] at: must have a value for each of education"),
    ("education = 12", "education = 19", r"\[figure\] at: education = 19 is outside"),
    ('path = "workers.csv"', 'path = "a.csv"\nrdatasets = "A::B"', r"\[data\] needs either path"),
    ("[loss]", "[loss", r"is not TOML"),
]
_MADE_REGRESSIONS = [
    ("0.25, 0.5", "0.25, 1.5", r"\[loss\] tau must lie"),
    ("degree = 2", "degree = 12", r"\[terms\] the degree for column 'experience'"),
    ("[-20.0, 20.0]", "[20.0, -20.0]", r"\[mechanism\] "),
    (
        "epsilon = 0.3",
        "epsilon = 3000.0",
        r"\[privacy\] epsilon = 1500 .* say allow_large_epsilon = true in \[mechanism\]",
    ),
    ("epsilon = 0.3", "epsilon = 150", r"\[privacy\] epsilon = 150 .* say allow_large_epsilon = true in \[mechanism\]"),
    ("{ box = [-20.0, 20.0] }", "{ cube = 3.0 }", r"\[mechanism\] domain: must be one of .*l1_ball"),
    ("num_sweeps", "sweeps", r"\[sampler\] LineGibbs has an unknown setting 'sweeps'"),
]
_STUDY = [
    ('[data]\npath = "workers.csv"', "[sampler]", "unknown table 'sampler'; known are data, study"),
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
        r"number 2, median: column 'height' needs public bounds in own units, \[study.bounds\] height = \[lower, upper",
    ),
    ("[0, 18]", "[18, 0]", r"study.toml: \[study\] the bounds of 'education' must be finite numbers"),
    ("log(wage) ~ education", "log(wage) ~ scale(education)", r"number 1, quantile_regression: .*scale"),
    ("tau = [0.25, 0.5]", "tau = [0.5, 0.5]", "number 1, quantile_regression: tau must be one level"),
    (
        "tau = [0.25, 0.5]",
        "tau = 0.5\ndomain = { cube = 3 }",
        "number 1, quantile_regression: must be one of .*{ box = ",
    ),
]
_INTERVALS = [
    ('covariance = "sandwich"', 'covariance = "bootstrap"', "must be one of sandwich, groups"),
    ('covariance = "sandwich"\n', "", r"\[intervals\] needs the key 'covariance', .* for share"),
    ("share = 0.4", "number = 4", "unknown setting 'number'; known are share, bandwidth"),
    ("share = 0.4", "share = 1.4", "share must lie strictly between 0 and 1"),
    ("level = 0.9", "level = 95", r"\[intervals\] level: must lie between 0 and 1, like 0\.95, not 95"),
    ("number = 3", "number = 3, level = 0.5", r"intervals: the level is said once"),
    ("intervals = { covar", 'intervals = "groups" # { covar', "intervals: must be a table, like"),
    ("number = 3 }", "number = 3 }\nnum_records = 900", r"num_records: must be the number .* of each group of by"),
    ("share = 0.4", "share = 0.4\nnum_records = 900", r"num_records: a guess of .* in the table \[study\]"),
    ("number = 3", "number = 3, num_records = 900", r"num_records: a guess of .* in the table \[study\]"),
    ("share = 0.4", "share = 0.4\nnum_records = 0", r"\[intervals\] num_records: must be at least 1"),
    ("share = 0.4", 'share = 0.4\nnum_records = "many"', r"\[intervals\] num_records: must be a whole number"),
]
_MADE_INTERVALS = [
    ("share = 0.4", "share = 0.001", r'There would be intervals = \{ covariance = "'),
    (
        'method = "median"',
        'method = "quantile_interval"\ntau = 0.5\nby = ["region"]',
        r"at least, num_records = \.\.\. beside by = \[\.\.\.\]",
    ),
    ("number = 3", "number = 300", r'300 groups need .*or covariance = "sandwich"'),
]
_SYNTHESIS = [
    ('[data]\npath = "workers.csv"', "[loss]\n", "unknown table 'loss'; known are data, synthesis"),
    ("epsilon = 3", "epsilon = 3\ndelta = 0.1", r"\[synthesis\] has an unknown key 'delta'; known are epsilon"),
    ("epsilon = 3", "", r"\[synthesis\] needs the key 'epsilon'"),
    ('adjacency = "replace"', "", r"\[synthesis\] needs the key 'adjacency': 'replace'"),
    ("epsilon = 3", "epsilon = 3\nledger = 3", r"\[synthesis\] ledger: must be the path"),
    ('"ordinal"', '"text"', "number 2 needs the key 'kind', one of category, ordinal, count, numeric; not"),
    ("high = 18", "heigh = 18", "number 2, ordinal, has an unknown key 'heigh'; known are name"),
    ("high = 18", "", "number 2, ordinal, needs the key 'high'"),
    ("seed = 7", "key = 7", r"\[synthesis.draws\] has an unknown key 'key'; known are tables"),
    ("tables = 2", "tables = 0", r"\[synthesis.draws\] tables: must be at least 1, not 0"),
    ("seed = 7", 'file = "../a.csv"', r"file: must be a name that ends in \.csv"),
    ("seed = 7", 'file = "a.json"', r"file: must be a name that ends in \.csv"),
]
# Refused of public facts alone, but for the last, for which the number of records is one.
MADE_SYNTHESIS = [
    ("high = 18", "high = -1", r"\[\[synthesis.columns\]\] number 2, ordinal: low and high of 'education'"),
    ('["region"]', '["regio"]', r"\[synthesis\] 'regio', a parent of 'education', is no earlier column"),
    ('["north", "south"]', '"auto"', "number 1, category: levels of 'region' may not be 'auto'"),
    ("share = 0.1", "share = 0.6", r"\[synthesis\] the shares must add up to 1 of epsilon"),
    ("epsilon = 3", "epsilon = 3\nrows = 0.1", r"\[synthesis\] under replace the number of records is public"),
    ("num_rows = 50", "num_rows = 100_000_001", r"\[synthesis.draws\] num_rows: must be at most"),
    ("epsilon = 3", "epsilon = 0.1", "of 300 records too few lie beyond the outer levels"),
]
WRONG = [
    *(Wrong("regressions", *row) for row in _REGRESSIONS),
    *(Wrong("regressions", *row, True) for row in _MADE_REGRESSIONS),
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
    Valid("regressions", "tau = [0.25", "tau = [0.2"),
    Valid("regressions", "epsilon = 0.3", "epsilon = 0.5"),
    Valid("regressions", "epsilon = 0.3", "epsilon = 0.3\nshares = [0.1, 0.2]"),
    Valid("regressions", "bounds = [0, 18]", "bounds = [0, 19]"),
    Valid("regressions", _RESPONSE, "bounds = [10, 20000]"),
    Valid("regressions", _RESPONSE, f"{_RESPONSE}\nmissing = 20"),
    Valid("regressions", "degree = 2", "degree = 3"),
    Valid("regressions", '"replace"', '"add_remove"'),
    Valid("regressions", "[-20.0, 20.0]", "[-20.0, 21.0]"),
    Valid("regressions", "num_sweeps = 2", "num_sweeps = 3"),
    Valid("regressions", '[sampler]\ntype = "LineGibbs"\nnum_sweeps = 2\n', ""),
    Valid("study", "workers.csv", "w.csv", False),
    Valid("study", "[0, 18]", "[0, 19]"),
    Valid("study", "epsilon = 0.5", "epsilon = 0.6"),
    Valid("study", '"median"', '"mean"'),
    Valid("study", "wage = 20\n", "wage = 30\n"),
    Valid("study", '[[analyses]]\nmethod = "median"\ncolumn = "wage"\nepsilon = 0.5\nforce = true', ""),
    Valid("intervals", "level = 0.9", "level = 0.8", False),
    Valid("intervals", "share = 0.4", "share = 0.5"),
    Valid("intervals", "number = 3", "number = 4"),
    Valid("intervals", _QUANTILES, ""),
    # What is drawn of a table that is released decides nothing of what is released.
    Valid("synthesis", "tables = 2", "tables = 3", False),
    Valid("synthesis", "num_rows = 50", "num_rows = 60", False),
    Valid("synthesis", "seed = 7", "seed = 8", False),
    Valid("synthesis", "share = 0.5", "share = 0.4"),
    Valid("synthesis", "levels = [0.25, 0.75]", "levels = [0.25, 0.5, 0.75]"),
]
