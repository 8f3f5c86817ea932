"""Speaker verification: a universal background model trained by EM under a Trainer, speakers enrolled from it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ppspeech.audio import length_mask
from ppspeech.bundle import DataTouch, SpeakerUbmSettings
from ppspeech.data import Batch, FeatureStore, load_corpus
from ppspeech.errors import ModelError
from ppspeech.models import SpeakerVerifier, equal_error_rate, equal_error_threshold, minimum_dcf, plot_det
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
        public: corpora that are nobody's secret; `synthetic` is the built-in voices.
        start_frames: at most this many frames, evenly spread, choose the starting point.
    """

    def __init__(
        self,
        components: int = 64,
        covariance: Covariance = "diagonal",
        floor: float = 1e-2,
        relevance: float = 16.0,
        enroll_takes: Sequence[int] = (0, 1),
        start: Literal["training", "public"] = "training",
        public: Sequence[str] = ("synthetic",),
        start_frames: int = 50_000,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = False
        self.components, self.covariance, self.floor = components, covariance, floor
        self.relevance, self.enroll_takes, self.start_frames = relevance, frozenset(enroll_takes), start_frames
        self.public_start, self.public = start == "public", tuple(public)
        self.threshold: float | None = None
        self._total: MixtureStatistics | None = None

    def settings(self) -> SpeakerUbmSettings:
        """Of a background model; with the threshold, once it is known."""
        return SpeakerUbmSettings(
            components=self.components,
            covariance=self.covariance,
            floor=float(self.floor),
            relevance=float(self.relevance),
            threshold=self.threshold,
        )

    def touches(self) -> tuple[DataTouch, ...]:
        """A public start looks at nothing private."""
        started = DataTouch("initialization", "untouched", "the start is found in public speech")
        return (started,) if self.public_start else ()

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
        if self.resumed:
            return
        if self.public_start:
            store = FeatureStore(self.mfcc)
            frames: Sequence[Tensor] = [f for name in self.public for f in store.load(load_corpus(name).utterances)]
            count = sum(map(len, frames))
        else:
            frames, count = self.training_part().features, sum(self.training_part().lengths)
        some = _spread(frames, max(1, count // self.start_frames)).to(self.device)
        start_mixture_(self.ubm, some, generator=torch.Generator().manual_seed(0))

    def training_step(self, batch: Batch) -> None:
        """The E-step of a batch, added up; after the last batch of the epoch, the M-step."""
        if self.statistics_hook is not None:
            self.statistics_hook.add(self, batch)
        else:
            inside = length_mask(batch["lengths"], batch["features"].shape[1]).flatten()
            found = mixture_statistics(self.ubm, batch["features"].flatten(0, 1), inside.to(batch["features"].dtype))
            self._total = found if self._total is None else self._total + found
        if self.last_batch():
            if self._total is not None:
                likelihood = (self._total.log_likelihood / self._total.frames).float()
                self.log("train_log_likelihood", likelihood, on_step=False, on_epoch=True, prog_bar=True)
            self.maximize()
            self._total = None

    def _maximize(self) -> None:
        if self.statistics_hook is not None:
            self.statistics_hook.maximize_(self)
        else:
            assert self._total is not None
            update_mixture_(self.ubm, self._total)

    def on_train_epoch_end(self) -> None:
        """After the last epoch, before its checkpoint is written: choose the threshold."""
        epochs = self.trainer.max_epochs
        if self.trainer.should_stop or epochs == self.trainer.current_epoch + 1:
            self._choose_threshold()

    def on_train_end(self) -> None:
        """The same for a run that ended by steps or by time."""
        if self.threshold is None:
            self._choose_threshold()

    def _choose_threshold(self) -> None:
        """The equal error threshold among the training speakers; none where too few takes are there to try, or
        where training is private: it would be a release of its own.
        """
        if self.statistics_hook is not None:
            return
        heard: dict[tuple[int, int], list[Tensor]] = defaultdict(list)
        part = self.training_part()
        for utterance, speaker, features in zip(part.corpus, part.speakers.tolist(), part.features, strict=True):
            heard[speaker, utterance.take % 2].append(features)
        with suppress(ModelError):
            self.threshold = equal_error_threshold(*self.trials(heard, [0]))

    def enroll(self, clips: Sequence[Sequence[Tensor]]) -> SpeakerVerifier:
        """A verifier for speakers of whom there are clips, each `(frames, features)`.

        Raises:
            ModelError: if a speaker has none.
        """
        return SpeakerVerifier.enroll_clips(
            self.ubm, clips, relevance=self.relevance, threshold=self.threshold or 0.0
        ).to(self.device)

    @torch.no_grad()
    def trials(self, heard: Heard, enroll_takes: Iterable[int]) -> tuple[Tensor, Tensor]:
        """Scores of every trial against every enrolled speaker, and which are genuine; both flat.

        Raises:
            ModelError: if no speaker has both takes to enroll and takes to try.
        """
        enrolling = frozenset(enroll_takes)
        speakers = sorted({speaker for speaker, take in heard if take in enrolling})
        trials = [key for key in sorted(heard) if key[1] not in enrolling and key[0] in speakers]
        if len(speakers) < 2 or not trials:
            raise ModelError(
                f"verification needs two speakers with takes among {sorted(enrolling)} to enroll and others to try, "
                f"got {len(speakers)} speakers and {len(trials)} trials"
            )
        verifier = self.enroll(
            [[f for (s, t), fs in heard.items() if s == who and t in enrolling for f in fs] for who in speakers]
        )
        joined = [torch.cat(list(heard[key])).to(self.device) for key in trials]
        lengths = torch.tensor([len(frames) for frames in joined], device=self.device)
        scores = verifier(pad_sequence(joined, batch_first=True), lengths)
        claimed = torch.tensor(speakers, device=self.device)
        true = torch.tensor([speaker for speaker, _ in trials], device=self.device)
        return scores.flatten(), (true.unsqueeze(-1) == claimed).flatten()

    def on_test_epoch_start(self) -> None:
        """Forget what was heard in the last pass."""
        self._heard: dict[tuple[int, int], list[Tensor]] = defaultdict(list)

    def test_step(self, batch: Batch) -> None:
        """Keep the frames by speaker and take."""
        keys = zip(batch["speaker"].tolist(), batch["take"].tolist(), batch["lengths"].tolist(), strict=True)
        for features, (speaker, take, length) in zip(batch["features"], keys, strict=True):
            self._heard[speaker, take].append(features[:length])

    def on_test_epoch_end(self) -> None:
        """Enroll, try, and log the equal error rate; the DET curve goes beside the logs."""
        scores, genuine = self.trials(self._heard, self.enroll_takes)
        error = equal_error_rate(scores, genuine)
        self.log_dict({"test_eer": error, "test_accuracy": 1 - error, "test_min_dcf": minimum_dcf(scores, genuine)})
        if self.trainer.log_dir is not None:
            _draw_det(scores, genuine, Path(self.trainer.log_dir) / "det.png")

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """A resumed run has its starting point."""
        super().on_load_checkpoint(checkpoint)
        self.threshold = checkpoint[KEY]["config"]["settings"]["threshold"]


def _spread(utterances: Sequence[Tensor], every: int) -> Tensor:
    """Every so many-th frame of all, `(frames, features)`, one utterance in memory at a time."""
    kept, passed = [], 0
    for features in utterances:
        kept.append(features[-passed % every :: every].clone())
        passed += len(features)
    return torch.cat(kept)


def _draw_det(scores: Tensor, genuine: Tensor, path: Path) -> None:
    figure = blank(5, 5)
    plot_det(figure.subplots(), scores, genuine)
    save(figure, path, dpi=120)
