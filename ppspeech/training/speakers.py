"""Speaker verification: a universal background model trained by EM under a Trainer, speakers enrolled from it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytorch_lightning as lightning
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ppspeech.audio import MfccConfig, length_mask
from ppspeech.data import Batch, SpeechDataModule, UtteranceDataset
from ppspeech.errors import ModelError
from ppspeech.models import SpeakerVerifier, equal_error_rate, equal_error_threshold, minimum_dcf, plot_det
from ppspeech.models.gaussian import Covariance, GaussianMixture, MixtureStatistics, initialize_, maximize_, statistics
from ppspeech.storage import atomic_write
from ppspeech.training.em import MaximizationStep

Heard = Mapping[tuple[int, int], Sequence[Tensor]]
"""Frames by (speaker, take): everything that a speaker said in one session."""


class SpeakerUbm(lightning.LightningModule):
    """A background model of the training speakers' pooled frames; an epoch is an EM iteration.

    Testing enrolls the held-out speakers with some takes and tries every other take against every enrolled model:
    the test speakers are never heard in training.

    Args:
        components: Gaussians in the mixture.
        covariance: `full`, `diagonal`, `spherical` or `tied`.
        floor: smallest variance in any direction.
        relevance: of the MAP adaptation that enrolls a speaker.
        enroll_takes: the takes a speaker is enrolled with; the others are trials.
        start_frames: at most this many frames, evenly spread, choose the starting point.
    """

    def __init__(
        self,
        components: int = 64,
        covariance: Covariance = "diagonal",
        floor: float = 1e-2,
        relevance: float = 16.0,
        enroll_takes: Sequence[int] = (0, 1),
        start_frames: int = 50_000,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = False
        self.components, self.covariance, self.floor = components, covariance, floor
        self.relevance, self.enroll_takes, self.start_frames = relevance, frozenset(enroll_takes), start_frames
        self.mfcc = MfccConfig()
        self.threshold = 0.0
        self.ubm: GaussianMixture | None = None
        self._started = False
        self._total: MixtureStatistics | None = None

    def build_(self, mfcc: MfccConfig) -> None:
        """Make the untrained background model for this front end."""
        self.mfcc = mfcc
        self.ubm = GaussianMixture(self.components, mfcc.features, self.covariance, self.floor)

    def setup(self, stage: str) -> None:  # noqa: ARG002 (Lightning's signature)
        """Take the front end from the data module."""
        module = self.trainer.datamodule  # type: ignore[attr-defined]
        if self.ubm is None:
            assert isinstance(module, SpeechDataModule)
            self.build_(module.config(module.corpus))

    def forward(self, features: Tensor, lengths: Tensor) -> Tensor:
        """Average log-likelihood of each utterance under the background model, `(batch,)`."""
        assert self.ubm is not None
        return self.ubm.average_log_prob(features, lengths)

    def configure_optimizers(self) -> MaximizationStep:
        """The M-step."""
        return MaximizationStep(self.parameters(), self._maximize)

    def on_train_start(self) -> None:
        """Start from k-means of evenly spread frames, unless a checkpoint is being resumed."""
        if self._started:
            return
        assert self.ubm is not None
        pooled = torch.cat(list(self._training_part().features))
        some = pooled[:: max(1, len(pooled) // self.start_frames)].to(self.device)
        initialize_(self.ubm, some, generator=torch.Generator().manual_seed(0))
        self._started = True

    def training_step(self, batch: Batch) -> None:
        """The E-step of a batch, added up; after the last batch of the epoch, the M-step."""
        assert self.ubm is not None
        inside = length_mask(batch["lengths"], batch["features"].shape[1]).flatten()
        found = statistics(self.ubm, batch["features"].flatten(0, 1), inside.to(batch["features"].dtype))
        self._total = found if self._total is None else self._total + found
        if self.trainer.is_last_batch:
            likelihood = (self._total.log_likelihood / self._total.frames).float()
            self.log("train_log_likelihood", likelihood, on_step=False, on_epoch=True, prog_bar=True)
            optimizer = self.optimizers()
            assert not isinstance(optimizer, list)
            optimizer.step()
            self._total = None

    def _maximize(self) -> None:
        assert self.ubm is not None
        assert self._total is not None
        maximize_(self.ubm, self._total)

    def enroll(self, clips: Sequence[Sequence[Tensor]]) -> SpeakerVerifier:
        """A verifier for speakers of whom there are clips, each `(frames, features)`.

        Raises:
            ModelError: if a speaker has none.
        """
        assert self.ubm is not None
        if not clips or not all(clips):
            raise ModelError("enrollment needs at least one clip of each speaker")
        joined = [torch.cat(list(speaker)).to(self.device) for speaker in clips]
        lengths = torch.tensor([len(frames) for frames in joined], device=self.device)
        frames = pad_sequence(joined, batch_first=True)
        verifier = SpeakerVerifier.enroll(self.ubm, frames, lengths, relevance=self.relevance)
        verifier.threshold.fill_(self.threshold)
        return verifier

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

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Add the front end and a threshold: the equal error threshold among the training speakers."""
        heard: dict[tuple[int, int], list[Tensor]] = defaultdict(list)
        part = self._training_part()
        for utterance, speaker, features in zip(part.corpus, part.speakers.tolist(), part.features, strict=True):
            heard[speaker, utterance.take % 2].append(features)
        self.threshold = equal_error_threshold(*self.trials(heard, [0]))
        checkpoint["recognizer"] = {"kind": "speaker_ubm", "mfcc": asdict(self.mfcc), "threshold": self.threshold}

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """A resumed run has its starting point."""
        self._started = True
        self.threshold = checkpoint["recognizer"]["threshold"]
        if self.ubm is None:
            self.build_(MfccConfig(**checkpoint["recognizer"]["mfcc"]))

    def _training_part(self) -> UtteranceDataset:
        part: UtteranceDataset = self.trainer.datamodule.parts["train"]  # type: ignore[attr-defined]
        return part


def _draw_det(scores: Tensor, genuine: Tensor, path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 5), layout="constrained")
    plot_det(figure.subplots(), scores, genuine)
    with atomic_write(path) as temporary:
        figure.savefig(temporary, dpi=120)
