"""`ppspeech train`: a recipe becomes a trained model, and says where it is and what it promises."""

from typing import Annotated

import typer

from ppspeech.cli.lists import show_list
from ppspeech.errors import ModelError
from ppspeech.recipes import find_recipe, shipped_recipes
from ppspeech.registry import Listed

STAGES = ("fit", "validate", "test", "predict")


def train(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[test|predict] RECIPE [SETTINGS]", show_default=False, help="A name or a file."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Without a recipe: one JSON object each.")] = False,
) -> None:
    """Train a recipe, by name or file; without one, list those that come with ppspeech.

    `ppspeech train RECIPE --data.corpus FOLDER` trains on your own recordings; every setting of a recipe can be given
    so, and `ppspeech train fit --help` lists them all. `--ckpt_path CHECKPOINT` goes on with a run. `test` and
    `predict` before the recipe use a checkpoint on the held-out part.

    Examples: `ppspeech train keyword_hmm`, `ppspeech train keyword_dp --data.corpus my_folder`,
    `ppspeech train mine.yaml --trainer.max_epochs 3`, `ppspeech train predict keyword_hmm --ckpt_path CHECKPOINT`
    """
    if not words:
        _list(as_json)
        return
    arguments = in_full(words)
    from ppspeech.training import run_recipe

    run_recipe(arguments)


def in_full(words: list[str]) -> list[str]:
    """What Lightning's command line takes: a stage, then the recipe as `--config`, then settings.

    >>> in_full(["fit", "--config", "mine.yaml"])
    ['fit', '--config', 'mine.yaml']
    """
    stage, rest = (words[0], words[1:]) if words[0] in STAGES else ("fit", words)
    if not rest or rest[0].startswith("-"):
        return [stage, *rest]
    path = find_recipe(rest[0])
    if path.stem in shipped_recipes() and shipped_recipes()[path.stem].is_filter:
        raise ModelError(f"{path.stem} is a filter's recipe: ppspeech filter train --config {path.stem} --out FOLDER")
    return [stage, "--config", str(path), *rest[1:]]


def _list(as_json: bool) -> None:
    for command, is_filter in (("train", False), ("filter train", True)):
        own = {each.name: each for each in shipped_recipes().values() if each.is_filter == is_filter}
        found = {name: Listed(recipe.summary, recipe.takes) for name, recipe in own.items()}
        show_list(found, as_json=as_json, title=f"recipes of ppspeech {command}", kind=command)
