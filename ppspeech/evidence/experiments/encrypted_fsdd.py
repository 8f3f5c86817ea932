"""FSDD's official test recognized under encryption: decisions and scores beside those in the clear.

Needs the corpus fsdd; --quick takes about 60 s.
"""

import time
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from ppspeech.arrays import Reals
from ppspeech.audio import MfccConfig
from ppspeech.channel import Channel
from ppspeech.crypto.shares import ShareEngine
from ppspeech.data import load_corpus, split_official
from ppspeech.evidence.experiments import EXPERIMENTS
from ppspeech.evidence.experiments.fsdd import PLAIN, recognizer_of, train_bank
from ppspeech.evidence.spoken import Spoken
from ppspeech.figures import Figure
from ppspeech.models import HiddenMarkovModel, floored_scores
from ppspeech.network import run_together
from ppspeech.progress import track
from ppspeech.protocols import meet_as_client, meet_as_server
from ppspeech.protocols.scores import WordArrays
from ppspeech.protocols.words import KeywordJob, encode_models, share_scores
from ppspeech.service import Deployment, export_words

AT_ONCE = 20


@EXPERIMENTS.register("encrypted-fsdd")
def run(quick: bool, folder: Path) -> list[Figure]:  # noqa: ARG001
    """Train as `fsdd` does, then score every test clip by the protocol, both parties in this process.

    Once with a frame every 10 ms, once with one every 30 ms. Outside an experiment the client learns a word and nobody
    a score; here both parties' shares are put together. `quick`: 60 clips instead of 300.
    """
    corpus = load_corpus("fsdd")
    official = split_official(corpus)
    figures = []
    for name, mfcc in (("encrypted_fsdd", PLAIN), ("encrypted_fsdd.hop30", replace(PLAIN, hop_s=0.03))):
        bank = train_bank(Spoken.of(official.train, mfcc, corpus.words), iterations=10)
        test = Spoken.of(official.test, mfcc, corpus.words)
        if quick:
            test = test.where(torch.arange(0, len(test.words), 5))
        figures += _compare(name, bank, test, mfcc, "forward") + _compare(name, bank, test, mfcc, "viterbi")
    return figures


def _compare(
    name: str, bank: HiddenMarkovModel, test: Spoken, mfcc: MfccConfig, operation: Literal["forward", "viterbi"]
) -> list[Figure]:
    x, lengths, said = test.labeled
    labels = tuple(str(digit) for digit in range(bank.models))
    chosen = Deployment(frames=int(lengths.max()), operation=operation)
    models = export_words("keyword_hmm", bank, labels, chosen, mfcc)
    clips: list[Reals] = [*test.clips()]
    recognizer = recognizer_of(bank, labels, mfcc)
    with torch.no_grad():
        near = recognizer.clipped(x)
        plain = floored_scores(bank, near, lengths, recognizer.floor, best_path=operation == "viterbi").double().numpy()
    began = time.perf_counter()
    parts = [clips[at : at + AT_ONCE] for at in range(0, len(clips), AT_ONCE)]
    scores = np.concatenate([encrypted_scores(models, part) for part in track(parts, f"Encrypted, {operation}")])
    seconds = time.perf_counter() - began
    flipped = scores.argmax(1) != plain.argmax(1)
    margins = np.sort(plain, axis=1)[:, -1] - np.sort(plain, axis=1)[:, -2]
    right = [int((found.argmax(1) == said.numpy()).sum()) for found in (scores, plain)]
    worst = float(np.abs(scores - plain).max())
    pace = f"{1e3 * seconds / len(clips):.0f} ms a clip, both parties in one process"
    prefix, count = name if operation == "forward" else f"{name}.viterbi", len(clips)
    among = f"{len(clips)} clips, {operation}; margins of those that differ: {margins[flipped].round(2).tolist()}"
    return [
        Figure.count(f"{prefix}.flips", int(flipped.sum()), count, "utterances", note=among),
        Figure(f"{prefix}.max_error_nat", worst, "nat", note="of all scores of all clips"),
        Figure(f"{prefix}.rms_error_nat", float(np.sqrt(((scores - plain) ** 2).mean())), "nat"),
        Figure(f"{prefix}.largest_flip_margin_nat", float(margins[flipped].max(initial=0)), "nat"),
        Figure.share(f"{prefix}.accuracy", right[0], count, "utterances", "in the clear", right[1] / count, note=pace),
    ]


def encrypted_scores(models: WordArrays, clips: list[Reals]) -> Reals:
    """What both parties' shares of the scores add up to, `(clips, words)`."""
    shape, job = models.shape, KeywordJob(models.shape, len(clips))
    weights = encode_models(models, len(clips))

    def ask(channel: Channel) -> NDArray[np.uint64]:
        met = meet_as_client(channel)
        with met.session():
            engine = ShareEngine(channel, met.setup, job.shares_cost)
            frames = np.concatenate([shape.padded_monomials(clip) for clip in clips])
            emissions = job.by_utterance(met.multiply(job.plan, frames))
            last = np.array([len(clip) for clip in clips]) - shape.shortest
            return share_scores(engine, job, None, emissions, last)

    def answer(channel: Channel) -> NDArray[np.uint64]:
        met = meet_as_server(channel)
        with met.session():
            engine = ShareEngine(channel, met.setup, job.shares_cost)
            return share_scores(engine, job, models, job.by_utterance(met.multiply(job.plan, weights)), None)

    ring = shape.scale.ring
    taken_off = models.highest * np.array([len(clip) for clip in clips])
    return shape.scale.decode(ring.to_signed(ring.join(*run_together(ask, answer)))) + taken_off[:, None]
