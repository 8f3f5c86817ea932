"""FSDD's official test named after the nearest of 120 templates by dynamic time warping, in the clear and encrypted.

Needs the corpus fsdd; --quick takes about 20 s.
"""

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from ppspeech.arrays import Reals
from ppspeech.channel import Channel
from ppspeech.data import FeatureStore, load_corpus, split_official
from ppspeech.evidence.experiments import EXPERIMENTS
from ppspeech.evidence.experiments.fsdd import PLAIN
from ppspeech.figures import Figure
from ppspeech.models.decoding import TemplateRecognizer, resampled
from ppspeech.network import run_together
from ppspeech.protocols import meet_as_client, meet_as_server
from ppspeech.protocols.search import Templates, WarpShape, nearest, read_label, serve_templates, warping_cost

TAKES = (5, 6)
LENGTH, BAND, RADIUS = 24, 5, 11.0


@dataclass(frozen=True)
class Digits:
    """Templates as a recognizer, and clips to be named with what was said."""

    recognizer: TemplateRecognizer
    clips: tuple[torch.Tensor, ...]
    said: tuple[str, ...]


@EXPERIMENTS.register("dtw")
def run(quick: bool, folder: Path) -> list[Figure]:  # noqa: ARG001
    """Two takes of every digit of every speaker are the templates; the speakers of the test are the same.

    Every utterance is resampled to 24 frames. Under encryption both parties run in this process, and the client learns
    labels alone. `quick`: 60 clips instead of 300.
    """
    digits = load_digits(5 if quick else 1)
    clear = [digits.recognizer.recognize(clip) for clip in digits.clips]
    scores = [digits.recognizer.scores(clip).double() for clip in digits.clips]
    shape, own = served(digits.recognizer)
    began = time.perf_counter()
    told = encrypted_labels(own, [resampled(clip, LENGTH).double().numpy() for clip in digits.clips])
    seconds = time.perf_counter() - began
    differ = [at for at, (one, other) in enumerate(zip(told, clear, strict=True)) if one != other]
    margins = [_margin(scores[at], digits.recognizer.labels) for at in differ]
    right = [sum(a == b for a, b in zip(found, digits.said, strict=True)) for found in (told, clear)]
    note = f"{len(told)} clips, {shape.templates} templates of {LENGTH} frames, band {BAND}, {shape.bits} bits"
    cost = warping_cost(shape)
    pace = f"{1e3 * seconds / len(told):.0f} ms a clip, both parties in one process"
    clips, apart = len(told), f"{note}; margins of those that differ: {np.round(margins, 2).tolist()}"
    return [
        Figure.count("dtw.flips", len(differ), clips, "utterances", note=apart),
        Figure.share("dtw.accuracy", right[0], clips, "utterances", "in the clear", right[1] / clips, note=pace),
        Figure("dtw.bytes", shape.product.total_bytes + cost.total_bytes, "B", note="payload a clip, all phases"),
        Figure("dtw.rounds", 1 + cost.rounds, note="round trips online"),
    ]


def load_digits(every: int = 1) -> Digits:
    """The official split, with every so many of the test's clips."""
    split, store = split_official(load_corpus("fsdd")), FeatureStore(PLAIN)
    taught = tuple(u for u in split.train if u.take in TAKES)
    heard = tuple(split.test)[::every]
    recognizer = TemplateRecognizer.of(
        store.load(taught), [str(u.word) for u in taught], length=LENGTH, band=BAND, radius=RADIUS
    )
    return Digits(recognizer, tuple(store.load(heard)), tuple(str(u.word) for u in heard))


def served(recognizer: TemplateRecognizer) -> tuple[WarpShape, Templates]:
    """A recognizer as the server has it."""
    count, length, features = recognizer.templates.shape
    shape = WarpShape(length, features, count, recognizer.band, recognizer.radius)
    return shape, Templates(shape, recognizer.templates.double().numpy(), recognizer.labels)


def encrypted_labels(own: Templates, utterances: list[Reals]) -> list[str | None]:
    """What the client learns of each utterance, in one meeting."""

    def ask(channel: Channel) -> list[str | None]:
        met = meet_as_client(channel)
        with met.session():
            return [read_label(nearest(met, own.shape, each)) for each in utterances]

    def answer(channel: Channel) -> None:
        met, encoded = meet_as_server(channel), own.encoded()
        with met.session():
            for _ in utterances:
                serve_templates(met, own, encoded)

    return run_together(ask, answer)[0]


def _margin(scores: torch.Tensor, labels: tuple[str, ...]) -> float:
    """Between the best template and the best of another label."""
    best = int(scores.argmax())
    others = torch.tensor([label != labels[best] for label in labels])
    return float(scores[best] - scores[others].max())
