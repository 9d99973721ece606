"""The noise of a mechanism by drawing from it on made-up tables, where its limit law says little."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from kngjax.core.randomness import research_key
from kngjax.inference.settings import Expected, Scenario
from kngjax.releases.simulation import simulate

_TABLES = 100


def simulated_noise(
    setting: Scenario, num_records: int, expected: Expected
) -> Float[np.ndarray, "dimension dimension"] | None:
    """Simulates E(θ̃ - θ)(θ̃ - θ)' on a hundred tables of n assumed records, less the covariance without privacy.

    So it holds bias and draws from far off as well. NaN where no draw was found; None of records with weights.
    """
    if setting.mechanism.bounds.weight is not None:
        return None
    found = simulate(_tables(setting), setting.mechanism, _TABLES, research_key(0), num_records=num_records)
    errors = found.theta[0, 0] - found.truth[0]
    errors = errors[np.all(np.isfinite(errors), axis=1)]
    return errors.T @ errors / (len(errors) or np.nan) - expected.sampling


def _tables(setting: Scenario) -> Any:
    """Draws rows with replacement, and responses of the assumed law about a regression without slopes."""
    assert setting.rows is not None
    assert setting.responses is not None
    assert setting.law is not None
    bounds, loss = setting.mechanism.bounds, setting.mechanism.loss
    rows, values = setting.rows[:, int(bounds.intercept) :], setting.responses.quantiles
    is_usual = loss.usual_responses(bounds, 2) is not None
    middle = 0.0 if bounds.y_lower is None else 0.5 * (float(bounds.y_lower) + float(bounds.y_upper))
    truth = np.zeros(setting.dimension)
    if bounds.intercept:
        truth[0] = setting.law.best if is_usual else middle
    shift = 0.0 if is_usual else truth[0] - setting.law.best

    def tables(key: Any, num_records: int) -> tuple[Any, Any, Any]:
        places = jax.random.randint(key, (num_records,), 0, len(rows))
        other = jax.random.fold_in(key, 1)
        drawn = jax.random.choice(other, jnp.asarray(values), (num_records,))
        return jnp.asarray(rows)[places], drawn + shift, jnp.asarray(truth)

    return tables
