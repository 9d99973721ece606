"""Shows the data owner her job's regressions beside the fit without privacy. FOR THE DATA OWNER ONLY."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from kngjax.command.job_plan import JobPlan
from kngjax.core.later import pd
from kngjax.core.randomness import research_key
from kngjax.data.records import prepare
from kngjax.data.tables import opened
from kngjax.draws.lattice.lattice import Lattice
from kngjax.draws.shells.shells import Shells
from kngjax.owner import nonprivate
from kngjax.releases.curves.quantile_process import QuantileProcess
from kngjax.releases.research import sampled
from kngjax.study.analyses import Analysis, arguments, table_of
from kngjax.study.checks import OWNER_BANNER, heading, of_column

# A line draw costs a sort of all records, a move of the other chains a sum over them.
OWNER_DRAWS = {"LineGibbs": 100}
OWNER_CHAINS = 4
_HEADER = ("non-private", "std. error", "released", "difference/SE", "R-hat", "ESS")


def regressions_of(plan: JobPlan) -> list[list[Any]]:
    """Lists the steps of each analysis that an owner's view shows, regressions of the whole table without weights.

    Raises ValueError for a job without any.
    """
    every = [own if _is_regression(own[0]) else [] for own in plan.by_analysis()]
    if not any(every):
        raise ValueError(f"{plan.file.path}: an owner's view is of regressions, and the job has none")
    return every


def _is_regression(step: Any) -> bool:
    one = step.analysis
    is_one = isinstance(one, Analysis) and one.design is not None and one.weights is None
    return is_one and not isinstance(step.part.plan, QuantileProcess)


def owner_view(plan: JobPlan, frame: Any, results: Sequence[Any], progress: bool | None = None) -> str:
    """FOR THE DATA OWNER ONLY: the releases against the fit without privacy, clipping, and research chains.

    Standard errors are of the sampling, not of the privacy noise; R-hat and effective sample sizes are of
    research chains of the same law, not of the chain that made the release.

    **Arguments:** `frame`, private, as for `job.run`. `progress`: None shows bars on a terminal.
    """
    rule, known = "=" * len(OWNER_BANNER), table_of(frame)
    lines = [rule, OWNER_BANNER, rule, "", *heading(known)]
    lines += [line for one in plan.columns for line in of_column(one, known)[0]]
    for own, result in zip(regressions_of(plan), results, strict=True):
        for step in own:
            lines += ["", *_compared(step, frame, result.curves[step.part.label], progress)]
    return "\n".join([*lines, "", OWNER_BANNER])


def _compared(step: Any, frame: Any, released: np.ndarray, progress: bool | None) -> list[str]:
    """Compares one release with the fit without privacy and with research chains. Private."""
    mechanism, records = step.part.mechanism, step.analysis.records(opened(table_of(frame)))
    x, y, _ = records
    fit = nonprivate.fit(mechanism.loss, prepare(mechanism.bounds, x, y))
    # Proved draws are for releases alone.
    sampler = None if isinstance(step.sampler, Lattice | Shells) else step.sampler
    few = OWNER_DRAWS.get(type(sampler).__name__, 500)
    data = mechanism.prepare(**arguments(mechanism, *records))
    settings = {"sampler": sampler, "num_draws": few, "num_chains": OWNER_CHAINS, "progress": progress}
    draws = sampled(mechanism, data, key=research_key(0), **settings)
    (chains, count, _), found = draws.theta.shape, draws.summary()
    parts = (fit.theta, fit.standard_errors, released, (released - fit.theta) / fit.standard_errors)
    formats = ("{:.5g}", "{:.2g}", "{:.5g}", "{:+.2f}", "{:.3f}", "{:.0f}")
    columns = zip(_HEADER, formats, (*parts, found.rhat, found.bulk), strict=True)
    table = {name: [form.format(number) for number in numbers] for name, form, numbers in columns}
    shown = pd.DataFrame(table, index=step.analysis.design.basis_names).to_string()
    return [f"{step.label} ({chains} research chains of {draws.sampler}, {count} draws each)", shown]
