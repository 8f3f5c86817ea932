"""Bundles of sentences, in the clear: the graph and the clipping that an encrypted service has."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from ppspeech.audio import Mfcc, MfccConfig, usual_range, write_audio
from ppspeech.bundle import (
    SILENCE,
    Bundle,
    BundleConfig,
    SentenceHmmSettings,
    SentenceTranscriber,
    feature_radius,
    load_bundle,
)
from ppspeech.errors import BundleError, ModelError
from ppspeech.models.decoding import decode, loop_graph, units_of_bank
from ppspeech.models.hmm import GaussianEmission, HiddenMarkovModel, left_right
from tests.service.voices import LABELS, RATE, released, voice

MFCC = MfccConfig(cepstra=4, deltas=0, hop_s=0.02)
LOOP = SentenceHmmSettings(
    states=2, covariance="full", floor=0.1, grammar=None, word_penalty=0.5, leave=0.3
)  # fmt: skip
RADIUS = 2 * 2.5 * 4**0.5  # of four features, doubled once: its states are wide


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return released(tmp_path_factory.mktemp("sentences") / "bundle", LOOP, MFCC)


def by_hand(bundle: Bundle, sound: Tensor) -> list[tuple[str, float, float]]:
    """Frames within a ball, then within a box; scores of every state; then the loop."""
    bank = bundle.model
    names: dict[str, str | None] = {label: label for label in LABELS}
    units = units_of_bank(bank, names | {SILENCE: None}, leave=LOOP.leave)  # type: ignore[arg-type]
    frames = [x * min(1.0, RADIUS / float(x.norm())) for x in Mfcc(MFCC)(sound).features[0]]
    scores = bank.emission.log_likelihood(torch.stack(frames).clamp(-8, 8)[None])[0].flatten(1)  # type: ignore
    graph = loop_graph(LABELS, units, SILENCE, LOOP.word_penalty)
    return [(word.word, word.start * 0.02, word.end * 0.02) for word in decode(graph, scores.detach()).words]


def test_a_bundle_hears_by_its_own_graph_and_clips(bundle: Bundle, tmp_path: Path) -> None:
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


def test_frames_count_as_an_encrypted_client_would_send_them(bundle: Bundle) -> None:
    """Brought to the ball, then into the box; the model decides nothing of it as long as its states lie within."""
    transcriber = bundle.transcriber
    assert isinstance(transcriber, SentenceTranscriber)
    assert (transcriber.limit, transcriber.radius) == (8.0, RADIUS)
    far = torch.tensor([[100.0, 0.0, 0.0, 0.0], [50.0, 50.0, 50.0, -50.0]])
    torch.testing.assert_close(transcriber.scores(far), transcriber.scores(far * RADIUS / far.norm(dim=1)[:, None]))
    near = torch.tensor([[1.0, -2.0, 3.0, 0.5]])
    plain = transcriber.bank.emission.log_likelihood(near[None])[0].flatten(1)  # type: ignore[operator]
    torch.testing.assert_close(transcriber.scores(near), plain.detach())


@pytest.mark.parametrize("mfcc", [MFCC, MfccConfig(cepstra=4, deltas=0, cmvn="none")], ids=["normed", "raw"])
def test_a_radius_holds_the_states_in_spreads_of_the_front_end(mfcc: MfccConfig) -> None:
    center, spread = map(torch.from_numpy, usual_range(mfcc))
    emission = GaussianEmission(2, 1, 4, 1, "diagonal", 1e-9, dtype=torch.float64)
    bank = HiddenMarkovModel(left_right(1), emission)
    for far, radius in ((0.5, 5.0), (6.0, 10.0), (11.0, 20.0)):
        mean = torch.stack([center, center + spread * torch.tensor([0.0, far, 0.0, 0.0])]).unsqueeze(1)
        emission.gaussians.set_moments_(mean.view_as(emission.gaussians.mean), spread.square().expand(2, 1, 4))
        assert feature_radius(bank, mfcc) == radius


def test_two_deviations_of_a_state_are_those_of_its_frames() -> None:
    """The squares of frames drawn from a state have the mean and the deviation that the radius leaves room for."""
    drawn, mean = np.random.default_rng(0), np.array([3.0, -1.0, 0.5, 2.0])
    root = drawn.normal(size=(4, 4))
    emission = GaussianEmission(1, 1, 4, 1, "full", 1e-9, dtype=torch.float64)
    bank = HiddenMarkovModel(left_right(1), emission)
    emission.gaussians.set_moments_(torch.from_numpy(mean).view(1, 1, 4), torch.from_numpy(root @ root.T)[None, None])
    squares = ((mean + drawn.normal(size=(200_000, 4)) @ root.T) ** 2).sum(axis=1)
    usual = np.sqrt(squares.mean() + 2 * squares.std())
    assert feature_radius(bank, MFCC) == 5.0 * 2 ** max(0, int(np.ceil(np.log2(usual / 5.0))))
    for size, radius in ((4.9, 5.0), (5.1, 10.0)):
        shrunk = size / usual
        moments = torch.from_numpy(shrunk * mean), torch.from_numpy(shrunk**2 * root @ root.T)
        emission.gaussians.set_moments_(moments[0].view(1, 1, 4), moments[1][None, None])
        assert feature_radius(bank, MFCC) == radius


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
