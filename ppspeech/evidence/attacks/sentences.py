"""Clients of sentences that want the models: by frames of their choice, shifted shares, and lengths that are none."""

import numpy as np

from ppspeech.arrays import Reals
from ppspeech.crypto.transfer import Side
from ppspeech.errors import ProtocolError
from ppspeech.evidence.attacks import Gain, Target, attack
from ppspeech.evidence.attacks.target import Victim, made_frames
from ppspeech.protocols import meet
from ppspeech.protocols.scores import monomials_of
from ppspeech.protocols.sentences import (
    SentenceArrays,
    follow_words,
    prepare,
    product_plan,
)
from ppspeech.service import Ask, Request, send_request

ASKED = (Ask.SENTENCE, Ask.STREAM)
ENOUGH = 1.3  # equations a weight
NEW_FRAMES = 2_000
LUCK = 0.5  # a copy that agrees with the model in more frames than chance by this part of the rest has it


def copied(models: SentenceArrays, frames: Reals, shares: Reals) -> float:
    """How well a copy does that is fitted to what a client was given of chosen frames: the part of new frames in which
    both have the same best state, 0 where it is as good as the model's most usual one, 1 where it always is.

    Scores wrap around, and differences of columns do not: the copy is of these.
    """
    shape = models.shape
    whole = float(1 << shape.bits)
    apart = (shares - shares[:, :1]) % whole
    nats = np.where(apart >= whole / 2, apart - whole, apart) / 2.0**shape.fraction
    copy = np.linalg.lstsq(monomials_of(shape.clipped(frames), shape.terms), nats, rcond=None)[0]
    new = np.random.default_rng(1).normal(size=(NEW_FRAMES, shape.dimensions))
    seen = monomials_of(shape.clipped(new), shape.terms)
    best = (seen @ models.weights).argmax(axis=1)
    usual = np.bincount(best).max() / NEW_FRAMES
    agreed = float(((seen @ copy).argmax(axis=1) == best).mean())
    return max(0.0, float((agreed - usual) / max(1e-9, 1 - usual)))


@attack(
    "chosen_frames", "every weight of the models, by as many frames of its choice as a state has", tasks=("sentences",)
)
def chosen_frames(target: Target) -> Gain:
    """Whoever is given the scores of a frame has an equation for the weights of every state, and 830 frames solve all
    of a usual model. A client of the service is given a share of each score: it solves these.
    """
    victim = target.usual
    models = target.sentences_of(victim)
    shape, drawn = victim.offer.terms.shape, np.random.default_rng(0)
    wanted, shares = int(ENOUGH * shape.monomials) + 8, list[Reals]()
    frames: list[Reals] = []
    plan, asked = product_plan(shape), 0
    with victim.session() as channel:
        met = meet(channel, Side.SECOND)
        while sum(map(len, frames)) < wanted:
            chosen = 2 * drawn.normal(size=(shape.frames, shape.dimensions))
            send_request(channel, Request(Ask.SENTENCE, steps=victim.offer.terms.steps[-1]))
            with met.session():
                engine = prepare(met, shape)
                share = met.multiply(plan, shape.padded_monomials(chosen))
                follow_words(engine, shape, None, share, len(chosen))
            frames.append(chosen)
            shares.append(share.astype(np.float64))
            asked += 1
    told = copied(models, np.concatenate(frames), np.concatenate(shares))
    note = f"a copy fitted to {sum(map(len, frames)):,} frames agrees with the model in {told:.1%} of what luck leaves"
    return Gain(told, "of the model", asked, told > LUCK, note)


@attack(
    "shifted_scores",
    "words of the client's choice, by shares of their scores that are shifted",
    tasks=("sentences",),
    stated=True,
)
def shifted_scores(target: Target) -> Gain:
    """One query a state, in one session: shares are not authenticated, and the state whose score is raised wins. What
    an answer tells is as many records as it has, of the client's choice; more would be more than is stated.
    """
    victim = target.usual
    shape = victim.shape
    told, most = set[str](), 0
    asked = min(shape.scores, 2 if target.quick else 20)
    with victim.session() as channel:
        met, frames = meet(channel, Side.SECOND), made_frames(victim)
        frames = np.repeat(frames, 2, axis=0)[: shape.frames]
        for column in range(asked):
            send_request(channel, victim.request)
            with met.session():
                engine = prepare(met, shape)
                share = met.multiply(product_plan(shape), shape.padded_monomials(frames))
                share[:, column] += np.uint64(1 << (shape.bits - 3))
                heard = follow_words(engine, shape, None, shape.scale.ring.reduce(share), len(frames)) or []
            most = max(most, len(heard))
            told.update(each.word for each in heard if each.word)
    note = f"{len(told)} different words in {asked} queries, up to {most} records in one; {shape.most_words} are stated"
    return Gain(len(told), "words", asked, most > shape.most_words, note)


@attack("forged_lengths", "an answer of a length that is not offered", tasks=("sentences",))
def forged_lengths(target: Target) -> Gain:
    """Questions of more steps than there are, of fewer than the shortest has, and of several sentences at once; whole
    ones, and such as are to be heard while somebody speaks.
    """
    victim = target.usual
    steps = victim.offer.terms.steps
    lengths = {"one step too many": steps[-1] + 1, "as many as can be said": 2**16 - 1}
    if steps[0] > 1:
        lengths["fewer than the shortest has"] = steps[0] - 1
    forged = [
        (f"{what}, {ask.name.lower()}", Request(ask, steps=size)) for what, size in lengths.items() for ask in ASKED
    ]
    forged.append(("two at once", Request(Ask.SENTENCE, utterances=2, steps=steps[0])))
    taken = [what for what, request in forged if _is_taken(victim, request)]
    note = f"taken: {', '.join(taken)}" if taken else f"none of {len(forged)} was taken"
    return Gain(len(taken), "questions", len(forged), bool(taken), note)


def _is_taken(victim: Victim, request: Request) -> bool:
    try:
        with victim.session() as channel:
            meet(channel, Side.SECOND)
            send_request(channel, request)
    except ProtocolError:
        return False
    return True
