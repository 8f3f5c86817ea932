"""Verification that an active client cannot bend: whatever it sends, the decision is that of one code and one place.

`verify` hands the client a share of the score, and a share can be shifted; its vector may be of any length. Here a
voice is a code x of signs (`codes`), none longer than another, and what the client holds is useless unless it is the
right one. Let w_u be the code of place u, t_u how many bits must agree with it, s the number that do, less t_u.

    1. client, server  offline: a transfer for every bit of a claim and of a code, of random choices
    2. client          its claim, masked with the choices
    3. server          a record for every place u, under a key that the claim's transfers open for one u; ρ masks all
                           w_u ⊕ ρ    and    (zeros of ρ - t_u) (1, α_1, α_2) + Q   mod 2^64
    4. client          h = x ⊕ (w_u ⊕ ρ), masked with the choices; bits agree where h = ρ
    5. server          for every bit the step between its two pads: 0 opens r, 1 opens r ± (1, α_1, α_2), + where ρ is
                       1, so that the client's sums are    p = s + R,    z_i = α_i s + R_i;
                       and for every s there can be, the label "yes" or "no" behind H(z_1, z_2, p)
    6. client          the label of its row p; it cannot tell which it is

Against a client that does anything, and a server that follows the protocol: whatever h it asks for is that of the code
x = h ⊕ (w_u ⊕ ρ), where w_u ⊕ ρ is uniform to it. To open another row p + d, it needs α_1 d and α_2 d, which are secret
and uniform: a multiple of d < 2^14 leaves 51 bits of each, 102 together. A label that was never opened is one of 2^128.
Which voice it sends remains the client's choice, as in any remote biometry. Proof: Theorem 2.6 in
docs/theory/asking.md.
"""

import hashlib
import hmac
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Bytes, Reals
from ppspeech.channel import Channel
from ppspeech.crypto import uniform_bytes, uniform_residues
from ppspeech.crypto.shares import check_index
from ppspeech.crypto.transfer import BlockHash, Code, PairSetup, Side
from ppspeech.errors import ModelError, RangeError
from ppspeech.protocols.message_kinds import Kind
from ppspeech.protocols.party import Party, register_protocol
from ppspeech.protocols.speakers.codes import least_agreeing, voice_codes
from ppspeech.protocols.speakers.decision_rows import WORDS, in_order, receive_steps, row_pads, send_steps
from ppspeech.protocols.speakers.verify import say

LABEL = 16
BLOCK = 16
MOST_BITS = 8192
MANY = 2000  # models


@dataclass(frozen=True)
class HardenedTerms:
    """What both parties know of a hardened verification.

    Attributes:
        models: how many are offered; the claimed one hides among them.
        bits: of a code, a power of two, 64 to 8192; the more, the closer numbers of agreeing bits are to cosines.
    """

    features: int
    models: int
    bits: int = MOST_BITS

    def __post_init__(self) -> None:
        if self.features < 1 or self.models < 1:
            raise ModelError(f"a plan has features and models, got {self}")
        if not 64 <= self.bits <= MOST_BITS or self.bits & (self.bits - 1):
            raise RangeError(f"codes have 64, 128, … or {MOST_BITS} bits, got {self.bits}")

    @staticmethod
    def usual(features: int, models: int) -> "HardenedTerms":
        """Codes of 8192 bits, which tell people apart almost as cosines do; of half as many beyond 2,000 models, so
        that 10,000 take 6 MB.
        """
        return HardenedTerms(features, models, MOST_BITS if models <= MANY else MOST_BITS // 2)

    @property
    def claim_bits(self) -> int:
        """Transfers for the claim."""
        return (self.models - 1).bit_length()

    @property
    def rows(self) -> int:
        """Of the table: scores there can be."""
        return 2 * self.bits

    @property
    def record_bytes(self) -> int:
        """Of what is sent for one model: its code, and its threshold in words."""
        return self.bits // 8 + 8 * WORDS

    @property
    def offline_bytes(self) -> int:
        """What the client sends for transfers."""
        return Code.total_bytes(self.claim_bits + self.bits)

    @property
    def bytes_up(self) -> int:
        """What the client sends: transfers, the claim, its code and a label."""
        return self.offline_bytes + -(-self.claim_bits // 8) + self.bits // 8 + LABEL

    @property
    def bytes_down(self) -> int:
        """What the server sends: records, pads' steps, and the table."""
        return self.models * self.record_bytes + 8 * WORDS * self.bits + LABEL * self.rows

    def code(self, embedding: Reals) -> NDArray[np.bool_]:
        """The code of an embedding, `(bits,)`. Raises RangeError if it is none."""
        given = np.asarray(embedding, np.float64)
        if given.shape != (self.features,):
            raise RangeError(f"an embedding is {self.features} numbers, got shape {given.shape}")
        code: NDArray[np.bool_] = voice_codes(given[None], self.bits)[0]
        return code


hardened = register_protocol(
    "speaker_verification_hardened",
    functionality="whether the code of the client's embedding agrees, in as many bits as the server asks for, with "
    "that of the enrolled speaker it claims to be, to the server",
    leakage="how many models there are; the server learns that some enrolled speaker was claimed",
    assumptions="the server follows the protocol, the client may do anything; Diffie-Hellman on ed25519, AES a random "
    "permutation, SHA-256 an oracle",
    terms=HardenedTerms,
)


@dataclass(frozen=True, eq=False)
class HardenedScorer:
    """The server's side; `of` makes one.

    Attributes:
        codes: of the models, packed, `(models, bits / 8)`.
        least: bits that must agree, 1 to `bits`, `(models,)`.
    """

    terms: HardenedTerms
    codes: Bytes
    least: NDArray[np.int64]

    @staticmethod
    def of(terms: HardenedTerms, models: dict[int, Reals], thresholds: Reals | float) -> "HardenedScorer":
        """From directions by place, each with a threshold in cosines, or one for all. A place without a direction has a
        code that nobody knows, of which all bits must agree. Raises RangeError for other places, directions or cosines.
        """
        codes = np.frombuffer(uniform_bytes(terms.models * terms.bits // 8), np.uint8).reshape(terms.models, -1).copy()
        least = np.full(terms.models, terms.bits)
        places = np.array(list(models), np.int64)
        for place in models:
            check_index(place, terms.models)
        if models:
            directions = np.stack(list(models.values()))
            if directions.shape[1:] != (terms.features,):
                raise RangeError(f"directions have {terms.features} numbers, got shape {directions.shape[1:]}")
            codes[places] = np.packbits(voice_codes(directions, terms.bits), axis=1)
            least[places] = least_agreeing(np.broadcast_to(thresholds, len(places)), terms.bits)
        return HardenedScorer(terms, codes, least)


def prove_as_client(channel: Channel, setup: PairSetup, terms: HardenedTerms, embedding: Reals, claimed: int) -> None:
    """The client's program; the decision is the server's. Raises RangeError for a bad voice or claim, nothing sent."""
    code = terms.code(embedding)
    check_index(claimed, terms.models)
    claim = (claimed >> np.arange(terms.claim_bits) & 1).astype(np.bool_)
    with setup.session(channel):
        choices = uniform_residues(terms.claim_bits + terms.bits, 1).astype(np.bool_)
        keys = setup.receiver.choose_keys(channel, choices)  # 1
        claim_keys, code_keys = keys[: terms.claim_bits], keys[terms.claim_bits :]
        channel.send(Kind.CLAIM, np.packbits(claim ^ choices[: terms.claim_bits]).tobytes())  # 2
        records = channel.receive(Kind.RECORDS, terms.models * terms.record_bytes)  # 3
        sealed = np.frombuffer(records, np.uint8).reshape(terms.models, -1)[claimed]
        record = sealed ^ _record_pads(setup, terms, np.bitwise_xor.reduce(claim_keys, axis=0)[None], claimed)[0]
        masked, offset = record[: -8 * WORDS], record[-8 * WORDS :]
        asked = code ^ np.unpackbits(masked).astype(np.bool_)
        channel.send(Kind.VOICE_CODE, np.packbits(asked ^ choices[terms.claim_bits :]).tobytes())  # 4
        pads = receive_steps(channel, _hash(setup, b"pads"), code_keys, asked)  # 5
        sums = pads.sum(axis=0, dtype=np.uint64) + np.frombuffer(offset.tobytes(), "<u8")
        table = np.frombuffer(channel.receive(Kind.DECISION_TABLE, LABEL * terms.rows), np.uint8).reshape(-1, LABEL)
        row = int(sums[0]) % terms.rows
        channel.send(
            Kind.DECISION, (table[row] ^ row_pads(_hash(setup, b"rows"), sums[None, 1:], row)[0]).tobytes()
        )  # 6


def judge_as_server(channel: Channel, setup: PairSetup, scorer: HardenedScorer) -> bool:
    """The server's program: the decision; whatever is not the label of "yes" is a no."""
    terms = scorer.terms
    with setup.session(channel):
        keys = setup.sender.offer_keys(channel, terms.claim_bits + terms.bits)  # 1
        claim_keys = in_order(keys[: terms.claim_bits], channel.receive(Kind.CLAIM, -(-terms.claim_bits // 8)))  # 2
        mask = uniform_residues(terms.bits, 1).astype(np.int64)
        secrets = np.concatenate([np.ones(1, np.uint64), uniform_residues(WORDS - 1)])
        masks = uniform_residues(WORDS)
        offsets = (terms.bits - mask.sum() - scorer.least).view(np.uint64)[:, None] * secrets + masks
        hidden = scorer.codes ^ np.packbits(mask.astype(np.bool_))
        records = np.concatenate([hidden, offsets.astype("<u8").view(np.uint8)], axis=1)
        channel.send(
            Kind.RECORDS, (records ^ _record_pads(setup, terms, _model_keys(claim_keys, terms))).tobytes()
        )  # 3
        code_keys = in_order(keys[terms.claim_bits :], channel.receive(Kind.VOICE_CODE, terms.bits // 8))  # 4
        ways = (2 * mask - 1).view(np.uint64)[:, None] * secrets
        pads = send_steps(channel, _hash(setup, b"pads"), code_keys, ways)  # 5
        masks = masks + pads.sum(axis=0, dtype=np.uint64)
        rows = np.arange(terms.rows, dtype=np.uint64)
        scores = ((rows - masks[0] + np.uint64(terms.bits)) % np.uint64(terms.rows)).astype(np.int64) - terms.bits
        openers = scores.view(np.uint64)[:, None] * secrets[1:] + masks[1:]
        yes, no = (np.frombuffer(uniform_bytes(LABEL), np.uint8) for _ in range(2))
        table = row_pads(_hash(setup, b"rows"), openers, 0) ^ np.where((scores >= 0)[:, None], yes, no)
        channel.send(Kind.DECISION_TABLE, table.tobytes())
        return hmac.compare_digest(channel.receive(Kind.DECISION, LABEL), yes.tobytes())  # 6


def _model_keys(keys: Bytes, terms: HardenedTerms) -> Bytes:
    """The key of every model, `(models, 16)`: the sum of those `(claim_bits, 2, 16)` that its number's bits name.

    Whoever has one of each pair has one of these; in every other one is a key, or a sum of keys, that it does not have.
    """
    numbers = np.arange(terms.models)
    found = np.zeros((terms.models, BLOCK), np.uint8)
    for bit, pair in enumerate(keys):
        found ^= pair[numbers >> bit & 1]
    return found


def _record_pads(setup: PairSetup, terms: HardenedTerms, keys: Bytes, first: int = 0) -> Bytes:
    """What hides the records of models from `first` on, from their keys `(count, 16)`: `(count, record_bytes)`."""
    blocks = -(-terms.record_bytes // BLOCK)
    repeated = np.repeat(keys, blocks, axis=0).view(np.uint64)
    pads = _hash(setup, b"records").hash_blocks(repeated, first * blocks).view(np.uint8)
    return pads.reshape(len(keys), -1)[:, : terms.record_bytes]


def _hash(setup: PairSetup, use: bytes) -> BlockHash:
    return BlockHash(hashlib.sha256(b"ppspeech hardened " + use + setup.id).digest()[:16])


@hardened.party("client")
def client(party: Party, embedding: list[float], claimed: int, /, **terms: Any) -> str:
    """Agree on transfers, and prove once."""
    own, voice = HardenedTerms(**terms), np.asarray(embedding, np.float64)
    own.code(voice)
    check_index(claimed, own.models)
    prove_as_client(party.channel, PairSetup.agree(party.channel, Side.SECOND), own, voice, claimed)
    return "the server knows"


@hardened.party("server")
def server(party: Party, models: list[list[float]], threshold: float, /, **terms: Any) -> str:
    """Agree on transfers, and judge once, for models, one row a speaker."""
    directions = dict(enumerate(np.asarray(models, np.float64)))
    scorer = HardenedScorer.of(HardenedTerms(**terms), directions, threshold)
    return say(judge_as_server(party.channel, PairSetup.agree(party.channel, Side.FIRST), scorer))
