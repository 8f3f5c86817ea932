"""Wake words hidden in 13 minutes of read speech, and keywords of units in sentences: in the clear and encrypted.

Needs the corpora wakewords, librispeech and audiomnist; --quick takes about 60 s.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ppspeech.arrays import Reals, Residues
from ppspeech.audio import Mfcc, MfccConfig, read_audio
from ppspeech.channel import Channel
from ppspeech.crypto.shares import ShareEngine
from ppspeech.data import Utterance, load_corpus
from ppspeech.evidence.experiments import EXPERIMENTS
from ppspeech.evidence.spelled import encrypted, run_spelled
from ppspeech.figures import Figure
from ppspeech.models import (
    GaussianEmission,
    GaussianMixture,
    HiddenMarkovModel,
    Prior,
    baum_welch,
    fit_mixture,
    flat_start_,
    left_right,
)
from ppspeech.models.decoding import Chain, Segments, best_of_blocks, best_segments, in_blocks, within_radius
from ppspeech.network import run_together
from ppspeech.progress import track
from ppspeech.protocols import meet_as_client, meet_as_server
from ppspeech.protocols.search import Keywords, Recordings, SpotShape, encode, share_segments, spotting_cost
from ppspeech.service import clear_segments, in_the_clear, index_recordings, sought

RATE, EVERY, STATES = 16_000, 3, 12
FRONT_END = replace(MfccConfig.wideband(), cmvn="none")
FRAME = EVERY * FRONT_END.hop_s
MINUTE = round(60 / FRAME)
TRAINED = 28
"""Clips of a word that its model is trained on; the others are hidden in the recordings."""
DRAWN = 2_000
"""Bootstrap samples of recordings that an interval comes from."""
SHAPE = SpotShape(
    frames=MINUTE, dimensions=39, terms="diagonal", states=(STATES,), block=round(3 / FRAME),
    longest=round(1.5 / FRAME), radius=12.0, scores=(-1_500, -10), garbage=(-90, 20), constant=200, fraction=7,
)  # fmt: skip


@dataclass(frozen=True)
class Hidden:
    """Recordings of a minute with wake words inside: frames, and words with the frames they were put in."""

    frames: tuple[Reals, ...]
    garbage: tuple[Reals, ...]
    truth: tuple[tuple[tuple[int, float, float], ...], ...]
    bank: HiddenMarkovModel


@EXPERIMENTS.register("spotting")
def run(quick: bool, folder: Path) -> list[Figure]:  # noqa: ARG001
    """Train six words on 28 clips each, hide the other clips in LibriSpeech's test-other, and look for every word in
    every recording: whether it is there, by the best segment's score, and where.

    In the clear and under encryption (both parties in this process, their shares put together: outside an experiment
    nobody sees a score). Then the same words by a few examples, as `ppspeech spot` asks, and keywords spelled with
    units in sentences of people never heard (`ppspeech.evidence.spelled`). States and frame rate were compared on these
    recordings, so the figures are optimistic by what a choice among a dozen settings gains.

    `quick`: three recordings instead of all thirteen.
    """
    hidden = hide(3 if quick else None)
    clear = [_clear(hidden, word) for word in range(hidden.bank.models)]
    shares = [_encrypted(hidden, word) for word in track(range(hidden.bank.models), "Encrypted")]
    said = torch.tensor([[any(w == word for w, *_ in marks) for marks in hidden.truth] for word in range(len(clear))])
    same = sum(
        int(((one.start == other.start) & (one.end == other.end)).sum())
        for one, other in zip(clear, shares, strict=True)
    )
    error = max(float((one.score - other.score).abs().max()) for one, other in zip(clear, shares, strict=True))
    pairs, minutes = said.numel(), len(hidden.frames)
    note = (
        f"{minutes} recordings of a minute, {said.numel()} pairs of a recording and a word, {int(said.sum())} present"
    )
    shape = replace(SHAPE, recordings=minutes)
    bytes_of_one = (shape.product.total_bytes + spotting_cost(shape).total_bytes) / minutes
    sizes = f"{shape.bits} bits, {shape.fraction} after the point; {shape.blocks} blocks of {shape.window} frames"
    located, present = _located(shares, hidden), int(said.sum())
    return [
        _area("spotting.auc", shares, said, note, "in the clear", auc(_scores(clear), said.numpy())),
        Figure.count(
            "spotting.located", located, present, "pairs", "", "in the clear", _located(clear, hidden), note=note
        ),
        Figure.count("spotting.same_segments", same, pairs, "pairs", note="the best segment to the frame"),
        Figure("spotting.max_error_nat", error, "nat", note="of best segments' scores"),
        Figure("spotting.bytes_a_minute", bytes_of_one, "B", note=f"one keyword, payload of all phases; {sizes}"),
        Figure("spotting.rounds", 1 + spotting_cost(shape).rounds, note="round trips online, however many recordings"),
        *run_examples(quick),
        *run_spelled(quick),
    ]


def run_examples(quick: bool) -> list[Figure]:
    """The same words by one, five or all 28 examples, as `ppspeech spot` asks an archive without a bundle: how well the
    best segment tells whether it is there, in the clear, and whether a client is told what the clear says, at the
    threshold that is usual. How examples are shrunk was chosen among a dozen ways on these very recordings: optimistic.
    """
    speech, words = load_corpus("librispeech"), load_corpus("wakewords")
    clips = [[_trim(_read(u)).astype(np.float32) for u in words if u.word == word] for word in words.words]
    mixed = list(_mixed(speech.select(lambda u: u.subset == "test").utterances, [list(takes) for takes in clips]))
    mixed = mixed[: 3 if quick else None]
    recorded = {str(n): waveform.astype(np.float32) for n, (waveform, _) in enumerate(mixed)}
    archive = index_recordings(recorded, rate=RATE, piece_s=90.0)
    figures = []
    for takes in (5,) if quick else (1, 5, TRAINED):
        found, said, same = [], [], 0
        for word, examples in enumerate(clips):
            keyword = sought(archive.terms, list(examples[:takes]), RATE).keywords
            recordings = archive.recordings(keyword.shape)
            found += clear_segments(keyword, recordings)
            said.append([any(w == word for w, *_ in marks) for _, marks in mixed])
            told, clear = encrypted(keyword, recordings)[0], in_the_clear(keyword, recordings)[0]
            same += sum(one == other for one, other in zip(told, clear, strict=True))
        name, pairs = f"spotting.examples{takes}", len(clips) * len(mixed)
        note = f"{takes} example{'s' * (takes > 1)} of other people; {pairs} pairs"
        alike = "told as in the clear, to the frame"
        figures += [
            _area(f"{name}.auc", found, torch.tensor(said), note),
            Figure.count(f"{name}.equal", same, pairs, "pairs", "", "pairs", pairs, note=alike),
        ]
    return figures


def hide(most: int | None = None) -> Hidden:
    """The recordings, and models of the words; the same every time."""
    speech, words = load_corpus("librispeech"), load_corpus("wakewords")
    mfcc = Mfcc(FRONT_END)

    def heard(waveform: Reals) -> Tensor:
        frames: Tensor = mfcc(torch.as_tensor(waveform, dtype=torch.float32)[None]).features[0].double()
        return frames

    background = torch.cat([heard(_read(u)) for u in speech if u.subset == "train"])
    mean, deviation = background.mean(0), background.std(0)

    def frames_of(waveform: Reals) -> Tensor:
        return within_radius((heard(waveform) - mean) / deviation, SHAPE.radius)

    garbage = fit_mixture(within_radius((background - mean) / deviation, SHAPE.radius)[::EVERY].float(), 32)
    clips = {word: [_trim(_read(u)) for u in words if u.word == word] for word in words.words}
    bank = _train([[frames_of(clip) for clip in clips[word][:TRAINED]] for word in words.words])
    recorded: list[Tensor] = []
    truth: list[tuple[tuple[int, float, float], ...]] = []
    for waveform, marks in _mixed(speech.select(lambda u: u.subset == "test").utterances, list(clips.values())):
        if most is None or len(recorded) < most:
            recorded.append(frames_of(waveform)[: EVERY * MINUTE : EVERY])
            truth.append(tuple((w, begin / (RATE * FRAME), end / (RATE * FRAME)) for w, begin, end in marks))
    return Hidden(
        tuple(each.numpy() for each in recorded), tuple(_log(garbage, each) for each in recorded), tuple(truth), bank
    )


def _mixed(
    speech: tuple[Utterance, ...], clips: list[list[Reals]]
) -> Iterator[tuple[Reals, list[tuple[int, int, int]]]]:
    """About a minute of read sentences each, up to six of them cut open for a word; and where the words are."""
    rng = np.random.default_rng(0)
    sentences = [_read(u) for u in sorted(speech, key=lambda u: str(u.path))]
    order = [sentences[at] for at in rng.permutation(len(sentences))]
    left = [(word, clip) for word, takes in enumerate(clips) for clip in takes[TRAINED:]]
    left = [left[at] for at in rng.permutation(len(left))]
    while left and order:
        parts: list[Reals] = []
        marks: list[tuple[int, int, int]] = []
        length = 0
        while length < 60 * RATE and order:
            sentence = order.pop(0)
            if left and len(marks) < 6 and rng.random() < 0.9:
                word, clip = left.pop()
                cut = int(rng.integers(0, len(sentence)))
                parts += [sentence[:cut], clip, sentence[cut:]]
                marks.append((word, length + cut, length + cut + len(clip)))
                length += len(clip)
            else:
                parts.append(sentence)
            length += len(sentence)
        yield np.concatenate(parts), marks


def _read(utterance: Utterance) -> Reals:
    waveform = np.asarray(read_audio(utterance.path))
    return np.asarray(waveform / np.abs(waveform).max())


def _trim(waveform: Reals) -> Reals:
    """Without what is more than 24 dB below the loudest, 25 ms around apart."""
    around = RATE // 40
    energy = np.convolve(waveform**2, np.ones(around) / around, "same")
    loud = np.flatnonzero(energy > 0.004 * energy.max())
    return waveform[max(0, loud[0] - around) : loud[-1] + around]


def _train(clips: list[list[Tensor]]) -> HiddenMarkovModel:
    """Words from every third frame of their clips, beginning with each of the first three."""
    parts = [(w, clip[at::EVERY].float()) for w, takes in enumerate(clips) for clip in takes for at in range(EVERY)]
    features = pad_sequence([frames for _, frames in parts], batch_first=True)
    lengths, said = torch.tensor([len(frames) for _, frames in parts]), torch.tensor([word for word, _ in parts])
    emission = GaussianEmission(len(clips), STATES, features.shape[-1], covariance="diagonal", floor=5e-2)
    bank, prior = HiddenMarkovModel(left_right(STATES, must_finish=True), emission), Prior(covariance=30.0)
    flat_start_(bank, features, lengths, said, prior)
    baum_welch(bank, features, lengths, said, 8, prior)
    return bank


@torch.no_grad()
def _log(garbage: GaussianMixture, frames: Tensor) -> Reals:
    return np.asarray(garbage.joint(frames.float()).logsumexp(-1).double().numpy())


@torch.no_grad()
def keyword_of(bank: HiddenMarkovModel, word: int, shape: SpotShape, threshold: float = 0.0) -> Keywords:
    """A word of a bank as what is looked for: ln b of its states is linear in the monomials of a frame."""
    chain, gaussians = Chain.of_bank(bank, word), cast("GaussianEmission", bank.emission).gaussians
    mean, variances = gaussians.mean[word].double(), gaussians.variances()[word].double()
    given = mean.numpy()[None], variances.numpy()[None], chain.stays.numpy()[None]
    return Keywords.of_gaussians(shape, *given, np.array([chain.constant]), np.array([threshold]))


@torch.no_grad()
def _clear(hidden: Hidden, word: int) -> Segments:
    shape, chain = SHAPE, Chain.of_bank(hidden.bank, word)
    found = []
    for frames, garbage in zip(hidden.frames, hidden.garbage, strict=True):
        scores = hidden.bank.emission.log_likelihood(torch.tensor(frames)[None].float(), word)[0].double()
        ratios = chain.ratios(scores, torch.tensor(np.clip(garbage, *shape.garbage)))
        found.append(best_of_blocks(best_segments(in_blocks(ratios, shape.block, shape.longest)), shape.block))
    score = torch.stack([each.score for each in found]) + chain.constant
    return Segments(score, torch.stack([each.starts for each in found]), torch.stack([each.end for each in found]))


def _encrypted(hidden: Hidden, word: int) -> Segments:
    """What both parties' shares of the best segments add up to."""
    shape = replace(SHAPE, recordings=len(hidden.frames))
    keyword = keyword_of(hidden.bank, word, shape)
    recordings = Recordings(shape, hidden.frames, hidden.garbage)

    def seek(channel: Channel) -> tuple[Residues, Residues]:
        met = meet_as_client(channel)
        with met.session():
            engine = ShareEngine(channel, met.setup, spotting_cost(shape))
            return share_segments(engine, met.multiply(shape.product, keyword.rows), keyword)

    def hold(channel: Channel) -> tuple[Residues, Residues]:
        met = meet_as_server(channel)
        with met.session():
            engine = ShareEngine(channel, met.setup, spotting_cost(shape))
            return share_segments(engine, met.multiply(shape.product, encode(recordings)), recordings)

    (score, load), (other, rest) = run_together(seek, hold)
    total = shape.scale.decode(shape.scale.ring.to_signed(shape.scale.ring.join(score, other)))
    numbers = (load ^ rest).astype(np.int64)
    time = (1 << shape.times) - 1
    block = shape.block * (numbers >> (2 * shape.times))
    return Segments(
        torch.tensor(total + keyword.constants[0]),
        torch.tensor(block + (numbers & time))[:, None],
        torch.tensor(block + ((numbers >> shape.times) & time)),
    )


def _area(
    metric: str, found: list[Segments], said: Tensor, note: str, peer: str | None = None, beside: float | None = None
) -> Figure:
    scores, truth = _scores(found), said.numpy()
    over = f"{note}; interval by bootstrap over recordings"
    return Figure(metric, auc(scores, truth), "", peer, beside, note=over).between(*auc_interval(scores, truth))


def _scores(found: list[Segments]) -> Reals:
    """Of best segments, `(words, recordings)`."""
    return np.asarray(torch.stack([each.score for each in found]).double().numpy())


def auc(scores: Reals, said: NDArray[np.bool_]) -> float:
    """How often a pair where the word is said scores above one where it is not; of equals a half."""
    apart = scores[said][:, None] - scores[~said][None]
    return float((apart > 0).mean() + (apart == 0).mean() / 2)


def auc_interval(scores: Reals, said: NDArray[np.bool_]) -> tuple[float, float]:
    """Of 95 %, by drawing recordings again and again; a draw in which all is said, or nothing, says nothing."""
    rng, count = np.random.default_rng(0), said.shape[1]
    drawn = (rng.integers(0, count, count) for _ in range(DRAWN))
    found = [auc(scores[:, at], said[:, at]) for at in drawn if 0 < said[:, at].sum() < said.size]
    low, high = np.quantile(found, (0.025, 0.975))
    return float(low), float(high)


def _located(found: list[Segments], hidden: Hidden) -> int:
    """Pairs where the word is said and the segment covers more than half of it."""
    right = 0
    for word, segments in enumerate(found):
        for place, marks in enumerate(hidden.truth):
            begin, end = int(segments.start[place]), int(segments.end[place])
            right += any(w == word and min(end, b) - max(begin, a) > (b - a) / 2 for w, a, b in marks)
    return right
