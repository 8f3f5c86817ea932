"""The recipe of sentences: trained on pieces, tested on the whole, released with its graph."""

from collections.abc import Callable
from pathlib import Path

import pytest
import pytorch_lightning as lightning

from ppspeech.bundle import SentenceBank, SentenceHmmSettings, SentenceTranscriber, load_bundle
from ppspeech.data import SentenceDataModule, SpeechDataModule, joined_sentences, load_corpus
from ppspeech.errors import BundleError, ModelError, SpeechWarning
from ppspeech.training import SentenceModels, export_checkpoint, language_model, load_checkpoint

Make = Callable[..., lightning.Trainer]
OPTIONS = {"words": ["zero", "one", "two"], "speakers": 8, "takes": 2, "seed": 1}


def data() -> SentenceDataModule:
    return SentenceDataModule(
        corpus="synthetic", options=OPTIONS, mfcc={"hop_s": 0.03}, sentences=6, test_sentences=3, test=0.25, seed=2
    )


def test_sentences_are_learned_released_and_written_down(trainer: Make, tmp_path: Path) -> None:
    model, joined = SentenceModels(states=4, floor=0.1, prior_covariance=100.0, word_penalty=1.0), data()
    run = trainer(max_epochs=3)
    run.fit(model, datamodule=joined)
    result = run.test(model, datamodule=joined, verbose=False)[0]
    assert result["test_accuracy"] >= 0.85
    assert 0 <= result["test_sentences"] <= 1
    run.save_checkpoint(tmp_path / "a.ckpt")
    bundle = export_checkpoint(tmp_path / "a.ckpt", tmp_path / "bundle", not_private=True)
    assert bundle.config.type == "sentence_hmm"
    assert bundle.mfcc.hop_s == 0.03
    trained = load_checkpoint(tmp_path / "a.ckpt", "transcribe")
    checkpoint = SentenceTranscriber.of(trained.model, trained.config)  # type: ignore[arg-type]
    held_out = {joined.vocabulary["speaker"][place] for place in joined.parts["test"].speakers.tolist()}
    corpus = load_corpus("synthetic", **OPTIONS).select(lambda u: u.speaker in held_out)
    errors = []
    for sentence in joined_sentences(corpus, 2, 16_000, seed=5):
        heard = load_bundle(tmp_path / "bundle").transcribe(sentence.waveform, 16_000)
        assert heard == checkpoint.transcribe_all([sentence.waveform], 16_000)[0]
        errors.append(tuple(word.value for word in heard) != sentence.text)
        if not errors[-1]:
            for word, mark in zip(heard, (m for m in sentence.marks if m.word is not None), strict=True):
                assert word.start == pytest.approx(mark.start / 16_000, abs=0.15)
                assert word.end == pytest.approx(mark.end / 16_000, abs=0.15)
    assert sum(errors) <= len(errors) / 2


def test_validation_is_counted_too(trainer: Make) -> None:
    joined = SentenceDataModule(
        corpus="synthetic", options=OPTIONS, sentences=2, test_sentences=1, test=0.0, validation=0.25
    )
    run = trainer(max_epochs=1)
    run.fit(SentenceModels(states=2, covariance="diagonal"), datamodule=joined)
    assert run.callback_metrics["validation_accuracy"] <= 1


def test_what_does_not_fit_is_refused(voices: SpeechDataModule, trainer: Make) -> None:
    with pytest.raises(ModelError, match=r"data\.class_path to SentenceDataModule"):
        trainer(max_epochs=1).fit(SentenceModels(), datamodule=voices)
    joined = SentenceDataModule(corpus="synthetic", options=OPTIONS, sentences=1, test_sentences=1)
    model = SentenceModels(states=2, covariance="diagonal")
    run = trainer(max_epochs=1)
    run.fit(model, datamodule=joined)
    with pytest.raises(ModelError, match="ppspeech transcribe"):
        run.predict(model, datamodule=joined)
    with pytest.raises(BundleError, match="needs models of four"):
        trainer(max_epochs=1).fit(SentenceModels(grammar="(one | four)+"), datamodule=data())


def test_words_of_phones_and_a_language_model_are_learned_and_released(trainer: Make, tmp_path: Path) -> None:
    """Models are of phones; a word that nobody said is written down by those of others, where texts have it."""
    (tmp_path / "words.txt").write_text("woo\nzero\ntoo judge\n")
    (tmp_path / "texts.txt").write_text("one two\nzero one\ntwo two zero\n")
    model = SentenceModels(
        states=2, covariance="diagonal", floor=0.1, prior_covariance=50.0, lexicon="espeak",
        vocabulary=str(tmp_path / "words.txt"), language=str(tmp_path / "texts.txt"), language_scale=2.0,
    )  # fmt: skip
    joined, run = data(), trainer(max_epochs=3)
    with pytest.warns(SpeechWarning, match="2 of 3 further words are left out.*too, judge"):
        run.fit(model, datamodule=joined)
    assert run.test(model, datamodule=joined, verbose=False)[0]["test_accuracy"] > 0.5
    run.save_checkpoint(tmp_path / "a.ckpt")
    bundle = export_checkpoint(tmp_path / "a.ckpt", tmp_path / "bundle", not_private=True)
    settings = bundle.config.settings
    assert isinstance(settings, SentenceHmmSettings)
    assert bundle.labels == ("one", "two", "zero", "woo")
    assert len(settings.units) + 1 == model.bank.models
    assert isinstance(bundle.model, SentenceBank)
    language = settings.language(bundle.model, bundle.labels)
    assert language.score("two", ["<s>", "one"]) == pytest.approx(
        language_model(str(tmp_path / "texts.txt")).score("two", ["<s>", "one"]), abs=1e-5
    )
    assert (bundle.model.language == model.bank.language).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vocabulary": "w.txt"}, r"set model\.lexicon"),
        ({"lexicon": "l.dict"}, "does not say what these words are made of: two"),
        ({"lexicon": "bad.dict"}, "every line has a word and at least one unit"),
        ({"lexicon": "none.dict"}, "cannot be read"),
        ({"language": "t.txt"}, "words without a model: wug"),
        ({"language": "t.arpa"}, "cannot be read"),
    ],
)
def test_lexicons_and_texts_that_do_not_fit_are_refused(
    options: dict[str, str], message: str, trainer: Make, tmp_path: Path
) -> None:
    files = {
        "w.txt": "shoe judge", "l.dict": "one w V n\nzero z I r oU\n", "bad.dict": "one\n", "t.txt": "one wug\n",
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    chosen = {name: value if value == "espeak" else str(tmp_path / value) for name, value in options.items()}
    with pytest.raises(ModelError, match=message):
        trainer(max_epochs=1).fit(SentenceModels(states=2, covariance="diagonal", **chosen), datamodule=data())  # type: ignore[arg-type]
