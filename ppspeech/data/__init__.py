"""Corpora and tables: what models learn from, split so that nobody is on both sides.

The data modules are imported when they are asked for: who serves or recognizes needs no Lightning, a third of the time
that importing takes.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ppspeech.data.batches import Batch, LengthBuckets, UtteranceDataset, Vocabulary, check_shared, collate, numbered
from ppspeech.data.corpora.folder import clips_by_speaker, cohort_at
from ppspeech.data.corpora.packed import read_packed
from ppspeech.data.corpora.packing import write_packed, write_rows_packed
from ppspeech.data.corpora.synthetic import SyntheticCorpus
from ppspeech.data.corpus import LABELS, Corpus, Utterance
from ppspeech.data.encoding import publicly_encoded
from ppspeech.data.features import FeatureStore, write_features
from ppspeech.data.filtered import Filtering, read_filtering, write_filtering, write_manifest, write_sample
from ppspeech.data.layout import read_rows, whole_folder, write_rows
from ppspeech.data.normalization import normalizing, publicly_normalized
from ppspeech.data.overlap import check_disjoint
from ppspeech.data.registry import (
    corpus_names,
    load_corpus,
    load_table,
    options_for,
    register_corpus,
    table_names,
)
from ppspeech.data.samples import Level, Samples, inputs_of, load_samples, public_scale, scale_corpus
from ppspeech.data.sentences import Heard, Mark, Pieces, Sentence, heard_by, joined_sentences
from ppspeech.data.sound_check import usable
from ppspeech.data.splits import Split, hold_out, leave_one_speaker_out, split_by_speaker, split_by_take, split_official
from ppspeech.data.summary import CorpusSummary, plot_corpus, summarize

if TYPE_CHECKING:
    from ppspeech.data.datamodule import SentenceDataModule, SpeechDataModule

__all__ = [
    "LABELS",
    "Batch",
    "Corpus",
    "CorpusSummary",
    "FeatureStore",
    "Filtering",
    "Heard",
    "LengthBuckets",
    "Level",
    "Mark",
    "Pieces",
    "Samples",
    "Sentence",
    "SentenceDataModule",
    "SpeechDataModule",
    "Split",
    "SyntheticCorpus",
    "Utterance",
    "UtteranceDataset",
    "Vocabulary",
    "check_disjoint",
    "check_shared",
    "clips_by_speaker",
    "cohort_at",
    "collate",
    "corpus_names",
    "heard_by",
    "hold_out",
    "inputs_of",
    "joined_sentences",
    "leave_one_speaker_out",
    "load_corpus",
    "load_samples",
    "load_table",
    "normalizing",
    "numbered",
    "options_for",
    "plot_corpus",
    "public_scale",
    "publicly_encoded",
    "publicly_normalized",
    "read_filtering",
    "read_packed",
    "read_rows",
    "register_corpus",
    "scale_corpus",
    "split_by_speaker",
    "split_by_take",
    "split_official",
    "summarize",
    "table_names",
    "usable",
    "whole_folder",
    "write_features",
    "write_filtering",
    "write_manifest",
    "write_packed",
    "write_rows",
    "write_rows_packed",
    "write_sample",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in {"SentenceDataModule", "SpeechDataModule"}:
            return getattr(import_module(f"{__name__}.datamodule"), name)
        raise AttributeError(f"{__name__} has no {name!r}")
