"""Importing the package is idle, its public names are those of its stub, and its classes are abstract or final."""

import ast
import importlib
import subprocess
import sys
import types

import equinox as eqx
import pytest

import kngjax as kng
from tests.package_syntax import MODULES, PACKAGE, imports, roots, statements, syntax

# Whoever imports the package waits for none of these.
LOADED_WHERE_USED = {"arviz", "arviz_plots", "dp_accounting", "formulaic", "matplotlib", "pandas", "polars", "pyarrow"}
# Calls of these at the level of a module would make an array or a program when it is imported.
MAKE_ARRAYS = ("jnp.", "jax.numpy.", "jax.random.", "jax.nn.", "jax.lax.", "jax.device_put", "jax.vmap(")


def run_when_imported(path):
    """The expressions that importing a file evaluates: of functions their decorators and defaults, and no bodies."""
    for statement in statements(syntax(path).body, within_functions=False):
        if isinstance(statement, ast.FunctionDef):
            yield from (*statement.decorator_list, *statement.args.defaults, *statement.args.kw_defaults)
        elif isinstance(statement, ast.Assign | ast.AnnAssign | ast.Expr | ast.Return):
            yield statement.value


def makes_an_array(expression):
    """Tells whether a call that makes arrays stands in the file, outside of a lambda."""
    if isinstance(expression, ast.Lambda) or not isinstance(expression, ast.AST):
        return False
    if isinstance(expression, ast.Call) and ast.unparse(expression).startswith(MAKE_ARRAYS):
        return True
    return any(makes_an_array(part) for part in ast.iter_child_nodes(expression))


def test_importing_a_file_makes_no_array_and_loads_nothing_large(tmp_path):
    offenders = [
        (path.name, ast.unparse(expression))
        for path in MODULES.values()
        for expression in run_when_imported(path)
        if makes_an_array(expression)
    ]
    for name, path in MODULES.items():
        offenders += [(name, other) for other in roots(imports(path, within_functions=False)) & LOADED_WHERE_USED]
    assert not offenders
    wrong = tmp_path / "wrong.py"
    wrong.write_text("def f(x=jnp.ones(3)): ...\nclass A:\n    x = [jnp.zeros(2)]\nf = lambda: jnp.ones(3)\n")
    assert [makes_an_array(expression) for expression in run_when_imported(wrong)] == [True, True, False]


def module_classes():
    for name in MODULES:
        importlib.import_module(name)
    found, waiting = set(), [eqx.Module]
    while waiting:
        waiting += [child for child in waiting.pop().__subclasses__() if child not in found]
        found |= set(waiting)
    return sorted((found_class for found_class in found if found_class.__module__.startswith("kngjax")), key=repr)


def test_every_module_class_is_abstract_or_final():
    """Name and nature say the same, so that a reader knows which one to instantiate."""
    classes, offenders = module_classes(), []
    assert {kng.KNG, kng.Box, kng.QuantileLoss, kng.chains.Exact} <= set(classes)
    for one in classes:
        if one.__name__.lstrip("_").startswith("Abstract"):
            continue
        if one.__abstractmethods__ or getattr(one, "__abstractvars__", ()):
            offenders.append(f"{one.__name__} has abstract parts and is not called Abstract")
        heirs = [other.__name__ for other in classes if one in other.__mro__[1:]]
        if heirs:
            offenders.append(f"{one.__name__} is concrete, and {heirs} inherit from it")
    assert not offenders


def test_the_list_of_public_names_is_true():
    stub = ast.parse((PACKAGE / "__init__.pyi").read_text(encoding="utf-8"))
    assert ast.get_docstring(stub)
    declared = {}
    for statement in [node for node in stub.body if isinstance(node, ast.ImportFrom)]:
        for alias in statement.names:
            assert alias.name == alias.asname, "a re-export repeats its name"
            assert alias.name not in declared
            declared[alias.name] = statement.module
    assert sorted(declared) == sorted(kng.__all__) == dir(kng)
    for name, home in declared.items():
        defined = getattr(kng, name)
        assert getattr(importlib.import_module(f"kngjax.{home}" if home else "kngjax"), name) is defined
        # Each name stands with the file that defines it.
        assert isinstance(defined, types.ModuleType) or defined.__module__ == f"kngjax.{home}"
    with pytest.raises(AttributeError, match="Laplace"):
        _ = kng.Laplace


def run_python(program):
    """Lines that a new process prints."""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return [set(line.split()) for line in done.stdout.splitlines()]


FIRST_NAMES = """
import sys, kngjax
kngjax.__all__
print(*sys.modules)
kngjax.Box; kngjax.QuantileLoss; kngjax.Bounds; kngjax.KNG
print(*sys.modules)
kngjax.sample
from kngjax.releases.release import Release
print(callable(kngjax.release))
import jax
print(len(jax.live_arrays()), jax.config.jax_enable_x64)
"""
EVERY_NAME = """
import sys, numpyro, optax, equinox, jax
before = len(jax.live_arrays())
import kngjax
[getattr(kngjax, name) for name in kngjax.__all__]
print(*sys.modules)
print(len(jax.live_arrays()) - before, jax.config.jax_enable_x64)
import kngjax.sklearn, sklearn
print(kngjax.sklearn is not sklearn, hasattr(sklearn, "clone"))
"""
SLOW_LIBRARIES = {"numpyro", "optax", "arviz", "tqdm", "scipy.optimize", "scipy.sparse", "scipy.special", "scipy.stats"}


def test_importing_loads_what_is_used_and_the_first_names_little_besides_jax_and_equinox():
    imported_alone, first, function_is_seen, made = run_python(FIRST_NAMES)
    assert not {"jax", "arviz", "sklearn", "numpyro", "equinox", "matplotlib", "pandas"} & imported_alone
    assert not SLOW_LIBRARIES & first
    # A submodule that is imported becomes an attribute of its package: a file release.py would hide the function.
    assert function_is_seen == {"True"}
    assert made == {"0", "False"}


@pytest.mark.slow
def test_using_every_public_name_makes_no_array_and_hides_no_library():
    modules, made, told_apart = run_python(EVERY_NAME)
    assert not {"arviz", "sklearn", "matplotlib"} & modules
    assert made == {"0", "False"}
    assert told_apart == {"True"}
