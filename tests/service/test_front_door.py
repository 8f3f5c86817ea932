"""`from ppspeech import serve, connect, load_bundle`: the words and speakers of a server are those in the clear."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ppspeech import Accountant, Mfcc, connect, load_bundle, load_corpus, serve
from ppspeech.audio import write_audio
from ppspeech.bundle import Bundle
from ppspeech.errors import ModelError, PpspeechError
from ppspeech.service import Deployment, SentenceDeployment, SpeakerDeployment
from ppspeech.service.server import kept_folder
from tests.service.voices import RATE, SENTENCES, SPEAKERS, released, sure, voice

ONE_WORD = """
import sys
from ppspeech import connect

address, pin, clip = sys.argv[1:]
with connect(address, pin=pin, task="words") as client:
    print(client.recognize(clip).value)
others = ("ppspeech.protocols.speakers", "ppspeech.protocols.sentences", "ppspeech.service.server", "pytorch_lightning")
terms = ("tasks.sentences", "tasks.speakers")
loaded = [name for name in sys.modules if name.startswith(others) or name.endswith(terms)]
assert not loaded, loaded
"""

LIGHT = r"""
import importlib.metadata, re, sys

light = {re.match(r"[\w.-]+", line)[0] for line in importlib.metadata.requires("ppspeech") if "extra ==" not in line}
full = {re.match(r"[\w.-]+", line)[0] for line in importlib.metadata.requires("ppspeech") if "extra == 'full'" in line}
assert {"numpy", "tenseal"} <= light and {"torch", "scipy", "safetensors"} <= full, (light, full)
modules = {"pytorch-lightning": "pytorch_lightning", "scikit-learn": "sklearn", "dp-accounting": "dp_accounting"}
for package in full:  # as if they were not installed
    sys.modules[modules.get(package, package)] = None
from ppspeech import connect

address, pin, word, sentence = sys.argv[1:]
with connect(address, pin=pin, model="words") as client:
    print(client.recognize(word).value)
    with client.stream() as listening:
        from ppspeech.audio import read_samples
        listening.feed(read_samples(word)[0])
        print(listening.finish().value)
with connect(address, pin=pin, model="spoken") as client:
    print(*(each.value for each in client.transcribe(sentence).value))
try:
    from ppspeech import load_bundle
except ImportError as refused:
    print(refused)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("door")
    released(folder / "words")
    released(folder / "voices", SPEAKERS)
    write_audio(folder / "said.wav", sure(released(folder / "spoken", SENTENCES), 40), RATE)
    for seed in range(2):
        write_audio(folder / f"{seed}.wav", voice(seed), RATE)
    return folder


def test_serve_and_connect_are_as_short_as_in_the_clear(folder: Path) -> None:
    words, voices = load_bundle(folder / "words"), load_bundle(folder / "voices")
    choices = SpeakerDeployment(places=3, threshold=0.95, enrolls=True)
    own = {"words": Deployment(frames=40), "speakers": choices, "sentences": SentenceDeployment(frames=64)}
    with serve(folder / "words", voices, folder / "spoken", budget=9, **own) as server:
        with pytest.raises(PpspeechError, match="choose one of words, spoken"):
            connect(server.address, pin=server.pin)
        with connect(server.address, pin=server.pin, model="spoken") as client:
            heard = client.transcribe(folder / "said.wav").value
            assert heard == load_bundle(folder / "spoken").transcribe(folder / "said.wav")
            with pytest.raises(ModelError, match="spoken does not recognize_all: it is offered for sentences"):
                client.recognize(folder / "0.wav")
        with connect(server.address, pin=server.pin, model="words") as client:
            heard, clear = client.recognize(folder / "0.wav"), words.recognize(folder / "0.wav")
            assert heard.value == clear.value or clear.margin < 0.5
            assert client.queries_left == 8
            with pytest.raises(ModelError, match="words does not verify: it is offered for words"):
                client.verify(0, [folder / "0.wav"])
        with connect(server.address, pin=server.pin, bundle=folder / "voices") as client:
            assert client.offer.name == "speaker_ubm"
            place = client.enroll("ann", [folder / "0.wav"])
            assert client.verify(place, [folder / "0.wav"]).value is True
            assert client.verify(place, [voice(5)], RATE).value is False
            assert client.identify([folder / "0.wav"]).value == "ann"
        # The server tells speakers and sentences too: a client of words loads none of their code, nor a server's.
        asked = [sys.executable, "-c", ONE_WORD, server.address, str(server.pin), str(folder / "1.wav")]
        said = subprocess.run(asked, capture_output=True, text=True, check=False)
        assert said.returncode == 0, said.stderr
        expected = words.recognize(folder / "1.wav")
        assert said.stdout.strip() == expected.value or expected.margin < 0.5
        # One who only asks needs nothing of what is for those who train.
        asked = [sys.executable, "-c", LIGHT, server.address, str(server.pin)]
        clips = [str(folder / name) for name in ("1.wav", "said.wav")]
        said = subprocess.run([*asked, *clips], capture_output=True, text=True, check=False)
        assert said.returncode == 0, said.stderr
        word, streamed, sentence, refused = said.stdout.splitlines()
        assert expected.value in {word, streamed} or expected.margin < 0.5
        assert sentence.split() == [
            each.value for each in load_bundle(folder / "spoken").transcribe(folder / "said.wav")
        ]
        assert re.search(r"load_bundle needs .*: pip install 'ppspeech\[full\]'", refused)
    with pytest.raises(PpspeechError, match="nobody listens"):
        connect(server.address, pin=server.pin)


def test_what_cannot_be_served_or_asked(folder: Path) -> None:
    with pytest.raises(PpspeechError, match="must differ"), serve(folder / "words", folder / "words"):
        pass
    with pytest.raises(PpspeechError, match="loopback"), serve(folder / "words", listen="10.0.0.1:0", insecure=True):
        pass
    with serve(folder / "voices", insecure=True) as server:
        assert server.pin is None
        with pytest.raises(PpspeechError, match="for whom a bundle is needed"):
            connect(server.address, insecure=True)
        with pytest.raises(PpspeechError, match="give the bundle"):
            connect(server.address, insecure=True, keeper=server.address)


def test_the_front_door_opens_the_rooms() -> None:
    import ppspeech

    assert (Mfcc.__module__, load_corpus.__module__) == ("ppspeech.audio.mfcc", "ppspeech.data.registry")
    assert Accountant.__module__.startswith("ppspeech.privacy.")
    assert load_bundle.__annotations__["return"] in (Bundle, "Bundle")
    with pytest.raises(AttributeError, match="nonesuch"):
        ppspeech.nonesuch  # noqa: B018


def test_the_folder_of_a_server_is_closed_to_others(tmp_path: Path) -> None:
    """Also one that was there before, and open."""
    (tmp_path / "old").mkdir(mode=0o755)
    for name in ("old", "new"):
        with kept_folder(tmp_path / name) as folder:
            assert folder.stat().st_mode & 0o077 == 0
