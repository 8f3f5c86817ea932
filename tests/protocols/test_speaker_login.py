"""Log-in by voice: the plain decision for honest clients, a no for whoever bends a part; one bit, whatever failed."""

from collections.abc import Callable
from itertools import chain, repeat

import numpy as np
import pytest
from scipy import stats

from ppspeech.channel import Channel
from ppspeech.crypto.message_kinds import Kind as CryptoKind
from ppspeech.crypto.transfer import PairSetup
from ppspeech.errors import BadTypeError, ModelError, RangeError
from ppspeech.network import Transcript, memory_pair, run_together
from ppspeech.protocols import PROTOCOLS, run_in_memory
from ppspeech.protocols.message_kinds import Kind
from ppspeech.protocols.speakers import login
from ppspeech.protocols.speakers.decision_rows import key_residues, row_pads
from ppspeech.protocols.speakers.login import (
    LABEL,
    TEN,
    LoginPerson,
    LoginTerms,
    client,
    log_in_as_client,
    log_in_as_server,
    server,
)
from tests.crypto.pairs import lasting_setup
from tests.protocols.speaker_meeting import histogram, received, unit

generator = np.random.default_rng(31)
TERMS = LoginTerms(voice=24, digit=9, digits=4, voice_bits=256, digit_bits=128)
VOICE = unit(generator.normal(size=24))
APART = np.eye(TEN) - 1 / TEN  # ten directions in nine dimensions, as far apart as they can be
DIGITS = unit(APART @ np.linalg.svd(APART)[2][:9].T, axis=1)
THRESHOLDS = np.array([0.5, *np.linspace(0.3, 0.8, TEN)])
PERSON = LoginPerson.of(TERMS, VOICE, DIGITS, THRESHOLDS)

Client = Callable[[Channel, PairSetup], None]
Asked = tuple[int, ...]


def judged(
    prove: Client, person: LoginPerson = PERSON, clock: Callable[[], float] = lambda: 0.0
) -> tuple[bool, Transcript, Transcript]:
    """A client against an honest server: the decision, and the transcripts of both."""
    (first, second), (here, there) = lasting_setup(), memory_pair()
    ours, theirs = Transcript(here, keep_payloads=True), Transcript(there, keep_payloads=True)
    decision = run_together(
        lambda _: prove(ours, second),
        lambda _: log_in_as_server(theirs, first, person, 30.0, clock),
        (here, there),
    )[1]
    return decision, ours, theirs


def saying(voice: np.ndarray, how: Callable[[Asked], np.ndarray], terms: LoginTerms = TERMS) -> Client:
    return lambda channel, setup: log_in_as_client(channel, setup, terms, lambda asked: (voice, how(asked)))


def right(asked: Asked) -> np.ndarray:
    found: np.ndarray = DIGITS[list(asked)]
    return found


def asking(monkeypatch: pytest.MonkeyPatch, *digits: int) -> None:
    monkeypatch.setattr(login, "draw_digits", lambda _: digits)


def cheating(codes: np.ndarray, shifts: dict[int, tuple[int, int, int]] | None = None, label: int = 0) -> Client:
    """A client with any codes, that moves sums of parts before it opens their rows, and flips bits of its answer."""

    def prove(channel: Channel, setup: PairSetup) -> None:
        with setup.session(channel):
            channel.receive(Kind.CHALLENGE, TERMS.digits)
            choices = generator.integers(2, size=TERMS.bits).astype(np.bool_)
            pads = key_residues(login._hash(setup, b"pads"), setup.receiver.choose_keys(channel, choices))
            channel.send(Kind.VOICE_CODE, np.packbits(codes ^ choices).tobytes())
            steps = np.frombuffer(channel.receive(Kind.MASKED_INPUTS, pads.nbytes), "<u8").reshape(pads.shape)
            pads[codes] += steps[codes]
            sums = np.add.reduceat(pads, TERMS.starts, axis=0)
            for part, shift in (shifts or {}).items():
                sums[part] += np.array(shift, np.int64).view(np.uint64)
            table = np.frombuffer(channel.receive(Kind.DECISION_TABLE, at_most=10**7), np.uint8).reshape(-1, LABEL)
            rows = (TERMS.starts + (sums[:, 0] % TERMS.sizes.astype(np.uint64)).astype(np.int64)).tolist()
            opened = (
                row_pads(login._hash(setup, b"rows"), z[None, 1:], row)[0] for row, z in zip(rows, sums, strict=True)
            )
            labels = table[rows] ^ np.stack(list(opened))
            gate = int((labels[:, 0] & 1) @ (1 << np.arange(len(labels))))
            found = table[TERMS.bits + gate] ^ login._gate_pad(setup, TERMS, labels, gate)
            channel.send(Kind.DECISION, bytes([found[0] ^ label]) + found[1:].tobytes())

    return prove


def agreeing(least: np.ndarray, asked: Asked, missing: int = -1) -> np.ndarray:
    """Codes that agree with the person's in exactly as many bits as are needed, one fewer in the part `missing`."""
    own, _ = PERSON.asked(asked)
    codes = ~own
    for part, (start, needed) in enumerate(zip(TERMS.starts.tolist(), least.tolist(), strict=True)):
        codes[start : start + needed - (part == missing)] ^= True
    return codes


def test_honest_clients_get_the_plain_decision() -> None:
    """From voices that are nearly the person's to one that is the opposite."""
    decisions = []
    for noise in (0.01, *np.linspace(0.02, 0.5, 9), None):
        voice = -VOICE if noise is None else unit(VOICE + noise * generator.normal(size=24) / 2)
        said: list[np.ndarray] = []

        def say(asked: Asked, noise: float = noise or 0.0, said: list[np.ndarray] = said) -> np.ndarray:
            said.append(np.array(asked))
            said.append(unit(right(asked) + noise * generator.normal(size=(4, 9)) / 2, axis=1))
            return said[-1]

        decisions.append(judged(saying(voice, say))[0])
        own, least = PERSON.asked(said[0].tolist())
        same = np.add.reduceat(TERMS.codes(voice, said[1]) == own, TERMS.starts, dtype=np.int64)
        assert decisions[-1] == bool((same >= least).all())
    assert decisions[0] is True
    assert decisions[-1] is False


@pytest.mark.parametrize("missing", [-1, 0, 1, 2, 3, 4])
def test_every_part_has_its_own_threshold_and_one_bit_fewer_anywhere_is_a_no(
    missing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = (7, 0, 9, 3)
    asking(monkeypatch, *asked)
    _, least = PERSON.asked(asked)
    assert len(set(least.tolist())) == 5
    assert judged(cheating(agreeing(least, asked, missing)))[0] is (missing < 0)


def test_other_digits_and_another_order_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Yesterday's digits, in the right voice; and today's, the last two the other way round."""
    asking(monkeypatch, 3, 1, 4, 2)
    assert judged(saying(VOICE, right))[0] is True
    assert judged(saying(VOICE, lambda _: DIGITS[[3, 1, 2, 4]]))[0] is False
    assert judged(saying(VOICE, lambda _: DIGITS[[5, 6, 7, 8]]))[0] is False
    assert judged(saying(VOICE, lambda _: DIGITS[[3, 1, 4, 9]]))[0] is False
    assert judged(saying(-VOICE, right))[0] is False


def test_what_is_asked_is_drawn_anew_from_all_digits() -> None:
    """Chi-square at 1e-6 over 400 questions of four digits; what is asked is what is checked."""
    drawn = np.array([login.draw_digits(4) for _ in range(400)])
    assert len({tuple(each) for each in drawn.tolist()}) > 300
    for place in range(4):
        assert stats.chisquare(np.bincount(drawn[:, place], minlength=TEN)).pvalue > 1e-6
    heard = []
    for _ in range(3):
        decision, ours, _ = judged(saying(VOICE, right))
        assert decision is True
        heard.append(received(ours, Kind.CHALLENGE).tobytes())
    assert len(set(heard)) > 1  # alike but for a chance of 1e-8


@pytest.mark.parametrize("part", range(5))
@pytest.mark.parametrize("shift", [(40, 0, 0), (0, 40, 40), (40, 40, 40)])
def test_a_shifted_sum_is_rejected(part: int, shift: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    asked = (2, 2, 5, 8)
    asking(monkeypatch, *asked)
    _, least = PERSON.asked(asked)
    assert judged(cheating(agreeing(least, asked, part), {part: shift}))[0] is False


def test_a_made_up_label_is_rejected() -> None:
    own, _ = PERSON.asked((0, 0, 0, 0))
    assert judged(cheating(own, label=1))[0] is False


def test_the_server_learns_one_bit_whichever_parts_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer is one of two labels, drawn last: "no" is the same for every way in which parts can fail."""
    drawn: list[bytes] = []
    draw = login.uniform_bytes
    monkeypatch.setattr(login, "uniform_bytes", lambda count: drawn.append(draw(count)) or drawn[-1])
    asking(monkeypatch, 4, 3, 2, 1)
    own, least = PERSON.asked((4, 3, 2, 1))
    for way in range(32):
        codes = own.copy()
        for part, (start, size) in enumerate(zip(TERMS.starts.tolist(), TERMS.sizes.tolist(), strict=True)):
            if way >> part & 1:
                codes[start : start + size - 3] ^= True
        decision, ours, _ = judged(cheating(codes))
        assert decision is (way == 0)
        assert ours.entries[-1].payload == drawn[-2 if way == 0 else -1]
    assert least.min() > 3


def test_a_client_cannot_tell_which_label_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chi-square at 1e-6: answers to an accepted and a rejected log-in are uniform, and no two are alike."""
    asking(monkeypatch, 6, 0, 6, 1)
    for codes in (PERSON.asked((6, 0, 6, 1))[0], ~PERSON.asked((6, 0, 6, 1))[0]):
        codes[:5] ^= True
        answers = [judged(cheating(codes))[1].entries[-1].payload or b"" for _ in range(24)]
        assert len(set(answers)) == 24
        values = np.frombuffer(b"".join(answers), np.uint8)
        assert stats.chisquare(np.bincount(values >> 4, minlength=16)).pvalue > 1e-6


def test_the_lowest_bit_of_a_label_does_not_say_what_it_is() -> None:
    """It differs between the two of a part, and is as often that of either: in 400 draws 130 to 270 times, but for a
    chance of 1e-11.
    """
    drawn = np.concatenate([login._drawn_labels(5) for _ in range(80)])
    lowest = drawn[:, :, 0] & 1
    assert (lowest.sum(axis=1) == 1).all()
    assert 130 <= lowest[:, 1].sum() <= 270


def test_what_the_server_receives_is_uniform() -> None:
    """Chi-square at 1e-6 on masked codes of one voice, and its power against the choices left out."""
    said = [received(judged(saying(VOICE, lambda _: DIGITS[:4]))[2], Kind.VOICE_CODE) for _ in range(40)]
    assert stats.chisquare(histogram(np.concatenate(said))).pvalue > 1e-6
    bare = np.tile(np.packbits(TERMS.codes(VOICE, DIGITS[:4])), 40)
    assert stats.chisquare(histogram(bare)).pvalue < 1e-6


def test_the_secrets_that_bind_rows_are_of_full_length_and_of_one_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of the 64 bits of α is set about half the time, in 80 draws 16 to 64 times, but for a chance of 1e-6; and no
    two parts share it.
    """
    seen: list[np.ndarray] = []
    in_order = login.in_order
    monkeypatch.setattr(login, "in_order", lambda keys, masked: seen.append(in_order(keys, masked)) or seen[-1])
    found: list[int] = []
    for _ in range(8):
        _, _, theirs = judged(saying(VOICE, right))
        sent = next(entry.payload for entry in theirs.entries if entry.kind == Kind.MASKED_INPUTS)
        none, one = (key_residues(login._hash(lasting_setup()[0], b"pads"), seen[-1][:, bit]) for bit in (0, 1))
        parts = (np.frombuffer(sent or b"", "<u8").reshape(none.shape) - none + one)[TERMS.starts]
        assert set(parts[:, 0].tolist()) <= {1, 2**64 - 1}
        found += (parts[:, 1:] * parts[:, :1]).reshape(-1).tolist()
    assert len(set(found)) == len(found) == 80
    ones = [sum(alpha >> place & 1 for alpha in found) for place in range(64)]
    assert 16 <= min(ones) <= max(ones) <= 64


def test_a_late_answer_is_a_no_in_the_same_messages() -> None:
    """The clock is read when the question is sent and when the codes are there."""
    for late, accepted in ((30.0, True), (30.1, False)):
        decision, ours, _ = judged(saying(VOICE, right), clock=iter(chain([100.0, 100.0 + late], repeat(0.0))).__next__)
        assert decision is accepted
        shape = ours.shape()
        assert shape == judged(saying(VOICE, right))[1].shape()


def test_nobody_is_like_a_claim_that_cannot_hold() -> None:
    nobody = LoginPerson.nobody(TERMS)
    decision, ours, _ = judged(saying(VOICE, right), nobody)
    assert decision is False
    assert ours.shape() == judged(saying(VOICE, right))[1].shape()
    assert (nobody.voice != LoginPerson.nobody(TERMS).voice).any()
    assert nobody.least.tolist() == [256, *[128] * TEN]


def test_the_cost_is_that_of_the_formula_whatever_is_decided() -> None:
    shapes = []
    for voice in (VOICE, -VOICE):
        _, ours, _ = judged(saying(voice, right))
        shapes.append(ours.shape())
        resumed = sum(len(e.payload or b"") for e in ours.entries if e.kind == CryptoKind.RESUME) // 2
        assert (ours.bytes_up - resumed, ours.bytes_down - resumed) == (TERMS.bytes_up, TERMS.bytes_down)
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize(
    "wrong", [{"voice": 0}, {"digit": 0}, {"digits": 0}, {"digits": 9}, {"voice_bits": 100}, {"digit_bits": 32}]
)
def test_terms_that_cannot_be_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises((ModelError, RangeError)):
        LoginTerms(**({"voice": 4, "digit": 2} | wrong))


def test_bad_input_is_refused() -> None:
    bad_people = (
        (VOICE[1:], DIGITS, THRESHOLDS),
        (VOICE, DIGITS[1:], THRESHOLDS),
        (VOICE, DIGITS, THRESHOLDS[1:]),
        (0 * VOICE, DIGITS, THRESHOLDS),
        (VOICE, DIGITS, THRESHOLDS + 1),
    )
    for voice, digits, thresholds in bad_people:
        with pytest.raises(RangeError):
            LoginPerson.of(TERMS, voice, digits, thresholds)
    for voice, digits in ((VOICE[1:], DIGITS[:4]), (VOICE, DIGITS[:3]), (np.full(24, np.nan), DIGITS[:4])):
        with pytest.raises(RangeError):
            TERMS.codes(voice, digits)
    first, second = lasting_setup()
    with pytest.raises(BadTypeError, match="digits are asked for"):
        run_together(
            lambda c: log_in_as_client(c, second, TERMS, lambda _: (VOICE, DIGITS[:4])),
            lambda c: _asks(c, first, bytes([1, 2, 10, 3])),
        )


def _asks(channel: Channel, setup: PairSetup, question: bytes) -> None:
    with setup.session(channel):
        channel.send(Kind.CHALLENGE, question)
        setup.sender.offer_keys(channel, TERMS.bits)


def test_it_runs_by_name_over_a_bare_channel() -> None:
    public = {"voice": 2, "digit": 10, "digits": 2, "voice_bits": 64, "digit_bits": 64}
    digits = np.eye(10).tolist()
    said = run_in_memory(
        [
            ("client", lambda party: client(party, [1.0, 0.0], digits, **public)),
            ("server", lambda party: server(party, [1.0, 0.0], digits, 0.5, **public)),
        ]
    )
    assert said == ["the server knows", "accepted"]
    assert "may do anything" in PROTOCOLS["voice_login"].assumptions
