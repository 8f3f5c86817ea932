"""Recipes in two real processes give what one gives; private ones draw one Poisson sample and one noise."""

import re
import subprocess
import sys
from collections import Counter
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from scipy import stats
from torch import Tensor, distributed, multiprocessing
from torch.utils.data import DataLoader, Dataset

from ppspeech.data import SpeechDataModule
from ppspeech.errors import CorpusError, ModelError, PrivacyError
from ppspeech.privacy import Relation
from ppspeech.privacy.gradients import GradientPlan
from ppspeech.privacy.mechanisms import Moments, ShiftRelease, StatisticsRelease, UnitSums
from ppspeech.ranks import Ranks
from ppspeech.recipes import find_recipe
from ppspeech.training.private.gradients import GradientPrivacy
from tests.fresh import TOP
from tests.training.two_ranks import FOLDER, QUIET, TWO, in_two_processes, trained

SMALL = ["--data.options", "{words: [zero, one, two], speakers: 8, takes: 2, seed: 1}", "--expect", "{}"]
PUBLIC = ["--model.covariance", "diagonal", "--model.start", "public"]
FEW = ["--data.sentences", "3", "--data.test_sentences", "1"]
SUMS = "{epsilon: 4, unit: utterance}"
PEOPLE = "{epsilon: 4, unit: speaker}"
BOUNDED = "{epsilon: 4, unit: speaker, emission_norm: 1.5}"
STEPS = "{noise_multiplier: 2.0, unit: speaker, sampling: 1.0, expected_units: 6, public_start: drawn at random}"
MINIMUM = "{epsilon: 4, unit: speaker}"


def fit(name: str, *more: str) -> list[str]:
    """A recipe, on little speech, without what ends a run early."""
    return ["fit", "--config", str(find_recipe(name)), *SMALL, "--trainer.callbacks", "null", *more]


KEPT = ["--trainer.callbacks", "ModelCheckpoint", "--trainer.callbacks.save_top_k", "-1"]
SECOND = ["--trainer.max_epochs", "2", "--privacy", SUMS]


def of_first_epoch(folder: str) -> list[str]:
    """Go on from the first of two epochs."""
    return ["--ckpt_path", f"{folder}/private_sums/checkpoints/epoch=0-step=1.ckpt"]


QUICK = {
    "em": (fit("keyword_hmm", "--trainer.max_epochs", "2", "--data.batch_size", "7"), 1e-4),
    "margin": (fit("keyword_large_margin", "--trainer.max_epochs", "1", "--data.batch_size", "7"), 1e-4),
    "ubm": (fit("speaker_ubm", "--trainer.max_epochs", "2", "--model.enroll_takes", "[0]"), 1e-4),
    "network": (fit("keyword_network", "--trainer.max_epochs", "2"), 1e-4),
    "classes": (fit("large_margin"), 1e-6),
    "private_sums": (fit("keyword_dp", *SECOND, *KEPT), 1e-3),
    "private_resumed": (fit("keyword_dp", *SECOND, *of_first_epoch(FOLDER)), 1e-3),
    "private_people": (fit("keyword_dp", "--trainer.max_epochs", "1", "--privacy", PEOPLE), 1e-3),
    "private_steps": (fit("keyword_network", "--trainer.max_epochs", "2", "--privacy", STEPS), 1e-4),
    "private_minimum": (
        fit("large_margin", "--model.label", "word", "--privacy", MINIMUM),
        1e-2,
    ),  # noise for what the solver leaves
}
"""Recipes, and how far, of the largest number, their parameters may be from those of one process."""

LONGER = {
    "private_bounded": (fit("keyword_dp", "--trainer.max_epochs", "1", "--privacy", BOUNDED), 1e-3),
    "gradient": (fit("keyword_hmm", "--model.method", "gradient", "--trainer.max_epochs", "1"), 1e-3),
    "adam": (fit("large_margin", "--model.solver", "adam"), 1e-2),  # which divides rounding by itself
    "sentences": (fit("sentences", "--trainer.max_epochs", "2", *FEW), 1e-4),
    "ctc": (fit("sentences_ctc", "--trainer.max_epochs", "1", "--model.dropout", "0", *FEW), 1e-3),
    "states": (fit("sentences_network", "--trainer.max_epochs", "1", "--model.dropout", "0", *FEW), 1e-4),
    "lexicon": (fit("sentences_lexicon", "--trainer.max_epochs", "1", *FEW), 1e-4),
    "embedded": (fit("words_embedded"), 1e-6),
}


@pytest.fixture(scope="module")
def of_two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[dict[str, Any]]]]:
    folder = tmp_path_factory.mktemp("ranks")
    return folder, in_two_processes({name: words for name, (words, _) in QUICK.items()}, folder)


@pytest.fixture(scope="module")
def of_two_longer(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("ranks")
    return in_two_processes({name: words for name, (words, _) in LONGER.items()}, folder)


def compare(words: list[str], two: list[dict[str, Any]], most: float, folder: Path) -> None:
    """Both processes have the same to the bit, and what one process has to rounding."""
    one, (first, second) = trained(words, folder, "one"), two
    assert first["events"] == second["events"] == one["events"]
    for name, value in one["state"].items():
        assert torch.equal(first["state"][name], second["state"][name]), name
        finite = value.isfinite()
        assert torch.equal(finite, first["state"][name].isfinite())
        away = (first["state"][name][finite].double() - value[finite].double()).abs()
        scale = max(1.0, float(value[finite].abs().max())) if finite.any() else 1.0
        assert not len(away) or float(away.max()) <= most * scale, f"{name}: {float(away.max())} of {scale}"
    for name, measured in one["metrics"].items():
        assert first["metrics"][name] == second["metrics"][name]
        assert first["metrics"][name] == pytest.approx(measured, abs=1e-3), name


@pytest.mark.parametrize("name", QUICK)
def test_two_processes_train_what_one_trains(
    name: str, of_two: tuple[Path, dict[str, list[dict[str, Any]]]], tmp_path: Path
) -> None:
    words, most = QUICK[name.replace("resumed", "sums")]  # one process, without a break
    compare(words, of_two[1][name], most, tmp_path)
    written = [path.name for path in (of_two[0] / name).rglob("*.ckpt")]
    assert len(written) == (2 if name == "private_sums" else 1), written  # once each


def test_one_process_goes_on_with_what_two_began(
    of_two: tuple[Path, dict[str, list[dict[str, Any]]]], tmp_path: Path
) -> None:
    """Which releases were made does not depend on how many made them."""
    folder, found = of_two
    alone = trained(fit("keyword_dp", *SECOND, *of_first_epoch(str(folder))), tmp_path, "alone")
    assert alone["events"] == found["private_sums"][0]["events"] != []
    for name, value in found["private_sums"][0]["state"].items():
        torch.testing.assert_close(alone["state"][name], value, rtol=1e-3, atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("name", LONGER)
def test_every_recipe_is_for_several_processes(
    name: str, of_two_longer: dict[str, list[dict[str, Any]]], tmp_path: Path
) -> None:
    words, most = LONGER[name]
    compare(words, of_two_longer[name], most, tmp_path)


def test_every_speaker_joins_once_and_whole(of_two: tuple[Path, dict[str, list[dict[str, Any]]]]) -> None:
    """At q = 1 the parts of a step are everybody, each once; no speaker is on both sides."""
    first, second = (each["drawn"] for each in of_two[1]["private_steps"])
    data = SpeechDataModule("synthetic", {"words": ["zero", "one", "two"], "speakers": 8, "takes": 2, "seed": 1})
    data.setup()
    speakers = data.parts["train"].speakers
    assert len(first) == len(second) == 2
    for mine, theirs in zip(first, second, strict=True):
        assert Counter([*mine, *theirs]) == Counter(range(len(speakers)))
        assert not set(speakers[mine].tolist()) & set(speakers[theirs].tolist())
        assert mine
        assert theirs


def loader(rank: int, ranks: int, *, by_speaker: bool, **more: Any) -> list[dict[str, Tensor]]:
    """Training batches of one of several ranks."""
    data = SpeechDataModule("synthetic", {"words": ["no", "yes"], "speakers": 5, "takes": 2}, test=0, **more)
    data.setup()
    data.trainer = SimpleNamespace(global_rank=rank, world_size=ranks)  # type: ignore[assignment]
    data.by_speaker = by_speaker
    return list(data.train_dataloader())


@pytest.mark.parametrize("by_speaker", [False, True])
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_ranks_have_every_utterance_once(by_speaker: bool, ranks: int) -> None:
    shared = [loader(rank, ranks, by_speaker=by_speaker, batch_size=7) for rank in range(ranks)]
    assert len({len(batches) for batches in shared}) == 1
    parts = [[(b["index"], b["speaker"]) for b in batches if len(b["lengths"])] for batches in shared]
    heard = [torch.cat([index for index, _ in part]).tolist() for part in parts]
    assert Counter(index for part in heard for index in part) == Counter(range(20))
    if by_speaker:
        people = [set(torch.cat([who for _, who in part]).tolist()) for part in parts]
        assert sum(map(len, people)) == 5


def test_fewer_people_or_places_than_processes_are_refused() -> None:
    with pytest.raises(CorpusError, match="6 processes cannot share 5 speakers"):
        loader(0, 6, by_speaker=True)
    with pytest.raises(CorpusError, match="3 processes share batches of 2"):
        loader(0, 3, by_speaker=False, batch_size=2)
    with pytest.raises(CorpusError, match="21 processes share 20 utterances"):
        loader(0, 21, by_speaker=False)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--trainer.devices", "0"], "make no Trainer: `Trainer(devices='0')`"),
        (["--trainer.devices", "-1"], "make no Trainer: `devices` selected with `CPUAccelerator` should be an int > 0"),
        (["--trainer.strategy", "several"], "make no Trainer: You selected an invalid strategy name"),
        (["--trainer.devices", "2", "--trainer.strategy", "ddp_spawn"], "set trainer.strategy to ddp, got spawn"),
        ([*TWO, "--data.batch_size", "1"], "2 processes share batches of 1: each needs one utterance"),
        ([*TWO, "--privacy", SUMS, "--audit", "canaries=10"], "--audit trains canaries in one process"),
    ],
)
def test_wrong_numbers_of_processes_are_refused_in_words(more: list[str], said: str, tmp_path: Path) -> None:
    """Before a second process is started."""
    with pytest.raises((ModelError, CorpusError, PrivacyError), match=re.escape(said)):
        trained(fit("keyword_hmm", *more), tmp_path, "wrong")


SPEAKER = Relation("speaker", "add_remove")


def moments(loudness: float, cells: int) -> Moments:
    """Of one utterance."""
    first = torch.full((1, 1, 1, cells), loudness)
    return Moments(first[..., 0] * 0, first, 0 * first[0, 0], torch.zeros(1, 1), torch.zeros(1, 1, 1))


class Said(Dataset[Tensor]):
    """Somebody's data set: an item a speaker."""

    def __init__(self, speakers: list[int]) -> None:
        self.speakers = torch.tensor(speakers)

    def __len__(self) -> int:
        return len(self.speakers)

    def __getitem__(self, place: int) -> Tensor:
        return self.speakers[place]


def split(rank: int, ranks: int, seed: int) -> SpeechDataModule:
    """A corpus as one of several ranks has it."""
    data = SpeechDataModule("synthetic", {"words": ["no", "yes"], "speakers": 5, "takes": 2}, test=0.4, seed=seed)
    data.trainer = SimpleNamespace(global_rank=rank, world_size=ranks, lightning_module=None)  # type: ignore[assignment]
    data.setup()
    return data


def _rank(rank: int, folder: str) -> None:
    """One of two processes: everybody's sums, one noise; refusals that all share."""
    file = f"file://{folder}/meeting"
    distributed.init_process_group("gloo", init_method=file, rank=rank, world_size=2, timeout=timedelta(seconds=120))
    place, found = Ranks(rank, 2), dict[str, Any]()
    release = StatisticsRelease(1.0, 1e-5, 1, SPEAKER)
    sums = UnitSums(release, speakers=2)
    sums.add(moments(0.0, 20_000), torch.ones(1), torch.tensor([rank]))
    found["statistics"] = sums.released(place).first.flatten().double() * release.scales[1]
    loud = UnitSums(release, speakers=2)
    loud.add(moments(1e6, 1), torch.ones(1), torch.tensor([rank]))
    found["both"] = place.added(loud.steps())
    shifts = ShiftRelease(1.0, 1e-5, 20_000, 1.0)
    found["shifts"] = shifts.release(torch.zeros(1, 20_000), place).value[:-1]
    apart = UnitSums(release, speakers=2)
    apart.add(moments(1.0, 1), torch.ones(1), torch.tensor([0]))
    with pytest.raises(PrivacyError, match="one speaker says is on several processes"):
        apart.released(place)
    plan = GradientPlan(relation=SPEAKER, noise_multiplier=1.0, sampling=1.0, clip=1.0)
    hook = GradientPrivacy(plan, 1.0, "drawn at random")
    hook._place = place
    found["drawn"] = next(iter(hook._poisson(DataLoader(Said([3, 5]))).batch_sampler))  # type: ignore[call-overload]
    with pytest.raises(PrivacyError, match="the same speakers in the same order"):
        hook._poisson(DataLoader(Said([[3, 5], [5, 3]][rank])))
    with pytest.raises(CorpusError, match="the same utterances in the same order"):
        split(rank, 2, seed=2 + rank)
    found["split"] = [part.digest for part in split(rank, 2, seed=2).parts.values()]
    found["once"] = place.once(lambda: torch.rand(3))

    def fails() -> None:
        raise ModelError("no")

    with pytest.raises(ModelError, match="no"):
        place.once(fails)
    value = torch.full((2,), float(rank))
    place.same_([value])
    found["same"], found["rows"] = value, place.rows(torch.full((rank + 1, 2), rank))
    torch.save(found, f"{folder}/{rank}.pt")
    distributed.destroy_process_group()


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("releases")
    multiprocessing.spawn(_rank, args=(str(folder),), nprocs=2)  # type: ignore[no-untyped-call]
    return [torch.load(folder / f"{rank}.pt") for rank in (0, 1)]


@pytest.mark.parametrize(("kind", "mechanism"), [
    ("statistics", StatisticsRelease(1.0, 1e-5, 1, SPEAKER).mechanism),
    ("shifts", ShiftRelease(1.0, 1e-5, 20_000, 1.0).mechanism),
])  # fmt: skip
def test_released_sums_have_one_noise_of_full_size(ranks: list[dict[str, Any]], kind: str, mechanism: Any) -> None:
    """Equal on both, of the variance that the event is of: not two noises, and not half of one. Of 20,000 numbers the
    deviation is known to half a percent; false-alarm rate 1e-6.
    """
    first, second = (each[kind] for each in ranks)
    assert torch.equal(first, second)
    assert mechanism.event.sigma / mechanism.event.l2 == pytest.approx(mechanism.sigma)
    assert stats.kstest(first.numpy(), stats.norm(scale=mechanism.sigma).cdf).pvalue > 1e-6
    assert float(first.std()) == pytest.approx(mechanism.sigma, rel=0.03)


def test_what_two_processes_add_is_everybodys(ranks: list[dict[str, Any]]) -> None:
    """Two people, each loud: twice what one may add, whole numbers, on both processes."""
    one = UnitSums(StatisticsRelease(1.0, 1e-5, 1, SPEAKER), speakers=1)
    one.add(moments(1e6, 1), torch.ones(1), torch.tensor([0]))
    assert torch.equal(ranks[0]["both"], ranks[1]["both"])
    assert torch.equal(ranks[0]["both"], 2 * one.steps())
    assert torch.equal(ranks[0]["once"], ranks[1]["once"])
    assert [each["drawn"] for each in ranks] == [[0], [1]]
    assert ranks[0]["split"] == ranks[1]["split"]
    assert [each["same"].tolist() for each in ranks] == [[0.0, 0.0]] * 2
    assert ranks[1]["rows"].tolist() == [[0, 0], [1, 1], [1, 1]]


@pytest.mark.slow
def test_a_process_that_fails_ends_all_with_its_words(tmp_path: Path) -> None:
    """By the command, which starts the second process itself."""
    words = fit("keyword_hmm", "--trainer.callbacks", "tests.training.two_ranks.SecondFails")
    command = [sys.executable, "-m", "ppspeech", "train", *words, *TWO, *QUIET]
    done = subprocess.run(
        [*command, "--trainer.default_root_dir", str(tmp_path)],
        capture_output=True, text=True, check=False, timeout=300, cwd=TOP,
    )  # fmt: skip
    assert done.returncode != 0
    assert "the second disk is full" in done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    assert not list(tmp_path.rglob("*.ckpt"))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--trainer.precision", "bf16-mixed"], "half precision spoils"),
        (["--trainer.precision", "bf16-mixed", "--privacy", SUMS, *PUBLIC], "private training computes in full"),
    ],
)
def test_half_precision_is_refused_where_it_harms(more: list[str], said: str, tmp_path: Path) -> None:
    with pytest.raises((ModelError, PrivacyError), match=re.escape(said)):
        trained(fit("keyword_hmm", *more), tmp_path, "half")


def test_networks_train_in_half_precision(tmp_path: Path) -> None:
    found = trained(fit("keyword_network", "--trainer.precision", "bf16-mixed"), tmp_path, "half")
    assert found["metrics"]["test_accuracy"] > 0.5
    assert {value.dtype for value in found["state"].values()} == {torch.float32}
