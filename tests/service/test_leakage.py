"""What the server gets of two voices cannot be told apart, and no client's key ever comes near it."""

import gc
import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from scipy import stats

from ppspeech.bundle import Bundle
from ppspeech.channel import Channel
from ppspeech.crypto.lattice import Evaluator, KeyHolder
from ppspeech.network import Address, Server, ServerTls, Service, Transcript, in_background, make_certificate
from ppspeech.protocols.meeting import Meeting
from ppspeech.service import Deployment, ServiceFiles, connect
from ppspeech.service.server import Choices
from ppspeech.service.server.book import Tally
from ppspeech.service.server.serve import build_services
from ppspeech.service.server.session import run_session
from ppspeech.service.server.words import ServedWords
from tests.service.conftest import Running
from tests.service.voices import RATE, voice

QUERY, FLIGHT = 2, 215
HEADERS = 32
"""Bytes of a query that name job and key."""


def received(record: Transcript | None) -> bytes:
    """What the server got online, without what is the same for everybody."""
    assert record is not None
    online = [entry for entry in record.entries if entry.direction == "sent" and entry.kind in {QUERY, FLIGHT}]
    return b"".join((entry.payload or b"")[HEADERS if entry.kind == QUERY else 0 :] for entry in online)


def test_two_voices_look_the_same(running: Running) -> None:
    """Lengths and order are equal; bytes pass a two-sample chi-square at 1e-4, which plain samples fail."""
    counts, shapes, plain = [], [], []
    with running.connect(keep_payloads=True) as client:
        for sound in (voice(1, 0.1), 0.01 * voice(2, 0.4)):
            answers = [client.recognize_all([sound], RATE, order="frames")[0] for _ in range(3)]
            said = b"".join(received(answer.transcript) for answer in answers)
            counts.append(np.bincount(np.frombuffer(said, np.uint8), minlength=256))
            shapes += [answer.transcript.shape() for answer in answers if answer.transcript is not None]
            samples = (32_767 * sound).numpy().astype(np.int16)
            plain.append(np.bincount(np.frombuffer(samples.tobytes(), np.uint8), minlength=256) + 1)
    assert all(shape == shapes[0] for shape in shapes)
    assert stats.chi2_contingency(np.array(counts)).pvalue > 1e-4
    assert stats.chi2_contingency(np.array(plain)).pvalue < 1e-4


def test_no_words_of_the_voice_are_on_the_wire(running: Running) -> None:
    with running.connect(keep_payloads=True) as client:
        answer = client.recognize(voice(1), RATE)
        frames = client._questions.front_end.frames(voice(1), RATE)
    wire = b"".join(entry.payload or b"" for entry in answer.transcript.entries)  # type: ignore[union-attr]
    assert answer.value is not None
    assert answer.value.encode() not in wire
    for frame in frames[:5]:
        for form in (np.float32, np.float64):
            assert frame[:2].astype(form).tobytes() not in wire


def reachable(roots: Iterable[object]) -> list[object]:
    found, stack = {}, list(roots)
    while stack:
        each = stack.pop()
        if id(each) in found or isinstance(each, type | np.ndarray | str | bytes) or type(each).__name__ == "module":
            continue
        found[id(each)] = each
        stack += [] if hasattr(each, "__globals__") else gc.get_referents(each)
        stack += [cell.cell_contents for cell in getattr(each, "__closure__", None) or ()]
    return list(found.values())


def test_the_server_holds_no_client_key(bundles: dict[str, Bundle], tmp_path: Path) -> None:
    """Walk what the services hold, and in a session's own process everything it has made."""
    served = ServedWords.of("whole", bundles["whole"], Deployment(frames=40))
    assert served.streams  # under a key of each meeting's own
    assert not [each for each in reachable([served]) if isinstance(each, KeyHolder)]

    files = ServiceFiles.at(tmp_path / "state")
    services = build_services({"whole": bundles["whole"]}, files, Choices(Deployment(frames=40)))
    seen = tmp_path / "seen.json"

    def spied(channel: Channel, tally: Tally) -> None:
        run_session(served, channel, tally, files.budget)
        made = [type(each).__name__ for each in gc.get_objects() if isinstance(each, KeyHolder | Meeting | Evaluator)]
        seen.write_text(json.dumps(made))

    def late(channel: Channel, _: object) -> None:
        evaluators: list[Evaluator] = []
        original = Evaluator.__init__

        def keep(self: Evaluator, *args: object) -> None:
            original(self, *args)  # type: ignore[arg-type]
            evaluators.append(self)

        Evaluator.__init__ = keep  # type: ignore[method-assign, assignment]
        spied(channel, Tally())

    services["whole"] = Service(late, services["whole"].params)
    pin = make_certificate(tmp_path / "c.pem", tmp_path / "k.pem")
    server = Server(Address("127.0.0.1", 0), services, tls=ServerTls(tmp_path / "c.pem", tmp_path / "k.pem"))
    with in_background(server) as process, connect(str(process.address), pin=pin) as client:
        assert client.recognize(voice(0), RATE).value is not None
    # The evaluator of the session is found, so the search sees what is there; a key or a client is not.
    assert json.loads(seen.read_text()) == ["Evaluator"]
