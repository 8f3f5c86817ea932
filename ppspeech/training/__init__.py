"""LightningModules and callbacks: where models, data and privacy meet."""

from ppspeech.training.checkpoint import load_checkpoint
from ppspeech.training.classifier import LargeMarginClassifier
from ppspeech.training.confusion import Confusion
from ppspeech.training.keyword import KeywordHmm
from ppspeech.training.large_margin_keyword import LargeMarginKeyword
from ppspeech.training.speakers import SpeakerUbm

__all__ = ["Confusion", "KeywordHmm", "LargeMarginClassifier", "LargeMarginKeyword", "SpeakerUbm", "load_checkpoint"]
