"""Voices by a public network: bundles of a cohort alone, and what is decided among its people."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from ppspeech.audio import Sound, write_audio
from ppspeech.audio.embeddings import EmbeddingConfig, VoiceEmbedding
from ppspeech.bundle import (
    Bundle,
    BundleConfig,
    CohortSettings,
    Verifier,
    VoiceEmbeddingSettings,
    add_cohort_,
    load_bundle,
)
from ppspeech.errors import BundleError, MissingPackageError, ModelError, PpspeechError
from ppspeech.models import EmbeddedVoices, Impostors
from ppspeech.training import Trained, learn_voices, release
from ppspeech.training.voices import _talkative
from tests.service.voices import RATE, voice
from tests.training.test_release import record

PEOPLE, TAKES = 6, 3


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Clips of a cohort, one folder a person."""
    try:
        VoiceEmbedding()
    except MissingPackageError as missing:
        pytest.skip(str(missing))
    folder = tmp_path_factory.mktemp("voices") / "others"
    for who in range(PEOPLE):
        (folder / f"secret{who}").mkdir(parents=True)
        for take in range(TAKES):
            write_audio(folder / f"secret{who}" / f"{take}.wav", voice(10 * who + take + 20, 0.6), RATE)
    return folder


@pytest.fixture(scope="module")
def bundle(others: Path) -> Bundle:
    return learn_voices(others, others.parent / "bundle")


def test_a_bundle_says_whose_voices_it_holds(others: Path, bundle: Bundle, tmp_path: Path) -> None:
    loaded = load_bundle(others.parent / "bundle")
    assert loaded.config == bundle.config
    assert loaded.config.type == "voice_embedding"
    assert loaded.statement.guarantee.kind == "none"
    said = {touch.topic: touch for touch in loaded.statement.touches}
    assert said["threshold"].status == said["counts"].status == "not_covered"
    assert f"the voices of {PEOPLE} people of others are in the bundle" in said["threshold"].note
    every = b"".join(path.read_bytes() for path in (others.parent / "bundle").iterdir())
    assert b"secret" not in every  # their voices, and not their names
    public = {touch.topic: touch for touch in learn_voices(others, tmp_path / "p", public=True).statement.touches}
    assert public["threshold"].status == public["counts"].status == "untouched"
    assert "public speech" in public["threshold"].note
    impostors = loaded.verifier.impostors
    assert impostors is not None
    assert (impostors.people, impostors.directions.shape[1:]) == (PEOPLE, (PEOPLE * TAKES, 256))
    again = loaded.verifier.among([sorted(each.iterdir()) for each in sorted(others.iterdir())]).impostors
    assert again is not None
    assert torch.allclose(again.directions, impostors.directions, atol=1e-5)


def test_people_who_are_promised_something_do_not_leave_as_a_cohort(bundle: Bundle, tmp_path: Path) -> None:
    """A cohort that is not public is refused where a guarantee is stated for its people."""
    with pytest.raises(BundleError, match="whose voices would leave"):
        release(Trained(bundle.model, bundle.config), tmp_path / "promised", record=record("speaker"))
    assert not (tmp_path / "promised").exists()


def test_without_a_cohort_nothing_is_decided_but_by_a_threshold_of_ones_own(tmp_path: Path, others: Path) -> None:
    alone = learn_voices(None, tmp_path / "alone")
    assert alone.verifier.impostors is None
    assert "cohort of your own" in alone.config.task
    mine, clip = [voice(0, 0.6)], [voice(3, 0.6)]
    with pytest.raises(ModelError, match="--cohort"):
        alone.verify(mine, clip, RATE)
    found = alone.verify(mine, clip, RATE, threshold=-1.0)
    network = VoiceEmbedding()
    with torch.no_grad():
        score = float(network(mine[0]) @ network(clip[0]).mT)
    assert (found.value, found.score) == (True, pytest.approx(score, abs=1e-5))
    assert not alone.verify(mine, clip, RATE, threshold=found.score + 1e-3).value
    brought = alone.verifier.among([sorted(each.iterdir()) for each in sorted(others.iterdir())])
    assert brought.verify(mine, clip, RATE).false_accept == 0.01
    with pytest.raises(PpspeechError, match="there already"):
        learn_voices(None, tmp_path / "alone")


def test_claims_are_decided_by_the_rate(bundle: Bundle) -> None:
    found = [bundle.verify([voice(0, 0.6)], [voice(3, 0.6)], RATE, false_accept=rate) for rate in (0.5, 0.1, 0.01)]
    assert found[0].threshold < found[1].threshold < found[2].threshold
    verifier = replace(bundle.verifier, unusual=1e-9)  # so that thresholds alone decide
    for rate in (0.5, 0.01):
        each = verifier.verify([voice(0, 0.6)], [voice(3, 0.6)], RATE, false_accept=rate)
        assert each.value == (each.score >= each.threshold)
    people = {name: [voice(seed, 0.6)] for name, seed in (("ann", 0), ("bob", 1), ("cid", 2))}
    named = bundle.identify([voice(3, 0.6)], people, RATE)
    assert named.thresholds["ann"] > found[2].threshold  # each name has a part of the rate


def test_what_no_voice_of_the_cohort_is_near_is_not_accepted(bundle: Bundle) -> None:
    tone = 0.5 * torch.sin(2 * torch.pi * 440 * torch.arange(RATE) / RATE)
    found = bundle.verify([tone], [tone], RATE, false_accept=0.5)
    assert found.score > 0.9  # all but the whole of the trial, which is longer than what the cohort said
    assert not found.value
    assert [each.split(" is unlike")[0] for each in found.unlike] == [
        "the trial", "what the claimed person was enrolled with",
    ]  # fmt: skip
    assert "cosine with the nearest voices" in found.unlike[0]
    assert bundle.verify([tone], [tone], RATE, threshold=0.9).value  # at one's own risk, and said
    assert not bundle.verify([voice(20, 0.6)], [voice(21, 0.6)], RATE, false_accept=0.5).unlike  # of the cohort itself


def test_few_people_who_said_little_do_not_make_thresholds_for_little_speech() -> None:
    people = [[torch.zeros(frames, 40)] for frames in [300] * 18 + [40, 100, 30]]
    assert [len(clips[0]) for clips in _talkative(people)] == [300] * 18 + [100]  # two of 21, the least of them
    assert [len(clips[0]) for clips in _talkative(people[13:])] == [300] * 5 + [40, 100, 30]  # of eight none


def test_ratios_need_a_background_model(bundle: Bundle) -> None:
    with pytest.raises(ModelError, match="scoring=linear or hardened"):
        bundle.verifier.means(bundle.verifier.features([voice(0, 0.6)], RATE))


def test_the_network_must_be_one_of_voices() -> None:
    config = BundleConfig(VoiceEmbeddingSettings(), (), None, embedding=EmbeddingConfig("speech"))
    with pytest.raises(BundleError, match="voice embeddings"):
        Verifier.of(config.build(), config)
    with pytest.raises(BundleError, match="no labels"):
        BundleConfig(VoiceEmbeddingSettings(), ("ann",), None, embedding=EmbeddingConfig("voice")).build()
    with pytest.raises(BundleError, match="cannot have the other"):
        BundleConfig(VoiceEmbeddingSettings(), (), None)


@dataclass(frozen=True)
class Plain:
    """Voices whose directions are their first frames: a third kind, which touches nothing else."""

    size: int = 2
    unit: str = "cosine"
    amounts: tuple[int, ...] = (30, 90)
    stretched: bool = False

    def features(self, sounds: Sequence[Sound], rate: int | None = None) -> list[Tensor]:
        return [torch.as_tensor(np.asarray(sound)) for sound in sounds]

    def directions(self, x: Tensor) -> Tensor:
        return torch.nn.functional.normalize(x.mean(1), dim=-1)

    def likelihoods(self, x: Tensor) -> None:
        return None


def test_whatever_hears_voices_can_be_decided_by() -> None:
    generator = torch.Generator().manual_seed(0)
    angles = torch.rand(8, generator=generator) * 0.5

    def said(angle: float) -> Tensor:
        return torch.tensor([np.cos(angle), np.sin(angle)]).float() + 0.05 * torch.randn(40, 2, generator=generator)

    people = [[said(float(angle)) for _ in range(4)] for angle in angles]
    verifier = Verifier(Plain(), Impostors.of(Plain(), people))
    assert verifier.impostors is not None
    tried, owners = verifier.impostors.directions[0], verifier.impostors.owners  # near to others, not to oneself
    for usual, mine, who in zip(verifier.impostors.usual[0], tried, owners, strict=True):
        others = sorted(float(mine @ other) for other, whose in zip(tried, owners, strict=True) if whose != who)
        assert float(usual) == pytest.approx(np.mean(others[-10:]), abs=1e-5)
    far = np.asarray(said(2.5))
    assert verifier.verify([far], [far]).unlike  # nobody of the cohort is near
    like = np.asarray(said(0.2))
    assert not verifier.verify([like], [like]).unlike
    model = torch.nn.Module()
    add_cohort_(model, verifier.impostors)
    frames, owners = verifier.impostors.frames, verifier.impostors.owners
    settings = CohortSettings(source="public", voices="a table", frames=frames, owners=owners)
    assert torch.equal(settings.impostors(model).usual, verifier.impostors.usual)


def test_a_network_is_named_by_its_weights(bundle: Bundle) -> None:
    assert isinstance(bundle.verifier.voices, EmbeddedVoices)
    plain = bundle.config.to_json()
    plain["embedding"] = {**plain["embedding"], "weights": "0" * 64}
    with pytest.raises(PpspeechError, match="weights 000000000000"):
        BundleConfig.from_json(plain)
