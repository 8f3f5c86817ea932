"""Doors of files that others wrote: bundles, statements, accounts, manifests, filtered features, addresses."""

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ppspeech.audio import GivenFeatures
from ppspeech.bundle import BundleConfig, PrivacyStatement, load_bundle, read_json, write_bundle
from ppspeech.bundle.format import CONFIG, DIGESTS, EVENTS, METRICS, PRIVACY, WEIGHTS, digest_file
from ppspeech.bundle.metrics import metrics_from_json
from ppspeech.bundle.reader import replay
from ppspeech.bundle.weights import read_weights
from ppspeech.data import SpeechDataModule, load_corpus, write_rows_packed
from ppspeech.data.filtered import FILTERING, read_filtering, read_given
from ppspeech.figures import Figure
from ppspeech.network import Address
from ppspeech.privacy import Guarantee
from tests.bundle.conftest import gaussian_account, small_config, statement_of, trained
from tests.fuzz.door import Door, door, new_folder


def _bundle() -> Path:
    """A bundle of its own in a new folder."""
    folder, config, account = new_folder() / "words", small_config(), gaussian_account()
    metrics = [Figure("test.accuracy", 0.91, note="12 unseen speakers")]
    statement = statement_of(account)
    write_bundle(folder, model=trained(config), config=config, statement=statement, account=account, metrics=metrics)
    return folder


def _file(name: str) -> bytes:
    return (_bundle() / name).read_bytes()


def _whole(name: str, form: Any = "json") -> Door:
    """A whole bundle with one file changed, and digests that fit: whoever made it, made them too."""
    bundle = _bundle()
    contents = {path.name: path.read_bytes() for path in bundle.iterdir() if path.name != DIGESTS}

    def enter(data: bytes) -> object:
        (bundle / name).write_bytes(data)
        if name != DIGESTS:
            (bundle / DIGESTS).write_bytes(digest_file(contents | {name: data}))
        return load_bundle(bundle)

    return Door(enter, ((bundle / name).read_bytes(),), form)


@door(cost=20)
def song_index() -> Door:
    """An index of songs."""
    from ppspeech.service import index_songs, read_index
    from tests.audio.test_music import tune

    path = new_folder() / "songs.index"
    index_songs(("a", "b"), [tune(5.3, 0), tune(5.3, 1)], 16_000).write(path)
    seed = path.read_bytes()

    def enter(data: bytes) -> object:
        path.write_bytes(data)
        return read_index(path)

    return Door(enter, (seed,))


@door(cost=20)
def ledger() -> Door:
    """Lines under hashes that fit: whoever made them, made those too."""
    from ppspeech.bundle.releases.ledger import add_release, parse_ledger

    path = new_folder() / "releases.jsonl"
    add_release(path, load_bundle(_bundle()), data="ward 7", by="ann")
    seal = len(', "hash": ""}\n') + 64
    line = path.read_bytes()

    def enter(data: bytes) -> object:
        if data == line:
            return parse_ledger(data)
        body = data.rstrip().removesuffix(b"}")
        return parse_ledger(body + f', "hash": "{hashlib.sha256(body).hexdigest()}"}}\n'.encode())

    return Door(enter, (line, line[:-seal] + b"}"), "json")


@door(cost=20)
def signature() -> Door:
    """What a signature says before anything of it is checked."""
    from ppspeech.bundle.releases.signing import _signed

    digest = {"name": "model.safetensors", "algorithm": "sha256", "digest": "00" * 32}
    kind = "https://model_signing/signature/v1.0"
    payload = json.dumps({"predicateType": kind, "predicate": {"resources": [digest]}})
    envelope = {"payload": base64.b64encode(payload.encode()).decode(), "signatures": [{"sig": "AA=="}]}
    hint = {"publicKey": {"hint": "00" * 32}}
    seed = json.dumps({"verificationMaterial": hint, "dsseEnvelope": envelope}).encode()
    return Door(_signed, (seed,), "json")


@door(cost=10)
def bundle_config() -> Door:
    def enter(data: bytes) -> object:
        return BundleConfig.from_json(read_json(data, CONFIG)).tensors()

    return Door(enter, (_file(CONFIG),), "json")


@door(cost=10)
def bundle_statement() -> Door:
    def enter(data: bytes) -> object:
        return PrivacyStatement.from_json(read_json(data, PRIVACY))

    return Door(enter, (_file(PRIVACY),), "json")


@door(cost=10)
def bundle_events() -> Door:
    return Door(lambda data: replay(read_json(data, EVENTS), EVENTS), (_file(EVENTS),), "json")


@door(cost=10)
def bundle_metrics() -> Door:
    return Door(lambda data: metrics_from_json(read_json(data, METRICS)), (_file(METRICS),), "json")


@door(cost=10)
def bundle_weights() -> Door:
    shapes = small_config().tensors()
    return Door(lambda data: read_weights(data, shapes), (_file(WEIGHTS),))


@door(cost=300)
def whole_config() -> Door:
    return _whole(CONFIG)


@door(cost=300)
def whole_statement() -> Door:
    return _whole(PRIVACY)


@door(cost=600)
def whole_events() -> Door:
    return _whole(EVENTS)


@door(cost=300)
def whole_digests() -> Door:
    return _whole(DIGESTS)


@door(cost=10)
def searched_archive() -> Door:
    """Recordings that can be searched."""
    from ppspeech.service.archive import Archive, index_recordings
    from tests.service.voices import voice

    return Door(Archive.from_bytes, (index_recordings({"a": voice(0, 0.9)}, rate=16_000).to_bytes(),))


@door(cost=5)
def patch_word() -> Door:
    """A word by patches of its spectrogram."""
    import numpy as np

    from ppspeech.models import PatchDetector
    from ppspeech.service.patches import Learned, PatchWord
    from ppspeech.service.tasks.spotting import PatchSize

    grid = PatchSize("linear", 1, 2, 0).grid
    rows = np.ones((2, grid.bands * grid.span))
    own = PatchDetector(grid, rows, np.zeros(2), np.ones(2), -0.5, "linear")
    return Door(PatchWord.from_bytes, (PatchWord(own, Learned(4, 1.0, 1, 1, 0.3, 0)).to_bytes(),))


@door(cost=5)
def guarantee() -> Door:
    plain = statement_of(gaussian_account()).guarantee.to_json()
    from ppspeech.bundle import write_json

    return Door(lambda data: Guarantee.from_json(read_json(data, "a guarantee")), (write_json(plain),), "json")


@door(cost=60)
def manifest() -> Door:
    """A folder of sounds as someone packed it."""
    folder = new_folder()
    for name in ("a.npy", "b.npy"):
        np.save(folder / name, np.ones((3, 2), np.float32))
    (folder / FILTERING).write_bytes(FILTERED)
    seed = b"path,speaker,word,gender,take,subset\na.npy,ann,yes,f,0,train\nb.npy,bob,no,m,1,test\n"

    def enter(data: bytes) -> object:
        (folder / "manifest.csv").write_bytes(data)
        return load_corpus("folder", folder=folder)

    return Door(enter, (seed,), "csv")


FILTERED = (
    b'{"format": 2, "kind": "frames", "features": 2, "label": "word", "sample_rate": 16000, '
    b'"statement": {"guarantee": null}}'
)


@door(cost=10)
def filtering() -> Door:
    folder = new_folder()

    def enter(data: bytes) -> object:
        (folder / FILTERING).write_bytes(data)
        return read_filtering(folder)

    return Door(enter, (FILTERED,), "json")


@door(cost=20)
def filtered_features() -> Door:
    folder = new_folder()
    file = folder / "a.npy"
    np.save(file, np.ones((3, 2), np.float32))
    seed = file.read_bytes()

    def enter(data: bytes) -> object:
        file.write_bytes(data)
        return read_given(file, 2)

    return Door(enter, (seed,))


def _packed(name: str, form: Any = "bytes") -> Door:
    """A folder of packed features with one file changed, taken whole."""
    folder = new_folder() / "packed"
    names: dict[str, tuple[str, ...]] = {"word": ("no", "yes"), "speaker": ("ann", "bob"), "emotion": (), "gender": ()}
    rows = [(torch.ones(3, 2), (place % 2, place // 2, -1, -1, 0)) for place in range(4)]
    write_rows_packed(folder, "some", 16_000, GivenFeatures(given=2), names, rows)

    def enter(data: bytes) -> object:
        (folder / name).write_bytes(data)
        found = SpeechDataModule(str(folder), test=0)
        found.setup()
        part = found.parts["train"]
        return [(part[place], part.corpus[place]) for place in range(len(part))]

    return Door(enter, ((folder / name).read_bytes(),), form)


@door(cost=40)
def packed() -> Door:
    return _packed("packed.json", "json")


@door(cost=40)
def packed_starts() -> Door:
    return _packed("starts.npy")


@door(cost=40)
def packed_labels() -> Door:
    return _packed("labels.npy")


@door(cost=40)
def archive() -> Door:
    """A table of numbers, as its authors pack it."""
    from ppspeech.data.tables.files import read_arrays

    file = new_folder() / "a.npz"
    np.savez(file, x=np.ones((3, 2)), y=np.arange(3))
    seed = file.read_bytes()

    def enter(data: bytes) -> object:
        file.write_bytes(data)
        return read_arrays(file, {"x": ("f", (3, 2)), "y": ("i", (3,))})

    return Door(enter, (seed,))


@door()
def address() -> Door:
    return Door(lambda data: Address.parse(data.decode(errors="replace")), (b"127.0.0.1:7000", b"[::1]:80"))
