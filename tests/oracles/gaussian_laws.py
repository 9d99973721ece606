"""An oracle for privacy losses between Gaussians: the hockey-stick divergence on a line, by numerical integration."""

import numpy as np

_FAR, _POINTS = 9.0, 8_001


def hockey_stick(first: tuple[float, float], second: tuple[float, float], epsilon: float) -> float:
    """sup_A P(A) - e^ε Q(A) = ∫ (p - e^ε q)_+ of two normal laws on the line, each (mean, standard deviation)."""
    # A stable sort merges the two, each of which is sorted.
    grids = [np.linspace(m - _FAR * s, m + _FAR * s, _POINTS) for m, s in (first, second)]
    grid = np.sort(np.concatenate(grids), kind="stable")

    def density(law: tuple[float, float]) -> np.ndarray:
        mean, deviation = law
        return np.exp(-0.5 * ((grid - mean) / deviation) ** 2) / (deviation * np.sqrt(2.0 * np.pi))

    return float(np.trapezoid(np.maximum(density(first) - np.exp(epsilon) * density(second), 0.0), grid))
