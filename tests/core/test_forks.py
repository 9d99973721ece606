"""A fork of a process in which JAX has computed says so; one that was made before computes."""

import subprocess
import sys

import pytest

PROGRAM = """
import multiprocessing, sys, tempfile, numpy as np, pandas as pd, kngjax as kng

X = np.linspace(0.0, 1.0, 500)
FRAME = pd.DataFrame({"v": X, "w": X})
LEDGER = kng.Ledger.create(tempfile.mkdtemp() + "/it", kng.Budget.pure(9), adjacency="replace", dataset="people")
HEAD = LEDGER.head()
BOUNDS = kng.Bounds(x=([0.0], [1.0]), y=(0.0, 1.0))

def study():
    s = kng.Study(FRAME, bounds={"v": (0, 1), "w": (0, 1)}, adjacency="replace", ledger=LEDGER)
    s.linear_regression("w ~ v", epsilon=1, force=True)

def mechanism():
    return kng.KNG(kng.PseudoHuberLoss(0.5), BOUNDS, kng.Box(-2.0, 2.0), 1.0, "replace")

def research():
    data = mechanism().prepare(X[:, None], X)
    kng.sample(mechanism(), data, key=kng.research_key(0), num_draws=1, num_chains=1, num_warmup=1, progress=False)

WAYS = {
    "study": study,
    "release": lambda: kng.release(mechanism(), X[:, None], X, ledger=LEDGER),
    "certificate": lambda: kng.certify(mechanism(), X[:, None], X),
    "research": research,
    "preview": lambda: kng.Study(FRAME, bounds={"v": (0, 1), "w": (0, 1)}, adjacency="replace").preview().mean(
        "v", epsilon=1),
}

def child(name):
    try:
        WAYS[name]()
        print(name, "computes", flush=True)
    except RuntimeError as error:
        print(name, "spawn" in str(error) and "forkserver" in str(error) and "JAX" in str(error), flush=True)

def forked(name):
    one = multiprocessing.get_context("fork").Process(target=child, args=(name,))
    one.start()
    one.join(20)
    print(name, "hangs" if one.is_alive() else "ends", flush=True)
    one.kill()

if sys.argv[1] == "before":
    forked("certificate")
else:
    kng.certify(mechanism(), X[:, None], X)
    for name in WAYS:
        forked(name)
    print(LEDGER.head() == HEAD, flush=True)
"""


def run(when):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, when], capture_output=True, text=True, timeout=300, check=True
    )
    return done.stdout.split("\n")


@pytest.mark.takes(8, "processes of their own, each of which imports the package and compiles")
def test_a_fork_says_at_once_that_it_cannot_compute_and_spends_nothing():
    ways = ("study", "release", "certificate", "research", "preview")
    assert run("after") == [line for name in ways for line in (f"{name} True", f"{name} ends")] + ["True", ""]


@pytest.mark.slow
def test_a_fork_of_a_process_that_has_not_computed_computes():
    assert run("before") == ["certificate computes", "certificate ends", ""]
