"""Compile before the first client comes: what numba compiles in this process, every session's process inherits."""

from functools import cache

import numpy as np

from ppspeech.channel import Channel
from ppspeech.network import run_together
from ppspeech.protocols import meet_as_client, meet_as_server
from ppspeech.protocols.scores import WordModels, WordShape
from ppspeech.protocols.words import KeywordJob, answer, encode_models, recognize


@cache
def warm_up() -> None:
    """Once a process, run both parties of a tiny recognition by each operation; its models and keys are dropped."""
    for operation in ("forward", "viterbi"):
        shape = WordShape(3, 1, "diagonal", words=2, states=2, ends=(1,), operation=operation)
        weights = np.zeros((shape.monomials, shape.columns))
        models = WordModels(shape, weights, np.zeros((2, 2, 2)), np.zeros((2, 1)), ("a", "b"))
        job = KeywordJob(shape)

        def ask(channel: Channel, job: KeywordJob = job) -> None:
            met = meet_as_client(channel)
            with met.session():
                recognize(met, job, [np.zeros((3, 1))])

        def help_client(channel: Channel, job: KeywordJob = job, models: WordModels = models) -> None:
            met = meet_as_server(channel)
            with met.session():
                answer(met, job, models, encode_models(models))

        run_together(ask, help_client)
