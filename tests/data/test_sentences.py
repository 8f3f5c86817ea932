"""Joined sentences: marks that are where the words are, speakers that stay apart, one seed, one result."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from ppspeech.audio import Mfcc, MfccConfig, write_audio
from ppspeech.data import Corpus, SentenceDataModule, Utterance, joined_sentences, split_by_speaker
from ppspeech.data.sentences import heard_by
from ppspeech.errors import CorpusError

RATE = 8_000
CONFIG = replace(MfccConfig.narrowband(), hop_s=0.03)
PITCH = {"low": 400.0, "high": 2_000.0}


@pytest.fixture(scope="module")
def tones(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Two words of four people: a low or a high tone of 0.3 s, with half a second of hiss around it."""
    folder, drawn = tmp_path_factory.mktemp("tones"), np.random.default_rng(0)
    found = []
    for person in ("ann", "bob", "cy", "di"):
        for word, pitch in PITCH.items():
            for take in range(2):
                tone = np.sin(2 * np.pi * (pitch + 10 * take) * np.arange(int(0.3 * RATE)) / RATE)
                hiss = 1e-3 * drawn.normal(size=len(tone) + RATE)
                hiss[RATE // 2 : RATE // 2 + len(tone)] += 0.1 * tone
                path = folder / f"{person}-{word}-{take}.wav"
                write_audio(path, torch.from_numpy(hiss).float(), RATE)
                found.append(Utterance(path, person, word=word, take=take))
    return Corpus("tones", RATE, tuple(found))


def test_marks_are_where_the_words_are(tones: Corpus) -> None:
    for sentence in joined_sentences(tones, 2, RATE, (3, 5)):
        assert sentence.marks[0].start == 0
        assert sentence.marks[-1].end == len(sentence.waveform)
        assert all(one.end == following.start for one, following in pairwise(sentence.marks))
        assert 3 <= len(sentence.text) <= 5
        for mark in sentence.marks:
            piece = sentence.waveform[mark.start : mark.end].numpy()
            if mark.word is None:
                assert piece.std() < 0.02
                continue
            assert 0.3 <= len(piece) / RATE <= 0.45  # the silence around it is cut, to 50 ms on both sides
            assert np.abs(piece).max() == pytest.approx(1)
            heard = np.abs(np.fft.rfft(piece)).argmax() * RATE / len(piece)
            assert heard == pytest.approx(PITCH[mark.word], abs=20)


def test_a_sentence_follows_from_the_seed_and_its_speaker_alone(tones: Corpus) -> None:
    def by_speaker(corpus: Corpus, each: int, seed: int = 3) -> dict[str, list[torch.Tensor]]:
        found: dict[str, list[torch.Tensor]] = {}
        for sentence in joined_sentences(corpus, each, RATE, seed=seed):
            found.setdefault(sentence.speaker, []).append(sentence.waveform)
        return found

    few, many = by_speaker(tones, 2), by_speaker(tones, 3)
    without = by_speaker(tones.select(lambda u: u.speaker != "ann"), 2)
    assert set(without) == set(few) - {"ann"}
    for speaker, waveforms in few.items():
        for number, waveform in enumerate(waveforms):
            assert torch.equal(waveform, many[speaker][number])
            assert speaker == "ann" or torch.equal(waveform, without[speaker][number])
    assert not torch.equal(few["bob"][0], by_speaker(tones, 1, seed=4)["bob"][0])
    assert not torch.equal(few["bob"][0][:4000], few["cy"][0][:4000])


def test_splits_by_speaker_hold_for_sentences(tones: Corpus) -> None:
    split = split_by_speaker(tones, ["cy"])
    for part in split.parts.values():
        own = {u.speaker for u in part}
        assert {sentence.speaker for sentence in joined_sentences(part, 2, RATE)} == own
    data = _module(tones)
    data.setup()
    train, test = data.parts["train"].speakers.unique(), data.parts["test"].speakers.unique()
    assert len(test) == 1
    assert not torch.isin(test, train).any()


def test_segments_are_in_frames(tones: Corpus) -> None:
    for heard in heard_by(CONFIG, joined_sentences(tones, 1, RATE)):
        assert heard.segments[0].start == 0
        assert heard.segments[-1].end == len(heard.features)
        assert all(one.end == following.start for one, following in pairwise(heard.segments))
        marks = iter(heard.sentence.marks)
        for segment in heard.segments:
            mark = next(m for m in marks if m.word == segment.word and m.end > segment.start * CONFIG.hop_length)
            middles = [f * CONFIG.hop_length + CONFIG.window_length // 2 for f in range(segment.start, segment.end)]
            assert all(mark.start <= middle for middle in middles)
            assert all(middle < mark.end for middle in middles)
        with pytest.raises(CorpusError, match="16000 Hz"):
            heard.sentence.segments(MfccConfig.wideband(), 10)
        with pytest.raises(CorpusError, match="vad_db 30"):
            heard.sentence.segments(replace(CONFIG, vad_db=30.0), 10)


def _module(corpus: Corpus, **more: object) -> SentenceDataModule:
    folder = corpus[0].path.parent
    rows = [f"{u.path.name},{u.speaker},{u.word},{u.take}" for u in corpus]
    (folder / "manifest.csv").write_text("\n".join(["path,speaker,word,take", *rows]) + "\n")
    chosen: dict[str, object] = {"corpus": str(folder), "test": ["di"], "mfcc": {"hop_s": 0.03}, "sentences": 3}
    return SentenceDataModule(**chosen | {"test_sentences": 2, "shortest": 3, "batch_size": 8} | more)  # type: ignore[arg-type]


def test_the_data_module_gives_pieces_to_train_on_and_sentences_to_test_on(tones: Corpus) -> None:
    data = _module(tones)
    data.setup()
    data.setup("test")
    pieces, whole = data.parts["train"], data.parts["test"]
    assert set(pieces.words.tolist()) == {0, 1, 2}  # high, low, silence
    assert min(pieces.sizes) >= 3
    assert len(whole) == 2
    batch = next(iter(data.train_dataloader()))
    assert batch["features"].shape[::2] == (8, 39)
    assert set(batch) == {"features", "lengths", "word", "speaker", "index"}
    loud = pieces.features[int((pieces.words < 2).nonzero()[0])][:, 0].mean()
    quiet = pieces.features[int((pieces.words == 2).nonzero()[0])][:, 0].mean()
    assert loud > quiet
    batch = next(iter(data.test_dataloader()))
    words = data.vocabulary["word"]
    sentences = list(joined_sentences(tones.select(lambda u: u.speaker == "di"), 2, RATE, (4, 7)))
    for index, said, features, length in zip(
        batch["index"].tolist(), batch["said"].tolist(), batch["features"], batch["lengths"].tolist(), strict=True
    ):
        assert tuple(words[place] for place in said if place >= 0) == sentences[index].text
        expected = Mfcc(data.config(data.corpus))(sentences[index].waveform).features[0]
        torch.testing.assert_close(features[:length], expected)


@pytest.mark.parametrize(
    ("each", "words", "message"),
    [(0, (1, 2), "each >= 1"), (1, (0, 2), r"1 <= words\[0\]"), (1, (3, 2), r"words\[0\] <= words\[1\]")],
)
def test_sizes_are_checked(tones: Corpus, each: int, words: tuple[int, int], message: str) -> None:
    with pytest.raises(CorpusError, match=message):
        next(joined_sentences(tones, each, RATE, words))


def test_what_cannot_be_joined_is_refused(tones: Corpus, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="no words to join"):
        next(joined_sentences(replace(tones, utterances=tuple(replace(u, word=None) for u in tones)), 1, RATE))
    write_audio(tmp_path / "silent.wav", torch.zeros(RATE), RATE)
    silent = Corpus("silent", RATE, (Utterance(tmp_path / "silent.wav", "ann", word="low"),))
    with pytest.raises(CorpusError, match=r"silent\.wav is silent"):
        next(joined_sentences(silent, 1, RATE))


def test_sentences_are_played_at_levels_between_those_that_are_given(tones: Corpus) -> None:
    """The same sentences otherwise: a gain each, and nothing else."""
    plain, far = (list(joined_sentences(tones, 3, RATE, levels=levels)) for levels in ((0.0, 0.0), (-30.0, -10.0)))
    gains = []
    for one, other in zip(plain, far, strict=True):
        assert one.marks == other.marks
        gains.append(float(other.waveform.norm() / one.waveform.norm()))
        torch.testing.assert_close(other.waveform, gains[-1] * one.waveform)
    assert 10 ** (-30 / 20) <= min(gains) < max(gains) <= 10 ** (-10 / 20) * (1 + 1e-6)
    for levels in ((0.0, -1.0), (-200.0, 0.0), (0.0, 3.0)):
        with pytest.raises(CorpusError, match="levels are decibels"):
            next(iter(joined_sentences(tones, 1, RATE, levels=levels)))
