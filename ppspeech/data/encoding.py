"""A public encoder of frames, learned from speech that is nobody's secret: what `encoder` of a front end is.

Frames of joined words are told apart by word and part of the word; the last layer but one has few outputs, which are
then turned and scaled to be uncorrelated, with mean 0 and variance 1. Nothing private is looked at, so the network may
be given to everyone.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from ppspeech.audio import MfccConfig, PublicEncoder, with_neighbors
from ppspeech.data.registry import load_corpus
from ppspeech.data.sentences import Heard, heard_by, joined_sentences
from ppspeech.errors import CorpusError

PARTS = 3  # of a word, told apart
RATE, ROWS = 2e-3, 512  # of Adam; frames a step
NOISE, DROPPED = 0.3, 0.2  # what training adds to features and leaves out of layers: other voices differ from these


def publicly_encoded(
    config: MfccConfig,
    corpora: Sequence[str] = ("synthetic",),
    outputs: int = 24,
    hidden: int = 64,
    reach: int = 3,
    epochs: int = 12,
    sentences: int = 6,
    seed: int = 0,
) -> MfccConfig:
    """The front end with an encoder of its features, learned from corpora of words that are nobody's secret.

    Args:
        outputs: numbers a frame that come out.
        hidden: of both layers before.
        reach: frames on each side that are looked at.
        epochs: over all frames.
        sentences: of every speaker that are listened to.
    """
    if config.encoder is not None:
        raise CorpusError("this front end has an encoder already")
    heard: list[Heard] = []
    for name in corpora:
        heard += heard_by(config, joined_sentences(load_corpus(name), sentences, config.sample_rate, seed=seed))
    frames, labels = _frames(heard, reach)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers = _learned(frames, labels, (hidden, hidden, outputs), epochs)
    return replace(config, encoder=PublicEncoder.of(_whitened(layers, frames), config.features))


def _frames(heard: Sequence[Heard], reach: int) -> tuple[Tensor, Tensor]:
    """All frames beside their neighbors, and which word and part of it each belongs to; pauses are one class."""
    words = sorted({mark.word for each in heard for mark in each.segments if mark.word is not None})
    rows, labels = [], []
    for each in heard:
        rows.append(with_neighbors(each.features.unsqueeze(0), torch.tensor([len(each.features)]), reach)[0])
        own = torch.full((len(each.features),), len(words) * PARTS)
        for mark in each.segments:
            if mark.word is not None:
                size = mark.end - mark.start
                own[mark.start : mark.end] = words.index(mark.word) * PARTS + torch.arange(size) * PARTS // size
        labels.append(own)
    return torch.cat(rows), torch.cat(labels)


def _learned(frames: Tensor, labels: Tensor, widths: tuple[int, ...], epochs: int) -> list[tuple[Tensor, Tensor]]:
    """Layers of the network below its classifier."""
    sizes = (frames.shape[1], *widths, int(labels.max()) + 1)
    layers = [nn.Linear(before, after) for before, after in pairwise(sizes)]
    optimizer = torch.optim.Adam([each for layer in layers for each in layer.parameters()], RATE)
    steps = -(-len(frames) // ROWS)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, max(1, epochs * steps))
    for _ in range(epochs):
        order = torch.randperm(len(frames))
        for rows in (order[at : at + ROWS] for at in range(0, len(order), ROWS)):
            found = frames[rows] + NOISE * torch.randn(len(rows), frames.shape[1])
            for layer in layers[:-2]:
                found = functional.dropout(layer(found).relu(), DROPPED)
            loss = functional.cross_entropy(layers[-1](layers[-2](found)), labels[rows])
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
    return [(layer.weight.detach().double(), layer.bias.detach().double()) for layer in layers[:-1]]


def _whitened(layers: list[tuple[Tensor, Tensor]], frames: Tensor) -> list[tuple[Tensor, Tensor]]:
    """The same, its outputs turned to their principal directions and scaled to variance 1 over these frames."""
    found = frames.double()
    for weights, constants in layers[:-1]:
        found = functional.linear(found, weights, constants).relu()
    weights, constants = layers[-1]
    found = functional.linear(found, weights, constants)
    mean, covariance = found.mean(0), torch.cov(found.T)
    values, directions = torch.linalg.eigh(covariance)
    turn = (directions / values.clamp_min(1e-6).sqrt()).T.flip(0)
    turn = turn * torch.where(turn.sum(1, keepdim=True) < 0, -1.0, 1.0)  # a direction's sign is a matter of the machine
    return [*layers[:-1], (turn @ weights, turn @ (constants - mean))]
