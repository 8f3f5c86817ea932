"""Train a recipe: `python train.py fit --config configs/keyword_hmm.yaml`. It is `ppspeech train`, from a checkout."""

import sys

from ppspeech.cli import app

if __name__ == "__main__":
    app(["train", *sys.argv[1:]])
