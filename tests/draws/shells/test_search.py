"""What is proposed and accepted, whatever the envelope, and whatever float64 can tell."""

import random

import numpy as np
import pytest
from flint import ctx

import kngjax as kng
from kngjax.draws import uniforms
from kngjax.draws.shells import shell_search
from kngjax.draws.shells.shell_certificate import certify
from kngjax.draws.shells.shell_envelope import ShellEnvelope
from kngjax.draws.shells.solutions import estimate
from tests.oracles.goodness_of_fit import assert_same_law
from tests.oracles.shell_problems import LOSSES, log_density, moderate, parts, problem


@pytest.mark.parametrize(
    ("shells", "rings", "loss"),
    [(0, 0, "pseudo-Huber"), (0, 9, "pseudo-Huber"), (20, 0, "pseudo-Huber"), (20, 9, "logistic"), (20, 9, "Poisson")],
)
def test_pieces_of_the_domain_have_the_law_too(shells, rings, loss):
    """With so few shells that draws come from rings and from all of the domain."""
    mechanism, x, y = problem(60, 1, moderate(loss, 2.0), domain=kng.L1Ball(0.6), skew=0.1, loss=loss)
    way, records, own = parts(mechanism, x, y)
    with ctx.workprec(128):
        certificate = certify(records, way.noise, way.shape, estimate(records))
    assert certificate is not None
    full = way.envelope(records)
    finite = [one for one in certificate.radii if np.isfinite(one.radius)][:rings]
    edges, floors = full.edges[: shells + 1], [0.0, *(certificate.floor(one) for one in finite)]
    envelope = ShellEnvelope(
        certificate,
        edges,
        full.heights[:shells],
        np.array([0.0, *(one.radius for one in finite)]),
        np.maximum(np.maximum.accumulate(floors), edges[-1]),
        0.0,
    )
    bits = random.Random(100 * shells + rings).getrandbits
    drawn = np.array([way.grid.values(shell_search.draw(own, envelope, way.grid, bits))[0] for _ in range(80)])
    places = np.linspace(-0.6, 0.6, 2001)[:, None]
    density = np.exp(np.concatenate([log_density(mechanism, loss, x, y, part) for part in np.array_split(places, 50)]))
    sums = np.cumsum(density)
    assert_same_law(drawn, lambda t: np.interp(t, places[:, 0], sums / sums[-1]))


@pytest.mark.parametrize("loss", LOSSES)
def test_cells_do_not_depend_on_whether_float64_could_tell(loss, monkeypatch):
    """The same digits, with every decision taken by float64, or never."""
    mechanism, x, y = problem(60, 2, 100.0, loss=loss)
    way, records, own = parts(mechanism, x, y)
    envelope, found = way.envelope(records), []
    for digits in (-1, 64):
        monkeypatch.setattr(shell_search, "_DIGITS_OF_FLOATS", digits)
        bits = random.Random(7).getrandbits
        found.append([shell_search.draw(own, envelope, way.grid, bits) for _ in range(12)])
    assert found[0] == found[1]
    assert uniforms._FIRST_DIGITS == 64
