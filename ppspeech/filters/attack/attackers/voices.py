"""Attackers with the public voice embedding (GE2E, Wan et al. 2018), which has heard many thousands of people.

Each learns from mel frames, as `ppspeech.audio.embeddings.VoiceEmbedding.frames` gives them. The embedding was trained
by others, on speech that no filter changed; `voice_tuned` goes on with that training on what the filter gives.
"""

import copy
import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from ppspeech.audio import Frames
from ppspeech.audio.embeddings import VoiceEmbedding
from ppspeech.filters.attack.attackers.attacker import VOICE_ATTACKERS, Scorer
from ppspeech.filters.attack.attackers.vectors import logistic
from ppspeech.filters.attack.heard import embedding

BLOCK = 64
SHARPNESS = 20.0  # of cosines, as log odds
EPOCHS, MOST_SHOWN, BATCH = 12, 3_000, 32  # clips that are shown while tuning: a minute or two, whatever there is
RATE, PEOPLE_RATE = 2e-4, 5e-3


@VOICE_ATTACKERS.register("voice")
def voice(frames: Frames, labels: Tensor, classes: int, seed: int) -> Scorer[Frames]:  # noqa: ARG001 (no chance)
    """The cosine with each person's mean voice: nothing is trained."""
    return _by_cosine(embedding(), _means(_voices(embedding(), frames), labels, classes))


@VOICE_ATTACKERS.register("voice_logistic")
def voice_logistic(frames: Frames, labels: Tensor, classes: int, seed: int) -> Scorer[Frames]:
    """Multinomial logistic regression on the 256 numbers."""
    score = logistic(_voices(embedding(), frames), labels, classes, seed)
    return lambda asked: score(_voices(embedding(), asked))


@VOICE_ATTACKERS.register("voice_tuned")
def voice_tuned(frames: Frames, labels: Tensor, classes: int, seed: int) -> Scorer[Frames]:
    """All of the embedding's weights tuned to tell the known people apart by cosines, from their mean voices on."""
    network = copy.deepcopy(embedding())
    people = nn.Parameter(_means(_voices(network, frames), labels, classes).float())
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        _tune(network, people, frames, labels)
    network.requires_grad_(False)
    return _by_cosine(network, people.detach().double(), torch.bincount(labels, minlength=classes) > 0)


def _tune(network: VoiceEmbedding, people: nn.Parameter, frames: Frames, labels: Tensor) -> None:
    network.train()
    optimizer = torch.optim.Adam(
        [{"params": network.parameters(), "lr": RATE}, {"params": [people], "lr": PEOPLE_RATE}]
    )
    shown = min(EPOCHS * len(labels), MOST_SHOWN)
    order = torch.cat([torch.randperm(len(labels)) for _ in range(math.ceil(shown / len(labels)))])[:shown]
    steps = torch.split(order, BATCH)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, len(steps))
    for rows in steps:
        voices = network.voices(Frames(frames.features[rows].float(), frames.lengths[rows]))
        loss = functional.cross_entropy(SHARPNESS * voices @ functional.normalize(people, dim=-1).mT, labels[rows])
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(network.parameters(), 3.0)
        optimizer.step()
        schedule.step()
    network.eval()


def _by_cosine(network: VoiceEmbedding, people: Tensor, met: Tensor | None = None) -> Scorer[Frames]:
    known = people.square().sum(-1) > 0 if met is None else met

    def scores(asked: Frames) -> Tensor:
        cosines = _voices(network, asked) @ functional.normalize(people, dim=-1).mT
        return (SHARPNESS * cosines).masked_fill(~known, -2 * SHARPNESS).log_softmax(-1)

    return scores


def _means(voices: Tensor, labels: Tensor, classes: int) -> Tensor:
    """The mean voice of each person, `(classes, 256)`, of length 1; of those without speech, zeros."""
    total = voices.new_zeros(classes, voices.shape[1]).index_add(0, labels, voices)
    return functional.normalize(total, dim=-1)


@torch.no_grad()
def _voices(network: VoiceEmbedding, frames: Frames) -> Tensor:
    parts = zip(torch.split(frames.features, BLOCK), torch.split(frames.lengths, BLOCK), strict=True)
    return torch.cat([network.voices(Frames(each.float(), lengths)) for each, lengths in parts]).double()
