"""Hidden Markov models: training and scoring spoken digits beside hmmlearn, and how the time grows."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ppspeech.audio import MfccConfig
from ppspeech.data import FeatureStore
from ppspeech.data.corpora import DIGIT_WORDS, load_fsdd
from ppspeech.evidence.bench import BENCHES
from ppspeech.evidence.bench.clock import best_seconds, peak_megabytes
from ppspeech.figures import Figure
from ppspeech.models.hmm import (
    GaussianEmission,
    HiddenMarkovModel,
    baum_welch,
    by_length,
    flat_start_,
    left_right,
    statistics,
)

STATES = 5
FLOOR = 1e-3


@dataclass(frozen=True)
class _Digits:
    """Padded features, lengths and labels of spoken digits."""

    features: Tensor
    lengths: Tensor
    labels: Tensor

    def clips(self, word: int | None = None) -> list[np.ndarray]:
        """The utterances one by one, as hmmlearn takes them; of one word, or all."""
        rows = zip(self.features.double().numpy(), self.lengths.tolist(), self.labels.tolist(), strict=True)
        return [x[:length] for x, length, label in rows if word is None or label == word]


@BENCHES.register("hmm")
def run(quick: bool) -> list[Figure]:
    """Measure; `quick` trains on a ninth of the utterances for fewer iterations."""
    train, test = _digits(quick)
    iterations = 2 if quick else 5
    size = f"{len(train.labels)} FSDD utterances, {len(DIGIT_WORDS)} words x {STATES} states, {iterations} iterations"
    threads = torch.get_num_threads()

    started_mb = peak_megabytes()
    ours, our_seconds = {}, {}
    for dtype in (torch.float32, torch.float64):
        ours[dtype], our_seconds[dtype] = _train(train, iterations, dtype, repeats=1 if quick else 2)
    peak_mb = peak_megabytes() - started_mb
    peers, peer_seconds, peer_likelihood = _train_hmmlearn(train, iterations)

    single, double = torch.float32, torch.float64
    our_score_s = best_seconds(lambda: _score(ours[single][0], test), 3)
    clips = test.clips()
    peer_scores: list[list[float]] = []
    peer_score_s = _once(lambda: peer_scores.extend([p.score(x) for p in peers] for x in clips))
    same_bank = [_score(ours[dtype][0], test) for dtype in (single, double)]
    expected = torch.tensor(peer_scores, dtype=double)
    peer = f"hmmlearn {version('hmmlearn')}"

    def against(metric: str, value: float, peer_value: float, unit: str, note: str) -> Figure:
        return Figure(metric, value, unit, peer, peer_value, peer_value / value, note)

    return [
        Figure("hmm.train.speedup_vs_hmmlearn", peer_seconds / our_seconds[single], "x", note=f"{size}, float32"),
        Figure("hmm.score.speedup_vs_hmmlearn", peer_score_s / our_score_s, "x", note="float32"),
        against(
            "hmm.train_s",
            our_seconds[single],
            peer_seconds,
            "s",
            f"{size}, full covariance, float32, {threads} threads",
        ),
        against("hmm.train_float64_s", our_seconds[double], peer_seconds, "s", "the same in float64"),
        Figure("hmm.train_memory_mb", peak_mb, "MB", note="growth of the process's peak during both trainings"),
        Figure(
            "hmm.train_likelihood_gap",
            abs(ours[single][1] - peer_likelihood) / abs(peer_likelihood),
            note="relative, of the last E-step's log-likelihood in float32 against hmmlearn's",
        ),
        against(
            "hmm.score_s", our_score_s, peer_score_s, "s", f"{len(clips)} clips under {len(peers)} models, float32"
        ),
        Figure(
            "hmm.score_gap",
            float((same_bank[1] - expected).abs().max() / expected.abs().max()),
            note="largest difference of a float64 score, relative to the largest score",
        ),
        *(
            Figure(f"hmm.accuracy.{name}", _accuracy(scores, test), "", peer, _accuracy(expected, test))
            for name, scores in (("float32", same_bank[0]), ("float64", same_bank[1]))
        ),
        *_growth(quick),
    ]


def _digits(quick: bool) -> tuple[_Digits, _Digits]:
    corpus = load_fsdd()
    parts = []
    for subset in ("train", "test"):
        chosen = corpus.select(lambda u, s=subset: u.subset == s and not (quick and s == "train" and u.take % 9))  # type: ignore[misc]
        frames = FeatureStore(MfccConfig.narrowband()).load(chosen.utterances)
        labels = torch.tensor([DIGIT_WORDS.index(str(u.word)) for u in chosen])
        parts.append(_Digits(pad_sequence(frames, batch_first=True), torch.tensor([len(f) for f in frames]), labels))
    return parts[0], parts[1]


def _start(train: _Digits, dtype: torch.dtype) -> HiddenMarkovModel:
    emission = GaussianEmission(
        len(DIGIT_WORDS), STATES, train.features.shape[-1], covariance="full", floor=FLOOR, dtype=dtype
    )
    bank = HiddenMarkovModel(left_right(STATES), emission)
    flat_start_(bank, train.features.to(dtype), train.lengths, train.labels)
    return bank


def _train(
    train: _Digits, iterations: int, dtype: torch.dtype, repeats: int
) -> tuple[tuple[HiddenMarkovModel, float], float]:
    """The trained bank with its last log-likelihood, and the seconds Baum-Welch took."""
    bank = _start(train, dtype)
    start = {name: value.clone() for name, value in bank.state_dict().items()}
    features = train.features.to(dtype)
    history: list[float] = []

    def work() -> None:
        bank.load_state_dict(start)
        history[:] = baum_welch(bank, features, train.lengths, train.labels, iterations)

    seconds = best_seconds(work, repeats)
    return (bank, history[-1]), seconds


def _train_hmmlearn(train: _Digits, iterations: int) -> tuple[list[Any], float, float]:
    """The same from the same start, its priors off so that it maximizes the likelihood too; once, it is slow."""
    from hmmlearn.hmm import GaussianHMM

    bank = _start(train, torch.float64)
    initial, transitions = bank.log_initial().exp().detach(), bank.log_transitions().exp().detach()
    gaussians = cast("GaussianEmission", bank.emission).gaussians
    means, covariances = gaussians.mean.detach(), gaussians.covariances().detach()
    peers, data = [], []
    for word in range(len(DIGIT_WORDS)):
        peer = GaussianHMM(STATES, "full", n_iter=iterations, tol=-np.inf, init_params="", covars_prior=0)
        peer.startprob_, peer.transmat_ = initial[word].numpy(), transitions[word].numpy()
        peer.means_, peer.covars_ = means[word].numpy(), covariances[word].numpy()
        clips = train.clips(word)
        peers.append(peer)
        data.append((np.concatenate(clips), [len(x) for x in clips]))
    seconds = _once(lambda: [peer.fit(*clips) for peer, clips in zip(peers, data, strict=True)])
    return peers, seconds, sum(peer.monitor_.history[-1] for peer in peers)


def _once(work: Callable[[], object]) -> float:
    ran: list[bool] = []
    # `best_seconds` warms up first, and a second fit would start from a trained model.
    return best_seconds(lambda: work() if ran else ran.append(True), 1)


@torch.no_grad()
def _score(bank: HiddenMarkovModel, test: _Digits) -> Tensor:
    dtype = bank.initial_logits.dtype
    scores = torch.empty(len(test.labels), bank.models, dtype=dtype)
    index = torch.arange(len(test.labels))
    for features, lengths, rows in by_length(test.features.to(dtype), test.lengths, index):
        scores[rows] = bank(features, lengths)
    return scores


def _accuracy(scores: Tensor, test: _Digits) -> float:
    return float((scores.argmax(-1) == test.labels).double().mean())


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
                best_seconds(lambda b=bank, x=(features, lengths, labels): statistics(b, *x), 2 if quick else 5)  # type: ignore[misc]
            )
        figures.append(
            Figure(
                f"hmm.growth.{name}",
                _exponent(values, seconds),
                note=f"E-step at {values}: {', '.join(f'{1000 * s:.0f}' for s in seconds)} ms; 1 is linear",
            )
        )
    return figures


def _exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    slope = np.polyfit([math.log(n) for n in sizes], [math.log(s) for s in seconds], 1)[0]
    return float(slope)
