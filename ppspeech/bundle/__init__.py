"""A released model on disk: weights, public choices, and a privacy statement that is checked on every load."""

from ppspeech.bundle.card import STATUS
from ppspeech.bundle.config import BundleConfig
from ppspeech.bundle.deployments import deployment_yaml
from ppspeech.bundle.filterer import Filterer
from ppspeech.bundle.kinds import (
    SILENCE,
    CohortSettings,
    KernelTableSettings,
    KeywordHmmSettings,
    KeywordNetworkSettings,
    LargeMarginClassifierSettings,
    LargeMarginKeywordSettings,
    LargeMarginTableSettings,
    LinearTableSettings,
    MinimaxFilterSettings,
    SentenceBank,
    SentenceHmmSettings,
    Shape,
    SpeakerUbmSettings,
    WeightsSettings,
    add_cohort_,
    lexicon_of,
    listed_ngrams,
)
from ppspeech.bundle.metrics import METRIC
from ppspeech.bundle.model_type import MODEL_TYPES, ModelSettings, ModelType, Use, model_type
from ppspeech.bundle.reader import Bundle, load_bundle
from ppspeech.bundle.recognizer import (
    GARBAGE,
    LIMIT,
    NO_GARBAGE,
    Recognized,
    Recognizer,
    feature_limit,
    feature_radius,
    usual_radius,
    word_radius,
)
from ppspeech.bundle.signature import make_signing_key
from ppspeech.bundle.statement import DataTouch, PrivacyStatement, Topic, for_people, in_words, privacy_schema
from ppspeech.bundle.strict_json import check_text, from_plain, read_json, to_plain, write_json
from ppspeech.bundle.transcriber import SentenceTranscriber, Spoken, Transcriber, transcriber_of
from ppspeech.bundle.verifier import FALSE_ACCEPT, Identified, Verified, Verifier
from ppspeech.bundle.writer import renew_bundle, write_bundle

__all__ = [
    "FALSE_ACCEPT",
    "GARBAGE",
    "LIMIT",
    "METRIC",
    "MODEL_TYPES",
    "NO_GARBAGE",
    "SILENCE",
    "STATUS",
    "Bundle",
    "BundleConfig",
    "CohortSettings",
    "DataTouch",
    "Filterer",
    "Identified",
    "KernelTableSettings",
    "KeywordHmmSettings",
    "KeywordNetworkSettings",
    "LargeMarginClassifierSettings",
    "LargeMarginKeywordSettings",
    "LargeMarginTableSettings",
    "LinearTableSettings",
    "MinimaxFilterSettings",
    "ModelSettings",
    "ModelType",
    "PrivacyStatement",
    "Recognized",
    "Recognizer",
    "SentenceBank",
    "SentenceHmmSettings",
    "SentenceTranscriber",
    "Shape",
    "SpeakerUbmSettings",
    "Spoken",
    "Topic",
    "Transcriber",
    "Use",
    "Verified",
    "Verifier",
    "WeightsSettings",
    "add_cohort_",
    "check_text",
    "deployment_yaml",
    "feature_limit",
    "feature_radius",
    "for_people",
    "from_plain",
    "in_words",
    "lexicon_of",
    "listed_ngrams",
    "load_bundle",
    "make_signing_key",
    "model_type",
    "privacy_schema",
    "read_json",
    "renew_bundle",
    "to_plain",
    "transcriber_of",
    "usual_radius",
    "word_radius",
    "write_bundle",
    "write_json",
]
