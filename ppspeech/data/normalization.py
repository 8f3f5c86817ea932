"""Mean and deviation of every feature over public speech: what `cmvn: public` normalizes by."""

from collections.abc import Sequence
from dataclasses import replace

import torch

from ppspeech.audio import MfccConfig
from ppspeech.data.corpus import Corpus
from ppspeech.data.features import FeatureStore
from ppspeech.data.registry import load_corpus

FEW = {"synthetic": {"speakers": 12, "takes": 1}}  # of the built-in voices: more would not change a mean


def publicly_normalized(config: MfccConfig, corpora: Sequence[str] = ("synthetic",)) -> MfccConfig:
    """The front end, normalized by what is usual in corpora that are nobody's secret.

    Every feature gets mean 0 and variance 1 over all frames of them. Nothing about an utterance is waited for, so a
    model of such features can listen while people speak (with `level="keep"`).
    """
    plain = replace(config, cmvn="none", public_mean=(), public_std=())
    store = FeatureStore(plain)
    frames = torch.cat([frames for corpus in normalizing(corpora) for frames in store.load(corpus.utterances)])
    mean, std = frames.double().mean(0), frames.double().std(0)
    return replace(config, cmvn="public", public_mean=_rounded(mean), public_std=_rounded(std))


def normalizing(corpora: Sequence[str]) -> list[Corpus]:
    """The recordings that `publicly_normalized` hears."""
    return [load_corpus(name, **FEW.get(name, {})) for name in corpora]


def _rounded(values: torch.Tensor) -> tuple[float, ...]:
    """Four digits, which read well in a file and are alike on every machine."""
    return tuple(float(f"{value:.4g}") for value in values.tolist())
