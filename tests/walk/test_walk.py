"""The walk of a new user holds, and goes by every command that the README promises."""

import re
import shlex
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import typer

from ppspeech.cli import app
from tests.fresh import TOP
from tests.walk.step import Step
from tests.walk.steps import README, STAGES
from tests.walk.walk import walk

RECIPES = {path.stem for path in (TOP / "configs").glob("*.yaml")}
EVERY = list(chain.from_iterable(STAGES.values()))


def wanted(command: str) -> set[str]:
    """What of a command line counts: which command it is, its options, and the recipe."""
    words = shlex.split(command.replace("…", ""))
    kept = {word for word in words if re.match(r"--[a-z]|[\w/]+\.py$", word)} - {"--config"}
    kept |= {f"recipe {Path(word).stem}" for word in words if Path(word).stem in RECIPES}
    if words[0] == "ppspeech":
        kept.add(" ".join(words[1 : 3 if words[1:2] in (["filter"], ["music"], ["ledger"]) else 2]))
    return kept


def promised() -> list[str]:
    """The commands of the README's table of what it does."""
    table = README.split("## What it does")[1].split("\n\n")[1]
    spans = [
        span for row in table.splitlines()[2:] for span in re.findall(r"`([^`]+)`", re.split(r"(?<!\\)\|", row)[-2])
    ]
    return [span for span in spans if span.startswith(("ppspeech ", "python "))]


def goes_by(command: str, step: Step) -> bool:
    return not step.python and wanted(command) <= wanted(step.run)


@pytest.mark.parametrize("command", promised())
def test_every_command_of_the_readme_is_a_step(command: str) -> None:
    assert any(goes_by(command, step) for step in EVERY), f"add a step to tests/walk/steps.py: {command}"


def test_the_readme_is_read() -> None:
    assert len(promised()) > 20
    assert not any(goes_by("ppspeech corpus fsdd --louder", step) for step in EVERY)
    named = {command.split()[1] for command in promised() if command.startswith("ppspeech ")}
    commands: Any = typer.main.get_command(app)
    assert named <= set(commands.commands)


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage(stage: str) -> None:
    faults = [f"{outcome.step.name}: {outcome.fault}" for outcome in walk(stage, slow=False) if outcome.fault]
    assert not faults, "\n".join(faults)


@pytest.mark.slow
@pytest.mark.parametrize("stage", [stage for stage, steps in STAGES.items() if any(step.slow for step in steps)])
def test_the_long_steps_of_a_stage(stage: str) -> None:
    faults = [f"{outcome.step.name}: {outcome.fault}" for outcome in walk(stage, slow=True) if outcome.fault]
    assert not faults, "\n".join(faults)
