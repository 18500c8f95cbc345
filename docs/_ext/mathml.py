"""Render formulas as MathML, which browsers draw without a script or a font from elsewhere."""

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx


def inline(self, node: nodes.math) -> None:
    """Write an inline formula."""
    self.body.append(convert(node.astext()))
    raise nodes.SkipNode


def block(self, node: nodes.math_block) -> None:
    """Write a displayed formula; ``aligned`` breaks it into lines."""
    self.body.append(f'<div class="math-block">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
