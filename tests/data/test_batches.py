"""Items, padding and batches by length."""

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ppspeech.data import Corpus, LengthBuckets, Utterance, UtteranceDataset, Vocabulary, collate
from ppspeech.errors import CorpusError, PpspeechError
from ppspeech.ranks import Ranks

CORPUS = Corpus(
    "tiny",
    8_000,
    tuple(
        Utterance(Path(f"{i}.wav"), speaker=s, word=w, take=i)
        for i, (s, w) in enumerate([("bob", "yes"), ("ann", "no"), ("ann", "yes")])
    ),
)


def test_items_carry_labels_and_the_speaker() -> None:
    features = [torch.full((n, 2), float(n)) for n in (3, 1, 2)]
    vocabulary = Vocabulary(CORPUS)
    dataset = UtteranceDataset(CORPUS, features, vocabulary)
    batch = collate([dataset[i] for i in range(3)])
    assert batch["features"].shape == (3, 3, 2)
    assert batch["lengths"].tolist() == [3, 1, 2]
    assert [vocabulary["speaker"][i] for i in batch["speaker"]] == ["bob", "ann", "ann"]
    assert [vocabulary["word"][i] for i in batch["word"]] == ["yes", "no", "yes"]
    assert batch["emotion"].tolist() == [-1, -1, -1]
    assert batch["take"].tolist() == batch["index"].tolist() == [0, 1, 2]
    assert not batch["features"][1, 1:].any()
    assert dataset.speakers.tolist() == [1, 0, 0]


def test_mismatches_are_refused() -> None:
    with pytest.raises(CorpusError, match="1 feature arrays for 3"):
        UtteranceDataset(CORPUS, [torch.zeros(1, 2)], Vocabulary(CORPUS))
    with pytest.raises(CorpusError, match="no word called 'maybe'"):
        Vocabulary(CORPUS).encode("word", "maybe")
    with pytest.raises(CorpusError, match="batch_size"):
        LengthBuckets([1, 2], 0)
    with pytest.raises(PpspeechError, match=r"rank must lie in 0\.\.1"):
        LengthBuckets([1, 2], 2, place=Ranks(2, 2))
    with pytest.raises(CorpusError, match="2 processes share 1 utterances: lower"):
        LengthBuckets([1], 2, place=Ranks(1, 2))


@given(st.lists(st.integers(1, 200), min_size=1, max_size=300), st.integers(1, 40), st.booleans())
def test_every_utterance_once_in_batches_of_the_right_size(lengths: list[int], size: int, shuffle: bool) -> None:
    buckets = LengthBuckets(lengths, size, shuffle=shuffle)
    batches = list(buckets)
    assert len(batches) == len(buckets)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    assert max(map(len, batches)) <= size


def test_order_changes_with_the_epoch_and_repeats_with_the_seed() -> None:
    lengths = torch.randint(10, 100, (500,), generator=torch.Generator().manual_seed(0)).tolist()
    buckets = LengthBuckets(lengths, 16)
    first = list(buckets)
    assert first == list(LengthBuckets(lengths, 16))
    buckets.set_epoch(1)
    assert first != list(buckets)


@given(st.integers(5, 60), st.integers(5, 9), st.integers(1, 5), st.booleans())
def test_ranks_share_every_batch_of_an_epoch(count: int, size: int, ranks: int, owned: bool) -> None:
    """Step by step they have the utterances of one process, each once; what is owned is its owner's."""
    lengths, unit = [1 + (7 * i) % 23 for i in range(count)], torch.arange(count) % 3
    places = [Ranks(rank, ranks) for rank in range(ranks)]
    mine = [place.owns(unit).numpy() if owned else None for place in places]
    shared = [
        list(LengthBuckets(lengths, size, place=place, mine=own)) for place, own in zip(places, mine, strict=True)
    ]
    for alone, *parts in zip(LengthBuckets(lengths, size), *shared, strict=True):
        assert sorted(index for part in parts for index in part) == sorted(alone)
        if owned:
            owners = [set(unit[part].tolist()) for part in parts]
            assert sum(map(len, owners)) == len(set.union(*owners))
        else:
            assert max(map(len, parts)) - min(map(len, parts)) <= 1


@given(st.integers(5, 60), st.integers(5, 9), st.integers(1, 5))
def test_ranks_share_what_is_held_out(count: int, size: int, ranks: int) -> None:
    lengths = [1 + (7 * i) % 23 for i in range(count)]
    shared = [LengthBuckets(lengths, size, shuffle=False, place=Ranks(rank, ranks)) for rank in range(ranks)]
    assert all(len(list(each)) == len(each) > 0 for each in shared)
    assert sorted(index for each in shared for batch in each for index in batch) == list(range(count))


def test_a_batch_of_nobody_has_no_length() -> None:
    assert collate([])["features"].shape == (0, 0, 0)
    assert len(collate([])["lengths"]) == 0


def test_buckets_save_padding() -> None:
    lengths = torch.randint(10, 100, (2_000,), generator=torch.Generator().manual_seed(0)).tolist()
    padded = sum(max(lengths[i] for i in batch) * len(batch) for batch in LengthBuckets(lengths, 16))
    assert padded < 1.15 * sum(lengths)
