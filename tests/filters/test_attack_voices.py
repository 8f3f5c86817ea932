"""A public voice embedding as an attacker: of sound, and of cepstra that a known filter lets through."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from ppspeech.audio import Frames, MfccConfig
from ppspeech.audio.embeddings import VoiceEmbedding, weights_of
from ppspeech.data import Corpus, FeatureStore, SyntheticCorpus, numbered
from ppspeech.errors import MissingPackageError, ModelError
from ppspeech.filters import LinearFilter
from ppspeech.filters.attack import KnownFilter, attack, attacker_names, heard, heard_in_cepstra, heard_in_sound
from ppspeech.filters.attack.attackers import VOICE_ATTACKERS, voices

CEPSTRA = MfccConfig(cmvn="none", deltas=0)
PEOPLE = 8
Parts = tuple[Frames, Tensor, Frames, Tensor]

try:
    weights_of("voice")
except MissingPackageError as error:
    pytest.skip(str(error), allow_module_level=True)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    """48 clips of eight built-in voices: three words, twice."""
    return SyntheticCorpus(("zero", "three", "seven"), speakers=PEOPLE, takes=2).build()


@pytest.fixture(scope="module")
def sounds(corpus: Corpus) -> Parts:
    return parts(corpus, heard_in_sound([u.waveform(16_000) for u in corpus]))


@pytest.fixture(scope="module")
def cepstra(corpus: Corpus) -> Parts:
    return parts(corpus, FeatureStore(CEPSTRA).load(corpus.utterances))


def padded(clips: list[Tensor]) -> Frames:
    return Frames(pad_sequence(clips, batch_first=True), torch.tensor([len(each) for each in clips]))


def parts(corpus: Corpus, clips: list[Tensor]) -> Parts:
    """The first takes to learn from, the others to name."""
    whose, found = numbered([u.speaker for u in corpus])[1], []
    for take in (0, 1):
        rows = [place for place, u in enumerate(corpus) if u.take == take]
        found += [padded([clips[place] for place in rows]), whose[rows]]
    return tuple(found)  # type: ignore[return-value]


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(voices, "EPOCHS", 1)


@pytest.mark.parametrize("name", VOICE_ATTACKERS)
def test_people_are_named_by_their_sound(name: str, cepstra: Parts, sounds: Parts) -> None:
    report = attack(*cepstra, [name], sounds=(sounds[0], sounds[2]), clips=(1, 3))
    assert report.worst.accuracy > 0.7  # 1/8 is chance
    assert report.worst_at(3).accuracy > 0.7


@pytest.mark.parametrize("name", VOICE_ATTACKERS)
def test_nobody_is_named_by_noise(name: str) -> None:
    # 48 clips at chance 1/8: 0.32 is four standard deviations up
    generator = torch.Generator().manual_seed(0)
    clips = heard_in_sound([0.1 * torch.randn(8_000, generator=generator) for _ in range(96)])
    labels = torch.arange(48) % PEOPLE
    learned, asked = padded(clips[:48]), padded(clips[48:])
    report = attack(learned, labels, asked, labels, [name], sounds=(learned, asked), clips=(1,))
    assert report.worst.accuracy < 0.32


def test_tuning_changes_a_copy_and_fits_the_people(sounds: Parts) -> None:
    before = {name: each.clone() for name, each in heard.embedding().state_dict().items()}
    plain, tuned = (VOICE_ATTACKERS[name](sounds[0], sounds[1], PEOPLE, 0) for name in ("voice", "voice_tuned"))
    assert all(bool((each == before[name]).all()) for name, each in heard.embedding().state_dict().items())
    rows = torch.arange(len(sounds[1]))
    scores = [score(sounds[0])[rows, sounds[1]].mean() for score in (plain, tuned)]
    assert scores[1] > scores[0]


def test_people_without_speech_are_never_named(sounds: Parts) -> None:
    for name in ("voice", "voice_logistic"):
        scores = VOICE_ATTACKERS[name](sounds[0], sounds[1], PEOPLE + 2, 0)(sounds[2])
        assert scores.shape == (len(sounds[3]), PEOPLE + 2)
        assert int(scores.argmax(-1).max()) < PEOPLE


def test_power_is_heard_as_the_sound_that_it_is_of(corpus: Corpus) -> None:
    embedding = VoiceEmbedding()
    sound = 0.01 * corpus.utterances[0].waveform(16_000)
    pieces = nn.functional.pad(sound, (200, 200)).unfold(0, 400, 160) * torch.hann_window(400)
    made = embedding.of_power(torch.fft.rfft(pieces).abs().square())
    with torch.no_grad():
        voice, again = embedding(sound)[0], embedding.voices(padded([made]))[0]
    assert float(voice @ again) > 0.98


@pytest.mark.parametrize(
    "config",
    [CEPSTRA, MfccConfig(), MfccConfig(sample_rate=8_000, mel_filters=23, cmvn="none", hop_s=0.02)],
    ids=["cepstra", "normalized", "8 kHz every 20 ms"],
)
def test_people_are_named_by_cepstra(config: MfccConfig, corpus: Corpus) -> None:
    clips = parts(corpus, FeatureStore(config).load(corpus.utterances))
    report = attack(*clips, ["voice"], known=KnownFilter(nn.Identity(), mfcc=config), clips=(1, 3))
    assert report.worst_at(3).accuracy > 0.6  # 1/8 is chance; the pitch is gone


def test_a_known_filter_is_undone_and_then_heard(corpus: Corpus, cepstra: Parts) -> None:
    module = nn.Sequential(LinearFilter(13, 13), nn.Tanh())
    with torch.no_grad():
        module[0].weight.copy_(
            0.02 * torch.linalg.qr(torch.randn(13, 13, generator=torch.Generator().manual_seed(1))).Q
        )
        train, test = (
            Frames(module(part.features.double().float()), part.lengths) for part in (cepstra[0], cepstra[2])
        )
    known = KnownFilter(module, mfcc=CEPSTRA)
    report = attack(train, cepstra[1], test, cepstra[3], ["voice", "inverted.voice"], known=known, clips=(3,))
    assert report["inverted.voice", 3].accuracy > 0.6
    assert report["inverted.voice", 3].accuracy > report["voice", 3].accuracy


def test_silence_has_no_voice_and_stops_nobody() -> None:
    assert not heard_in_sound([torch.zeros(16_000)])[0].any()
    assert not heard_in_cepstra(Frames(torch.zeros(1, 5, 13), torch.tensor([5])), CEPSTRA).features.any()


def test_why_nothing_is_heard_is_said(cepstra: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not set(VOICE_ATTACKERS) & set(attacker_names(speech=True))
    for known, words in (
        (None, "hears sound, or frames whose front end is known"),
        (KnownFilter(nn.Identity(), mfcc=MfccConfig()), "hears cepstra, 39 numbers a frame of this front end, got 13"),
    ):
        with pytest.raises(ModelError, match=words):
            attack(*cepstra, ["voice"], known=known)
    with pytest.raises(ModelError, match="must be as many"):
        attack(*cepstra, ["voice"], sounds=(cepstra[0], Frames(cepstra[2].features[:3], cepstra[2].lengths[:3])))

    def missing(name: str) -> None:
        raise MissingPackageError(f"the {name} embedding", "Resemblyzer", "pip install Resemblyzer")

    monkeypatch.setattr(heard, "weights_of", missing)
    report = attack(*cepstra, minutes=0, clips=(1,), known=KnownFilter(nn.Identity(), mfcc=CEPSTRA))
    assert "voice: the voice embedding needs Resemblyzer, which is not installed: pip install Resemblyzer" in (
        report.left_out
    )
