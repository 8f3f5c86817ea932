"""Words of one's own, from a few clips of each, on a public speech embedding."""

from ppspeech.training.own_words.background import Background, Stream
from ppspeech.training.own_words.built_in import built_in_background
from ppspeech.training.own_words.calibration import Calibration, alarms_in, calibrated, evened
from ppspeech.training.own_words.clips import WordClips, background_at
from ppspeech.training.own_words.examples import CHANGES, word_examples
from ppspeech.training.own_words.learn import LearnedWords, WordPrivacy, learn_words

__all__ = [
    "CHANGES",
    "Background",
    "Calibration",
    "LearnedWords",
    "Stream",
    "WordClips",
    "WordPrivacy",
    "alarms_in",
    "background_at",
    "built_in_background",
    "calibrated",
    "evened",
    "learn_words",
    "word_examples",
]
