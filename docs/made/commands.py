"""`{commands}`: every command of the command line, as its `--help` has it."""

import re
from typing import Any

import typer

from made.markdown import Written, plain, table
from ppspeech.cli import app


class Commands(Written):
    """One section a command: usage, what it does, what it takes."""

    def text(self) -> str:
        """All of them, by what people come for, as in `ppspeech --help`."""
        every = typer.main.get_command(app).commands  # type: ignore[attr-defined]
        parts = []
        for panel in dict.fromkeys(command.rich_help_panel for command in every.values()):
            inside = {name: command for name, command in every.items() if command.rich_help_panel == panel}
            shown = (section for name, each in inside.items() for section in sections(each, f"ppspeech {name}"))
            parts += [f"## {panel}", *shown]
        return "\n\n".join(parts)


def sections(command: Any, name: str) -> list[str]:
    """Of a command, or of those in a group."""
    if hasattr(command, "commands"):
        return [each for word, below in command.commands.items() for each in sections(below, f"{name} {word}")]
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option" and each.name != "help"]
    usage = " ".join([name, *(usage_of(each) for each in arguments), *(["[OPTIONS]"] if options else [])])
    parts = [f"### {name.removeprefix('ppspeech ')}", f"```text\n{usage}\n```", described(command.help or "")]
    rows = [[f"`{usage_of(each)}`", plain(each.help)] for each in arguments]
    rows += [[spelled(each), with_default(each)] for each in options]
    if rows:
        parts.append(table(["argument or option", "what it is"], rows))
    return ["\n\n".join(parts)]


def usage_of(argument: Any) -> str:
    """An argument as it stands in a usage line."""
    name = (argument.metavar or argument.name).strip("[]{}.").upper() + ("…" if argument.nargs != 1 else "")
    return name if argument.required else f"[{name}]"


def spelled(option: Any) -> str:
    """How an option is typed."""
    value = "" if option.is_flag else f" {option.metavar or option.opts[0].strip('-').upper()}"
    return ", ".join(f"`{name}{value}`" for name in (*option.opts, *option.secondary_opts))


def with_default(option: Any) -> str:
    """What an option does, and what is taken without it."""
    said = plain(option.help)
    if option.required:
        return f"{said} Required."
    value = option.default
    if option.is_flag or callable(value) or value in (None, "", (), []):
        return said
    return f"{said} Default: `{value}`."


def described(text: str) -> str:
    """Help, with its examples as lines that can be copied."""
    head, mark, examples = re.sub(r"[\x08\f]", "", text).partition("Example")
    if not mark:
        return head.strip()
    lines = [" ".join(each.split()) for each in re.findall(r"`([^`]+)`", examples)]
    rest = re.sub(r"^s?:\s*", "", examples)
    if not lines:
        return f"{head.strip()}\n\n{rest}"
    return f"{head.strip()}\n\n```console\n" + "\n".join(lines) + "\n```"
