"""A public encoder comes with what is offered, and who speaks runs it: words and sentences as in the clear, by TLS."""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as lightning
import torch

from ppspeech.audio import MfccConfig, PublicEncoder
from ppspeech.bundle import Bundle, BundleConfig, load_bundle
from ppspeech.data import Corpus, SentenceDataModule, SpeechDataModule, publicly_encoded
from ppspeech.errors import BundleError, CorpusError, WrongSessionError
from ppspeech.service import SentenceDeployment
from ppspeech.service.client import sentences as client_module
from ppspeech.service.offer import describe, read_offers
from ppspeech.service.server.sentences import ServedSentences
from ppspeech.training import SentenceModels, quiet_lightning, release
from tests.audio.test_encoder import LIVE, SMALL
from tests.service.conftest import Running, serving
from tests.service.voices import LABELS, RATE, SENTENCES, plain_answer, released, sure, voice

Serve = Callable[..., AbstractContextManager[Running]]

WHOLE = MfccConfig(cepstra=4, deltas=0, hop_s=0.02, encoder=SMALL)
SHORT = SentenceDeployment(frames=64)
OPTIONS = {"words": ["zero", "one", "two"], "speakers": 8, "takes": 2, "seed": 1}


@pytest.fixture(scope="module")
def encoded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Bundle]:
    folder = tmp_path_factory.mktemp("encoded")
    return {
        "word": released(folder / "word", mfcc=WHOLE),
        "sentence": released(folder / "sentence", SENTENCES, WHOLE),
        "live": released(folder / "live", SENTENCES, replace(LIVE, hop_s=0.02)),
    }


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory, encoded: dict[str, Bundle]) -> Iterator[Running]:
    with serving(tmp_path_factory.mktemp("server"), encoded, sentences=SHORT) as found:
        yield found


def test_words_and_sentences_are_those_in_the_clear(
    asked: Running, encoded: dict[str, Bundle], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "choose_way", lambda *_: "frames")
    monkeypatch.setattr(client_module, "speaking_way", lambda *_: "shares")
    sounds = [voice(seed, 0.4) for seed in range(12)]
    sounds = [sound for sound in sounds if plain_answer(encoded["word"], sound)[1] > 2]
    with asked.connect("word") as client:
        assert client.offer.terms.mfcc.encoder == SMALL
        answers = client.recognize_all(sounds, RATE)
        assert [each.value for each in answers] == [plain_answer(encoded["word"], sound)[0] for sound in sounds]
    assert len(sounds) > 3
    with asked.connect("sentence") as client:
        sound = sure(encoded["sentence"], 50)
        assert client.transcribe(sound, RATE).value == encoded["sentence"].transcribe(sound, RATE)
    with asked.connect("live") as client, client.listen() as listening:
        assert listening.is_live
        sound = sure(encoded["live"], 41)
        for chunk in torch.split(sound, 500):
            listening.feed(chunk)
        assert listening.finish().value == encoded["live"].transcribe(sound, RATE)


CHANGES: list[tuple[str, Any]] = [
    ("reach", 10_000),
    ("reach", 1.5),
    ("widths", [4, 6, 2]),
    ("widths", [4, 10**6, 3]),
    ("widths", "4"),
    ("numbers", [0.0]),
    ("numbers", [*SMALL.numbers[:-1], 1e300]),
    ("numbers", [*SMALL.numbers[:-1], None]),
    ("code", "import os"),
]


@pytest.mark.parametrize(("field", "value"), CHANGES, ids=lambda value: str(value)[:20])
def test_a_client_refuses_what_it_cannot_run_and_a_bundle_what_is_none(
    encoded: dict[str, Bundle], field: str, value: Any
) -> None:
    offer = ServedSentences.of("sentence", encoded["sentence"], SHORT).offer
    assert read_offers(describe((offer,)), "sentences") == (offer,)
    plain = json.loads(describe((offer,)))
    plain["sentences"][0]["mfcc"]["encoder"][field] = value
    with pytest.raises(WrongSessionError, match="cannot be used"):
        read_offers(json.dumps(plain).encode(), "sentences")
    config = json.loads(json.dumps(encoded["sentence"].config.to_json()))
    config["mfcc"]["encoder"][field] = value
    with pytest.raises(BundleError):
        BundleConfig.from_json(config)


def test_both_parties_mean_the_same_encoder(encoded: dict[str, Bundle]) -> None:
    offer = ServedSentences.of("sentence", encoded["sentence"], SHORT).offer
    other = replace(SMALL, numbers=(*SMALL.numbers[:-1], SMALL.numbers[-1] + 1))
    changed = replace(offer, terms=replace(offer.terms, mfcc=replace(offer.terms.mfcc, encoder=other)))
    assert changed.agreement != offer.agreement


def test_bundles_from_before_there_were_encoders_are_read(encoded: dict[str, Bundle]) -> None:
    plain = BundleConfig(SENTENCES, LABELS, MfccConfig()).to_json()
    del plain["mfcc"]["encoder"]
    assert BundleConfig.from_json(json.loads(json.dumps(plain))).mfcc == MfccConfig()
    assert "by a public encoder of 4 MFCC features" in encoded["sentence"].config.input


def test_a_recipe_learns_from_public_voices_and_its_bundle_says_so(tmp_path: Path) -> None:
    quiet_lightning()
    joined = SentenceDataModule(
        corpus="synthetic", options=OPTIONS, mfcc={"hop_s": 0.03}, sentences=6, test_sentences=3, test=0.25, seed=2,
        encoder={"outputs": 8, "hidden": 16, "reach": 1, "epochs": 3, "sentences": 1},
    )  # fmt: skip
    model = SentenceModels(states=4, floor=0.1, prior_covariance=100.0, word_penalty=1.0)
    run = lightning.Trainer(
        max_epochs=3, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False,
    )  # fmt: skip
    run.fit(model, datamodule=joined)
    assert run.test(model, datamodule=joined, verbose=False)[0]["test_accuracy"] > 0.6
    release(model, tmp_path / "bundle", not_private=True)
    bundle = load_bundle(tmp_path / "bundle")
    assert isinstance(bundle.mfcc.encoder, PublicEncoder)
    assert bundle.mfcc.features == 8
    (touch,) = (each for each in bundle.statement.touches if each.topic == "normalization")
    assert (touch.status, "encoder of public speech: synthetic" in touch.note) == ("untouched", True)


def test_private_speech_teaches_no_encoder() -> None:
    own = SpeechDataModule("fsdd", encoder={"corpora": ["fsdd"]})
    with pytest.raises(CorpusError, match="cannot be normalized or encoded by fsdd"):
        own.config(Corpus("fsdd", 8_000, ()))
    with pytest.raises(CorpusError, match="cannot be made"):
        SpeechDataModule(encoder={"layers": 7}).config(Corpus("synthetic", RATE, ()))
    with pytest.raises(CorpusError, match="an encoder already"):
        publicly_encoded(WHOLE)
