"""Corpora and tables: what models learn from, split so that nobody is on both sides."""

from ppspeech.data.batches import Batch, LengthBuckets, UtteranceDataset, Vocabulary, collate
from ppspeech.data.features import FeatureStore
from ppspeech.data.registry import (
    corpus_names,
    load_corpus,
    load_table,
    register_corpus,
    register_table,
    table_names,
)
from ppspeech.data.splits import Split, leave_one_speaker_out, split_by_speaker, split_by_take, split_official
from ppspeech.data.synthetic import SyntheticCorpus
from ppspeech.data.utterance import Corpus, Utterance

__all__ = [
    "Batch",
    "Corpus",
    "FeatureStore",
    "LengthBuckets",
    "Split",
    "SyntheticCorpus",
    "Utterance",
    "UtteranceDataset",
    "Vocabulary",
    "collate",
    "corpus_names",
    "leave_one_speaker_out",
    "load_corpus",
    "load_table",
    "register_corpus",
    "register_table",
    "split_by_speaker",
    "split_by_take",
    "split_official",
    "table_names",
]
