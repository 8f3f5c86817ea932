"""One run of training together with canaries, against the worst coalition: the curator and all parties but one."""

import copy

import numpy as np
import torch

from ppspeech.arrays import Whole
from ppspeech.errors import PrivacyError
from ppspeech.privacy.audit import coins
from ppspeech.privacy.mechanisms import UnitSums
from ppspeech.training.audit.canaries import Canaries
from ppspeech.training.audit.run import CanaryRun, explained
from ppspeech.training.private.statistics import hmm_moments
from ppspeech.training.together.statistics import WordTraining, statistics_shares


def audit_joint_words(terms: WordTraining, canaries: int) -> CanaryRun:
    """Two users train word models: one has the canaries, the other colludes and takes its own noise off every sum.

    Raises PrivacyError for terms that protect a speaker: every user is one, and two are too few canaries.
    """
    if terms.unit != "utterance":
        raise PrivacyError(f"canaries of training together are utterances, the terms protect a {terms.unit}")
    start = terms.start()
    chosen = Canaries.around(start, terms.words, canaries, said=1)
    included = coins(canaries)
    here = [i for i, owner in enumerate(chosen.owners.tolist()) if included[owner]]
    given = {"utterances": [chosen.features[i] for i in here], "words": [terms.words[chosen.labels[i]] for i in here]}
    release = terms.release(terms.transition_share)
    shares = statistics_shares(release, 2, terms.dimension, terms.colluders)
    seen: list[Whole] = []

    def add_up(noisy: Whole) -> Whole:
        seen.append(noisy)
        return noisy + shares.share()

    fit = terms.fit(add_up, 2, 0, given)
    batch = chosen.batch("word")
    moments = hmm_moments(copy.deepcopy(start), batch["features"], batch["lengths"], batch["word"])
    white = np.zeros(canaries)
    for place in range(canaries):
        rows = chosen.owners == place
        sums = UnitSums(release, 1)
        parts = type(moments)(*(part[rows] for part in moments.parts))
        sums.add(parts, batch["lengths"][rows], torch.zeros(int(rows.sum()), dtype=torch.long))
        white[place] = sum(float(sums.total().double().numpy() @ noisy) for noisy in seen)
    gained = explained(fit.module, batch, "word") - explained(start, batch, "word")
    black = torch.zeros(canaries, dtype=torch.float64).index_add_(0, chosen.owners, gained)
    return CanaryRun(included, white, black.numpy(), fit.guarantee, fit.account)
