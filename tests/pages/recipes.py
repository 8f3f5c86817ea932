"""Parts of `configs.md`."""

import dataclasses
import inspect
import re
from typing import Any, get_type_hints

import yaml

from ppspeech.audio import MfccConfig
from ppspeech.data import SentenceDataModule, SpeechDataModule
from ppspeech.recipes import Recipe, shipped_recipes
from ppspeech.training import (
    CtcNetwork,
    EmbeddedWords,
    FilterRecipe,
    LargeMarginClassifier,
    PrivacyHook,
    SentenceModels,
    SentenceNetwork,
    SpeakerUbm,
    WordModels,
    WordNetwork,
)
from ppspeech.training.private.hook import SETTINGS
from tests.pages.tables import section, summary, table, written_type

MODELS: tuple[Any, ...] = (
    WordModels,
    WordNetwork,
    SentenceModels,
    SentenceNetwork,
    CtcNetwork,
    LargeMarginClassifier,
    EmbeddedWords,
    SpeakerUbm,
)
DATA: tuple[Any, ...] = (SpeechDataModule, SentenceDataModule)
OF_ALL = "by all ways"


def recipes() -> str:
    """Every shipped recipe: what it trains, with what, and how it is called."""
    return "\n\n".join(_recipe(each) for each in shipped_recipes().values())


def _recipe(recipe: Recipe) -> str:
    plain = yaml.safe_load(recipe.path.read_text(encoding="utf-8"))
    lines = [f"### `{recipe.name}`", "", recipe.summary, "", f"Takes {recipe.takes}", ""]
    head = [line.removeprefix("#") for line in recipe.path.read_text(encoding="utf-8").splitlines() if line[:1] == "#"]
    shown = [line.strip() for line in head if line.startswith("   ppspeech ")]
    lines += ["```console", *(re.sub(r"\s{2,}", "  # ", line) for line in shown), "```", ""]
    if recipe.is_filter:
        return "\n".join([*lines, table(("key", "value"), [(f"`{name}`", _shown(plain[name])) for name in plain])])
    rows = [(f"`expect.{name}`", _shown(value)) for name, value in plain["expect"].items()]
    for part in ("model", "data"):
        rows.append((f"`{part}`", f"`{plain[part]['class_path']}`"))
        rows += [(f"`{part}.{name}`", _shown(value)) for name, value in plain[part]["init_args"].items()]
    rows += [(f"`privacy.{name}`", _shown(value)) for name, value in plain.get("privacy", {}).items()]
    rows += [(f"`trainer.{name}`", _shown(value)) for name, value in plain["trainer"].items() if name != "logger"]
    return "\n".join([*lines, table(("key", "value"), rows)])


def _shown(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], dict) and "class_path" in value[0]:
        return ", ".join(f"`{each['class_path']}`" for each in value)
    said = yaml.safe_dump(value, default_flow_style=True, width=1000, allow_unicode=True).strip()
    said = said.removesuffix("\n...")
    return f"`{said}`" if len(said) <= 160 else f"`{said[:120]}` and so on: see the file"


def privacy() -> str:
    """The keys of the `privacy:` block."""
    ways = {name: way for way, names in SETTINGS.items() for name in names}
    said, parameters = section(PrivacyHook, "Args"), inspect.signature(PrivacyHook).parameters
    rows = [
        (f"`{name}`", _type(PrivacyHook, name), _default(each), ways.get(name, OF_ALL), said[name])
        for name, each in parameters.items()
    ]
    return table(("key", "type", "default", "way", "meaning"), rows)


def classes() -> str:
    """The keys of `model.init_args` and `data.init_args`, class by class."""
    found = []
    for title, kinds in (("model", MODELS), ("data", DATA)):
        for kind in kinds:
            rows = _parameters(kind)
            head = ("key", "type", "default", "meaning")
            found.append(f"### `{title}: {kind.__name__}`\n\n{summary(kind)}\n\n{table(head, rows)}")
    return "\n\n".join(found)


def _parameters(kind: Any) -> list[tuple[str, str, str, str]]:
    said = section(kind, "Args")
    parameters = {
        name: each
        for name, each in inspect.signature(kind).parameters.items()
        if each.kind is not inspect.Parameter.VAR_KEYWORD
    }
    missing = set(parameters) - set(said)
    assert not missing, f"the docstring of {kind.__name__} does not say what {sorted(missing)} are"
    return [(f"`{name}`", _type(kind, name), _default(each), said[name]) for name, each in parameters.items()]


def _type(kind: Any, name: str) -> str:
    return written_type(get_type_hints(kind.__init__)[name])


def _default(parameter: inspect.Parameter) -> str:
    if parameter.default is inspect.Parameter.empty:
        return "needed"
    return _shown(_plain(parameter.default))


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return dict(value) if isinstance(value, dict) else value


def filters() -> str:
    """The keys of a filter's recipe: fields, with the comments beside them."""
    notes: dict[str, str] = {}
    for kind in reversed(FilterRecipe.__mro__[:-1]):
        for line in inspect.getsource(kind).splitlines():
            if found := re.fullmatch(r"    (\w+): [^#]*(?:# (.*))?", line):
                notes[found[1]] = found[2] or ""
    hints, rows = get_type_hints(FilterRecipe), []
    for field in dataclasses.fields(FilterRecipe):
        made = field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default
        default = "needed" if made is dataclasses.MISSING else _shown(_plain(made))
        rows.append((f"`{field.name}`", written_type(hints[field.name]), default, notes[field.name]))
    return table(("key", "type", "default", "meaning"), rows)


def front_end() -> str:
    """The keys of `mfcc`."""
    said, hints = section(MfccConfig, "Attributes"), get_type_hints(MfccConfig)
    rows = [
        (f"`{field.name}`", written_type(hints[field.name]), _shown(_plain(field.default)), said.get(field.name, ""))
        for field in dataclasses.fields(MfccConfig)
    ]
    return table(("key", "type", "default", "meaning"), rows)
