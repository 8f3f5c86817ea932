"""LightningModules and callbacks: where models, data and privacy meet."""

from ppspeech.training.classes import LargeMarginClassifier
from ppspeech.training.confusion import Confusion
from ppspeech.training.embedded import EmbeddedWords, fit_head
from ppspeech.training.filters import FilterRecipe, LearnedFilter, learn
from ppspeech.training.minimax import AdversarialSolver, MinimaxFilter
from ppspeech.training.module import SpeechModule, Trained, quiet_lightning
from ppspeech.training.networks import CtcNetwork, SentenceNetwork, WordNetwork, aligned_states
from ppspeech.training.own_words import Background, LearnedWords, WordPrivacy, built_in_background, learn_words
from ppspeech.training.private import PrivacyHook, fit_privately
from ppspeech.training.recipe import audited_recipe, run_recipe
from ppspeech.training.release import export_checkpoint, load_checkpoint, release
from ppspeech.training.sentences import SentenceModels, language_model
from ppspeech.training.speakers import SpeakerUbm
from ppspeech.training.voices import learn_voices
from ppspeech.training.words import POOLED, WordModels, public_bank, public_utterances

__all__ = [
    "POOLED",
    "AdversarialSolver",
    "Background",
    "Confusion",
    "CtcNetwork",
    "EmbeddedWords",
    "FilterRecipe",
    "LargeMarginClassifier",
    "LearnedFilter",
    "LearnedWords",
    "MinimaxFilter",
    "PrivacyHook",
    "SentenceModels",
    "SentenceNetwork",
    "SpeakerUbm",
    "SpeechModule",
    "Trained",
    "WordModels",
    "WordNetwork",
    "WordPrivacy",
    "aligned_states",
    "audited_recipe",
    "built_in_background",
    "export_checkpoint",
    "fit_head",
    "fit_privately",
    "language_model",
    "learn",
    "learn_voices",
    "learn_words",
    "load_checkpoint",
    "public_bank",
    "public_utterances",
    "quiet_lightning",
    "release",
    "run_recipe",
]
