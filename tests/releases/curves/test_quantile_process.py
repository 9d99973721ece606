"""Released quantile processes: one debit and one certificate, quantiles and draws, files, and who is refused."""

import dataclasses
import json
import pathlib
import pickle

import jax
import numpy as np
import numpyro.distributions as dist
import pandas as pd
import pytest
import scipy.stats

import kngjax as kng
from tests.made_once import MadeOnce

OLDER = pathlib.Path(__file__).parent / "older"
LEVELS = [0.25, 0.5, 0.75]
BOUNDS = kng.Bounds(x={"schooling": (-1.0, 1.0)}, y=(-3.0, 3.0))
GIVEN = {"levels": LEVELS, "bounds": BOUNDS, "domain": kng.Box(-4.0, 4.0), "epsilon": 1.0, "adjacency": "replace"}


def process(**changes):
    return kng.QuantileProcess(**GIVEN | changes)


def table(number, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.uniform(-1.0, 1.0, (number, 1))
    return x, np.clip(0.5 * x[:, 0] + (1.0 + 0.4 * x[:, 0]) * generator.standard_normal(number), -3.0, 3.0)


@pytest.fixture(scope="module")
def released():
    return MadeOnce(
        {
            "replace": lambda: kng.release(process(), *table(500)),
            "add_remove": lambda: kng.release(process(adjacency="add_remove"), *table(500)),
        }
    )


@pytest.mark.default_cases("add_remove")
@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_a_release_is_one_debit_with_one_certificate_of_all_parts(adjacency, tmp_path):
    ledger = kng.Ledger.create(tmp_path / "book", kng.Budget.pure(1.0), adjacency=adjacency, dataset="made up")
    frame, y = pd.DataFrame(table(500)[0], columns=["schooling"]), table(500)[1]
    made = kng.release(process(adjacency=adjacency), frame, y, ledger=ledger)
    certificate = made.certificate
    assert certificate == process(adjacency=adjacency).certify(frame, y)
    assert certificate.cost.epsilon == pytest.approx(1.0, abs=1e-12)
    assert certificate.cost.epsilon <= 1.0
    assert certificate.assurance == "proved"
    assert certificate.num_records == (500 if adjacency == "replace" else None)
    assert len(ledger.releases()) == 1
    with pytest.raises(kng.ledger.BudgetExceeded):
        kng.release(process(adjacency=adjacency, epsilon=0.5), frame, y, ledger=ledger)
    shares = [(part["level"], part["relative_level"], part["epsilon"]) for part in certificate.sampler["parts"]]
    later = 0.25 if adjacency == "replace" else 0.5
    assert shares == [(0.25, 0.5, later), (0.5, 0.5, 0.5), (0.75, 0.5, later)]
    assert {part["assurance"] for part in certificate.sampler["parts"]} == {"proved"}
    text = made.explain()
    assert all(f"Level {level}: depth" in text for level in LEVELS)
    assert "above the curve of 0.5, at their level 0.5; KNG with QuantileLoss for add_remove" in text
    assert made.names == ("intercept", "schooling")


def test_a_reservation_pays_for_one(tmp_path):
    ledger = kng.Ledger.create(tmp_path / "book", kng.Budget.pure(2.0), adjacency="replace", dataset="made up")
    x, y = table(500)
    reservation = ledger.reserve(process().certify(x, y).cost)
    kng.release(process(), x, y, ledger=reservation)
    with pytest.raises((ValueError, kng.ledger.LedgerError)):
        kng.release(process(), x, y, ledger=reservation)


def test_it_lies_about_the_curves_of_many_records():
    x, y = table(20_000)
    made = kng.release(process(epsilon=2.0, levels=[0.1, 0.5, 0.9]), x, y)
    expected = np.array(
        [[scipy.stats.norm.ppf(level), 0.5 + 0.4 * scipy.stats.norm.ppf(level)] for level in [0.1, 0.5, 0.9]]
    )
    np.testing.assert_allclose(made.value, expected, atol=0.08)


@pytest.mark.default_cases("replace")
@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_it_is_read_from_its_json_and_cannot_be_written_to(released, adjacency):
    made = released[adjacency]
    for again in (kng.releases.QuantileCurves.from_json(made.to_json()), pickle.loads(pickle.dumps(made))):
        assert again == made
        assert hash(again) == hash(made)
        assert again.certificate == made.certificate
        np.testing.assert_array_equal(again.value, made.value)
    assert json.loads(made.to_json())["certificate"]["mechanism"]["type"] == "QuantileProcess"
    assert made.value.shape == (3, 2)
    with pytest.raises(ValueError, match="read-only"):
        made.value[0, 0] = 1.0
    assert "QuantileCurves of levels 0.25, 0.5, 0.75" in repr(made)
    assert ">0.25</th>" in made._repr_html_()


@pytest.mark.parametrize("order", ["location_scale", "joint_by_chain", "joint_exact"])
def test_releases_of_orders_that_are_no_longer_drawn_are_read(order):
    text = (OLDER / f"{order}.json").read_text(encoding="utf-8")
    again = kng.releases.QuantileCurves.from_json(text)
    assert kng.releases.QuantileCurves.from_json(again.to_json()) == again
    assert again.release == kng.Release.from_json(text)
    kept = json.loads(text)
    assert again.release.value.tolist() == kept["value"]
    assert json.loads(again.to_json())["certificate"]["mechanism"] == kept["certificate"]["mechanism"]
    assert json.loads(again.to_json())["certificate"]["guarantee"] == kept["certificate"]["guarantee"]
    certificate, levels = again.certificate, again.levels
    assert order.startswith(certificate.mechanism["order"])
    assert again.value.shape == (len(levels), 1 + (order == "location_scale"))
    assert (certificate.cost is None) == (order == "joint_by_chain")
    assert set(again.release.published) == (set() if order == "location_scale" else {"totals"})
    assert "QuantileProcess on Box" in again.explain()
    assert ("\nLocation: " in again.explain()) == ("\nScale: " in again.explain()) == (order == "location_scale")
    x = np.zeros((1, again.value.shape[1] - 1))
    np.testing.assert_allclose(again.quantiles(x, levels)[0], again.value[:, 0])


def test_another_release_is_no_quantile_process():
    other = kng.release(kng.PrivateQuantile(LEVELS, kng.Bounds(y=(0.0, 1.0)), 1.0, "replace"), None, np.ones(9))
    with pytest.raises(TypeError, match="QuantileProcess"):
        kng.releases.QuantileCurves(other)


def test_quantiles_are_curves_at_their_levels_linear_in_normal_scores_and_within_bounds(released):
    made, x = released["replace"], np.array([[-1.0], [0.3], [1.0]])
    expected = np.column_stack([np.ones(3), x]) @ made.value.T
    np.testing.assert_allclose(made.quantiles(x, LEVELS), expected)
    np.testing.assert_allclose(made.quantiles(x, 0.5), expected[:, 1])
    # Halfway between the scores of .25 and .5.
    between = scipy.stats.norm.cdf(scipy.stats.norm.ppf(0.25) / 2.0)
    np.testing.assert_allclose(made.quantiles(x, between), expected[:, :2].mean(axis=1))
    beyond = scipy.stats.norm.cdf(2.0 * scipy.stats.norm.ppf(0.75))
    np.testing.assert_allclose(made.quantiles(x, beyond), np.clip(2.0 * expected[:, 2] - expected[:, 1], -3.0, 3.0))
    many = made.quantiles(x, np.linspace(1e-9, 1.0 - 1e-9, 301))
    assert np.all(np.diff(many, axis=1) >= 0.0)
    assert many.min() == -3.0
    assert many.max() == 3.0


def test_quantiles_outside_of_the_bounds_of_x_are_sorted(released):
    far = np.array([[-90.0], [90.0]])
    assert np.all(np.diff(released["replace"].quantiles(far, LEVELS), axis=1) >= 0.0)


def test_draws_have_the_released_quantiles(released):
    made, x = released["replace"], np.full((4000, 1), 0.2)
    drawn = made.draw(x, kng.research_key(3))
    for level in LEVELS:
        share = np.mean(drawn <= made.quantiles(x[:1], level)[0])
        assert abs(share - level) < 4.0 * np.sqrt(level * (1.0 - level) / 4000)
    np.testing.assert_array_equal(drawn, made.draw(x, kng.research_key(3)))
    assert np.all((drawn >= -3.0) & (drawn <= 3.0))


@pytest.mark.parametrize("x", [np.zeros(3), np.zeros((3, 2)), [[np.nan]]])
def test_rows_that_are_none_are_refused(released, x):
    with pytest.raises(ValueError, match="finite rows of 1 numbers"):
        released["replace"].quantiles(x, 0.5)


@pytest.mark.parametrize("tau", [0.0, 1.0, [0.5, 1.1], [[0.5]]])
def test_levels_that_are_none_are_refused_of_what_was_released(released, tau):
    with pytest.raises(ValueError, match="tau must be"):
        released["replace"].quantiles(np.zeros((1, 1)), tau)


REFUSED = {
    "not increasing": ({"levels": [0.5, 0.25]}, ValueError, r"levels=\[0.25, 0.5\]"),
    "twice": ({"levels": [0.5, 0.5]}, ValueError, "each given once"),
    "outside": ({"levels": [0.0, 0.5]}, ValueError, "strictly between 0 and 1"),
    "one": ({"levels": [0.5]}, ValueError, "of one take KNG"),
    "a hundred": (
        {"levels": np.arange(1, 101) / 101},
        ValueError,
        r"up to 99 levels, not 100: .*Take fewer; release.quantiles\(x, tau\) has any level between them",
    ),
    "a number": ({"levels": 0.5}, ValueError, "list"),
    "words": ({"levels": "auto"}, TypeError, "list of numbers"),
    "no levels": ({"levels": None}, ValueError, "levels are missing"),
    "no bounds": ({"bounds": None}, ValueError, "bounds are missing"),
    "no domain": ({"domain": None}, ValueError, "integrable"),
    "no epsilon": ({"epsilon": None}, ValueError, "epsilon is missing"),
    "no adjacency": ({"adjacency": None}, ValueError, "adjacency"),
    "a large epsilon": ({"epsilon": 200.0}, ValueError, "allow_large_epsilon"),
    "a base measure": ({"domain": kng.BaseMeasure(dist.Normal(0.0, 1.0))}, ValueError, "Box"),
    "five coefficients": (
        {"bounds": kng.Bounds(x=(-np.ones(4), np.ones(4)))},
        ValueError,
        "takes up to 4 coefficients with the intercept, not 5: leave columns out",
    ),
    "another order": ({"order": "joint"}, TypeError, "order"),
    "records promised where they are public": ({"max_records": 9}, ValueError, "leave max_records out"),
    "no number of records": ({"max_records": 0.5, "adjacency": "add_remove"}, ValueError, "max_records"),
    "weights": ({"bounds": kng.Bounds(x=([0.0], [1.0]), weight=2.0)}, ValueError, "no weights"),
    "dropped records": ({"bounds": kng.Bounds(x=([0.0], [1.0]), missing="drop")}, ValueError, "drop"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_makes_no_process_is_refused_in_words(name):
    changes, error, words = REFUSED[name]
    with pytest.raises(error, match=words):
        process(**changes)


def test_levels_that_are_little_but_noise_are_refused_of_public_facts_alone(tmp_path):
    x, y = table(400)
    asked = process(levels=[0.01, 0.3, 0.5, 0.7, 0.99])
    ledger = kng.Ledger.create(tmp_path / "book", kng.Budget.pure(9.0), adjacency="replace", dataset="made up")
    with pytest.raises(ValueError, match=r"of these the outermost are 0.3 and 0.7"):
        kng.release(asked, x, y, ledger=ledger)
    assert not ledger.releases()
    with pytest.raises(ValueError, match="none of these has them"):
        process().certify(x[:5], y[:5])
    # Under add_remove n is private, and only what was promised of it is known.
    several = {"levels": [0.01, 0.5], "adjacency": "add_remove"}
    process(**several).certify(x[:5], y[:5])
    with pytest.raises(ValueError, match="outermost"):
        process(**several, max_records=300).certify(x[:5], y[:5])


def test_types_and_shapes_are_refused_in_words_before_anything_is_spent(tmp_path):
    ledger = kng.Ledger.create(tmp_path / "book", kng.Budget.pure(1.0), adjacency="replace", dataset="made up")
    x, y = table(500)
    for given, error in (((x[:, :0], y), ValueError), ((x, None), ValueError), ((x, y[:4]), ValueError)):
        with pytest.raises(error):
            kng.release(process(), *given, ledger=ledger)
    with pytest.raises(TypeError, match="neither weights nor a sampler"):
        kng.release(process(), x, y, sampler=kng.chains.Exact())
    assert not ledger.releases()


def test_what_fails_after_the_debit_says_one_constant_text(tmp_path):
    ledger = kng.Ledger.create(tmp_path / "book", kng.Budget.pure(1.0), adjacency="add_remove", dataset="made up")
    x, y = table(500)
    with pytest.raises(kng.ReleaseFailed) as failed:
        kng.release(process(adjacency="add_remove", max_records=400), x, y, ledger=ledger)
    assert str(failed.value) == str(kng.ReleaseFailed())
    assert failed.value.__cause__ is None
    assert failed.value.__context__ is None
    with pytest.raises(kng.ledger.BudgetExceeded):
        kng.release(process(adjacency="add_remove"), x, y, ledger=ledger)


def test_missing_responses_count_as_declared_and_heaps_get_noise():
    x, y = table(500)
    y[:3] = np.nan
    with pytest.raises(kng.ReleaseFailed):
        kng.release(process(), x, y)
    bounds = kng.Bounds(x=([-1.0], [1.0]), y=(-3.25, 3.25), missing_y=0.0, dither=0.5)
    assert kng.release(process(bounds=bounds), x, np.round(2.0 * y) / 2.0).value.shape == (3, 2)


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_it_is_shown_as_the_call_that_makes_it_again(adjacency):
    asked = process(adjacency=adjacency, levels=np.array(LEVELS))
    again = eval(repr(asked), {name: getattr(kng, name) for name in ("QuantileProcess", "Bounds", "Box")})
    assert repr(again) == repr(asked)
    assert again.settings() == asked.settings()
    with pytest.raises(dataclasses.FrozenInstanceError):
        asked.epsilon = 2.0
    with pytest.raises(TypeError, match="no_such_setting"):
        process(no_such_setting=1)


def test_nothing_of_jax_but_its_keys_is_asked_for(released):
    with pytest.raises(TypeError):
        released["replace"].draw(np.zeros((1, 1)), jax.random.PRNGKey(0))
