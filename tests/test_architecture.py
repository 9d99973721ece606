"""The house rules that a reader relies on: imports go one way, classes are abstract or final, importing is idle."""

import ast
import functools
import importlib
import itertools
import pathlib
import subprocess
import sys

import equinox as eqx
import pytest

import kngjax as kng

ROOT = pathlib.Path(__file__).parents[1]
PACKAGE = ROOT / "kngjax"

# Each room may import from its own floor and from those below.
FLOORS = (
    (
        "_arrays",
        "_csv",
        "_files",
        "cells",
        "_hulls",
        "_toml",
        "_owner_only",
        "_shown",
        "_html",
        "refusals",
        "side_doors",
        "accounting",
        "norms",
        "randomness",
        "features",
        "terms",
        "_mills",
        "profiles",
        "objective_profiles",
        "matrix_noise",
        "calibration",
        "ledger",
    ),
    ("_balls", "admission", "bounds", "missing", "domains", "data", "streams", "shards", "sums", "polytopes"),
    ("losses",),
    ("sensitivity_sets", "sensitivity", "moments", "pointwise", "nonprivate", "minimisers"),
    ("target",),
    ("mechanisms",),
)
# Samplers draw from a density, and may not know what promises rest on it.
ROOMS_OF_SAMPLERS = {"_arrays", "_shown", "_balls", "norms", "randomness", "domains", "data"}
ROOMS_OF_SAMPLERS |= {"losses", "target"}
COMMAND_LINE = ("cli", "job", "planning", "report", "trust")


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}
EXPERIMENTS = sorted((ROOT / "experiments").rglob("*.py"))


@functools.cache
def syntax(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(tree):
    """Everything that any statement of the file imports, as full module names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in MODULES else node.module for name in names)


def rooms_imported(name):
    """The rooms of the package that a module imports from: "losses" for kngjax.losses.base."""
    return {other.split(".")[1] for other in imports(syntax(MODULES[name])) if other.startswith("kngjax.")}


def room(name):
    return name.split(".")[1] if "." in name else ""


def floor(name):
    return next((number for number, rooms in enumerate(FLOORS) if name in rooms), None)


@pytest.mark.parametrize("name", [name for name in MODULES if floor(room(name)) is not None])
def test_imports_go_down(name):
    for other in rooms_imported(name):
        assert floor(other) is not None, f"{name} imports {other}, which is upstairs"
        assert floor(other) <= floor(room(name)), f"{name} imports {other}, which is upstairs"


@pytest.mark.parametrize("name", [name for name in MODULES if room(name) == "samplers"])
def test_samplers_know_a_density_and_no_mechanism(name):
    allowed = ROOMS_OF_SAMPLERS | {"samplers"} | ({"mechanisms"} if name == "kngjax.releases.chains" else set())
    assert rooms_imported(name) <= allowed


@pytest.mark.parametrize("name", [name for name in MODULES if room(name) not in COMMAND_LINE])
def test_nothing_rests_on_the_command_line(name):
    assert not rooms_imported(name) & set(COMMAND_LINE)


def test_no_import_goes_in_a_circle():
    waiting = {name: {other for other in imports(syntax(path)) if other in MODULES} for name, path in MODULES.items()}
    del waiting["kngjax"]  # it names all rooms, for type checkers, and imports none
    while waiting:
        free = [name for name, others in waiting.items() if not others & (waiting.keys() - {name})]
        assert free, f"a circle among {sorted(waiting)}"
        for name in free:
            del waiting[name]


@pytest.mark.parametrize("name", [name for name in MODULES if room(name) in ("accounting", "ledger")])
def test_accounting_and_ledgers_are_plain_python(name):
    roots = {other.split(".")[0] for other in imports(syntax(MODULES[name]))}
    assert not roots & {"jax", "jaxlib", "jaxtyping", "equinox", "numpyro", "optax"}


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.name)
def test_experiments_use_the_public_face(path):
    public = {"kngjax", *(f"kngjax.{name}" for name in kng._SUBMODULES), *kng._ROOMS}
    used = {other for other in imports(syntax(path)) if other.split(".")[0] == "kngjax"}
    assert used <= public


def module_classes():
    for name in MODULES:
        importlib.import_module(name)
    found, waiting = set(), [eqx.Module]
    while waiting:
        waiting += [child for child in waiting.pop().__subclasses__() if child not in found]
        found |= set(waiting)
    return sorted((found_class for found_class in found if found_class.__module__.startswith("kngjax")), key=repr)


def test_every_module_class_is_abstract_or_final():
    classes = module_classes()
    assert {kng.KNG, kng.Box, kng.QuantileLoss, kng.Exact} <= set(classes)
    for one in classes:
        named_abstract = one.__name__.lstrip("_").startswith("Abstract")
        has_abstract_parts = bool(one.__abstractmethods__ or getattr(one, "__abstractvars__", ()))
        # Name and nature say the same, so that a reader knows which one to instantiate.
        assert named_abstract or not has_abstract_parts, f"{one.__name__} has abstract parts and is not called Abstract"
        if not named_abstract:
            heirs = [other.__name__ for other in classes if one in other.__mro__[1:]]
            assert not heirs, f"{one.__name__} is concrete, and {heirs} inherit from it"


def test_the_names_for_type_checkers_are_the_public_names():
    block = next(node for node in syntax(PACKAGE / "__init__.py").body if isinstance(node, ast.If))
    assert ast.unparse(block.test) == "TYPE_CHECKING"
    declared = {}
    for statement in block.body:
        assert isinstance(statement, ast.ImportFrom)
        for alias in statement.names:
            assert alias.name == alias.asname, "a re-export repeats its name"
            declared[alias.name] = statement.module
    assert sorted(declared) == sorted(kng.__all__)
    assert len(set(kng.__all__)) == len(kng.__all__)
    for name, home in declared.items():
        expected = importlib.import_module(f"kngjax.{name}") if home == "kngjax" else None
        assert getattr(kng, name) is (expected or getattr(importlib.import_module(home), name))
    assert dir(kng) == sorted(kng.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'Laplace'"):
        _ = kng.Laplace


def run_python(program):
    return subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()


def test_importing_the_package_imports_nothing_heavy():
    program = "import sys, kngjax; kngjax.__all__; print(*sys.modules)"
    assert not {"jax", "arviz", "sklearn", "numpyro", "equinox", "matplotlib", "pandas"} & set(run_python(program))


def test_using_every_public_name_makes_no_array_and_imports_neither_arviz_nor_plots():
    program = (
        "import sys, numpyro, optax, equinox, jax; before = len(jax.live_arrays()); import kngjax;"
        "[getattr(kngjax, name) for name in kngjax.__all__];"
        "print(len(jax.live_arrays()) - before, jax.config.jax_enable_x64, *sys.modules)"
    )
    made, wide, *modules = run_python(program)
    assert (made, wide) == ("0", "False")
    assert not {"arviz", "sklearn", "matplotlib"} & set(modules)


@pytest.mark.parametrize("before", ["import kngjax; kngjax.sample", "from kngjax.releases.release import Release"])
def test_the_function_release_is_not_hidden_by_the_file_of_its_name(before):
    # Importing a submodule sets an attribute of its name on the package: a file release.py would hide the function.
    assert run_python(f"{before}; import kngjax; print(callable(kngjax.release))") == ["True"]


@pytest.mark.parametrize("path", [*MODULES.values(), *EXPERIMENTS], ids=lambda path: path.relative_to(ROOT).as_posix())
def test_files_are_short_and_documented(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400
    tree = syntax(path)
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    public = [node for node in tree.body if isinstance(node, definitions) and not node.name.startswith("_")]
    undocumented = [node.name for node in public if not ast.get_docstring(node)]
    assert not undocumented, f"without a docstring: {undocumented}"
    assert ast.get_docstring(tree) or not tree.body


def test_there_is_a_floor_or_a_rule_for_every_room():
    upstairs = {
        "samplers",
        "certificate",
        "diagnostics",
        "releases",
        "lattice",
        "rounding",
        "choices",
        "debits",
        "audit",
        "config",
        "registry",
        "resuming",
        "totals",
        "estimators",
        "per_instance",
        "simulation",
        "",
    }
    rooms = {room(name) for name in MODULES}
    assert rooms <= {*itertools.chain(*FLOORS), *upstairs, *COMMAND_LINE}, "name the floor of the new room in FLOORS"
