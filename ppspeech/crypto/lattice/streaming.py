"""The matrix product with the roles turned round: the model travels once, encrypted; frames are answered as they come.

The model's owner holds the key and publishes its matrix, encrypted. The frames' owner multiplies each frame into it,
hides and masks the result, and sends one short reply; both get a share of the frame's scores. The first answer does not
wait for the last frame. Here X of `matrix_product` is the model transposed, `(states, features)`.
"""

from ppspeech.arrays import Reals, Residues
from ppspeech.crypto.lattice.evaluator import Evaluator, ReplyMask
from ppspeech.crypto.lattice.job import Precision
from ppspeech.crypto.lattice.key_holder import KeyHolder
from ppspeech.crypto.lattice.matrix_product import (
    MatrixPlan,
    client_finish,
    client_query,
    encode_weights,
    plan_product,
    server_reply,
)


def plan_stream(features: int, states: int, frames: int = 1, precision: Precision | None = None) -> MatrixPlan:
    """The plan that wastes least a step: as few reply polynomials as can be, since the model is sent only once.
    `precision`: `limit` bounds the model's numbers, `weights` is the scale of the frames'.
    """
    chosen = precision or Precision()
    degree = chosen.parameters.degree
    if states * frames > degree:
        return plan_product(states, features, frames, chosen)
    block = min(features, degree // (states * frames))
    terms = -(-features // block)
    return MatrixPlan(states, features, frames, chosen, states, -(-features // terms), frames)


def publish_model(key: KeyHolder, plan: MatrixPlan, weights: Reals) -> bytes:
    """Once, model's owner: the matrix `(features, states)`, encrypted. Raises RangeError beyond the public limit."""
    return client_query(key, plan, weights.T)


class FrameSender:
    """The frames' side: the encrypted model, ready to be multiplied. Raises BadCiphertextError if the model is
    malformed or of another plan, WrongKeyError if it is under another key.
    """

    def __init__(self, evaluator: Evaluator, plan: MatrixPlan, model: bytes) -> None:
        self.evaluator = evaluator
        self.plan = plan
        self._model = evaluator.load(plan.job, model)

    def prepare(self, steps: int) -> None:
        """Offline: encryptions of zero for so many steps."""
        self.evaluator.prepare(self.plan.job, steps)

    def send(self, frames: Reals, mask: ReplyMask | None = None) -> tuple[bytes, Residues]:
        """What goes to the model's owner, and our share of the scores, for frames `(frames, features)`; that of
        `share_before`, transposed, for a `mask` that was drawn before.
        """
        factors = encode_weights(self.plan, frames.T)
        reply, share = server_reply(self.evaluator, self.plan, factors, self._model, mask=mask)
        return reply, share.T


def receive_scores(key: KeyHolder, plan: MatrixPlan, reply: bytes) -> Residues:
    """A step, model's owner: its share of the scores, shape `(frames, states)`. Raises BadCiphertextError if the reply
    is malformed or of another plan, WrongKeyError if it is for another key.
    """
    return client_finish(key, plan, reply).T
