"""Filtered features on disk: a corpus folder that may be handed on, and beside it, apart, what must stay.

    FOLDER               a corpus of given features (`ppspeech.data.filtered`)
    FOLDER.private.csv   whose each sample was: for `filter attack`, never to be handed on

Samples are numbered in an order drawn from the operating system: corpora are sorted by person, and so were names.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn

from ppspeech.audio import GivenFeatures
from ppspeech.cluster import HERE, Pool, Slices
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
    write_manifest,
    write_rows,
    write_sample,
)
from ppspeech.errors import ModelError, PrivacyError
from ppspeech.filters.noisy import Noise, NoisyFilter
from ppspeech.privacy import Guarantee, check_count

AT_ONCE = 16  # samples that a worker filters at a time

NOT_COVERED = (
    "labels: the manifest has the {label} of every sample as it is",
    "lengths: how many samples there are, and how many frames each has, are seen as they are",
)
"""What a folder shows besides noisy features, whatever is promised for them."""


def private_file(folder: Path) -> Path:
    """Where whose each sample was is kept: beside the folder, not in it."""
    return folder.with_name(f"{folder.name}.private.csv")


def write_filtered(
    folder: Path,
    module: nn.Module,
    samples: Samples,
    *,
    keep: str,
    noise: Noise | None = None,
    most: int | None = None,
    about: Mapping[str, Any] | None = None,
    workers: Pool = HERE,
) -> Guarantee:
    """Filter samples one by one, by `workers`, in a random order, and write them as a corpus with a statement.

    The folder must not exist. The label to `keep` of a table stands in the manifest as `word`. `noise` is added to
    every vector; None is a bare filter, which promises nothing. `most` vectors of one person are released, a public
    number that noise needs: what is promised to a person must not depend on how much they said. Of more, random
    recordings are left out, and the last one cut. Whoever is stopped begins again: nothing of a first draw of noise is
    kept beside a second. `about` is more for the statement, as JSON can hold it, such as what attackers found. Returns
    what is promised to a person. Raises ModelError if there is such a folder, or nothing to write; PrivacyError for
    noise without `most`, or the other way round.
    """
    if (noise is None) != (most is None):
        raise PrivacyError(
            "noise promises something to a person who has at most so many samples: give both noise and most, a number "
            "chosen without looking at the recordings, or neither"
        )
    beside = private_file(folder)
    if folder.exists() or beside.exists():
        raise ModelError(f"{folder if folder.exists() else beside} exists already: choose another folder")
    if not samples.inputs:
        raise ModelError("there is no sample to filter")
    released = NoisyFilter(module, noise)
    order = np.argsort(uniform_residues(len(samples.inputs))).tolist()
    lengths = bounded(samples, order, most)
    order = [index for index in order if lengths[index]]
    label = keep if keep in LABELS else "word"
    is_vector = samples.inputs[0].ndim == 1
    counts: dict[str, int] = {}
    features = 0

    pairs = [(index, lengths[index]) for index in order]
    with whole_folder(folder) as unfinished:
        (unfinished / "samples").mkdir()
        for number, made in workers.each(
            partial(_released, released), Slices(_Cut(samples.inputs, pairs), AT_ONCE), "Filtering"
        ):
            for place, values in enumerate(made, start=number * AT_ONCE):
                write_sample(unfinished, place, values)
                who = samples.private[order[place]]
                counts[who] = counts.get(who, 0) + len(values)
                features = values.shape[1]
        write_manifest(unfinished, [samples.kept[index] for index in order], label)
        if most is not None and max(counts.values()) > most:
            raise PrivacyError(
                f"the filter made {max(counts.values())} vectors of one person's, and {most} are allowed"
            )
        guarantee = released.guarantee if noise is None or most is None else noise.guarantee_for(most)
        statement = {
            "guarantee": guarantee.to_json(),
            "each_sample": released.guarantee.to_json(),
            "most_samples_of_one_person": most,
            "not_covered": [line.format(label=label) for line in NOT_COVERED] if noise is not None else [],
            "about": dict(about or {}),
        }
        rate = samples.mfcc.sample_rate if samples.mfcc is not None else 1
        kind = "vectors" if is_vector else "frames"
        write_filtering(unfinished, Filtering(kind, features, label, rate, statement))  # type: ignore[arg-type]
        whose = [
            (f"samples/{place:06d}.npy", samples.private[i], samples.recordings[i]) for place, i in enumerate(order)
        ]
        try:
            beside.touch(mode=0o600, exist_ok=False)
        except FileExistsError:  # somebody else's, whose samples are in another order
            raise ModelError(f"{beside} exists already, made meanwhile: choose another folder") from None
        write_rows(beside, ("path", "private", "recording"), whose)
    return guarantee


class _Cut(Sequence[Tensor]):
    """What is filtered of each sample, `(vectors, d)`, by its place and how many vectors: read when it is taken."""

    def __init__(self, inputs: Sequence[Tensor], pairs: Sequence[tuple[int, int]]) -> None:
        self._inputs, self._pairs = inputs, pairs

    def __len__(self) -> int:
        return len(self._pairs)

    def __getitem__(self, number: Any) -> Any:
        index, length = self._pairs[number]
        given = self._inputs[index]
        return given.unsqueeze(0) if given.ndim == 1 else given[:length]


def _released(released: NoisyFilter, part: Sequence[Tensor]) -> list[Tensor]:
    return [released.release(each).value.detach() for each in part]


def bounded(samples: Samples, order: Sequence[int], most: int | None) -> list[int]:
    """How many vectors of each sample are released: taken in this order, at most so many of one person."""
    sizes = [1 if sample.ndim == 1 else len(sample) for sample in samples.inputs]
    if most is None:
        return sizes
    left = dict.fromkeys(samples.private, check_count("most", most))
    kept = [0] * len(sizes)
    for index in order:
        kept[index] = min(sizes[index], left[samples.private[index]])
        left[samples.private[index]] -= kept[index]
    return kept


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
