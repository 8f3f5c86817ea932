"""Bundles on a model hub: they are laid out as hubs lay out theirs (`config.json`, `model.safetensors`, a card).

What comes from a hub is what anybody put there: its sizes are looked at before it is fetched, it is checked as every
bundle is, and who vouches for it a signature says, which goes along.
"""

import importlib
import shutil
import tempfile
from pathlib import Path
from typing import Any

from ppspeech.bundle.format import MAYBE, SIZES
from ppspeech.bundle.reader import Bundle, load_bundle
from ppspeech.errors import BundleError

ALLOWED = SIZES | MAYBE


def push_bundle(folder: str | Path, repository: str, *, private: bool = True, token: str | None = None) -> str:
    """Upload a bundle that loads to `OWNER/NAME` on a hub, its signature too; returns the address of what was written.

    A repository that is not there is made, `private` unless told otherwise. `token`: else that of `hf auth login`.
    Needs the extra `hub`. Raises BundleError for what `load_bundle` refuses, or whatever the hub answers.
    """
    bundle, api = load_bundle(folder), _api(token)
    try:
        api.create_repo(repository, private=private, exist_ok=True)
        made = api.upload_folder(
            repo_id=repository,
            folder_path=Path(folder),
            allow_patterns=list(ALLOWED),
            commit_message=f"Bundle {bundle.fingerprint}",
        )
    except (OSError, ValueError, RuntimeError) as refused:
        raise BundleError(f"{repository} did not take {folder}: {refused}") from None
    return str(made.commit_url)


def pull_bundle(repository: str, folder: str | Path, *, revision: str = "main", token: str | None = None) -> Bundle:
    """Download the bundle of `OWNER/NAME` into a new folder: whole and checked, or not at all.

    Raises BundleError for a repository that holds no bundle, or files that are too large; and as `push_bundle` does.
    """
    folder, api = Path(folder), _api(token)
    if folder.exists():
        raise BundleError(f"{folder} exists already: choose another folder or remove it")
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}-"))
    try:
        info = api.repo_info(repository, revision=revision, files_metadata=True)
        sizes = {each.rfilename: each.size for each in info.siblings}
        _check(repository, sizes)
        (temporary / "bundle").mkdir()
        for name in sorted(set(ALLOWED) & set(sizes)):
            fetched = api.hf_hub_download(repository, name, revision=info.sha, local_dir=temporary / "fetched")
            Path(fetched).rename(temporary / "bundle" / name)
        bundle = load_bundle(temporary / "bundle")
        (temporary / "bundle").rename(folder)
    except BundleError:
        raise
    except (OSError, ValueError, RuntimeError) as refused:
        raise BundleError(f"cannot fetch {repository}: {refused}") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return bundle


def _check(repository: str, sizes: dict[str, int | None]) -> None:
    """Refuse what is no bundle before any of it is fetched. Other files, as hubs add them, are left where they are."""
    missing = sorted(set(SIZES) - set(sizes))
    if missing:
        raise BundleError(f"{repository} holds no bundle: missing {', '.join(missing)}")
    for name in sorted(set(ALLOWED) & set(sizes)):
        size = sizes[name]
        if size is None or not 0 <= size <= ALLOWED[name]:
            raise BundleError(f"{name} of {repository} has {size} bytes, at most {ALLOWED[name]:,} are read")


def _api(token: str | None) -> Any:
    try:
        return importlib.import_module("huggingface_hub").HfApi(token=token)
    except ImportError as missing:
        raise BundleError(f'hubs need huggingface-hub ({missing}): pip install "ppspeech[hub]"') from None
