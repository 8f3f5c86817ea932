"""A head's thresholds, set by other speech: one for each word, and one for all of them."""

import torch

from ppspeech.arrays import Reals
from ppspeech.audio.embeddings import Pooling
from ppspeech.models import EmbeddingHead, SoftmaxRegression
from ppspeech.training.own_words.background import Background
from ppspeech.training.own_words.calibration import Calibration, calibrated, evened


def even_(model: EmbeddingHead, pooling: Pooling, background: Background, alarms_an_hour: float) -> None:
    """Give each word of a logistic head a threshold of its own, so that other speech is taken for each as often.

    It is a part of the word's intercept: such a head decides as any other does, in the clear and under encryption. All
    of the background is heard, also what trained: two of ten minutes say more about a tail than one. What calibrates
    afterwards sets the rate.

    Chosen by cross-validation among the training files of `ppspeech reproduce wakewords` alone: four folds within each
    of its five, with the background's people apart. At one alarm an hour these miss on average 29 % with one threshold
    for all, 25 % with thresholds by the part that calibrates, and 15 % with these; means of scores over two to four
    windows miss 29 to 32 % with one threshold. In no fold one threshold was better. Thresholds that differ more miss 8
    to 12 %, which nothing speaks for but these folds, and were not taken. That so much is missed comes of a background
    of nine minutes to train with and four to calibrate.
    """
    assert isinstance(model.head, SoftmaxRegression)
    streams = (*background.training, *background.calibrating)
    scores = [scores_of(model, stream.vectors(pooling)) for stream in streams]
    hours = sum(stream.seconds for stream in streams) / 3600
    more = evened([each[:, 1:] - each[:, :1] for each in scores], hours, alarms_an_hour)
    with torch.no_grad():
        model.head.weight[1:, -1] -= torch.from_numpy(more).to(model.head.weight) / model.head.constant


def calibrate_(model: EmbeddingHead, pooling: Pooling, background: Background, alarms_an_hour: float) -> Calibration:
    """Set the head's threshold by the part of the background that did not train it."""
    margins = [margins_of(model, stream.vectors(pooling)) for stream in background.calibrating]
    found = calibrated(margins, background.hours, alarms_an_hour)
    with torch.no_grad():
        model.reject.fill_(found.reject)
    return found


def margins_of(model: EmbeddingHead, vectors: Reals) -> Reals:
    """By how much the best word beats the background, `(count,)`."""
    scores = scores_of(model, vectors)
    margins: Reals = scores[:, 1:].max(axis=1) - scores[:, 0]
    return margins


@torch.no_grad()
def scores_of(model: EmbeddingHead, vectors: Reals) -> Reals:
    """Of the background and of every word, `(count, 1 + words)`."""
    scores: Reals = model(torch.from_numpy(vectors).float()).double().numpy()
    return scores
