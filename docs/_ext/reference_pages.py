"""Write the pages that repeat what the code says: the API, the keys of files, and the command line.

They go into docs/reference/generated, which git ignores, when a build begins.
"""

import inspect
import json
import shutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import typer
from docutils import nodes
from sphinx.application import Sphinx

from fieldbo.cli import app as command_line
from fieldbo.mission.schema import json_schema
from fieldbo.vehicles.remote.settings import vehicle_schema

PACKAGES = {
    "fieldbo": "What most programs need",
    "fieldbo.domain": "Where samples can be taken",
    "fieldbo.messages": "Orders and events",
    "fieldbo.costs": "What a move costs",
    "fieldbo.belief": "The Gaussian process and the question",
    "fieldbo.policies": "What picks the next query",
    "fieldbo.world": "What is out there",
    "fieldbo.mission": "World, question, policy and battery",
    "fieldbo.agent": "Ask and tell, and the ledger",
    "fieldbo.vehicles": "What carries orders out",
    "fieldbo.results": "Scores, maps and tables",
    "fieldbo.results.plot": "Pictures",
    "fieldbo.runs": "Run, record, resume",
    "fieldbo.testing": "Contract suites for your own kinds",
    "fieldbo.clock": "Time, and waiting",
    "fieldbo.errors": "Errors",
    "fieldbo.validation": "Checked settings",
}
"""The public packages, in the order of the page that lists them."""


# The API


def public_names(package: str) -> dict[str, Any]:
    """Return the public objects of a package by name."""
    module = import_module(package)
    names = getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == package and not name.isupper()
    ]
    return {name: getattr(module, name) for name in dict.fromkeys(names) if not name.startswith("__")}


def documented_names() -> dict[str, dict[str, str]]:
    """Return the page of every public object: package -> name -> full name where it is documented.

    What the top level exports is documented there, else in its package.
    """
    home: dict[int, str] = {}
    listed: dict[str, dict[str, str]] = {}
    for package in PACKAGES:
        listed[package] = {}
        for name, value in public_names(package).items():
            key = id(value) if inspect.isclass(value) or inspect.isroutine(value) else hash((package, name))
            listed[package][name] = home.setdefault(key, f"{package}.{name}")
    return listed


def write_api(folder: Path) -> None:
    """Write a page for each package, and one for each object."""
    for package, names in documented_names().items():
        own = {name: page for name, page in names.items() if page == f"{package}.{name}"}
        lines = [f"(api-{package})=", f"# {package}", "", f"{PACKAGES[package]}.", ""]
        values = public_names(package)
        groups = {
            "Classes": [n for n in names if inspect.isclass(values[n])],
            "Functions": [n for n in names if inspect.isroutine(values[n])],
        }
        for title, members in groups.items():
            if members:
                lines += [f"## {title}", "", "| | |", "|---|---|"]
                lines += [
                    f"| {{py:obj}}`{n} <{names[n]}>` | {_summary(values[n])} |"
                    for n in sorted(members, key=str.lower)
                ]
                lines += [""]
        rest = sorted(set(names) - {n for members in groups.values() for n in members})
        if rest:
            lines += ["## Values", "", "```{eval-rst}"]
            lines += [line for n in rest for line in (f".. autodata:: {package}.{n}", "   :no-value:", "")]
            lines += ["```", ""]
        lines += ["```{toctree}", ":hidden:", ""]
        lines += [own[n] for members in groups.values() for n in sorted(members, key=str.lower) if n in own]
        lines += ["```", ""]
        (folder / f"{package}.md").write_text("\n".join(lines))
        for name, page in own.items():
            if name not in rest:
                (folder / f"{page}.rst").write_text(object_page(page, values[name]))


def _summary(value: Any) -> str:
    """Return the first paragraph of a docstring, for a cell of a table."""
    return _markdown((inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " "))


def object_page(full_name: str, value: Any) -> str:
    """Return the page of one class or function."""
    title = full_name.rpartition(".")[2]
    lines = [title, "=" * len(title), ""]
    if not inspect.isclass(value):
        return "\n".join([*lines, f".. autofunction:: {full_name}", ""])
    lines += [f".. autoclass:: {full_name}", "   :members:"]
    if not issubclass(value, str | BaseException):
        lines.append("   :inherited-members: ABC, object, BaseModel")
    return "\n".join([*lines, ""])


class Resolver:
    """Find the page of an object that a docstring names by its class, or by the module that defines it."""

    def __init__(self) -> None:
        self.pages = {name: page for names in documented_names().values() for name, page in names.items()}

    def __call__(self, app: Sphinx, env: Any, node: Any, contnode: nodes.Node) -> nodes.Node | None:
        """Return a link to it, or None."""
        if node.get("refdomain") != "py":
            return None
        parts = node["reftarget"].split(".")
        known = next((k for k, part in enumerate(parts) if part in self.pages), None)
        if known is None:
            return None
        page, member = self.pages[parts[known]], ".".join(parts[known + 1 :])
        domain = env.get_domain("py")
        for target in ([f"{page}.{member}"] if member else []) + [page]:
            if target in domain.objects:
                entry = domain.objects[target]
                return _reference(app, node, entry, contnode)
        return None


def _reference(app: Sphinx, node: Any, entry: Any, contnode: nodes.Node) -> nodes.Node:
    from sphinx.util.nodes import make_refnode

    return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, contnode)


# Files


def write_files(folder: Path) -> None:
    """Write the tables of mission, world and vehicle files, from their JSON Schemas."""
    schemas = {
        "mission": (json_schema("mission"), "Mission file"),
        "world": (json_schema("world"), "World file"),
        "vehicle": (vehicle_schema(), "Vehicle file"),
    }
    for name, (schema, title) in schemas.items():
        pages = [f"# {title}", "", INTRODUCTIONS[name], ""]
        pages += ["## Top level", "", *table(schema, schema)]
        for key, value in schema["properties"].items():
            shape = resolved(value, schema)
            items = resolved(shape.get("items", {}), schema)
            shapes = (
                shape.get("oneOf")
                or [s for s in shape.get("anyOf", []) if s.get("type") != "null"]
                or [shape]
            )
            shapes = [resolved(s, schema) for s in shapes]
            if not any("properties" in s for s in [*shapes, items]):
                continue
            pages += [f"## [{key}]", ""]
            for one in shapes:
                kind = one.get("properties", {}).get("kind", {}).get("const")
                if kind:
                    pages += [f"({name}-{key}-{kind})=", f"### {key}: {kind}", ""]
                pages += [*description(one, kind=kind), *table(one, schema)]
        (folder / f"{name}-file.md").write_text("\n".join(pages) + "\n")


INTRODUCTIONS = {
    "mission": "A mission says which world to sample, what to find out, who goes and how they decide. "
    "`fieldbo check FILE` explains one; `fieldbo schema mission` prints the JSON Schema behind this page.",
    "world": "A world is a folder with a `world.toml`: where samples can be taken, what a move costs, how "
    "values are read and, in simulation, the truth. `fieldbo schema world` prints the JSON Schema behind "
    "this page.",
    "vehicle": "A vehicle file says how to reach a robot and what of its reports to believe. "
    "`fieldbo new vehicle` writes one; `fieldbo schema vehicle` prints the JSON Schema behind this page.",
}


def resolved(shape: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Return a shape with its reference followed; its own keys win."""
    while "$ref" in shape:
        shape = {
            **schema["$defs"][shape["$ref"].rpartition("/")[2]],
            **{k: v for k, v in shape.items() if k != "$ref"},
        }
    return shape


def description(shape: dict[str, Any], *, kind: str | None) -> list[str]:
    """Return the first paragraph of what a shape is for."""
    first = shape.get("description", "").split("\n\n")[0].replace("\n", " ")
    return [_markdown(first), ""] if kind and first else []


def table(shape: dict[str, Any], schema: dict[str, Any]) -> list[str]:
    """Return a table of the keys of one shape, and of the tables inside it."""
    if "properties" not in shape:
        return []
    required = shape.get("required", [])
    lines = ["| key | type | default | meaning |", "|---|---|---|---|"]
    inside: list[tuple[str, dict[str, Any]]] = []
    for key, value in shape["properties"].items():
        if key == "kind" and "const" in value:
            continue
        default = "*required*" if key in required else code(value["default"]) if "default" in value else ""
        if isinstance(value.get("default"), dict):
            default = "see below"  # the table has a section of its own
        meaning = resolved(value, schema).get("description", "").split("\n\n")[0].replace("\n", " ")
        lines.append(f"| `{key}` | {kind_of(value, schema)} | {default} | {_markdown(meaning)} |")
        if shape is not schema:
            inside += [(key, part) for part in tables_in(value, schema)]
    lines = lines if len(lines) > 2 else ["No further keys."]
    for key, part in inside:
        several = sum(name == key for name, _ in inside) > 1
        lines += ["", f"{'One form of the' if several else 'The'} `{key}` table:", "", *table(part, schema)]
    return [*lines, ""]


def tables_in(shape: dict[str, Any], schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the shapes of tables that a key may hold."""
    shape = resolved(shape, schema)
    if shape.get("properties"):
        yield shape
    for part in [*shape.get("anyOf", []), *shape.get("oneOf", []), shape.get("items", {})]:
        if part:
            yield from tables_in(part, schema)


def kind_of(shape: dict[str, Any], schema: dict[str, Any]) -> str:
    """Return what a key may hold, in words, bounds included."""
    shape = resolved(shape, schema)
    if "const" in shape:
        return code(shape["const"])
    if "enum" in shape:
        return ", ".join(code(value) for value in shape["enum"])
    if parts := shape.get("anyOf") or shape.get("oneOf"):
        kinds = [kind_of(part, schema) for part in parts if part.get("type") != "null"]
        return " or ".join(dict.fromkeys(kinds))
    kind = str(shape.get("type", "any"))
    if kind == "array":
        parts = shape.get("prefixItems")
        item = kind_of(shape.get("items") or (parts[0] if parts else {}), schema)
        return f"list of {item}"
    words = {"object": "table", "string": "text", "boolean": "true or false"}
    bounds = {"exclusiveMinimum": ">", "minimum": "≥", "exclusiveMaximum": "<", "maximum": "≤"}
    limits = [f"{sign} {shape[name]:g}" for name, sign in bounds.items() if name in shape]
    return words.get(kind, kind) + (f", {' and '.join(limits)}" if limits else "")


def code(value: object) -> str:
    """Return a value as TOML would show it."""
    return "" if value is None else f"`{json.dumps(value)}`"


def _markdown(text: str) -> str:
    """Return a docstring's text for a cell of a Markdown table."""
    return text.replace("``", "`").replace("|", "\\|").replace("<", "&lt;")


# The command line


def write_commands(file: Path) -> None:
    """Write a section for every command."""
    lines = ["# Command line", ""]
    lines += [
        "`fieldbo COMMAND --help` prints the same. Every command exits with 0 when it is done and with 2 "
        "when something needs fixing first; `fieldbo run` lists two codes more.",
        "",
    ]
    lines += commands("fieldbo", typer.main.get_command(command_line))
    file.write_text("\n".join(lines) + "\n")


def commands(path: str, command: Any) -> list[str]:
    """Return the sections of a command and of those below it."""
    below = getattr(command, "commands", {})
    if below:
        return [line for name, each in below.items() for line in commands(f"{path} {name}", each)]
    arguments = [p for p in command.params if not p.opts[0].startswith("-")]
    usage = " ".join([path, *(_usage(p) for p in arguments), "[OPTIONS]"])
    lines = [f"## {path}", "", f"```text\n{usage}\n```", "", _cleaned(command.help), ""]
    for parameter in command.params:
        if getattr(parameter, "hidden", False):
            continue
        names = ", ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])
        if parameter in arguments:
            names = f"`{parameter.metavar or parameter.name.upper()}`"
        elif parameter.metavar and not parameter.is_flag:
            names += f" `{parameter.metavar}`"
        shown = parameter.default not in (None, False, [], ()) and not callable(parameter.default)
        default = f" Default: `{parameter.default}`." if shown else ""
        lines += [names, f": {_cleaned(parameter.help).replace(chr(10), ' ')}{default}", ""]
    if command.epilog:
        lines += [_cleaned(command.epilog), ""]
    return lines


def _usage(argument: Any) -> str:
    name = str(argument.metavar or argument.name.upper())
    return name if argument.required or name.startswith("[") else f"[{name}]"


def _cleaned(text: str | None) -> str:
    return inspect.cleandoc(text or "").replace("\f", "")


def write_pages(app: Sphinx) -> None:
    """Write all of them anew."""
    folder = Path(app.srcdir) / "reference/generated"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for page in (Path(app.srcdir) / "gallery").glob("[0-9]*.rst"):
        if not (Path(app.srcdir).parent / "examples" / page.name).with_suffix(".py").exists():
            page.unlink()  # of an example that has another name now
    write_api(folder)
    write_files(folder)
    write_commands(folder / "cli.md")


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages before any is read."""
    app.connect("builder-inited", write_pages)
    app.connect("missing-reference", Resolver())
    return {"parallel_read_safe": True, "parallel_write_safe": True}
