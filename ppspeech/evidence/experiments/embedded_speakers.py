"""Speaker verification by a public network of voices beside a GMM-UBM, in the clear and encrypted.

Fixed in advance. AudioMNIST: people 41-60 are enrolled with takes 0-3 of all ten digits and tried with takes 4-7, the
ten digits of one take (about 6 s) or one digit (0.6 s); 01-40 train the background model (`speakers`). LibriSpeech
test-other: ten people are enrolled with their first three utterances and tried with the other seven, against all ten;
120 others, 4.5 s each, train the background model. The network is used as it comes. Its authors trained it on VoxCeleb
and on LibriSpeech's train-other part: on read English of that kind, but not on these people. Every trial is against
every model.

The encrypted scores are those of the protocol, both parties in one process, their shares added up as no deployed party
can; `hardened` compares codes, exactly as its protocol does. Intervals are of a bootstrap over people; where no trial
is confused it has no width, and the note says what so few people can show.

Needs the corpora audiomnist and librispeech; --quick takes about 40 s.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ppspeech.audio import Frames, MfccConfig, waveform_at
from ppspeech.audio.embeddings import VoiceEmbedding
from ppspeech.channel import Channel
from ppspeech.data import FeatureStore, Utterance, load_corpus
from ppspeech.data.corpora import DIGIT_WORDS, load_audiomnist
from ppspeech.evidence.experiments import EXPERIMENTS, speakers
from ppspeech.evidence.experiments.speakers import (
    BACKGROUND,
    ENROLLMENT,
    FLOOR,
    TRIALS,
    drawn_again,
    normalize,
    padded,
    targets_of,
)
from ppspeech.figures import Figure
from ppspeech.models import SpeakerVerifier, adapt_speakers, equal_error_rate
from ppspeech.models.gaussian import fit_mixture
from ppspeech.network import run_together
from ppspeech.progress import track
from ppspeech.protocols import meet_as_client, meet_as_server
from ppspeech.protocols.scores import LinearColumns, LinearPlan, LinearScorer
from ppspeech.protocols.speakers import HardenedTerms, voice_codes

RATE = 16_000
AT_A_TIME = 16  # voices
CLIPS = 3  # of a person of LibriSpeech, to enroll
SURE = 0.05

Voice = tuple[str, Tensor]
"""Who, and mel frames `(frames, 40)`."""


@dataclass(frozen=True)
class Tried:
    """Directions of people `(people, 256)` and of trials `(trials, 256)`, and which trials are whose."""

    name: str
    known: Tensor
    asked: Tensor
    targets: Tensor


@EXPERIMENTS.register("speakers")
def run(quick: bool, folder: Path) -> list[Figure]:
    """Save the DET curves of the GMM-UBM, `speakers.png`, in `folder`; `quick`: smaller background models."""
    ubm = speakers.run(quick, folder)
    beside = {figure.metric: figure for figure in ubm}
    libri = _libri_ratios(quick)
    network = VoiceEmbedding().requires_grad_(False)
    tried = [*_audiomnist(network, quick), _librispeech(network)]
    ratios = {
        "audiomnist": beside["speakers.ten_digits.llr.eer"],
        "audiomnist.one_digit": beside["speakers.one_digit.llr.eer"],
        "librispeech": libri,
    }
    figures = [figure for each in tried for figure in _figures(each, ratios[each.name])]
    named = {figure.metric: figure for figure in figures}
    own = [named[f"embeddings.speakers.{corpus}.eer"] for corpus in ("audiomnist", "librispeech")]
    other = [named[f"embeddings.speakers.{corpus}.gmm_eer"] for corpus in ("audiomnist", "librispeech")]
    apart = [each for each in figures if each.metric.endswith(".encrypted_difference")]
    worst, worst_other = (max(each, key=lambda figure: figure.value) for each in (own, other))
    return [
        replace(worst, metric="embeddings.speakers.eer"),
        replace(worst_other, metric="embeddings.speakers.gmm_eer"),
        Figure(
            "embeddings.speakers.encrypted_difference",
            max(each.value for each in apart),
            note="the largest of all corpora: encrypted less plain equal error rate",
        ),
        *figures,
        *ubm,
    ]


@torch.no_grad()
def directions(network: VoiceEmbedding, voices: Sequence[Tensor]) -> Tensor:
    """Of voices of different lengths, `(voices, 256)`."""
    order = sorted(range(len(voices)), key=lambda at: len(voices[at]))
    found = torch.empty(len(voices), network.config.size)
    for start in range(0, len(order), AT_A_TIME):
        some = order[start : start + AT_A_TIME]
        found[some] = network.voices(Frames(*padded([voices[at] for at in some])))
    return found


def _heard(network: VoiceEmbedding, utterance: Utterance) -> Tensor:
    """Mel frames of a recording."""
    return network.frames(waveform_at(utterance.path, None, RATE)).features[0]


def _tried(name: str, network: VoiceEmbedding, known: Mapping[str, Tensor], trials: Sequence[Voice]) -> Tried:
    every = directions(network, [*known.values(), *(voice for _, voice in trials)])
    return Tried(name, every[: len(known)], every[len(known) :], targets_of(list(trials), tuple(known)))


@torch.no_grad()
def _audiomnist(network: VoiceEmbedding, quick: bool) -> list[Tried]:
    corpus = load_audiomnist()
    people = corpus.speakers[BACKGROUND:]
    mine = [each for each in corpus if each.speaker in people]
    heard = {(each.speaker, each.take, str(each.word)): _heard(network, each) for each in mine}

    def said(who: str, takes: Sequence[int]) -> Tensor:
        return torch.cat([heard[who, take, word] for take in takes for word in DIGIT_WORDS])

    known = {who: said(who, ENROLLMENT) for who in people}
    words = DIGIT_WORDS[:2] if quick else DIGIT_WORDS
    takes = [(who, said(who, [take])) for who in people for take in TRIALS]
    digits = [(who, heard[who, take, word]) for who in people for take in TRIALS for word in words]
    return [
        _tried("audiomnist", network, known, takes),
        _tried("audiomnist.one_digit", network, known, digits),
    ]


def _test_other() -> dict[str, list[Utterance]]:
    found: dict[str, list[Utterance]] = {}
    for each in load_corpus("librispeech", part="test_other"):
        found.setdefault(each.speaker, []).append(each)
    return found


@torch.no_grad()
def _librispeech(network: VoiceEmbedding) -> Tried:
    people = {who: [_heard(network, each) for each in own] for who, own in _test_other().items()}
    known = {who: torch.cat(own[:CLIPS]) for who, own in people.items()}
    return _tried("librispeech", network, known, [(who, each) for who, own in people.items() for each in own[CLIPS:]])


@torch.no_grad()
def _libri_ratios(quick: bool) -> Figure:
    """The GMM-UBM on LibriSpeech: log-likelihood ratios of the same trials."""
    store = FeatureStore(MfccConfig(cmvn="none"))
    background = store.load(load_corpus("librispeech", part="background").utterances)
    pool = torch.cat([normalize(each) for each in background])
    ubm = fit_mixture(pool, 32 if quick else 64, floor=FLOOR, iterations=8 if quick else 20)
    people = {who: [normalize(each) for each in store.load(own)] for who, own in _test_other().items()}
    models = adapt_speakers(ubm, *padded([torch.cat(own[:CLIPS]) for own in people.values()]))
    trials = [(who, each) for who, own in people.items() for each in own[CLIPS:]]
    scores = SpeakerVerifier(ubm, models)(*padded([each for _, each in trials]))
    targets = targets_of(trials, tuple(people))
    note = f"{len(pool):,} frames of 120 others train {ubm.components} components; log-likelihood ratios"
    return _eer("speakers.librispeech.llr.eer", scores, targets, note)


def _figures(tried: Tried, ratios: Figure) -> list[Figure]:
    """The network beside the background model, plain and encrypted, and by codes."""
    name, known, asked, targets = (
        f"embeddings.speakers.{tried.name}",
        tried.known.double(),
        tried.asked.double(),
        tried.targets,
    )
    cosines, shared = encrypted_cosines(known, asked)
    bits = HardenedTerms.usual(known.shape[1], len(known)).bits
    mine, theirs = (torch.from_numpy(2.0 * voice_codes(each.numpy(), bits) - 1) for each in (asked, known))
    plain = _eer(f"{name}.eer", cosines, targets, "cosines of 256 numbers")
    encrypted = _eer(f"{name}.encrypted_eer", shared, targets, "the sum of both parties' shares")
    difference = abs(encrypted.value - plain.value)
    apart = float((cosines - shared).abs().max())
    better = ratios.value / plain.value if plain.value else None
    return [
        replace(plain, peer="GMM-UBM", peer_value=ratios.value, ratio=better),
        replace(ratios, metric=f"{name}.gmm_eer"),
        encrypted,
        Figure(f"{name}.encrypted_difference", difference, note=f"scores differ by at most {apart:.5f}"),
        _eer(f"{name}.hardened_eer", mine @ theirs.mT, targets, f"codes of {bits} bits"),
    ]


def _eer(metric: str, scores: Tensor, targets: Tensor, note: str) -> Figure:
    rate, people = equal_error_rate(scores, targets), targets.shape[1]
    again = [equal_error_rate(*drawn) for drawn in drawn_again(scores, targets)]
    said = (
        f"{targets.numel():,} trials, {int(targets.sum()):,} of them targets; {note}; interval by bootstrap over people"
    )
    if max(again) == 0:
        said += f": none of {people} is confused, so that fewer than {1 - SURE ** (1 / people):.0%} of people would be"
    low, high = np.quantile(again, [0.025, 0.975])
    return Figure(metric, rate, note=said).between(float(low), float(high))


def encrypted_cosines(known: Tensor, asked: Tensor) -> tuple[Tensor, Tensor]:
    """Cosines, `(trials, people)`: plain, and from both parties' shares."""
    plan = LinearPlan(known.shape[1], len(known), reach=1)
    scorer = LinearScorer.of(plan, LinearColumns.of(known.numpy().T), 0.0)
    rows = [plan.rows(each) for each in asked.numpy()]

    def ask(channel: Channel) -> NDArray[np.uint64]:
        met = meet_as_client(channel)
        return np.stack([met.multiply(plan.product, row)[0] for row in track(rows, "cosines")])

    def answer(channel: Channel) -> NDArray[np.uint64]:
        met = meet_as_server(channel)
        return np.stack([scorer.multiply(met)[0] for _ in rows])

    mine, theirs = run_together(ask, answer)
    joined = plan.scale.decode(plan.ring.to_signed(plan.ring.join(mine, theirs)))
    return asked @ known.mT, torch.from_numpy(joined)
