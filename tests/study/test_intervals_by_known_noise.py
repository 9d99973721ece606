"""Sums and means of a study have intervals by the law of their noise, and others say in words why not."""

import numpy as np
import pytest

import kngjax as kng
from tests.study.people import PEOPLE, study

SHARP = 60.0
EDUCATION = PEOPLE["education"]


def test_a_mean_of_a_public_number_has_an_interval_of_the_table_and_of_the_population():
    found = study(PEOPLE).mean("education", epsilon=SHARP)
    own, population = found.conf_int(1.0 - 1e-12).iloc[0], found.conf_int(1.0 - 1e-12, of="population").iloc[0]
    assert own["lower"] <= EDUCATION.mean() <= own["upper"]
    assert population["lower"] < own["lower"]
    assert own["upper"] < population["upper"]
    scale = float(found.noise.iloc[0]) / np.sqrt(2.0)
    half = found.conf_int(0.9).iloc[0]
    np.testing.assert_allclose(half["upper"] - half["lower"], 2.0 * scale * np.log(10.0), rtol=1e-9)
    assert "holds the mean of the table's own clipped values with probability 0.95" in str(found)
    assert found.to_frame()["lower"].iloc[0] == found.conf_int().iloc[0, 0]
    kept = kng.Results.from_json(found.to_json())
    assert kept.conf_int().equals(found.conf_int())


def test_a_sum_has_one_of_the_table_and_where_n_is_public_of_the_population():
    for adjacency in ("replace", "add_remove"):
        found = study(PEOPLE, adjacency=adjacency).sum("education", epsilon=SHARP)
        own = found.conf_int(1.0 - 1e-12).iloc[0]
        assert own["lower"] <= EDUCATION.sum() <= own["upper"]
    with pytest.raises(ValueError, match="where the number of records is public"):
        found.conf_int(of="population")
    of_public = study(PEOPLE).sum("education", epsilon=SHARP).conf_int(of="population").iloc[0]
    mean = study(PEOPLE).mean("education", epsilon=SHARP).conf_int(of="population").iloc[0]
    np.testing.assert_allclose(of_public / len(PEOPLE), mean, rtol=0.01)


@pytest.mark.parametrize("of", [{"of": "people"}, {"level": 0.0}, {"level": 1.5}])
def test_other_levels_and_words_are_refused(of):
    found = study(PEOPLE).sum("education", epsilon=SHARP)
    with pytest.raises(ValueError, match="level must lie" if "level" in of else "intervals are of the"):
        found.conf_int(**of)


def test_where_noise_depends_on_the_records_words_say_so():
    one = study(PEOPLE, adjacency="add_remove", num_records=len(PEOPLE))
    for found in (one.mean("education", epsilon=1.0), one.variance("education", epsilon=1.0)):
        with pytest.raises(ValueError, match="depends on the records"):
            found.conf_int()
        assert "lower" not in found.to_frame()
