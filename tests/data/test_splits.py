from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ppspeech.data.corpora.audiomnist import load_audiomnist
from ppspeech.data.corpora.emodb import load_emodb
from ppspeech.data.corpora.fsdd import load_fsdd
from ppspeech.data.corpora.librispeech import load_librispeech
from ppspeech.data.corpus import Corpus, Utterance
from ppspeech.data.splits import (
    Split,
    hold_out,
    leave_one_speaker_out,
    split_by_speaker,
    split_by_take,
    split_official,
)
from ppspeech.errors import CorpusError


def make_corpus(genders: Collection[str | None], takes: int = 2) -> Corpus:
    """One speaker a gender, called s00, s01, ..."""
    return Corpus(
        "made",
        8000,
        tuple(
            Utterance(Path(f"{n}_{take}.wav"), speaker=f"s{n:02d}", gender=gender, take=take)
            for n, gender in enumerate(genders)
            for take in range(takes)
        ),
    )


corpora = st.lists(st.sampled_from(["f", "m", None]), min_size=3, max_size=30).map(make_corpus)


def paths(corpus: Corpus | None) -> list[Path]:
    return [] if corpus is None else [u.path for u in corpus]


class TestSplit:
    def test_a_recording_in_two_parts_is_refused(self) -> None:
        corpus = make_corpus("fm")
        with pytest.raises(CorpusError, match=r"2 paths are in both train and test \(0_0.wav, 0_1.wav\)"):
            Split(train=corpus, test=corpus[:2])
        with pytest.raises(CorpusError, match="1 paths are in both test and validation"):
            Split(train=corpus[:1], test=corpus[1:3], validation=corpus[2:])

    def test_a_speaker_in_two_parts_is_refused_where_that_is_asked(self) -> None:
        corpus = make_corpus("fm")
        assert len(Split(train=corpus[:1], test=corpus[1:]).test) == 3
        with pytest.raises(CorpusError, match=r"leaks: 1 speakers are in both train and test \(s00\)"):
            Split(train=corpus[:1], test=corpus[1:], disjoint="speaker")
        with pytest.raises(CorpusError, match="2 takes are in both train and validation"):
            Split(train=corpus[:2], test=replace_takes(corpus[2:3], 7), validation=renamed(corpus[:2]), disjoint="take")

    def test_empty_parts_and_unknown_labels_are_refused(self) -> None:
        corpus = make_corpus("fm")
        with pytest.raises(CorpusError, match="the test part of the split of 'made' is empty"):
            Split(train=corpus, test=replace(corpus, utterances=()))
        with pytest.raises(CorpusError, match="disjoint must be 'speaker', 'take' or None, got 'speeker'"):
            Split(train=corpus[:2], test=corpus[2:], disjoint="speeker")  # type: ignore[arg-type]


def replace_takes(corpus: Corpus, take: int) -> Corpus:
    return replace(corpus, utterances=tuple(replace(u, take=take) for u in corpus))


def renamed(corpus: Corpus) -> Corpus:
    return replace(corpus, utterances=tuple(replace(u, path=Path("other") / u.path) for u in corpus))


class TestOfficial:
    def test_fsdd(self, data: Path) -> None:
        split = split_official(load_fsdd())
        assert (len(split.train), len(split.test), split.validation) == (2700, 300, None)
        assert {u.take for u in split.test} == set(range(5))

    def test_librispeech_shares_no_speaker(self, data: Path) -> None:
        split = split_official(load_librispeech())
        assert not set(split.train.speakers) & set(split.test.speakers)

    def test_validation(self) -> None:
        corpus = make_corpus("fff", takes=1)
        parts = ("train", "validation", "test")
        marked = tuple(replace(u, subset=name) for u, name in zip(corpus, parts, strict=True))
        split = split_official(replace(corpus, utterances=marked))
        assert [paths(split.parts[name]) for name in parts] == [[u.path] for u in marked]
        stray = (*marked, replace(marked[0], path=Path("stray.wav"), subset=None))
        with pytest.raises(CorpusError, match="1 utterances of 'made' are outside"):
            split_official(replace(corpus, utterances=stray))

    def test_corpora_without_one_are_refused(self, data: Path) -> None:
        with pytest.raises(CorpusError, match=r"'emodb' has no official split.*fill the column `subset`"):
            split_official(load_emodb())


class TestByTake:
    def test_audiomnist(self, data: Path) -> None:
        split = split_by_take(load_audiomnist(), test=[6, 7], validation=[5])
        assert (len(split.train), len(split.test), len(paths(split.validation))) == (3000, 1200, 600)

    @pytest.mark.parametrize(
        ("test", "validation", "complaint"),
        [
            ([5], (), "has no take 5; it has 0, 1, 2"),
            ([0], [0], "take 0 is asked for more than once"),
            ([0, 1], [2], "all 3 takes of 'made' are held out"),
            ([], [0], "something to test on"),
            ([], [], "something to test on"),
        ],
    )
    def test_bad_takes_are_refused(self, test: list[int], validation: list[int], complaint: str) -> None:
        with pytest.raises(CorpusError, match=complaint):
            split_by_take(make_corpus("fm", takes=3), test, validation)


class TestBySpeaker:
    @given(corpora, st.floats(0.01, 0.6), st.sampled_from([0, 0.1, 0.25]), st.integers(0, 2**32), st.booleans())
    def test_partitions_without_leak(
        self, corpus: Corpus, test: float, validation: float, seed: int, balance: bool
    ) -> None:
        total = len(corpus.speakers)
        tested = max(1, round(test * total))
        validated = max(1, round(validation * total)) if validation else 0
        if tested + validated >= total:
            with pytest.raises(CorpusError, match="none is left to train on"):
                split_by_speaker(corpus, test, validation, seed=seed, balance_gender=balance)
            return
        split = split_by_speaker(corpus, test, validation, seed=seed, balance_gender=balance)
        parts = list(split.parts.values())
        assert sorted(path for part in parts for path in paths(part)) == sorted(paths(corpus))
        assert sorted(speaker for part in parts for speaker in part.speakers) == list(corpus.speakers)
        assert len(split.test.speakers) == tested
        assert len({u.speaker for u in split.validation or ()}) == validated
        # Parts keep the order of the corpus.
        assert all(paths(part) == [path for path in paths(corpus) if path in set(paths(part))] for part in parts)

    @given(corpora, st.integers(0, 2**32), st.randoms(use_true_random=False))
    def test_depends_on_the_seed_alone_not_on_the_order(self, corpus: Corpus, seed: int, shuffler: object) -> None:
        mixed = list(corpus)
        shuffler.shuffle(mixed)  # type: ignore[attr-defined]
        first = split_by_speaker(corpus, 0.3, seed=seed)
        second = split_by_speaker(replace(corpus, utterances=tuple(mixed)), 0.3, seed=seed)
        assert first.test.speakers == second.test.speakers

    def test_every_speaker_is_equally_likely(self) -> None:
        corpus = make_corpus("ffmmm", takes=1)
        drawn = Counter(split_by_speaker(corpus, 0.2, seed=seed).test.speakers[0] for seed in range(1000))
        # Binomial(1000, 1/5): 5 standard deviations are 63; the draw is fixed by the seeds.
        assert all(abs(drawn[speaker] - 200) < 63 for speaker in corpus.speakers), drawn

    @given(st.integers(2, 20), st.integers(2, 20), st.floats(0.1, 0.3), st.floats(0.1, 0.3), st.integers(0, 1000))
    def test_balance_gender(self, women: int, men: int, test: float, validation: float, seed: int) -> None:
        corpus = make_corpus(["f"] * women + ["m"] * men, takes=1)
        split = split_by_speaker(corpus, test, validation, seed=seed, balance_gender=True)
        for part in split.parts.values():
            assert abs(part.counts("gender")["f"] - len(part) * women / (women + men)) <= 1.5

    def test_audiomnist_stays_balanced(self, data: Path) -> None:
        split = split_by_speaker(load_audiomnist(), 10 / 60, 10 / 60, seed=3, balance_gender=True)
        for part in (split.test, split.validation):
            assert part is not None
            assert (len(part.speakers), len({u.speaker for u in part if u.gender == "f"})) == (10, 2)

    def test_named_speakers(self, data: Path) -> None:
        split = split_by_speaker(load_fsdd(), test=["theo"], validation=["lucas", "george"])
        assert split.validation is not None
        assert (split.test.speakers, split.validation.speakers) == (("theo",), ("george", "lucas"))
        assert len(split.train.speakers) == 3

    def test_a_share_is_drawn_from_those_who_are_not_named(self) -> None:
        corpus = make_corpus("fmfm")
        for seed in range(20):
            assert "s00" not in split_by_speaker(corpus, 0.25, ["s00"], seed=seed).test.speakers
            assert "s00" not in split_by_speaker(corpus, ["s00"], 0.5, seed=seed).parts["validation"].speakers

    @pytest.mark.parametrize(
        ("test", "validation", "complaint"),
        [
            (0, 0, "something to test on"),
            ([], 0, "something to test on"),
            (1.0, 0, "test share of the speakers must be more than 0 and less than 1, got 1.0"),
            (-0.1, 0, "got -0.1"),
            (float("nan"), 0, "got nan"),
            (True, 0, "got True"),
            (0.5, 1.5, "validation share"),
            ("s00", 0, "the single string 's00'"),
            (["s00"], "s01", "the single string 's01'"),
            (["s09"], 0, "no speaker s09; it has s00, s01, s02"),
            (["s00"], ["s00"], "speaker s00 is asked for more than once"),
            (["s00", "s00"], 0, "speaker s00 is asked for more than once"),
            (["s00", "s01"], ["s02"], "all 3 speakers of 'made' are held out"),
            (0.9, 0, "all 3 speakers of 'made' are held out"),
        ],
    )
    def test_bad_requests_are_refused(self, test: object, validation: object, complaint: str) -> None:
        with pytest.raises(CorpusError, match=complaint):
            split_by_speaker(make_corpus("fmf"), test, validation)  # type: ignore[arg-type]

    def test_a_speaker_with_two_genders_cannot_be_balanced(self) -> None:
        corpus = make_corpus("fm")
        mixed = replace(corpus, utterances=(replace(corpus[0], gender="m"), *corpus[1:]))
        with pytest.raises(CorpusError, match="more than one gender"):
            split_by_speaker(mixed, 0.5, balance_gender=True)


class TestLeaveOneSpeakerOut:
    def test_emodb(self, data: Path) -> None:
        corpus = load_emodb()
        splits = list(leave_one_speaker_out(corpus))
        assert tuple(split.test.speakers[0] for split in splits) == corpus.speakers
        for split in splits:
            assert len(split.test.speakers) == 1
            assert len(split.train) + len(split.test) == 535

    def test_one_speaker_is_refused_at_once(self) -> None:
        with pytest.raises(CorpusError, match="needs at least two"):
            leave_one_speaker_out(make_corpus("f"))


def test_hold_out_divides_people_and_never_a_recording() -> None:
    whose, recordings = torch.arange(60) // 20, torch.arange(60) // 4
    held = hold_out(whose, recordings, 0.4, seed=3)
    for person in range(3):
        assert len(set(recordings[held & (whose == person)].tolist())) == 2
    assert not set(recordings[held].tolist()) & set(recordings[~held].tolist())
    assert not torch.equal(held, hold_out(whose, recordings, 0.4, seed=4))


@pytest.mark.parametrize(
    ("people", "share", "word"),
    [([0, 0, 1], 0.5, "person 1 has 1 recording"), ([0, 0, 0], 1.0, "more than 0 and less than 1")],
)
def test_what_cannot_be_held_out_is_refused(people: list[int], share: float, word: str) -> None:
    with pytest.raises(CorpusError, match=word):
        hold_out(torch.tensor(people), torch.arange(3), share, 0)
