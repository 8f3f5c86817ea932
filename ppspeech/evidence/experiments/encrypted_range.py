"""Sounds of any kind under encryption and in the clear: no score leaves the range of its shares, no answer is another.

Words of real people, and what no model has heard: tones, bursts, clipped sweeps, silence with a click, noise, of one,
ten and thirty seconds. A model for streaming (normalized publicly, not over each utterance) takes them as they come, so
that outliers are the largest there are.

Needs the corpus fsdd.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ppspeech.arrays import Reals
from ppspeech.audio import Mfcc, MfccConfig, features_of, in_usual_range
from ppspeech.channel import Channel
from ppspeech.data import Corpus, load_corpus, publicly_normalized, split_official
from ppspeech.evidence.experiments import EXPERIMENTS
from ppspeech.evidence.experiments.fsdd import PLAIN, recognizer_of, train_bank
from ppspeech.evidence.spoken import Spoken
from ppspeech.figures import Figure
from ppspeech.models import HiddenMarkovModel, floored_scores
from ppspeech.network import run_together
from ppspeech.progress import track
from ppspeech.protocols import meet_as_client, meet_as_server
from ppspeech.protocols.scores import WordArrays
from ppspeech.protocols.words import (
    KeywordJob,
    answer,
    answer_garbled,
    encode_models,
    recognize,
    recognize_garbled,
)
from ppspeech.service import Deployment, error_budget, export_words

COUNTS = {1.0: 640, 10.0: 50, 30.0: 10}
"""Made sounds of so many seconds; with the 300 clips of the official test, 1,000."""
QUICK = {1.0: 30, 10.0: 2}
AT_ONCE = 20
FAR = 6.0  # standard deviations of an encrypted score's error: closer than that is a tie

Operation = Literal["forward", "viterbi"]
Way = Literal["frames", "garbled"]
WAYS: tuple[tuple[Operation, Way], ...] = (("forward", "frames"), ("viterbi", "frames"), ("viterbi", "garbled"))
LONGEST_GARBLED = 1_500  # frames: tables of more than ten seconds are half a gigabyte


@dataclass(frozen=True)
class Compared:
    """Clips of one length: by how much each one's word wins in the clear, and whether another one wins encrypted."""

    margins: Reals
    differ: NDArray[np.bool_]
    tie: float


@EXPERIMENTS.register("encrypted-range")
def run(quick: bool, folder: Path) -> list[Figure]:  # noqa: ARG001
    """Recognize 1,000 clips, forward and Viterbi on shares, Viterbi in circuits up to ten seconds, and compare words
    with those in the clear.

    `quick`: 62 clips, a third of the training clips.
    """
    mfcc = publicly_normalized(replace(PLAIN, level="keep", cmvn="none"))
    corpus = load_corpus("fsdd")
    official = split_official(corpus)
    train = official.train.select(lambda u: u.take % 3 == 0) if quick else official.train
    bank = train_bank(Spoken.of(train, mfcc, corpus.words), iterations=5 if quick else 10)
    real = Spoken.of(official.test, mfcc, corpus.words)
    spoken = [x[:length] for x, length in zip(real.features, real.lengths.tolist(), strict=True)]
    spoken = spoken[::10] if quick else spoken
    make = np.random.default_rng(0)
    groups = [
        features_of([*made_sounds(count, seconds, mfcc.sample_rate, make)], Mfcc(mfcc), mfcc.sample_rate)
        for seconds, count in (QUICK if quick else COUNTS).items()
    ]
    groups[0] += spoken
    jobs = [
        (operation, way, clips)
        for (operation, way), clips in product(WAYS, groups)
        if way == "frames" or max(map(len, clips)) <= LONGEST_GARBLED
    ]
    found = [
        compare(bank, corpus, mfcc, clips, operation, way)
        for operation, way, clips in track(jobs, "Encrypted and in the clear")
    ]
    return _figures(found, sum(map(len, groups)))


def _figures(found: list[Compared], clips: int) -> list[Figure]:
    apart = sum(int((each.differ & (each.margins > each.tie)).sum()) for each in found)
    ties = np.concatenate([each.margins[each.differ & (each.margins <= each.tie)] for each in found])
    closest = np.sort(np.concatenate([each.margins[~each.differ] for each in found]))[:3]
    compared = sum(len(each.margins) for each in found)
    limits = sorted({round(each.tie, 2) for each in found})
    note = (
        f"{clips:,} clips, forward and Viterbi on shares, Viterbi in circuits up to ten seconds; "
        f"closest alike: {closest.round(3).tolist()} nat; "
        f"ties are closer than {FAR:g} standard deviations of an encrypted score, {limits} nats"
    )
    return [
        Figure.count("active.range.disagreements", apart, compared, "comparisons", note=note),
        Figure(
            "active.range.ties", len(ties), note=f"other words at margins of {np.sort(ties).round(3).tolist()} nats"
        ),
        Figure("active.range.clips", clips),
    ]


def compare(
    bank: HiddenMarkovModel, corpus: Corpus, mfcc: MfccConfig, clips: list[Tensor], operation: Operation, way: Way
) -> Compared:
    """Words of clips, each `(frames, features)`, as a client is told them, beside those in the clear."""
    longest = max(map(len, clips))
    models = export_words("keyword_hmm", bank, corpus.words, Deployment(frames=longest, operation=operation), mfcc)
    together = max(1, (AT_ONCE if way == "frames" else 4) * 100 // longest)
    sent = [in_usual_range(clip, mfcc) for clip in clips]
    told: list[str | None] = []
    for at in range(0, len(sent), together):
        told += encrypted_words(models, sent[at : at + together], way)
    plain = clear_scores(bank, corpus, mfcc, clips, operation)
    best = plain.topk(2)
    words = [corpus.words[place] for place in best.indices[:, 0].tolist()]
    margins = (best.values[:, 0] - best.values[:, 1]).double().numpy()
    return Compared(margins, np.array(words) != np.array(told), FAR * error_budget(models).score.typical)


def clear_scores(
    bank: HiddenMarkovModel, corpus: Corpus, mfcc: MfccConfig, clips: list[Tensor], operation: Operation
) -> Tensor:
    """Scores in the clear, `(clips, words)`, as a bundle's recognizer gives them; of the best path for Viterbi."""
    recognizer = recognizer_of(bank, corpus.words, mfcc)
    if operation == "forward":
        return recognizer.score(clips)
    with torch.no_grad():
        scores = [
            floored_scores(
                bank, recognizer.clipped(clip[None]), torch.tensor([len(clip)]), recognizer.floor, best_path=True
            )
            for clip in clips
        ]
    return torch.cat(scores)


def encrypted_words(models: WordArrays, clips: list[Reals], way: Way) -> list[str | None]:
    """The words that a client is told, both parties in this process."""
    job = KeywordJob(models.shape, len(clips))
    weights = encode_models(models, len(clips))

    def ask(channel: Channel) -> list[str | None]:
        met = meet_as_client(channel)
        with met.session():
            return recognize_garbled(met, job, clips) if way == "garbled" else recognize(met, job, clips)

    def serve(channel: Channel) -> None:
        met = meet_as_server(channel)
        with met.session():
            (answer_garbled if way == "garbled" else answer)(met, job, models, weights)

    return run_together(ask, serve)[0]


def made_sounds(count: int, seconds: float, rate: int, make: np.random.Generator) -> Iterator[Tensor]:
    """Waveforms that are no speech, of all kinds in turn."""
    samples = int(seconds * rate)
    time = np.arange(samples) / rate
    for number in range(count):
        loud = 10.0 ** make.uniform(-3, 0)
        tone = np.sin(2 * np.pi * make.uniform(50, rate / 2) * time + make.uniform(0, 7))
        gate = np.sin(2 * np.pi * make.uniform(1, 40) * time) > make.uniform(-0.5, 0.9)
        noise = make.normal(size=samples)
        click = np.zeros(samples)
        click[make.integers(samples)] = 1.0
        swept = np.sin(2 * np.pi * (make.uniform(50, 500) + make.uniform(0, 3_000) * time / seconds) * time)
        kinds = {
            "tone": loud * tone,
            "bursts": loud * tone * gate,
            "noise": loud * noise / 4,
            "noise bursts": loud * noise * gate / 4,
            "clipped": np.clip(100 * swept * (1 + gate), -1, 1),
            "square": loud * np.sign(tone),
            "click": click + 1e-4 * noise,
            "silence": 1e-5 * noise,
            "sweep": loud * swept,
            "click in silence": click,
        }
        yield torch.from_numpy([*kinds.values()][number % len(kinds)].clip(-1, 1)).float()
