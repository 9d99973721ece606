"""The noise of a mechanism by drawing from it on made-up tables, where its limit law says little."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from kngjax.core.randomness import research_key
from kngjax.inference.settings import Expected, Scenario, without_weights
from kngjax.releases.simulation import simulate

_TABLES = 100


def simulated_noise(
    setting: Scenario, num_records: int, expected: Expected
) -> Float[np.ndarray, "dimension dimension"] | None:
    """Simulates E(θ̃ - θ)(θ̃ - θ)' on a hundred tables of n assumed records, less the covariance without privacy.

    So it holds bias and draws from far off as well. NaN where no draw was found; None of weights that make another law.
    """
    mechanism = without_weights(setting.mechanism)
    if mechanism is not setting.mechanism and not _is_of_one_law(setting, mechanism, num_records):
        return None
    found = simulate(_tables(setting), mechanism, _TABLES, research_key(0), num_records=num_records)
    errors = found.theta[0, 0] - found.truth[0]
    errors = errors[np.all(np.isfinite(errors), axis=1)]
    return errors.T @ errors / (len(errors) or np.nan) - expected.sampling


def _is_of_one_law(setting: Scenario, mechanism: Any, num_records: int) -> bool:
    """Tells whether the mechanism without weights has the noise of weights that are all the largest."""
    weighted = setting.mechanism.noise.expected(num_records * setting.weight * setting.hessian, num_records)
    plain = mechanism.noise.expected(num_records * setting.hessian, num_records)
    return np.allclose(weighted.covariance, plain.covariance, rtol=1e-6, atol=0.0)


def _tables(setting: Scenario) -> Any:
    """Draws rows with replacement, and responses of the assumed law about a regression without slopes."""
    assert setting.rows is not None
    assert setting.responses is not None
    assert setting.law is not None
    bounds, loss = setting.mechanism.bounds, setting.mechanism.loss
    rows, values = setting.rows[:, int(bounds.intercept) :], setting.responses.quantiles
    by_row = setting.responses.by_row
    truth = np.zeros(setting.dimension) if setting.theta is None else setting.theta.copy()
    # The intercept that is estimated for residuals about 0.
    best = setting.law.best if setting.theta is None else truth[0]
    shift = 0.0
    if loss.usual_responses(bounds, 2) is not None:
        truth[0] = setting.law.best if bounds.intercept else 0.0
    else:
        middle = 0.0 if bounds.y_lower is None else 0.5 * (float(bounds.y_lower) + float(bounds.y_upper))
        if bounds.intercept or setting.theta is None:
            truth[0] = middle if bounds.intercept else 0.0
            shift = truth[0] - best

    def tables(key: Any, num_records: int) -> tuple[Any, Any, Any]:
        places = jax.random.randint(key, (num_records,), 0, len(rows))
        other = jax.random.fold_in(key, 1)
        if by_row is None:
            drawn = jax.random.choice(other, jnp.asarray(values), (num_records,))
        else:
            drawn = jnp.asarray(by_row)[places, jax.random.randint(other, (num_records,), 0, by_row.shape[1])]
        return jnp.asarray(rows)[places], drawn + shift, jnp.asarray(truth)

    return tables
