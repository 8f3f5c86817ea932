"""Log-ins through the service: who is let in, who is locked out, what the store and the log tell."""

import json
import math
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import Result
from typer.testing import CliRunner

from ppspeech.audio import write_audio
from ppspeech.cli import app
from ppspeech.data import SyntheticCorpus
from ppspeech.errors import AudioError, BundleError, ModelError, PpspeechError, RangeError
from ppspeech.models import Impostors
from ppspeech.network import Server, ServerTls, in_background, make_certificate
from ppspeech.network.address import Address
from ppspeech.protocols.speakers import LoginTerms, voice_codes
from ppspeech.service import Client, ServiceFiles, connect
from ppspeech.service.client.login import NameLockedError
from ppspeech.service.login import (
    RATE,
    Accounts,
    LoginDeployment,
    LoginEar,
    LoginSpace,
    ServedLogin,
    Template,
    digit_clips,
    joined,
    learn_digits,
    new_key,
    read_key,
    remove_account,
    space_of,
    unlock_account,
    until_said,
    write_key,
)
from ppspeech.service.login.seal import open_sealed, seal, sealed_bytes
from ppspeech.service.login.thresholds import VoiceThresholds, amount_of
from ppspeech.service.server import services_of
from ppspeech.service.server.book import FIELDS
from ppspeech.service.tasks.login import Login
from tests.service.conftest import QUICK
from tests.service.login_people import Person, ToldEar, cohort_bundle, made_up_space

TERMS = LoginTerms(256, 9)
ANN, BEN = Person(1), Person(2)
ALL = {digit: ["clip"] for digit in range(10)}
Asked = tuple[int, ...]


def said(asked: Asked) -> np.ndarray:
    return np.array(asked, np.float32)


class House:
    """A server that people log in to, and its clients."""

    def __init__(self, folder: Path, deployment: LoginDeployment) -> None:
        self.folder = folder
        self.served = ServedLogin.of("login", cohort_bundle(folder / "bundle"), folder, deployment, made_up_space())
        self.pin = make_certificate(folder / "c.pem", folder / "k.pem")
        services = services_of([self.served], ServiceFiles.at(folder))
        tls = ServerTls(folder / "c.pem", folder / "k.pem")
        self.server = Server(Address("127.0.0.1", 0), services, tls=tls, limits=QUICK)

    def client(self, person: Person) -> Client:
        client = connect(str(self.server.address), pin=self.pin, task="login", limits=QUICK, keep_payloads=True)
        client._questions.ear = ToldEar(person)
        return client


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    made = House(tmp_path_factory.mktemp("login"), LoginDeployment(tries=2))
    with in_background(made.server):
        yield made


@pytest.fixture(scope="module")
def keys(house: House) -> dict[str, bytes]:
    """Ann and Ben, who may log in."""
    own = {"ann": new_key(), "ben": new_key()}
    with house.client(ANN) as client:
        for name, person in (("ann", ANN), ("ben", BEN)):
            client._questions.ear = ToldEar(person)
            client.join(name, own[name], ALL)
    return own


def test_people_are_let_in_and_nobody_else(house: House, keys: dict[str, bytes]) -> None:
    """An impostor with the key and the digits; the person with yesterday's digits, or today's in another order."""
    with house.client(ANN) as client:
        assert client.log_in("ann", keys["ann"], said).value is True
        assert client.log_in("ann", keys["ann"], lambda asked: (said(asked) + 1) % 10).value is False
        assert client.log_in("ann", keys["ann"], said).value is True  # and what was counted is forgiven
        client._questions.ear = ToldEar(BEN)
        assert client.log_in("ann", keys["ann"], said).value is False
        client._questions.ear = ToldEar(ANN)
        assert client.log_in("ann", keys["ann"], said).value is True
    kept = [json.loads(line) for line in (house.folder / "logins.jsonl").read_text().splitlines()]
    assert [line["accepted"] for line in kept if line["name"] == "ann"] == [True, False, True, False, True]
    assert (house.folder / "logins.jsonl").stat().st_mode & 0o077 == 0


def test_a_wrong_key_and_an_unknown_name_are_refused_alike(house: House, keys: dict[str, bytes]) -> None:
    """Both are asked for digits, in the same messages as somebody who is let in, and lock nobody out."""
    with house.client(ANN) as client:
        shapes = []
        for name, key in (("ann", keys["ann"]), *[("ann", keys["ben"])] * 3, ("zoe", new_key())):
            answer = client.log_in(name, key, said)
            assert answer.value is (key == keys["ann"])
            shapes.append(answer.transcript.shape())
        assert all(shape == shapes[0] for shape in shapes)
        assert client.log_in("ann", keys["ann"], said).value is True


def test_a_name_is_locked_after_failures_in_a_row(house: House) -> None:
    key = new_key()
    with house.client(ANN) as client:
        client.join("eve", key, ALL)
        client._questions.ear = ToldEar(BEN)
        for _ in range(2):
            assert client.log_in("eve", key, said).value is False
        client._questions.ear = ToldEar(ANN)
        with pytest.raises(NameLockedError, match=r"eve has failed 2 times or more .* for \d+ s"):
            client.log_in("eve", key, said)
        assert client.log_in("eve", new_key(), said).value is False  # who has not the key is not told


def test_whoever_hangs_up_on_a_question_has_failed(house: House) -> None:
    """A client that waits for digits it has recordings of gets as many questions as tries."""

    def hang_up(asked: Asked) -> np.ndarray:
        raise AudioError(f"no recording of {asked}")

    key = new_key()
    with house.client(ANN) as client:
        client.join("kim", key, ALL)
        for _ in range(2):
            with pytest.raises(AudioError):
                client.log_in("kim", key, hang_up)
        with pytest.raises(NameLockedError):
            client.log_in("kim", key, said)


def test_what_is_asked_differs_from_one_attempt_to_the_next(house: House, keys: dict[str, bytes]) -> None:
    heard: list[Asked] = []
    with house.client(BEN) as client:
        for _ in range(4):
            assert client.log_in("ben", keys["ben"], lambda asked: said(heard.append(asked) or asked)).value
    assert len(set(heard)) > 1  # but for a chance of 1e-12


def test_a_stolen_store_tells_no_template(house: House, keys: dict[str, bytes]) -> None:
    """No file holds numbers or codes of a voice or digit, as floats or bits; two of one template differ."""
    del keys
    told = [each for person in (ANN, BEN) for each in (person.voice, *person.digits)]
    pieces = [each.astype(kind).tobytes()[:24] for each in told for kind in ("<f4", "<f8", ">f4")]
    pieces += [np.packbits(voice_codes(each[None], bits))[:12].tobytes() for each in told for bits in (512, 8192)]
    files = [path for path in house.folder.rglob("*") if path.is_file() and not path.name.endswith("-journal")]
    assert any(path.name == "accounts.sqlite" for path in files)  # a journal goes when what is written is written
    for path in files:
        data = path.read_bytes()
        assert not any(piece in data for piece in pieces), path.name
    assert house.served.accounts.sealed("ann")
    key, template = new_key(), Template(ANN.voice, ANN.digits)
    assert seal(key, "ann", "space", template) != seal(key, "ann", "space", template)


def test_the_log_has_neither_names_nor_templates_nor_scores(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is logged of a log-in: a session and the decision."""
    import ppspeech.service.login.served as module
    from ppspeech.service.server.book import Visitor

    served = ServedLogin.of("login", cohort_bundle(tmp_path / "b"), tmp_path, None, made_up_space())
    key = new_key()
    served.accounts.enroll("ann", seal(key, "ann", served.space, Template(ANN.voice, ANN.digits)))
    monkeypatch.setattr(module, "log_in_as_server", lambda *_: True)
    monkeypatch.setattr(module, "send_ready", lambda *_: None)
    monkeypatch.setattr(module, "receive_name", lambda _: "ann")

    class Sends:
        def receive(self, _kind: int, _size: int) -> bytes:
            return key

    with caplog.at_level("DEBUG", "ppspeech"):
        served._log_in(Sends(), None, Visitor("here", "abc"))  # type: ignore[arg-type]
    (line,) = [each for each in caplog.records if each.message == "log-in decided"]
    assert getattr(line, FIELDS) == {"session": "abc", "accepted": True}
    assert "ann" not in caplog.text
    assert key.hex() not in caplog.text


def test_enrollment_is_refused_where_it_must_be(house: House, keys: dict[str, bytes], tmp_path: Path) -> None:
    with house.client(ANN) as client:
        with pytest.raises(PpspeechError, match="name is taken"):
            client.join("ann", keys["ann"], ALL)
        with pytest.raises(ModelError, match="a key has 32 bytes"):
            client.join("new", b"short", ALL)
        with pytest.raises(RangeError, match="a name is printable"):
            client.join("far too long a name for anybody", new_key(), ALL)
    closed = House(tmp_path, LoginDeployment(enrolls=False))
    with in_background(closed.server), closed.client(ANN) as client, pytest.raises(ModelError, match="enrolls nobody"):
        client.join("ann", new_key(), ALL)


def test_what_is_sealed_opens_by_its_key_for_its_name_alone() -> None:
    key, template = new_key(), Template(ANN.voice, ANN.digits)
    sealed = seal(key, "ann", "space", template)
    assert len(sealed) == sealed_bytes(TERMS)
    opened = open_sealed(key, "ann", "space", sealed, TERMS)
    assert opened is not None
    np.testing.assert_allclose(opened.voice, ANN.voice, atol=1e-6)
    np.testing.assert_allclose(opened.digits, ANN.digits, atol=1e-6)
    for other in ((new_key(), "ann", "space"), (key, "ben", "space"), (key, "ann", "elsewhere")):
        assert open_sealed(*other, sealed, TERMS) is None
    assert open_sealed(key, "ann", "space", sealed[:-1] + bytes([sealed[-1] ^ 1]), TERMS) is None
    with pytest.raises(RangeError, match="length 1"):
        Template(2 * ANN.voice, ANN.digits)


def test_failures_are_counted_and_forgiven(tmp_path: Path) -> None:
    """By a clock of our own: locked for 100 s after the third failure, and after every one that follows."""
    now = [1000.0]
    accounts = Accounts(tmp_path / "a.sqlite", "space", 3, 100.0, lambda: now[0])
    assert accounts.enroll("ann", b"sealed")
    assert not accounts.enroll("ann", b"other")
    assert accounts.sealed("ann") == b"sealed"
    assert Accounts(tmp_path / "a.sqlite", "other space").sealed("ann") is None
    assert [accounts.begin("ann") for _ in range(4)] == [0, 0, 0, 100]
    now[0] += 60
    assert accounts.begin("ann") == 40
    now[0] += 40
    assert accounts.begin("ann") == 0
    assert accounts.begin("ann") == 100
    now[0] -= 10_000  # a clock that was set back
    assert accounts.begin("ann") == 100
    now[0] += 10_000 - 1  # no question is given away until it is where it was
    assert accounts.begin("ann") == 100
    now[0] += 10_000
    assert accounts.begin("ann") == 0
    accounts.succeeded("ann")
    assert [accounts.begin("ann") for _ in range(4)] == [0, 0, 0, 100]
    with pytest.raises(PpspeechError, match="one try or more"):
        Accounts(tmp_path / "a.sqlite", "space", 0)


@pytest.mark.parametrize("seconds", [0.0, 2.0**32 - 1, 2.0**32, math.inf, math.nan])
def test_a_lock_whose_length_cannot_be_told_is_refused(tmp_path: Path, seconds: float) -> None:
    """Of 32 bits one number says that there is none, and a longer one would end the session of who is locked out."""
    with pytest.raises(PpspeechError, match="is locked for up to 1,000,000,000 s"):
        Accounts(tmp_path / "a.sqlite", "space", 5, seconds)


def test_clocks_that_differ_give_no_more_tries(tmp_path: Path) -> None:
    """Two servers of one store, asked in turn for an hour of locks: one of them is behind by half a lock."""
    now = [1000.0]
    ahead, behind = (
        Accounts(tmp_path / "a.sqlite", "space", 3, 100.0, clock) for clock in (lambda: now[0], lambda: now[0] - 50)
    )
    assert ahead.enroll("ann", b"sealed")
    tried = 0
    for _ in range(1000):
        tried += sum(each.begin("ann") == 0 for each in (ahead, behind))
        now[0] += 1
    assert tried <= 3 + 2 * 1000 // (2 * 100 - 50)


def test_a_clock_that_was_set_back_locks_until_somebody_unlocks(tmp_path: Path) -> None:
    now = [1e9]
    accounts = Accounts(tmp_path / "accounts.sqlite", "space", 1, 100.0, lambda: now[0])
    assert accounts.enroll("ann", b"sealed")
    assert accounts.begin("ann") == 0
    now[0] -= 1e8
    assert accounts.begin("ann") == 100
    now[0] += 1e6
    assert accounts.begin("ann") == 100
    unlock_account(tmp_path, "ann")
    assert accounts.begin("ann") == 0


def test_whoever_keeps_the_store_unlocks_and_removes_people(house: House) -> None:
    """While the server runs: who was locked is let in, who was removed is refused like anybody, and may come anew."""
    key, store = new_key(), ("--store", str(house.folder), "--json")

    def run(*words: str) -> Any:
        return json.loads(CliRunner().invoke(app, ["login", *words, *store]).output)

    with house.client(BEN) as client:
        client._questions.ear = ToldEar(ANN)
        client.join("pat", key, ALL)
        client._questions.ear = ToldEar(BEN)
        assert [client.log_in("pat", key, said).value for _ in range(2)] == [False, False]
        client._questions.ear = ToldEar(ANN)
        with pytest.raises(NameLockedError):
            client.log_in("pat", key, said)
        assert run("unlock", "pat") == {"name": "pat", "unlocked": True}
        assert client.log_in("pat", key, said).value is True
        sealed = house.served.accounts.sealed("pat")
        assert sealed is not None
        assert sealed in (house.folder / "accounts.sqlite").read_bytes()
        assert run("remove", "pat") == {"name": "pat", "removed": True}
        assert sealed[:16] not in (house.folder / "accounts.sqlite").read_bytes()
        assert sealed[-16:] not in (house.folder / "accounts.sqlite").read_bytes()
        assert client.log_in("pat", key, said).value is False
        client.join("pat", key, ALL)
        assert client.log_in("pat", key, said).value is True


def test_a_name_that_goes_during_an_attempt_is_not_counted(tmp_path: Path) -> None:
    accounts = Accounts(tmp_path / "accounts.sqlite", "space", 1)
    other = Accounts(tmp_path / "accounts.sqlite", "another space", 1)
    assert all([accounts.enroll("ann", b"sealed"), accounts.enroll("ben", b"kept"), other.enroll("ann", b"as well")])
    remove_account(tmp_path, "ann")
    assert (accounts.sealed("ann"), other.sealed("ann"), accounts.sealed("ben")) == (None, None, b"kept")
    assert [accounts.begin("ann") for _ in range(3)] == [0, 0, 0]
    accounts.succeeded("ann")
    assert [accounts.begin("ben") for _ in range(2)] == [0, 900]
    unlock_account(tmp_path, "ben")
    assert accounts.begin("ben") == 0


@pytest.mark.parametrize("do", [remove_account, unlock_account])
def test_accounts_that_are_not_there_are_neither_made_nor_changed(tmp_path: Path, do: Any) -> None:
    with pytest.raises(PpspeechError, match="keeps no accounts"):
        do(tmp_path, "ann")
    assert not list(tmp_path.iterdir())
    Accounts(tmp_path / "accounts.sqlite", "space").enroll("ann", b"sealed")
    with pytest.raises(PpspeechError, match="no account of 'Ann'"):
        do(tmp_path, "Ann")
    with pytest.raises(RangeError):
        do(tmp_path, "")
    assert Accounts(tmp_path / "accounts.sqlite", "space").sealed("ann") == b"sealed"
    (tmp_path / "accounts.sqlite").write_bytes(b"no table" * 100)
    with pytest.raises(PpspeechError, match="cannot hold accounts"):
        do(tmp_path, "ann")


def test_keys_are_files_of_their_owner_alone(tmp_path: Path) -> None:
    path, key = tmp_path / "own" / "ann.key", new_key()
    write_key(path, key)
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_key(path) == key
    with pytest.raises(PpspeechError, match="is there already"):
        write_key(path, new_key())
    path.chmod(0o640)
    with pytest.raises(PpspeechError, match="others can read"):
        read_key(path)
    path.write_text("no key")
    path.chmod(0o600)
    with pytest.raises(PpspeechError, match="holds no key"):
        read_key(path)
    with pytest.raises(PpspeechError, match="cannot read"):
        read_key(tmp_path / "none")


def test_bundles_and_offers_that_cannot_be_are_refused(tmp_path: Path, house: House) -> None:
    from tests.service.voices import released

    with pytest.raises(BundleError, match="voices learn"):
        space_of(released(tmp_path / "words"), (np.zeros(192), np.zeros((192, 9))))
    with pytest.raises(BundleError, match="false-accept"):
        LoginDeployment(false_accept=0.0)
    terms = house.served.offer.terms
    facts = {name: getattr(terms, name) for name in ("plan", "voice", "speech", "space", "seconds", "tries", "enrolls")}
    for wrong in (
        {"voice": "0" * 64},
        {"plan": LoginTerms(255, 9)},
        {"space": terms.space[1:]},
        {"space": (float("nan"), *terms.space[1:])},
        {"seconds": 0.5},
        {"tries": 0},
    ):
        with pytest.raises(BundleError):
            Login(**{**facts, **wrong})


def test_the_command_line_enrolls_and_checks(house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key is written once, and not left where enrolling fails."""
    monkeypatch.setattr("ppspeech.service.client.login.LoginEar", lambda _: ToldEar(ANN))
    monkeypatch.setattr("ppspeech.cli.login._clips", lambda _: said)
    for digit in range(10):
        (tmp_path / f"{digit}.wav").touch()
    key, trust = tmp_path / "keys" / "lea.key", ["--pin", house.pin, "--json"]
    place = str(house.server.address)

    def run(*words: str) -> Result:
        return CliRunner().invoke(app, ["login", *words, "--key", str(key), *trust])

    done = run("enroll", place, "lea", str(tmp_path))
    assert json.loads(done.output) == {"name": "lea", "key": str(key), "clips": 10}
    checked = json.loads(run("check", place, "lea", "--digits-from", str(tmp_path)).output)
    assert checked["accepted"] is True
    assert checked["rounds"] >= 3
    again = run("enroll", place, "lea", str(tmp_path))
    assert (again.exit_code, "is there already" in again.output) == (2, True)
    key.unlink()
    taken = run("enroll", place, "lea", str(tmp_path))
    assert (taken.exit_code, "name is taken" in taken.output) == (2, True)
    assert not key.exists()


# With the networks.


@pytest.fixture(scope="module")
def spoken(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[int, list[np.ndarray]]]:
    """Two built-in voices say the digits three times each, at 16 kHz."""
    from ppspeech.audio import read_samples

    corpus = SyntheticCorpus(speakers=2, takes=3).build(tmp_path_factory.mktemp("spoken"), progress=False)
    found: dict[str, dict[int, list[np.ndarray]]] = {}
    for each in corpus:
        digit = SyntheticCorpus().words.index(each.word or "")
        found.setdefault(each.speaker, {}).setdefault(digit, []).append(read_samples(each.path)[0])
    return found


@pytest.fixture(scope="module")
def ear() -> LoginEar:
    pytest.importorskip("onnxruntime")
    mean, projection = learn_digits(6, 1)
    return LoginEar(LoginSpace(np.zeros(256), mean, projection))


LIGHT = """
import json, sys

for package in ("torch", "torchaudio", "scipy", "sklearn", "safetensors", "pytorch_lightning"):
    sys.modules[package] = None  # as if it were not installed
from ppspeech.cli import app

app(standalone_mode=True)
"""


def test_a_client_without_torch_enrolls_and_is_let_in(
    house: House, spoken: dict[str, dict[int, list[np.ndarray]]], tmp_path: Path
) -> None:
    pytest.importorskip("onnxruntime")
    clips = tmp_path / "clips"
    clips.mkdir()
    for digit, takes in next(iter(spoken.values())).items():
        for take, samples in enumerate(takes):
            write_audio(clips / f"{digit}_{take}.wav", torch.from_numpy(samples), RATE)

    def run(*words: str) -> Any:
        command = [sys.executable, "-c", LIGHT, "login", *words, "--key", str(tmp_path / "own.key")]
        trust = ["--pin", house.pin, "--json"]
        done = subprocess.run([*command, *trust], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    place = str(house.server.address)
    assert run("enroll", place, "liv", str(clips))["clips"] == 30
    assert run("check", place, "liv", "--digits-from", str(clips))["accepted"] is True
    assert house.served.accounts.sealed("liv") is not None


def test_digits_are_heard_and_told_apart(ear: LoginEar, spoken: dict[str, dict[int, list[np.ndarray]]]) -> None:
    """Cut from one recording with pauses, each is nearest to how the person said it before, and most of all digits."""
    own = next(iter(spoken.values()))
    voice, digits = ear.template({digit: takes[:2] for digit, takes in own.items()}, RATE)
    asked = [3, 1, 4, 8]
    heard, found = ear.answer(joined([own[digit][2] for digit in asked]), RATE, 4)
    assert heard.shape == (256,)
    assert found.shape == (4, 9)
    assert (found @ digits.T).argmax(axis=1).tolist() == asked
    assert heard @ voice > 0.7


def test_more_or_fewer_words_than_asked_for_are_refused(
    ear: LoginEar, spoken: dict[str, dict[int, list[np.ndarray]]]
) -> None:
    own = next(iter(spoken.values()))
    with pytest.raises(AudioError, match="3 words were heard where 4 digits were asked for"):
        ear.answer(joined([own[digit][0] for digit in (1, 2, 3)]), RATE, 4)
    with pytest.raises(AudioError, match="up to 20 s"):
        ear.answer(np.zeros(21 * RATE, np.float32), RATE, 4)
    with pytest.raises(AudioError, match="no clip of 7"):
        ear.template({digit: takes for digit, takes in own.items() if digit != 7}, RATE)


def test_listening_ends_after_the_last_digit(spoken: dict[str, dict[int, list[np.ndarray]]]) -> None:
    """What follows a pause after the last one is not taken."""
    pytest.importorskip("onnxruntime")
    own = next(iter(spoken.values()))
    said = joined([own[digit][0] for digit in (2, 5, 0, 9)])
    chunks = np.array_split(np.concatenate([said, np.zeros(3 * RATE, np.float32)]), 60)
    heard = np.concatenate(list(until_said(chunks, 4)))
    assert len(said) - 0.2 * RATE < len(heard) < len(said) + RATE


def test_clips_are_named_after_digits(tmp_path: Path) -> None:
    for name in ("0.wav", "1_first.wav", "1-again.wav"):
        (tmp_path / name).touch()
    found = digit_clips([tmp_path])
    assert {digit: len(paths) for digit, paths in found.items()} == {0: 1, 1: 2}
    for name in ("10.wav", "seven.wav"):
        with pytest.raises(AudioError, match=re.escape(f"/{name}")):
            digit_clips([tmp_path / name])


def test_strangers_pass_at_the_rate_and_what_is_common_for_nobody() -> None:
    """Made-up people: of 20 a cohort, of 40 others at most three times the rate pass; nobody by the cohort's mean."""
    generator = np.random.default_rng(3)
    people = generator.normal(size=(60, 256))
    trials = people[:, None] + 1.2 * generator.normal(size=(60, 6, 256))
    trials /= np.linalg.norm(trials, axis=-1, keepdims=True)
    owners = tuple(np.repeat(np.arange(20), 6).tolist())
    rule = VoiceThresholds.among(trials[:20].reshape(-1, 256), owners, 0.01)
    templates = people[20:] / np.linalg.norm(people[20:], axis=1, keepdims=True)
    passed = np.array([trials[20:] @ own >= rule.least(own) for own in templates])
    own = np.eye(40, dtype=bool)
    assert passed[~own].mean() < 0.03
    assert passed[own].mean() > 0.9
    common = trials[:20].reshape(-1, 256).mean(axis=0)
    common /= np.linalg.norm(common)
    assert max(common @ own - rule.least(own) for own in templates) < 0
    near = templates[0] + 3 * common  # somebody who is like everybody
    near /= np.linalg.norm(near)
    assert rule.least(near) > common @ near
    assert amount_of(Impostors((30, 90, 270, 810), (), None, None)) == 2  # type: ignore[arg-type]
    assert amount_of(Impostors((300,), (), None, None)) == 0  # type: ignore[arg-type]
