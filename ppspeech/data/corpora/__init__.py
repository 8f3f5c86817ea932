"""Speech corpora, one file each."""

from ppspeech.data.corpora.audiomnist import load_audiomnist
from ppspeech.data.corpora.fsdd import DIGIT_WORDS, load_fsdd
from ppspeech.data.corpora.synthetic import DIGITS

__all__ = ["DIGITS", "DIGIT_WORDS", "load_audiomnist", "load_fsdd"]
