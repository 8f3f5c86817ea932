"""FSDD's official test by a network on shares, beside the clear; a network that two parties train; and sentences of
AudioMNIST, by 15 people never heard, by networks beside Gaussians.

Needs the corpora fsdd and audiomnist; --quick takes about 60 s.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytorch_lightning as lightning
import torch
from torch import Tensor
from torch.nn import functional

from ppspeech.arrays import Reals
from ppspeech.bundle import CtcTranscriber
from ppspeech.channel import Channel
from ppspeech.data import SentenceDataModule, load_corpus, split_official
from ppspeech.evidence.connected import HOP_S, audiomnist_digits, rate_of
from ppspeech.evidence.experiments import EXPERIMENTS
from ppspeech.evidence.experiments.encrypted_sentences import STEP, encrypted
from ppspeech.evidence.experiments.fsdd import PLAIN
from ppspeech.evidence.spoken import Spoken
from ppspeech.figures import Figure
from ppspeech.models import FrameLayer, FrameNetwork, Word, total_word_errors
from ppspeech.network import run_together
from ppspeech.protocols import Party, meet_as_client, meet_as_server
from ppspeech.protocols.networks import (
    NetworkArrays,
    TrainingTerms,
    answer_network,
    ask_network,
    bring,
    descend,
    predict,
    teach,
)
from ppspeech.service import SentenceDeployment, at_frames, export_bank, export_network, export_sequence
from ppspeech.training import CtcNetwork, SentenceNetwork, quiet_lightning

LAYERS = (FrameLayer(48, width=5, stride=2), FrameLayer(48, width=3, dilation=2))
FRAMES, RADIUS = 100, 12.0
ROWS, HALVES, CEPSTRA = 48, 2, 6


@EXPERIMENTS.register("networks")
def run(quick: bool, folder: Path) -> list[Figure]:  # noqa: ARG001 (nothing to draw)
    """Train a TDNN in the clear, ask it encrypted; train a small one with features and labels apart.

    `quick`: 60 clips instead of 300, fewer epochs and steps.
    """
    corpus = load_corpus("fsdd")
    official = split_official(corpus)
    train, test = (Spoken.of(part, PLAIN, corpus.words) for part in (official.train, official.test))
    network = trained(train, len(corpus.words), epochs=6 if quick else 15)
    if quick:
        test = test.where(torch.arange(0, len(test.words), 5))
    return [
        *_encrypted(network, test, tuple(corpus.words)),
        *_together(train, test, 15 if quick else 60),
        *_sentences(quick),
    ]


def trained(spoken: Spoken, classes: int, epochs: int, seed: int = 0) -> FrameNetwork:
    """By AdamW with a cosine schedule."""
    torch.manual_seed(seed)
    network = FrameNetwork(classes, spoken.features.shape[-1], FRAMES, RADIUS, LAYERS)
    optimizer = torch.optim.AdamW(network.parameters(), 3e-3, weight_decay=0.1)
    steps = epochs * -(-len(spoken.words) // 32)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(epochs):
        for part in torch.split(torch.randperm(len(spoken.words)), 32):
            scores = network(spoken.features[part], spoken.lengths[part])
            optimizer.zero_grad()
            torch.autograd.backward(functional.cross_entropy(scores, spoken.words[part]))
            optimizer.step()
            schedule.step()
    return network.eval()


def _encrypted(network: FrameNetwork, test: Spoken, labels: tuple[str, ...]) -> list[Figure]:
    """What is told of every clip that the network takes whole, beside the clear."""
    fits = test.lengths <= FRAMES
    some = test.where(fits)
    with torch.no_grad():
        scores = network(some.features, some.lengths)
    clear = scores.argmax(-1).numpy()
    own = export_network(network, labels)
    began = time.perf_counter()
    told = np.array([labels.index(label) for label in ask_all(own, some.clips())])
    seconds = time.perf_counter() - began
    flipped = told != clear
    best = scores.topk(2).values
    margins = (best[:, 0] - best[:, 1]).numpy()
    said = some.words.numpy()
    among = f"{len(told)} clips of up to {FRAMES} frames ({int((~fits).sum())} longer ones left out)"
    pace = f"{1e3 * seconds / len(told):.0f} ms a clip, both parties in one process"
    right, plain = int((told == said).sum()), float((clear == said).mean())
    differ = f"labels that differ from the clear, of {among}"
    counted = (right, len(told), "utterances", "in the clear", plain)
    return [
        Figure.count("networks.flips", int(flipped.sum()), len(told), "utterances", note=differ),
        Figure("networks.largest_flip_margin", float(margins[flipped].max(initial=0)), note="of scores in the clear"),
        Figure.share("networks.accuracy", *counted, note=f"{among}; {pace}"),
    ]


def ask_all(own: NetworkArrays, clips: Sequence[Reals]) -> list[str]:
    """The labels of many clips, in one meeting."""

    def ask(channel: Channel) -> list[str]:
        met = meet_as_client(channel)
        with met.session():
            return [str(ask_network(met, own.shape, clip)[0]) for clip in clips]

    def answer(channel: Channel) -> None:
        met = meet_as_server(channel)
        with met.session():
            for _ in clips:
                answer_network(met, own)

    return run_together(ask, answer)[0]


def _together(train: Spoken, test: Spoken, steps: int) -> list[Figure]:
    """Zero against one, by means of a few cepstra in both halves of a clip: features here, labels there."""
    table, said = means(train)
    chosen = np.random.default_rng(0).permutation(len(said))[:ROWS]
    table, said = table[chosen], said[chosen]
    terms = TrainingTerms(ROWS, HALVES * CEPSTRA, 2, hidden=4, steps=steps, rate=0.5, seed=1)
    plain = {name: getattr(terms, name) for name in terms.__dataclass_fields__}
    began = time.perf_counter()
    found, _ = run_together(
        lambda c: bring(Party("features", {"labels": c}), table.tolist(), **plain),
        lambda c: teach(Party("labels", {"features": c}), said.tolist(), **plain),
    )
    seconds = time.perf_counter() - began
    shared, clear = (np.array(found["hidden"]), np.array(found["outputs"])), descend(terms, table, said)
    error = max(float(np.abs(one - other).max()) for one, other in zip(shared, clear, strict=True))
    unheard, truth = means(test)
    right, plainly = (int((predict(weights, unheard) == truth).sum()) for weights in (shared, clear))
    sizes = (
        f"{ROWS} rows of {terms.features} features, {terms.hidden} units, {steps} steps, shares of {terms.bits} bits"
    )
    return [
        Figure("networks.training.weight_error", error, note=f"the largest, against plain descent; {sizes}"),
        Figure.share(
            "networks.training.accuracy", right, len(truth), "utterances", "plain descent", plainly / len(truth)
        ),
        Figure(
            "networks.training.step_s", seconds / steps, "s", note="offline and online, both parties in one process"
        ),
    ]


def means(spoken: Spoken) -> tuple[Reals, Reals]:
    """Of clips that say zero or one: `(clips, features)` within the radius of the terms, and which."""
    chosen = spoken.where(spoken.words < 2)
    rows = [[part[:, :CEPSTRA].mean(axis=0) for part in np.array_split(clip, HALVES)] for clip in chosen.clips()]
    return np.array(rows).reshape(len(rows), -1), chosen.words.numpy()


def _sentences(quick: bool) -> list[Figure]:
    """Networks that learn from sentences of 45 people; the people and sentences of the test are those of
    `reproduce encrypted-sentences`.
    """
    made = audiomnist_digits(12 if quick else 120)
    greedy, graph = trained_on_sentences(11, (14, 2)) if quick else trained_on_sentences(22, (30, 12))
    asked: dict[str, tuple[Callable[[Tensor], Sequence[Word]], Callable[[Sequence[Tensor]], list[list[str]]]]] = {
        "ctc": (greedy.transcriber().words, partial(ask_greedily, greedy.transcriber())),
        "hybrid": (graph.transcriber().words, partial(ask_graph, graph)),
    }
    spoken_words = sum(len(text) for _, text in made.sentences)
    note = f"word error rate of {len(made.sentences)} sentences, {spoken_words} words, people never heard"
    beside = f"{note}; in the clear, for comparison"
    figures = [rate_of("networks.gaussians.wer", made.errors(made.sentences), note=beside)]
    for name, (hear, ask) in asked.items():
        clear = [[word.word for word in hear(features)] for features, _ in made.sentences]
        began = time.perf_counter()
        told = ask([features for features, _ in made.sentences])
        pace = f"{(time.perf_counter() - began) / len(told):.2f} s a sentence"
        texts = [text for _, text in made.sentences]
        errors = [total_word_errors(zip(texts, heard, strict=True)) for heard in (told, clear)]
        alike = sum(one == other for one, other in zip(told, clear, strict=True))
        figures += [
            rate_of(f"networks.{name}.wer", errors[0], "in the clear", errors[1].rate, f"{note}; {pace}"),
            Figure.count(f"networks.{name}.equal", alike, len(told), "sentences", "sentences", "the clear", len(told)),
        ]
    return figures


def trained_on_sentences(each: int, epochs: tuple[int, int]) -> tuple[CtcNetwork, SentenceNetwork]:
    """By the recipes `sentences_ctc` and `sentences_network`, on so many sentences a person."""
    quiet_lightning()
    held_out = list(load_corpus("audiomnist").speakers[::4])
    data = SentenceDataModule(
        corpus="audiomnist", test=held_out, mfcc={"hop_s": HOP_S}, whole=True, sentences=each, test_sentences=1,
        batch_size=16,
    )  # fmt: skip
    torch.manual_seed(0)
    modules = CtcNetwork(), SentenceNetwork()
    options: dict[str, Any] = {
        "logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False,
        "accelerator": "cpu",
    }  # fmt: skip
    for module, most in zip(modules, epochs, strict=True):
        lightning.Trainer(max_epochs=most, **options).fit(module, datamodule=data)
        module.eval()
    return modules


def ask_greedily(transcriber: CtcTranscriber, features: Sequence[Tensor]) -> list[list[str]]:
    """The words of sentences, each padded to a multiple of 32 frames, in one meeting."""
    lengths = [-(-len(each) // STEP) * STEP for each in features]
    longest = export_sequence(transcriber.model, transcriber.names, max(lengths))
    served = {length: at_frames(longest, length) for length in sorted(set(lengths))}
    lead, stride = transcriber.model.lead, transcriber.model.stride
    padded = [np.concatenate((np.zeros((lead, each.shape[1])), each.double().numpy())) for each in features]

    def ask(channel: Channel) -> list[list[str]]:
        met, found = meet_as_client(channel), []
        with met.session():
            for frames, length in zip(padded, lengths, strict=True):
                labels = ask_network(met, served[length].shape, frames)
                found.append([word for word in labels[: -(-(len(frames) - lead) // stride)] if word is not None])
        return found

    def answer(channel: Channel) -> None:
        met = meet_as_server(channel)
        with met.session():
            for length in lengths:
                answer_network(met, served[length])

    return run_together(ask, answer)[0]


def ask_graph(module: SentenceNetwork, features: Sequence[Tensor]) -> list[list[str]]:
    """The words of sentences by the best path, by two processes over TLS."""
    frames = [each.double().numpy() for each in features]
    longest = -(-max(map(len, frames)) // STEP) * STEP
    arrays = export_bank(module.scorer, module.config, SentenceDeployment(frames=longest))
    return [[each.word for each in heard] for heard in encrypted(arrays, frames, garbled=False)]
