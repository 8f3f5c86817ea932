"""A released model on disk: weights, public choices, and a privacy statement that is checked on every load."""

import ppspeech.bundle.filter_type
import ppspeech.bundle.model_types  # noqa: F401 (they fill the registry)
from ppspeech.bundle.card import STATUS
from ppspeech.bundle.config import BundleConfig
from ppspeech.bundle.deployments import deployment_yaml
from ppspeech.bundle.filter_type import Level, MinimaxFilterSettings, Shape
from ppspeech.bundle.model_types import (
    KeywordHmmSettings,
    LargeMarginClassifierSettings,
    LargeMarginKeywordSettings,
    SpeakerUbmSettings,
)
from ppspeech.bundle.reader import Bundle, load_bundle
from ppspeech.bundle.registry import MODEL_TYPES, ModelSettings, register_model
from ppspeech.bundle.statement import REQUIRED, DataTouch, PrivacyStatement, Topic, in_words, privacy_schema
from ppspeech.bundle.strict_json import check_text, from_plain, read_json, to_plain, write_json
from ppspeech.bundle.writer import write_bundle

__all__ = [
    "MODEL_TYPES",
    "REQUIRED",
    "STATUS",
    "Bundle",
    "BundleConfig",
    "DataTouch",
    "KeywordHmmSettings",
    "LargeMarginClassifierSettings",
    "LargeMarginKeywordSettings",
    "Level",
    "MinimaxFilterSettings",
    "ModelSettings",
    "PrivacyStatement",
    "Shape",
    "SpeakerUbmSettings",
    "Topic",
    "check_text",
    "deployment_yaml",
    "from_plain",
    "in_words",
    "load_bundle",
    "privacy_schema",
    "read_json",
    "register_model",
    "to_plain",
    "write_bundle",
    "write_json",
]
