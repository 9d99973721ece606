"""Public objects are shown as the calls that make them, notebooks get escaped tables, and nothing private is shown."""

import copy
import dataclasses
import pickle
import re

import equinox as eqx
import jax
import numpy as np
import numpyro.distributions as dist
import pytest

import kngjax as kng
from kngjax.core.representation import MOST_NUMBERS, ShownAsTyped, shown
from kngjax.data import terms
from kngjax.owner.draws import Draws
from tests.made_once import MadeOnce
from tests.offenders import every_case
from tests.public import PUBLIC

BOUNDS = kng.Bounds(x=(0.0, 1.0))
BOTH = kng.Bounds(x=([-1.0, 0.0], [1.0, 2.5]), y=(-3.0, 3.0), columns=2)
SQUARE = kng.Box(-10.0, 10.0)
SHOWN = MadeOnce(
    {
        "Shells(least_records=20000, is_even=True)": lambda: kng.draws.Shells(least_records=20_000, is_even=True),
        "KNG(QuantileLoss(tau=0.5), Bounds(x=(0.0, 1.0)), Box(-10.0, 10.0), epsilon=1.0, "
        'adjacency="replace")': lambda: kng.KNG(
            kng.QuantileLoss(tau=0.5), BOUNDS, SQUARE, epsilon=1.0, adjacency="replace"
        ),
        "KNG(SquaredLoss(), Bounds(x=([-1.0, 0.0], [1.0, 2.5]), y=(-3.0, 3.0), columns=2), L2Ball(2.0), epsilon=0.1, "
        'adjacency="add_remove", norm=L2())': lambda: kng.KNG(
            kng.SquaredLoss(), BOTH, kng.L2Ball(2.0), 0.1, "add_remove", kng.L2()
        ),
        "ExponentialMechanism(HuberLoss(k=1.5), Bounds(x=(0.0, 1.0), y=(0.0, 2.0), intercept=False), L1Ball(3.0), "
        'epsilon=1.0, adjacency="replace")': lambda: kng.ExponentialMechanism(
            kng.HuberLoss(1.5), kng.Bounds((0.0, 1.0), (0.0, 2.0), intercept=False), kng.L1Ball(3.0), 1.0, "replace"
        ),
        'GeometricMechanism(Bounds(y=(0.0, 2.0)), epsilon=1.0, adjacency="replace", counted=(1,))': (
            lambda: kng.GeometricMechanism(kng.Bounds(y=(0, 2)), 1.0, "replace", [1])
        ),
        'KNormMechanism(Bounds(x=(0.0, 1.0), intercept=False), epsilon=1.0, adjacency="replace", norm=L1())': (
            lambda: kng.KNormMechanism(kng.Bounds(x=(0.0, 1.0), intercept=False), 1.0, "replace", kng.L1())
        ),
        'PrivateQuantile(tau=[0.25, 0.5], bounds=Bounds(y=(0.0, 9.0)), epsilon=1.0, adjacency="replace")': (
            lambda: kng.PrivateQuantile([0.25, 0.5], kng.Bounds(y=(0.0, 9.0)), 1.0, "replace")
        ),
        'QuantileInterval(tau=0.5, bounds=Bounds(y=(0.0, 9.0)), epsilon=1.0, adjacency="replace")': (
            lambda: kng.QuantileInterval(0.5, kng.Bounds(y=(0.0, 9.0)), 1.0, "replace")
        ),
        'KNG(QuantileLoss(tau=0.5), Bounds(x=(0.0, 1.0), unit=Unit(name="patient", most_rows=1)), Box(-10.0, 10.0), '
        'epsilon=1.0, adjacency="replace")': lambda: kng.KNG(
            kng.QuantileLoss(0.5), kng.Bounds((0.0, 1.0), unit=kng.Unit("patient", 1)), SQUARE, 1.0, "replace"
        ),
        "PrivateIRLS(Bounds(x=([-1.0, 0.0], [1.0, 2.5]), y=(-3.0, 3.0), columns=2), epsilon=1.0, delta=1e-06, "
        'adjacency="replace", iterations=3, cap=2.0)': lambda: kng.PrivateIRLS(
            BOTH, 1.0, 1e-6, "replace", iterations=3, cap=2.0
        ),
        'ObjectivePerturbation(LogisticLoss(), Bounds(x=(0.0, 1.0)), epsilon=1.0, adjacency="replace", '
        "output_share=0.01, centre=[0.5, 0.0])": lambda: kng.ObjectivePerturbation(
            kng.LogisticLoss(), BOUNDS, None, 1.0, "replace", output_share=0.01, centre=[0.5, 0.0]
        ),
        "OutputPerturbation(LogisticLoss(), Bounds(x=(0.0, 1.0)), regularization=10.0, epsilon=1.0, delta=1e-06, "
        'adjacency="replace")': lambda: kng.OutputPerturbation(kng.LogisticLoss(), BOUNDS, 10.0, 1.0, 1e-6, "replace"),
        "PosteriorSample(Bounds(x=([-1.0, 0.0], [1.0, 2.5]), y=(-3.0, 3.0), columns=2), regularization=100.0, "
        'gamma=0.01, adjacency="replace", max_records=1000.0)': lambda: kng.PosteriorSample(
            BOTH, 100.0, 0.01, "replace", max_records=1000
        ),
        "AdaOPS(Bounds(x=([-1.0, 0.0], [1.0, 2.5]), y=(-3.0, 3.0), columns=2), epsilon=1.0, delta=1e-06, "
        'adjacency="replace")': (lambda: kng.AdaOPS(BOTH, 1.0, 1e-6, "replace")),
        "AdaSSP(Bounds(x=([-1.0, 0.0], [1.0, 2.5]), y=(-3.0, 3.0), columns=2), epsilon=1.0, delta=1e-06, "
        'adjacency="replace", shares=[0.5, 0.25, 0.25])': lambda: kng.AdaSSP(
            BOTH, 1.0, 1e-6, "replace", shares=(0.5, 0.25, 0.25)
        ),
        'ExponentialMechanism(LogisticLoss(), Bounds(x=(0.0, 1.0)), L2Ball(1.0), epsilon=200.0, adjacency="replace", '
        "allow_large_epsilon=True)": lambda: kng.ExponentialMechanism(
            kng.LogisticLoss(), BOUNDS, kng.L2Ball(1.0), 200.0, "replace", allow_large_epsilon=True
        ),
        "SmoothedQuantileLoss(tau=0.9, bandwidth=0.1)": lambda: kng.SmoothedQuantileLoss(0.9, 0.1),
        'SmoothedQuantileLoss(tau=0.9, bandwidth=0.1, kernel="gaussian")': lambda: kng.SmoothedQuantileLoss(
            0.9, 0.1, "gaussian"
        ),
        "ExpectileLoss(tau=0.9)": lambda: kng.ExpectileLoss(0.9),
        "PseudoHuberLoss(k=0.5)": lambda: kng.PseudoHuberLoss(0.5),
        "PoissonLoss()": lambda: kng.PoissonLoss(),
        "CappedPoissonLoss(limit=3.0)": lambda: kng.CappedPoissonLoss(3.0),
        "SquaredDistanceLoss()": lambda: kng.SquaredDistanceLoss(),
        "GeometricMedianLoss()": lambda: kng.GeometricMedianLoss(),
        "BaseMeasure(Normal(loc=0.0, scale=2.0))": lambda: kng.BaseMeasure(dist.Normal(0.0, 2.0)),
        "Box([-1.0, -2.0], 3.0)": lambda: kng.Box([-1.0, -2.0], 3.0),
        "WeightedLInf([1.0, 2.0])": lambda: kng.WeightedLInf([1.0, 2.0]),
        "Ellipsoid([[2.0, 0.0], [0.0, 1.0]])": lambda: kng.Ellipsoid([[2.0, 0.0], [0.0, 1.0]]),
        "LInf()": lambda: kng.LInf(),
        "Exact(max_proposals=5)": lambda: kng.chains.Exact(max_proposals=5),
        "GradientSpace(num_sweeps=7)": lambda: kng.chains.GradientSpace(num_sweeps=7),
        "SliceGibbs()": lambda: kng.chains.SliceGibbs(),
        'LineGibbs(num_sweeps=3, directions="ensemble")': lambda: kng.chains.LineGibbs(
            num_sweeps=3, directions="ensemble"
        ),
        "EnsembleWalk()": lambda: kng.chains.EnsembleWalk(),
        'CoordinateWalk(tuning="public")': lambda: kng.chains.CoordinateWalk(tuning="public"),
        "NUTS(step_size=0.1)": lambda: kng.chains.NUTS(step_size=0.1),
        "HMC()": lambda: kng.chains.HMC(),
        "Lattice(theta_digits=6)": lambda: kng.draws.Lattice(theta_digits=6),
    }
)
SPREAD = np.random.default_rng(0).normal(size=(12, 2))
# Of which some vertices are dropped, and the others put in an order of their own.
HULLS = MadeOnce(
    {
        "Polytope": lambda: kng.Polytope([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]),
        "Polytope of facets": lambda: kng.Polytope(facets=SPREAD),
        "Polytope of scattered points": lambda: kng.Polytope(SPREAD),
        "Polytope of a sensitivity": lambda: kng.sensitivity.sensitivity_set(
            kng.QuantileLoss(0.3),
            kng.Bounds(hull=kng.geometry.FeatureHull.powers(2, 0.0, 1.0, pieces=2)),
            kng.Box(-1.0, 1.0),
            "replace",
        ).hull(),
        "FeatureHull": lambda: kng.geometry.FeatureHull([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [[0.0], [18.0], [3.0]]),
        "FeatureHull of scattered points": lambda: kng.geometry.FeatureHull(SPREAD),
        "FeatureHull of powers": lambda: (
            kng.geometry.FeatureHull.powers(3, 0.1, 1.7) * kng.geometry.FeatureHull.intervals(0.1, 0.7)
        ),
        "FeatureHull of a design": lambda: terms.Design(
            (terms.Polynomial("age", 18, 80, 3, missing=50), terms.Categorical("region", ("north", "south", "west")))
        ).hull(),
    }
)


def evaluated(text):
    names = PUBLIC | {"Normal": dist.Normal}
    return eval(text, names)


# Making one of these compiles for longer than all others together.
COMPILE_FOR_LONG = ("ExponentialMechanism", "PrivateIRLS", "OutputPerturbation", "AdaOPS")


def tried(texts):
    with every_case() as case:
        for text in texts:
            with case(text):
                assert repr(SHOWN[text]) == text
                assert eqx.tree_equal(evaluated(repr(SHOWN[text])), SHOWN[text])
                # scikit-learn copies the parameters of estimators, and workers of other processes get them pickled.
                value = SHOWN[text]
                for again in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
                    assert eqx.tree_equal(again, value)
                    if isinstance(value, eqx.Module):
                        with pytest.raises(dataclasses.FrozenInstanceError):
                            again.epsilon = 50.0
                        assert not any(x.flags.writeable for x in jax.tree.leaves(again) if type(x) is np.ndarray)


def test_an_object_is_shown_as_the_call_that_makes_an_equal_one():
    tried(text for text in SHOWN if not text.startswith(COMPILE_FOR_LONG))


@pytest.mark.slow
def test_a_mechanism_that_compiles_when_it_is_made_is_shown_as_the_call_that_makes_an_equal_one():
    tried(text for text in SHOWN if text.startswith(COMPILE_FOR_LONG))


def test_a_hull_is_shown_by_vertices_that_make_it_again_to_the_last_bit():
    with every_case() as case:
        for name, hull in HULLS.items():
            with case(name):
                again = evaluated(repr(hull))
                assert eqx.tree_equal(again, hull)
                if not isinstance(hull, kng.geometry.FeatureHull):
                    continue
                rows = np.random.default_rng(1).normal(scale=3.0, size=(100, hull.columns))
                assert again.move_inside(rows).tobytes() == hull.move_inside(rows).tobytes()
                assert hull.outside(rows).any()
                assert eqx.tree_equal(evaluated(repr(kng.Bounds(hull=hull))), kng.Bounds(hull=hull))


def test_no_public_class_is_left_out():
    kinds = [*PUBLIC.values()]
    typed = {kind for kind in kinds if isinstance(kind, type) and issubclass(kind, eqx.Module)}
    assert all(issubclass(kind, ShownAsTyped) for kind in typed)
    named = {name for text in SHOWN for name in re.findall(r"(\w+)\(", text)}
    named |= {type(hull).__name__ for hull in HULLS.values()}
    assert not {kind.__name__ for kind in typed} - named


def test_long_arrays_are_short_and_tracers_and_deleted_arrays_break_nothing():
    assert repr(kng.Box(np.zeros(MOST_NUMBERS + 1), 1.0)) == "Box([0.0, 0.0, 0.0, ..., 0.0], 1.0)"
    assert len(repr(kng.Ellipsoid(np.eye(30)))) < 200
    seen = []
    jax.jit(lambda loss: seen.append(repr(loss)))(kng.QuantileLoss(0.5))
    assert seen == ["QuantileLoss(tau=<traced float64[]>)"]
    assert repr(jax.eval_shape(lambda: kng.HuberLoss(jax.numpy.ones(())))).startswith("HuberLoss(k=ShapeDtypeStruct")
    gone = jax.numpy.ones(3)
    gone.delete()
    assert shown(gone) == "<float64[3]>"


def test_what_a_sampler_gathered_of_the_records_is_not_shown():
    secret = 98765.4321
    hidden = eqx.tree_at(
        lambda sampler: sampler.expansion,
        kng.chains.GradientSpace(),
        np.asarray(secret),
        is_leaf=lambda part: part is None,
    )
    assert repr(hidden) == "GradientSpace()"


# What somebody might put into a public label, or into a file that he wrote by hand.
HOSTILE = "<script>alert('x')</script>"


@pytest.fixture(scope="module")
def released():
    return kng.release(
        kng.PrivateQuantile(0.5, kng.Bounds(y=(0.0, 9.0)), 1.0, "replace"), None, np.linspace(1.0, 8.0, 50)
    )


def test_notebooks_show_small_escaped_tables(released):
    for one in (released, released.certificate, released.certificate.guarantee):
        table = one._repr_html_()
        assert table.startswith(f"<table><caption>{type(one).__name__}</caption>")
        assert len(table) < 4000
    assert f"{released.value[0]:.5g}" in released._repr_html_()
    assert "epsilon</th><td" in released.certificate.guarantee._repr_html_()
    told = dataclasses.replace(released.certificate, reason=HOSTILE)
    assert HOSTILE not in told._repr_html_()
    assert "&lt;script&gt;" in told._repr_html_()


def test_the_table_of_draws_tells_no_draw():
    theta = np.full((2, 3, 1), 98765.4321)
    table = Draws(theta, "Exact")._repr_html_()
    assert "OWNER ONLY" in table
    assert "98765" not in table
    assert ">chains</th>" in table
    with pytest.raises(TypeError, match=r"to_arviz\(\)"):
        np.asarray(Draws(theta, "Exact"))
