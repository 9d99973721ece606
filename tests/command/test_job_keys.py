"""Each key of a job's file: wrong values are refused in words, and valid ones make other jobs."""

import pytest

import kngjax as kng
from kngjax.command import job, job_file
from tests.command import forms
from tests.command.job_keys import VALID, WRONG
from tests.command.small_jobs import workers
from tests.offenders import every_case

SEPARATED = (('path = "workers.csv"', 'path = "workers.csv"\nseparator = ";"'),)


def test_a_wrong_value_is_refused_in_words_that_name_the_table_and_the_key(tmp_path):
    with every_case() as case:
        for wrong in WRONG:
            if wrong.made:
                continue
            with case(wrong.form, wrong.new):
                path = forms.write(wrong.form, tmp_path, (wrong.old, wrong.new))
                with pytest.raises(ValueError, match=wrong.words) as error:
                    job_file.read(path)
                assert str(error.value).startswith(str(path))


def test_what_makes_no_mechanism_is_refused_in_the_terms_of_the_file_and_costs_nothing(tmp_path):
    ledger = kng.Ledger.create(tmp_path / "book", kng.Budget.pure(30), adjacency="replace", dataset="workers")
    with every_case() as case:
        for wrong in WRONG:
            if not wrong.made:
                continue
            with case(wrong.form, wrong.new):
                config = job_file.read(forms.write(wrong.form, tmp_path, (wrong.old, wrong.new)))
                with pytest.raises(ValueError, match=wrong.words) as error:
                    job.run(config, workers(forms.FORMS[wrong.form][2]), ledger=ledger)
                assert str(error.value).startswith(str(config.path))
    assert ledger.read().num_rows == 1


def test_a_valid_value_makes_another_job_where_it_decides_what_is_released(tmp_path):
    plain = {form: job_file.read(forms.write(form, tmp_path)).identity for form in forms.FORMS}
    (tmp_path / "other").mkdir()
    identities = set(plain.values())
    with every_case() as case:
        for valid in VALID:
            with case(valid.form, valid.new):
                path = forms.write(valid.form, tmp_path / "other", (valid.old, valid.new))
                found = job_file.read(path).identity
                assert (found != plain[valid.form]) == valid.decides
                identities.add(found)
    # And each another one than all others.
    assert len(identities) == len(plain) + sum(valid.decides for valid in VALID)


# What was paid for is found again. Those with intervals are others than older versions released under these settings.
KEPT = {
    ("study", ()): "3ffbda322046ca98f50b11512ade167dd49c57347100692d748a4653a75aee47",
    ("study", SEPARATED): "8e550340c41e92b336f98a4fc20304d678910eb251670e6f94e3c50c39053468",
    ("intervals", ()): "cf45bb19af03f66b536bcd27ca2b4b62eab4d3d6a84c5557bb7b4f61021a91dc",
    ("intervals", SEPARATED): "1aebe6954d12229ec2ac52884c54d5b5d992edcde51aec0f00aae5f5257c0d57",
}


def test_an_unchanged_study_is_the_job_that_it_was(tmp_path):
    for (form, changes), digest in KEPT.items():
        assert job_file.read(forms.write(form, tmp_path, *changes)).identity == digest
