"""How Sphinx builds the site of these pages: see CONTRIBUTING.md for the command."""

import gc
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import kngjax  # noqa: E402

# A document is many small objects that live until it is written, and JAX does work of its own at each collection.
gc.set_threshold(50_000, 20, 20)

project = "kngjax"
author = "the authors of kngjax"
copyright = author
version = release = kngjax.__version__

extensions = [
    "myst_nb",
    "sphinx_copybutton",
    "docs._generate.extensions.kept_outputs",
    "docs._generate.extensions.pages",
    "docs._generate.extensions.mathml",
    "docs._generate.extensions.references",
    "docs._generate.extensions.search",
    "docs._generate.extensions.accessible",
]
exclude_patterns = ["_generate", "_static"]

# Headings as hosts of repositories spell them in links.
myst_heading_anchors = 6
myst_enable_extensions = ["colon_fence", "dollarmath"]
# Money is no mathematics.
myst_dmath_allow_digits = False
myst_dmath_allow_space = False

# What cells printed is kept until the package's code, its words apart, or a version of what it computes with changes.
# The extension `kept_outputs` says where.
nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_timeout = 600
nb_merge_streams = True
# What cells write on the standard error stream is a warning of the build, but for what libraries say where no widgets
# are installed, and, as arviz 0.23 does, in the first import of a day.
nb_output_stderr = "warn"
os.environ.setdefault("PYTHONWARNINGS", "ignore:IProgress not found,ignore::FutureWarning:arviz")

html_theme = "sphinx_book_theme"
html_title = "kngjax"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_show_sphinx = False
html_copy_source = False
html_theme_options = {
    # The navigation of all pages is made anew for each; it shows titles, and copies no headings below them.
    "show_navbar_depth": 1,
    "max_navbar_depth": 1,
    "show_toc_level": 2,
    "home_page_in_toc": True,
    # It leads to sources, which the site does not have.
    "use_download_button": False,
}

# Types of signatures are written with their paths, which lead to their entries, and shown without them.
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 90
toc_object_entries = False
# Formulas have primes: X'X.
smartquotes = False
copybutton_exclude = ".linenos, .gp"
