"""Formulas in TeX as MathML, which every browser shows by itself: no script, no font and no network."""

import latex2mathml.converter
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator


def in_mathml(formula: str, display: str) -> str:
    """A formula in MathML. **Arguments:** `display`: "inline" or "block"."""
    return latex2mathml.converter.convert(formula, display=display)


def _inline(writer: HTML5Translator, node: nodes.math) -> None:
    writer.body.append(in_mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def _block(writer: HTML5Translator, node: nodes.math_block) -> None:
    writer.body.append(f'<div class="math">{in_mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """An extension of Sphinx: `html_math_renderer = "mathml"`."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
