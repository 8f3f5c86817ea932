"""What pages start: which commands, in which folder, for what was asked."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from ppspeech.errors import PpspeechError
from ppspeech.recipes import Recipe, shipped_recipes
from ppspeech.studio.choices import Asked, Places
from ppspeech.studio.jobs import Job, Jobs
from ppspeech.studio.runs import MESSAGES, asked_of, checkpoint_of, keep_figures, new_run, release_name, run_named

UNITS = ("utterance", "speaker")
PROTOCOLS = {
    "train_descent": "one linear model, by gradients that nobody sees alone",
    "train_average": "one linear model, from minimizers that are averaged",
    "eigen": "the principal direction of everyone's rows",
}
"""What is simulated here, on tables."""
MOST_EPSILON = 1000.0


def trainable() -> dict[str, Recipe]:
    """Recipes of `ppspeech train`."""
    return {name: each for name, each in shipped_recipes().items() if not each.is_filter}


def filterable() -> dict[str, Recipe]:
    """Recipes of `ppspeech filter train` that need no file, and have a rho."""
    found = {name: each for name, each in shipped_recipes().items() if each.is_filter}
    return {name: each for name, each in found.items() if "solver: adversarial" not in each.path.read_text("utf-8")}


def serve(jobs: Jobs, places: Places, asked: Any, origins: tuple[str, ...]) -> Job:
    """A server of one bundle for the page Speak; what it hears are frames of the protocol, from the page itself."""
    found = Asked(asked, ("bundle",))
    bundles = places.bundles()
    name = found.one_of("bundle", bundles)
    command = ["serve", str(bundles[name]), "--listen", "127.0.0.1:0", "--web", "127.0.0.1:0", "--insecure"]
    command += [word for origin in origins for word in ("--web-origin", origin)]
    about = {"title": f"the server of {name}", "bundle": name}
    return jobs.start("speak", [command], places.work, about)


def train(jobs: Jobs, places: Places, asked: Any) -> Job:
    """A training: `ppspeech train`, in a folder of its own."""
    found = Asked(asked, ("recipe", "corpus", "epsilon", "unit", "epochs"))
    recipes, corpora = trainable(), places.recordings()
    recipe, corpus = found.one_of("recipe", recipes), found.one_of("corpus", corpora)
    epsilon = found.maybe("epsilon", 0.01, MOST_EPSILON)
    epochs = int(found.number("epochs", 1, 1000, whole=True))
    _refuse_second(jobs, "train")
    command = ["train", recipe, "--data.corpus", corpora[corpus], "--trainer.max_epochs", str(epochs)]
    command += ["--expect", "{}"]  # what the recipe expects holds for the recipe as it is
    plain: dict[str, Any] = {"recipe": recipe, "corpus": corpus, "epsilon": epsilon, "epochs": epochs, "unit": None}
    if epsilon is None:
        command += ["--privacy", "null"]
    else:
        plain["unit"] = found.one_of("unit", UNITS)
        block = {"unit": plain["unit"], "adjacency": "add_remove", "epsilon": epsilon, "delta": 1e-5}
        command += ["--privacy", json.dumps(block)]
    folder = new_run(places.work, "train", plain)
    promise = "without privacy" if epsilon is None else f"at epsilon {epsilon:g}"
    return jobs.start(
        "train", [command], folder, {"title": f"{recipe} on {corpus} {promise}", "run": folder.name} | plain
    )


def export(jobs: Jobs, places: Places, asked: Any) -> Job:
    """A training's checkpoint as a bundle, which is then among the models."""
    found = Asked(asked, ("run", "state"))
    name = asked.get("run")
    folder = run_named(places.work, "train", name if isinstance(name, str) else "")
    plain = asked_of(folder)
    state = found.one_of("state", ("yes", "no"))
    out = places.made / release_name(folder.name, plain)
    if out.exists():
        raise PpspeechError(f"{out.name} is among the models already")
    out.parent.mkdir(exist_ok=True, mode=0o700)
    command = ["export", str(checkpoint_of(folder)), "--out", str(out)]
    command += ["--not-private"] if plain["epsilon"] is None else ["--state-test"] if state == "yes" else []
    return jobs.start("export", [command], folder, {"title": f"the export to {out.name}", "bundle": out.name})


def filter_run(jobs: Jobs, places: Places, asked: Any) -> Job:
    """One point: a filter of this rho is learned, applied and attacked; what comes out is kept."""
    found = Asked(asked, ("recipe", "corpus", "rho"))
    recipes, corpora = filterable(), places.recordings()
    recipe, corpus = found.one_of("recipe", recipes), found.one_of("corpus", corpora)
    rho = found.number("rho", 0.0, 1000.0)
    _refuse_second(jobs, "filter")
    plain = yaml.safe_load(recipes[recipe].path.read_text("utf-8"))
    plain |= {"rho": rho, "expect": {}, "minutes": 0.1}
    if plain.get("corpus") != corpus:
        plain = {name: value for name, value in plain.items() if name not in {"table", "options"}}
        plain["corpus"] = corpora[corpus]
    folder = new_run(places.work, "filter", {"recipe": recipe, "corpus": corpus, "rho": rho})
    (folder / "recipe.yaml").write_text(yaml.safe_dump(plain), "utf-8")
    commands = [
        ["filter", "train", "--config", "recipe.yaml", "--out", "filter", "--json"],
        ["filter", "apply", "filter", plain["corpus"], "--out", "filtered"],
        ["filter", "attack", "filtered", "--filter", "filter", "--minutes", "0.5", "--clips", "1", "--json"],
    ]
    about = {"title": f"{recipe} at rho {rho:g}", "run": folder.name, "rho": rho}
    return jobs.start("filter", commands, folder, about, lambda job: keep_figures(job.folder, job.lines))


def together(jobs: Jobs, places: Places, asked: Any) -> Job:
    """Parties as processes of this machine: `ppspeech simulate`, which tells messages as they go."""
    found = Asked(asked, ("protocol", "table", "parties", "epsilon"))
    protocol, table = found.one_of("protocol", PROTOCOLS), found.one_of("table", places.tables)
    parties = int(found.number("parties", 2, 12, whole=True))
    epsilon = found.number("epsilon", 0.01, MOST_EPSILON)
    _refuse_second(jobs, "together")
    plain = {"protocol": protocol, "table": table, "parties": parties, "epsilon": epsilon}
    folder = new_run(places.work, "together", plain)
    command = ["simulate", protocol, "--parties", str(parties), "--table", table, "--epsilon", f"{epsilon:g}"]
    command += ["--messages", MESSAGES, "--json"]
    return jobs.start("together", [command], folder, {"title": f"{protocol} of {parties} parties"} | plain)


def _refuse_second(jobs: Jobs, kind: str) -> None:
    """Before a folder is made for it."""
    if (running := jobs.running(kind)) is not None:
        raise PpspeechError(f"{running.about['title']} is still going on: wait for it, or stop it")


START: dict[str, Callable[[Jobs, Places, Any], Job]] = {
    "train": train,
    "export": export,
    "filter": filter_run,
    "together": together,
}


def messages_since(folder: Path, place: int) -> tuple[list[Any], int]:
    """Messages between parties from a place in their file on, and the place after them; whole lines alone."""
    path = folder / MESSAGES
    if not path.is_file():
        return [], place
    with path.open("rb") as file:
        file.seek(place)
        data = file.read(2**18)
    whole = data[: data.rfind(b"\n") + 1]
    return [json.loads(line) for line in whole.splitlines()], place + len(whole)
