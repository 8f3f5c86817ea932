"""Spoken digits of AudioMNIST: forty people to train on, twenty never heard to test on."""

from pathlib import Path

import torch
from torch.nn.utils.rnn import pad_sequence

from ppspeech.audio import MfccConfig
from ppspeech.data import Corpus, FeatureStore, load_corpus, split_by_speaker
from ppspeech.evidence.experiments import EXPERIMENTS
from ppspeech.figures import Figure
from ppspeech.models import GaussianEmission, HiddenMarkovModel, Prior, baum_welch, flat_start_, left_right
from ppspeech.training import Confusion

TESTED = 20
"""The last people of the corpus, 41 to 60, fixed in advance."""


@EXPERIMENTS.register("audiomnist")
def run(quick: bool, folder: Path) -> list[Figure]:
    """Train ten word models of five states and recognize people never heard.

    Args:
        quick: train on ten people instead of forty.
        folder: for the confusion matrix, `audiomnist.png`.
    """
    corpus = load_corpus("audiomnist")
    split = split_by_speaker(corpus, test=corpus.speakers[-TESTED:])
    kept = set(split.train.speakers[: 10 if quick else None])
    train = _data(split.train.select(lambda u: u.speaker in kept), corpus.words)
    test = _data(split.test, corpus.words)
    prior = Prior(covariance=1_000.0)
    bank = HiddenMarkovModel(left_right(5), GaussianEmission(len(corpus.words), 5, train[0].shape[-1], floor=1e-2))
    flat_start_(bank, *train, prior)
    baum_welch(bank, *train, iterations=4, prior=prior)
    confusion = Confusion(corpus.words)
    with torch.no_grad():
        blocks = zip(torch.split(test[0], 100), torch.split(test[1], 100), strict=True)
        confusion.add(test[2], torch.cat([bank(features, lengths).argmax(-1) for features, lengths in blocks]))
    confusion.plot(folder / "audiomnist.png")
    note = (
        f"{len(train[2]):,} utterances of {len(kept)} people to train, {len(test[2]):,} of {TESTED} others to test; "
        "5 states, full covariance shrunk with the weight of 1,000 frames, 4 iterations"
    )
    return [Figure("audiomnist.unseen.accuracy", float(confusion.accuracy()), note=note)]


def _data(corpus: Corpus, words: tuple[str, ...]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    features = FeatureStore(MfccConfig.wideband()).load(corpus.utterances)
    lengths = torch.tensor([len(f) for f in features])
    return pad_sequence(features, batch_first=True), lengths, torch.tensor([words.index(str(u.word)) for u in corpus])
