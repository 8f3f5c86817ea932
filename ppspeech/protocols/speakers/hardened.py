"""Verification that an active client cannot bend: nothing it says after its voice changes the decision, except to no.

`verify` hands the client a share of the score, and a share can be shifted. Here it gets a residue that is
useless unless it is the right one. With x in levels of `level_bits` bits and the score s = sum of the set bits' parts:

    1. client, server one transfer (Diffie-Hellman, no extension) for every bit of the voice and of the claim
    2. server         for every voice bit and model, the step between its two pads: bit 0 opens r, bit 1 opens
                      r + part (1, α_1, α_2, α_3) mod 2^64, so that the client's sums are
                          p = s + R,    z_i = α_i s + R_i
    3. server         for every model and every p there can be, the label "yes" or "no" behind
                      H(z_1, z_2, z_3, key of the model, p); the claim's bits open the key of one model
    4. client         opens the row p of the model it claims and sends the label back; it cannot tell which it is

To open another row p + d, the client needs α_i d for all three i, which are secret and uniform: a multiple of d <= 2^16
leaves 48 bits of each α_i, 144 together. A label that was never opened is one of 2^128. Against a client that does
anything, and a server that follows the protocol. Which voice it sends remains the client's choice, as in any remote
biometry; all voices within the levels are scored without wrapping around.
"""

import hashlib
import hmac
from dataclasses import dataclass
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from ppspeech.arrays import Bytes, Reals, Residues
from ppspeech.channel import Channel
from ppspeech.crypto import uniform_bytes, uniform_residues
from ppspeech.crypto.shares import check_index
from ppspeech.crypto.transfer import ANSWER_BYTES, POINT_BYTES, choose_keys, offer_keys
from ppspeech.errors import ModelError, RangeError
from ppspeech.protocols.message_kinds import Kind
from ppspeech.protocols.party import Party, register_protocol
from ppspeech.protocols.scores.linear import LinearColumns
from ppspeech.protocols.speakers.verify import say

LABEL = 16
WORDS = 4  # of a pad for one model: one that points to a row, three that open it


@dataclass(frozen=True)
class HardenedTerms:
    """What both parties know of a hardened verification.

    Attributes:
        models: how many are offered; the claimed one hides among them.
        limit: public bound on the magnitude of each number.
        level_bits: the numbers are rounded to 2^level_bits levels between -limit and limit.
        score_bits: rows of a model's table, as a power of two.
        reach: scores stay within ±2^reach.
    """

    features: int
    models: int
    limit: float = 0.25
    level_bits: int = 6
    score_bits: int = 14
    reach: int = 2

    def __post_init__(self) -> None:
        if self.features < 1 or self.models < 1:
            raise ModelError(f"a plan has features and models, got {self}")
        if not self.limit > 0 or not 1 <= self.level_bits <= 12 or not 2 <= self.score_bits <= 16:
            raise RangeError(f"levels have 1 to 12 bits within a limit > 0, tables 2^2 to 2^16 rows, got {self}")

    @property
    def step(self) -> float:
        """Between two levels."""
        return 2 * self.limit / ((1 << self.level_bits) - 1)

    @property
    def unit(self) -> float:
        """Of a score."""
        return float(2.0 ** (self.reach + 1 - self.score_bits))

    @property
    def voice_bits(self) -> int:
        """Transfers for the embedding."""
        return self.features * self.level_bits

    @property
    def claim_bits(self) -> int:
        """Transfers for the claim."""
        return (self.models - 1).bit_length()

    @property
    def bytes_up(self) -> int:
        """What the client sends: two points for each transfer, and a label."""
        return ANSWER_BYTES * (self.voice_bits + self.claim_bits) + LABEL

    @property
    def bytes_down(self) -> int:
        """What the server sends: a point, pads' steps, and tables."""
        return POINT_BYTES + self.models * (8 * WORDS * self.voice_bits + (LABEL << self.score_bits))

    def levels(self, embedding: Reals) -> NDArray[np.bool_]:
        """The bits of an embedding's levels, `(features * level_bits,)`. Raises RangeError if it is not within them."""
        given = np.asarray(embedding, np.float64)
        if given.shape != (self.features,) or not (np.abs(given) <= self.limit).all():
            raise RangeError(f"an embedding is {self.features} numbers within ±{self.limit}: clip it before")
        level = np.rint((given + self.limit) / self.step).astype(np.int64)
        return ((level[:, None] >> np.arange(self.level_bits)) & 1).astype(np.bool_).reshape(-1)


hardened = register_protocol(
    "speaker_verification_hardened",
    functionality="whether the client's embedding is accepted as the enrolled speaker it claims to be, to the server",
    leakage="how many models there are; the server learns that some enrolled speaker was claimed",
    assumptions="the server follows the protocol, the client may do anything; Diffie-Hellman on ed25519, AES, SHA-256 "
    "an oracle",
    terms=HardenedTerms,
)


@dataclass(frozen=True, eq=False)
class HardenedScorer:
    """The server's side; `of` makes one.

    Attributes:
        parts: what each bit adds to a model's score, `(voice_bits, models)`, in units.
        constants: scores of all bits zero, threshold taken off, `(models,)`.
        error: how far a score can be from the plain one.
    """

    plan: HardenedTerms
    parts: NDArray[np.int64]
    constants: NDArray[np.int64]
    error: float

    @staticmethod
    def of(plan: HardenedTerms, columns: LinearColumns, threshold: float) -> "HardenedScorer":
        """From models in the clear, Z-normed if they are; T-norm is not offered here.

        Raises RangeError if any embedding within the levels could leave the range of scores; ModelError if the models
        are not those of the plan, or have a cohort.
        """
        if columns.models.shape != (plan.features, plan.models) or columns.cohort.shape[1]:
            raise ModelError(f"{plan} takes weights of shape {(plan.features, plan.models)} and no cohort")
        places = 2.0 ** np.arange(plan.level_bits) * plan.step / plan.unit
        parts = np.rint(columns.models[:, None, :] * places[:, None]).astype(np.int64).reshape(-1, plan.models)
        lowest = columns.bias - threshold - plan.limit * columns.models.sum(axis=0)
        constants = np.rint(lowest / plan.unit).astype(np.int64)
        highest = constants + np.maximum(parts, 0).sum(axis=0)
        deepest = constants + np.minimum(parts, 0).sum(axis=0)
        half = 1 << (plan.score_bits - 1)
        if highest.max() >= half or deepest.min() < -half:
            raise RangeError(
                f"scores can lie between {deepest.min() * plan.unit:.3g} and {highest.max() * plan.unit:.3g}, and the "
                f"plan has room for ±{2.0**plan.reach:g}: raise its reach or lower its limit"
            )
        rounded = plan.step / 2 * np.abs(columns.models).sum(axis=0).max() + plan.unit / 2 * (len(parts) + 1)
        return HardenedScorer(plan, parts, constants, float(rounded))


def prove_as_client(channel: Channel, plan: HardenedTerms, embedding: Reals, claimed: int) -> None:
    """The client's program; the decision is the server's. Raises RangeError for a bad voice or claim, nothing sent."""
    voice = plan.levels(embedding)
    check_index(claimed, plan.models)
    claim = (claimed >> np.arange(plan.claim_bits) & 1).astype(np.bool_)
    keys, _ = choose_keys(channel, np.concatenate([voice, claim]))  # 1
    pads = _pads(keys[: plan.voice_bits], plan.models)
    steps = channel.receive(Kind.MASKED_INPUTS, 8 * pads.size)  # 2
    pads[voice] += np.frombuffer(steps, "<u8").reshape(pads.shape)[voice]
    sums = pads.sum(axis=0, dtype=np.uint64)[claimed]
    tables = channel.receive(Kind.DECISION_TABLE, plan.models * LABEL << plan.score_bits)  # 3
    row = int(sums[0]) & ((1 << plan.score_bits) - 1)
    at = LABEL * ((claimed << plan.score_bits) + row)
    opener = _row_keys(sums[None, 1:], _model_key(keys[plan.voice_bits :], claimed), np.array([row]))
    label = np.frombuffer(tables[at : at + LABEL], np.uint8) ^ opener[0]
    channel.send(Kind.DECISION, label.tobytes())  # 4


def judge_as_server(channel: Channel, scorer: HardenedScorer) -> bool:
    """The server's program: the decision; whatever is not the label of "yes" is a no."""
    plan = scorer.plan
    keys, _ = offer_keys(channel, plan.voice_bits + plan.claim_bits)  # 1
    none, one = (_pads(keys[: plan.voice_bits, bit], plan.models) for bit in (0, 1))
    secrets = np.ones((plan.models, WORDS), np.uint64)
    secrets[:, 1:] = uniform_residues((plan.models, WORDS - 1))
    parts = scorer.parts.view(np.uint64)[:, :, None] * secrets
    channel.send(Kind.MASKED_INPUTS, (none + parts - one).astype("<u8").tobytes())  # 2
    masks = none.sum(axis=0, dtype=np.uint64)
    yes, no = (np.frombuffer(uniform_bytes(LABEL), np.uint8) for _ in range(2))
    claims = keys[plan.voice_bits :]
    tables = []
    for model in range(plan.models):
        rows = np.arange(1 << plan.score_bits, dtype=np.uint64)
        score = _signed(rows - masks[model, 0] + np.uint64(scorer.constants[model]), plan.score_bits)
        sums = (score - scorer.constants[model]).view(np.uint64)
        openers = sums[:, None] * secrets[model, 1:] + masks[model, 1:]
        chosen = claims[np.arange(plan.claim_bits), (model >> np.arange(plan.claim_bits)) & 1]
        hidden = _row_keys(openers, _model_key(chosen, model), rows)
        tables.append(hidden ^ np.where((score >= 0)[:, None], yes, no))
    channel.send(Kind.DECISION_TABLE, np.concatenate(tables).tobytes())  # 3
    return hmac.compare_digest(channel.receive(Kind.DECISION, LABEL), yes.tobytes())  # 4


def _pads(keys: Bytes, models: int) -> Residues:
    """Uniform residues from keys `(count, 16)`: `(count, models, 4)`."""
    size = 8 * WORDS * models
    streams = [
        Cipher(algorithms.AES(key.tobytes()), modes.CTR(bytes(16))).encryptor().update(bytes(size)) for key in keys
    ]
    return np.frombuffer(b"".join(streams), "<u8").astype(np.uint64).reshape(len(keys), models, WORDS)


def _model_key(keys: Bytes, model: int) -> bytes:
    """The key of a model's table, from the transfers' keys `(claim_bits, 16)` at the bits of its number."""
    return hashlib.sha256(b"ppspeech claim" + model.to_bytes(4, "big") + keys.tobytes()).digest()


def _row_keys(openers: Residues, key: bytes, rows: NDArray[np.integer[Any]]) -> Bytes:
    """What hides each row's label, `(rows, 16)`."""
    digests = [
        hashlib.sha256(key + int(row).to_bytes(4, "big") + opener.tobytes()).digest()[:LABEL]
        for row, opener in zip(rows, openers.astype("<u8"), strict=True)
    ]
    return np.frombuffer(b"".join(digests), np.uint8).reshape(-1, LABEL)


def _signed(residues: Residues, bits: int) -> NDArray[np.int64]:
    spare = np.uint64(64 - bits)
    moved: NDArray[np.int64] = (residues << spare).view(np.int64)
    return moved >> np.int64(64 - bits)


@hardened.party("client")
def client(party: Party, embedding: list[float], claimed: int, /, **terms: Any) -> str:
    """Prove once."""
    prove_as_client(party.channel, HardenedTerms(**terms), np.asarray(embedding), claimed)
    return "the server knows"


@hardened.party("server")
def server(party: Party, models: list[list[float]], threshold: float, /, **terms: Any) -> str:
    """Judge once, for models, one row a speaker."""
    scorer = HardenedScorer.of(HardenedTerms(**terms), LinearColumns.of(np.asarray(models).T), threshold)
    return say(judge_as_server(party.channel, scorer))
