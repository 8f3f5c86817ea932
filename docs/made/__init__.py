"""What the site writes from the package itself, so that it cannot say anything else: doors, commands, protocols."""

from typing import Any

from sphinx.application import Sphinx

from made.commands import Commands
from made.doors import Door, escape_docstring, find_annotated, restore_colons, skip_generated
from made.mentions import ForgetForeign, LinkMentions
from made.statements import Protocols


def setup(app: Sphinx) -> dict[str, Any]:
    """Enter the directives `door`, `commands` and `protocols`, and links from what docstrings mention."""
    app.add_directive("door", Door)
    app.add_directive("commands", Commands)
    app.add_directive("protocols", Protocols)
    app.add_post_transform(LinkMentions)
    app.add_post_transform(ForgetForeign)
    app.connect("autodoc-process-docstring", escape_docstring, priority=400)  # before napoleon adds markup of its own
    app.connect("autodoc-process-docstring", restore_colons, priority=600)
    app.connect("autodoc-skip-member", skip_generated)
    app.connect("missing-reference", find_annotated)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
