"""Chooses the quantile process for curves of several levels by a formula, by public facts alone."""

from typing import Any

import numpy as np

import kngjax as kng
from kngjax.data.terms import Design
from kngjax.draws.lattice.lattice import LARGEST_DIMENSION
from kngjax.releases.curves.quantile_process import MOST_RECORDS
from kngjax.study.analyses import Analysis, Part, bounds_of, of_level
from kngjax.study.regressions import Regression, domain_of, refuse_levels
from kngjax.study.responses import Response


def quantile_process(asked: Regression, levels: Any, epsilon: Any, force: bool = False) -> Analysis:
    """Curves of all levels by one release. Those beside one another keep their order for all cells within the bounds.

    Columns that are functions of one another, as polynomials of one column, lie in the polytope of `Design.hull`: on
    the box of their bounds curves would have to keep their order where no record can be.

    **Arguments:** all public; as of `kngjax.QuantileProcess`. Where `count` is a guess, under add_remove, a release of
    more than 2^20 records, or of more than twice this guess if that is more, fails. Raises ValueError for more than
    four coefficients.
    """
    formula, response, count = asked.formula, asked.response, asked.count or 0
    refuse_levels(response, "a quantile process")
    if (dimension := len(formula.design.names)) > LARGEST_DIMENSION:
        raise ValueError(
            f"{formula.text!r} has {dimension} coefficients, and a quantile process takes up to {LARGEST_DIMENSION}: "
            "leave terms out, or ask for quantile_regression at these levels, which share epsilon equally"
        )
    if np.size(levels) < 2 and levels is not None:
        raise ValueError("a quantile process has at least two levels: of one ask for quantile_regression")
    is_guessed = asked.adjacency == kng.Adjacency.ADD_REMOVE.value and 2 * count > MOST_RECORDS
    limit = 2 * count if is_guessed else None
    process = process_of(formula.design, response, levels, epsilon, asked.adjacency, limit, asked.domain, force)
    part = Part(f"tau = {', '.join(map(repr, process.levels))}", process.halving().first, plan=process)
    return Analysis("quantile process", response, formula.design, (part,), formula.text)


def process_of(
    design: Design | None,
    response: Response,
    levels: Any,
    epsilon: Any,
    adjacency: str,
    max_records: int | None = None,
    domain: Any = None,
    force: bool = False,
    allow_large_epsilon: bool = False,
) -> kng.QuantileProcess:
    """Makes the quantile process of these terms; without a design, that of the quantiles of the response alone.

    **Arguments:** all public; as of `kngjax.QuantileProcess`.
    """
    of_response = response.bounds_of_quantiles
    if design is None:
        hull, theta = None, kng.Box(*of_response["y"])
    else:
        if not design.intercept:
            raise ValueError(
                "a quantile process needs an intercept: without one all curves meet where the columns are 0. Leave "
                "'0 +' and '- 1' out, or ask for quantile_regression at these levels, which share epsilon equally"
            )
        hull = design.hull() if any(len(term.basis_names) > 1 for term in design.terms) else None
        theta = domain_of(response, design)
    bounds = bounds_of(design, response, of_response, hull)
    made = theta if domain is None else domain
    given = levels, bounds, made, epsilon, adjacency, max_records
    return kng.QuantileProcess(*given, force=force, allow_large_epsilon=allow_large_epsilon)


def labels_of(levels: Any) -> tuple[str, ...]:
    """Names the curves of these levels."""
    return tuple(of_level(float(level)) for level in levels)
