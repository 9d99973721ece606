"""One compiled program for a whole function, where calling it compiles each of its operations by itself."""

import inspect
import types

import jax


def compiled_functions(module: types.ModuleType) -> types.SimpleNamespace:
    """The functions that a module defines, each under jit; those that are called may take arrays and scalars alone."""
    functions = inspect.getmembers(module, inspect.isfunction)
    own = {name: jax.jit(function) for name, function in functions if function.__module__ == module.__name__}
    return types.SimpleNamespace(**own)
