"""Jobs that are killed and resumed keep what was paid for, and pay for nothing twice."""

import pytest

from audits import killed_jobs


@pytest.mark.slow
def test_jobs_that_are_killed_keep_what_was_paid_for(tmp_path):
    found = killed_jobs.kill_jobs(tmp_path, kills=2, seed=1)
    assert found.passed, found.explain()
    assert found.kills == 2


@pytest.mark.slow
def test_a_dozen_kills(tmp_path):
    found = killed_jobs.kill_jobs(tmp_path, kills=12)
    assert found.passed, found.explain()
    assert found.kills == 12
    assert found.kills_between > 0


@pytest.mark.parametrize(
    "change", [{"kept": 9}, {"returned": 11}, {"lost": 3}, {"troubles": ["a debit without a kill"]}, {"jobs": 3}]
)
def test_what_fails_such_kills(change):
    fields = {"kills": 3, "kills_between": 1, "jobs": 2, "returned": 10, "kept": 10, "lost": 1}
    whole = {**fields, "troubles": []}
    assert killed_jobs.KilledJobs(**whole).passed
    found = killed_jobs.KilledJobs(**(whole | change))
    assert not found.passed
    assert "3 kills" in found.explain()
