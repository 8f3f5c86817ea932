"""Hidden Markov models: training and scoring spoken digits beside hmmlearn, and how the time grows.

Needs the corpus fsdd and hmmlearn.
"""

import math
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
import torch

from ppspeech.audio import MfccConfig
from ppspeech.data import load_corpus, split_official
from ppspeech.data.corpora import DIGIT_WORDS
from ppspeech.evidence.bench import BENCHES
from ppspeech.evidence.bench.clock import best_seconds, peak_megabytes, run_seconds
from ppspeech.evidence.spoken import Spoken, hmmlearn_like
from ppspeech.figures import Figure
from ppspeech.models.hmm import GaussianEmission, HiddenMarkovModel, baum_welch, flat_start_, hmm_statistics, left_right

STATES = 5
FLOOR = 1e-3


@BENCHES.register("hmm")
def run(quick: bool) -> list[Figure]:
    """Measure; `quick` trains on a ninth of the utterances for fewer iterations."""
    train, test = _digits(quick)
    iterations = 2 if quick else 5
    size = f"{len(train.words)} FSDD utterances, {len(DIGIT_WORDS)} words x {STATES} states, {iterations} iterations"
    started_mb = peak_megabytes()
    ours, our_seconds = {}, {}
    for dtype in (torch.float32, torch.float64):
        ours[dtype], our_seconds[dtype] = _train(train, iterations, dtype, repeats=1 if quick else 2)
    peak_mb = peak_megabytes() - started_mb
    peers, peer_seconds, peer_likelihood = _train_hmmlearn(train, iterations)

    single, double = torch.float32, torch.float64
    our_score_s = best_seconds(lambda: test.scores(ours[single][0]), 3)
    clips = test.clips()
    peer_scores: list[list[float]] = []
    peer_score_s = run_seconds(lambda: peer_scores.extend([p.score(x) for p in peers] for x in clips))
    same_bank = [test.scores(ours[dtype][0]) for dtype in (single, double)]
    expected = torch.tensor(peer_scores, dtype=double)
    peer = f"hmmlearn {version('hmmlearn')}"
    note = f"{size}, full covariance, float32, {torch.get_num_threads()} threads"
    scored = f"{len(clips)} clips under {len(peers)} models, float32"
    likelihood_gap = abs(ours[single][1] - peer_likelihood) / abs(peer_likelihood)
    relative = "relative, of the last E-step's log-likelihood in float32 against hmmlearn's"
    score_gap = float((same_bank[1] - expected).abs().max() / expected.abs().max())
    compared = test.accuracy(expected)
    return [
        Figure("hmm.train.speedup_vs_hmmlearn", peer_seconds / our_seconds[single], "x", note=f"{size}, float32"),
        Figure("hmm.score.speedup_vs_hmmlearn", peer_score_s / our_score_s, "x", note="float32"),
        Figure.less("hmm.train_s", our_seconds[single], "s", peer, peer_seconds, note),
        Figure.less("hmm.train_float64_s", our_seconds[double], "s", peer, peer_seconds, "the same in float64"),
        Figure("hmm.train_memory_mb", peak_mb, "MB", note="growth of the process's peak during both trainings"),
        Figure("hmm.train_likelihood_gap", likelihood_gap, note=relative),
        Figure.less("hmm.score_s", our_score_s, "s", peer, peer_score_s, scored),
        Figure("hmm.score_gap", score_gap, note="largest difference of a float64 score, relative to the largest score"),
        *(
            Figure.share(f"hmm.accuracy.{name}", test.right(scores), len(clips), "utterances", peer, compared)
            for name, scores in (("float32", same_bank[0]), ("float64", same_bank[1]))
        ),
        *_growth(quick),
    ]


def _digits(quick: bool) -> tuple[Spoken, Spoken]:
    split = split_official(load_corpus("fsdd"))
    train = split.train.select(lambda u: not (quick and u.take % 9))
    return tuple(Spoken.of(part, MfccConfig.narrowband(), DIGIT_WORDS) for part in (train, split.test))  # type: ignore[return-value]


def _start(train: Spoken, dtype: torch.dtype) -> HiddenMarkovModel:
    emission = GaussianEmission(
        len(DIGIT_WORDS), STATES, train.features.shape[-1], covariance="full", floor=FLOOR, dtype=dtype
    )
    bank = HiddenMarkovModel(left_right(STATES), emission)
    flat_start_(bank, train.features.to(dtype), train.lengths, train.words)
    return bank


def _train(
    train: Spoken, iterations: int, dtype: torch.dtype, repeats: int
) -> tuple[tuple[HiddenMarkovModel, float], float]:
    """The trained bank with its last log-likelihood, and the seconds Baum-Welch took."""
    bank = _start(train, dtype)
    start = {name: value.clone() for name, value in bank.state_dict().items()}
    features = train.features.to(dtype)
    history: list[float] = []

    def work() -> None:
        bank.load_state_dict(start)
        history[:] = baum_welch(bank, features, train.lengths, train.words, iterations)

    seconds = best_seconds(work, repeats)
    return (bank, history[-1]), seconds


def _train_hmmlearn(train: Spoken, iterations: int) -> tuple[list[Any], float, float]:
    """The same from the same start, its priors off so that it maximizes the likelihood too; once, it is slow."""
    peers = hmmlearn_like(_start(train, torch.float64), iterations, covars_prior=0)
    clips = [train.clips(word) for word in range(len(peers))]
    data = [(np.concatenate(each), [len(x) for x in each]) for each in clips]
    took = run_seconds(lambda: [peer.fit(*each) for peer, each in zip(peers, data, strict=True)])
    return peers, took, sum(peer.monitor_.history[-1] for peer in peers)


def _growth(quick: bool) -> list[Figure]:
    """The exponent p of time ~ size^p for an E-step, by least squares on logarithms: 1 is linear."""
    sizes = {"frames": (200, 400, 800), "states": (10, 20, 40), "utterances": (64, 128, 256)}
    usual = {"frames": 100, "states": 5, "utterances": 64}
    figures = []
    for name, values in sizes.items():
        seconds = []
        for value in values:
            shape = usual | {name: value}
            bank = HiddenMarkovModel(left_right(shape["states"]), GaussianEmission(4, shape["states"], 39))
            features = torch.randn(shape["utterances"], shape["frames"], 39)
            lengths = torch.full((shape["utterances"],), shape["frames"])
            labels = torch.arange(shape["utterances"]) % 4
            seconds.append(
                best_seconds(lambda b=bank, x=(features, lengths, labels): hmm_statistics(b, *x), 2 if quick else 5)  # type: ignore[misc]
            )
        note = f"E-step at {values}: {', '.join(f'{1000 * s:.0f}' for s in seconds)} ms; 1 is linear"
        figures.append(Figure(f"hmm.growth.{name}", _exponent(values, seconds), note=note))
    return figures


def _exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    return float(np.polyfit([math.log(n) for n in sizes], [math.log(s) for s in seconds], 1)[0])
