"""Bundles of sentences, in the clear: the graph, the floor and the clipping that an encrypted service has."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from ppspeech.audio import Mfcc, MfccConfig, write_audio
from ppspeech.bundle import SILENCE, Bundle, BundleConfig, SentenceHmmSettings, SentenceTranscriber, load_bundle
from ppspeech.errors import BundleError, ModelError
from ppspeech.models.decoding import decode, loop_graph, units_of_bank
from tests.service.voices import LABELS, RATE, released, voice

MFCC = MfccConfig(cepstra=4, deltas=0, hop_s=0.02)
LOOP = SentenceHmmSettings(
    states=2, covariance="full", floor=0.1, grammar=None, word_penalty=0.5, leave=0.3, depth=64
)  # fmt: skip


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return released(tmp_path_factory.mktemp("sentences") / "bundle", LOOP, MFCC)


def by_hand(bundle: Bundle, sound: Tensor) -> list[tuple[str, float, float]]:
    """Scores of every state, clipped frames, never below the floor with staying included; then the loop."""
    bank = bundle.model
    names: dict[str, str | None] = {label: label for label in LABELS}
    units = units_of_bank(bank, names | {SILENCE: None}, leave=LOOP.leave)  # type: ignore[arg-type]
    frames = Mfcc(MFCC)(sound).features[0].clamp(-8, 8)
    scores = bank.emission.log_likelihood(frames[None])[0].flatten(1).double()  # type: ignore[operator, union-attr]
    stays, peaks = [0.0] * scores.shape[1], []
    for unit in units.values():
        for state, pdf in enumerate(unit.pdfs):
            stays[pdf] = unit.log_transitions[state][state]
    covariances = bank.emission.gaussians.covariances().detach().double().flatten(0, 1)  # type: ignore
    for stay, covariance in zip(stays, covariances, strict=True):
        peaks.append(stay - 0.5 * float(torch.logdet(2 * math.pi * covariance)))
    assert max(peaks) - min(peaks) < LOOP.depth / 2  # else the depth would be doubled
    least = max(peaks) - LOOP.depth - torch.tensor(stays, dtype=torch.float64)
    graph = loop_graph(LABELS, units, SILENCE, LOOP.word_penalty)
    found = decode(graph, torch.maximum(scores.detach(), least))
    return [(word.word, word.start * 0.02, word.end * 0.02) for word in found.words]


def test_a_bundle_hears_by_its_own_graph_and_floor(bundle: Bundle, tmp_path: Path) -> None:
    lengths = set()
    for seed in range(6):
        sound = voice(seed, 0.4 + 0.2 * seed)
        sound[3000:3010] = 1.0 - 2 * (seed % 2)  # a click, so that some frames lie far out
        heard = bundle.transcribe(sound, RATE)
        assert [(word.value, word.start, word.end) for word in heard] == by_hand(bundle, sound)
        lengths.add(len(heard))
    assert len(lengths) > 1
    write_audio(tmp_path / "clip.wav", voice(1, 0.6), RATE)
    assert load_bundle(released(tmp_path / "again", LOOP, MFCC) and tmp_path / "again").transcribe(
        tmp_path / "clip.wav"
    )


def test_the_floor_is_under_every_score(bundle: Bundle) -> None:
    transcriber = bundle.transcriber
    assert isinstance(transcriber, SentenceTranscriber)
    far = torch.full((3, 4), 100.0)
    least = transcriber.floor.level - transcriber.stays.flatten()
    scores = transcriber.scores(far)
    assert (scores >= least).all()
    assert torch.isclose(scores, least).double().mean() > 0.5
    torch.testing.assert_close(transcriber.scores(far), transcriber.scores(torch.full((3, 4), 8.0)))
    near = transcriber.bank.emission.gaussians.mean.detach().flatten(0, 1)  # type: ignore[union-attr]
    highest = (transcriber.scores(near) + transcriber.stays.flatten()).max()
    assert float(highest) == pytest.approx(transcriber.floor.level + transcriber.floor.depth, abs=1e-3)


def test_a_grammar_is_the_bundles_or_the_callers(tmp_path: Path, bundle: Bundle) -> None:
    strict = released(tmp_path / "strict", replace(LOOP, grammar="aardvark [bumblebee] caterpillar"), MFCC)
    said = [word.value for word in strict.transcribe(voice(2, 1.0), RATE)]
    assert said in (["aardvark", "caterpillar"], ["aardvark", "bumblebee", "caterpillar"])
    asked = bundle.transcribe(voice(2, 1.0), RATE, grammar="aardvark [bumblebee] caterpillar")
    assert asked == strict.transcribe(voice(2, 1.0), RATE)
    many = bundle.transcriber.transcribe_all([voice(2, 1.0)], RATE, word_penalty=0.0)[0]
    few = bundle.transcriber.transcribe_all([voice(2, 1.0)], RATE, word_penalty=500.0)[0]
    assert len(few) < len(many)
    with pytest.raises(ModelError, match="no garbage model"):
        bundle.transcriber.transcribe_all([voice(2)], RATE, garbage=0.0)
    with pytest.raises(ModelError, match="no unit for dog"):
        bundle.transcribe(voice(2), RATE, grammar="dog")
    with pytest.raises(ModelError, match="recognize"):
        bundle.recognize(voice(2), RATE)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"leave": 0.0}, "0 < leave < 1"),
        ({"leave": 1.0}, "0 < leave < 1"),
        ({"word_penalty": 1e6}, "word_penalty within"),
        ({"depth": 1}, "depth in"),
        ({"depth": 1 << 15}, "depth in"),
        ({"states": 0}, "states must lie"),
        ({"grammar": ""}, "printable text"),
        ({"grammar": "aardvark |"}, "needs a word"),
        ({"grammar": "aardvark dog"}, "models of dog"),
        ({"grammar": "(" * 40 + "aardvark" + ")" * 40}, "nests at most"),
    ],
)
def test_graphs_that_cannot_be_are_refused(changes: dict[str, object], message: str) -> None:
    plain = BundleConfig(LOOP, LABELS, MFCC).to_json()
    plain["settings"] |= changes
    with pytest.raises(BundleError, match=message):
        BundleConfig.from_json(plain).build()
