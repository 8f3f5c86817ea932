"""Attackers on several clips, and one model a word: they find what is there by the margin they should, and no more."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.covariance import ledoit_wolf as reference_shrinkage
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from torch import Tensor

from ppspeech.errors import ModelError
from ppspeech.filters.attack import AttackReport, attack, attacker_names, plot_clips
from ppspeech.filters.attack.attack import ORDER, draw_sets
from ppspeech.filters.attack.attackers import (
    CLIP_ATTACKERS,
    SET_ATTACKERS,
    SPEECH_ATTACKERS,
    VECTOR_ATTACKERS,
    VOICE_ATTACKERS,
    Clips,
)
from ppspeech.filters.attack.attackers.gaussians import ledoit_wolf
from ppspeech.filters.attack.report import by_person, true_positives
from tests.filters.crowds import crowd

PEOPLE = 10
BOTH = {"person": 0.7, "manner": 0.7}
LEAST = {
    "plda": (0.44, 0.93), "lda": (0.42, 0.93), "logistic": (0.30, 0.80), "mean": (0, 0.92), "spread": (0.38, 0.85),
    "parzen": (0.40, 0.90), "codes": (0.28, 0.65), "lda_heard": (0.42, 0.93), "neighbors": (0.36, 0.80),
    "word_logistic": (0.42, 0.91), "forest": (0.41, 0.91), "word_svm": (0.40, 0.84), "networks": (0.40, 0.90),
    "deep_sets": (0, 0.78), "svm": (0.41, 0.83), "mlp": (0.31, 0.84), "trees": (0.36, 0.83),
}  # fmt: skip
"""What each attacker must name of unfiltered clips, from one and from ten; guessing names 0.1."""

SLOW = ("deep_sets", "networks", "forest")  # to train; they see what `mean`, `word_svm` and `trees` see


def attacked(name: str, clips: tuple[int, ...] = (1, 10), **differences: float) -> AttackReport:
    x, whose, said = crowd(**differences)  # type: ignore[arg-type]
    asked, owners, heard = crowd(**differences, seed=1, takes=8)  # type: ignore[arg-type]
    return attack(x, whose, asked, owners, [name], words=(said, heard), clips=clips)


def test_the_order_of_attackers_leaves_nobody_out() -> None:
    every = {*VECTOR_ATTACKERS, *CLIP_ATTACKERS, *SET_ATTACKERS, *SPEECH_ATTACKERS, *VOICE_ATTACKERS}
    assert sorted(ORDER) == sorted(every)
    assert set(LEAST) == set(attacker_names(speech=False))


@pytest.mark.parametrize("name", LEAST)
def test_every_attacker_names_unfiltered_people_as_often_as_it_should(name: str) -> None:
    report = attacked(name, **BOTH)
    one, ten = LEAST[name]
    if one:
        assert report[name].accuracy >= one
        assert report[name].low <= report[name].accuracy <= report[name].high
    assert report[name, 10].accuracy >= ten
    assert report[name, 10].eer < 0.2


@pytest.mark.parametrize("name", [name for name in LEAST if name not in SLOW])
def test_no_attacker_names_people_who_do_not_differ(name: str) -> None:
    # 240 clips at chance 0.1: 0.2 is five deviations up. Ten clips are 240 / 10 independent sets: 0.45 is above five.
    report = attacked(name)
    if name not in SET_ATTACKERS:
        assert report[name].accuracy < 0.2
        assert report[name].at_permille < 0.1
    assert report[name, 10].accuracy < 0.45


def test_who_is_hidden_in_the_mean_is_named_by_one_model_a_word() -> None:
    """The manners of each person cancel over words: a linear attacker that does not know words finds nothing."""
    assert attacked("logistic", manner=0.9)["logistic", 10].accuracy < 0.3
    for name in ("plda", "lda", "lda_heard", "mean", "word_logistic", "parzen"):
        assert attacked(name, (10,), manner=0.9)[name, 10].accuracy > 0.7


def test_few_clips_of_a_word_are_believed_less() -> None:
    """With two clips of each word, a person's other words say more about a center than its own."""
    x, whose, said = crowd(person=0.7, takes=2)
    asked, owners, heard = crowd(person=0.7, seed=1, takes=8)
    report = attack(x, whose, asked, owners, ["lda", "plda"], words=(said, heard), clips=(1,))
    assert report["plda"].accuracy > report["lda"].accuracy + 0.05


@pytest.mark.parametrize("name", ["plda", "lda", "parzen", "codes", "word_logistic", "lda_heard"])
def test_words_that_nobody_or_only_some_said_are_no_obstacle(name: str) -> None:
    x, whose, said = crowd(**BOTH)
    asked, owners, heard = crowd(**BOTH, seed=1, takes=8)
    there = (said < 2) & ((whose > 3) | (said == 0))
    report = attack(x[there], whose[there], asked, owners, [name], words=(said[there], heard), clips=(1,))
    assert report[name].accuracy > 0.14


@pytest.mark.parametrize(
    "name", ["plda", "spread", "parzen", "codes", "lda_heard", "word_logistic", "word_svm", "mean"]
)
def test_someone_without_training_clips_is_never_named(name: str) -> None:
    x, whose, said = crowd(**BOTH, people=5, takes=6)
    seen = Clips(x[whose != 2], said[whose != 2])
    if name in SET_ATTACKERS:
        scores = SET_ATTACKERS[name](seen, whose[whose != 2], 5, 0, 2)(Clips(x.view(-1, 2, 6), said.view(-1, 2)))
    else:
        scores = CLIP_ATTACKERS[name](seen, whose[whose != 2], 5, 0)(Clips(x, said))
    assert scores.shape[1] == 5
    assert scores.isfinite().all()
    assert not (scores.argmax(-1) == 2).any()


def test_many_people_who_say_a_word_once_or_twice_are_attacked_without_a_warning() -> None:
    people = torch.arange(30)
    whose = torch.cat([people, people, people[:10]])  # learned from one half of the clips, two each of 10 and one of 20
    x = torch.randn(30, 6, generator=torch.Generator().manual_seed(0))[whose]
    clips = Clips(x, torch.zeros_like(whose))
    assert (CLIP_ATTACKERS["word_logistic"](clips, whose, 30, 0)(clips).argmax(-1) == whose).all()


def test_filters_of_a_few_codes_are_attacked_by_counting() -> None:
    """Two codes that mean the opposite in the other word: over both words everyone has them equally often."""
    generator = torch.Generator().manual_seed(0)
    book = torch.randn(2, 3, generator=generator)
    whose, said = torch.arange(1200) % 4, torch.arange(1200) // 4 % 2
    odd = torch.rand(1200, generator=generator) < torch.tensor([0.05, 0.3, 0.6, 0.9])[whose]
    x = book[(odd ^ (said == 1)).long()]
    report = attack(x[:600], whose[:600], x[600:], whose[600:], ["codes", "plda"], words=(said[:600], said[600:]))
    # The best of all names everyone from a share of odd clips; from one clip (0.95 + 0.9) / 4 = 0.46.
    assert report["codes"].accuracy == pytest.approx(0.46, abs=0.1)
    assert report["codes", 30].accuracy > 0.85


def test_shrinkage_is_scikit_learns() -> None:
    x = torch.randn(30, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) @ torch.randn(8, 8).double()
    covariance, weight = ledoit_wolf(x)
    reference, wanted = reference_shrinkage(x.numpy(), assume_centered=True)
    assert weight == pytest.approx(wanted)
    np.testing.assert_allclose(covariance.numpy(), reference)


def test_linear_discriminants_of_one_word_agree_with_scikit_learns() -> None:
    x, whose, _ = crowd(**BOTH, words=1, takes=30)
    asked, owners, _ = crowd(**BOTH, words=1, takes=30, seed=1)
    reference = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto").fit(x.numpy(), whose.numpy())
    nothing = torch.zeros(len(x), dtype=torch.long)
    named = CLIP_ATTACKERS["lda"](Clips(x, nothing), whose, PEOPLE, 0)(Clips(asked, nothing)).argmax(-1)
    assert (named.numpy() == reference.predict(asked.numpy())).mean() > 0.9
    assert float((named == owners).double().mean()) > 0.3


@given(st.integers(1, 12), st.integers(0, 5))
def test_sets_are_of_one_person_and_hold_no_clip_twice(size: int, seed: int) -> None:
    labels = torch.tensor([0] * 12 + [1] * 13 + [2] * 5 + [-1] * 12)
    sets = draw_sets(labels, size, seed)
    owners = labels[sets]
    assert (owners == owners[:, :1]).all()
    assert all(len(set(row)) == size for row in sets.tolist())
    if size > 1:
        counts = torch.bincount(owners[:, 0] + 1, minlength=4)
        assert (counts[:3] >= 20).all()
        assert bool(counts[3]) == (size <= 5)
    else:
        assert sorted(sets.flatten().tolist()) == list(range(len(labels)))


def test_numbers_of_clips_that_nobody_has_are_left_out_and_said() -> None:
    report = attacked("lda", (1, 10, 30), **BOTH)
    assert report.clips == (1, 10)
    assert report.left_out == ("30 clips: too few people have so many",)
    with pytest.raises(ModelError, match="from 30 clips: there is 1, 10"):
        report.worst_at(30)
    with pytest.raises(ModelError, match=">= 1, got"):
        attacked("lda", (0,), **BOTH)


def test_the_time_is_spent_on_the_first_and_the_others_are_named() -> None:
    x, whose, said = crowd(**BOTH)
    report = attack(x, whose, x, whose, words=(said, said), clips=(1,), minutes=0.0)
    assert [found.attacker for found in report.findings] == ["plda"]
    assert set(report.left_out) >= {"lda", "trees", "ranked.plda", "networks"}


def test_the_headline_is_the_worst_at_each_number_of_clips(tmp_path_factory: pytest.TempPathFactory) -> None:
    x, whose, said = crowd(person=0.7)
    asked, owners, heard = crowd(person=0.7, seed=1, takes=8)
    report = attack(x, whose, asked, owners, ["lda", "plda", "mean", "codes"], words=(said, heard), clips=(1, 3, 10))
    for clips, worst in report.headline.items():
        assert worst.accuracy == max(found.accuracy for found in report.at(clips))
        assert f"{worst.accuracy:.3f}" in str(report)
    assert report.worst == report.headline[1]
    path = tmp_path_factory.mktemp("plot") / "clips.png"
    plot_clips(report, "made up", path)
    assert path.stat().st_size > 10_000


def test_people_are_drawn_again_not_clips() -> None:
    """Twelve people, each always or never named: clips of one person say nothing new."""
    right = torch.tensor([1.0] * 6 + [0.0] * 6).repeat_interleave(50)
    whose = torch.arange(12).repeat_interleave(50)
    low, high = by_person(right, whose)
    # The bootstrap of twelve coins: 0.5 +- 1.96 sqrt(1 / 48).
    assert low == pytest.approx(0.5 - 1.96 * math.sqrt(1 / 48), abs=0.06)
    assert high == pytest.approx(0.5 + 1.96 * math.sqrt(1 / 48), abs=0.06)
    certain = by_person(torch.ones(600), whose)
    assert certain == (pytest.approx(0.025 ** (1 / 12)), 1.0)


def test_intervals_by_person_cover_the_truth() -> None:
    generator = np.random.default_rng(0)
    covered = 0
    for trial in range(200):
        rates = generator.beta(2, 4, size=40)
        right = torch.from_numpy((generator.random((40, 20)) < rates[:, None]).astype(float)).flatten()
        low, high = by_person(right, torch.arange(40).repeat_interleave(20), seed=trial)
        covered += low <= 1 / 3 <= high
    # 0.95 nominally, somewhat less for a bootstrap of 40; 0.87 is five deviations below 0.95.
    assert covered / 200 > 0.87


@given(
    st.lists(st.tuples(st.integers(0, 9), st.booleans()), min_size=2, max_size=60), st.sampled_from([0.01, 0.2, 0.5])
)
def test_true_positives_are_those_of_the_best_threshold(trials: list[tuple[int, bool]], rate: float) -> None:
    if len({own for _, own in trials}) < 2:
        return
    scores, own = (np.array(column) for column in zip(*trials, strict=True))
    best = 0.0
    for threshold in range(11):
        accepted = scores >= threshold
        if accepted[~own].mean() <= rate:
            best = max(best, accepted[own].mean())
    found = true_positives(torch.from_numpy(scores).double(), torch.from_numpy(own), rate)
    assert found == pytest.approx(best)


def test_strangers_are_impostors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the people are unknown to the worst attacker again; of 12 who stand apart it still knows its own."""
    x, whose, said = crowd(person=2.0, people=12)
    asked, owners, heard = crowd(person=2.0, people=12, seed=1, takes=8)
    seen: list[tuple[Tensor, Tensor]] = []
    plain = CLIP_ATTACKERS["plda"]

    def spy(clips: Clips, labels: Tensor, classes: int, seed: int) -> object:
        seen.append((clips.features, labels))
        return plain(clips, labels, classes, seed)

    monkeypatch.setitem(CLIP_ATTACKERS._entries, "plda", spy)  # type: ignore[arg-type]
    report = attack(x, whose, asked, owners, words=(said, heard), clips=(1, 10), minutes=0.0)
    assert [found.clips for found in report.open_set] == [1, 10]
    assert report.open_set[1].eer < 0.05
    assert report.open_set[1].at_percent > 0.8
    features, labels = seen[-1]
    assert sorted(set(labels.tolist())) == list(range(6))
    assert len(features) == len(x) // 2


@pytest.mark.parametrize(
    "words", [torch.zeros(3, dtype=torch.long), torch.zeros(300), torch.full((300,), -1)], ids=["few", "real", "below"]
)
def test_words_that_are_none_are_refused(words: Tensor) -> None:
    x, whose, _ = crowd(**BOTH)
    with pytest.raises(ModelError, match="words must be"):
        attack(x, whose, x, whose, ["lda"], words=(words, words))
