"""The files of a bundle: which there are, how large they may be, and how their bytes are read and compared."""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from ppspeech.bundle.strict_json import read_json, write_json
from ppspeech.errors import BundleError

CONFIG, WEIGHTS, PRIVACY, EVENTS, METRICS, CARD, DIGESTS, SIGNATURE = (
    "config.json",
    "model.safetensors",
    "privacy.json",
    "events.json",
    "metrics.json",
    "README.md",
    "digests.json",
    "model.sig",
)

SIZES: dict[str, int] = {
    CONFIG: 1 << 20,
    WEIGHTS: 1 << 30,
    PRIVACY: 1 << 20,
    EVENTS: 1 << 20,
    METRICS: 1 << 20,
    CARD: 1 << 20,
    DIGESTS: 1 << 16,
}
"""The files of a bundle, all of them and no others, with the most bytes each may have."""

MAYBE: dict[str, int] = {SIGNATURE: 1 << 16}
"""A file that a bundle may have besides: it vouches for all others (`ppspeech sign`), and no digest names it."""


OLD_SIGNATURE = "signature.json"


def read_files(folder: Path) -> dict[str, bytes]:
    """The bytes of every file of a bundle, read once, so that what is checked is what is used.

    Raises BundleError if there is no such folder, or a file is missing, unknown, a link, not a plain file, too large,
    or not the one that `digests.json` names.
    """
    if not folder.is_dir():
        raise BundleError(f"no bundle at {folder}: a bundle is a folder written by `ppspeech export`")
    found = {entry.name: entry for entry in os.scandir(folder)}
    missing, unknown = sorted(set(SIZES) - set(found)), sorted(set(found) - set(SIZES) - set(MAYBE))
    if missing or unknown:
        raise BundleError(
            f"{folder} is not a bundle: missing {', '.join(missing) or 'nothing'}, "
            f"unknown {', '.join(unknown) or 'nothing'}"
            + (f". {OLD_SIGNATURE} is of an earlier version: remove it, sign anew" if OLD_SIGNATURE in found else "")
        )
    contents = {name: _read(folder / name, most) for name, most in (SIZES | MAYBE).items() if name in found}
    expected = read_json(contents[DIGESTS], DIGESTS)
    actual = digests({name: data for name, data in contents.items() if name not in {DIGESTS, SIGNATURE}})
    if set(expected) != set(actual):
        raise BundleError(f"{DIGESTS} must name {', '.join(sorted(actual))}, got {', '.join(sorted(expected))}")
    changed = sorted(name for name in actual if actual[name] != expected[name])
    if changed:
        raise BundleError(f"{', '.join(changed)} of {folder} changed since export: the digest is another one")
    return contents


def digests(contents: Mapping[str, bytes]) -> dict[str, str]:
    """SHA-256 of every file, in hexadecimal."""
    return {name: hashlib.sha256(data).hexdigest() for name, data in sorted(contents.items())}


def digest_file(contents: Mapping[str, bytes]) -> bytes:
    """`digests.json` of these files. Its own digest identifies the bundle; a signature may be of it."""
    return write_json(digests(contents))


def _read(path: Path, most: int) -> bytes:
    if path.is_symlink() or not path.is_file():
        raise BundleError(f"{path} must be a plain file, not a link or a folder")
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise BundleError(f"{path} has more than {most:,} bytes, the most that is read")
    return data
