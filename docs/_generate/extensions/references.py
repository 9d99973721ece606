"""Names in code type lead to their entry of the reference: `KNG`, `kng.release(...)`, `Study.by`."""

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

from docs._generate.links import named_in


class LinkNames(SphinxPostTransform):
    """Makes references of code in texts, before Sphinx resolves references."""

    default_priority = 5

    def run(self, **_: object) -> None:
        """Every literal of the document that is a public name, but for those that lead elsewhere already."""
        known = frozenset(self.env.get_domain("py").objects)  # pyright: ignore[reportAttributeAccessIssue]
        for literal in list(self.document.findall(nodes.literal)):
            inside = (nodes.reference, addnodes.pending_xref, nodes.title, addnodes.desc_signature)
            ancestor, name = literal.parent, named_in(literal.astext(), known)
            while name is not None and ancestor is not None:
                name = None if isinstance(ancestor, inside) else name
                ancestor = ancestor.parent
            if name is not None:
                reference = addnodes.pending_xref(
                    "", refdomain="py", reftype="obj", reftarget=name, refexplicit=True, refwarn=False
                )
                reference["refdoc"] = self.env.current_document.docname
                literal.replace_self(reference)
                reference += literal


def setup(app: Sphinx) -> dict[str, bool]:
    """An extension of Sphinx."""
    app.add_post_transform(LinkNames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
