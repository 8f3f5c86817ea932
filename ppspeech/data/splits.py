"""Dividing a corpus into parts to train on and parts to test on, with no one in two of them."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from ppspeech.data.corpus import Corpus, Utterance
from ppspeech.data.layout import first_few
from ppspeech.errors import CorpusError


@dataclass(frozen=True)
class Split:
    """A corpus in two or three parts.

    No recording is in two parts, ever; with `disjoint="speaker"` no speaker is either, and with `disjoint="take"` no
    take. That is checked here, so a split that leaks cannot be built. `disjoint` is the label of which no value may be
    in two parts, besides the recording itself. Raises CorpusError if a part is empty or two of them share what they
    must not.
    """

    train: Corpus
    test: Corpus
    validation: Corpus | None = None
    disjoint: Literal["speaker", "take"] | None = None

    def __post_init__(self) -> None:
        if self.disjoint not in {None, "speaker", "take"}:
            raise CorpusError(f"disjoint must be 'speaker', 'take' or None, got {self.disjoint!r}")
        for name, part in self.parts.items():
            if not len(part):
                raise CorpusError(f"the {name} part of the split of {part.name!r} is empty")
        for field in ("path", *([self.disjoint] if self.disjoint else [])):
            values = {name: {getattr(u, field) for u in part} for name, part in self.parts.items()}
            for first, second in combinations(values, 2):
                shared = values[first] & values[second]
                if shared:
                    raise CorpusError(
                        f"the split of {self.train.name!r} leaks: {len(shared)} {field}s are in both {first} and "
                        f"{second} ({first_few(sorted(map(str, shared)))})"
                    )

    @property
    def parts(self) -> Mapping[str, Corpus]:
        """The parts by name: train, test and, where there is one, validation."""
        parts = {"train": self.train, "test": self.test}
        return parts if self.validation is None else parts | {"validation": self.validation}


def split_official(corpus: Corpus) -> Split:
    """The split that the corpus was published with; refused if it has none, or leaves an utterance out."""
    counts = corpus.counts("subset")
    if not {"train", "test"} <= set(counts):
        raise CorpusError(
            f"corpus {corpus.name!r} has no official split into train and test: fill the column `subset` of its "
            "manifest.csv with train and test, or hold out people (split: speaker) or repetitions (split: take)"
        )
    stray = set(counts) - {"train", "validation", "test"}
    if stray:
        raise CorpusError(
            f"{sum(counts[name] for name in stray)} utterances of {corpus.name!r} are outside its official split "
            f"(subset {first_few(sorted(stray))}): select those that are in it first"
        )
    return Split(
        train=corpus.select(lambda u: u.subset == "train"),
        test=corpus.select(lambda u: u.subset == "test"),
        validation=corpus.select(lambda u: u.subset == "validation") if "validation" in counts else None,
    )


def split_by_take(corpus: Corpus, test: float | Collection[int], validation: float | Collection[int] = 0) -> Split:
    """Test on some repetitions and train on the others: every speaker is known, no recording is.

    Takes are given by number, the same for everyone; or as a share of what each speaker says of each word, the last
    ones, of which at least one is left to train on. Raises CorpusError if a take is not in the corpus or asked for
    twice, or none is left to train on.
    """
    if isinstance(test, Collection):
        if not isinstance(validation, Collection) and validation != 0:
            raise CorpusError(f"takes to test on are given by number, so give those to validate on, got {validation}")
        return _divide(corpus, "take", test, validation if isinstance(validation, Collection) else ())
    if isinstance(validation, Collection):
        raise CorpusError(f"takes to validate on are given by number, so give those to test on, got {test}")
    repeated: dict[tuple[str, str | None], list[Utterance]] = defaultdict(list)
    for utterance in corpus:
        repeated[utterance.speaker, utterance.word].append(utterance)
    tested: set[Path] = set()
    validated: set[Path] = set()
    for takes in repeated.values():
        ordered = [u.path for u in sorted(takes, key=lambda u: u.take)]
        for part, wanted in ((tested, test), (validated, validation)):
            count = min(len(ordered) - 1, share_of(wanted, len(takes)) if wanted else 0)
            part.update(ordered[len(ordered) - count :])
            ordered = ordered[: len(ordered) - count]
    if not tested:
        raise CorpusError(
            f"nobody says a word twice in {corpus.name!r}: no repetition can be held out; hold out people (split: "
            "speaker), or train on everything (test: 0)"
        )
    held_out = tested | validated
    return Split(
        train=corpus.select(lambda u: u.path not in held_out),
        test=corpus.select(lambda u: u.path in tested),
        validation=corpus.select(lambda u: u.path in validated) if validated else None,
    )


def split_by_speaker(
    corpus: Corpus,
    test: float | Collection[str],
    validation: float | Collection[str] = 0,
    *,
    seed: int = 0,
    balance_gender: bool = False,
) -> Split:
    """Test on people that the model has not heard. Raises CorpusError for speakers that are not in the corpus or asked
    for twice, a share out of range, or when nobody is left to train on.

    Args:
        test: the speakers to test on, or their share of all speakers, more than 0 and less than 1; a share is rounded
            to whole speakers, at least one.
        validation: likewise, from those that are left; 0 or an empty list for none.
        seed: which speakers a share picks; the same seed picks the same ones, in whatever order the corpus lists them.
        balance_gender: pick so that each part has about the corpus's proportion of women and men.
    """
    order = _drawing_order(corpus, seed, balance_gender)
    named = set() if isinstance(validation, int | float) else set(validation)
    tested = _choose([speaker for speaker in order if speaker not in named], test, len(order), "test")
    left = [speaker for speaker in order if speaker not in tested]
    validated = _choose(left, validation, len(order), "validation")
    return _divide(corpus, "speaker", tested, validated)


def leave_one_speaker_out(corpus: Corpus) -> Iterator[Split]:
    """For each of at least two speakers, sorted, a split that tests on that one and trains on all others."""
    if len(corpus.speakers) < 2:
        raise CorpusError(f"leaving one speaker out needs at least two, and {corpus.name!r} has {corpus.speakers}")
    return (split_by_speaker(corpus, test=[speaker]) for speaker in corpus.speakers)


def hold_out(people: Tensor, recordings: Tensor, share: float, seed: int) -> Tensor:
    """Draw recordings of every person to test on, bool `(samples,)`; no recording is divided.

    `people` and `recordings` are `(samples,)`, each recording by one person; of everyone's recordings a `share` is
    drawn, rounded, at least one and never all. Raises CorpusError for a person with a single recording, which cannot be
    in both parts.

    >>> hold_out(torch.tensor([0, 0, 0, 1, 1, 1]), torch.tensor([0, 0, 1, 2, 3, 3]), 0.5, seed=0).sum() >= 2
    tensor(True)
    """
    generator = torch.Generator().manual_seed(seed)
    chosen = []
    for person in sorted(set(people.tolist())):
        own = torch.tensor(sorted(set(recordings[people == person].tolist())))
        if len(own) < 2:
            raise CorpusError(f"person {person} has {len(own)} recording: leave those out who have fewer than two")
        count = min(len(own) - 1, share_of(share, len(own)))
        chosen.append(own[torch.randperm(len(own), generator=generator)[:count]])
    return torch.isin(recordings, torch.cat(chosen))


def share_of(share: float, total: int, what: str = "the test share") -> int:
    """How many of `total` a share is, rounded and at least one; a share not between 0 and 1 is refused."""
    if isinstance(share, bool) or not 0 < share < 1:
        raise CorpusError(f"{what} must be more than 0 and less than 1, got {share}")
    return max(1, round(share * total))


def _drawing_order(corpus: Corpus, seed: int, balance_gender: bool) -> list[str]:
    """The speakers in random order; with `balance_gender`, every stretch of it has about the proportion of all."""
    groups: dict[str, list[str]] = defaultdict(list)
    genders = {u.speaker: u.gender or "" for u in corpus}
    if balance_gender and any(genders[u.speaker] != (u.gender or "") for u in corpus):
        raise CorpusError(f"some speaker of {corpus.name!r} has more than one gender: balance_gender cannot place them")
    for speaker in corpus.speakers:
        groups[genders[speaker] if balance_gender else ""].append(speaker)
    generator = torch.Generator().manual_seed(seed)
    placed: list[tuple[float, str]] = []
    for gender in _shuffled(sorted(groups), generator):
        members = _shuffled(groups[gender], generator)
        # Each group is spread evenly over (0, 1), then all are read from left to right.
        placed += [((place + 0.5) / len(members), speaker) for place, speaker in enumerate(members)]
    return [speaker for _, speaker in sorted(placed, key=lambda entry: entry[0])]


def _shuffled(names: list[str], generator: torch.Generator) -> list[str]:
    return [names[index] for index in torch.randperm(len(names), generator=generator).tolist()]


def _choose(order: list[str], wanted: float | Collection[str], total: int, part: str) -> list[str]:
    """The speakers named, or the first of `order` that make a share of `total`."""
    if isinstance(wanted, str):
        raise CorpusError(f"{part} speakers must be a list or a share, got the single string {wanted!r}")
    if not isinstance(wanted, int | float):
        return list(wanted)
    if wanted == 0 and not isinstance(wanted, bool):
        return []
    return order[: share_of(wanted, total, f"the {part} share of the speakers")]


def _divide(
    corpus: Corpus, field: Literal["speaker", "take"], test: Collection[object], validation: Collection[object]
) -> Split:
    _check_held_out(corpus, field, test, validation)
    tested, validated = set(test), set(validation)
    return Split(
        train=corpus.select(lambda u: getattr(u, field) not in tested | validated),
        test=corpus.select(lambda u: getattr(u, field) in tested),
        validation=corpus.select(lambda u: getattr(u, field) in validated) if validated else None,
        disjoint=field,
    )


def _check_held_out(corpus: Corpus, field: str, test: Collection[object], validation: Collection[object]) -> None:
    there = {getattr(u, field) for u in corpus}
    asked = Counter([*test, *validation])
    unknown = sorted(str(value) for value in asked if value not in there)
    twice = sorted(str(value) for value, times in asked.items() if times > 1)
    if unknown:
        known = first_few(map(str, sorted(there)), most=20)
        raise CorpusError(f"corpus {corpus.name!r} has no {field} {first_few(unknown)}; it has {known}")
    if twice:
        raise CorpusError(f"{field} {first_few(twice)} is asked for more than once in test and validation")
    if not test:
        raise CorpusError(f"a split needs something to test on, got no {field} for the test part")
    if len(asked) == len(there):
        remedy = "hold out repetitions (split: take), or train on everything (test: 0)" if field == "speaker" else ""
        raise CorpusError(
            f"all {len(there)} {field}s of {corpus.name!r} are held out: none is left to train on"
            + (f"; {remedy}" if remedy else "")
        )
