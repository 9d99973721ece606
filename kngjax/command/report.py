"""Shows a job: released coefficients, certificates in short, released curves, and a view for the owner alone."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import kngjax as kng
from kngjax.command import planning
from kngjax.command.config import Config
from kngjax.command.planning import Result
from kngjax.data.records import prepare
from kngjax.data.terms import Design
from kngjax.estimators.analyses import table_of
from kngjax.estimators.checks import OWNER_BANNER, heading, of_column
from kngjax.estimators.views.base import cost_of
from kngjax.owner import nonprivate
from kngjax.releases import totals

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ADJACENCIES = {"replace": "one record replaced", "add_remove": "one record added or removed"}
# A line draw costs a sort of all records, a move of the other chains a sum over them.
OWNER_DRAWS = {"LineGibbs": 100}
OWNER_CHAINS = 4
# What a name of the file is called where it is not its own words.
MECHANISMS = {
    "kng": "KNG",
    "ada_ops": "AdaOPS",
    "ada_ssp": "AdaSSP",
    "private_irls": "private IRLS",
    "k_norm": "K-norm",
}
LINE_STYLES = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)))


def align(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A plain-text table: the first column to the left, the others to the right."""
    widths = [max(len(row[place]) for row in (header, *rows)) for place in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        numbers = (cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))
        return "  ".join((cells[0].ljust(widths[0]), *numbers)).rstrip()

    return "\n".join([line(header), line(["-" * width for width in widths]), *map(line, rows)])


def table(config: Config, results: Sequence[Result]) -> str:
    """The released coefficients in the data's own units, one column a regression. Nothing in it is private."""
    response = config.response
    measured = {response.column: response.units} | {term.column: term.units for term in config.terms}
    given = ", ".join(f"{column} in {unit}" for column, unit in measured.items() if unit)
    kind = MECHANISMS.get(config.mechanism.type, config.mechanism.type.replace("_", " "))
    made_of = kind if config.loss is None else f"{config.loss.type.replace('_', ' ')} loss, {kind} mechanism"
    rows = [
        [name, *(f"{result.coefficients[place]:.4g}" for result in results)]
        for place, name in enumerate(planning.names(config, results[0].regression.mechanism)[1])
    ]
    what, labels = ("coefficients", config.labels) if config.terms else ("values", ("value",))
    return "\n".join(
        [
            f"Released {what} of {response.name} in the data's own units ({made_of})",
            *([given] if given else []),
            "",
            align([what.removesuffix("s"), *labels], rows),
        ]
    )


def intervals(config: Config, results: Sequence[Result]) -> str:
    """Writes the intervals of each regression's coefficients, how they were made, and what they rest on. Public."""
    lines, names = [], planning.names(config, results[0].regression.mechanism)[1]
    for result in results:
        found, label = planning.interval(config, result), result.regression.label
        if isinstance(found, kng.NoInterval):
            lines.append(f"{label}: no intervals: {found.reason}")
            continue
        ends = zip(names, found.lower, found.upper, strict=True)
        rows = [[name, f"{lower:.4g}", f"{upper:.4g}"] for name, lower, upper in ends]
        assumed = "; ".join(found.assumptions)
        lines.append(f"{label}: {found.level:.12g} intervals, each by itself, by {found.method}; assumed: {assumed}")
        lines.append(align(["coefficient", "lower", "upper"], rows))
    return "\n".join(lines)


def certificates(results: Sequence[Result]) -> str:
    """Each release's certificate in one line, equal ones together, and how the releases compose. Public."""
    labels: dict[str, list[str]] = {}
    for result in results:
        for words, number in Counter(one.summary() for one in planning.certificates_of(result.release)).items():
            summary = words if number == 1 else f"{words}, {number} times, of groups of records"
            labels.setdefault(summary, []).append(result.regression.label)
    lines = [
        f"{'Each release' if len(labels) == 1 and len(results) > 1 else ', '.join(names)}: {summary}."
        for summary, names in labels.items()
    ]
    if len(results) > 1 or any(isinstance(one.release, kng.ReleaseWithIntervals) for one in results):
        together = planning.statement(results)
        lines.append(together[0].upper() + together[1:] + ".")
    return "\n".join(lines)


def curves(config: Config, results: Sequence[Result], points: np.ndarray) -> np.ndarray:
    """The released curves over the column [figure] x, in the response's own units: post-processing of releases.

    **Arguments:** `points`, public, shape (m,), in units of that column.

    **Returns:** shape (regressions, m): exp(x'theta) for a log response and for counts, the probability for the
    logistic loss, else x'theta. **Raises:** `ValueError` if the job has no [figure].
    """
    if config.figure is None:
        raise ValueError(f"{config.path}: the table [figure] is missing")
    basis = _basis(config, points)
    return _of_predictors(config, np.stack([basis @ result.release.value for result in results]))


def band(config: Config, result: Result, points: np.ndarray) -> np.ndarray | None:
    """The ends of the interval about a released curve at each point, shape (2, m); None where there is none."""
    if config.intervals is None or config.figure is None:
        return None
    assert isinstance(result.release, kng.ReleaseWithIntervals)
    found = result.release.intervals(config.intervals.level, _basis(config, points))
    if isinstance(found, kng.NoInterval):
        return None
    return _of_predictors(config, np.stack([found.lower, found.upper]))


def _basis(config: Config, points: np.ndarray) -> np.ndarray:
    """The rows (1, x) of the horizontal axis at these points."""
    assert config.figure is not None
    columns = _design(config).matrix_of({config.figure.x: points, **(config.figure.at or {})})
    return np.hstack([np.ones((len(points), 1)), columns])


def _of_predictors(config: Config, predictors: np.ndarray) -> np.ndarray:
    if config.response.transform == "log" or _loss(config) == "poisson":
        return np.exp(predictors)
    return 1.0 / (1.0 + np.exp(-predictors)) if _loss(config) == "logistic" else predictors


def _loss(config: Config) -> str:
    """The name of the job's loss; "squared" for the mechanisms that have their own."""
    return "squared" if config.loss is None else config.loss.type


def _design(config: Config) -> Design:
    require_regressions(config)
    basis = planning.design(config)
    assert basis is not None
    return basis


def require_regressions(config: Any) -> None:
    """Raises ValueError for a job without terms, of which there are neither curves nor a view for the owner."""
    if not getattr(config, "terms", ()):
        raise ValueError(f"{config.path}: an owner's view is of regressions: there are no [[terms]]")


def figure(config: Config, results: Sequence[Result]) -> "Figure":
    """The released curves as a matplotlib figure, made without pyplot. Nothing in it is private.

    **Raises:** `ValueError` if the job has no [figure]; `ImportError` without matplotlib.
    """
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    if config.figure is None:
        raise ValueError(f"{config.path}: the table [figure] is missing")
    terms = {term.column: term for term in config.terms}
    across = terms[config.figure.x]
    points = np.linspace(*(across.bounds or (0.0, 1.0)), 241)
    made = Figure(figsize=(6.4, 4.6), layout="constrained")
    axes = made.subplots()
    # Dark to medium: the light end of the map would vanish on white paper.
    shades = colormaps["viridis"](np.linspace(0.0, 0.78, len(results)))
    drawn = list(zip(results, curves(config, results, points), shades, strict=True))
    # From the highest curve down, as the legend is read.
    for place, (result, curve, shade) in reversed(list(enumerate(drawn))):
        label = result.regression.label.replace("tau", "τ").replace("_", " ")
        axes.plot(
            points, curve, color=shade, linestyle=LINE_STYLES[place % len(LINE_STYLES)], linewidth=1.8, label=label
        )
        if (ends := band(config, result, points)) is not None:
            axes.fill_between(points, *ends, color=shade, alpha=0.18, linewidth=0.0)
    axes.set_xlabel(_with_units(across.column, across.units))
    axes.set_ylabel(_vertical_label(config))
    axes.set_xlim(points[0], points[-1])
    if config.response.transform == "log" or _loss(config) == "poisson":
        axes.set_ylim(bottom=0.0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="0.9", linewidth=0.6)
    axes.legend(frameon=False, handlelength=3.2)
    made.supxlabel(_caption(config, results), fontsize=8, color="0.25", x=0.02, horizontalalignment="left")
    return made


def _with_units(name: str, units: str | None) -> str:
    return f"{name} ({units})" if units else name


def _vertical_label(config: Config) -> str:
    response, loss = config.response, _loss(config)
    name = _with_units(response.column, response.units)
    if loss == "logistic":
        return f"probability of {response.column}"
    if "quantile" in loss:
        return f"conditional quantile of {name}"
    return f"exp of the fitted {response.name}, {name}" if response.transform == "log" else f"fitted {name}"


def _caption(config: Config, results: Sequence[Result]) -> str:
    units = {term.column: term.units for term in config.terms}
    at = config.figure.at if config.figure is not None and config.figure.at else {}
    held = "".join(f"; {column} = {value} {units[column] or ''}".rstrip() for column, value in at.items())
    cost = totals.total(cost_of(result.release) for result in results)
    total = planning.together([result.regression for result in results]) if cost is None else cost
    delta = f", δ = {total.delta:.3g}" if total.delta > 0 else ""
    return (
        f"Released with differential privacy: total ε = {total.epsilon:g}{delta}, "
        f"{ADJACENCIES[config.privacy.adjacency]}{held}."
        + ("" if cost else "\nDrawn by Markov chains: ε is proved for their limit law, not for finite runs.")
    )


def owner_view(config: Config, frame: Any, results: Sequence[Result], progress: bool | None = None) -> str:
    """FOR THE DATA OWNER ONLY: the releases against the fit without privacy, clipping, and research chains.

    Standard errors are of the sampling, not of the privacy noise; R-hat and effective sample sizes are of
    research chains of the same law, not of the chain that made the release.

    **Arguments:** `frame`, private, as for `job.run`. `progress`: None shows bars on a terminal.
    """
    x, y = planning.records(config, frame)
    rule, known = "=" * len(OWNER_BANNER), table_of(frame)
    lines = [rule, OWNER_BANNER, rule, "", *heading(known)]
    lines += [line for one in config.columns for line in of_column(one, known)[0]]
    names, asked = _design(config).basis_names, planning.sampler(config)
    for result in results:
        mechanism = result.regression.mechanism
        fit = nonprivate.fit(mechanism.loss, prepare(mechanism.bounds, x, y))
        kind = result.release.certificate.sampler["type"]
        draws = kng.sample(
            mechanism,
            mechanism.prepare(x, y),
            key=kng.research_key(0),
            # Lattices are for releases alone.
            sampler=None if isinstance(asked, kng.Lattice) else asked,
            num_draws=OWNER_DRAWS.get(kind, 500),
            num_chains=OWNER_CHAINS,
            progress=progress,
        )
        chains, count, _ = draws.theta.shape
        parts = (fit.theta, fit.standard_errors, result.release.value)
        differences = (result.release.value - fit.theta) / fit.standard_errors
        numbers = np.stack([*parts, differences, draws.rhat(), draws.ess()], axis=1)
        formats = ("{:.5g}", "{:.2g}", "{:.5g}", "{:+.2f}", "{:.3f}", "{:.0f}")
        rows = [
            [name, *(form.format(number) for form, number in zip(formats, row, strict=True))]
            for name, row in zip(names, numbers, strict=True)
        ]
        header = ["basis coefficient", "non-private", "std. error", "released", "difference/SE", "R-hat", "ESS"]
        lines += ["", f"{result.regression.label} ({chains} research chains of {draws.sampler}, {count} draws each)"]
        lines += [align(header, rows)]
    return "\n".join([*lines, "", OWNER_BANNER])
