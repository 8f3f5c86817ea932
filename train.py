"""Train a recipe: `python train.py fit --config configs/keyword_hmm.yaml`."""

import sys

from ppspeech.errors import PpspeechError
from ppspeech.training.recipe import main

if __name__ == "__main__":
    try:
        main()
    except PpspeechError as error:
        sys.exit(f"error: {error}")
