"""Studies of persons: rows share votes over the whole table, certificates protect persons, and ledgers hold to them."""

import itertools
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest

import kngjax as kng
from kngjax.draws.lattice.lattice import rate_of
from kngjax.draws.lattice.scores import RESOLUTION
from tests.offenders import every_case

WARDS = ("north", "south", "west")


def visits(number=600, seed=0):
    random = np.random.default_rng(seed)
    rows = random.integers(1, 9, number)
    codes = np.repeat(np.arange(number), rows)
    frame = pd.DataFrame({"patient": [f"p{code}" for code in codes], "age": random.uniform(20, 90, len(codes))})
    frame["ward"] = random.choice(WARDS, len(codes))
    frame["severe"] = np.where(random.uniform(size=len(codes)) < 0.3, "yes", "no")
    return frame.sample(frac=1.0, random_state=1).reset_index(drop=True)


VISITS = visits()
FACTS = {"bounds": {"age": (20, 90)}, "levels": {"ward": WARDS, "severe": ("no", "yes")}}


def study(frame=VISITS, adjacency="replace", **given):
    given = {"person": "patient", "unit": "patient"} | given
    return kng.Study(frame, adjacency=adjacency, **(FACTS | given))


def share_of(frame, marks):
    """The sum of shares of marked rows, by pandas."""
    return marks.groupby(frame["patient"]).mean().sum()


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_counts_are_sums_of_shares_in_every_kind_of_frame(adjacency):
    truth = share_of(VISITS, VISITS["severe"] == "yes")
    for frame in (VISITS, pl.from_pandas(VISITS), VISITS.astype({"patient": "category"})):
        found = study(frame, adjacency).count("severe == 'yes'", epsilon=100.0)
        # Noise of deviation .02, and shares that are whole in units of 2^-19.
        assert abs(float(found.value) - truth) < 0.3
    in_wards = study(adjacency=adjacency).histogram("ward", epsilon=100.0).params
    for ward in WARDS:
        assert abs(in_wards[ward] - share_of(VISITS, VISITS["ward"] == ward)) < 0.5


def test_persons_count_by_any_of_their_rows():
    truth = VISITS[VISITS["severe"] == "yes"]["patient"].nunique()
    for adjacency in ("replace", "add_remove"):
        found = study(adjacency=adjacency).count("severe == 'yes'", epsilon=50.0, of="persons")
        assert abs(float(found.value) - truth) <= 1
        assert "differ in all rows of one patient" in found.guarantee.explain() or adjacency == "add_remove"
    with pytest.raises(ValueError, match="several groups"):
        study().by("ward").count("severe == 'yes'", epsilon=1.0, of="persons")
    with pytest.raises(ValueError, match="of must be 'rows'"):
        kng.Study(VISITS, adjacency="replace", **FACTS).count("severe == 'yes'", epsilon=1.0, of="persons")


def test_means_are_of_persons_and_their_number_is_public():
    mean = study().mean("age", epsilon=100.0)
    assert abs(float(mean.value) - VISITS.groupby("patient")["age"].mean().mean()) < 0.1
    certificate = mean.releases[0].certificate
    assert certificate.num_records == VISITS["patient"].nunique()
    assert "any two tables of the same number of patients that differ in all rows of one patient" in str(
        certificate.explain()
    )
    assert "rows of one patient are those with one value of 'patient'" in certificate.explain()


def test_two_rows_a_person_count_twice_and_noise_grows_with_them():
    frame = VISITS.groupby("patient").head(2)
    found = study(frame, "add_remove", most_rows=2).count("severe == 'yes'", epsilon=100.0)
    assert abs(float(found.value) - (frame["severe"] == "yes").sum()) < 0.5
    one, two = (
        study(most_rows=k).count("severe == 'yes'", epsilon=1.0).releases[0].certificate.sensitivity.value
        for k in (1, 2)
    )
    assert (one, two) == (1.0, 2.0)


def test_rows_that_are_dropped_have_no_share():
    frame = VISITS.assign(age=VISITS["age"].where(np.arange(len(VISITS)) % 3 > 0))
    kept = frame.dropna()
    truth = kept.groupby("patient")["age"].mean().sum()
    found = study(frame, "add_remove", missing={"age": "drop"}).sum("age", epsilon=100.0)
    assert abs(float(found.value) - truth) < 20.0


def test_rows_without_identifier_fail_or_are_left_out():
    frame = VISITS.assign(patient=VISITS["patient"].where(np.arange(len(VISITS)) > 4))
    with pytest.raises(kng.ReleaseFailed):
        study(frame).mean("age", epsilon=1.0)
    with pytest.raises(kng.ReleaseFailed):
        study(frame).count("severe == 'yes'", epsilon=1.0, of="persons")
    left = study(frame, missing={"patient": "drop"}).mean("age", epsilon=100.0)
    assert abs(float(left.value) - frame.dropna().groupby("patient")["age"].mean().mean()) < 0.1


def test_shares_in_groups_are_of_the_whole_table():
    """With shares of each group for itself a person of three groups would have three votes."""
    found = study(adjacency="add_remove").by("ward").count(epsilon=100.0)
    total = sum(float(one) for one in found.params.to_numpy().ravel())
    assert abs(total - VISITS["patient"].nunique()) < 1.0
    sums = study(adjacency="add_remove").by("ward").sum("age", epsilon=100.0).params
    shares = 1.0 / VISITS.groupby("patient")["age"].transform("size")
    for ward in WARDS:
        here = VISITS["ward"] == ward
        assert abs(float(sums[ward]) - (shares * VISITS["age"])[here].sum()) < 20.0


def test_floors_of_scores_in_groups_are_paid_for():
    """⌊Ra⌋ of a change of p moves by up to ⌈pR⌉: over G groups by R + G - 1, for which a lattice's rate leaves room."""
    random = np.random.default_rng(0)
    most = 0.0
    for number in (2, 3, 5):
        for shares in random.dirichlet(np.ones(number), 200):
            starts = random.uniform(0.0, 5.0, number)
            moved = np.floor(RESOLUTION * (starts + shares)) - np.floor(RESOLUTION * starts)
            assert moved.sum() <= RESOLUTION + number - 1
            most = max(most, moved.sum() - RESOLUTION)
    assert most >= 1.0
    bounds = {number: kng.Bounds(y=(0.0, 1.0), unit=kng.Unit("patient", 1, groups=number)) for number in (1, 3)}
    one, three = (
        kng.KNG(kng.QuantileLoss(0.5), bounds[number], kng.Box(0.0, 1.0), 1.0, "add_remove") for number in (1, 3)
    )
    assert rate_of(one) / rate_of(three) == Fraction(RESOLUTION + 2, RESOLUTION)


def test_curves_of_a_process_are_those_of_shares():
    rows = visits(3000, 3)
    # Those with many rows are older.
    rows["age"] = np.clip(20.0 + 6.0 * rows.groupby("patient")["age"].transform("size") + 0.2 * rows["age"], 20, 90)
    shares = 1.0 / rows.groupby("patient")["age"].transform("size")
    for adjacency in ("replace", "add_remove"):
        found = study(rows, adjacency, num_records=3000 if adjacency == "add_remove" else None).quantile_process(
            "age ~ ward", levels=[0.25, 0.5, 0.75], epsilon=20.0
        )
        said = found.releases[0].certificate.sensitivity.derivation
        assert "rows of one patient may be in several nodes" in said
        assert "record" not in said
        curves = found.predict(rows)
        for level in (0.25, 0.5, 0.75):
            below = (rows["age"].to_numpy() <= np.asarray(curves)[:, [0.25, 0.5, 0.75].index(level)]) * shares
            assert abs(below.sum() / shares.sum() - level) < 0.03


def test_groups_of_persons_need_bounds_that_know_of_the_groups(monkeypatch):
    monkeypatch.setattr("kngjax.study.public_facts.PublicFacts.over_groups", lambda facts, number: facts)
    with pytest.raises(ValueError, match="may lie in 3 groups"):
        study().by("ward").median("age", epsilon=1.0)


def test_a_unit_without_identifiers_is_each_record():
    frame = VISITS.drop_duplicates("patient")
    found = study(frame, person=None).mean("age", epsilon=1.0)
    assert found.guarantee.unit == "patient"
    assert "each record is one patient" in found.releases[0].certificate.explain()
    assert found.releases[0].certificate.num_records == len(frame)


def test_a_ledger_of_persons_takes_no_debit_of_records(tmp_path):
    ledgers = {
        unit: kng.Ledger.create(tmp_path / unit, kng.Budget.pure(10.0), adjacency="replace", dataset="x", unit=unit)
        for unit in ("patient", "record")
    }
    study(ledger=ledgers["patient"]).mean("age", epsilon=1.0)
    with pytest.raises(ValueError, match="protects each patient, and the release each record"):
        kng.Study(VISITS, adjacency="replace", ledger=ledgers["patient"], **FACTS).mean("age", epsilon=1.0)
    with pytest.raises(ValueError, match="protects each record, and the release each patient"):
        study(ledger=ledgers["record"]).mean("age", epsilon=1.0)
    assert len(ledgers["patient"].releases()) == 1
    assert not ledgers["record"].releases()


def test_what_is_not_proved_of_persons_is_refused_beforehand(tmp_path):
    ledger = kng.Ledger.create(
        tmp_path / "ledger", kng.Budget.pure(10.0), adjacency="replace", dataset="x", unit="patient"
    )
    own = study(ledger=ledger)
    refused = {
        "which rows of one person are not": lambda: own.quantile_interval("age", tau=0.5, epsilon=1.0),
        "quantile process takes no": lambda: study(most_rows=2, ledger=ledger).quantile_process(
            "age ~ ward", levels=[0.25, 0.75], epsilon=1.0
        ),
        "no column to analyse": lambda: study(
            levels=FACTS["levels"] | {"patient": ("p1", "p2")}, ledger=ledger
        ).histogram("patient", epsilon=1.0),
        "one weight each": lambda: study(
            bounds={"age": (20, 90), "number": (0, 5)}, frame=VISITS.assign(number=1), ledger=ledger
        ).poisson_regression("number ~ ward", exposure="age", epsilon=1.0),
    }
    with every_case() as case:
        for name, ask in refused.items():
            with case(name), pytest.raises(ValueError, match=name):
                ask()
    assert not ledger.releases()


def test_unfit_settings_are_told():
    cases = {
        "identifiers are to be in the column 'nobody'": {"person": "nobody"},
        "leave weights or person out": {"weights": "age"},
        "most_rows is of persons": {"person": None, "most_rows": 2},
        "between 1 and 1000": {"most_rows": 0},
        "must be whole numbers, text or categories": {"frame": VISITS.assign(patient=1.5)},
    }
    for (words, given), adjacency in itertools.product(cases.items(), ("replace", "add_remove")):
        with pytest.raises((ValueError, TypeError), match=words):
            study(adjacency=adjacency, **given).mean("age", epsilon=1.0)


ASKED = {
    "sum": lambda made: made.sum("age", epsilon=1, force=True),
    "count": lambda made: made.count("severe == 'yes'", epsilon=1),
    "regression": lambda made: made.linear_regression("age ~ severe", epsilon=1, force=True),
    "groups": lambda made: made.by("ward").sum("age", epsilon=1, force=True),
}


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("weights", [{}, {"person": None, "unit": None, "weights": "share"}])
def test_a_table_of_nobody_is_released_like_any_other(asked, weights):
    """Under add_remove it is next to that of one person: if it failed, a failure would tell that person."""
    facts = {"bounds": FACTS["bounds"] | {"share": (0, 1)}, "levels": FACTS["levels"]} if weights else {}
    made = study(VISITS.assign(share=1.0).iloc[:0], "add_remove", num_records=1000, **facts, **weights)
    assert all(np.isfinite(one.value).all() for one in ASKED[asked](made).releases)
