"""Models that are with the client, encrypted under a key of the server's, so that frames are scored as they are spoken.

The server opens what a client sends with its own key, and a client that sends something else than scores makes its
answer depend on the key: an answer tells it at most as many bits as it has. So every meeting has a key of its own,
which is replaced by a new one long before it would be known.
"""

from dataclasses import dataclass

from ppspeech.arrays import Reals
from ppspeech.crypto.lattice import Evaluator, FrameSender, KeyHolder, MatrixPlan, key_length, publish_model
from ppspeech.errors import RangeError
from ppspeech.protocols.meeting import Meeting
from ppspeech.protocols.message_kinds import Kind


@dataclass(frozen=True, slots=True)
class Streamed:
    """What both know: the encrypted product of a step, and the bits of an answer. Raises RangeError for answers that
    tell more than a key can lose.
    """

    plan: MatrixPlan
    answer_bits: int

    def __post_init__(self) -> None:
        most = self.plan.precision.parameters.leakable_bits
        if self.answer_bits > most:
            raise RangeError(
                f"an answer of {self.answer_bits} bits could tell more of the server's key than the {most} that it "
                "can lose: listen to shorter utterances"
            )

    @property
    def answers_a_key(self) -> int:
        """Utterances that one key of the server answers."""
        return self.plan.precision.parameters.leakable_bits // self.answer_bits

    def needs_key(self, answers: int) -> bool:
        """Whether a new key is made after so many answers of a meeting."""
        return answers % self.answers_a_key == 0

    @property
    def model_bytes(self) -> int:
        """What the server sends for one key: its public half and encrypted models."""
        return key_length(self.plan.precision.parameters) + self.plan.job.query_bytes


class GivenModels:
    """The server's weights, `(monomials, scores)`, in one meeting, encrypted under a key of its own."""

    def __init__(self, streamed: Streamed, weights: Reals) -> None:
        self._streamed, self._weights, self._answers = streamed, weights, 0

    def give(self, met: Meeting) -> None:
        """Before each utterance: send the encrypted models where it is the first with their key. Raises RangeError if a
        weight is beyond the public limit.
        """
        if self._streamed.needs_key(self._answers):
            plan = self._streamed.plan
            self.key = KeyHolder(plan.precision.parameters, _coins(met, self._answers))
            met.channel.send(Kind.MODEL, self.key.public_key + publish_model(self.key, plan, self._weights))
        self._answers += 1


class TakenModels:
    """The client's, as `GivenModels.give` sends them."""

    def __init__(self, streamed: Streamed) -> None:
        self._streamed, self._answers = streamed, 0

    def take(self, met: Meeting) -> FrameSender:
        """Before each utterance: what to multiply its frames into. Raises BadCiphertextError if the models are
        malformed or of another plan.
        """
        if self._streamed.needs_key(self._answers):
            plan = self._streamed.plan
            ring = plan.precision.parameters
            message = met.channel.receive(Kind.MODEL, self._streamed.model_bytes)
            key, model = message[: key_length(ring)], message[key_length(ring) :]
            self._sender = FrameSender(Evaluator(key, _coins(met, self._answers), ring), plan, model)
        self._answers += 1
        return self._sender


def _coins(met: Meeting, answers: int) -> bytes:
    """Of the key that is made after so many utterances of a meeting."""
    return met.setup.id + b"models" + answers.to_bytes(8, "big")
