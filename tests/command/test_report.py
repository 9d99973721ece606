"""What a job shows: the table in own units, certificates in short, released curves, the owner's view."""

import dataclasses
import re
import sys
import types

import numpy as np
import polars as pl
import pytest

import kngjax as kng
from kngjax.command import config as configuration
from kngjax.command import job, planning, report
from kngjax.releases import release, totals
from kngjax.releases.promises import EXACT
from tests.command.small_jobs import workers, write_job


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """Releases of a job, with numbers in the place of its draws: compiling a chain takes longer than all reports."""
    numbers = iter([np.array([4.0, 1.0, 0.5, -0.5]), np.array([6.0, 1.25, 0.5, -0.75])])
    config = configuration.read(write_job(tmp_path_factory.mktemp("job")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(release, "_draw_numbers", lambda *_: next(numbers))
        return config, job.run(config, workers(), progress=False)


def test_the_table_holds_the_coefficients_in_own_units(released):
    config, results = released
    table = report.table(config, results)
    assert "wage in dollars a week, education in years, experience in years" in table
    rows = {line.split()[0]: line.split()[1:] for line in table.splitlines() if line}
    for place, name in enumerate(planning.design(config).names):
        assert rows[name] == [f"{result.coefficients[place]:.4g}" for result in results]


def test_equal_certificates_are_one_line(released):
    _, results = released
    short = report.certificates(results)
    assert short.startswith("Each release: LineGibbs (Markov chain): its limit law is pure 0.15-differential privacy")
    assert len(short.splitlines()) == 2
    assert "pure epsilon = 0.3, the exact sum of 3/20 + 3/20" in short
    certificate = dataclasses.replace(results[0].release.certificate, promise=EXACT)
    other = dataclasses.replace(results[0], release=kng.Release._of(results[0].release.value, certificate))
    lines = report.certificates([other, results[1]]).splitlines()
    assert lines[0].startswith("tau = 0.25: LineGibbs: proved")
    assert lines[1].startswith("tau = 0.5: LineGibbs (Markov chain)")
    assert len(report.certificates(results[:1]).splitlines()) == 1


def test_curves_are_what_the_coefficients_in_own_units_say(released):
    config, results = released
    points = np.array([0.0, 12.5, 60.0])
    powers = np.stack([np.ones(3), np.full(3, 12.0), points, points**2])
    expected = np.exp(np.stack([result.coefficients for result in results]) @ powers)
    np.testing.assert_allclose(report.curves(config, results, points), expected, rtol=1e-9)


@pytest.mark.parametrize(("loss", "function"), [("logistic", lambda eta: 1 / (1 + np.exp(-eta))), ("poisson", np.exp)])
def test_curves_are_on_the_scale_of_the_response(released, loss, function):
    config, results = released
    response = dataclasses.replace(config.response, transform=None)
    changed = dataclasses.replace(config, response=response, loss=configuration.Loss(type=loss))
    points = np.linspace(0.0, 60.0, 5)
    as_log = np.log(report.curves(config, results, points))
    np.testing.assert_allclose(report.curves(changed, results, points), function(as_log), rtol=1e-9)
    assert report.figure(changed, results).axes[0].get_ylabel()


def test_the_figure_says_what_it_shows_without_pyplot(released, tmp_path):
    config, results = released
    sys.modules.pop("matplotlib.pyplot", None)
    figure = report.figure(config, results)
    figure.savefig(tmp_path / "curves.png")
    assert "matplotlib.pyplot" not in sys.modules
    (axes,) = figure.axes
    assert axes.get_xlabel() == "experience (years)"
    assert axes.get_ylabel() == "conditional quantile of wage (dollars a week)"
    lines = axes.get_lines()
    assert [line.get_label() for line in lines] == ["τ = 0.5", "τ = 0.25"]
    # Told apart without colour.
    assert len({line.get_linestyle() for line in lines}) == 2
    caption = figure.get_supxlabel()
    assert "total ε = 0.3, one record replaced; education = 12 years." in caption
    assert "not for finite runs" in caption


def test_the_caption_states_what_the_releases_cost_with_their_rounding(released):
    config, results = released
    exact = [
        dataclasses.replace(
            one,
            release=kng.Release._of(one.release.value, dataclasses.replace(one.release.certificate, promise=EXACT)),
        )
        for one in results
    ]
    caption = report.figure(config, exact).get_supxlabel()
    cost = totals.total_cost(one.release.certificate for one in exact)
    assert cost.delta > 0
    assert f"total ε = 0.3, δ = {cost.delta:.3g}, one record replaced" in caption
    assert "finite runs" not in caption


def test_a_job_without_a_figure_has_no_curves(released):
    config, results = released
    with pytest.raises(ValueError, match=r"the table \[figure\] is missing"):
        report.figure(dataclasses.replace(config, figure=None), results)


@pytest.mark.default_cases("by hand")
@pytest.mark.parametrize("chains", ["by hand", "drawn"])
def test_the_owner_sees_the_fit_the_clipping_and_the_chains_under_a_banner(released, chains, monkeypatch):
    config, results = released
    if chains == "by hand":
        # Compiling them takes longer than all other tests of reports.
        monkeypatch.setattr(
            kng,
            "sample",
            lambda *_, num_draws, num_chains, sampler, **__: types.SimpleNamespace(
                theta=np.zeros((num_chains, num_draws, 4)),
                sampler=type(sampler).__name__,
                rhat=lambda: np.full(4, 1.01),
                ess=lambda: np.full(4, 300.0),
            ),
        )
    # As a CSV file has it: all text.
    frame = workers().with_columns(pl.all().cast(pl.String))
    view = report.owner_view(config, frame, results[1:], progress=False)
    lines = view.splitlines()
    assert lines[1] == lines[-1] == report.OWNER_BANNER
    assert "300 records" in lines
    experience = workers()["experience"].to_numpy()
    clipped = np.mean((experience < 0) | (experience > 60))
    assert f"  experience: {clipped:.4g}, missing 0" in lines
    assert f"  wage: {1 / 300:.4g}, missing 0" in lines
    assert "tau = 0.5 (4 research chains of LineGibbs, 100 draws each)" in lines
    row = next(line for line in lines if line.startswith("education P1"))
    fit, error, value, difference, rhat, ess = (float(number) for number in re.split(r"\s{2,}", row)[1:])
    assert value == pytest.approx(results[1].release.value[1], rel=1e-3)
    # Standard errors are printed with two digits.
    assert difference == pytest.approx((value - fit) / error, rel=0.1, abs=0.02)
    assert 0.9 < rhat < 1.5
    assert ess > 10
