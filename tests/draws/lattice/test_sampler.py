"""What a draw spends, where its bits come from, and that nothing of a private n reaches it."""

import inspect
import random
import secrets
from fractions import Fraction

import numpy as np
import pytest

import kngjax as kng
from audits.lattices import lattice_law, lattice_loss, lattice_spread
from kngjax.draws.lattice import lattice as lattices
from kngjax.draws.lattice.scores import RESOLUTION

LINE = kng.Bounds(y=(-1.0, 1.0))
LEVELS = [0.25, 0.5, 0.9]
ADJACENCIES = ("add_remove", "replace")


def split(epsilon, adjacency="replace"):
    return kng.PrivateQuantile(LEVELS, LINE, epsilon, adjacency, budget="split")


@pytest.mark.parametrize("epsilon", [1.0, 0.1, 0.7, 3.0])
def test_the_rates_of_levels_that_are_drawn_one_by_one_add_up_to_epsilon(epsilon, monkeypatch):
    """Of whatever is drawn, and exactly: with three levels ε/3 is no decimal number."""
    drawn, problem = [], kng.draws.Lattice.problem

    def spied(*given):
        drawn.append(problem(*given))
        return drawn[-1]

    monkeypatch.setattr(kng.draws.Lattice, "problem", spied)
    mechanism = split(epsilon)
    kng.release(mechanism, None, np.linspace(-1, 1, 20), sampler=kng.draws.Lattice(4, 4))
    assert len(drawn) == len(LEVELS)
    total = sum(part.rate for part in drawn) * 2 * RESOLUTION
    exact = Fraction(str(epsilon))
    assert exact * (1 - Fraction(1, 10**12)) < total <= exact


@pytest.mark.slow
def test_levels_that_are_drawn_one_by_one_lose_epsilon_together_at_most_and_nearly():
    """One number moves from the left of a gap to the right, which each level has where it is worst: losses add up."""
    sampler, total = kng.draws.Lattice(5, 5), 0.0
    for part in split(1.0).densities():
        losses = []
        for left in range(10, 110, 5):
            heaps = np.concatenate([np.full(left, -0.96875), np.full(120 - left, 0.90625)])
            laws = [
                lattice_law(part, part.intake.records(None, np.append(heaps, last)), sampler) for last in (-1.0, 1.0)
            ]
            losses.append(lattice_loss(*laws)[1])
        total += max(losses)
    assert 0.8 < total <= 1.0


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_rates_are_epsilon_over_the_length_of_the_interval_that_scores_move_in(epsilon):
    exact = Fraction(str(epsilon))
    for kind, adjacency, length in (
        (kng.KNG, "replace", 2 * RESOLUTION),
        (kng.KNG, "add_remove", 2 * RESOLUTION),
        (kng.ExponentialMechanism, "replace", 2 * RESOLUTION),
        (kng.ExponentialMechanism, "add_remove", 2 * RESOLUTION + 1),
    ):
        mechanism = kind(kng.QuantileLoss(0.5), LINE, kng.Box(-1.0, 1.0), epsilon, adjacency)
        assert lattices.rate_of(mechanism) == exact / length


def test_one_record_more_moves_scores_over_an_interval_of_one_level_more():
    """No loss is 0 here, so both ends of the interval are rounded: 2R instead of 2R + 1 would spend more than ε."""
    # Responses are 3 after rounding, and a record with x = 1 has residuals from 17/8 to 4: all that any has.
    bounds = kng.Bounds(x=([0.25], [1.0]), y=(2.999, 3.0), intercept=False)
    far = kng.ExponentialMechanism(kng.SquaredLoss(), bounds, kng.Box(-1.0, 0.875), 1.0, "add_remove")
    sampler, worst = kng.draws.Lattice(5, 4), Fraction(0)
    for seed in range(12):
        x = np.random.default_rng(seed).uniform(0.25, 1.0, 5)
        pair = [far.intake.records(some[:, None], np.full(some.size, 3.0)) for some in (x, np.append(x, 1.0))]
        laws = [lattice_law(far, records, sampler) for records in pair]
        assert lattice_loss(*laws)[1] <= 1.0
        worst = max(worst, lattice_spread(*laws))
    assert worst == 1


def released(mechanism, **parts):
    y = np.linspace(-1.0, 1.0, 6)
    X = y[:, None] if mechanism.bounds.x_lower is not None else None
    return kng.release(mechanism, X, y if mechanism.loss.has_response else None, **parts)


SEEDABLE = {
    "quantile": lambda: released(kng.PrivateQuantile(0.5, LINE, 1.0, "replace")),
    "quantiles, one by one": lambda: released(split(1.0)),
    "quantiles, jointly": lambda: released(kng.PrivateQuantile(LEVELS, LINE, 1.0, "replace")),
    "value": lambda: released(kng.ExponentialMechanism(kng.SquaredLoss(), LINE, kng.Box(-1.0, 1.0), 1.0, "add_remove")),
    "mean": lambda: released(
        kng.KNG(
            kng.SquaredDistanceLoss(),
            kng.Bounds(x=([-1.0], [1.0]), intercept=False),
            kng.Box(-1.0, 1.0),
            1.0,
            "replace",
        )
    ),
    "in real numbers": lambda: released(
        kng.KNG(kng.QuantileLoss(0.5), LINE, kng.Box(-1.0, 1.0), 1.0, "replace"), sampler=kng.chains.Exact()
    ),
}


@pytest.mark.default_cases("quantile", "quantiles, one by one", "value", "mean")
@pytest.mark.parametrize("name", list(SEEDABLE))
def test_no_seed_of_anything_repeats_a_release(name):
    values, state = [], (random.getstate(), np.random.get_state())  # noqa: NPY002
    try:
        for _ in range(2):
            random.seed(5)
            np.random.seed(5)  # noqa: NPY002
            values.append(SEEDABLE[name]().value.tolist())
    finally:
        random.setstate(state[0])
        np.random.set_state(state[1])  # noqa: NPY002
    assert values[0] != values[1]


def test_bits_are_by_default_those_of_the_operating_system():
    assert inspect.signature(kng.draws.Lattice.draw).parameters["bits"].default is secrets.randbits
    asked = []

    def bits(width):
        asked.append(width)
        return secrets.randbits(width)

    mechanism = split(1.0)
    kng.draws.Lattice(4, 4).draw(mechanism, mechanism.intake.records(None, np.linspace(-1, 1, 5)), bits)
    # Each level asks for a box, a point of it, and most for whether it is kept.
    assert len(asked) >= 2 * len(LEVELS)


# Sums of 4294 records of a level with 6 decimals leave 20 digits, those of 4295 do not.
FINE = kng.KNG(kng.QuantileLoss(0.123457), LINE, kng.Box(-1.0, 1.0), 1.0, "add_remove")
SQUARED = kng.KNG(kng.SquaredLoss(), LINE, kng.Box(-1.0, 1.0), 1.0, "add_remove")


@pytest.mark.default_cases("quantile")
@pytest.mark.parametrize("mechanism", [FINE, SQUARED], ids=["quantile", "squared"])
def test_nothing_of_a_private_number_of_records_reaches_plan_or_certificate(mechanism):
    y = np.resize(np.linspace(-1.0, 1.0, 7), 4294)
    sampler = kng.draws.Lattice(max_records=2**19)
    certificates, plans = [], []
    for values in (y, np.append(y, 0.5), np.tile(y, 20)):
        certificates.append(kng.release(mechanism, None, values, sampler=sampler).certificate.to_dict())
        problem = sampler.problem(mechanism, mechanism.intake.records(None, values))
        plans.append((problem.domain.exponents, problem.domain.high.tolist(), problem.rate))
    assert certificates[0] == certificates[1] == certificates[2]
    assert plans[0] == plans[1] == plans[2]
    # That it would show: where n is public it decides.
    public = kng.KNG(kng.QuantileLoss(0.123457), LINE, kng.Box(-1.0, 1.0), 1.0, "replace")
    digits = [kng.draws.Lattice().resolve(public, 1, count).data_digits for count in (4294, 4295)]
    assert digits == [20, 19]
    assert certificates[0]["sampler"]["data_digits"] == (20 if mechanism is SQUARED else 13)


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("give", ["arrays", "a chunk without rows", "no chunk"])
def test_no_record_is_released_like_any_number_under_add_remove_alone(give):
    """n is private there, so that none may not be told from one."""
    bounds, X, y = kng.Bounds(x=([-1.0], [1.0]), y=(-1.0, 1.0)), np.zeros((0, 1)), np.zeros(0)
    nobody = {"arrays": (X, y), "a chunk without rows": (kng.stream([(X, y)]),), "no chunk": (kng.stream([]),)}[give]
    private, public = (kng.KNG(kng.SquaredLoss(), bounds, kng.L1Ball(1.0), 1.0, adjacency) for adjacency in ADJACENCIES)
    of_one = kng.release(private, np.zeros((1, 1)), np.zeros(1))
    of_none = kng.release(private, *nobody)
    assert of_none.certificate.to_dict() == of_one.certificate.to_dict()
    with pytest.raises((ValueError, kng.ReleaseFailed)):
        kng.release(public, *nobody)


def test_no_number_has_a_private_quantile_under_add_remove():
    for budget in ("joint", "split"):
        tau = 0.5 if budget == "joint" else LEVELS
        mechanism = kng.PrivateQuantile(tau, LINE, 1.0, "add_remove", budget=budget)
        released_of_none = kng.release(mechanism, None, np.zeros(0), sampler=kng.draws.Lattice(4, 4))
        assert released_of_none.certificate.assurance == "proved"


@pytest.mark.parametrize("coefficients", [1, 4])
def test_the_default_of_quantile_losses_whatever_the_number_of_records(coefficients):
    features = coefficients - 1
    bounds = kng.Bounds(x=([-1.0] * features, [1.0] * features)) if features else kng.Bounds(y=(-1.0, 1.0))
    for norm in (None, kng.L2()):
        mechanism = kng.KNG(kng.QuantileLoss(0.5), bounds, kng.Box(-1.0, 1.0), 1.0, "replace", norm)
        for count in (10, 10**8):
            X = np.broadcast_to(0.0, (count, features)) if features else None
            assert kng.certify(mechanism, X, np.broadcast_to(0.0, count)).sampler["type"] == "Lattice"
