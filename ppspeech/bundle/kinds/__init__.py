"""The kinds of models that ppspeech releases, one file a question they answer."""

from ppspeech.bundle.kinds.classes import LargeMarginClassifierSettings
from ppspeech.bundle.kinds.embedded import EmbeddingHeadSettings
from ppspeech.bundle.kinds.filters import MinimaxFilterSettings, Shape
from ppspeech.bundle.kinds.networks import CtcNetworkSettings, KeywordNetworkSettings
from ppspeech.bundle.kinds.own import WeightsSettings
from ppspeech.bundle.kinds.sentences import (
    SILENCE,
    SentenceBank,
    SentenceHmmSettings,
    SentenceNetworkSettings,
    lexicon_of,
    listed_ngrams,
)
from ppspeech.bundle.kinds.speakers import CohortSettings, SpeakerUbmSettings, VoiceEmbeddingSettings, add_cohort_
from ppspeech.bundle.kinds.tables import KernelTableSettings, LargeMarginTableSettings, LinearTableSettings
from ppspeech.bundle.kinds.words import KeywordHmmSettings, LargeMarginKeywordSettings

__all__ = [
    "SILENCE",
    "CohortSettings",
    "CtcNetworkSettings",
    "EmbeddingHeadSettings",
    "KernelTableSettings",
    "KeywordHmmSettings",
    "KeywordNetworkSettings",
    "LargeMarginClassifierSettings",
    "LargeMarginKeywordSettings",
    "LargeMarginTableSettings",
    "LinearTableSettings",
    "MinimaxFilterSettings",
    "SentenceBank",
    "SentenceHmmSettings",
    "SentenceNetworkSettings",
    "Shape",
    "SpeakerUbmSettings",
    "VoiceEmbeddingSettings",
    "WeightsSettings",
    "add_cohort_",
    "lexicon_of",
    "listed_ngrams",
]
