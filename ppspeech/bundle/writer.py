"""A model into a bundle: whole or not at all, and never more than a bundle may hold."""

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from torch import nn

from ppspeech.bundle.card import model_card
from ppspeech.bundle.config import BundleConfig
from ppspeech.bundle.format import CARD, CONFIG, DIGESTS, EVENTS, METRICS, PRIVACY, WEIGHTS, digest_file
from ppspeech.bundle.metrics import metrics_to_json
from ppspeech.bundle.reader import Bundle, load_bundle
from ppspeech.bundle.statement import PrivacyStatement
from ppspeech.bundle.strict_json import write_json
from ppspeech.bundle.weights import write_weights
from ppspeech.errors import BundleError
from ppspeech.figures import Figure
from ppspeech.privacy import Accountant


def write_bundle(
    folder: str | Path,
    *,
    model: nn.Module,
    config: BundleConfig,
    statement: PrivacyStatement,
    account: Accountant,
    metrics: Sequence[Figure] = (),
) -> Bundle:
    """Write a bundle and load it again; what could not be loaded is never written.

    Only typed values and the tensors that the registered type lists can enter: there is no place for a checkpoint, a
    key, a noise vector or the state of a generator. Missing parents of the folder are made. Raises BundleError for
    anything that `load_bundle` would refuse, or a folder that exists.
    """
    folder = Path(folder)
    if folder.exists() or folder.is_symlink():
        raise BundleError(f"{folder} exists already: a bundle is never changed; choose another folder or remove it")
    statement.check(account)
    contents = {
        CONFIG: write_json(config.to_json()),
        WEIGHTS: write_weights(model, config.tensors()),
        PRIVACY: write_json(statement.to_json()),
        EVENTS: write_json(account.to_json()),
        METRICS: write_json(metrics_to_json(metrics)),
        CARD: model_card(config, statement, account, metrics).encode(),
    }
    contents[DIGESTS] = digest_file(contents)
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}-"))
    try:
        for name, data in contents.items():
            _write(temporary / name, data)
        bundle = load_bundle(temporary)
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o777 & ~umask)
        try:
            temporary.rename(folder)
        except OSError as taken:
            raise BundleError(
                f"{folder} could not take its place ({taken.strerror}): is another export running?"
            ) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return bundle


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
