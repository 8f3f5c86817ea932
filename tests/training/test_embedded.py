"""Words of one's own on a public embedding: learned, rejected, promised, released; and the recipe of such heads."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytorch_lightning as lightning
import torch

from ppspeech.audio import write_audio
from ppspeech.audio.embeddings import EmbeddingConfig, Pooling, WordVectors
from ppspeech.bundle import load_bundle
from ppspeech.data import Corpus, FeatureStore, SpeechDataModule, SyntheticCorpus, Utterance
from ppspeech.errors import AudioError, CorpusError, ModelError, PpspeechError, PrivacyError
from ppspeech.models import EmbeddingHead
from ppspeech.privacy import Relation
from ppspeech.training import (
    Background,
    EmbeddedWords,
    LearnedWords,
    PrivacyHook,
    WordPrivacy,
    built_in_background,
    export_checkpoint,
    fit_head,
    learn_words,
    load_checkpoint,
    own_words,
)
from ppspeech.training.audit import run_with_canaries
from ppspeech.training.own_words import (
    Calibration,
    Stream,
    WordClips,
    alarms_in,
    background_at,
    calibrated,
    evened,
    word_examples,
)
from ppspeech.training.private import objective
from tests.audio.embeddings import needs

pytestmark = needs("speech")

SPOKEN = {"training": 6, "calibrating": 12}
WORDS = ("lights on", "computer")
OTHERS = ("banana", "good morning")
RATE = 16_000
WHOLE = EmbeddingConfig("speech")


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """That of all tests, for what is shared within this file too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PPSPEECH_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
        yield


@pytest.fixture(scope="module")
def said() -> Corpus:
    return SyntheticCorpus(WORDS + OTHERS, speakers=10, takes=1, seed=3).build(progress=False)


@pytest.fixture(scope="module")
def background() -> Background:
    return built_in_background(WORDS, SPOKEN)


def clips(said: Corpus, word: str, *, known: bool) -> list[Path]:
    """Of the first six voices, or of the others."""
    return [each.path for each in said if each.word == word and (each.speaker in said.speakers[::2][:5]) is known]


@pytest.fixture(scope="module")
def ready(said: Corpus) -> dict[str, Any]:
    """Vectors of the words, so that nothing is embedded twice."""
    return {word: word_examples(clips(said, word, known=True), WHOLE) for word in WORDS}


@pytest.fixture(scope="module")
def learned(said: Corpus, background: Background) -> LearnedWords:
    words = {word: clips(said, word, known=True) for word in WORDS}
    return learn_words(words, background, alarms_an_hour=20.0)


def test_a_voice_never_heard_is_understood_and_what_is_no_word_rejected(learned: LearnedWords, said: Corpus) -> None:
    recognizer = learned.recognizer()
    for word in WORDS:
        heard = [each.value for each in recognizer.recognize_all(clips(said, word, known=False))]
        assert heard.count(word) >= 4, heard
        assert set(heard) <= {word, None}
    others = [path for word in OTHERS for known in (True, False) for path in clips(said, word, known=known)]
    assert [each.value for each in recognizer.recognize_all(others)].count(None) >= 0.9 * len(others)
    noise = 0.1 * np.random.default_rng(0).standard_normal(RATE)
    assert recognizer.recognize_all([noise], RATE)[0].value is None
    learned.head.reject.add_(1e3)
    try:  # nothing beats a background that is so sure
        every = recognizer.recognize_all([each.path for each in said][:8])
    finally:
        learned.head.reject.sub_(1e3)
    assert {each.value for each in every} == {None}


def test_a_bundle_hears_the_same_and_says_where_its_threshold_is_from(
    learned: LearnedWords, said: Corpus, tmp_path: Path
) -> None:
    learned.release(tmp_path / "bundle")
    bundle = load_bundle(tmp_path / "bundle")
    paths = [each.path for each in said][::7]
    ours = learned.recognizer().recognize_all(paths)
    for path, heard in zip(paths, ours, strict=True):
        assert bundle.recognize(path).value == heard.value
        assert bundle.recognize(path).margin == pytest.approx(heard.margin, abs=1e-4)
    assert bundle.config.labels == tuple(sorted(WORDS))
    told = {touch.topic: touch for touch in bundle.statement.touches}
    for topic in ("threshold", "normalization"):
        assert told[topic].status == "untouched"
        assert "the built-in voices" in told[topic].note
    assert "not shown by so little" in told["threshold"].note
    assert not bundle.statement.guarantee.proven
    assert bundle.config.settings.alarms_an_hour == 20.0  # type: ignore[attr-defined]


def test_the_threshold_is_set_by_speech_that_did_not_train(
    ready: dict[str, Any], said: Corpus, background: Background
) -> None:
    """A word that is in the calibrating part as other speech is rejected; in the training part it sets nothing."""
    network = WordVectors(WHOLE).embeddings
    strange = Stream.of(clips(said, WORDS[0], known=False)[0], network)
    strict = learn_words(
        ready, Background(background.training, (*background.calibrating, strange), "both"), embedding=WHOLE
    )
    assert strict.calibration is not None
    assert not strict.calibration.alarms
    scores = strict.recognizer().scores(strange.vectors(WHOLE.pooling))
    assert (scores[:, 0] >= scores[:, 1:].amax(1)).all()
    plain = learn_words(ready, background, embedding=WHOLE)
    assert plain.calibration is not None
    assert plain.calibration.reject < strict.calibration.reject - 0.5
    assert strict.calibration.hours == pytest.approx(background.hours + strange.seconds / 3600)
    with pytest.raises(ModelError, match="train and calibrate"):
        Background(background.training, background.training[:1], "twice")


def slow_alarms(margins: list[Any], reject: float) -> int:
    count = 0
    for each in margins:
        since = 10**9
        for margin in each:
            since += 1
            if margin > reject and since >= 25:
                count, since = count + 1, 0
    return count


def test_alarms_are_counted_as_somebody_who_listens_would() -> None:
    generator = np.random.default_rng(5)
    margins = [generator.standard_normal(length) for length in (0, 1, 24, 26, 400, 1_000)]
    for reject in (-1.0, 0.0, 1.5, 3.0, 9.0):
        assert alarms_in(margins, reject) == slow_alarms(margins, reject)


@pytest.mark.parametrize("rate", [2.0, 5.0, 40.0])
def test_no_more_alarms_than_asked_for_and_not_far_fewer(rate: float) -> None:
    generator = np.random.default_rng(6)
    margins = [generator.exponential(size=4_500) for _ in range(20)]  # two hours, every 80 ms
    found = calibrated(margins, 2.0, rate)
    assert not found.extrapolated
    assert found.alarms == alarms_in(margins, found.reject) <= 2 * rate
    assert found.alarms >= 2 * rate - 2
    assert found.shown > found.alarms / 2


def test_other_speech_is_taken_for_each_word_as_often() -> None:
    """Margins whose laws differ in place and in spread: with one threshold for all, one word has all the alarms."""
    generator = np.random.default_rng(8)
    margins = [generator.exponential(size=(4_500, 3)) * [1.0, 1.0, 2.0] + [-4.0, 0.0, 0.0] for _ in range(20)]
    more = evened(margins, 2.0, 30.0)
    assert more.sum() == pytest.approx(0)

    def counted(less: Any) -> list[int]:
        reject = calibrated([(each - less).max(axis=1) for each in margins], 2.0, 30.0).reject
        return [alarms_in([(each - less)[:, word] for each in margins], reject) for word in range(3)]

    assert counted(np.zeros(3))[:2] == [0, 0]
    assert min(counted(more)) >= 10  # of 60, a third each: within three deviations of a count
    assert evened([each[:, :1] for each in margins], 2.0, 30.0).tolist() == [0.0]
    assert evened([each[:100] for each in margins[:1]], 0.01, 1.0).tolist() == [0.0, 0.0, 0.0]  # too little to say


def test_a_head_that_listens_on_has_a_threshold_for_each_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """On made-up vectors: what is often heard is like one of the words, which must be surer; nothing else changes."""
    window = EmbeddingConfig("speech", pooling=Pooling("window", 1, 4))
    clips, background = like_a_word(96)
    found = learn_words(clips, background, embedding=window).head.state_dict()["head.weight"]
    whole = learn_words(clips, background, embedding=WHOLE).head.state_dict()["head.weight"]
    monkeypatch.setattr("ppspeech.training.own_words.thresholds.evened", lambda margins, *_: np.zeros(2))
    plain = learn_words(clips, background, embedding=window).head.state_dict()["head.weight"]
    assert torch.equal(learn_words(clips, background, embedding=WHOLE).head.state_dict()["head.weight"], whole)
    torch.testing.assert_close(found[:, :-1], plain[:, :-1])
    background_too, far, near = (found - plain)[:, -1].tolist()
    assert background_too == 0
    assert near < -0.1
    assert far == pytest.approx(-near, abs=1e-4)


def like_a_word(size: int) -> tuple[dict[str, Any], Background]:
    """Clips of two words, and a background in which something like one of them is said every few seconds."""
    generator = np.random.default_rng(2)
    center = {"near": 2 * generator.standard_normal(size), "far": 2 * generator.standard_normal(size)}
    clips = {word: each + generator.standard_normal((10, size)) for word, each in center.items()}

    def stream(number: int) -> Stream:
        rows = generator.standard_normal((2_000, size))
        for start in range(0, 2_000, 50):
            rows[start : start + 6] += 0.6 * generator.random() * center["near"]
        return Stream(rows, None, 160.0, f"{number}")

    return clips, Background(tuple(map(stream, range(3))), tuple(map(stream, range(3, 6))), "made up")


def test_a_rate_that_was_not_heard_is_extrapolated_and_says_so() -> None:
    """Of exponential margins, ln(45,000 an hour / rate) is the threshold; from ten minutes it is found to a nat or two.

    The estimate's deviation is about ln(1500) / sqrt(30) = 1.3 nats; the seed is fixed, and the bound three of them.
    """
    generator = np.random.default_rng(7)
    margins = [generator.exponential(size=750) for _ in range(10)]
    found = calibrated(margins, 1 / 6, 1.0)
    assert found.extrapolated
    assert found.reject == pytest.approx(np.log(45_000), abs=4.0)
    assert found.reject > max(each.max() for each in margins)
    assert (found.alarms, found.hours) == (0, 1 / 6)
    assert found.shown == pytest.approx(-np.log(0.05) * 6)  # no alarm in ten minutes refutes eighteen an hour, no fewer
    assert "1 an hour is not shown" in str(found)
    assert "3 hours of background would show it" in str(found)
    assert "not shown" not in str(Calibration(1.0, 1.0, 4.0, 3, False))


def test_examples_are_the_front_ends_own_and_changes_are_always_the_same(said: Corpus) -> None:
    path = clips(said, WORDS[0], known=True)[:1]
    first = word_examples(path, WHOLE, changes=("faster", "noisy"))
    assert first.shape == (1, 3, 96)
    np.testing.assert_array_equal(first, word_examples(path, WHOLE, changes=("faster", "noisy")))
    np.testing.assert_allclose(first[0, 0], WordVectors(WHOLE).of(path[0]))
    assert np.abs(first[0, 1] - first[0, 0]).max() > 0.1
    window = EmbeddingConfig("speech", pooling=Pooling("window", 4))
    assert word_examples(path, window).shape == (1, 3, 4 * 96)


def test_ready_vectors_give_what_sounds_give(said: Corpus, ready: dict[str, Any], background: Background) -> None:
    words = {word: clips(said, word, known=True) for word in WORDS}
    ours = learn_words(words, background, embedding=WHOLE, changes=())
    theirs = learn_words(ready, background, embedding=WHOLE)
    torch.testing.assert_close(ours.head.state_dict(), theirs.head.state_dict())


def test_words_alone_are_told_apart_without_a_background(ready: dict[str, Any], said: Corpus) -> None:
    found = learn_words(ready, None, embedding=WHOLE)
    assert found.calibration is None
    assert not found.recognizer().has_background
    paths = clips(said, WORDS[1], known=False)
    assert [each.value for each in found.recognizer().recognize_all(paths)].count(WORDS[1]) == len(paths)
    with pytest.raises(ModelError, match="nothing to reject with"):
        found.recognizer().recognize_all(paths, reject=True)


@pytest.mark.parametrize("head", ["logistic", "margin"])
@pytest.mark.parametrize("unit", ["utterance", "speaker"])
def test_a_promise_is_booked_stated_and_replayed(
    head: Any, unit: Any, ready: dict[str, Any], background: Background, tmp_path: Path
) -> None:
    speakers = {word: [f"person {place // 2}" for place in range(len(ready[word]))] for word in WORDS}
    private = WordPrivacy(4.0, 1e-5, unit)
    found = learn_words(ready, background, embedding=WHOLE, head=head, privacy=private, speakers=speakers)
    assert found.record is not None
    guarantee = found.record.guarantee()
    assert guarantee.relation == Relation(unit, "add_remove")
    assert guarantee.epsilon == pytest.approx(4.0, rel=0.02)
    found.release(tmp_path / "bundle")
    statement = load_bundle(tmp_path / "bundle").statement  # whose events are replayed
    assert statement.guarantee.epsilon == pytest.approx(4.0, rel=0.02)
    told = {touch.topic: touch.status for touch in statement.touches}
    assert told["threshold"] == told["normalization"] == told["counts"] == "untouched"
    assert told["tuning"] == told["labels"] == "not_covered"


@pytest.mark.parametrize("head", ["logistic", "margin"])
def test_no_clip_reaches_further_than_the_noise_is_for(head: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """However loud it is: what the private objective sees of it is within the radius that noise was planned for."""
    seen: list[Any] = []
    minimize = objective.minimize
    monkeypatch.setattr(objective, "minimize", lambda given, **terms: seen.append(given) or minimize(given, **terms))
    model, hook = EmbeddingHead(2, 4, head, radius=1.0), WordPrivacy(1.0).hook(0.1)
    vectors = torch.tensor([[3e6, 0.0, 0.0, 0.0], [0.0, 0.1, 0.0, 0.0], [-5.0, 5.0, 5.0, 1.0]])
    y = torch.tensor([0, 1, 1])
    done = fit_head(model, vectors, y, quadratic=0.1, privacy=hook, units=torch.arange(3))
    assert done is not None
    assert seen
    for given in seen:
        assert given.features.norm(dim=1).max() <= done.plan.radius  # type: ignore[attr-defined]
    with pytest.raises(PrivacyError, match="counts once"):
        fit_head(model, vectors, y, quadratic=0.1, privacy=hook, weights=torch.ones(3))
    with pytest.raises(PrivacyError, match="up to 2 rows"):
        fit_head(model, vectors, y, quadratic=0.1, privacy=hook, units=torch.tensor([0, 0, 1]))


@pytest.mark.parametrize("unit", ["utterance", "speaker"])
def test_somebody_with_many_clips_counts_once(
    unit: Any, ready: dict[str, Any], background: Background, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An utterance is one row, whatever its changes; a speaker's rows weigh 1 in all, whatever their number."""
    seen: list[Any] = []
    minimize = objective.minimize
    monkeypatch.setattr(objective, "minimize", lambda given, **terms: seen.append(given) or minimize(given, **terms))
    changed = {word: np.repeat(ready[word], 3, axis=1) for word in WORDS}
    speakers = {word: ["ann"] * len(changed[word]) for word in WORDS}
    speakers["computer"][0] = "bob"
    learn_words(changed, background, embedding=WHOLE, privacy=WordPrivacy(4.0, unit=unit), speakers=speakers)
    (given,) = seen
    public = len(background.trained_on(WHOLE.pooling, 1_000))
    own = slice(public, None)
    if unit == "utterance":
        assert given.weights is None
        assert len(given.features[own]) == sum(map(len, ready.values()))
    else:
        assert given.weights[own].sum() == pytest.approx(2.0)  # ann and bob
    assert given.weights is None or (given.weights[:public] == 1).all()


def test_a_clip_that_is_in_the_background_is_refused(said: Corpus, background: Background) -> None:
    """Private speech that trained as if it were public, no guarantee would cover."""
    words = {word: clips(said, word, known=True) for word in WORDS}
    network = WordVectors(WHOLE).embeddings
    for privacy in (None, WordPrivacy(4.0)):
        for place in ("training", "calibrating"):
            parts = {"training": background.training, "calibrating": background.calibrating}
            parts[place] = (*parts[place], Stream.of(words["computer"][1], network))
            with pytest.raises(ModelError, match="in the background too"):
                learn_words(words, Background(**parts, says="our own"), privacy=privacy)


def bad_inputs(ready: dict[str, Any]) -> list[tuple[dict[str, Any], type[PpspeechError], str]]:
    one = {"computer": ready["computer"]}
    return [
        ({"words": {}}, ModelError, "no words"),
        ({"words": one, "background": None}, ModelError, "1 words and no background"),
        ({"words": {"computer": []}}, ModelError, "no clip of 'computer'"),
        ({"words": {"computer": ready["computer"][:, 0, :5]}}, ModelError, "finite numbers"),
        ({"words": {"computer": np.full((2, 96), np.nan)}}, ModelError, "finite numbers"),
        ({"head": "cubic"}, ModelError, "heads are logistic, margin, got 'cubic'"),
        ({"alarms_an_hour": 0.0}, ModelError, "must be > 0"),
        ({"words": {"a": ["/nowhere.wav"]}}, AudioError, "/nowhere.wav"),
        ({"words": {"a": [np.zeros(RATE)]}, "rate": RATE}, AudioError, "silent"),
        ({"words": {"a": [np.ones(99)]}, "rate": RATE}, AudioError, "0.05 to 30 s"),
        ({"words": {"a": [np.ones(RATE)]}, "rate": RATE, "changes": ("louder",)}, AudioError, "faster, slower, noisy"),
        ({"privacy": WordPrivacy(1.0, unit="speaker")}, PrivacyError, "who speaks in each clip"),
        ({"privacy": WordPrivacy(1.0, unit="speaker"), "speakers": {"computer": ["a"]}}, PrivacyError, "who speaks"),
    ]


def test_what_cannot_be_learned_is_refused_with_what_to_do(ready: dict[str, Any], background: Background) -> None:
    for given, error, words in bad_inputs(ready):
        with pytest.raises(error, match=words):
            learn_words(**({"words": ready, "background": background, "embedding": WHOLE} | given))
    for values, words in (((0.0,), "epsilon"), ((1.0, 2.0), "delta"), ((1.0, 1e-5, "frame"), "one utterance or one")):
        with pytest.raises(PrivacyError, match=words):
            WordPrivacy(*values)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="two at the least"):
        Background(background.training, (), "none")
    short = Background(background.training, (background.calibrating[0],), "a word")
    with pytest.raises(ModelError, match="at least 30 are needed"):
        learn_words(ready, short, embedding=WHOLE)


def test_a_background_is_heard_once_and_again_where_it_was_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PPSPEECH_CACHE", str(tmp_path))
    two = {"training": 1, "calibrating": 1}
    first = built_in_background((), two)
    for damage in (b"", b"PK\x03\x04 nonsense"):
        for file in (tmp_path / "backgrounds").iterdir():
            file.write_bytes(damage)
        again = built_in_background((), two)
        assert again.digests == first.digests
    monkeypatch.setattr(own_words.built_in, "_spoken", lambda *_: pytest.fail("spoken again"))
    kept = built_in_background((), two)
    assert kept.digests == first.digests
    np.testing.assert_allclose(kept.training[0].embeddings, first.training[0].embeddings, atol=1e-4)
    with pytest.raises(ModelError, match="two at the least"):  # all that was said is one of the words
        built_in_background(own_words.built_in._texts("training", 1), two)


def test_folders_say_words_and_speakers(said: Corpus, tmp_path: Path) -> None:
    sound = said[0].waveform(RATE)
    for name in ("go/a.wav", "go/b.flac", "stop/ann/a.wav", "stop/bob/b.wav", "stop/notes.txt", ".git/x.wav"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch() if name.endswith("txt") else write_audio(tmp_path / name, sound, RATE)
    found = WordClips()
    found.add_folder(tmp_path)
    assert {word: len(paths) for word, paths in found.clips.items()} == {"go": 2, "stop": 2}
    assert found.speakers == {"go": [None, None], "stop": ["ann", "bob"]}
    assert found.people is None
    with pytest.raises(CorpusError, match="train and calibrate"):  # all are one sound
        background_at(tmp_path / "stop")
    (tmp_path / "empty").mkdir()
    for folder, words in ((tmp_path, "holds no sound file"), (tmp_path / "empty", "holds no folder")):
        with pytest.raises(CorpusError, match=words):
            WordClips().add_folder(folder)
    for folder, words in ((tmp_path / "no", "no folder"), (tmp_path / "empty", "0 recordings")):
        with pytest.raises(CorpusError, match=words):
            background_at(folder)


Make = Callable[..., lightning.Trainer]


def test_the_recipe_learns_releases_and_recognizes(voices: SpeechDataModule, trainer: Make, tmp_path: Path) -> None:
    module = EmbeddedWords()
    fit = trainer(max_epochs=1, default_root_dir=tmp_path)
    fit.fit(module, datamodule=voices)
    assert fit.test(module, datamodule=voices, verbose=False)[0]["test_accuracy"] > 0.9
    train = voices.parts["train"]
    assert train[0]["features"].shape == (1, 4 * 96)
    assert train.features.store.config == module.embedding  # type: ignore[attr-defined]
    assert isinstance(train.features.store, FeatureStore)  # type: ignore[attr-defined]
    fit.save_checkpoint(tmp_path / "a.ckpt")
    loaded = load_checkpoint(tmp_path / "a.ckpt")
    assert loaded.config.embedding == module.embedding
    bundle = export_checkpoint(tmp_path / "a.ckpt", tmp_path / "bundle", not_private=True)
    clip: Utterance = voices.parts["test"].corpus[0]
    assert bundle.recognize(clip.path).value == clip.word
    resumed = EmbeddedWords.load_from_checkpoint(tmp_path / "a.ckpt", weights_only=True)
    torch.testing.assert_close(resumed.state_dict(), module.state_dict())


@pytest.mark.parametrize("unit", ["utterance", "speaker"])
def test_the_privacy_block_works_unchanged(unit: Any, voices: SpeechDataModule, trainer: Make, tmp_path: Path) -> None:
    module, hook = EmbeddedWords(head="margin" if unit == "speaker" else "logistic"), PrivacyHook(3.0, unit=unit)
    fit = trainer(max_epochs=1, callbacks=[hook])
    fit.fit(module, datamodule=voices)
    assert hook.guarantee().epsilon == pytest.approx(3.0, rel=0.02)
    assert hook.guarantee().relation.unit == unit
    fit.save_checkpoint(tmp_path / "a.ckpt")
    bundle = export_checkpoint(tmp_path / "a.ckpt", tmp_path / "bundle")
    assert bundle.statement.guarantee.epsilon == pytest.approx(3.0, rel=0.02)
    told = {touch.topic: touch.status for touch in bundle.statement.touches}
    assert told["normalization"] == told["threshold"] == told["initialization"] == "untouched"
    with pytest.raises(PrivacyError, match="cannot hide that a speaker was there"):
        trainer(max_epochs=1, callbacks=[PrivacyHook(3.0, unit="speaker")]).fit(
            EmbeddedWords(label="speaker"), datamodule=voices
        )


def test_the_scale_must_not_have_heard_who_is_protected(trainer: Make) -> None:
    own = SpeechDataModule("synthetic", {"words": ["zero", "two"], "speakers": 4, "takes": 1}, test=0.25)  # seed 0
    with pytest.raises(CorpusError, match="in the public corpus synthetic too"):
        trainer(max_epochs=1, callbacks=[PrivacyHook(3.0)]).fit(EmbeddedWords(), datamodule=own)


def test_a_recipe_on_an_embedding_leaves_no_choice_of_mfccs(voices: SpeechDataModule, trainer: Make) -> None:
    voices.mfcc = {"deltas": 0}
    with pytest.raises(CorpusError, match=r"leave out data\.mfcc"):
        trainer(max_epochs=1).fit(EmbeddedWords(), datamodule=voices)


@pytest.mark.parametrize("head", ["logistic", "margin"])
def test_canaries_go_through_the_recipe(head: Any) -> None:
    module = EmbeddedWords(head=head, parts=1)
    module.build_(("one", "two"), module.mfcc)
    found = run_with_canaries(module, PrivacyHook(1.0), 1, canaries=20)
    assert len(found.black) == 20
    assert np.isfinite(found.black).all()
    assert found.guarantee.epsilon == pytest.approx(1.0, rel=0.02)
    assert all(report.verdict != "violated" for report in found.reports(head))
