"""What a plan expects of a number follows from its preview, and a figure that is a guess is not listed."""

import pytest

from kngjax.study.reports.plan_page import Foreseen, Planned, foreseen, plan_page
from tests.study.reports.pages_made import NAMED, require_a_good_page, study_of


def planned(*numbers, refusal=None):
    return Planned("Mean of x", "much", refusal, {"ε/2": "too little", "ε": [*numbers]}, {}, ("Assumed: all of it.",))


def test_errors_of_privacy_and_of_sampling_go_together():
    number = Foreseen("mean", "mean of x", 3.0, 4.0, None, True)
    assert (number.with_noise, number.times) == (5.0, 1.25)
    assert number.interval == pytest.approx(2 * 1.96 * 5.0)
    released = Foreseen("tau = 0.5", "x", 3.0, 4.0, 2.0, False)
    assert (released.times, released.interval) == (2.0, pytest.approx(2 * 1.96 * 8.0))
    assert Foreseen("tau = 0.5", "x", 3.0, 4.0, None, False).times is None
    assert Foreseen("count", "each", 3.0, None, None, True).with_noise == 3.0


def test_a_guess_is_not_listed_and_a_refusal_is():
    guess = Foreseen("tau = 0.5", "x", 3.12, 4.0, None, False)
    page = plan_page("job", [planned(guess)], "all", None, "")
    seen = require_a_good_page(page)
    assert "3.12" not in page
    assert "Noise is not stated in figures" in page
    assert "At ε/2: too little" in page
    assert "Nothing is refused" in page
    assert len(seen.named("svg")) == 1
    stated = plan_page("job", [planned(Foreseen("mean", "x", 3.12, None, None, True))], "all", None, "")
    assert "3.12" in stated
    refused = plan_page("<job>", [planned(guess, refusal="no <b>")], "all", [["epsilon", "3", "0", "2"]], "too much")
    require_a_good_page(refused)
    for words in ("As it stands this plan is refused", "Mean of x: no &lt;b&gt;", "too much", "&lt;job&gt;"):
        assert words in refused


def test_numbers_are_those_of_the_preview():
    study = study_of()
    preview = study.preview().mean(NAMED, epsilon=1)
    [found] = foreseen(preview)
    assert found.noise == pytest.approx(float(preview.noise.iloc[0, 0]))
    assert found.error == pytest.approx(float(preview.standard_error.iloc[0, 0]))
    [count] = foreseen(study.preview().histogram("region", epsilon=1))
    assert (count.name, count.is_stated) == ("each count", True)
    # The width is that of the interval which comes with the release.
    released = study.histogram("region", epsilon=1).to_frame()
    assert (released["upper"] - released["lower"]).to_list() == [count.interval] * 2
    groups = study.preview().by("region", num_records=150).mean(NAMED, epsilon=1)
    # Of both groups the same is expected.
    [group] = foreseen(groups)
    assert group.label.startswith("region = </script>; region = <b>south</b>")
