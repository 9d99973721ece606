"""The house rules that a reader relies on: imports go one way, and files are short and say what is in them."""

import ast
import re

from tests.package_syntax import MODULES, PACKAGE, ROOT, imported, imports, roots, syntax

# Each room may import from those before it, and from itself.
ROOMS = (
    "core",
    "accounting",
    "geometry",
    "data",
    "losses",
    "sensitivity",
    "chains",
    "mechanisms",
    "draws",
    "ledger",
    "owner",
    "releases",
    "inference",
    "study",
    "sklearn",
    "audit",
    "command",
)
MOST_ENTRIES = 20
MOST_LINES = 400
# Before the table of arguments: a longer proof is a page in docs/proofs/, which the docstring names.
MOST_LINES_OF_A_DOCSTRING = 33

# These still import the top of the package, which stands above every room. The list may shrink and must not grow.
IMPORT_THE_TOP = {
    "releases": "release",
    "study": "analyses analysis_previews carrying_out column_estimates expectations grouping groups "
    "analysis_intervals public_facts quantile_processes regressions results study survey_weights "
    "synthesis.comparisons synthesis.parts synthesis.plans synthesis.synthetic_tables views.groups_view "
    "views.table_view",
    "sklearn": "base named_tables private_search",
    "command": "named_parts",
}
NOT_FOR_THE_PACKAGE = {"unittest", "pytest", "hypothesis", "tests", "audits"}
EXPERIMENTS = sorted((ROOT / "experiments").rglob("*.py"))
AUDITS = sorted((ROOT / "audits").rglob("*.py"))
SITE = [ROOT / "docs" / "conf.py", *sorted((ROOT / "docs" / "_generate").rglob("*.py"))]


def room(name):
    """The room of a module: "losses" for kngjax.losses.base, and "" for the top of the package."""
    return name.split(".")[1] if "." in name else ""


def of_rooms(*rooms):
    return [name for name in MODULES if room(name) in rooms]


def test_the_top_of_the_package_is_its_rooms():
    entries = {path.name for path in PACKAGE.iterdir() if path.name != "__pycache__"}
    assert entries == {*ROOMS, "__init__.py", "__init__.pyi", "py.typed"}
    assert len(entries) <= MOST_ENTRIES
    private = [path for path in PACKAGE.rglob("_*.py") if path.name != "__init__.py"]
    assert not private, f"a file's name says what is in it: {private}"


def test_accounting_and_ledgers_are_plain_python():
    heavy = {"jax", "jaxlib", "jaxtyping", "equinox", "numpyro", "optax"}
    offenders = [name for name in of_rooms("accounting", "ledger") if roots(imported(name)) & heavy]
    assert not offenders


def test_who_asks_a_loss_names_none():
    """A new loss is served without a line in these rooms; mechanisms name the losses that they are made of."""
    offenders = [
        (name, other)
        for name in of_rooms("sensitivity", "chains", "owner")
        for other in imported(name)
        if other.startswith("kngjax.losses") and other != "kngjax.losses.base"
    ]
    assert not offenders


def test_experiments_use_the_public_face():
    stub = ast.parse((PACKAGE / "__init__.pyi").read_text(encoding="utf-8"))
    public = {"kngjax", "kngjax.data"}
    for node in [node for node in stub.body if isinstance(node, ast.ImportFrom)]:
        home = f"kngjax.{node.module}" if node.module else "kngjax"
        public |= {"kngjax.owner.nonprivate", "kngjax.owner.per_instance"} if node.module is None else set()
        public |= {"kngjax.owner.nonprivate", "kngjax.owner.per_instance"} if node.module is None else set()
        public |= {name if (name := f"{home}.{alias.name}") in MODULES else home for alias in node.names}
    offenders = [
        (path.name, other)
        for path in EXPERIMENTS
        for other in imports(path)
        if other.split(".")[0] == "kngjax" and other not in public
    ]
    assert not offenders


def test_imports_go_one_way():
    offenders = [
        f"{name} imports {other}"
        for name in MODULES
        for other in imported(name)
        if room(name) and other.startswith("kngjax.") and room(other) not in ROOMS[: ROOMS.index(room(name)) + 1]
    ]
    assert not offenders


def test_no_other_module_imports_the_top_of_the_package():
    known = {f"kngjax.{where}.{file}" for where, files in IMPORT_THE_TOP.items() for file in files.split()}
    offenders = {name for name in MODULES if room(name) and "kngjax" in imported(name)}
    assert not offenders - known, "these import upwards: name the module that defines what they need"
    assert not known - offenders, "these are mended: take them off the list"


def test_no_import_goes_in_a_circle():
    waiting = {name: imported(name) & MODULES.keys() for name in MODULES}
    while waiting:
        free = [name for name, others in waiting.items() if not others & (waiting.keys() - {name})]
        assert free, f"a circle among {sorted(waiting)}"
        for name in free:
            del waiting[name]


def test_nothing_imports_what_only_tests_or_another_room_need():
    offenders = [
        (name, other)
        for name in MODULES
        for other in roots(imported(name))
        if other in NOT_FOR_THE_PACKAGE or (other == "sklearn" and room(name) != "sklearn")
    ]
    assert not offenders


def test_audits_import_no_tests():
    assert not [path.name for path in AUDITS if roots(imports(path)) & {"tests", "pytest"}]


def is_overload(node: ast.FunctionDef | ast.ClassDef) -> bool:
    """Whether this is a signature without a body of its own."""
    return any(isinstance(name, ast.Name) and name.id == "overload" for name in node.decorator_list)


def test_files_are_short_and_documented():
    offenders = []
    for path in [*EXPERIMENTS, *AUDITS, *SITE, *MODULES.values()]:
        named, tree = path.relative_to(ROOT).as_posix(), syntax(path)
        if len(path.read_text(encoding="utf-8").splitlines()) > MOST_LINES:
            offenders.append(f"{named} has more than {MOST_LINES} lines")
        if tree.body and not ast.get_docstring(tree):
            offenders.append(f"{named} has no docstring")
        definitions = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
        public = [node for node in definitions if not (node.name.startswith("_") or is_overload(node))]
        offenders += [f"{named}: {node.name} has no docstring" for node in public if not ast.get_docstring(node)]
    assert not offenders


def test_long_proofs_are_pages_that_docstrings_name():
    offenders = []
    for path in MODULES.values():
        for node in ast.walk(syntax(path)):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                docstring = ast.get_docstring(node) or ""
                lines = docstring.split("**Arguments")[0].count("\n")
                if lines > MOST_LINES_OF_A_DOCSTRING:
                    name = getattr(node, "name", "the module")
                    offenders.append(f"{path.relative_to(ROOT)}: {name} has {lines} lines")
    assert not offenders, "a proof of more than ten lines goes to docs/proofs/"
    sources = [path.read_text(encoding="utf-8") for path in MODULES.values()]
    named = {name for source in sources for name in re.findall(r"docs/proofs/[\w-]+\.md", source)}
    assert named == {page.relative_to(ROOT).as_posix() for page in (ROOT / "docs" / "proofs").glob("*.md")}
