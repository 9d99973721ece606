"""Synthetic records that attack a mechanism: extremes and coincidences within its bounds, and small changes of them."""

import numpy as np

from kngjax.data import weights
from kngjax.data.records import prepare
from kngjax.mechanisms.base import AbstractMechanism

NUM_CLIMBERS = 64
FAR = 1000.0


class RecordSource:
    """Makes synthetic records within a mechanism's bounds, as rows (features, response), with many extremes.

    The intercept is a feature with the bounds (1, 1), so it needs no case of its own. Where the loss has no response
    its place is 0, and records near points of the grid take the part of planes through them.
    """

    def __init__(self, mechanism: AbstractMechanism, dimension: int, grid: np.ndarray, generator: np.random.Generator):
        self.mechanism, self.generator = mechanism, generator
        weights.refuse(mechanism.bounds.weight, "an audit by made-up records")
        self.lower, self.upper = (np.asarray(side) for side in mechanism.bounds.features(dimension))
        # Several quantiles of numbers have one feature, the intercept.
        self.grid = grid[:, : self.lower.size]
        self.has_response = mechanism.loss.has_response
        self.response, self.levels = (0.0, 0.0), np.zeros(1)
        self.is_continuous = False
        if self.has_response:
            self._choose_responses()
        response_width = (self.response[1] - self.response[0]) * self.is_continuous
        self.widths = np.append(self.upper - self.lower, response_width)

    def _choose_responses(self) -> None:
        bounds = self.mechanism.bounds
        if bounds.y_lower is None or bounds.y_upper is None:
            reach = float(np.max(np.abs(self.grid) @ np.maximum(np.abs(self.lower), np.abs(self.upper))))
            beyond = 2.0 * reach + 1.0
            self.response = -beyond, beyond
            # Far enough for a score that tends to its limit to be there.
            levels = np.array([-FAR * beyond, -beyond, 0.0, beyond, FAR * beyond])
        else:
            self.response = float(bounds.y_lower), float(bounds.y_upper)
            levels = np.clip(np.array([*self.response, 0.5 * sum(self.response), 0.0]), *self.response)
        # A loss of a discrete response says so by refusing the others.
        self.is_continuous = _accepts(self.mechanism, levels)
        if not self.is_continuous:
            levels = np.array([level for level in (*levels, 0.0, 1.0) if _accepts(self.mechanism, np.array([level]))])
        self.levels = levels

    def prepare(self, rows: np.ndarray) -> np.ndarray:
        """Takes rows through the validation and clipping that every release goes through."""
        flat, bounds = rows.reshape(-1, rows.shape[-1]), self.mechanism.bounds
        columns, response = flat[:, int(bounds.intercept) : -1], flat[:, -1] if self.has_response else None
        if response is not None and bounds.y_lower is not None:
            # What lies beyond may have no meaning for the loss, as negative counts.
            response = np.clip(response, *self.response)
        responses = self.mechanism.intake.responses
        records = prepare(bounds, columns, response, has_response=self.has_response, responses=responses)
        return np.column_stack([records.x, records.y]).reshape(rows.shape)

    def draw(self, *shape: int) -> np.ndarray:
        """Returns rows of this batch shape, each of its own kind."""
        random, dimension = self.generator, self.lower.size
        corner = np.where(random.random((*shape, dimension)) < 0.5, self.lower, self.upper)
        nearest_to_zero = np.clip(0.0, self.lower, self.upper)
        axis = np.where(random.integers(dimension, size=(*shape, 1)) == np.arange(dimension), corner, nearest_to_zero)
        anywhere = random.uniform(self.lower, self.upper, corner.shape)
        kind = random.random((*shape, 1))
        x = np.where(kind < 0.5, corner, np.where(kind < 0.65, axis, np.where(kind < 0.75, nearest_to_zero, anywhere)))
        y = self.levels[random.integers(self.levels.size, size=shape)]
        if not self.has_response:
            # Beside the point and not on it: there the direction to a record is undefined.
            beside = self.grid[random.integers(len(self.grid), size=shape)] + 1e-6 * random.normal(size=x.shape)
            x = np.where(random.random((*shape, 1)) < 0.4, beside, x)
        if self.is_continuous:
            through_grid = np.sum(x * self.grid[random.integers(len(self.grid), size=shape)], axis=-1)
            kind = random.random(shape)
            y = np.where(kind < 0.5, y, np.where(kind < 0.8, through_grid, random.uniform(*self.response, shape)))
        return self.prepare(np.concatenate([x, y[..., None]], axis=-1))

    def starts(self, num_rows: int, num_common: int) -> np.ndarray:
        """Returns rows for every climber, the common ones all equal, or of two values, or all different."""
        rows, one, other = (self.draw(NUM_CLIMBERS, size) for size in (num_rows, 1, 1))
        halves = np.where(self.generator.random((NUM_CLIMBERS, num_rows, 1)) < 0.5, one, other)
        kind = self.generator.integers(3, size=(NUM_CLIMBERS, 1, 1))
        is_common = np.arange(num_rows)[:, None] < num_common
        return np.where(is_common & (kind < 2), np.where(kind == 0, one, halves), rows)

    def mutated(self, rows: np.ndarray, num_common: int) -> np.ndarray:
        """Changes the rows of every climber once: some become one new record, or all take the same small step."""
        random, num_rows = self.generator, rows.shape[1]
        row = np.arange(num_rows)
        own = row == num_common + random.integers(num_rows - num_common, size=(NUM_CLIMBERS, 1))
        any_one = row == random.integers(num_rows, size=(NUM_CLIMBERS, 1))
        common = np.broadcast_to(row < num_common, own.shape)
        half = common & (random.random(own.shape) < 0.5)
        kind = random.random((NUM_CLIMBERS, 1))
        changed = np.select([kind < 0.3, kind < 0.6, kind < 0.8], [own, any_one, common], half)[..., None]
        scale = 10.0 ** random.uniform(-3.0, -0.5, (NUM_CLIMBERS, 1, 1))
        stepped = rows + scale * self.widths * random.normal(size=(NUM_CLIMBERS, 1, rows.shape[2]))
        moved = np.where(random.random((NUM_CLIMBERS, 1, 1)) < 0.6, self.draw(NUM_CLIMBERS, 1), stepped)
        return self.prepare(np.where(changed, moved, rows))


def _accepts(mechanism: AbstractMechanism, responses: np.ndarray) -> bool:
    return not np.isnan(mechanism.intake.responses(responses)).any()
