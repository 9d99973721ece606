"""The code that pages show is Python, and the names and arguments that it takes of kngjax exist; nothing is run."""

import ast
import importlib.util
import inspect

import kngjax as kng
from tests.pages import EXECUTED, programs


class Names:
    """Objects of kngjax that the names of a program stand for, as far as can be told without running it."""

    def __init__(self):
        self.known = {"kng": kng, "kngjax": kng}

    def meaning(self, expression):
        """The module, class or function that an expression names, the class of an object, or None."""
        if isinstance(expression, ast.Name):
            return self.known.get(expression.id)
        of = self.meaning(expression.value) if isinstance(expression, ast.Attribute) else None
        if of is None or expression.attr.endswith("_"):
            return None
        if inspect.isclass(of) and any(expression.attr in vars(kind).get("__annotations__", {}) for kind in of.__mro__):
            return None
        if not hasattr(of, expression.attr):
            raise LookupError(f"{ast.unparse(expression)} does not exist")
        found = getattr(of, expression.attr)
        return found if callable(found) or inspect.ismodule(found) else None

    def learn(self, statement):
        """Notes what an import or an assignment gives a name to."""
        if isinstance(statement, ast.ImportFrom) and statement.module.split(".")[0] == "kngjax":
            module = importlib.import_module(statement.module)
            for alias in statement.names:
                name = f"{statement.module}.{alias.name}"
                if not hasattr(module, alias.name):
                    if not hasattr(module, "__path__") or not importlib.util.find_spec(name):
                        raise LookupError(f"{name} does not exist")
                    importlib.import_module(name)
                self.known[alias.asname or alias.name] = getattr(module, alias.name)
        elif isinstance(statement, ast.Assign):
            made = self.meaning(statement.value.func) if isinstance(statement.value, ast.Call) else None
            for target in [target for target in statement.targets if isinstance(target, ast.Name)]:
                self.known[target.id] = made if inspect.isclass(made) else None

    def check(self, call):
        """Raises LookupError of an argument that what is called does not have."""
        called = self.meaning(call.func)
        taken = inspect.signature(called).parameters if callable(called) else {}
        if not taken or any(one.kind is one.VAR_KEYWORD for one in taken.values()):
            return
        for given in call.keywords:
            if given.arg and given.arg not in taken:
                raise LookupError(f"{ast.unparse(call.func)} has no argument {given.arg}")


def mistakes(page_programs):
    """Names of kngjax in programs, run one after another, that are not there."""
    names = Names()
    for program in page_programs:
        for node in ast.walk(ast.parse(program)):
            try:
                names.learn(node)
                if isinstance(node, ast.Attribute):
                    names.meaning(node)
                if isinstance(node, ast.Call):
                    names.check(node)
            except LookupError as error:
                yield str(error)


def test_the_code_of_pages_names_what_exists():
    shown = {page: programs(page) for page in EXECUTED}
    assert sum(map(len, shown.values())) > 100
    assert not [f"{page.name}: {mistake}" for page in shown for mistake in mistakes(shown[page])]


def test_names_and_arguments_that_do_not_exist_are_found():
    programs = ["from kngjax import Box, Bax\nkng.Boax(1.0)", "it = Box(lower=0.0, lowest=0.0)\nit.contain(1.0)"]
    assert list(mistakes(programs)) == [
        "kngjax.Bax does not exist",
        "kng.Boax does not exist",
        "kng.Boax does not exist",
        "Box has no argument lowest",
        "it.contain does not exist",
        "it.contain does not exist",
    ]
    assert not list(mistakes(["it = kng.Box(-1.0, upper=1.0)\nit.contains([0.0]).any()", "search.best_params_"]))
