"""Measures the figures of docs/promises.md anew; `python -m audits` prints them."""

import dataclasses
import math
import tempfile
from collections.abc import Iterator

import numpy as np

from audits import climbing, every_mechanism, killed_jobs, ledger_strain, plans
from audits.dumps import data_in_dumps
from audits.grid_laws.cases import CASES
from audits.grid_laws.laws import are_right
from audits.grid_laws.neighbours import worst_ratios
from audits.hostile import hostile_inputs
from audits.jobs import Finding, figures_of_jobs
from audits.lattice_search import search_lattices
from audits.processes_told_apart import black_box_of_process, worst_pair
from audits.replay import replayed_sensitivity
from audits.support import impossible_outputs, laplace_values
from audits.worst_losses import worst_losses
from kngjax.audit import black_box
from kngjax.chains.ensemble_walk import EnsembleWalk
from kngjax.chains.exact.exact import Exact
from kngjax.core.randomness import research_key
from kngjax.data.bounds import Bounds
from kngjax.draws.base import IN_REALS, PROVED
from kngjax.geometry.domains import Box
from kngjax.inference.covariances import Sandwich
from kngjax.inference.with_intervals import WithIntervals
from kngjax.losses.huber import PseudoHuberLoss
from kngjax.losses.squared import SquaredLoss
from kngjax.mechanisms.ada_ssp import AdaSSP
from kngjax.mechanisms.density import AbstractDensityMechanism
from kngjax.mechanisms.k_norm import KNormMechanism
from kngjax.mechanisms.kng import KNG
from kngjax.mechanisms.objective_perturbation import ObjectivePerturbation


def figures(quick: bool = False) -> Iterator[Finding]:
    """Measures all figures, and yields each as soon as it is known.

    **Arguments:** `quick`: a few inputs, kills and mechanisms, in some six minutes instead of twenty.
    """
    yield from _worst_losses()
    yield _assured(quick)
    yield _searched(quick)
    yield _replayed(quick)
    yield _climbing(quick)
    yield _told_apart(quick)
    yield _replayed_sums(quick)
    yield from _plans_told_apart(quick)
    yield _process_told_apart(quick)
    yield _worst_of_noise()
    yield _laws(quick)
    naive = impossible_outputs(laplace_values(), 0.0, 1.0, 1.0)
    yield Finding(
        "for comparison: jax.random.laplace added to 0 or 1",
        f"{100 * naive:.0f}% of its float32 outputs are impossible under the neighbour",
        naive > 0.0,
    )
    inputs = hostile_inputs(200 if quick else 10_000, progress=False)
    yield Finding(
        "hostile inputs",
        f"{inputs.tried} tried: {inputs.released} released, {inputs.told} refused in words, the ledger "
        f"unchanged by {inputs.unchanged} of them, {inputs.failed} failed with the constant text, "
        f"{len(inputs.broken)} broken",
        inputs.passed,
    )
    yield from figures_of_jobs(quick)
    dumps = data_in_dumps(("median, lines",) if quick else None)
    yield Finding(
        "bytes of records in XLA dumps and caches",
        f"{dumps.bytes_found} in {dumps.files} files; {dumps.bytes_planted} of a closure over the data, as a control",
        dumps.passed,
    )
    with tempfile.TemporaryDirectory() as folder:
        race = ledger_strain.race(folder, writers=8, allowed=20 if quick else 400)
        yield Finding(
            "processes that race for one budget",
            f"{race.writers} processes, {race.releases} releases of {race.allowed} allowed",
            race.passed,
        )
    with tempfile.TemporaryDirectory() as folder:
        storm = ledger_strain.kill_storm(folder, kills=4 if quick else 80, writers=4, allowed=40 if quick else 600)
        yield Finding(
            "kills by SIGKILL amid releases",
            f"{storm.kills} kills, {storm.kills_between} between debit and commit, {storm.rows_reserved} of "
            f"{storm.allowed} debits",
            storm.passed,
        )
    with tempfile.TemporaryDirectory() as folder:
        killed = killed_jobs.kill_jobs(folder, kills=2 if quick else 20)
        yield Finding("kills by SIGKILL amid jobs that are resumed", killed.explain(), killed.passed)


# Of `audits.every_mechanism`, those whose proof leaves rounding out where `release` chooses: docs/promises.md says why.
_IN_REALS = frozenset({"two quantiles"})


def _assured(quick: bool) -> Finding:
    """The assurance of a release of every kind of mechanism, where nothing is asked for."""
    found: dict[str, str] = {}
    seen, random = [], np.random.default_rng(0)
    x, y = random.uniform(size=(40, 2)), random.uniform(size=40)
    for name, case in every_mechanism.CASES.items():
        made = case()
        if str(made.mechanism) in seen or (quick and len(seen) >= 4):
            continue
        seen.append(str(made.mechanism))
        by_itself = dataclasses.replace(made, sampler=None)
        found[name] = by_itself.release(x, y).certificate.assurance
    proved = [name for name, assurance in found.items() if assurance == PROVED]
    others = [name for name, assurance in found.items() if assurance != PROVED]
    return Finding(
        "every rounding in the proof, by default",
        f"{len(proved)} of {len(found)} kinds of mechanism" + (f"; not of: {'; '.join(others)}" if others else ""),
        set(others) <= _IN_REALS and all(found[name] == IN_REALS for name in others),
    )


def _replayed(quick: bool) -> Finding:
    """The largest replayed change when one record moves from one corner of the bounds to another, of each density."""
    mechanisms = {name: case().mechanism for name, case in every_mechanism.CASES.items() if "lattice" not in name}
    densities = [mechanism for mechanism in mechanisms.values() if isinstance(mechanism, AbstractDensityMechanism)]
    x, y = np.ones((40, 2)), np.zeros(40)
    other, response = x.copy(), y.copy()
    # Far beyond the bounds: it shows if it is not clipped.
    other[-1, 0], response[-1] = -3.0, 9.0
    ratios = [
        replayed_sensitivity(
            mechanism, (x, y), (other, response), key=research_key(0), sampler=EnsembleWalk(num_warmup=20)
        ).ratio
        for mechanism in densities[: 2 if quick else None]
    ]
    found = f"{max(ratios):.3f} of {len(ratios)} mechanisms, replayed on a neighbour in float64"
    return Finding("largest change over its sensitivity", found, max(ratios) <= 1.0 + 1e-9)


def _searched(quick: bool) -> Finding:
    """The worst loss of lattices with random settings, most of them extreme."""
    found = search_lattices(30 if quick else 400)
    return Finding(
        "worst loss over epsilon, extreme lattices",
        f"{found.loss:.4f} of {found.pairs} pairs, enclosed by balls; spread {float(found.spread):.4f}, exactly",
        0.9 <= found.loss <= 1.0 and found.spread <= 1,
    )


def _climbing(quick: bool) -> Finding:
    """The computed over the true change of sums by one record of a climbing pair, for a mean and a regression."""
    column, other = climbing.climbing_pair(18 if quick else 22)
    x, neighbour = (np.column_stack([values, values]) for values in (column, other))
    box = ([-1.0, -1.0], 1.0)
    ratios = [
        climbing.largest_change(
            KNormMechanism(Bounds(box, intercept=False), 1.0, "replace"), (x, None), (neighbour, None)
        ),
        climbing.largest_change(
            AdaSSP(Bounds(box, (-1.0, 1.0)), 1.0, 1e-6, "replace"), (x, column), (neighbour, other)
        ),
    ]
    naive = float(np.max(x.sum(axis=0) - neighbour.sum(axis=0)))
    return Finding(
        "climbing pairs: computed over true change of sums",
        f"{max(ratios):.9f} of {len(x)} records; {naive:.6f} by adding them one after another",
        max(ratios) <= 1.0 + 1e-9 < naive,
    )


def _told_apart(quick: bool) -> Finding:
    """Attacks exact draws of a smooth loss on two neighbours whose loss is .91 of ε.

    Four zeros, and a fifth number far below them or far above. Nearly everywhere in Θ the score of a residual is ±k, so
    that the gradient is shorter by Δ for θ > 0 once the fifth has moved, and longer by Δ for θ < 0; the law's total
    follows what is for θ > 0, most of Θ. So densities differ by e^.91 for θ < 0.
    """
    mechanism = KNG(PseudoHuberLoss(0.5), Bounds(), Box(-100.0, 1000.0), 1.0, "replace")
    pair = [(None, np.append(np.zeros(4), other)) for other in (-1e5, 1e5)]
    found = black_box(mechanism, *pair, key=research_key(0), sampler=Exact(), num_draws=40_000 if quick else 400_000)
    return Finding(
        "epsilon of exact draws of a smooth loss",
        f"at least {found.epsilon_lower_bound:.3f} of 1 by a black-box attack on {found.num_draws} draws a side",
        found.passed and found.epsilon_lower_bound > 0.7,
    )


def _replayed_sums(quick: bool) -> Finding:
    """The largest change of what intervals are made of by one record, over what its noise hides, of H and variances."""
    # Two levels of a category, of which no record should have both; and a number.
    lower, upper = np.array([0.0, 0.0, 0.0]), np.ones(3)
    place, number = np.arange(30) % 3, np.linspace(0.0, 1.0, 30)
    x, y = np.column_stack([place == 1, place == 2, number]).astype(float), np.linspace(-1.0, 1.0, 30)
    # Far beyond the bounds and of both levels: it shows if it is not clipped.
    more = np.vstack([x, [[9.0, 9.0, 9.0]]]), np.append(y, 0.0)
    fewer = {"add_remove": (x, y), "replace": (np.vstack([x, [[0.0, 1.0, 0.0]]]), np.append(y, 0.0))}
    ratios, bounds = [], Bounds((lower, upper), (-1.0, 1.0))
    for covariance in [Sandwich(indicators=((1, 2),)), Sandwich()][: 1 if quick else None]:
        for adjacency in ("replace",) if quick else fewer:
            mechanism = ObjectivePerturbation(PseudoHuberLoss(0.5), bounds, Box(-0.1, 0.1), 1.0, adjacency)
            plan = WithIntervals(mechanism, covariance)
            points = 2 if quick else 40
            ratios.append(plans.replayed_sums(plan, more, fewer[adjacency], num_points=points).ratio)
    return Finding(
        "largest change of sums of intervals, over their noise",
        f"{max(ratios):.3f} of {len(ratios)} plans, replayed on a neighbour",
        0.5 <= max(ratios) <= 1.0 + 1e-9,
    )


def _plans_told_apart(quick: bool) -> Iterator[Finding]:
    """Attacks all that a plan releases of two neighbours: the sums besides an estimate."""
    number = 300 if quick else 4_000
    bounds = Bounds(x=([0.0], [1.0]), y=(-1.0, 1.0), intercept=False)
    apart = (np.array([[1.0], [0.5]]), np.array([-1.0, 0.0])), (np.array([[0.0], [0.5]]), np.array([1.0, 0.0]))
    plan = WithIntervals(KNG(SquaredLoss(), bounds, Box(-1.0, 1.0), 1.0, "replace"), Sandwich(share=0.9))
    found, claimed = plans.black_box_of_plan(plan, *apart, num_draws=number)
    yield Finding(
        "epsilon of an estimate and its sums together",
        f"at least {found:.3f} of {claimed:g} by a black-box attack on {number} draws a side",
        found <= claimed,
    )


def _process_told_apart(quick: bool) -> Finding:
    """Attacks all curves of two neighbours."""
    number = 1_000 if quick else 4_000
    found, claimed = black_box_of_process(*worst_pair(), num_draws=number)
    return Finding(
        "epsilon of curves by halving",
        f"at least {found:.3f} of {claimed:g} by black-box attacks on {number} draws a side",
        found <= claimed,
    )


def _worst_of_noise() -> Finding:
    """Compares the effect of one record at a corner of the bounds with the noise of releases on grids that hides it."""
    ratios = dict(worst_ratios())
    largest = max(ratios.values())
    return Finding(
        "worst neighbours, over what noise on grids hides",
        f"{math.sqrt(largest):.9f} of {len(ratios)} mechanisms, in fractions",
        min(ratios.values()) >= 0.98 and largest <= 1,
    )


def _laws(quick: bool) -> Finding:
    """Compares draws of releases on grids with exact probabilities of cells."""
    number = 300 if quick else 3_000
    found = [value for make in CASES.values() for value in make().p_values(number)]
    return Finding(
        "laws of draws on grids",
        f"{number} draws in each of {len(CASES)} cases: the least of {len(found)} p-values is {min(found):.2g}",
        are_right(found),
    )


def _worst_losses() -> Iterator[Finding]:
    for name, low, high in worst_losses():
        yield Finding(f"worst loss over epsilon, {name}", f"{high:.4f}, enclosed by balls", 0.9 <= low <= high <= 1.0)
