"""The hardened verification: the plain decision for honest clients, a no for those who bend what they hold."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from ppspeech.channel import Channel
from ppspeech.crypto.message_kinds import Kind as CryptoKind
from ppspeech.crypto.transfer import PairSetup, Side
from ppspeech.errors import CheatError, ModelError, ProtocolError, RangeError
from ppspeech.network import Transcript, memory_pair, run_together
from ppspeech.protocols import PROTOCOLS, run_in_memory
from ppspeech.protocols.message_kinds import Kind
from ppspeech.protocols.speakers import hardened as speaker_hardened
from ppspeech.protocols.speakers.codes import voice_codes
from ppspeech.protocols.speakers.decision_rows import key_residues, row_pads
from ppspeech.protocols.speakers.hardened import (
    LABEL,
    WORDS,
    HardenedScorer,
    HardenedTerms,
    client,
    judge_as_server,
    prove_as_client,
    server,
)
from tests.crypto.pairs import lasting_setup
from tests.protocols.speaker_meeting import histogram, received, unit

generator = np.random.default_rng(8)
TERMS = HardenedTerms(features=24, models=3, bits=128)
MODELS = unit(generator.normal(size=(3, 24)), axis=1)
SCORER = HardenedScorer.of(TERMS, dict(enumerate(MODELS)), 0.5)
CODES = voice_codes(MODELS, TERMS.bits)

Client = Callable[[Channel, PairSetup], None]


def judged(prove: Client, scorer: HardenedScorer = SCORER) -> tuple[bool, Transcript, Transcript]:
    """A client against an honest server: the decision, and the transcripts of both."""
    (first, second), (here, there) = lasting_setup(), memory_pair()
    ours, theirs = Transcript(here, keep_payloads=True), Transcript(there, keep_payloads=True)
    decision = run_together(
        lambda _: prove(ours, second), lambda _: judge_as_server(theirs, first, scorer), (here, there)
    )[1]
    return decision, ours, theirs


def honest(embedding: np.ndarray, claimed: int, terms: HardenedTerms = TERMS) -> Client:
    return lambda channel, setup: prove_as_client(channel, setup, terms, embedding, claimed)


def voice(speaker: int, likeness: float) -> np.ndarray:
    return unit(likeness * MODELS[speaker] + 0.1 * generator.normal(size=24))


def cheating(
    code: np.ndarray,
    *,
    opened: int = 0,
    shift: tuple[int, ...] = (0, 0, 0),
    terms: HardenedTerms = TERMS,
    seen: list[np.ndarray] | None = None,
) -> Client:
    """A client that claims place 0 with any code, opens the record of any place, and moves its sums before it opens a
    row; `seen` gets what it opened.
    """

    def prove(channel: Channel, setup: PairSetup) -> None:
        claims = terms.claim_bits
        with setup.session(channel):
            choices = generator.integers(2, size=claims + terms.bits).astype(np.bool_)
            keys = setup.receiver.choose_keys(channel, choices)
            channel.send(Kind.CLAIM, np.packbits(choices[:claims]).tobytes())
            records = np.frombuffer(channel.receive(Kind.RECORDS, at_most=10**7), np.uint8).reshape(terms.models, -1)
            key = np.bitwise_xor.reduce(keys[:claims], axis=0)[None]
            record = records[opened] ^ speaker_hardened._record_pads(setup, terms, key, opened)[0]
            if seen is not None:
                seen.append(record)
            asked = code ^ np.unpackbits(record[: -8 * WORDS]).astype(np.bool_)
            channel.send(Kind.VOICE_CODE, np.packbits(asked ^ choices[claims:]).tobytes())
            pads = key_residues(speaker_hardened._hash(setup, b"pads"), keys[claims:])
            steps = np.frombuffer(channel.receive(Kind.MASKED_INPUTS, pads.nbytes), "<u8").reshape(pads.shape)
            pads[asked] += steps[asked]
            sums = pads.sum(axis=0, dtype=np.uint64) + np.frombuffer(record[-8 * WORDS :].tobytes(), "<u8")
            sums = sums + np.array(shift, np.int64).view(np.uint64)
            table = np.frombuffer(channel.receive(Kind.DECISION_TABLE, at_most=10**7), np.uint8).reshape(-1, LABEL)
            row = int(sums[0]) % terms.rows
            label = table[row] ^ row_pads(speaker_hardened._hash(setup, b"rows"), sums[None, 1:], row)[0]
            channel.send(Kind.DECISION, label.tobytes())

    return prove


def test_honest_clients_get_the_plain_decision() -> None:
    decisions = set()
    for trial in range(12):
        embedding, claimed = voice(trial % 3, float(generator.uniform(-0.2, 1.0))), trial % 3
        agreeing = int((TERMS.code(embedding) == CODES[claimed]).sum())
        accepted = judged(honest(embedding, claimed))[0]
        assert accepted == (agreeing >= SCORER.least[claimed])
        decisions.add(accepted)
    assert decisions == {True, False}


@pytest.mark.parametrize("missing", [0, 1])
def test_the_threshold_is_met_by_exactly_as_many_bits(missing: int) -> None:
    """Every place has its own; one bit fewer is a no."""
    scorer = HardenedScorer.of(TERMS, dict(enumerate(MODELS)), np.array([0.9, 0.0, -1.0]))
    for claimed in range(3):
        code = ~CODES[claimed]
        code[: scorer.least[claimed] - missing] ^= True
        turned = HardenedScorer(TERMS, scorer.codes[[claimed, 1, 2]], scorer.least[[claimed, 1, 2]])
        assert judged(cheating(code), turned)[0] is not bool(missing)


@pytest.mark.parametrize("shift", [(100, 0, 0), (0, 100, 100), (100, 100, 100), (100, 0, 100)])
def test_a_shifted_share_is_rejected(shift: tuple[int, ...]) -> None:
    """The attack that the default accepts (`test_speaker_verification`): the row, its openers, or both are moved."""
    stranger = TERMS.code(-MODELS[0])
    assert judged(cheating(stranger, shift=shift))[0] is False


def test_the_attackers_frame_itself_is_sound() -> None:
    """Without a shift the same program is an honest client: the attack fails for its shift, not for its code."""
    assert judged(cheating(CODES[0]))[0] is True
    assert judged(cheating(~CODES[0]))[0] is False


def test_only_the_claimed_record_opens() -> None:
    """The code of another place, and that place's record opened with the keys of the claim, is a no."""
    assert judged(honest(MODELS[1], 1))[0] is True
    assert judged(cheating(CODES[1], opened=1))[0] is False


def multi_level_score(vector: np.ndarray, model: np.ndarray) -> float:
    """Numbers in 32 levels between ±8 / sqrt(d), each bounded by itself: what such a plan makes of a vector."""
    limit = 8 / np.sqrt(len(vector))
    step = 2 * limit / 31
    levels: np.ndarray = np.rint((vector.clip(-limit, limit) + limit) / step) * step - limit
    return float(levels @ model)


def test_no_code_is_longer_than_another() -> None:
    """Impostors, cosines 0.1 to 0.2, that send the longest vector there can be, or random signs: with numbers in levels
    many are accepted at a threshold of 0.5; with codes nobody, by the protocol and by counting.
    """
    features, people = 624, 40
    common = unit(generator.normal(size=features))
    voices = unit(0.4 * common + unit(generator.normal(size=(people, features)), axis=1), axis=1)
    model, others = voices[0], voices[1:]
    assert (others @ model).max() < 0.3
    random = generator.choice([-1.0, 1.0], size=(400, features))
    longest = 8 / np.sqrt(features)
    assert sum(multi_level_score(longest * np.sign(each), model) >= 0.5 for each in others) > 20
    assert sum(multi_level_score(longest * each, model) >= 0.5 for each in random) > 8
    terms = HardenedTerms(features, 1, 1024)
    scorer = HardenedScorer.of(terms, {0: model}, 0.5)
    own, signs = voice_codes(model[None], terms.bits), generator.integers(2, size=(400, terms.bits)).astype(bool)
    tried = np.concatenate([voice_codes(np.concatenate([others, np.sign(others), random]), terms.bits), signs])
    assert (tried == own).sum(axis=1).max() < scorer.least[0]
    for code in (*voice_codes(np.sign(others[:2]), terms.bits), voice_codes(longest * random[:1], terms.bits)[0]):
        assert judged(cheating(code, terms=terms), scorer)[0] is False
    assert judged(cheating(own[0], terms=terms), scorer)[0] is True


def test_the_secrets_that_bind_a_row_are_of_full_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of the 64 bits of α is set about half the time: in 80 draws 16 to 64 times, but for a chance of 1e-6.

    With all keys known here, the steps between the pads of a bit give ± α.
    """
    seen: list[np.ndarray] = []
    in_order = speaker_hardened.in_order

    def spied(keys: np.ndarray, masked: bytes) -> np.ndarray:
        seen.append(in_order(keys, masked))
        return seen[-1]

    monkeypatch.setattr(speaker_hardened, "in_order", spied)
    found: list[int] = []
    for _ in range(40):
        _, _, theirs = judged(honest(MODELS[0], 0))
        sent = next(entry.payload for entry in theirs.entries if entry.kind == Kind.MASKED_INPUTS)
        none, one = (
            key_residues(speaker_hardened._hash(lasting_setup()[0], b"pads"), seen[-1][:, bit]) for bit in (0, 1)
        )
        parts = np.frombuffer(sent or b"", "<u8").reshape(none.shape) - none + one
        assert parts[0, 0] in (1, 2**64 - 1)
        found += (parts[0, 1:] * parts[0, :1]).tolist()
    ones = [sum(alpha >> place & 1 for alpha in found) for place in range(64)]
    assert len(found) == 80
    assert 16 <= min(ones) <= max(ones) <= 64


def test_what_a_client_opens_tells_it_nothing() -> None:
    """Chi-square at 1e-4: for one template and claim again and again, the opened records, and the labels, are uniform;
    no two are alike.
    """
    opened: list[np.ndarray] = []
    labels = b""
    for _ in range(60):
        _, ours, _ = judged(cheating(CODES[0], seen=opened))
        labels += ours.entries[-1].payload or b""
    codes = np.concatenate([record[: -8 * WORDS] for record in opened])
    offsets = np.concatenate([record[-8 * WORDS :] for record in opened])
    for data in (codes, offsets, np.frombuffer(labels, np.uint8)):
        assert stats.chisquare(np.bincount(data >> 4, minlength=16)).pvalue > 1e-4
    assert len({record.tobytes() for record in opened}) == 60
    assert len({labels[at : at + LABEL] for at in range(0, len(labels), LABEL)}) == 60


def test_what_the_server_receives_is_uniform() -> None:
    """Chi-square at 1e-4 on masked claims and codes of one voice, and their power against the choices left out."""
    said = []
    for _ in range(60):
        _, _, theirs = judged(honest(MODELS[0], 2))
        said.append(received(theirs, Kind.CLAIM) >> 6)
        said.append(received(theirs, Kind.VOICE_CODE))
    claims, codes = np.concatenate(said[::2]), np.concatenate(said[1::2])
    assert stats.chisquare(np.bincount(claims, minlength=4)).pvalue > 1e-4
    assert stats.chisquare(histogram(codes)).pvalue > 1e-4
    bare = np.tile(np.packbits(CODES[0]), 60)
    assert stats.chisquare(histogram(bare)).pvalue < 1e-4


def test_a_made_up_label_is_rejected() -> None:
    def forger(channel: Channel, setup: PairSetup) -> None:
        with setup.session(channel):
            setup.receiver.choose_keys(channel, np.zeros(TERMS.claim_bits + TERMS.bits, np.bool_))
            channel.send(Kind.CLAIM, bytes(1))
            channel.receive(Kind.RECORDS, at_most=10**7)
            channel.send(Kind.VOICE_CODE, bytes(TERMS.bits // 8))
            channel.receive(Kind.MASKED_INPUTS, at_most=10**7)
            channel.receive(Kind.DECISION_TABLE, at_most=10**7)
            channel.send(Kind.DECISION, bytes(LABEL))

    assert judged(forger)[0] is False


def test_an_empty_place_says_no_like_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is sent for it; and the label is that of a no, so that the server does not see that it is empty."""
    drawn: list[bytes] = []
    draw = speaker_hardened.uniform_bytes
    scorer = HardenedScorer.of(TERMS, {2: MODELS[2]}, -1.0)
    monkeypatch.setattr(speaker_hardened, "uniform_bytes", lambda count: drawn.append(draw(count)) or drawn[-1])
    for embedding in (*MODELS, -MODELS[0]):
        decision, ours, _ = judged(honest(embedding, 1), scorer)
        assert decision is False
        assert ours.entries[-1].payload == drawn[-1]  # "no" is drawn last
    assert judged(honest(MODELS[0], 2), scorer)[0] is True
    assert (HardenedScorer.of(TERMS, {}, 0.0).codes[0] != HardenedScorer.of(TERMS, {}, 0.0).codes[0]).any()


def test_a_client_that_cheats_in_the_transfers_is_found_out() -> None:
    """A receiver whose columns are not of one choice a transfer would learn both pads of some bits in the end."""

    class Flipping:
        def __init__(self, channel: Channel) -> None:
            self.channel, self.receive = channel, channel.receive

        def send(self, kind: int, payload: bytes) -> None:
            if kind == CryptoKind.BASE_COLUMNS:
                payload = bytes([payload[0] ^ 1]) + payload[1:]
            self.channel.send(kind, payload)

    caught = 0
    for _ in range(12):  # one flipped bit tells one bit of the secret: half of them pass
        try:
            judged(lambda channel, setup: prove_as_client(Flipping(channel), setup, TERMS, MODELS[0], 0))  # type: ignore[arg-type]
        except CheatError:
            caught += 1
    assert caught >= 1


def test_the_cost_is_that_of_the_formula_whoever_is_claimed() -> None:
    shapes = []
    for claimed in range(3):
        _, ours, _ = judged(honest(voice(claimed, 1.0), claimed))
        shapes.append(ours.shape())
        resumed = sum(len(e.payload or b"") for e in ours.entries if e.kind == CryptoKind.RESUME) // 2
        assert (ours.bytes_up - resumed, ours.bytes_down - resumed) == (TERMS.bytes_up, TERMS.bytes_down)
    assert shapes[0] == shapes[1] == shapes[2]


@pytest.mark.parametrize("wrong", [{"features": 0}, {"models": 0}, {"bits": 100}, {"bits": 32}, {"bits": 16384}])
def test_terms_that_cannot_be_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises((ModelError, RangeError)):
        HardenedTerms(**({"features": 4, "models": 2} | wrong))


def test_bad_input_is_refused() -> None:
    for models, threshold in (({3: MODELS[0]}, 0.5), ({0: np.ones(23)}, 0.5), ({0: np.zeros(24)}, 0.5)):
        with pytest.raises(RangeError):
            HardenedScorer.of(TERMS, models, threshold)
    with pytest.raises(RangeError, match="cosines"):
        HardenedScorer.of(TERMS, {0: MODELS[0]}, 1.5)
    for embedding, claimed in ((np.ones(23), 0), (np.full(24, np.nan), 0), (np.zeros(24), 0), (np.ones(24), 3)):
        with pytest.raises(RangeError):
            prove_as_client(memory_pair()[0], lasting_setup()[Side.SECOND], TERMS, embedding, claimed)


def test_messages_that_are_none_end_the_session() -> None:
    def broken(channel: Channel, setup: PairSetup) -> None:
        with setup.session(channel):
            setup.receiver.choose_keys(channel, np.zeros(TERMS.claim_bits + TERMS.bits, np.bool_))
            channel.send(Kind.CLAIM, bytes(2))

    with pytest.raises(ProtocolError):
        judged(broken)


def test_it_runs_by_name_over_a_bare_channel() -> None:
    public = {"features": 2, "models": 1, "bits": 64}
    said = run_in_memory(
        [
            ("client", lambda party: client(party, [1.0, 0.0], 0, **public)),
            ("server", lambda party: server(party, [[1.0, 0.0]], 0.5, **public)),
        ]
    )
    assert said == ["the server knows", "accepted"]
    assert "may do anything" in PROTOCOLS["speaker_verification_hardened"].assumptions
