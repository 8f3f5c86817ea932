"""Doors of the network: frames, WebSockets and WebTransport, HELLO, groups and introductions, reports of processes,
requests, offers.
"""

import contextlib
import socket
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from websockets.protocol import State
from websockets.server import ServerProtocol

from ppspeech.errors import PeerGoneError, PeerTimeoutError, WrongSessionError
from ppspeech.network import Address, Limits, Server, Service, StreamChannel, make_certificate
from ppspeech.network.channel.frames import pack_header
from ppspeech.network.channel.hello import Hello
from ppspeech.network.channel.stream import ByteStream
from ppspeech.network.group.file import Group, Member
from ppspeech.network.group.identity import Identity
from ppspeech.network.group.join import _recognize, _statement
from ppspeech.network.server.server import _Child
from ppspeech.network.web.door import WebDoor, WebFile
from ppspeech.network.web.stream import WebStream
from ppspeech.service.client.connect import Door as ServiceDoor
from ppspeech.service.client.connect import server_health
from ppspeech.service.offer import describe, read_offers
from ppspeech.service.requests import Ask, Request, receive_name, receive_ready, receive_request, receive_template
from tests.fuzz.door import Door, Says, apart, door, new_folder, several
from tests.network.web_client import HANDSHAKE, ws_frame

QUICK = Limits(handshake_seconds=5, message_seconds=5, session_seconds=5, message_bytes=2**16)
SESSION = bytes(range(16))


@door(cost=4)
def frames() -> Door:
    """A session that has begun; messages of up to 50 bytes are received until it ends."""

    def enter(data: bytes) -> None:
        ours, theirs = socket.socketpair()
        channel = StreamChannel(ByteStream(ours, QUICK.message_bytes), QUICK)
        channel.begin(SESSION)
        with theirs, contextlib.closing(channel):
            theirs.settimeout(5)
            with contextlib.suppress(OSError):  # what is more than the system keeps
                theirs.setblocking(False)
                theirs.send(data)
            theirs.shutdown(socket.SHUT_WR)
            while True:
                assert len(channel.receive(1, at_most=50)) <= 50

    one, two = (pack_header(1, SESSION, number, 4) + b"four" for number in range(2))
    return Door(enter, (one + two, one, pack_header(255, SESSION, 0, 1) + b"\0", pack_header(1, SESSION, 0, 2**31)))


def heard(data: bytes) -> socket.socket:
    """Our end of a connection whose other end has said this, and no more."""
    ours, theirs = socket.socketpair()
    with theirs, contextlib.suppress(OSError):  # what is more than the system keeps
        theirs.setblocking(False)
        theirs.send(data)
    return ours


@door(cost=10)
def web_request() -> Door:
    """What a browser, or anyone, asks of the door for pages."""
    web = WebDoor(Address("127.0.0.1", 0), {"/": WebFile(b"page", "text/html")}, ("https://pages.example",))

    def enter(data: bytes) -> None:
        with contextlib.closing(ByteStream(heard(data), QUICK.message_bytes)) as stream:
            answered = web.admit(stream, QUICK, time.monotonic() + 5, secure=False)
            assert isinstance(answered, WebStream) or answered.startswith((b"HTTP/1.1 200", b"HTTP/1.1 404"))

    return Door(enter, (b"GET / HTTP/1.1\r\nHost: localhost:7000\r\n\r\n", HANDSHAKE.encode() + b"\r\n"))


@door(cost=40)
def studio_request() -> Door:
    """What whoever is on this machine asks of a studio: a head, an empty line, and a body; it starts nothing."""
    import asyncio

    from ppspeech.studio import Places, Studio
    from ppspeech.studio.guard import BEARER

    address = Address("127.0.0.1", 7000)
    studio = Studio(address, "token", Places(new_folder()))
    own = f"host: {address}\nauthorization: {BEARER}token\norigin: http://{address}\ncontent-type: application/json\n"

    async def ask(scope: Any, body: bytes) -> list[Any]:
        said: list[Any] = []
        heard = iter([{"type": "http.request", "body": body, "more_body": False}, {"type": "http.disconnect"}])

        async def receive() -> Any:
            return next(heard, {"type": "http.disconnect"})

        async def send(message: Any) -> None:
            said.append(message)

        await studio(scope, receive, send)
        return said

    def enter(data: bytes) -> None:
        head, _, body = data.partition(b"\n\n")
        first, *lines = head.split(b"\n")
        method, _, target = first.partition(b" ")
        path, _, query = target.partition(b"?")
        headers = [(name.strip(), value.strip()) for name, _, value in (line.partition(b":") for line in lines)]
        scope = {
            "type": "http", "http_version": "1.1", "method": method.decode("latin-1"), "scheme": "http",
            "path": path.decode(errors="replace"), "raw_path": path, "query_string": query, "headers": headers,
            "server": ("127.0.0.1", 7000), "client": ("127.0.0.1", 1), "root_path": "",
        }  # fmt: skip
        said = asyncio.run(ask(scope, body))
        assert said[0]["status"] in {200, 307, 400, 401, 403, 404, 405, 413, 421}
        assert b"content-security-policy" in dict(said[0]["headers"])

    many = b'{"protocol": "eigen", "table": "adult", "parties": 99, "epsilon": 1}'
    seeds = (
        f"GET /speak\n{own}\n".encode(),
        f"GET /speak\nhost: {address}\n\n".encode(),
        f"POST /api/start/together\n{own}\n".encode() + many,
        f"POST /api/jobs/train-1/stop\n{own}\n{{}}".encode(),
        f"POST /api/start/export\n{own}\n".encode() + b'{"run": "../x", "state": "no"}',
    )
    return Door(enter, seeds)


@door(cost=8)
def web_frames() -> Door:
    """A session that has begun over a WebSocket; messages of up to 50 bytes are received until it ends."""

    def enter(data: bytes) -> None:
        protocol = ServerProtocol(state=State.OPEN, max_size=78)
        stream = WebStream(ByteStream(heard(data), QUICK.message_bytes), protocol)
        stream.opened()
        channel = StreamChannel(stream, QUICK)
        channel.begin(SESSION)
        with contextlib.closing(channel):
            while True:
                assert len(channel.receive(1, at_most=50)) <= 50
                assert len(stream._inbox) <= 2**16

    one, two = (pack_header(1, SESSION, number, 4) + b"four" for number in range(2))
    whole = ws_frame(one) + ws_frame(b"there?", 9) + ws_frame(two[:9], fin=False) + ws_frame(two[9:], 0)
    return Door(enter, (whole, ws_frame(one) + ws_frame(b"\x03\xe8", 8), ws_frame(one + two)))


@door(cost=2)
def transport_call() -> Door:
    """What anybody sends to the socket where connections of QUIC begin: a caller who has a token is let in."""
    from aioquic.buffer import encode_uint_var

    from ppspeech.network.web.calls import Switchboard

    board, source = Switchboard(Address("127.0.0.1", 0)), ("127.0.0.1", 9)
    token = board._tokens.create_token(
        address=source, original_destination_connection_id=bytes(8), retry_source_connection_id=b"ours" * 2, now=1e12
    )

    def first(token: bytes) -> bytes:
        head = b"\xc0\0\0\0\1\x08" + b"ours" * 2 + b"\x08" + b"their id" + encode_uint_var(len(token)) + token
        return (head + encode_uint_var(1024)).ljust(1200, b"\0")

    def enter(data: bytes) -> None:
        if board._admitted(data, source) is None:
            raise WrongSessionError("not let in")

    return Door(enter, (first(token), first(b"")))


@door(cost=80)
def transport_datagrams() -> Door:
    """The first datagrams of a caller who has been let in, whose keys everybody can know."""
    from aioquic.tls import State

    from ppspeech.network import ShortLivedCertificates
    from ppspeech.network.web.calls import Call
    from ppspeech.network.web.transport import TransportStream
    from tests.network.transport_client import Transport

    client = Transport(Address("127.0.0.1", 9))
    client.vanish()
    name = client.quic._original_destination_connection_id
    shown = ShortLivedCertificates(new_folder()).current

    def enter(data: bytes) -> None:
        with heard(b"") as connection:
            call = Call(connection, ("127.0.0.1", 9), name, name, apart(data))
            stream = TransportStream(call, shown, QUICK.message_bytes)
            with contextlib.closing(stream):
                stream.opened()
                with contextlib.suppress(PeerTimeoutError, PeerGoneError):
                    stream.asked(time.monotonic() + 0.002)
                begun = stream._quic.get_peer_address() is not None and stream._quic.tls.state
                if begun != State.SERVER_EXPECT_FINISHED:
                    raise WrongSessionError("no handshake")

    return Door(enter, (several(*client.said), several(client.said[0] * 2)))


@door(cost=8)
def transport_streams() -> Door:
    """What a peer says once it has shaken hands: pieces of streams, each with a stream's number and whether it ends."""
    import pylsqpack
    from aioquic.h3.connection import FrameType, encode_frame
    from aioquic.quic.events import ProtocolNegotiated, StreamDataReceived
    from aioquic.quic.packet import QuicFrameType

    from ppspeech.network import ShortLivedCertificates, TransportDoor
    from ppspeech.network.web.calls import Call
    from ppspeech.network.web.transport import TransportStream

    web = TransportDoor(Address("127.0.0.1", 0), ShortLivedCertificates(new_folder()), ("https://pages.example",))

    def enter(data: bytes) -> None:
        with heard(b"") as connection:
            call = Call(connection, ("127.0.0.1", 9), bytes(8), bytes(8))
            stream = TransportStream(call, web.certificates.current, QUICK.message_bytes)
            stream._quic._remote_max_datagram_frame_size = 2**16  # as the handshake would have said
            stream._hear(ProtocolNegotiated("h3"))
            for piece in apart(data):
                number, is_end = (piece[0] % 32 & ~1, piece[0] >= 128) if piece else (0, False)
                stream._quic._get_or_create_stream(QuicFrameType.STREAM_BASE, number)
                stream._hear(StreamDataReceived(piece[1:], is_end, number))
                if stream._asked is not None and web._refused(stream._asked) is None:
                    stream._accepted = True
            assert len(stream._inbox) <= len(data)
            if not stream._inbox:
                raise PeerGoneError("it has said nothing")

    asked = [
        (b":method", b"CONNECT"), (b":scheme", b"https"), (b":authority", b"localhost:7000"), (b":path", b"/wt"),
        (b":protocol", b"webtransport"), (b"origin", b"https://pages.example"),
    ]  # fmt: skip
    _, block = pylsqpack.Encoder().encode(0, asked)
    request = b"\0" + encode_frame(FrameType.HEADERS, block)
    settings = b"\2\0" + encode_frame(FrameType.SETTINGS, b"\x33\1\xab\x60\x37\x42\1")
    said = b"\4\x40\x41\0" + pack_header(1, SESSION, 0, 4)
    return Door(enter, (several(settings, request, said, b"\4four"), several(request, said, b"\x80" + b"\0\2ab")))


@door()
def hello() -> Door:
    """The first frame."""
    seed = Hello("words", {"model": "ab" * 32, "shape": {"n": [1, 2.5, True, None]}}, bytes(16)).encode()
    return Door(Hello.decode, (seed,), "json")


@door(cost=10)
def group_file() -> Door:
    """`parties.yaml`, as someone sends it."""
    members = (Member("hub", "curator", "0a" * 32, Address("127.0.0.1", 7000)), Member("ann", "party", "0b" * 32))
    group = Group("train_descent", members, "hub", {"epsilon": 1.0, "sizes": [1, 2], "columns": ["a"]}, 5.0)

    file = new_folder() / "parties.yaml"

    def enter(data: bytes) -> None:
        file.write_bytes(data)
        assert len(Group.load(file).digest) == 64

    return Door(enter, (group.to_yaml().encode(),), "yaml")


@door(cost=3)
def introduction() -> Door:
    """Who calls a hub: a certificate and a signature on the session."""
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder, "a.pem"), Path(folder, "a.key")
        pin = make_certificate(*files)
        signed = Identity(*files).sign(_statement(SESSION, "ann", "0a" * 32))
    members = (Member("hub", "hub", "0a" * 32, Address("127.0.0.1", 7000)), Member("ann", "party", pin))
    group = Group("any", members, "hub")

    def enter(data: bytes) -> None:
        says: Any = Says(data)
        says.session, says.limits, says.expect_within = SESSION, QUICK, lambda *_: None
        assert _recognize(says, group, ["ann"], "0a" * 32) == "ann"

    return Door(enter, (signed,))


@door(cost=3)
def report() -> Door:
    """What the process of a session tells the server's: it may be in a client's hands."""
    server = Server(Address("127.0.0.1", 0), {"any": Service(lambda *_: None)}, insecure=True)
    server.close()

    def enter(data: bytes) -> None:
        child = _Child(0, 0, "", 0.0, 0.0, said=bytearray(data[:8192]))
        server._count(child)

    return Door(enter, (b'{"protocol": "words"}\n{"failure": null, "sent": 12, "received": 34}\n',))


@door(cost=2)
def request() -> Door:
    """What a client asks."""
    return Door(
        lambda data: receive_request(Says(data)),
        (
            Request(Ask.WORDS, "garbled", 4).encode(),
            Request(Ask.SENTENCE, steps=3).encode(),
            Request(Ask.SPOT, "average", steps=0x31).encode(),
        ),
    )


@door(cost=2)
def ready() -> Door:
    """What a server answers."""
    return Door(lambda data: receive_ready(Says(data)), (b"\x01\x00\x00\x00\x07",))


@door(cost=3)
def template() -> Door:
    """A name and a voice that someone enrolls, as the gallery takes them."""
    from ppspeech.service.server.stores import Gallery

    folder = new_folder()
    gallery = Gallery(folder / "g.sqlite", "m", 4, 3)

    def enter(data: bytes) -> object:
        return gallery.check(*receive_template(Says(data), 3))

    return Door(enter, (b"ann".ljust(21, b"\0") + b"\0\0\x80\x3f" + bytes(8),))


@door(cost=2)
def name() -> Door:
    """The name of a gallery."""
    return Door(lambda data: receive_name(Says(data)), (b"family".ljust(21, b"\0"),))


@door(cost=12)
def description() -> Door:
    """What a server says it offers."""
    from ppspeech.service import Deployment
    from ppspeech.service.server.words import ServedWords
    from tests.service.voices import CLASSES, released

    with tempfile.TemporaryDirectory() as folder:
        words = ServedWords.of("words", released(Path(folder, "w")), Deployment(frames=40)).offer
        classes = ServedWords.of("classes", released(Path(folder, "c"), CLASSES), Deployment()).offer
    return Door(lambda data: read_offers(data, "words"), (describe((words, classes)), describe((words,))), "json")


@door(cost=40)
def sentences_description() -> Door:
    """The same, of sentences."""
    from ppspeech.service import SentenceDeployment
    from ppspeech.service.server.sentences import ServedSentences
    from tests.service.voices import SENTENCES, released

    with tempfile.TemporaryDirectory() as folder:
        served = ServedSentences.of("spoken", released(Path(folder, "s"), SENTENCES), SentenceDeployment(frames=64))

    def enter(data: bytes) -> None:
        read_offers(data, "sentences")

    return Door(enter, (describe((served.offer,)),), "json")


@door(cost=40)
def networks_description() -> Door:
    """The same, of networks."""
    from ppspeech.service.server.networks import ServedNetwork
    from tests.service.test_networks import NETWORK
    from tests.service.voices import released

    with tempfile.TemporaryDirectory() as folder:
        served = ServedNetwork.of("net", released(Path(folder, "n"), NETWORK))

    def enter(data: bytes) -> None:
        read_offers(data, "networks")

    return Door(enter, (describe((served.offer,)),), "json")


@door(cost=40)
def heads_description() -> Door:
    """The same, of heads on embeddings, of utterances and of windows."""
    from ppspeech.audio.embeddings import EmbeddingConfig, Pooling
    from ppspeech.models import EmbeddingHead
    from ppspeech.service import Deployment
    from ppspeech.service.server.words import ServedHead
    from tests.service.heads import released

    windows, outcome = EmbeddingConfig("speech", pooling=Pooling("window")), Deployment(outcome="server")
    with tempfile.TemporaryDirectory() as folder:
        words = released(Path(folder, "w"), EmbeddingHead(4, 96), EmbeddingConfig("speech"))
        live = released(Path(folder, "l"), EmbeddingHead(3, 96, "margin"), windows)
        offers = [
            ServedHead.of("words", words, Deployment(), Path("unused")).offer,
            ServedHead.of("live", live, outcome, Path("unused")).offer,
        ]

    def enter(data: bytes) -> None:
        read_offers(data, "heads")

    return Door(enter, tuple(describe((each,)) for each in offers), "json")


@door(cost=2)
def wyoming_events() -> Door:
    """What whoever connects to a bridge for Home Assistant sends."""
    from ppspeech.service.client.wyoming_bridge import EventReader, samples_of

    def enter(data: bytes) -> None:
        for _, told, payload in EventReader().feed(data):
            assert len(samples_of(told, payload)) == len(payload) // 2

    form = b'{"rate": 16000, "width": 2, "channels": 1}'
    chunk = b'{"type": "audio-chunk", "data_length": %d, "payload_length": 4}\n' % len(form) + form + b"abcd"
    inline = b'{"type": "audio-chunk", "data": ' + form + b', "version": "1.8.0"}\n'
    return Door(enter, (chunk, inline + chunk, inline))


@door(cost=40)
def network_sentences_description() -> Door:
    """The same, of networks that are read greedily."""
    from ppspeech.service import SentenceDeployment
    from ppspeech.service.server.networks import ServedNetworkSentences
    from tests.service.test_network_sentences import CTC
    from tests.service.voices import released

    with tempfile.TemporaryDirectory() as folder:
        served = ServedNetworkSentences.of("ctc", released(Path(folder, "n"), CTC), SentenceDeployment(frames=32))

    def enter(data: bytes) -> None:
        read_offers(data, "network_sentences")

    return Door(enter, (describe((served.offer,)),), "json")


@door(cost=40)
def spotting_description() -> Door:
    """The same, of an archive and of keywords."""
    from ppspeech.service import SpotDeployment, index_recordings
    from ppspeech.service.server.spotting import ServedArchive, ServedKeywords
    from tests.service.voices import SENTENCES, released, voice

    with tempfile.TemporaryDirectory() as folder:
        bundle = released(Path(folder, "s"), SENTENCES)
        archive = index_recordings({"a": voice(0, 0.9)}, bundle, 16_000, longest_s=0.3, tell_names=True)
        calls = ServedArchive.of("calls", archive).offer
        words = ServedKeywords.of("words", bundle, SpotDeployment(longest=0.3, seconds=1.8)).offer

    def enter(data: bytes) -> None:
        read_offers(data, "spotting")

    return Door(enter, (describe((calls,)), describe((words,))), "json")


@door(cost=12)
def login_description() -> Door:
    """The same, of log-ins: a space of voices and digits."""
    from ppspeech.service.login import ServedLogin
    from tests.service.login_people import cohort_bundle, made_up_space

    folder = new_folder()
    served = ServedLogin.of("login", cohort_bundle(folder / "b"), folder, None, made_up_space())
    return Door(lambda data: read_offers(data, "login"), (describe((served.offer,)),), "json")


@door(cost=4)
def login_enrollment() -> Door:
    """A name and a sealed template, which nobody here can open; and what is opened, which its owner chose."""
    from ppspeech.protocols.speakers import LoginTerms
    from ppspeech.service.login import Accounts, Template
    from ppspeech.service.login.seal import open_sealed, seal, sealed_bytes
    from tests.service.login_people import Person

    accounts, terms, key, ann = Accounts(new_folder() / "a.sqlite", "s"), LoginTerms(256, 9), bytes(32), Person(1)
    sealed = seal(key, "ann", "s", Template(ann.voice, ann.digits))

    def enter(data: bytes) -> None:
        says = Says(*apart(data))
        name, template = receive_name(says), says.receive(0, sealed_bytes(terms))
        accounts.enroll(name, template)
        open_sealed(key, name, "s", template, terms)

    return Door(enter, (several(b"ann".ljust(21, b"\0"), sealed),))


@door(cost=12)
def speakers_description() -> Door:
    """The same, of speakers and of galleries that a keeper has the key of."""
    from ppspeech.service import ServiceFiles, SpeakerDeployment
    from ppspeech.service.server.speakers import ServedSpeakers, SpeakerFiles
    from tests.service.voices import SPEAKERS, released

    with tempfile.TemporaryDirectory() as folder:
        files = ServiceFiles.at(Path(folder, "state"))
        bundle = released(Path(folder, "s"), SPEAKERS)
        served = ServedSpeakers.of(
            "voices", bundle, SpeakerDeployment(places=4, stores=True), SpeakerFiles.at(files.folder), None
        )

    def enter(data: bytes) -> None:
        read_offers(data, "speakers")

    return Door(enter, (describe((served.offer,)),), "json")


@door(cost=2)
def health() -> Door:
    """What a server says of its health."""

    def enter(data: bytes) -> object:
        return server_health(cast(ServiceDoor, SimpleNamespace(hear=lambda _: data)))

    return Door(enter, (b'{"status": "ok", "version": "1", "count": 3, "seconds": 1.5}',), "json")


@door(cost=6)
def session() -> Door:
    """A whole session of requests, from a client that has met the server."""
    from ppspeech.service import QueryBudget
    from ppspeech.service.server.book import Tally
    from ppspeech.service.server.session import Handler, run_session

    folder = new_folder()
    budget = QueryBudget(folder / "b.sqlite", 2)
    handlers = {Ask.WORDS: Handler(lambda channel, _: channel.receive(1, 4)), Ask.ENROLL: Handler(lambda *_: None)}
    served: Any = SimpleNamespace(offer=SimpleNamespace(fingerprint="m"), meet=lambda *_: handlers)

    def enter(data: bytes) -> None:
        run_session(served, Says(*apart(data)), Tally(), budget)

    asked = [Request(what).encode() for what in (Ask.PING, Ask.WORDS, Ask.BYE)]
    return Door(enter, (several(asked[0], asked[1], b"four", asked[2]), several(*[asked[0]] * 20)))
