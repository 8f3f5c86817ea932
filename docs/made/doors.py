"""`{door}`: everything that a package offers, in its `__all__`, and nothing else."""

import ast
import importlib
import inspect
import re
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.nodes import make_refnode

from made.markdown import Written, plain, table

COLON = "\ue000"
"""Stands for a colon in the first line of a property, where napoleon would take what is before it for a type."""

PAGES = Path(__file__).parents[1] / "reference" / "api"


@cache
def doors() -> dict[str, Path]:
    """The packages that have a page, with it: a page says which door it is of."""
    found = {page: re.search(r"^```\{door\} (\S+)$", page.read_text(), re.MULTILINE) for page in PAGES.glob("*.md")}
    return {door[1]: page for page, door in sorted(found.items()) if door}


class Door(Written):
    """A package's docstring, a table of what it offers, then each thing."""

    required_arguments = 1

    def text(self) -> str:
        """The page of a door."""
        door = self.arguments[0]
        names = offered(door)
        rows = [[f"{{py:obj}}`{name} <{door}.{name}>`", plain(first_sentence(said(door, name)))] for name in names]
        shown = "\n\n".join(entry(door, name) for name in names)
        return f"""
```{{eval-rst}}
.. automodule:: {door}
```

{table(["name", "what it is"], rows)}

```{{eval-rst}}
.. currentmodule:: {door}

{shown}
```
"""


def offered(door: str) -> list[str]:
    """What a door says it offers, in the order of letters."""
    module = importlib.import_module(door)
    return sorted((name for name in module.__all__ if not name.startswith("__")), key=str.lower)


def entry(door: str, name: str) -> str:
    """One thing behind a door: in full, or where it is told in full, if another page is nearer to it."""
    thing = things(door)[name]
    kind = "class" if is_class(thing, name) else "function" if is_function(thing) else "data"
    home = nearest(thing, name, door)
    if home != door:
        return f".. py:{kind}:: {name}\n   :module: {door}\n\n   The same as :py:obj:`{home}.{name}`."
    if kind == "data":
        about = "\n".join(f"   {line}" for line in escape(said(door, name).splitlines()))
        return f".. py:data:: {name}\n   :module: {door}\n\n{about}"
    return f".. auto{kind}:: {door}.{name}" + ("\n   :members:" if kind == "class" else "")


def is_class(thing: Any, name: str) -> bool:
    """Whether it is a class, not a second name for one."""
    return inspect.isclass(thing) and thing.__name__ == name


def is_function(thing: Any) -> bool:
    """Whether it is called, and has a docstring of its own."""
    return inspect.isroutine(thing) or hasattr(thing, "__wrapped__")


def nearest(thing: Any, name: str, door: str) -> str:
    """Of all doors with a page that offer this very thing, the deepest; the one asked for, if it is as deep."""
    same = [each for each in doors() if things(each).get(name, importlib) is thing]
    return max([door, *same], key=lambda each: each.count("."))


@cache
def things(door: str) -> dict[str, Any]:
    """What a door offers, by name."""
    module = importlib.import_module(door)
    return {name: getattr(module, name) for name in offered(door)}


def said(door: str, name: str) -> str:
    """What the source says of a thing: its docstring, or what stands below or beside a constant."""
    thing = things(door)[name]
    if is_class(thing, name) or is_function(thing):
        return inspect.getdoc(thing) or ""
    home = made_in(door, name)
    below = "\n".join(ModuleAnalyzer.for_module(home).find_attr_docs().get(("", name), []))
    return below or assigned(home)[name]


def made_in(door: str, name: str) -> str:
    """The module that assigns a name which doors pass on."""
    source = imported(door).get(name, "")
    return made_in(source, name) if source.startswith("ppspeech") else door


@cache
def imported(module: str) -> dict[str, str]:
    """The names that a module imports from others, with the module that each comes from."""
    tree = ast.parse(Path(inspect.getfile(importlib.import_module(module))).read_text())
    lines = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    return {each.asname or each.name: str(node.module) for node in lines for each in node.names}


@cache
def assigned(module: str) -> dict[str, str]:
    """The names that a module assigns, with the comment beside each, or else the value that it is given."""
    source = Path(inspect.getfile(importlib.import_module(module))).read_text()
    lines, found = source.splitlines(), {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            beside = lines[(node.end_lineno or 1) - 1][node.end_col_offset :].strip().removeprefix("# ")
            for name, value in (pair for target in targets for pair in pairs(target, node.value)):
                found[name] = beside or f"`{ast.unparse(value)}`"
    return found


def pairs(target: ast.expr, value: ast.expr) -> list[tuple[str, ast.expr]]:
    """The names in a target with their values; `a, b = 1, 2` has two."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return [each for one in zip(target.elts, value.elts, strict=True) for each in pairs(*one)]
    return [(each.id, value) for each in ast.walk(target) if isinstance(each, ast.Name)]


def first_sentence(text: str) -> str:
    """Of a docstring, on one line, for a table."""
    paragraph = " ".join(text.partition("\n\n")[0].split())
    end = re.search(r"(?<!e\.g)(?<!i\.e)(?<! al)\. ", paragraph)
    return paragraph[: end.start() + 1] if end else paragraph


def escape(lines: list[str]) -> list[str]:
    r"""Docstrings are plain text, doctests, indented blocks and backticks: bars and stars are those of mathematics.

    >>> escape(["|x| is *large* or `|y|`", ">>> 2 * 3 * 4"])
    ['\\|x\\| is \\*large\\* or `|y|`', '>>> 2 * 3 * 4']
    """
    done: list[str] = []
    doctest, block = False, -1  # in a doctest; how far the line that began an indented block is indented
    for line in lines:
        text, indent = line.strip(), len(line) - len(line.lstrip())
        doctest = text.startswith(">>>") or (doctest and bool(text))
        block = -1 if text and indent <= block else block
        if doctest or block >= 0:
            done.append(line)
            continue
        parts = re.split(r"(`[^`]*`)", line)
        done.append("".join(part if part.startswith("`") else re.sub(r"([|*])", r"\\\1", part) for part in parts))
        block = indent if text.endswith("::") else -1
    return done


def escape_docstring(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Before docstrings are read as markup."""
    del app, name, thing, options
    lines[:] = escape(lines)
    if what in {"attribute", "data", "property"} and lines:
        lines[0] = lines[0].replace(":", COLON)


def restore_colons(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """After napoleon has read a docstring."""
    del app, what, name, thing, options
    lines[:] = [line.replace(COLON, ":") for line in lines]


def skip_generated(app: Sphinx, what: str, name: str, thing: Any, skip: bool, options: Any) -> bool | None:
    """Leave out methods that scikit-learn makes for every estimator."""
    del app, what, skip, options
    return True if name.endswith("_request") and "sklearn" in str(getattr(thing, "__module__", "")) else None


def find_annotated(app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.TextElement) -> Any:
    """Where annotations name a class by the file it is made in, link to the door by which people import it."""
    target = node.get("reftarget", "")
    if node.get("refdomain") != "py" or not target.startswith("ppspeech."):
        return None
    room, name = target.split(".")[1], target.rpartition(".")[2]
    objects = env.domains["py"].data["objects"]
    known = [full for full in objects if full.startswith(f"ppspeech.{room}.") and full.endswith(f".{name}")]
    known = [full for full in known if objects[full].objtype in {"class", "data", "exception"}]
    if not known:
        return None
    full = min(known, key=len)
    return make_refnode(app.builder, node["refdoc"], objects[full].docname, objects[full].node_id, content, full)
