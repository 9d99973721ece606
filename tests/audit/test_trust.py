"""The table of figures: that each line is measured, and that a failure is one."""

import pytest

from kngjax.audit import mutations, trust
from kngjax.command import cli


@pytest.mark.slow
def test_worst_losses_are_near_what_is_claimed_and_never_above():
    lines = list(trust._worst_losses())
    assert len(lines) == 4
    assert all(line.passed for line in lines)
    assert all(str(line).startswith("ok") for line in lines)


def test_a_loss_above_the_claim_fails_the_command(monkeypatch, capsys):
    monkeypatch.setattr(mutations, "worst_losses", lambda: iter([("planted", 0.99, 1.01)]))
    monkeypatch.setattr(trust, "figures", lambda jobs, quick: trust._worst_losses())
    assert cli.main(["trust", "--quick"]) == 1
    assert "FAILED  worst loss over epsilon, planted" in capsys.readouterr().out


@pytest.mark.slow
def test_the_quick_table_passes(capsys):
    assert cli.main(["trust", "--quick"]) == 0
    printed = capsys.readouterr().out
    assert printed.count("ok  ") == 22
    assert "FAILED" not in printed
    assert f"{len(mutations.mutations())} of {len(mutations.mutations())}" in printed
