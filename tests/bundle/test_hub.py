"""Bundles to a hub and back: the real library, and a hub on this machine that speaks what it needs of the protocol."""

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from ppspeech.bundle import Bundle, load_bundle, pull_bundle, push_bundle
from ppspeech.bundle.format import DIGESTS, METRICS, SIGNATURE, SIZES
from ppspeech.errors import BundleError

needs_hub = pytest.mark.skipif(find_spec("huggingface_hub") is None, reason='needs pip install "ppspeech[hub]"')

COMMIT = "0123456789" * 4


class Hub(ThreadingHTTPServer):
    """Repositories by name, each its files; `claimed`: sizes that it states instead of the true ones."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.files: dict[str, dict[str, bytes]] = {}
        self.private: dict[str, bool] = {}
        self.claimed: dict[str, int] = {}
        self.fetched: list[str] = []


class Answering(BaseHTTPRequestHandler):
    server: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def answer(self, data: bytes, code: int = 200, **headers: str) -> None:
        self.send_response(code)
        for name, value in ({"Content-Length": str(len(data))} | headers).items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def say(self, plain: Any, code: int = 200) -> None:
        self.answer(json.dumps(plain).encode(), code, Content_Type="application/json")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/api/validate-yaml":
            return self.say({"errors": [], "warnings": []})
        if self.path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked['organization']}/{asked['name']}"
            self.server.files.setdefault(name, {})
            self.server.private[name] = asked.get("private", asked.get("visibility") == "private")
            return self.say({"url": f"http://127.0.0.1:{self.server.server_port}/{name}", "name": name})
        name = "/".join(self.path.split("/")[3:5])
        if "/preupload/" in self.path:
            paths = [each["path"] for each in json.loads(body)["files"]]
            return self.say({"files": [{"path": p, "uploadMode": "regular", "shouldIgnore": False} for p in paths]})
        for line in map(json.loads, body.splitlines()):
            if line["key"] == "file":
                self.server.files[name][line["value"]["path"]] = base64.b64decode(line["value"]["content"])
        here = f"http://127.0.0.1:{self.server.server_port}/{name}/commit/{COMMIT}"
        return self.say({"success": True, "commitUrl": here, "commitOid": COMMIT, "hookOutput": ""})

    def do_GET(self) -> None:
        parts = self.path.partition("?")[0].strip("/").split("/")
        name = "/".join(parts[2:4] if parts[0] == "api" else parts[:2])
        files = self.server.files.get(name)
        if files is None:
            return self.answer(b"", 404, X_Error_Code="RepoNotFound")
        if parts[0] == "api":
            sizes = {each: self.server.claimed.get(each, len(data)) for each, data in files.items()}
            listed = [{"rfilename": each, "size": size, "blobId": "0" * 40} for each, size in sizes.items()]
            return self.say({"id": name, "sha": COMMIT, "private": True, "siblings": listed, "tags": []})
        data = files[parts[-1]]
        self.server.fetched.append(parts[-1])
        return self.answer(data, X_Repo_Commit=COMMIT, ETag=f'"{hashlib.sha256(data).hexdigest()}"')

    do_HEAD = do_GET


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub that the library takes for the hub."""
    import huggingface_hub.constants as constants

    with Hub() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        here = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setattr(constants, "ENDPOINT", here)
        template = here + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no token"))
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_PROGRESS_BARS", True)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_IMPLICIT_TOKEN", True)
        yield server
        server.shutdown()
        thread.join()


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_folder_is_saved_and_loaded_as_hubs_do(folder: Path, tmp_path: Path) -> None:
    bundle = Bundle.from_pretrained(folder)
    bundle.save_pretrained(tmp_path / "deeper" / "again")
    assert contents(tmp_path / "deeper" / "again") == contents(folder)
    with pytest.raises(BundleError, match="exists already"):
        bundle.save_pretrained(folder)
    with pytest.raises(BundleError, match="no bundle at"):
        Bundle.from_pretrained(tmp_path / "absent")


@needs_hub
def test_a_bundle_goes_to_a_hub_and_comes_back(folder: Path, tmp_path: Path, hub: Hub) -> None:
    (folder / SIGNATURE).write_text("{}")  # goes along, whatever it says
    assert COMMIT in push_bundle(folder, "ward-7/words", token="none")
    assert hub.files["ward-7/words"] == contents(folder)
    assert hub.private["ward-7/words"] is True
    hub.files["ward-7/words"][".gitattributes"] = b"*.safetensors filter=lfs\n"  # as hubs add it
    pulled = pull_bundle("ward-7/words", tmp_path / "pulled", token="none")
    assert pulled.fingerprint == load_bundle(folder).fingerprint
    assert contents(tmp_path / "pulled") == contents(folder)
    assert Bundle.from_pretrained("ward-7/words").fingerprint == pulled.fingerprint
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pulled", "words"]


@needs_hub
def test_what_a_hub_holds_is_not_believed(folder: Path, tmp_path: Path, hub: Hub) -> None:
    push_bundle(folder, "ward-7/words", token="none")
    honest = hub.files["ward-7/words"]
    hub.claimed[METRICS] = SIZES[METRICS] + 1
    with pytest.raises(BundleError, match=r"metrics.json of ward-7/words has 1048577 bytes, at most"):
        pull_bundle("ward-7/words", tmp_path / "no")
    assert hub.fetched == []  # nothing of it was looked at
    hub.claimed.clear()
    hub.files["ward-7/words"] = {name: data for name, data in honest.items() if name != DIGESTS}
    with pytest.raises(BundleError, match=r"holds no bundle: missing digests.json"):
        pull_bundle("ward-7/words", tmp_path / "no")
    hub.files["ward-7/words"] = honest | {METRICS: b'{"format": 1, "figures": []}'}
    with pytest.raises(BundleError, match=r"metrics.json of .* changed since export"):
        pull_bundle("ward-7/words", tmp_path / "no")
    with pytest.raises(BundleError, match="cannot fetch ward-7/others"):
        pull_bundle("ward-7/others", tmp_path / "no")
    assert [path.name for path in tmp_path.iterdir()] == ["words"]
    with pytest.raises(BundleError, match="exists already"):
        pull_bundle("ward-7/words", folder)
