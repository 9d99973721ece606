"""Advanced composition, the accountants that docs/several-releases.md compares, and dp-accounting."""

import itertools
import math
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from kngjax.accounting import Guarantee, advanced_epsilon, compare
from tests.accounting.guarantees_drawn import hockey_stick, product

RELEASE = Guarantee.bounded_range("0.1", "replace")
FIFTY = Guarantee.composed([RELEASE] * 50)
DELTA = 1e-6


def responses(bound, count, epsilon):
    """δ of so many randomised responses, by the number of lies among them."""
    lies = np.arange(count + 1)
    losses = (count - 2 * lies) * bound
    share = np.maximum(-np.expm1(np.minimum(epsilon - losses, 0.0)), 0.0)
    return float(np.sum(stats.binom.pmf(lies, count, 1.0 / (1.0 + math.exp(bound))) * share))


def converted(rho):
    """min over α of αρ + log((α-1)/α) - (log δ + log α)/(α-1), as printed in Canonne, Kamath and Steinke (2020)."""

    def epsilon(log_excess):
        alpha = 1.0 + math.exp(log_excess)
        return alpha * rho + math.log((alpha - 1.0) / alpha) - (math.log(DELTA) + math.log(alpha)) / (alpha - 1.0)

    return optimize.minimize_scalar(epsilon, bounds=(-2.0, 8.0), method="bounded").fun


def test_the_table_of_the_documentation():
    found = compare(FIFTY, DELTA)
    expected = {
        "at": (converted(50 * 0.1**2 / 8.0), "1.66"),
        "basic": (50 * 0.1, "5.00"),
        "advanced": (50 * 0.1 * math.tanh(0.05) + math.sqrt(2.0 * math.log(1.0 / DELTA) * 50 * 0.1**2), "3.97"),
        "zcdp_of_pure_textbook": (0.25 + 2.0 * math.sqrt(0.25 * math.log(1e6)), "3.97"),
        "zcdp_of_pure": (converted(50 * 0.1**2 / 2.0), "3.54"),
        "zcdp_textbook": (0.0625 + 2.0 * math.sqrt(0.0625 * math.log(1e6)), "1.92"),
        "zcdp": (converted(50 * 0.1**2 / 8.0), "1.66"),
    }
    assert found.keys() == expected.keys()
    for name, (value, printed) in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-6), name
        assert f"{found[name]:.2f}" == printed
    assert FIFTY.at(delta=DELTA) == found["zcdp"]


@pytest.mark.parametrize(("epsilon", "delta", "count"), [(0.5, 0.01, 3), (1.0, 0.05, 4), (0.2, 1e-4, 5)])
def test_sums_and_advanced_composition_with_failures_by_enumeration(epsilon, delta, count):
    likely = 1.0 / (1.0 + math.exp(-epsilon))
    # Told the truth, answered at random, told that it is the other.
    first = [delta, (1.0 - delta) * likely, (1.0 - delta) * (1.0 - likely), 0.0]
    laws = product(first, count), product(first[::-1], count)
    one = Guarantee.approximate(epsilon, delta, "replace")
    sums = Guarantee.composed([one] * count)
    for place in np.linspace(0.0, count * epsilon, 9):
        exact = hockey_stick(*laws, place)
        assert exact <= sums.at(epsilon=float(place)) * (1.0 + 1e-9)
        if exact > 1.0 - (1.0 - delta) ** count:
            assert advanced_epsilon(sums, exact * (1.0 + 1e-9)) >= place * (1.0 - 1e-6)


def test_what_accountants_cannot_say_is_infinite_or_refused():
    zcdp = Guarantee.zcdp(0.1, "replace")
    assert advanced_epsilon(zcdp, DELTA) == math.inf
    assert compare(zcdp, DELTA)["basic"] == math.inf
    failing = Guarantee.approximate(1.0, 1e-5, "replace")
    assert advanced_epsilon(failing, DELTA) == math.inf
    assert advanced_epsilon(failing, 1e-5) == 1.0
    assert compare(failing, 1e-4)["zcdp"] == math.inf
    with pytest.raises(ValueError, match="strictly between"):
        compare(FIFTY, 0.0)


def test_without_the_extra_the_advice_is_to_install_it(monkeypatch):
    for name in ("dp_accounting.dp_event", "dp_accounting.pld", "dp_accounting.pld.common"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    for call in (RELEASE.to_dp_event, Guarantee.pure(1.0, "replace").to_pld):
        with pytest.raises(ImportError, match=r"pip install 'kngjax\[accounting\]'"):
            call()


def test_dp_accounting_on_the_table():
    pytest.importorskip("dp_accounting")
    found = compare(FIFTY, DELTA, pld=True)["pld_of_pure"]
    exact = optimize.brentq(lambda epsilon: responses(0.1, 50, epsilon) - DELTA, 0.0, 5.0)
    assert found == pytest.approx(exact, abs=1e-6)
    assert f"{found:.2f}" == "3.17"


HETEROGENEOUS = st.lists(st.tuples(st.floats(0.05, 1.5), st.floats(1e-4, 0.05)), min_size=2, max_size=4)


@given(HETEROGENEOUS, st.floats(0.0, 3.0))
@settings(max_examples=25, deadline=None)
def test_heterogeneous_releases_by_enumeration(parts, epsilon):
    pytest.importorskip("dp_accounting")
    first, second = np.ones(1), np.ones(1)
    for bound, delta in parts:
        likely = (1.0 - delta) / (1.0 + math.exp(-bound))
        law = [delta, likely, 1.0 - delta - likely, 0.0]
        first, second = np.outer(first, law).ravel(), np.outer(second, law[::-1]).ravel()
    whole = Guarantee.composed([Guarantee.approximate(*part, "replace") for part in parts])
    found, exact = whole.to_pld().get_delta_for_epsilon(epsilon), hockey_stick(first, second, epsilon)
    # Each loss is rounded outward by at most the grid's 1e-4.
    assert exact <= found * (1.0 + 1e-9) + 1e-12
    assert found <= hockey_stick(first, second, max(0.0, epsilon - 1e-4 * len(parts))) + 1e-4 * len(parts)
    assert exact <= whole.at(epsilon=epsilon) + 1e-12


@pytest.mark.default_cases(9)
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 0.8, 1.5])
@pytest.mark.parametrize(
    "guarantee",
    [
        Guarantee.pure(1.0, "replace"),
        Guarantee.bounded_range(1.0, "replace"),
        Guarantee.gaussian(0.7, "replace"),
        Guarantee.zcdp(0.2, "replace"),
        Guarantee.composed([Guarantee.gaussian(0.3, "replace"), Guarantee.gaussian(0.4, "replace")]),
    ],
    ids=lambda guarantee: str(getattr(guarantee, "kind", guarantee)),
)
def test_a_single_distribution_is_the_guarantee(guarantee, epsilon):
    pytest.importorskip("dp_accounting")
    found, upper = guarantee.to_pld(1e-3).get_delta_for_epsilon(epsilon), guarantee.at(epsilon=epsilon)
    # Of the conversion of zCDP it keeps the convex hull, above the profile of the Gaussian noise that attains ρ.
    attained = guarantee if guarantee.kind != "zcdp" else Guarantee.gaussian(math.sqrt(2.0 * guarantee.rho), "replace")
    assert attained.at(epsilon=epsilon) * (1.0 - 1e-9) <= found <= upper + 2e-3


def test_distributions_of_bounded_range_cover_pairs_that_attain_it():
    pytest.importorskip("dp_accounting")
    bound, count = 0.8, 6
    dominating = Guarantee.composed([Guarantee.bounded_range(bound, "replace")] * count).to_pld()
    for share in (0.5, 0.6, 0.75, 0.9):
        top = share * bound
        likely = -math.expm1(top - bound) / -math.expm1(-bound)
        other = likely * math.exp(-top)
        laws = product([likely, 1.0 - likely], count), product([other, 1.0 - other], count)
        for epsilon in (0.0, 0.5, 1.0, 2.0):
            assert hockey_stick(*laws, epsilon) <= dominating.get_delta_for_epsilon(epsilon)


def test_events_cost_what_the_guarantees_cost():
    dp_accounting = pytest.importorskip("dp_accounting")
    zcdp, gaussian = Guarantee.zcdp(0.05, "replace"), Guarantee.gaussian(0.3, "replace")
    cases = [FIFTY, zcdp, gaussian, Guarantee.composed([zcdp, gaussian, RELEASE, Guarantee.pure(0.2, "replace")])]
    for guarantee, relation in itertools.product(cases, dp_accounting.NeighboringRelation):
        accountant = dp_accounting.rdp.RdpAccountant(neighboring_relation=relation)
        accountant.compose(guarantee.to_dp_event())
        # Its orders are a grid: it says a little more, never less.
        expected = Guarantee.zcdp(guarantee.exact_rho, "replace").at(delta=DELTA)
        assert expected * (1.0 - 1e-9) <= accountant.get_epsilon(DELTA) <= expected * 1.01
    assert FIFTY.to_dp_event().events[0].event.rho == 0.00125
    with pytest.raises(ValueError, match="no event for a guarantee of kind approximate"):
        Guarantee.approximate(1.0, 1e-6, "replace").to_dp_event()
