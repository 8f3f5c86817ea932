"""Wake words hidden in read speech by patches of their spectrograms, boosted or by an SVM, beside the HMM spotter.

Needs the corpora wakewords and librispeech; --quick takes about 50 s.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Reals, Residues
from ppspeech.audio import Samples
from ppspeech.channel import Channel
from ppspeech.crypto.shares import ShareEngine
from ppspeech.data import load_corpus
from ppspeech.evidence.experiments import EXPERIMENTS
from ppspeech.evidence.experiments import spotting as hmm
from ppspeech.figures import Figure
from ppspeech.models import PatchDetector, PatchGrid, learn_word
from ppspeech.network import run_together
from ppspeech.progress import track
from ppspeech.protocols import meet_as_client, meet_as_server
from ppspeech.protocols.search import (
    Patches,
    PatchShape,
    Rule,
    encode_pieces,
    patches_cost,
    patches_rounds,
    share_best,
)
from ppspeech.service import band_frames, heard_inside, pieces_of

GRID = PatchGrid(hmm.FRONT_END.mel_filters, span=8, per_bin=12)
SHAPE = PatchShape(
    hmm.MINUTE - GRID.span + 1, GRID.bands * GRID.span, GRID.bins, GRID.step, GRID.window, GRID.per_bin, fraction=8
)
RULES: dict[str, Rule] = {"patches": "stumps", "patches.svm": "linear"}
"""By metric."""
CANDIDATES, QUICK_CANDIDATES = 60, 30
"""Patches cut for each bin, of which boosting takes some."""
AGAIN = 1
"""How often the hardest places without a word are shown again."""


@dataclass(frozen=True)
class Heard:
    """Bands of recordings with words inside, which words, and detectors of them by metric."""

    recordings: tuple[Reals, ...]
    said: NDArray[np.bool_]
    detectors: dict[str, tuple[PatchDetector, ...]]


@EXPERIMENTS.register("patches")
def run(quick: bool, folder: Path) -> list[Figure]:  # noqa: ARG001
    """The same words, clips and recordings as `reproduce spotting`: whether a word is in a recording, by the score of
    the best place, or of the HMM's best segment. In the clear and under encryption (both parties in this process, their
    shares put together: outside an experiment nobody sees a score).

    Sizes of patches, how often the hardest places are shown again, and Λ of the support vector machine were chosen
    among a dozen settings on other data: clips 21 to 28 of each word, hidden in speech of half of the background's
    speakers, learned beside the other half. Those of the HMM were compared on these recordings. Intervals of 95 % are
    by bootstrap over recordings. `quick`: two recordings, and fewer patches to choose from.
    """
    most = 2 if quick else None
    heard, hidden = hear(most, QUICK_CANDIDATES if quick else CANDIDATES), hmm.hide(most)
    said, minutes = heard.said, len(heard.recordings)
    note = f"{minutes} recordings of a minute, {said.size} pairs of a recording and a word, {int(said.sum())} present"
    words = range(hidden.bank.models)
    beside = {
        "clear_auc": np.stack([hmm._clear(hidden, word).score.numpy() for word in words]),
        "auc": np.stack([hmm._encrypted(hidden, word).score.numpy() for word in words]),
    }
    figures = _areas("patches.hmm", beside["auc"], beside["clear_auc"], said, note)
    for name, rule in RULES.items():
        shape, own = replace(SHAPE, rule=rule), heard.detectors[name]
        clear = np.array([[float(each.scores(r).max()) for r in heard.recordings] for each in own])
        shares = np.array(encrypted(heard.recordings, own, shape))
        same = int(((shares >= 0) == (clear >= 0)).sum())
        total = shape.product_bytes + patches_cost(shape).total_bytes
        sizes = f"a word of {GRID.patches} patches, payload of all phases"
        figures += [
            *_areas(name, shares, clear, said, note, hmm.auc(beside["auc"], said)),
            Figure.count(f"{name}.same", same, said.size, "pairs", note="found or not as in the clear"),
            Figure(f"{name}.bytes_a_minute", total, "B", note=sizes),
            Figure(f"{name}.rounds", patches_rounds(shape), note="round trips online"),
        ]
    return figures


def _areas(
    name: str, shares: Reals, clear: Reals, said: NDArray[np.bool_], note: str, beside: float | None = None
) -> list[Figure]:
    low, high = hmm.auc_interval(shares, said)
    peer = None if beside is None else "HMM spotter, encrypted"
    over = f"{note}; interval by bootstrap over recordings"
    return [
        Figure(f"{name}.auc", hmm.auc(shares, said), "", peer, beside, note=over).between(low, high),
        Figure(f"{name}.auc_low", low, note="the interval's lower end, by bootstrap over recordings"),
        Figure(f"{name}.auc_high", high, note="its upper end"),
        Figure(f"{name}.clear_auc", hmm.auc(clear, said), note="the same, not encrypted").between(
            *hmm.auc_interval(clear, said)
        ),
    ]


def hear(most: int | None = None, candidates: int = CANDIDATES) -> Heard:
    """Recordings and detectors; the same every time."""
    speech, words = load_corpus("librispeech"), load_corpus("wakewords")
    rng = np.random.default_rng(0)
    background = [_sound(hmm._read(each)) for each in speech if each.subset == "train"]
    clips = [[hmm._trim(hmm._read(each)) for each in words if each.word == word] for word in words.words]
    with_word = [
        [each for clip in takes[: hmm.TRAINED] for each in heard_inside(_sound(clip), background, GRID, rng)]
        for takes in clips
    ]
    quiet = [band_frames(each) for each in background]
    learned = []
    for word, own in enumerate(with_word):
        others = [each for other, rest in enumerate(with_word) if other != word for each in rest[1::3]]
        learned.append(learn_word(own, quiet, GRID, others=others, candidates=candidates, again=AGAIN))
    detectors = {name: tuple(each[rule] for each in learned) for name, rule in RULES.items()}
    mixed = list(hmm._mixed(speech.select(lambda each: each.subset == "test").utterances, clips))[:most]
    recorded = tuple(band_frames(_sound(waveform))[: hmm.MINUTE] for waveform, _ in mixed)
    said = [[any(w == word for w, *_ in marks) for _, marks in mixed] for word in range(len(clips))]
    return Heard(recorded, np.array(said), detectors)


def _sound(waveform: Reals) -> Samples:
    return np.asarray(waveform, np.float32)


def encrypted(recordings: Sequence[Reals], detectors: Sequence[PatchDetector], shape: PatchShape) -> list[list[float]]:
    """By word and recording: what both parties' shares of the best sum add up to, with β, in units of the gains."""
    words = [Patches(shape, each.patches, each.thresholds, each.gains, each.bias) for each in detectors]

    def seek(channel: Channel) -> list[Residues]:
        met, found = meet_as_client(channel), []
        with met.session():
            for _ in track(recordings, "Encrypted"):
                for word in words:
                    engine = ShareEngine(channel, met.setup, patches_cost(shape))
                    found.append(share_best(met, engine, shape, word))
        return found

    def hold(channel: Channel) -> list[Residues]:
        met, found = meet_as_server(channel), []
        with met.session():
            for each in recordings:
                encoded = encode_pieces(shape, pieces_of([each], shape, GRID.span))
                for _ in words:
                    engine = ShareEngine(channel, met.setup, patches_cost(shape))
                    found.append(share_best(met, engine, shape, encoded))
        return found

    ring = shape.sums.ring
    sums = [int(ring.to_signed(ring.join(*halves))[0]) for halves in zip(*run_together(seek, hold), strict=True)]
    scores = np.array(sums).reshape(len(recordings), len(words)).T
    return [
        [float((each + word.bias_steps) / word.steps_a_unit) for each in row]
        for row, word in zip(scores, words, strict=True)
    ]
