"""Word models trained for it listen while people speak, and hear what the model hears in the clear."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import pytorch_lightning as lightning

from ppspeech.audio import read_audio, waits_for_the_end
from ppspeech.bundle import Bundle
from ppspeech.data import SentenceDataModule, SpeechDataModule, SyntheticCorpus, joined_sentences, load_corpus
from ppspeech.errors import CorpusError
from ppspeech.training import SentenceModels, WordModels, release
from ppspeech.training.module import quiet_lightning
from tests.service.conftest import Running

WORDS = {"words": ["six", "one", "four"], "speakers": 8, "takes": 2}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """As `configs/keyword_live.yaml`, smaller."""
    quiet_lightning()
    module = WordModels(states=4, prior_covariance=100.0)
    few = {"deltas": 0, "level": "keep"}
    voices = SpeechDataModule("synthetic", WORDS, mfcc=few, normalization=["synthetic"], batch_size=64)
    lightning.Trainer(
        max_epochs=3, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False,
    ).fit(module, datamodule=voices)  # fmt: skip
    return release(module, tmp_path_factory.mktemp("live") / "live", not_private=True)


def test_public_voices_make_features_that_wait_for_nothing(bundle: Bundle) -> None:
    assert bundle.mfcc.cmvn == "public"
    assert waits_for_the_end(bundle.mfcc) is None
    (touch,) = (each for each in bundle.statement.touches if each.topic == "normalization")
    assert (touch.status, "public speech: synthetic" in touch.note) == ("untouched", True)


def test_what_is_spoken_is_heard_at_once_and_as_in_the_clear(
    bundle: Bundle, serve: Callable[..., AbstractContextManager[Running]]
) -> None:
    clips = [u for u in SyntheticCorpus(**WORDS).build() if u.take == 0][:3]  # type: ignore[arg-type]
    assert len({clip.word for clip in clips}) == 3
    with serve({"live": bundle}, frames=100) as running, running.connect("live") as client:
        for clip in clips:
            with client.stream() as listening:
                assert listening.is_live
                for chunk in read_audio(clip.path, bundle.mfcc.sample_rate).split(1600):
                    listening.feed(chunk)
                answer = listening.finish()
            assert answer.how == "stream"
            assert answer.value == bundle.recognize(clip.path).value == clip.word


def test_private_voices_are_no_public_statistics(tmp_path: Path) -> None:
    """What is trained on must not set the means: they would leave with every model, unpaid."""
    SyntheticCorpus(("six", "one"), speakers=4, takes=1).build(tmp_path / "mine")
    (tmp_path / "mine" / "synthetic.json").unlink()
    own = str(tmp_path / "mine")
    module = SpeechDataModule(own, normalization=[load_corpus(own).name])
    with pytest.raises(CorpusError, match="nobody's secret"):
        module.setup()


def test_sentences_of_the_live_recipe_are_written_down_as_they_are_spoken(
    tmp_path: Path, serve: Callable[..., AbstractContextManager[Running]]
) -> None:
    """As `configs/sentences_live.yaml`, smaller: loud and faint alike, by people that were not heard in training."""
    quiet_lightning()
    joined = SentenceDataModule(
        corpus="synthetic", options=WORDS | {"seed": 1}, mfcc={"hop_s": 0.03, "level": "keep"}, sentences=6,
        test_sentences=3, normalization=["synthetic"], levels=(-30.0, 0.0), test=0.25,
    )  # fmt: skip
    model = SentenceModels(states=4, covariance="diagonal", floor=0.1, prior_covariance=100.0, word_penalty=5.0)
    run = lightning.Trainer(
        max_epochs=3, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False,
    )  # fmt: skip
    run.fit(model, datamodule=joined)
    assert run.test(model, datamodule=joined, verbose=False)[0]["test_accuracy"] > 0.7
    bundle = release(model, tmp_path / "said", not_private=True)
    assert waits_for_the_end(bundle.mfcc) is None
    corpus = load_corpus("synthetic", **WORDS, seed=1)
    corpus = corpus.select(lambda u: u.speaker == corpus.speakers[0])
    said = [next(iter(joined_sentences(corpus, 1, 16_000, (2, 3), levels=(db, db)))).waveform for db in (0.0, -25.0)]
    with serve({"said": bundle}) as running, running.connect("said") as client:
        for sound in said:
            with client.listen() as listening:
                assert listening.is_live
                for at in range(0, len(sound), 900):
                    listening.feed(sound[at : at + 900])
                heard = listening.finish()
            clear = bundle.transcribe(sound, 16_000)
            assert heard.how == "stream"
            assert [word.value for word in heard.value] == [word.value for word in clear]
