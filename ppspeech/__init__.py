"""Private speech processing in PyTorch.

Importing this package loads nothing heavy; each room imports what it uses::

    from ppspeech.audio import Mfcc, read_audio
    from ppspeech.data import load_corpus
"""

__version__ = "0.1.0"
