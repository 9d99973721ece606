"""While XLA or JAX write down what they compile or compute, nothing is released and nothing is spent."""

import subprocess
import sys

import jax
import numpy as np
import pytest

import kngjax as kng
from kngjax.command import cli, job
from kngjax.command.job_file import read
from kngjax.core import side_doors
from tests.command.small_jobs import workers, write_job
from tests.offenders import every_case

MEAN = kng.KNormMechanism(kng.Bounds(x=([0.0], [1.0]), intercept=False), 0.25, "replace")
X = np.full((5, 1), 0.5)
SETTINGS = {
    "jax_debug_nans": True,
    "jax_debug_infs": True,
    "jax_log_compiles": True,
    "jax_explain_cache_misses": True,
    "jax_log_checkpoint_residuals": True,
    "jax_dump_ir_to": "somewhere",
    "jax_compilation_cache_dir": "somewhere",
}


class Untouchable:
    def __array__(self, dtype=None, copy=None):
        raise AssertionError("the data were touched")


@pytest.fixture
def setting():
    before = {name: getattr(jax.config, name, jax.config.values.get(name)) for name in SETTINGS}
    yield jax.config.update
    for name, value in before.items():
        jax.config.update(name, value)


@pytest.fixture
def ledger(tmp_path):
    return kng.Ledger.create(tmp_path / "it", kng.Budget.pure(1), adjacency="replace", dataset="invented")


def refused(match, ledger):
    with pytest.raises(RuntimeError, match=match) as caught:
        kng.release(MEAN, Untouchable(), ledger=ledger)
    assert type(caught.value) is RuntimeError
    assert ledger.verify().num_rows == 1


def test_nothing_is_open_in_these_tests():
    assert side_doors.found_open() == []


def test_settings_of_jax(setting, ledger):
    with every_case() as case:
        for name, value in SETTINGS.items():
            before = side_doors._setting(name)
            setting(name, value)
            with case(name):
                refused("persistent compilation cache" if name == "jax_compilation_cache_dir" else name, ledger)
            setting(name, before)
            assert side_doors.found_open() == []


def test_a_cache_that_is_switched_off_is_no_door(setting):
    setting("jax_compilation_cache_dir", "somewhere")
    before = jax.config.jax_enable_compilation_cache
    try:
        setting("jax_enable_compilation_cache", False)
        assert side_doors.found_open() == []
    finally:
        setting("jax_enable_compilation_cache", before)


FLAGS = {
    "--xla_dump_to=/somewhere": True,
    "--xla_dump_hlo_as_text": True,
    "--xla_force_host_platform_device_count=1 --xla_dump_hlo_snapshots=true": True,
    "--xla_hlo_profile": True,
    "--xla_dump_hlo_as_text=false": False,
    "--xla_force_host_platform_device_count=8": False,
    "": False,
}


def test_flags_of_xla(monkeypatch, tmp_path, ledger):
    file = tmp_path / "flags"
    with every_case() as case:
        for flags, is_open in FLAGS.items():
            with case(flags):
                monkeypatch.setenv("XLA_FLAGS", flags)
                assert bool(side_doors.found_open()) == is_open
                if is_open:
                    refused("in XLA_FLAGS: remove it", ledger)
                file.write_text(flags, encoding="utf-8")
                monkeypatch.setenv("XLA_FLAGS", str(file))
                assert bool(side_doors.found_open()) == is_open


def test_a_profiler_that_is_said_to_run(ledger, monkeypatch):
    monkeypatch.setattr(side_doors, "_profiler_runs", lambda: True)
    refused("a running profiler", ledger)


@pytest.mark.slow
def test_a_profiler(tmp_path, ledger):
    jax.profiler.start_trace(str(tmp_path / "trace"))
    try:
        refused("a running profiler", ledger)
    finally:
        jax.profiler.stop_trace()
    assert side_doors.found_open() == []


def test_the_override_is_a_context_and_ends_with_it(setting):
    setting("jax_debug_infs", True)
    with side_doors.allowed():
        assert np.isfinite(kng.release(MEAN, X).value).all()
        with side_doors.allowed():
            pass
        side_doors.refuse()
    with pytest.raises(RuntimeError, match=r"side_doors\.allowed\(\)"):
        kng.release(MEAN, X)


def test_a_job_refuses_before_it_is_debited(monkeypatch, tmp_path, capfd):
    config = read(write_job(tmp_path))
    ledger = kng.Ledger.create(tmp_path / "it", kng.Budget.pure(1), adjacency="replace", dataset="workers")
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=/somewhere")
    with pytest.raises(RuntimeError, match="nothing is released, and nothing is spent"):
        job.run(config, workers(), ledger=ledger)
    (tmp_path / "workers.csv").unlink()
    assert cli.main(["release", str(tmp_path / "small.toml"), "--output", str(tmp_path / "output")]) == 1
    assert "xla_dump_to=/somewhere in XLA_FLAGS" in capfd.readouterr().err
    assert ledger.verify().num_rows == 1


@pytest.mark.slow
def test_the_environment_of_a_process_is_seen():
    program = "import kngjax; print(len(kngjax.side_doors.found_open()))"
    settings = {"JAX_COMPILATION_CACHE_DIR": "/somewhere", "JAX_DEBUG_NANS": "1", "XLA_FLAGS": "--xla_dump_to=/x"}
    done = subprocess.run([sys.executable, "-c", program], env=settings, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["3"]
