"""Each key of a job's file, in every form: wrong values are refused in words, and valid ones make other jobs."""

import re

import pytest

import kngjax as kng
from kngjax.command import config as configuration
from kngjax.command import job, planning
from tests.command import forms
from tests.command.job_keys import VALID, WRONG
from tests.command.small_jobs import workers
from tests.offenders import every_case

# Arguments and objects, which a file has none of but in formulas.
PYTHON = re.compile(r"\b(?!knots)[a-z_]+=[^=\s]|\bkngjax\.[A-Z]")


def test_a_wrong_value_is_refused_in_words_that_name_the_table_and_the_key(tmp_path):
    with every_case() as case:
        for wrong in WRONG:
            if wrong.made:
                continue
            with case(wrong.form, wrong.new):
                path = forms.write(wrong.form, tmp_path, (wrong.old, wrong.new))
                with pytest.raises(ValueError, match=wrong.words) as error:
                    configuration.read(path)
                assert str(error.value).startswith(str(path))
                assert not PYTHON.search(str(error.value))


def made(form, config, ledger):
    """Goes on with a job until it is paid for."""
    if form == "regressions":
        planning.regressions(config), planning.sampler(config)
    else:
        job.run(config, workers(forms.FORMS[form][2]), ledger=ledger)


def test_what_makes_no_mechanism_is_refused_in_the_terms_of_the_file_and_costs_nothing(tmp_path):
    ledger = kng.Ledger.create(tmp_path / "book", kng.Budget.pure(30), adjacency="replace", dataset="workers")
    with every_case() as case:
        for wrong in WRONG:
            if not wrong.made:
                continue
            with case(wrong.form, wrong.new):
                config = configuration.read(forms.write(wrong.form, tmp_path, (wrong.old, wrong.new)))
                with pytest.raises(ValueError, match=wrong.words) as error:
                    made(wrong.form, config, ledger)
                assert not PYTHON.search(str(error.value)), error.value
    assert ledger.read().num_rows == 1


def test_a_valid_value_makes_another_job_where_it_decides_what_is_released(tmp_path):
    plain = {form: job.identity(configuration.read(forms.write(form, tmp_path))) for form in forms.FORMS}
    (tmp_path / "other").mkdir()
    identities = set(plain.values())
    with every_case() as case:
        for valid in VALID:
            with case(valid.form, valid.new):
                path = forms.write(valid.form, tmp_path / "other", (valid.old, valid.new))
                found = job.identity(configuration.read(path))
                assert (found != plain[valid.form]) == valid.decides
                identities.add(found)
    # And each another one than all others.
    assert len(identities) == len(plain) + sum(valid.decides for valid in VALID)
