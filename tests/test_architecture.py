"""The house rules that a reader relies on: imports go one way, classes are abstract or final, importing is idle."""

import ast
import functools
import importlib
import pathlib
import subprocess
import sys
import types

import equinox as eqx
import pytest

import kngjax as kng

ROOT = pathlib.Path(__file__).parents[1]
PACKAGE = ROOT / "kngjax"

# Each room may import from those before it, and from itself.
ROOMS = (
    "core",
    "accounting",
    "geometry",
    "data",
    "losses",
    "sensitivity",
    "samplers",
    "mechanisms",
    "ledger",
    "owner",
    "releases",
    "inference",
    "estimators",
    "sklearn",
    "audit",
    "command",
)
MOST_ENTRIES = 19


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}
EXPERIMENTS = sorted((ROOT / "experiments").rglob("*.py"))
SITE = [ROOT / "docs" / "conf.py", *sorted((ROOT / "docs" / "_generate").rglob("*.py"))]


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


def test_the_top_of_the_package_is_its_rooms():
    entries = {path.name for path in PACKAGE.iterdir() if path.name != "__pycache__"}
    assert entries == {*ROOMS, "__init__.py", "__init__.pyi", "py.typed"}
    assert len(entries) <= MOST_ENTRIES
    assert not [path for path in PACKAGE.rglob("_*.py") if path.name != "__init__.py"], (
        "a file's name says what is in it"
    )


@pytest.mark.parametrize("name", [name for name in MODULES if room(name)])
def test_imports_go_one_way(name):
    allowed = ROOMS[: ROOMS.index(room(name)) + 1]
    assert rooms_imported(name) <= set(allowed), f"{name} imports from a room that stands on its own"


def test_no_import_goes_in_a_circle():
    waiting = {name: {other for other in imports(syntax(path)) if other in MODULES} for name, path in MODULES.items()}
    while waiting:
        free = [name for name, others in waiting.items() if not others & (waiting.keys() - {name})]
        assert free, f"a circle among {sorted(waiting)}"
        for name in free:
            del waiting[name]


@pytest.mark.parametrize("name", [name for name in MODULES if room(name) in ("accounting", "ledger")])
def test_accounting_and_ledgers_are_plain_python(name):
    roots = {other.split(".")[0] for other in imports(syntax(MODULES[name]))}
    assert not roots & {"jax", "jaxlib", "jaxtyping", "equinox", "numpyro", "optax"}


@pytest.mark.parametrize("name", MODULES)
def test_nothing_of_the_package_imports_what_only_tests_need(name):
    roots = {".".join(other.split(".")[:2]) for other in imports(syntax(MODULES[name]))}
    assert not roots & {"unittest", "unittest.mock", "pytest", "hypothesis"}


@pytest.mark.parametrize("name", [name for name in MODULES if room(name) in ("sensitivity", "samplers", "owner")])
def test_who_asks_a_loss_names_none(name):
    """A new loss is served without a line in these rooms; mechanisms name the losses that they are made of."""
    assert {other for other in imports(syntax(MODULES[name])) if other.startswith("kngjax.losses")} <= {
        "kngjax.losses.base"
    }


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.name)
def test_experiments_use_the_public_face(path):
    public = {name: getattr(kng, name) for name in kng.__all__}
    homes = {getattr(one, "__module__", getattr(one, "__name__", "")) for one in public.values()}
    used = {other for other in imports(syntax(path)) if other.split(".")[0] == "kngjax"}
    assert used <= {"kngjax", "kngjax.data", *homes}


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


def test_the_list_of_public_names_is_true():
    stub = ast.parse((PACKAGE / "__init__.pyi").read_text(encoding="utf-8"))
    assert ast.get_docstring(stub)
    declared = {}
    for statement in [node for node in stub.body if isinstance(node, ast.ImportFrom)]:
        for alias in statement.names:
            assert alias.name == alias.asname, "a re-export repeats its name"
            assert alias.name not in declared
            declared[alias.name] = statement.module
    # `from kngjax import *` leaves Python's own sum in place.
    assert sorted(declared) == sorted([*kng.__all__, "sum"]) == dir(kng)
    for name, home in declared.items():
        defined = getattr(kng, name)
        assert getattr(importlib.import_module(f"kngjax.{home}" if home else "kngjax"), name) is defined
        # Each name stands with the file that defines it.
        assert isinstance(defined, types.ModuleType) or defined.__module__ == f"kngjax.{home}"
    with pytest.raises(AttributeError, match="Laplace"):
        _ = kng.Laplace


def run_python(program):
    return subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()


def test_importing_the_package_imports_nothing_heavy():
    program = "import sys, kngjax; kngjax.__all__; print(*sys.modules)"
    assert not {"jax", "arviz", "sklearn", "numpyro", "equinox", "matplotlib", "pandas"} & set(run_python(program))


def test_the_first_names_import_little_besides_jax_and_equinox():
    program = "import sys, kngjax; kngjax.Box; kngjax.QuantileLoss; kngjax.Bounds; kngjax.KNG; print(*sys.modules)"
    slow = {"numpyro", "optax", "arviz", "tqdm", "scipy.optimize", "scipy.sparse", "scipy.special", "scipy.stats"}
    assert not slow & set(run_python(program))


def test_using_every_public_name_makes_no_array_and_imports_neither_arviz_nor_plots():
    program = (
        "import sys, numpyro, optax, equinox, jax; before = len(jax.live_arrays()); import kngjax;"
        "[getattr(kngjax, name) for name in kngjax.__all__];"
        "print(len(jax.live_arrays()) - before, jax.config.jax_enable_x64, *sys.modules)"
    )
    made, wide, *modules = run_python(program)
    assert (made, wide) == ("0", "False")
    assert not {"arviz", "sklearn", "matplotlib"} & set(modules)


@pytest.mark.parametrize("name", [name for name in MODULES if room(name) != "sklearn"])
def test_scikit_learn_is_loaded_by_its_own_room_alone(name):
    assert "sklearn" not in {other.split(".")[0] for other in imports(syntax(MODULES[name]))}


def test_the_room_of_scikit_learn_hides_no_other_package_of_its_name():
    program = "import kngjax.sklearn, sklearn; print(kngjax.sklearn is not sklearn, hasattr(sklearn, 'clone'))"
    assert run_python(program) == ["True", "True"]


@pytest.mark.parametrize("before", ["import kngjax; kngjax.sample", "from kngjax.releases.release import Release"])
def test_the_function_release_is_not_hidden_by_the_file_of_its_name(before):
    # Importing a submodule sets an attribute of its name on the package: a file release.py would hide the function.
    assert run_python(f"{before}; import kngjax; print(callable(kngjax.release))") == ["True"]


@pytest.mark.parametrize(
    "path", [*MODULES.values(), *EXPERIMENTS, *SITE], ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_files_are_short_and_documented(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400
    tree = syntax(path)
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    public = [node for node in tree.body if isinstance(node, definitions) and not node.name.startswith("_")]
    undocumented = [node.name for node in public if not ast.get_docstring(node)]
    assert not undocumented, f"without a docstring: {undocumented}"
    assert ast.get_docstring(tree) or not tree.body
