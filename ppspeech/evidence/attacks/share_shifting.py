"""A client that adds to its own share of one candidate's score: shares are not authenticated, so that candidate wins.

Stated: a query tells at most as many bits as name a candidate, but of the client's choice (Limit 2.5 in
docs/theory/asking.md).
"""

import numpy as np

from ppspeech.crypto.transfer import Side
from ppspeech.evidence.attacks import Gain, Target, attack
from ppspeech.evidence.attacks.target import made_frames
from ppspeech.protocols import meet
from ppspeech.protocols.words import KeywordJob, name_best, share_scores
from ppspeech.service import Ask, Request, send_request


@attack("share_shifting", "the labels, by a share of a score that is shifted", stated=True)
def share_shifting(target: Target) -> Gain:
    """One query a candidate, in one session; more labels than queries would be more than is stated."""
    victim = target.usual
    with victim.session() as channel:
        job, met = KeywordJob(victim.offer.terms.shape), meet(channel, Side.SECOND)
        shape, frames = job.shape, made_frames(victim)
        last = np.array([len(frames) - shape.shortest])
        asked = min(shape.candidates, 2 if target.quick else 20)
        told: set[str | None] = set()
        for candidate in range(asked):
            send_request(channel, Request(Ask.WORDS))
            with met.session():
                engine = job.prepare(met)
                scores = job.by_utterance(met.multiply(job.plan, shape.padded_monomials(frames)))
                with engine.in_flights():
                    shares = share_scores(engine, job, None, scores, last)
                    shares[:, candidate] += np.uint64(1 << (shape.bits - 2))
                    told.update(name_best(engine, shape, None, shares) or ())
    labels = told - {None}
    note = f"{len(labels)} different labels in {asked} queries; the model has {shape.words}"
    return Gain(len(labels), "labels", asked, len(labels) > asked, note)
