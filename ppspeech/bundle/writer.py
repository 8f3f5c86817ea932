"""A model into a bundle: whole or not at all, and never more than a bundle may hold."""

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import nn

from ppspeech.bundle.card import model_card
from ppspeech.bundle.config import BundleConfig
from ppspeech.bundle.format import CARD, CONFIG, DIGESTS, EVENTS, METRICS, PRIVACY, WEIGHTS, digest_file, read_files
from ppspeech.bundle.metrics import metrics_to_json
from ppspeech.bundle.reader import Bundle, load_bundle, read_parts
from ppspeech.bundle.statement import OLD_TOPICS, SAID_BEFORE, DataTouch, PrivacyStatement, read_guarantee
from ppspeech.bundle.strict_json import read_json, write_json
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
    admit: Callable[[Bundle], object] | None = None,
) -> Bundle:
    """Write a bundle and load it again; what could not be loaded is never written.

    Only typed values and the tensors that the registered type lists can enter: there is no place for a checkpoint, a
    key, a noise vector or the state of a generator. Missing parents of the folder are made. `admit` is asked last,
    before the folder is there: what it refuses is not released. Raises BundleError for anything that `load_bundle`
    would refuse, or a folder that exists.
    """
    folder = Path(folder)
    if folder.exists() or folder.is_symlink():
        raise BundleError(f"{folder} exists already: a bundle is never changed; choose another folder or remove it")
    statement.check(account, config)
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
        if admit is not None:
            admit(bundle)
        try:
            temporary.rename(folder)
        except OSError as taken:
            raise BundleError(
                f"{folder} could not take its place ({taken.strerror}): is another export running?"
            ) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return bundle


def renew_bundle(old: str | Path, folder: str | Path, *, admit: Callable[[Bundle], object] | None = None) -> Bundle:
    """Write a bundle of this or an earlier format anew: the same weights, events and figures, with a statement and a
    card that follow from them. What was only claimed is left out: a charge that no event pays for is not covered.

    A signature is not taken over. Raises BundleError for what `load_bundle` would refuse apart from the statement's
    form and the card.
    """
    contents = read_files(Path(old))
    config, account, model, metrics = read_parts(contents)
    plain = read_json(contents[PRIVACY], PRIVACY)
    stated = read_guarantee(plain)
    statement = PrivacyStatement.of(
        account,
        config,
        _touches(plain),
        delta=stated.delta,
        assumptions=stated.assumptions,
        caveats=[line for line in plain.get("caveats", ()) if isinstance(line, str) and line not in SAID_BEFORE],
    )
    if statement.guarantee.proven != stated.proven or statement.guarantee.relation != stated.relation:
        raise BundleError(f"{old} states {stated}, and its events give {statement.guarantee}: do not trust this bundle")
    return write_bundle(
        folder, model=model, config=config, statement=statement, account=account, metrics=metrics, admit=admit
    )


def _touches(plain: Mapping[str, Any]) -> list[DataTouch]:
    """Those of a statement of any format; what is charged without naming its event is not covered."""
    found = []
    for each in plain.get("touches", ()):
        if not isinstance(each, Mapping):
            raise BundleError(f"a touch has a topic, a status and a note, got {each!r:.80}")
        topic = OLD_TOPICS.get(str(each.get("topic")), each.get("topic"))
        charge = each.get("charge")
        status = "not_covered" if each.get("status") == "charged" and charge is None else each.get("status")
        found.append(DataTouch(topic, status, each.get("note"), charge))  # type: ignore[arg-type]
    return found


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
