"""Filtered features on disk: a corpus folder that may be handed on, and beside it, apart, what must stay.

    FOLDER               a corpus of given features (`ppspeech.data.filtered`)
    FOLDER.private.csv   whose each sample was: for `filter attack`, never to be handed on

Samples are numbered in an order drawn from the operating system: corpora are sorted by person, and so were names.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn

from ppspeech.audio import GivenFeatures
from ppspeech.crypto import uniform_residues
from ppspeech.data import (
    LABELS,
    FeatureStore,
    Filtering,
    Samples,
    load_corpus,
    read_filtering,
    read_rows,
    whole_folder,
    write_filtering,
    write_rows,
    write_samples,
)
from ppspeech.errors import ModelError, PrivacyError
from ppspeech.filters.noisy import FeatureNoise, NoisyFilter
from ppspeech.privacy import Guarantee
from ppspeech.progress import track


def private_file(folder: Path) -> Path:
    """Where whose each sample was is kept: beside the folder, not in it."""
    return folder.with_name(f"{folder.name}.private.csv")


def write_filtered(
    folder: Path,
    module: nn.Module,
    samples: Samples,
    *,
    keep: str,
    noise: FeatureNoise | None = None,
    about: Mapping[str, Any] | None = None,
) -> Guarantee:
    """Filter samples one after another, in a random order, and write them as a corpus with a statement.

    The folder must not exist. The label to `keep` of a table stands in the manifest as `word`. `noise` is added to
    every vector; None is a bare filter, which promises nothing. `about` is more for the statement, as JSON can hold it,
    such as what attackers found. Returns what is promised to the person with the most samples. Raises ModelError if
    there is such a folder, or nothing to write.
    """
    beside = private_file(folder)
    if folder.exists() or beside.exists():
        raise ModelError(f"{folder if folder.exists() else beside} exists already: choose another folder")
    if not samples.inputs:
        raise ModelError("there is no sample to filter")
    released = NoisyFilter(module, noise)
    order = np.argsort(uniform_residues(len(samples.inputs))).tolist()
    label = keep if keep in LABELS else "word"
    is_vector = samples.inputs[0].ndim == 1
    counts: dict[str, int] = {}
    features = 0

    def filtered() -> Iterator[tuple[Tensor, str]]:
        nonlocal features
        for index in track(order, "Filtering"):
            given = samples.inputs[index]
            made = released.release(given.unsqueeze(0) if is_vector else given).value
            counts[samples.private[index]] = counts.get(samples.private[index], 0) + len(made)
            features = made.shape[1]
            yield made, samples.kept[index]

    with whole_folder(folder) as unfinished:
        write_samples(unfinished, filtered(), label)
        most = max(counts.values())
        guarantee = released.guarantee if noise is None else noise.guarantee_for(most)
        statement = {
            "guarantee": guarantee.to_json(),
            "each_sample": released.guarantee.to_json(),
            "most_samples_of_one_person": most if noise is not None else None,
            "about": dict(about or {}),
        }
        rate = samples.mfcc.sample_rate if samples.mfcc is not None else 1
        kind = "vectors" if is_vector else "frames"
        write_filtering(unfinished, Filtering(kind, features, label, rate, statement))  # type: ignore[arg-type]
        whose = [
            (f"samples/{place:06d}.npy", samples.private[i], samples.recordings[i]) for place, i in enumerate(order)
        ]
        beside.touch(mode=0o600)
        write_rows(beside, ("path", "private", "recording"), whose)
    return guarantee


def read_filtered(folder: Path, private: Path | None = None) -> Samples:
    """Read what `write_filtered` wrote, and whose it was.

    `private` says whose they were; it is beside the folder by default. Raises CorpusError for files that are missing or
    damaged; ModelError for a statement that promises nothing known, or files that do not belong together.
    """
    filtering = read_filtering(folder)
    try:
        Guarantee.from_json(filtering.statement["guarantee"])
    except (ValueError, KeyError, TypeError, PrivacyError) as error:
        raise ModelError(f"{folder} states no guarantee, nor that there is none: {error!s:.200}") from None
    corpus = load_corpus(folder)
    listed = [u.path.relative_to(folder).as_posix() for u in corpus]
    whose = {row["path"]: row for row in read_rows(private or private_file(folder), ("path", "private", "recording"))}
    if sorted(whose) != sorted(listed):
        raise ModelError(
            f"{folder} lists {len(listed)} samples, the private labels {len(whose)}: they do not belong together"
        )
    clips = FeatureStore(GivenFeatures(given=filtering.features)).load(corpus.utterances)
    return Samples(
        [clip[0] for clip in clips] if filtering.kind == "vectors" else clips,
        [getattr(u, filtering.label) for u in corpus],
        [whose[path]["private"] for path in listed],
        [whose[path]["recording"] for path in listed],
    )
