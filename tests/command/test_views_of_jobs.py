"""What a job shows: released curves in a figure."""

import dataclasses
import sys
import types

import numpy as np
import pytest

import kngjax as kng
from kngjax.command import job, job_figure, job_file
from kngjax.releases import release
from kngjax.study import public_facts
from tests.command.small_jobs import workers, write_job

FORMULA = "log(wage) ~ education + poly(experience, 2)"


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """Releases of a job, with numbers in the place of its draws: compiling a chain takes longer than all reports."""
    numbers = iter([np.array([4.0, 1.0, 0.5, -0.5]), np.array([6.0, 1.25, 0.5, -0.75])])
    config = job_file.read(write_job(tmp_path_factory.mktemp("job")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(public_facts, "expecting", lambda analysis, *_: analysis)
        patch.setattr(release, "drawn", lambda _, certificate, *__: kng.Release._of(next(numbers), certificate))
        return job.run(config, workers(), progress=False)


def test_curves_are_what_the_coefficients_in_own_units_say(released):
    plan, [result] = released
    [axes] = job_figure.draw(plan.file, result).axes
    points = np.linspace(0.0, 60.0, 101)
    powers = np.stack([np.ones(101), np.full(101, 12.0), points, points**2])
    for line, tau in zip(axes.get_lines(), ("tau = 0.25", "tau = 0.5"), strict=True):
        np.testing.assert_allclose(line.get_ydata(), np.exp(result.params[tau].to_numpy() @ powers), rtol=1e-9)


def test_the_figure_says_what_it_shows_without_pyplot(released, tmp_path):
    plan, [result] = released
    sys.modules.pop("matplotlib.pyplot", None)
    figure = job_figure.draw(plan.file, result)
    figure.savefig(tmp_path / "curves.png")
    assert "matplotlib.pyplot" not in sys.modules
    (axes,) = figure.axes
    assert axes.get_xlabel() == "experience (years)"
    assert axes.get_ylabel() == "conditional quantile of wage (dollars a week)"
    lines = axes.get_lines()
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["τ = 0.5", "τ = 0.25"]
    # Told apart without colour.
    assert len({line.get_linestyle() for line in lines}) == 2
    assert "nothing is proved of them, one record replaced; education = 12 years." in figure.get_supxlabel()


def test_the_caption_states_what_the_releases_cost(released):
    plan, [result] = released
    proved = types.SimpleNamespace(guarantee=kng.Guarantee.approximate(0.3, 1e-6, "replace"))
    words = "total ε = 0.3, δ = 1e-06, one record replaced; education = 12 years."
    assert words in job_figure._caption(plan.file, proved)
    with pytest.raises(ValueError, match=r"the table \[figure\] is missing"):
        job_figure.draw(dataclasses.replace(plan.file, figure=None), result)
