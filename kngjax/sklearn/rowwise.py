"""Computes predictions of each record from that record alone, bit for bit.

Where a sum over records is to move by at most what one record can, all other records' parts must stay what they are.
A product of a matrix with a vector may add up a row in another order if there is one row more, and NumPy's exponential
may be another program for the last rows of an array. Products and sums of whole columns, element by element, are not.
"""

import math

import numpy as np
from jaxtyping import Float, Int

from kngjax.data.named_columns import Columns
from kngjax.data.terms import Design
from kngjax.sklearn.public_terms import letting_missing_through

# Up to here the exponential is finite, and beyond it 1/(1 + exp) no longer moves.
_LARGEST = 700.0


def predictors(design: Design, coefficients: np.ndarray, table: Columns) -> np.ndarray:
    """Returns θ_0 + Σ_j θ_j x_j of each record, shape (n,), NaN where no policy fills a missing cell. Private."""
    columns = letting_missing_through(design).matrix(table)
    total = np.full(table.rows, float(coefficients[0]))
    for index, coefficient in enumerate(coefficients[1:]):
        total = total + float(coefficient) * np.ascontiguousarray(columns[:, index])
    return total


def exponentials(eta: np.ndarray) -> np.ndarray:
    """Returns exp(η) of each number, by the scalar function of the C library."""
    return np.array([math.exp(min(one, _LARGEST)) for one in eta.tolist()], dtype=np.float64).reshape(eta.shape)


def probabilities(eta: np.ndarray) -> np.ndarray:
    """Returns 1/(1 + exp(-η)) of each number, by the scalar function of the C library."""
    return np.array([0.5 * (1.0 + math.tanh(0.5 * one)) for one in eta.tolist()], dtype=np.float64).reshape(eta.shape)


def means_of_persons(
    losses: Float[np.ndarray, "rows candidates"], codes: Int[np.ndarray, " rows"]
) -> Float[np.ndarray, "persons candidates"]:
    """Returns the mean loss of each person's rows; a missing loss counts as 1. Private.

    A mean is of losses in [0, 1] and lies there too; it is of that person's rows alone, whatever their order is.
    """
    known = np.where(np.isnan(losses), 1.0, losses)
    order = np.argsort(codes, kind="stable")
    pieces = np.split(known[order], np.flatnonzero(np.diff(codes[order])) + 1)
    means = [[math.fsum(column) / len(piece) for column in piece.T.tolist()] for piece in pieces if len(piece)]
    return np.array(means, dtype=np.float64).reshape(-1, losses.shape[1])
