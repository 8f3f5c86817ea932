"""`ppspeech train`: a recipe becomes a trained model, and says where it is and what it promises."""

from typing import Annotated

import typer

from ppspeech.errors import ModelError
from ppspeech.recipes import find_recipe, shipped_recipes
from ppspeech.screen import Console

STAGES = ("fit", "validate", "test", "predict")


def train(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[test|predict] RECIPE [SETTINGS]", show_default=False, help="A name or a file."),
    ] = None,
) -> None:
    """Train a recipe, by name or file; without one, list those that come with ppspeech.

    `ppspeech train RECIPE --data.corpus FOLDER` trains on your own recordings; every setting of a recipe can be given
    so, and `ppspeech train fit --help` lists them all. `--ckpt_path CHECKPOINT` goes on with a run. `test` and
    `predict` before the recipe use a checkpoint on the held-out part.

    Examples: `ppspeech train keyword_hmm`, `ppspeech train keyword_dp --data.corpus my_folder`,
    `ppspeech train mine.yaml --trainer.max_epochs 3`, `ppspeech train predict keyword_hmm --ckpt_path CHECKPOINT`
    """
    if not words:
        _list()
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


def _list() -> None:
    console = Console()
    for recipe in shipped_recipes().values():
        command = "filter train --config " if recipe.is_filter else "train "
        console.print(f"ppspeech {command}{recipe.name}", style="bold")
        console.print(f"    {recipe.summary}\n    Takes {recipe.takes}")
