"""Whatever records are, and whatever numbers are released, intervals have finite ends: of tables that nobody fits."""

import json

import numpy as np
import pytest

import kngjax as kng
from kngjax.inference.interval_choices import plan_as_kept
from tests.inference.test_with_intervals import LEVELS, OF_LEVELS, table_of_levels


def features(random, kind, number):
    """Two columns in [-1, 1], before they are scaled."""
    x = random.uniform(-1.0, 1.0, (number, 2))
    if kind == "constant":
        x[:, 1] = random.choice([-1.0, 0.0, 1.0])
    elif kind == "equal":
        x[:] = x[0]
    elif kind == "collinear":
        x[:, 1] = -x[:, 0]
    elif kind == "corners":
        x = np.sign(x)
    elif kind == "beyond":
        x *= 10.0 ** random.integers(0, 300)
    elif kind == "tiny":
        x *= 1e-300
    return x


def responses(random, loss, x, kind):
    number = len(x)
    if loss == "logistic":
        return (x[:, 0] > 0.0).astype(float) if kind != "equal" else np.ones(number)
    if loss == "Poisson":
        return random.integers(0, 21, number).astype(float)
    return random.choice([random.uniform(-1.0, 1.0, number), np.sign(x[:, 0]), np.full(number, 9.0)])


KINDS = ("spread", "constant", "equal", "collinear", "corners", "beyond", "tiny")
# Of the losses which mechanism, and in which box of coefficients for features in [-1, 1].
LOSSES = {
    "robust": lambda b, box, e, a: kng.ObjectivePerturbation(kng.PseudoHuberLoss(0.3), b, box, e, a),
    "squared": lambda b, box, e, a: kng.KNG(kng.SquaredLoss(), b, box, e, a),
    "logistic": lambda b, box, e, a: kng.ObjectivePerturbation(kng.LogisticLoss(), b, box, e, a),
    "Poisson": lambda b, box, e, a: kng.ObjectivePerturbation(kng.CappedPoissonLoss(4.0), b, box, e, a),
    "median": lambda b, box, e, a: kng.KNG(kng.QuantileLoss(0.5), b, box, e, a),
}
RANGES = {"logistic": None, "Poisson": (0.0, 20.0)}


def release_of(seed, loss):
    """A forced release of a wild table, which follows from the seed, and what it is of in words."""
    random = np.random.default_rng([seed, len(loss)])
    kind, adjacency = KINDS[seed % len(KINDS)], ("replace", "add_remove")[seed % 2]
    number, epsilon = int(random.integers(1, 51)), float(np.exp(random.uniform(np.log(0.01), np.log(50.0))))
    scale = float(10.0 ** random.integers(-6, 7)) if loss != "Poisson" else 1.0
    x = features(random, kind, number)
    y = responses(random, loss, x, kind)
    bounds = kng.Bounds(x=(np.full(2, -scale), np.full(2, scale)), y=RANGES.get(loss, (-1.0, 1.0)))
    made = LOSSES[loss](bounds, kng.Box(-2.0, 2.0), epsilon, adjacency)
    with np.errstate(over="ignore"):
        fit = kng.release(kng.WithIntervals(made, num_records=number, force=True), scale * x, y)
    return fit, f"{loss}, {kind}, {adjacency}, n = {number}, epsilon = {epsilon:.3g}, scale = {scale:g}, seed {seed}"


def assert_finite(fit, words):
    words = f"{words}: {[part.value.tolist() for part in fit.parts]}"
    found = fit.intervals()
    assert isinstance(found, kng.inference.Interval), words
    assert np.all(np.isfinite([found.lower, found.upper, fit.middle])), words
    assert np.all(np.isfinite(fit.errors)), words
    # Of estimates with no digit as small as their errors both ends may be one number.
    apart = np.diff(np.quantile(fit.errors, [0.025, 0.975], axis=0), axis=0)[0]
    assert np.all(apart > 0.0), words
    assert np.all((found.lower < found.upper) | (apart < 2.0 * np.spacing(np.abs(fit.value)))), words


@pytest.mark.parametrize("loss", LOSSES)
def test_some_releases_of_wild_tables_have_finite_ends(loss):
    for seed in (3, 12):
        assert_finite(*release_of(seed, loss))


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
def test_all_releases_of_wild_tables_have_finite_ends(loss):
    for seed in range(200):
        assert_finite(*release_of(seed, loss))


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_releases_of_few_records_with_categories_have_finite_ends(adjacency):
    """Some levels have no record, and some records have both."""
    for seed in range(200):
        random = np.random.default_rng(seed)
        x, y = table_of_levels(int(random.integers(1, 51)), seed)
        x[: seed % 5] = 1.0
        epsilon = float(np.exp(random.uniform(np.log(0.01), np.log(50.0))))
        made = kng.ObjectivePerturbation(kng.PseudoHuberLoss(0.7), LEVELS, kng.Box(-6.0, 6.0), epsilon, adjacency)
        fit = kng.release(kng.WithIntervals(made, OF_LEVELS, num_records=len(y), force=True), x, y)
        assert_finite(fit, f"levels, epsilon = {epsilon:.3g}, seed {seed}")


# In units of the noise that they have; the largest of it have a probability of exp(-1e20).
SIZES = np.array([0.0, 1e-20, 1e-10, 1.0, 1e10, 1e20])


def wild(random, number):
    """Numbers of any size and sign: each its own, all alike, some 0."""
    kinds = (
        lambda: random.choice([-1.0, 1.0], number) * 10.0 ** random.uniform(-12, 20, number),
        lambda: random.standard_cauchy(number) * 10.0 ** random.uniform(-3, 12),
        lambda: random.choice(SIZES, number) * random.choice([-1.0, 1.0], number),
        lambda: np.full(number, random.choice([-1.0, 1.0]) * 10.0 ** random.uniform(-20, 20)),
    )
    return random.choice(kinds)()


def any_release(loss, random):
    """A release of a table of any number of records, with its plan."""
    epsilon, adjacency = random.choice([0.01, 1.0, 90.0]), random.choice(["replace", "add_remove"])
    number, scale = int(random.integers(1, 2000)), random.choice([1e-6, 1.0, 1e6]) if loss != "Poisson" else 1.0
    bounds = kng.Bounds(x=(np.full(2, -scale), np.full(2, scale)), y=RANGES.get(loss, (-1.0, 1.0)))
    made = LOSSES[loss](bounds, kng.Box(-2.0, 2.0), float(epsilon), str(adjacency))
    x = random.uniform(-1.0, 1.0, (number, 2))
    plan = kng.WithIntervals(made, num_records=number, force=True)
    fit = kng.release(plan, scale * x, responses(random, loss, x, "spread"))
    return fit, plan_as_kept(fit.making, fit.certificate), scale


def other_numbers(loss, fit, making, scale, random):
    """The same releases with other numbers, of which their mechanisms may release any; a box holds those of KNG."""
    if loss in ("squared", "median"):
        theta = random.choice([-2.0, 2.0, 0.0, *random.uniform(-2.0, 2.0, 2)], 3)
    else:
        theta = np.clip(wild(random, 3), -1e12, 1e12) / [1.0, scale, scale]
    weights = making.summing.noise_in_fractions(making.summing.dimension, 1).weights
    sums = wild(random, len(weights)) * np.array([float(weight) for weight in weights]) / making.epsilons[0]
    parts = []
    for part, value in zip(fit.parts, (theta, sums, wild(random, 3) / making.epsilons[1]), strict=True):
        fields = json.loads(part.to_json())
        # Some are as they were.
        kept = fields["value"] if random.random() < 0.2 else value.tolist()
        parts.append(kng.Release.from_json(json.dumps(fields | {"value": kept})))
    return kng.inference.ReleaseWithIntervals(tuple(parts), fit.making | {"cuts": None}, fit.guarantee)


def test_some_wild_numbers_have_finite_intervals():
    random = np.random.default_rng(0)
    given = any_release("robust", random)
    for _ in range(5):
        assert_finite(other_numbers("robust", *given, random), "robust")


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
def test_many_wild_numbers_have_finite_intervals(loss):
    """Of all losses a thousand."""
    random = np.random.default_rng(len(loss))
    for _ in range(10):
        given = any_release(loss, random)
        for _ in range(20):
            assert_finite(other_numbers(loss, *given, random), loss)
