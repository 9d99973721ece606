"""Sums at an estimate that may be far off are refused before a value is looked at."""

import dataclasses

import numpy as np
import pytest

import kngjax as kng


def on_a_wide_domain(epsilon, adjacency="replace"):
    """Of which 1,000 records at ε = .3 had intervals in 38 tables of 100, that held .84: `interval_coverage`."""
    bounds = kng.Bounds(x=([-1.0] * 3, [1.0] * 3), y=(-3.5, 3.5))
    return kng.KNG(kng.PseudoHuberLoss(0.5), bounds, kng.Box(-20.0, 20.0), epsilon, adjacency)


def test_sums_at_an_estimate_that_may_be_far_off_are_refused_before_a_value_is_looked_at():
    unread, responses = np.zeros((1000, 3)), np.zeros(1000)
    for covariance in (None, kng.Sandwich(), kng.Sandwich(share=0.3)):
        with pytest.raises(ValueError, match="may come from far off"):
            kng.release(kng.WithIntervals(on_a_wide_domain(0.3), covariance), unread, responses)
    assert len(kng.WithIntervals(on_a_wide_domain(1.0), kng.Sandwich()).certify(unread, responses)) == 3
    # A guess of n decides where n is private, and without one nothing does.
    private = kng.WithIntervals(on_a_wide_domain(0.15, "add_remove"), kng.Sandwich())
    with pytest.raises(ValueError, match="may come from far off"):
        dataclasses.replace(private, num_records=1000).certify(unread, responses)
    assert len(private.certify(unread, responses)) == 3
    # The density of a minimiser falls everywhere, so that H alone is why.
    bounds, domain = on_a_wide_domain(0.3).bounds, on_a_wide_domain(0.3).domain
    minimiser = kng.ObjectivePerturbation(kng.PseudoHuberLoss(0.5), bounds, domain, 0.3, "replace")
    with pytest.raises(ValueError, match="noise of H, which they need"):
        kng.WithIntervals(minimiser).certify(unread, responses)


def test_the_preview_of_sums_at_an_estimate_that_may_be_far_off_has_no_width():
    plan = kng.WithIntervals(on_a_wide_domain(0.3))
    assert np.all(np.isinf(kng.preview(plan, num_records=1000).width))
    assert np.all(np.isfinite(kng.preview(plan, num_records=5000).width))
