"""What docstrings and annotations mention becomes a link where there is a page, and plain text where there is none."""

import re

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import find_pending_xref_condition

DOCUMENT = re.compile(r"docs/([\w/]+)\.md")


class LinkMentions(SphinxPostTransform):
    """Make `docs/guides/deploy.md`, by which people find a document in the sources, a link to that page."""

    default_priority = 5  # before references are resolved

    def run(self) -> None:
        """Wrap every literal that is the path of a page."""
        for literal in list(self.document.findall(nodes.literal)):
            named = DOCUMENT.fullmatch(literal.astext())
            if named is None or named[1] not in self.env.found_docs or isinstance(literal.parent, nodes.reference):
                continue
            uri = self.app.builder.get_relative_uri(self.env.docname, named[1])
            link = nodes.reference("", "", refuri=uri, internal=True)
            literal.replace_self(link)
            link += literal


class ForgetForeign(SphinxPostTransform):
    """Leave types of other packages as text: Sphinx would compare each with every name that it knows."""

    default_priority = 6

    def run(self) -> None:
        """Replace references from annotations that can have no page here."""
        known = {name.rpartition(".")[2] for name in self.env.domains["py"].data["objects"]}
        for node in list(self.document.findall(pending_xref)):
            if node.get("refdomain") == "py" and node["reftarget"].rpartition(".")[2] not in known:
                shown = find_pending_xref_condition(node, "*")
                node.replace_self(shown.children if shown is not None else node.children)
