"""Parts of `bundle.md`."""

import dataclasses
from typing import Any, get_type_hints

from ppspeech.audio import MfccConfig
from ppspeech.bundle import (
    BundleConfig,
    KeywordHmmSettings,
    LargeMarginClassifierSettings,
    LargeMarginKeywordSettings,
    MinimaxFilterSettings,
    SentenceHmmSettings,
    SpeakerUbmSettings,
    metrics,
    reader,
    statement,
    strict_json,
)
from ppspeech.bundle import config as configs
from ppspeech.bundle import format as files_of
from ppspeech.bundle.kinds.networks import CtcNetworkSettings, KeywordNetworkSettings
from ppspeech.bundle.model_types import MODEL_TYPES
from ppspeech.bundle.releases import ledger
from ppspeech.models import FrameLayer
from ppspeech.privacy.accounting import accountant
from ppspeech.privacy.accounting.events import EVENTS
from ppspeech.service import archive, patches, songs
from tests.pages.tables import summary, table, written_type

WHAT = {
    files_of.CONFIG: "which model it is, by public choices",
    files_of.WEIGHTS: "its tensors",
    files_of.PRIVACY: "what is promised, to whom, and what is left out",
    files_of.EVENTS: "what happened to the data, to be replayed",
    files_of.METRICS: "how well it does",
    files_of.CARD: "the model card, for people",
    files_of.DIGESTS: "SHA-256 of each of the files above",
    files_of.SIGNATURE: "who vouches for all of them; may be absent",
}


def files() -> str:
    """The files of a bundle."""
    sizes = files_of.SIZES | files_of.MAYBE
    return table(("file", "holds", "bytes, at most"), [(f"`{name}`", WHAT[name], f"{sizes[name]:,}") for name in WHAT])


def types() -> str:
    """Kinds of models and their settings."""
    rows = []
    for kind in MODEL_TYPES.values():
        hints = get_type_hints(kind.settings)
        given = [f"`{each.name}` {written_type(hints[each.name])}" for each in dataclasses.fields(kind.settings)]  # type: ignore[arg-type]
        rows.append((f"`{kind.name}`", ", ".join(kind.uses) or "none", ", ".join(given)))
    return table(("type", "in the clear", "settings"), rows)


def tensors() -> str:
    """Tensors of some kinds, for two labels and three features."""
    mfcc, labels = MfccConfig(cepstra=3, deltas=0), ("no", "yes")
    layers = (FrameLayer(outputs=4, width=3),)
    word: dict[str, Any] = {"states": 5, "components": 1, "floor": 0.01, "skips": 0, "must_finish": False}
    examples: list[tuple[str, Any, tuple[str, ...]]] = [
        ("5 states, full covariance", KeywordHmmSettings(**word, covariance="full"), labels),
        ("2 components, diagonal", KeywordHmmSettings(**word | {"components": 2}, covariance="diagonal"), labels),
        ("5 states", LargeMarginKeywordSettings(states=5, margin=1.0, width=1.0), labels),
        ("word", LargeMarginClassifierSettings(label="word", width=0.5, radius=2.0), labels),
        ("one layer of 4", KeywordNetworkSettings(frames=100, radius=12.0, layers=layers), labels),
        ("one layer of 4", CtcNetworkSettings(radius=12.0, layers=layers), labels),
        (
            "5 states, diagonal",
            SentenceHmmSettings(states=5, covariance="diagonal", floor=0.1, grammar=None, word_penalty=2.0, leave=0.2),
            labels,
        ),
        ("8 components", SpeakerUbmSettings(components=8, covariance="diagonal", floor=0.01, relevance=16.0), ()),
        (
            "linear, 12 to 2",
            MinimaxFilterSettings(
                shape="linear", inputs=12, hidden=0, features=2, level="utterance", keep="word", hide="speaker"
            ),
            (),
        ),
    ]
    rows = []
    for said, settings, named in examples:
        config = BundleConfig(settings, named, mfcc)
        shapes = ", ".join(f"`{name}` {list(shape)}" for name, shape in config.tensors().items())
        rows.append((f"`{config.type}`", said, shapes))
    return table(("type", "settings", "tensors"), rows)


def events() -> str:
    """Types of events and their fields."""
    rows = []
    for name in EVENTS:
        fields = [each.name for each in dataclasses.fields(EVENTS[name])]
        fields = [part for each in fields for part in (("unit", "adjacency") if each == "relation" else (each,))]
        rows.append((f"`{name}`", ", ".join(f"`{field}`" for field in fields), summary(EVENTS[name])))
    return table(("type", "fields", "what it says"), rows)


def formats() -> str:
    """The versions that this code writes and reads."""
    rows = [
        ("`config.json`", configs.FORMAT, "others are refused"),
        (
            "`privacy.json`",
            statement.FORMAT,
            "1 and 2 are refused on loading; `ppspeech export OLD --out NEW` renews them",
        ),
        ("`events.json`", accountant.FORMAT, "others are refused"),
        ("`metrics.json`", metrics.FORMAT, "others are refused"),
        ("a line of a ledger", ledger.FORMAT, "others are refused"),
        (
            "an archive",
            archive.FORMAT,
            f"{archive.OLDER} is read: it has no bands, so no word by patches is found in it",
        ),
        ("an index of songs", songs.FORMAT, "others are refused"),
        ("a word by patches", patches.FORMAT, "others are refused"),
    ]
    return table(("what", "format", "older ones"), rows)


def limits() -> str:
    """Bounds of what is read."""
    rows: list[tuple[str, object]] = [
        ("labels, or columns", f"{configs.MOST_LABELS:,}"),
        ("characters of a label", strict_json.LONGEST_WORD),
        ("characters of another text", f"{strict_json.LONGEST_TEXT:,}"),
        ("a whole number in `config.json`", f"{strict_json.LARGEST_INTEGER:,}"),
        ("lines of caveats, or of assumptions", statement.MOST_LINES),
        ("figures", metrics.MOST_FIGURES),
        ("different events", f"{reader.MOST_EVENTS:,}"),
        ("releases that they count", f"{reader.MOST_RELEASES:,}"),
        ("their Rényi divergence of order 2, in nats", f"{reader.MOST_DIVERGENCE:g}"),
        ("delta", f"{statement.MOST_DELTA:g}"),
        ("relative difference of a stated and a replayed epsilon", f"{statement.TOLERANCE:g}"),
        ("the same for groups", f"{statement.GROUP_TOLERANCE:g}"),
        ("bytes of a ledger", f"{ledger.MOST_BYTES:,}"),
        ("bytes of an archive", f"{archive.LARGEST:,}"),
        ("bytes of a word by patches", f"{patches.LARGEST:,}"),
    ]
    return table(("what", "at most"), rows)
