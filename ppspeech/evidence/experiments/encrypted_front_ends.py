"""Words of models with every normalization of features, under encryption and in the clear, beside what the plan says.

Features that are not normalized reach far from 0. Both ways of computing clip them alike, at limits from the front end
and the model, so that their answers are the same for every clip.

Needs the corpus fsdd; --quick takes about 50 s.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from ppspeech.audio import MfccConfig, in_usual_range
from ppspeech.bundle import BundleConfig, KeywordHmmSettings, Recognizer
from ppspeech.data import load_corpus, publicly_normalized, split_official
from ppspeech.evidence.experiments import EXPERIMENTS
from ppspeech.evidence.experiments.encrypted_fsdd import AT_ONCE, encrypted_scores
from ppspeech.evidence.experiments.fsdd import PLAIN, STATES, train_bank
from ppspeech.evidence.spoken import Spoken
from ppspeech.figures import Figure
from ppspeech.progress import track
from ppspeech.service import Deployment, error_budget, export_words

CLIPS = 60


@EXPERIMENTS.register("encrypted-front-ends")
def run(quick: bool, folder: Path) -> list[Figure]:  # noqa: ARG001
    """Train on FSDD with each front end, then score 60 clips of its official test both ways.

    The public means and deviations are those of the built-in voices. `quick`: a third of the training clips.
    """
    kept = replace(PLAIN, level="keep", cmvn="none")
    front_ends = {
        "cmvn_none": kept,
        "cmvn_none_peak": replace(kept, level="peak"),
        "cmvn_utterance": PLAIN,
        "cmvn_public": publicly_normalized(kept),
    }
    return [
        figure
        for name, mfcc in track(list(front_ends.items()), "Front ends")
        for figure in _compare(name, mfcc, third=quick)
    ]


def _compare(name: str, mfcc: MfccConfig, *, third: bool) -> list[Figure]:
    corpus = load_corpus("fsdd")
    official = split_official(corpus)
    train = official.train.select(lambda u: u.take % 3 == 0) if third else official.train
    bank = train_bank(Spoken.of(train, mfcc, corpus.words), iterations=5)
    test = Spoken.of(official.test, mfcc, corpus.words)
    test = test.where(torch.arange(0, len(test.words), len(test.words) // CLIPS)[:CLIPS])
    clips = [x[:length] for x, length in zip(test.features, test.lengths.tolist(), strict=True)]
    models = export_words("keyword_hmm", bank, corpus.words, Deployment(frames=int(test.lengths.max())), mfcc)
    sent = [in_usual_range(clip, mfcc) for clip in clips]
    parts = [sent[at : at + AT_ONCE] for at in range(0, len(sent), AT_ONCE)]
    found = np.concatenate([encrypted_scores(models, part) for part in parts])
    settings = KeywordHmmSettings(
        states=STATES, components=1, covariance="full", floor=1e-2, skips=0, must_finish=False
    )
    plain = Recognizer.of(bank, BundleConfig(settings, corpus.words, mfcc)).score(clips).double().numpy()
    said = test.words.numpy()
    right = [int((scores.argmax(1) == said).sum()) for scores in (found, plain)]
    error, stated = float(np.sqrt(((found - plain) ** 2).mean())), error_budget(models).score
    reach = float(torch.cat(clips).abs().max())
    clipped = float((np.abs(np.concatenate(sent)) > models.shape.limit).mean())
    return [
        Figure.count(
            f"encrypted.{name}.flips",
            int((found.argmax(1) != plain.argmax(1)).sum()),
            len(clips),
            "utterances",
            note=f"of {len(clips)} clips; features reach {reach:.0f}, {clipped:.2%} of them clipped",
        ),
        Figure.share(
            f"encrypted.{name}.accuracy", right[0], len(clips), "utterances", "in the clear", right[1] / len(clips)
        ),
        Figure(
            f"encrypted.{name}.rms_error_nat",
            error,
            "nat",
            "stated by encrypt-plan",
            stated.typical,
            note=f"of a score; at most {float(np.abs(found - plain).max()):.2g}, stated at worst {stated.certain:.3g}",
        ),
    ]
