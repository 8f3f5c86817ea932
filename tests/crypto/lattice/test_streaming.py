"""Frames against an encrypted model, one by one and in steps of several."""

import numpy as np
import pytest

from ppspeech.crypto.lattice import (
    Evaluator,
    FrameSender,
    KeyHolder,
    error_bound,
    plan_stream,
    publish_model,
    receive_scores,
)
from ppspeech.errors import BadCiphertextError

KEY = KeyHolder()


@pytest.mark.parametrize(("features", "states", "frames"), [(90, 50, 1), (820, 50, 1), (90, 10, 4), (7, 2100, 1)])
def test_shares_of_each_step_add_up_to_its_scores(features: int, states: int, frames: int) -> None:
    chosen = plan_stream(features, states, frames)
    generator = np.random.default_rng(0)
    weights = generator.normal(size=(features, states))
    model = publish_model(KEY, chosen, weights)
    sender = FrameSender(Evaluator(KEY.public_key, KEY.coins), chosen, model)
    sender.prepare(2)
    assert len(model) == chosen.job.query_bytes
    scale = chosen.precision.result
    for _ in range(3):
        x = generator.normal(size=(frames, features))
        reply, mine = sender.send(x)
        theirs = receive_scores(KEY, chosen, reply)
        assert len(reply) == chosen.job.reply_bytes
        scores = scale.decode(scale.ring.to_signed(scale.ring.join(mine, theirs)))
        norms = np.abs(weights).sum(0).max(), np.abs(x).sum(1).max()
        assert (
            np.abs(scores - x @ weights).max()
            <= error_bound(chosen.precision, *norms, features, chosen.block_columns).total
        )


def test_a_keyword_frame_is_one_short_reply() -> None:
    chosen = plan_stream(820, 50)
    assert (chosen.job.terms, chosen.job.outputs) == (21, 1)
    assert chosen.job.query_bytes < 300_000
    assert chosen.job.reply_bytes < 8_500


def test_a_damaged_model_is_refused() -> None:
    chosen = plan_stream(20, 5)
    model = publish_model(KEY, chosen, np.zeros((20, 5)))
    with pytest.raises(BadCiphertextError):
        FrameSender(Evaluator(KEY.public_key, KEY.coins), chosen, model[:-1])
