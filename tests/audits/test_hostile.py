"""Hostile inputs end in our own words, in the constant text, or in a valid release."""

import dataclasses
import warnings

import numpy as np
import pytest

import kngjax as kng
from audits import every_mechanism, hostile
from audits.hostile import hostile_inputs
from kngjax.releases import plan


@pytest.mark.slow
def test_hostile_inputs():
    found = hostile_inputs(150, seed=7, mechanisms=["means", "quantile", "AdaSSP"], progress=False)
    assert found.passed, "\n".join(found.broken)
    assert found.tried == found.released + found.told + found.failed == 150
    assert min(found.released, found.told, found.failed) > 10
    assert found.unchanged == found.told
    assert found.failed_in_draw == 0


@pytest.mark.slow
def test_hundreds_of_hostile_inputs():
    """`python -m audits` tries ten thousand."""
    found = hostile_inputs(600, progress=False)
    assert found.passed, "\n".join(found.broken)
    assert found.failed_in_draw == 0


@pytest.mark.parametrize("box", hostile.BOXES)
def test_every_box_is_made(box):
    kinds = {package: package for package in ("pandas", "polars", "pyarrow", "duckdb")}
    if (package := kinds.get(box.partition(" ")[0])) is not None:
        pytest.importorskip(package)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for values in (np.full((3, 2), 0.5), np.full(3, 0.5)):
            assert (hostile.BOXES[box](values) is None) == (box == "nothing")


@pytest.mark.parametrize("kind", hostile.VALUES)
def test_every_kind_of_values_is_made(kind):
    random = np.random.default_rng(0)
    assert hostile.VALUES[kind](random, (9, 2)).shape == (9, 2)


def test_what_is_broken_is_seen(monkeypatch):
    def crashing(*_, **__):
        raise KeyError("of another package")

    case = every_mechanism.CASES["means"]()
    monkeypatch.setattr("kngjax.data.number_columns.hiding_errors", crashing)
    ends = [hostile._try(case, (0, place)) for place in range(20)]
    assert any("KeyError is no class of a refusal" in trouble for _, trouble, _ in ends)


def test_a_debit_for_a_refusal_in_words_is_seen(monkeypatch):
    ledgers, made, run = [], hostile._ledger, plan.run_telling_refusals

    def debited_first(step):
        ledgers[-1].reserve(every_mechanism.CASES["means"]().mechanism.guarantee)
        return run(step)

    monkeypatch.setattr(hostile, "_ledger", lambda *parts: ledgers.append(made(*parts)) or ledgers[-1])
    monkeypatch.setattr(plan, "run_telling_refusals", debited_first)
    found = hostile_inputs(12, seed=7, mechanisms=["means"], progress=False)
    assert not found.passed
    assert found.unchanged == 0 < found.told
    assert any("told, and its ledger has 1 rows more" in words for words in found.broken)


def test_a_failure_that_costs_nothing_is_seen(monkeypatch):
    monkeypatch.setattr(plan, "reserve_cost", lambda *_: None)
    found = hostile_inputs(12, seed=7, mechanisms=["means"], progress=False)
    assert any("failed, and its ledger has 0 rows more" in words for words in found.broken)


def test_errors_of_others_are_seen():
    def error_of(work):
        with pytest.raises((TypeError, ValueError, IndexError)) as caught:
            work()
        return hostile.trouble_with(caught.value)

    def chained():
        try:
            np.zeros(3).reshape(2)
        except ValueError as error:
            raise ValueError("a text that is long enough") from error

    assert "raised in" in error_of(lambda: int("x"))
    assert "behind it" in error_of(chained)
    assert "no class" in error_of(lambda: [][0])
    assert error_of(lambda: kng.Bounds(x=(1.0, 0.0))) == ""


def test_a_value_out_of_range_is_seen():
    case = every_mechanism.CASES["quantile"]()
    assert case.admits(np.array([0.5]))
    for theta in (np.array([1.5]), np.array([np.nan]), np.array([0.5, 0.5])):
        assert not case.admits(theta)
    found = hostile.HostileInputs(3, 1, 1, 1, 1, 0, ())
    assert found.passed
    assert not dataclasses.replace(found, unchanged=0).passed
    assert not dataclasses.replace(found, broken=("one",)).passed
    assert not dataclasses.replace(found, released=0).passed
