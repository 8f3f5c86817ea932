"""Wake words and words from a few clips on made-up embeddings: who is learned from, and what is counted."""

from pathlib import Path

import numpy as np
import pytest
import torch

from ppspeech.audio.embeddings import EmbeddingConfig, Pooling
from ppspeech.data import Corpus, Utterance
from ppspeech.evidence.experiments import few_shot, wakewords
from ppspeech.evidence.spoken import Spoken
from ppspeech.training.own_words import Stream, alarms_in, learn

WORDS = ("one", "two", "three")
FILES = 10


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Public vectors without a network, and vectors of one part."""
    monkeypatch.setattr(
        learn, "public_vectors", lambda each: np.random.default_rng(9).standard_normal((40, each.features))
    )
    monkeypatch.setattr(few_shot, "EMBEDDING", EmbeddingConfig("speech"))
    monkeypatch.setattr(wakewords, "UTTERANCE", EmbeddingConfig("speech"))
    monkeypatch.setattr(wakewords, "WINDOW", EmbeddingConfig("speech", pooling=Pooling("window", 1, 4)))


def files(apart: float) -> dict[str, wakewords.Files]:
    """Words whose embeddings lie so far apart; in what is heard a file begins and ends like other speech."""
    generator, found = np.random.default_rng(0), {}
    size = wakewords.WINDOW.features
    for word in WORDS:
        center = apart * generator.standard_normal(size)
        vectors = center + generator.standard_normal((FILES, 2, size))
        other = generator.standard_normal((FILES, 6, size))
        found[word] = wakewords.Files(
            vectors, vectors, [np.concatenate([o[:3], v, o[3:]]) for o, v in zip(other, vectors, strict=True)]
        )
    return found


def groups() -> list[wakewords.Group]:
    generator = np.random.default_rng(1)

    def stream(number: int) -> Stream:
        return Stream(generator.standard_normal((500, 96)), None, 40.0, f"{number}")

    streams = [(stream(2 * number), stream(2 * number + 1)) for number in range(wakewords.FOLDS)]
    return [
        wakewords.Group(own, tuple(each.vectors(wakewords.WINDOW.pooling) for each in own), 80 / 3600)
        for own in streams
    ]


def test_words_that_differ_are_told_apart_and_heard_beside_other_speech() -> None:
    spoken = files(2.0)
    assert sum(wakewords.told_apart(spoken, fold) for fold in range(wakewords.FOLDS)) == len(WORDS) * FILES
    figures = {each.metric.rpartition(".")[2]: each for each in wakewords.beside_speech(spoken, groups())}
    assert figures["miss_at_1fa"].value < 0.3
    assert figures["miss"].value < 0.3
    assert figures["alarms_an_hour"].value == 0
    assert figures["alarms_an_hour"].high == pytest.approx(3.689 / (400 / 3600), rel=1e-3)  # Poisson, of none
    assert "0 in 0.22 hours made of 6.7 minutes of other people, each heard from 2 starts" in str(figures["miss"].note)


def test_words_that_do_not_differ_are_not() -> None:
    # 30 files at chance 1/3: 0.7 is four standard deviations up
    assert sum(wakewords.told_apart(files(0.0), fold) for fold in range(wakewords.FOLDS)) < 0.7 * len(WORDS) * FILES


def test_no_recording_of_other_speech_has_two_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = []
    monkeypatch.setattr(wakewords, "learn_words", lambda clips, background, **_: heard.append((clips, background)))
    own = groups()
    for fold in range(wakewords.FOLDS):
        wakewords._listening(files(1.0), own, fold)
        clips, background = heard[-1]
        parts = [{each.digest for each in part} for part in (background.training, background.calibrating)]
        counted = {each.digest for each in own[fold].streams}
        assert not parts[0] & parts[1]
        assert not counted & (parts[0] | parts[1])
        assert len(parts[0] | parts[1] | counted) == 2 * wakewords.FOLDS
        assert all(len(each) == FILES - FILES // wakewords.FOLDS for each in clips.values())


def test_the_first_alarm_counts() -> None:
    scores = np.array([[0.0, -1.0, -2.0], [0.0, 1.0, 0.5], [0.0, 1.0, 3.0]])
    assert wakewords._said(scores, 0.0) == 0
    assert wakewords._said(scores, 2.0) == 1
    assert wakewords._said(scores, 5.0) is None
    margins = [np.array([1.0, 5.0, 3.0] + 30 * [0.0] + [4.0])]
    assert alarms_in(margins, wakewords._swept(margins, 1)) == 1
    assert wakewords._swept(margins, 1) == 4.0


def clips(people: int = 8, takes: int = 2) -> few_shot.Clips:
    """A corpus that nobody recorded, with a vector and ten frames of each utterance."""
    generator = torch.Generator().manual_seed(0)
    said = [(who, word, take) for who in range(people) for word in WORDS for take in range(takes)]
    utterances = tuple(
        Utterance(Path(f"{who}_{word}_{take}"), f"{who}", word=word, take=take) for who, word, take in said
    )
    words = torch.tensor([sorted(WORDS).index(word) for _, word, _ in said])
    speakers = torch.tensor([who for who, _, _ in said])
    centers = torch.randn(len(WORDS), few_shot.EMBEDDING.features, generator=generator)
    vectors = 2 * centers[words] + torch.randn(len(said), few_shot.EMBEDDING.features, generator=generator)
    frames = 3 * centers[words][:, None, :10] + torch.randn(len(said), 10, 10, generator=generator)
    spoken = Spoken(frames, torch.full((len(said),), 10), words, speakers)
    return few_shot.Clips(Corpus("made", 16_000, utterances), vectors.double().numpy(), spoken)


def test_few_people_teach_and_others_are_recognized(monkeypatch: pytest.MonkeyPatch) -> None:
    made = clips()
    place = {utterance.path: number for number, utterance in enumerate(made.corpus)}
    taught: list[list[int]] = []

    def examples(paths: list[Path], *_: object) -> np.ndarray:
        taught.append([place[path] for path in paths])
        return made.vectors[taught[-1]][:, None]

    monkeypatch.setattr(few_shot, "word_examples", examples)
    monkeypatch.setattr(few_shot, "SHOTS", (1, 3))
    figures = {each.metric: each for each in few_shot.figures_of(made, 2)}
    assert figures["embeddings.fewshot3.accuracy"].value > 0.9
    assert figures["embeddings.fewshot3.hmm_accuracy"].value > 0.9
    assert {len(each) for each in taught} == {1, 3}
    right = few_shot.tried(made, 3, 0)
    teachers = {int(made.spoken.speakers[number]) for each in taught[-3:] for number in each}
    tested = set(made.spoken.speakers[~right[0].isnan()].tolist())
    assert len(teachers) == 3
    assert not teachers & tested
    assert len(tested) == 4
