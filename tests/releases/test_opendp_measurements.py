"""Mechanisms within OpenDP's compositors, and OpenDP's measurements on a ledger."""

import json
import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

import kngjax as kng
from kngjax.accounting import Guarantee
from kngjax.ledger import LedgerError
from kngjax.releases import opendp_measurements

dp = pytest.importorskip("opendp.prelude")

BOUNDS = kng.Bounds(x=([-1.0], [1.0]), y=(-1.0, 1.0))
BOX = kng.Box(-2.0, 2.0)
NUMBERS = kng.Bounds(y=(0.0, 1.0))
N = 500
Y = np.linspace(0.2, 0.4, N)
UNIT = {"replace": {"changes": 1}, "add_remove": {"contributions": 1}}


@pytest.fixture(autouse=True, scope="module")
def _features():
    """OpenDP makes measurements of others' functions for those alone who say that they trust these."""
    dp.enable_features("contrib", "honest-but-curious")
    yield
    dp.disable_features("contrib", "honest-but-curious")


def median(adjacency="replace", epsilon=0.3, bounds=NUMBERS):
    return kng.PrivateQuantile(0.5, bounds, epsilon, adjacency)


def space(adjacency):
    return kng.releases.opendp_records(N if adjacency == "replace" else None)


def measurement(mechanism, **settings):
    return kng.releases.make_opendp_measurement(*space(str(mechanism.adjacency)), mechanism, **settings)


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_a_context_pays_for_each_draw_and_then_refuses(adjacency):
    domain, _ = space(adjacency)
    context = dp.Context.compositor((Y, None), dp.unit_of(**UNIT[adjacency]), dp.loss_of(epsilon=0.65), domain=domain)
    made = measurement(median(adjacency))
    values = [context(made)[0], context(made)[0]]
    assert len(set(values)) == 2
    assert all(0.0 <= value <= 1.0 for value in values)
    assert context.current_privacy_loss() == pytest.approx(0.6)
    with pytest.raises(dp.OpenDPException, match="would exceed"):
        context(made)


def test_an_odometer_adds_up_rho_of_bounded_range():
    mechanism = kng.KNG(kng.QuantileLoss(0.5), BOUNDS, BOX, 0.4, "add_remove")
    zcdp = dp.zero_concentrated_divergence()
    made = measurement(mechanism, output_measure=zcdp)
    x = np.linspace(-1.0, 1.0, N)[:, None]
    odometer = dp.c.make_fully_adaptive_composition(*space("add_remove"), zcdp)((x, Y))
    assert np.all(np.isfinite([odometer(made), odometer(made)]))
    # A quarter of what ε-DP alone would have.
    assert odometer.privacy_loss(1) == pytest.approx(2 * 0.4**2 / 8)
    assert odometer.privacy_loss(3) == pytest.approx(9 * 2 * 0.4**2 / 8)


MAPS = {
    "pure": (lambda: median(epsilon=0.75), "MaxDivergence", {0: 0.0, 1: 0.75, 2: 1.5, 5: 3.75}),
    "means": (
        lambda: kng.KNormMechanism(kng.Bounds(x=([0.0], [1.0]), intercept=False), 0.5, "replace"),
        "MaxDivergence",
        {1: 0.5, 3: 1.5},
    ),
    "gaussian": (
        lambda: kng.AdaSSP(BOUNDS, 1.0, 1e-6, "replace"),
        "Approximate<MaxDivergence>",
        {0: (0.0, 0.0), 1: (1.0, math.nextafter(1e-6, 1.0))},
    ),
}


@pytest.mark.parametrize("name", MAPS)
def test_the_privacy_map_is_the_guarantee(name):
    mechanism, measure, losses = MAPS[name]
    made = measurement(mechanism())
    assert str(made.output_measure.type) == measure
    assert {distance: made.map(distance) for distance in losses} == losses


def test_rounded_draws_state_a_delta_that_grows_with_the_group():
    made = measurement(kng.PrivateQuantile([0.25, 0.5], NUMBERS, 0.7, "replace"))
    (one, first), (two, second) = made.map(1), made.map(2)
    assert (one, two) == pytest.approx((0.7, 1.4))
    assert second == pytest.approx(first * (1 + math.exp(1.4)) / (1 + math.exp(0.7)))
    assert made.check(2, (1.5, 1e-5))
    # Rounding may differ for the same records in another order.
    cost = kng.certify(kng.PrivateQuantile([0.25, 0.5], NUMBERS, 0.7, "replace"), Y).cost
    assert made.map(0)[0] == 0.0
    assert made.map(0)[1] >= 2 * cost.exact_distance > 0
    with pytest.raises(dp.OpenDPException, match="no finite loss"):
        made.map(100)


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 0.7, 1.9])
def test_no_loss_is_less_than_the_truth_as_a_binary_number(epsilon):
    """ε is the decimal that it prints as, in every draw, and OpenDP adds up binary numbers."""
    pure, gaussian = measurement(median(epsilon=epsilon)), measurement(kng.AdaSSP(BOUNDS, epsilon, 1e-7, "replace"))
    of_zcdp = measurement(median(epsilon=epsilon), output_measure=dp.zero_concentrated_divergence())
    exact = Fraction(repr(epsilon))
    for number in range(1, 12):
        assert 0 <= Fraction(pure.map(number)) - number * exact < Fraction(1, 10**14)
        assert Fraction(of_zcdp.map(number)) >= (number * exact) ** 2 / 8
    assert all(Fraction(loss) >= Fraction(true) for loss, true in zip(gaussian.map(1), (exact, "1e-7"), strict=True))


def test_values_beyond_the_bounds_are_clipped():
    made = measurement(MAPS["means"][0]())
    assert abs(made((np.full((N, 1), 1e300), None))[0] - 1.0) < 0.2


def test_a_release_that_fails_is_charged_and_says_nothing():
    context = dp.Context.compositor((np.where(Y < 0.3, np.nan, Y), None), *_owed(0.35), domain=space("replace")[0])
    assert np.isnan(context(measurement(median()))).tolist() == [True]
    with pytest.raises(dp.OpenDPException, match="would exceed"):
        context(measurement(median()))


def _owed(epsilon):
    return dp.unit_of(changes=1), dp.loss_of(epsilon=epsilon)


def test_an_interruption_does_not_pass_through_opendp(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    mechanism = kng.KNG(kng.QuantileLoss(0.5), BOUNDS, BOX, 0.4, "replace")
    for step in ("release", "certify"):
        with monkeypatch.context() as patched:
            patched.setattr(opendp_measurements, step, interrupted)
            assert np.isnan(measurement(mechanism)((Y[:, None], Y))).tolist() == [True, True]


def test_what_a_ledger_error_stops_after_a_draw_is_charged(monkeypatch):
    def stopped(*_):
        raise LedgerError("the releases cost another guarantee than was reserved: nothing is released")

    monkeypatch.setattr(opendp_measurements, "release", stopped)
    assert np.isnan(measurement(median())((Y, None))).tolist() == [True]


def test_records_that_change_on_the_way_give_nothing(monkeypatch):
    made = measurement(MAPS["means"][0]())
    assert np.isfinite(made((Y[:, None], None))).all()
    monkeypatch.setattr(opendp_measurements, "release", lambda mechanism, X, y: kng.release(mechanism, X[1:], y))
    assert np.isnan(made((Y[:, None], None))).tolist() == [True]


def test_a_stream_is_in_the_domain_where_nobody_counts_it():
    mechanism = kng.KNG(kng.QuantileLoss(0.5), BOUNDS, BOX, 0.4, "add_remove")
    records = kng.stream([(Y[:, None], Y)]), None
    assert len(measurement(mechanism)(records)) == 2
    assert not space("replace")[0].member(records)


def test_records_outside_of_the_domain_are_refused_without_a_value():
    made = measurement(median())
    for records in ((Y[:-1], None), Y, (Y, None, None), (None, None)):
        with pytest.raises(dp.OpenDPException, match="not in the domain") as refusal:
            made(records)
        assert "0.2" not in str(refusal.value)
        assert "499" not in str(refusal.value)
    domain, _ = space("replace")
    assert domain.member((Y, None))
    assert not domain.member((Y[1:], None))


def test_another_cost_than_was_stated_is_not_released(monkeypatch):
    made = measurement(median())
    other = kng.certify(median(epsilon=0.4), Y)
    monkeypatch.setattr(opendp_measurements, "certify", lambda *_: other)
    with pytest.raises(dp.OpenDPException, match="another guarantee"):
        made((Y, None))


REFUSED = {
    "the other adjacency": (lambda: (*space("add_remove"), median()), "num_records=n"),
    "a number under add_remove": (lambda: (*space("replace"), median("add_remove")), r"opendp_records\(\)"),
    "another domain": (
        lambda: (dp.vector_domain(dp.atom_domain(T=float, nan=False), size=N), dp.change_one_distance(), median()),
        "input_domain must be",
    ),
    "no records": (lambda: (space("replace")[0], dp.absolute_distance(T=float), median()), "must count records"),
    "weights": (
        lambda: (*space("replace"), kng.KNG(kng.QuantileLoss(0.5), _weighted(), BOX, 0.4, "replace")),
        "neither weights nor persons",
    ),
    "open columns": (
        lambda: (
            *space("replace"),
            kng.KNG(kng.QuantileLoss(0.5), kng.Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0)), BOX, 0.4, "replace"),
        ),
        "columns open",
    ),
    "pure of a Gaussian": (
        lambda: (*space("replace"), kng.AdaSSP(BOUNDS, 1.0, 1e-6, "replace"), dp.max_divergence()),
        "proved in MaxDivergence",
    ),
    "rho of a rounded draw": (
        lambda: (
            *space("replace"),
            kng.PrivateQuantile([0.25, 0.5], NUMBERS, 0.7, "replace"),
            dp.zero_concentrated_divergence(),
        ),
        "proved in ZeroConcentratedDivergence",
    ),
}


def test_a_cost_without_any_number_is_refused_in_words(monkeypatch):
    """Nothing finite is stated of a law near one of ρ-zCDP that names no δ."""
    near = Guarantee.zcdp("0.1", "replace").within("1e-9")
    monkeypatch.setattr(opendp_measurements, "plan_for", lambda *_: SimpleNamespace(owed=(near, True)))
    with pytest.raises(ValueError, match="no finite cost"):
        measurement(median())


def test_what_is_no_mechanism_and_no_measurement_is_named():
    process = kng.QuantileProcess([0.25, 0.5], kng.Bounds(), kng.Box(0.0, 1.0), 1.0, "replace", force=True)
    with pytest.raises(TypeError, match="QuantileProcess"):
        kng.releases.make_opendp_measurement(*space("replace"), process)
    odometer = dp.c.make_fully_adaptive_composition(*space("replace"), dp.max_divergence())
    with pytest.raises(TypeError, match="not a Odometer"):
        kng.releases.opendp_guarantee(odometer)
    limited = dp.c.make_privacy_filter(odometer, d_in=2, d_out=0.75)
    assert kng.releases.opendp_guarantee(limited).epsilon == 0.75


def _weighted():
    return kng.Bounds(x=([-1.0], [1.0]), y=(-1.0, 1.0), weight=2.0)


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_privacy_map_is_refused(name):
    given, words = REFUSED[name]
    with pytest.raises(ValueError, match=words):
        kng.releases.make_opendp_measurement(*given())


def laplace_sum(scale=10.0):
    """OpenDP's own sum of numbers between 0 and 1."""
    numbers = dp.vector_domain(dp.atom_domain(bounds=(0.0, 1.0), nan=False), size=N)
    return (
        (numbers, dp.change_one_distance())
        >> dp.t.then_metric_unbounded()
        >> dp.t.then_sum()
        >> dp.m.then_laplace(scale)
    )


def test_a_ledger_debits_what_opendp_releases(tmp_path):
    budget = kng.Budget.pure("0.5")
    ledger = kng.Ledger.create(tmp_path / "a.ledger", budget, adjacency="replace", dataset="invented")
    by_opendp = laplace_sum()
    guarantee = kng.releases.opendp_guarantee(by_opendp)
    assert 0.1 <= guarantee.epsilon < 0.1 + 1e-6
    reservation = ledger.reserve(guarantee, {"by": "opendp", "what": "a sum"}, drawn=True)
    reservation.commit(json.dumps({"value": by_opendp(list(Y))}), exact=True)
    kng.release(median(epsilon=0.3), Y, ledger=ledger)
    book = ledger.verify()
    assert book.spent.exact_epsilon == guarantee.exact_epsilon + 3 * Guarantee.pure("0.1", "replace").exact_epsilon
    assert [*json.loads(ledger.releases()[2])] == ["value"]
    with pytest.raises(kng.ledger.BudgetExceeded):
        ledger.reserve(guarantee)


def test_losses_of_opendp_are_guarantees():
    gaussian = (
        (dp.vector_domain(dp.atom_domain(bounds=(0, 1))), dp.symmetric_distance())
        >> dp.t.then_sum()
        >> dp.m.then_gaussian(10.0)
    )
    of_zcdp = kng.releases.opendp_guarantee(gaussian)
    # OpenDP's floats are binary numbers: 0.005 is a little more than its decimals say.
    assert (of_zcdp.exact_rho, of_zcdp.adjacency) == (Fraction(0.005), "add_remove")
    approximate = kng.releases.opendp_guarantee(dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(gaussian), 1e-6))
    assert approximate.delta == 1e-6
    assert 0.4 < approximate.epsilon < of_zcdp.at(delta=1e-6) * 1.01
    both = dp.c.make_composition([laplace_sum(), laplace_sum()])
    assert kng.releases.opendp_guarantee(both).epsilon == pytest.approx(0.2)
    assert kng.releases.opendp_guarantee(dp.c.make_approximate(both)).exact_delta == 0
    ours = kng.releases.opendp_guarantee(measurement(median()))
    assert 0 <= ours.exact_epsilon - Fraction("0.3") < Fraction(1, 10**16)
    only_delta = _user(
        _space_of_numbers(), dp.approximate(dp.max_divergence()), lambda distance: (0.0, 1e-6 * distance)
    )
    assert kng.releases.opendp_guarantee(only_delta).exact_delta == Fraction(1e-6)


def _space_of_numbers(size=None):
    return dp.vector_domain(dp.atom_domain(bounds=(0, 1)), size=size), dp.symmetric_distance()


def _user(space, measure, loss):
    return dp.m.make_user_measurement(*space, measure, lambda _: [0.0], loss, TO="Vec<f64>")


def test_losses_that_no_ledger_takes_are_refused():
    pure, approximate = dp.max_divergence(), dp.approximate(dp.max_divergence())
    of_one_number = dp.m.make_laplace(dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), 1.0)
    curve = dp.c.make_zCDP_to_approxDP(
        (dp.vector_domain(dp.atom_domain(bounds=(0, 1))), dp.symmetric_distance())
        >> dp.t.then_sum()
        >> dp.m.then_gaussian(10.0)
    )
    # Records cannot be added where their number is public: half of what one that is changed costs.
    ours = (space("replace")[0], dp.symmetric_distance())
    # Neighbours of a ledger may differ in the sizes of groups, whether n is public or not.
    frame = dp.lazyframe_domain([dp.series_domain("a", dp.atom_domain(T=float, nan=False))])
    groups = dp.with_margin(frame, dp.polars.Margin(by=["a"], max_length=N, invariant="lengths"))
    whole = dp.with_margin(frame, dp.polars.Margin(max_length=N, invariant="lengths"))
    refusals = [
        ("0 or infinite", _user(space("replace"), pure, lambda _: 0.0)),
        ("0 or infinite", _user(_space_of_numbers(), approximate, lambda _: (0.1, 1.0))),
        ("must count records", of_one_number),
        ("convert it", curve),
        ("number of records public", _user(_space_of_numbers(N), pure, lambda distance: 0.1 * distance)),
        ("number of records public", _user(ours, pure, lambda distance: 0.1 * distance)),
        ("number of records public", _user((whole, dp.symmetric_distance()), pure, lambda distance: 0.1 * distance)),
        ("groups public", _user((groups, dp.change_one_distance()), pure, lambda distance: 0.1 * distance)),
    ]
    for words, refused in refusals:
        with pytest.raises(ValueError, match=words):
            kng.releases.opendp_guarantee(refused)
