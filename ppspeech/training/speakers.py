"""Speaker verification: a universal background model trained by EM under a Trainer, speakers enrolled from it."""

import warnings
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import torch
from torch import Tensor

from ppspeech.audio import length_mask
from ppspeech.bundle import (
    FALSE_ACCEPT,
    BundleConfig,
    CohortSettings,
    SpeakerUbmSettings,
    add_cohort_,
)
from ppspeech.data import Batch, Corpus, FeatureStore, UtteranceDataset, load_corpus
from ppspeech.errors import ModelError, SpeechWarning
from ppspeech.models import Impostors, UbmVoices, equal_error_rate, minimum_dcf, plot_det, voice_directions
from ppspeech.models.gaussian import (
    Covariance,
    GaussianMixture,
    MixtureStatistics,
    mixture_statistics,
    start_mixture_,
    update_mixture_,
)
from ppspeech.pictures import blank, save
from ppspeech.training.module import KEY, MaximizationStep, SpeechModule

Heard = Mapping[tuple[int, int], Sequence[Tensor]]
"""Frames by (speaker, take): everything that a speaker said in one session."""


class SpeakerUbm(SpeechModule):
    """A background model of the training speakers' pooled frames; an epoch is an EM iteration.

    Testing enrolls the held-out speakers with some takes and tries every other take against every enrolled model:
    the test speakers are never heard in training.

    Args:
        components: Gaussians in the mixture.
        covariance: `full`, `diagonal`, `spherical` or `tied`.
        floor: smallest variance in any direction.
        relevance: of the MAP adaptation that enrolls a speaker.
        enroll_takes: the takes a speaker is enrolled with; the others are trials.
        start: where k-means finds the first components: in `training` speech, or in `public` speech.
        cohort: whose voices are released with the model, to set thresholds by: of `public` corpora, of the people in
            the `validation` part, who train nothing and must agree to be in the bundle, or `none`: then whoever decides
            brings a cohort. The built-in voices are none: they say nothing about people.
        public: corpora that are nobody's secret; `synthetic` is the built-in voices.
        start_frames: at most this many frames, evenly spread, choose the starting point.
    """

    meanings = MappingProxyType({"test_accuracy": "1 - equal error rate"})

    def __init__(
        self,
        components: int = 64,
        covariance: Covariance = "diagonal",
        floor: float = 1e-2,
        relevance: float = 16.0,
        enroll_takes: Sequence[int] = (0, 1),
        start: Literal["training", "public"] = "training",
        cohort: Literal["none", "public", "validation"] = "none",
        public: Sequence[str] = ("synthetic",),
        start_frames: int = 50_000,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = False
        self.components, self.covariance, self.floor = components, covariance, floor
        self.relevance, self.enroll_takes, self.start_frames = relevance, frozenset(enroll_takes), start_frames
        self.public_start, self.public = start == "public", tuple(public)
        self.cohort_source = cohort
        self.cohort: CohortSettings | None = None
        self.untestable = False  # whether nobody who is held out said anything twice
        self._total: MixtureStatistics | None = None

    def settings(self) -> SpeakerUbmSettings:
        """Of a background model; with the cohort, once it is there."""
        return SpeakerUbmSettings(
            components=self.components,
            covariance=self.covariance,
            floor=float(self.floor),
            relevance=float(self.relevance),
            cohort=self.cohort,
        )

    def public_speech(self) -> tuple[Corpus, ...]:
        """Where a public start is found, and whose voices a public cohort is of."""
        names = self.public if self.public_start else self._recorded() if self.cohort_source == "public" else ()
        return tuple(map(load_corpus, names))

    @property
    def ubm(self) -> GaussianMixture:
        """The background model."""
        assert isinstance(self.model, GaussianMixture)
        return self.model

    def forward(self, features: Tensor, lengths: Tensor) -> Tensor:
        """Average log-likelihood of each utterance under the background model, `(batch,)`."""
        return self.ubm.average_log_prob(features, lengths)

    def configure_optimizers(self) -> MaximizationStep:
        """The M-step."""
        return MaximizationStep(self.parameters(), self._maximize)

    def on_train_start(self) -> None:
        """Start from k-means of evenly spread frames, unless a checkpoint is being resumed."""
        self._check_cohort()
        self._check_trials()
        if self.resumed:
            return
        if self.public_start:
            frames: Sequence[Tensor] = [f for own in self._public(self.public) for f in own]
            count = sum(map(len, frames))
        else:
            frames, count = self.training_part().features, sum(self.training_part().lengths)
        some = _spread(frames, max(1, count // self.start_frames)).to(self.device)
        start_mixture_(self.ubm, some, generator=torch.Generator().manual_seed(0))
        self.agree_()

    def training_step(self, batch: Batch) -> None:
        """The E-step of a batch, added up; after the last batch of the epoch, the M-step."""
        if len(batch["lengths"]):
            self._expect(batch)
        if self.last_batch():
            if self._total is not None:
                self._total = self.ranks.sums(self._total)
                likelihood = (self._total.log_likelihood / self._total.frames).float()
                self.log("train_log_likelihood", likelihood, on_step=False, on_epoch=True, prog_bar=True)
            self.maximize()
            self._total = None

    def _expect(self, batch: Batch) -> None:
        if self.statistics_hook is not None:
            self.statistics_hook.add(self, batch)
            return
        inside = length_mask(batch["lengths"], batch["features"].shape[1]).flatten()
        found = mixture_statistics(self.ubm, batch["features"].flatten(0, 1), inside.to(batch["features"].dtype))
        self._total = found if self._total is None else self._total + found

    def _maximize(self) -> None:
        if self.statistics_hook is not None:
            self.statistics_hook.maximize_(self)
        else:
            assert self._total is not None
            update_mixture_(self.ubm, self._total)

    def on_train_epoch_end(self) -> None:
        """After the last epoch, before its checkpoint is written: hear the cohort."""
        epochs = self.trainer.max_epochs
        if self.trainer.should_stop or epochs == self.trainer.current_epoch + 1:
            self._hear_cohort()

    def on_train_end(self) -> None:
        """The same for a run that ended by steps or by time."""
        if self.cohort is None:
            self._hear_cohort()

    def _check_cohort(self) -> None:
        """Refuse, before training, a cohort that will not be there, or must not leave."""
        if self.cohort_source == "public" and not self._recorded():
            raise ModelError("a public cohort is of recorded people: name corpora of public speech (--model.public)")
        if self.cohort_source == "validation" and self.statistics_hook is not None:
            raise ModelError("private training cannot release voices of its own corpus: use cohort public or none")
        if self.cohort_source == "validation" and "validation" not in self._parts():
            raise ModelError("a cohort of the validation part needs people in it: --data.validation 0.25")

    def _check_trials(self) -> None:
        """Refuse, before training, a test in which nobody can be tried, unless no choice of takes could change that:
        where everybody has one take, the model is trained and not tested, with a warning.
        """
        if not self.will_be_tested or "test" not in self._parts():
            return
        held_out = self._parts()["test"]
        takes = (utterance.take for utterance in held_out.corpus)
        heard = sorted(set(zip(held_out.speakers.tolist(), takes, strict=True)))
        self.untestable = len({speaker for speaker, _ in heard}) == len(heard)
        if not self.untestable:
            _enrolled_and_tried(heard, self.enroll_takes)
            return
        warnings.warn(
            f"everybody of {held_out.corpus.name} who is held out has one take: nobody can be enrolled with one and "
            "tried with another. The background model is trained, and how well it tells people apart is not known: no "
            "error rate is measured. Test it with people of whom there are several takes (`ppspeech verify --enroll`), "
            "or train with all (--data.test 0)",
            SpeechWarning,
            stacklevel=2,
        )

    def _hear_cohort(self) -> None:
        """Put the cohort's voices into the model. Of public people it is post-processing of what is released anyway."""
        if self.cohort_source == "none":
            return
        if self.cohort_source == "public":
            people, voices = self._public(self._recorded()), ", ".join(self._recorded())
        else:
            part = self._parts()["validation"]
            people, voices = _by_speaker(part.corpus, part.features), f"{part.corpus.name}, held out of training"
        found = Impostors.of(UbmVoices(self.ubm.cpu(), self.mfcc, self.relevance), people)
        self.cohort = CohortSettings(source=self.cohort_source, voices=voices, frames=found.frames, owners=found.owners)
        add_cohort_(self.ubm, found)
        self.ubm.to(self.device)

    def _recorded(self) -> tuple[str, ...]:
        return tuple(name for name in self.public if name != "synthetic")

    def _public(self, names: Sequence[str]) -> list[list[Tensor]]:
        """Clips of each person of public corpora."""
        store, found = FeatureStore(self.mfcc), []
        for name in names:
            corpus = load_corpus(name)
            found += _by_speaker(corpus, store.load(corpus.utterances))
        return found

    def _parts(self) -> Mapping[str, UtteranceDataset]:
        parts: Mapping[str, UtteranceDataset] = self.trainer.datamodule.parts  # type: ignore[attr-defined]
        return parts

    @torch.no_grad()
    def trials(self, heard: Heard, enroll_takes: Iterable[int]) -> "Trials":
        """Every trial against every enrolled speaker; ModelError if nobody can be tried."""
        enrolling = frozenset(enroll_takes)
        speakers, trials = _enrolled_and_tried(heard, enrolling)
        impostors = self.settings().impostors(self.ubm.cpu())
        most = None if impostors is None else impostors.frames[-1]
        enrolled = [torch.cat([f for who in enrolling for f in heard.get((s, who), ())]) for s in speakers]
        tried = [torch.cat(list(heard[key]))[:most] for key in trials]
        templates, voices = (
            torch.cat([voice_directions(self.ubm, x.cpu().unsqueeze(0), self.relevance) for x in each])
            for each in (enrolled, tried)
        )
        self.ubm.to(self.device)
        genuine = torch.tensor([[speaker == claimed for claimed in speakers] for speaker, _ in trials])
        least = None
        if impostors is not None:
            found = [[impostors.threshold(t, len(x), FALSE_ACCEPT) for t in templates] for x in tried]
            least = torch.tensor(found)
        return Trials(voices @ templates.mT, genuine, least)

    def on_test_epoch_start(self) -> None:
        """Forget what was heard in the last pass."""
        self._heard: dict[tuple[int, int], list[Tensor]] = defaultdict(list)

    def test_step(self, batch: Batch) -> None:
        """Keep the frames by speaker and take."""
        keys = zip(batch["speaker"].tolist(), batch["take"].tolist(), batch["lengths"].tolist(), strict=True)
        for features, (speaker, take, length) in zip(batch["features"], keys, strict=True):
            self._heard[speaker, take].append(features[:length])

    def on_test_epoch_end(self) -> None:
        """Enroll, try, and log the error rates; the DET curve goes beside the logs. Nothing where nobody can be tried,
        as was said before training.
        """
        if self.untestable:
            return
        heard: dict[tuple[int, int], list[Tensor]] = defaultdict(list)
        for key, frames in self.ranks.gathered(list(self._heard.items())):
            heard[key] += frames
        found = self.trials(heard, self.enroll_takes)
        scores, genuine = found.scores.flatten(), found.genuine.flatten()
        error = equal_error_rate(scores, genuine)
        self.log_dict({"test_eer": error, "test_accuracy": 1 - error, "test_min_dcf": minimum_dcf(scores, genuine)})
        if found.least is not None:
            accepted = found.scores >= found.least
            false_accept, miss = accepted[~found.genuine].float().mean(), 1 - accepted[found.genuine].float().mean()
            self.log_dict({f"test_false_accept_at_{FALSE_ACCEPT}": false_accept, f"test_miss_at_{FALSE_ACCEPT}": miss})
        folder = self.trainer.log_dir
        if folder is not None and self.ranks.first:
            _draw_det(scores, genuine, Path(folder) / "det.png")

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """A resumed run has its starting point."""
        settings = BundleConfig.from_json(checkpoint[KEY]["config"]).settings
        assert isinstance(settings, SpeakerUbmSettings)
        self.cohort = settings.cohort
        super().on_load_checkpoint(checkpoint)
        if self.cohort is not None:  # also where the model was built before
            self.model = self.config.build()


@dataclass(frozen=True)
class Trials:
    """Cosines `(trials, speakers)`, which are genuine, and thresholds at the usual rate, where there is a cohort."""

    scores: Tensor
    genuine: Tensor
    least: Tensor | None


def _enrolled_and_tried(
    heard: Iterable[tuple[int, int]], enrolling: frozenset[int]
) -> tuple[list[int], list[tuple[int, int]]]:
    """Who is enrolled, and which (speaker, take) are trials; ModelError where there are none."""
    keys = sorted(set(heard))
    speakers = sorted({speaker for speaker, take in keys if take in enrolling})
    trials = [(speaker, take) for speaker, take in keys if take not in enrolling and speaker in speakers]
    if len(speakers) < 2 or not trials:
        raise ModelError(
            f"verification needs two speakers with takes among {sorted(enrolling)} to enroll and others to try, got "
            f"{len(speakers)} speakers and {len(trials)} trials: the takes held out are "
            f"{sorted({take for _, take in keys})}; choose others (--model.enroll_takes [0]), or test nobody "
            "(--data.test 0)"
        )
    return speakers, trials


def _by_speaker(corpus: Corpus, features: Sequence[Tensor]) -> list[list[Tensor]]:
    found: dict[str, list[Tensor]] = defaultdict(list)
    for utterance, frames in zip(corpus, features, strict=True):
        found[utterance.speaker].append(frames)
    return list(found.values())


def _spread(utterances: Sequence[Tensor], every: int) -> Tensor:
    """Every so many-th frame of all, `(frames, features)`, one utterance in memory at a time."""
    kept, passed = [], 0
    for features in utterances:
        kept.append(features[-passed % every :: every].clone())
        passed += len(features)
    return torch.cat(kept)


def _draw_det(scores: Tensor, genuine: Tensor, path: Path) -> None:
    figure = blank(5, 5)
    axes = figure.subplots()
    plot_det(axes, scores, genuine)
    axes.set_title(f"equal error rate {equal_error_rate(scores, genuine):.2%} of {len(scores):,} trials")
    save(figure, path, dpi=120)
