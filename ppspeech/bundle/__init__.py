"""A released model on disk: weights, public choices, and a privacy statement that is checked on every load."""

from typing import TYPE_CHECKING

from ppspeech.doors import door

if TYPE_CHECKING:
    from ppspeech.bundle.card import STATUS
    from ppspeech.bundle.config import BundleConfig
    from ppspeech.bundle.embedded_recognizer import EmbeddedRecognizer, recognizer_of
    from ppspeech.bundle.filterer import Filterer
    from ppspeech.bundle.kinds import (
        SILENCE,
        CohortSettings,
        CtcNetworkSettings,
        EmbeddingHeadSettings,
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
        SentenceNetworkSettings,
        Shape,
        SpeakerUbmSettings,
        VoiceEmbeddingSettings,
        WeightsSettings,
        add_cohort_,
        lexicon_of,
        listed_ngrams,
    )
    from ppspeech.bundle.metrics import METRIC
    from ppspeech.bundle.model_types import MODEL_TYPES, ModelSettings, ModelType, Use, model_type
    from ppspeech.bundle.reader import Bundle, load_bundle
    from ppspeech.bundle.recognizer import (
        GARBAGE,
        NO_GARBAGE,
        Recognized,
        Recognizer,
        feature_limit,
        feature_radius,
        word_radius,
    )
    from ppspeech.bundle.releases.deployments import deployment_yaml
    from ppspeech.bundle.releases.hub import pull_bundle, push_bundle
    from ppspeech.bundle.releases.ledger import Entry, Ledger, Total, add_release, read_ledger
    from ppspeech.bundle.releases.signing import (
        NOT_PROVEN,
        check_signed_head,
        make_signing_key,
        sign_head,
        sign_release,
        signer_of,
        verify_release,
    )
    from ppspeech.bundle.spoken import Spoken
    from ppspeech.bundle.statement import DataTouch, PrivacyStatement, Topic, for_people, in_words, privacy_schema
    from ppspeech.bundle.strict_json import check_text, from_plain, read_json, to_plain, write_json
    from ppspeech.bundle.transcriber import CtcTranscriber, SentenceTranscriber, Transcriber, transcriber_of
    from ppspeech.bundle.verifier import FALSE_ACCEPT, Identified, Verified, Verifier
    from ppspeech.bundle.writer import renew_bundle, write_bundle

__all__ = [
    "FALSE_ACCEPT",
    "GARBAGE",
    "METRIC",
    "MODEL_TYPES",
    "NOT_PROVEN",
    "NO_GARBAGE",
    "SILENCE",
    "STATUS",
    "Bundle",
    "BundleConfig",
    "CohortSettings",
    "CtcNetworkSettings",
    "CtcTranscriber",
    "DataTouch",
    "EmbeddedRecognizer",
    "EmbeddingHeadSettings",
    "Entry",
    "Filterer",
    "Identified",
    "KernelTableSettings",
    "KeywordHmmSettings",
    "KeywordNetworkSettings",
    "LargeMarginClassifierSettings",
    "LargeMarginKeywordSettings",
    "LargeMarginTableSettings",
    "Ledger",
    "LinearTableSettings",
    "MinimaxFilterSettings",
    "ModelSettings",
    "ModelType",
    "PrivacyStatement",
    "Recognized",
    "Recognizer",
    "SentenceBank",
    "SentenceHmmSettings",
    "SentenceNetworkSettings",
    "SentenceTranscriber",
    "Shape",
    "SpeakerUbmSettings",
    "Spoken",
    "Topic",
    "Total",
    "Transcriber",
    "Use",
    "Verified",
    "Verifier",
    "VoiceEmbeddingSettings",
    "WeightsSettings",
    "add_cohort_",
    "add_release",
    "check_signed_head",
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
    "pull_bundle",
    "push_bundle",
    "read_json",
    "read_ledger",
    "recognizer_of",
    "renew_bundle",
    "sign_head",
    "sign_release",
    "signer_of",
    "to_plain",
    "transcriber_of",
    "verify_release",
    "word_radius",
    "write_bundle",
    "write_json",
]

if not TYPE_CHECKING:
    __getattr__ = door(__name__)
