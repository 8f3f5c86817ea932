"""A released model on disk: weights, public choices, and a privacy statement that is checked on every load."""

import ppspeech.bundle.filter_type
import ppspeech.bundle.model_types  # noqa: F401 (they fill the registry)
from ppspeech.bundle.config import BundleConfig
from ppspeech.bundle.privacy_statement import DataTouch, PrivacyStatement, in_words, privacy_schema
from ppspeech.bundle.reader import Bundle, load_bundle
from ppspeech.bundle.registry import MODEL_TYPES, ModelSettings, register_model
from ppspeech.bundle.registry_yaml import deployment_yaml
from ppspeech.bundle.writer import write_bundle

__all__ = [
    "MODEL_TYPES",
    "Bundle",
    "BundleConfig",
    "DataTouch",
    "ModelSettings",
    "PrivacyStatement",
    "deployment_yaml",
    "in_words",
    "load_bundle",
    "privacy_schema",
    "register_model",
    "write_bundle",
]
