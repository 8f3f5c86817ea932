"""The files of the page, read once, when a server starts: what is not among them cannot be asked for."""

import json
from pathlib import Path

from ppspeech import __version__
from ppspeech.network import WebFile

FOLDER = Path(__file__).parent

MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".wasm": "application/wasm",
}


def page_files(pin: str | None, folder: Path = FOLDER) -> dict[str, WebFile]:
    """The page by path, with `/server.json`, which says how the server is known: its pin (None without TLS)."""
    files = {
        f"/{path.name}": WebFile(path.read_bytes(), MEDIA_TYPES[path.suffix])
        for path in sorted(folder.iterdir())
        if path.suffix in MEDIA_TYPES
    }
    said = json.dumps({"pin": pin, "version": __version__}).encode()
    return files | {"/": files["/index.html"], "/server.json": WebFile(said, "application/json")}
