"""Wake words hidden in read speech, spotted by boosted patches of their spectrograms, beside the HMM spotter.

Needs the corpora wakewords and librispeech; --quick takes about 50 s.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.svm import LinearSVC

from ppspeech.arrays import Reals, Residues
from ppspeech.audio import Mfcc
from ppspeech.channel import Channel
from ppspeech.crypto.lattice import EncodedWeights
from ppspeech.crypto.shares import ShareEngine
from ppspeech.data import load_corpus
from ppspeech.evidence.experiments import EXPERIMENTS
from ppspeech.evidence.experiments import spotting as hmm
from ppspeech.figures import Figure
from ppspeech.models import PatchDetector, PatchGrid, learn_patches, regions
from ppspeech.network import run_together
from ppspeech.progress import track
from ppspeech.protocols import Meeting, meet_as_client, meet_as_server
from ppspeech.protocols.search import GAINS, Patches, PatchShape, encode_pieces, patches_cost, share_best

GRID = PatchGrid(hmm.FRONT_END.mel_filters, per_bin=12)
CANDIDATES, QUICK_CANDIDATES = 100, 30
"""Patches cut for each bin, of which boosting takes some."""
SHIFTS = (-2, 0, 2)
"""Frames by which a word stands beside the middle of its window, in training."""
WITHOUT = 20
"""Windows without a word, of each speaker of the background."""
HOP = round(hmm.FRAME * hmm.RATE)


@dataclass(frozen=True)
class Heard:
    """Spectrograms of recordings with words inside, which words, and detectors of them."""

    recordings: tuple[Reals, ...]
    said: tuple[frozenset[int], ...]
    detectors: tuple[PatchDetector, ...]
    machines: tuple[LinearSVC, ...]


@EXPERIMENTS.register("patches")
def run(quick: bool, folder: Path) -> list[Figure]:
    """The same words, clips and recordings as `reproduce spotting`, which is run beside it: whether a word is in a
    recording, by the best place's score. In the clear and under encryption (both parties in this process, their shares
    put together: outside an experiment nobody sees a score), and by a support vector machine on the same patches.

    Sizes of patches were compared on these recordings, four settings: 0.945 to 0.970. `quick`: two recordings, and
    fewer patches to choose from.
    """
    heard = hear(2, QUICK_CANDIDATES) if quick else hear()
    words, minutes = len(heard.detectors), len(heard.recordings)
    said = np.array([[word in own for own in heard.said] for word in range(words)])
    clear = [[float(each.scores(r).max()) for r in heard.recordings] for each in heard.detectors]
    machine = [
        [float(svm.decision_function(each.features(r)).max()) for r in heard.recordings]
        for each, svm in zip(heard.detectors, heard.machines, strict=True)
    ]
    shape = PatchShape(
        hmm.MINUTE - GRID.span + 1, GRID.bands * GRID.span, GRID.bins, GRID.step, GRID.window, GRID.per_bin
    )
    shares = encrypted(heard, shape)
    beside = {figure.metric: figure.value for figure in EXPERIMENTS["spotting"](quick, folder)}
    note = f"{minutes} recordings of a minute, {said.size} pairs of a recording and a word, {int(said.sum())} present"
    cost = patches_cost(shape)
    total = shape.product.total_bytes + cost.total_bytes
    same = int(((np.array(shares) >= 0) == (np.array(clear) >= 0)).sum())
    return [
        Figure("patches.auc", _auc(shares, said), "", "HMM spotter, encrypted", beside["spotting.auc"], note=note),
        Figure("patches.clear_auc", _auc(clear, said), note="the same patches and gains, not encrypted"),
        Figure("patches.svm_auc", _auc(machine, said), note="a linear SVM on the same patches' fits, in the clear"),
        Figure("patches.same", same, note=f"of {said.size} pairs, found or not as in the clear"),
        Figure("patches.bytes_a_minute", total, "B", note=f"one word of {GRID.patches} patches, payload of all phases"),
        Figure("patches.rounds", 1 + cost.rounds, note="round trips online"),
    ]


def hear(most: int | None = None, candidates: int = CANDIDATES) -> Heard:
    """Recordings and detectors; the same every time."""
    speech, words = load_corpus("librispeech"), load_corpus("wakewords")
    front_end, rng = Mfcc(hmm.FRONT_END), np.random.default_rng(0)

    def spectrogram(waveform: Reals) -> Reals:
        """Log energies of bands, the mean of three frames each."""
        given = front_end.spectrogram(torch.as_tensor(waveform, dtype=torch.float32)).double().numpy()
        whole = len(given) // hmm.EVERY * hmm.EVERY
        return np.asarray(given[:whole].reshape(-1, hmm.EVERY, given.shape[1]).mean(axis=1))

    background = [hmm._read(each) for each in speech if each.subset == "train"]
    plain = np.concatenate([spectrogram(each) for each in background])
    mean, deviation = plain.mean(axis=0), plain.std(axis=0)

    def normed(waveform: Reals) -> Reals:
        return np.asarray((spectrogram(waveform) - mean) / deviation)

    def window(waveform: Reals, start: int) -> Reals:
        return normed(waveform[start : start + (GRID.frames + 1) * HOP])[: GRID.frames]

    without = []
    for each in map(normed, background):
        starts = rng.integers(0, len(each) - GRID.frames + 1, WITHOUT)
        without += [each[at : at + GRID.frames] for at in starts]
    clips = [[hmm._trim(hmm._read(each)) for each in words if each.word == word] for word in words.words]
    around, talk = GRID.frames * HOP, np.concatenate(background)
    with_word: list[list[Reals]] = []
    for takes in clips:
        own = []
        for clip in takes[: hmm.TRAINED]:
            at = int(rng.integers(around, len(talk) - around))
            sound = np.concatenate((talk[at - around : at], clip, talk[at : at + around]))
            middle = around + len(clip) // 2 - GRID.frames * HOP // 2
            own += [window(sound, middle + shift * HOP) for shift in SHIFTS]
        with_word.append(own)
    detectors, machines = [], []
    for word, own in enumerate(with_word):
        others = without + [each for other, rest in enumerate(with_word) if other != word for each in rest[1::3]]
        detector = learn_patches(own, others, GRID, candidates)
        fits = np.concatenate([detector.features(each) for each in (*own, *others)])
        labels = np.array([1] * len(own) + [0] * len(others))
        detectors.append(detector)
        machines.append(LinearSVC(C=1.0, class_weight="balanced").fit(fits, labels))
    recorded: list[Reals] = []
    said: list[frozenset[int]] = []
    for waveform, marks in hmm._mixed(speech.select(lambda each: each.subset == "test").utterances, clips):
        if most is None or len(recorded) < most:
            recorded.append(normed(waveform)[: hmm.MINUTE])
            said.append(frozenset(word for word, *_ in marks))
    return Heard(tuple(recorded), tuple(said), tuple(detectors), tuple(machines))


def pieces_of(recording: Reals, shape: PatchShape) -> Reals:
    """Of one recording, padded with nothing, `(1, pieces, numbers)`."""
    found = np.zeros((1, shape.pieces, shape.numbers))
    cut = regions(recording, GRID.span)
    found[0, : len(cut)] = cut
    return found


def encrypted(heard: Heard, shape: PatchShape) -> list[list[float]]:
    """By word and recording: what both parties' shares of the best sum add up to, with β, in units of the gains."""
    words = [Patches(shape, each.patches, each.thresholds, each.gains, each.bias) for each in heard.detectors]
    encoded = [encode_pieces(shape, pieces_of(each, shape)) for each in heard.recordings]
    pairs = [(word, place) for word in range(len(words)) for place in range(len(encoded))]

    def seek(channel: Channel) -> list[Residues]:
        met = meet_as_client(channel)
        with met.session():
            return [_half(met, shape, words[word].patches, words[word]) for word, _ in track(pairs, "Encrypted")]

    def hold(channel: Channel) -> list[Residues]:
        met = meet_as_server(channel)
        with met.session():
            return [_half(met, shape, encoded[place], None) for _, place in pairs]

    mine, theirs = run_together(seek, hold)
    found: list[list[float]] = [[] for _ in words]
    for (word, _), one, other in zip(pairs, mine, theirs, strict=True):
        (gains, bias), detector = words[word].whole, heard.detectors[word]
        unit = float(np.abs(gains).sum()) / float(np.abs(detector.gains).sum())
        found[word].append(float(GAINS.to_signed(GAINS.join(one, other))[0] + bias) / unit)
    return found


def _half(met: Meeting, shape: PatchShape, factor: Reals | EncodedWeights, own: Patches | None) -> Residues:
    engine = ShareEngine(met.channel, met.setup, patches_cost(shape))
    return share_best(engine, shape, met.multiply(shape.product, factor), own)


def _auc(found: Sequence[Sequence[float]], said: NDArray[np.bool_]) -> float:
    """How often a pair where the word is said scores above one where it is not."""
    scores = np.array(found)
    return float((scores[said][:, None] > scores[~said][None]).mean())
