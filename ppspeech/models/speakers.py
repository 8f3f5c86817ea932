"""Who speaks: speaker models scored against a background model, all trials and all speakers at once."""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from ppspeech.errors import ModelError
from ppspeech.models.gaussian.mixture import GaussianMixture, frame_mask
from ppspeech.models.gaussian.statistics import mixture_statistics
from ppspeech.models.gaussian.ubm import map_adapt, supervectors

REJECTED = -1
SMALLEST_COHORT = 2


class SpeakerVerifier(nn.Module):
    """GMM-UBM verification (Reynolds et al. 2000): the average over frames of ln p(x | speaker) - ln p(x | UBM).

    Scores are Z-normed after `calibrate_` and T-normed if there is a cohort, models of other people (both: ZT-norm);
    trials are accepted at the threshold, in units of that score. Everything the decisions depend on is in the state
    dict. The UBM has batch shape `()`, the models adapted from it `(speakers,)`.
    """

    threshold: Tensor
    impostor_mean: Tensor
    impostor_std: Tensor

    def __init__(
        self,
        ubm: GaussianMixture,
        speakers: GaussianMixture,
        cohort: GaussianMixture | None = None,
        threshold: float = 0.0,
    ) -> None:
        super().__init__()
        for models in (speakers,) if cohort is None else (speakers, cohort):
            if ubm.batch or len(models.batch) != 1 or models.features != ubm.features:
                raise ModelError(
                    f"a verifier needs one UBM and models of shape (speakers, components) with its features, got "
                    f"{ubm.gaussians.shape} and {models.gaussians.shape}, {ubm.features} and {models.features} "
                    "features"
                )
        if cohort is not None and cohort.batch[0] < 2:
            raise ModelError("T-norm needs a cohort of at least 2 models, got 1")
        self.ubm, self.speakers, self.cohort = ubm, speakers, cohort
        count = speakers.batch[0] + (cohort.batch[0] if cohort is not None else 0)
        self.register_buffer("threshold", ubm.logits.new_tensor(threshold))
        self.register_buffer("impostor_mean", ubm.logits.new_zeros(count).detach())
        self.register_buffer("impostor_std", ubm.logits.new_ones(count).detach())

    @classmethod
    def enroll(
        cls,
        ubm: GaussianMixture,
        x: Tensor,
        lengths: Tensor | None = None,
        *,
        cohort: GaussianMixture | None = None,
        relevance: float = 16.0,
    ) -> "SpeakerVerifier":
        """A verifier from each speaker's frames `(speakers, frames, d)`, by MAP adaptation of the UBM's means."""
        return cls(ubm, adapt_speakers(ubm, x, lengths, relevance), cohort)

    @classmethod
    def enroll_clips(
        cls, ubm: GaussianMixture, clips: Sequence[Sequence[Tensor]], *, relevance: float = 16.0, threshold: float = 0.0
    ) -> "SpeakerVerifier":
        """A verifier for speakers of whom there are clips, at least one each, of `(frames, d)`."""
        if not clips or not all(clips):
            raise ModelError("enrollment needs at least one clip of each speaker")
        place = ubm.logits.device
        joined = [torch.cat(list(speaker)).to(place) for speaker in clips]
        lengths = torch.tensor([len(frames) for frames in joined], device=place)
        return cls(
            ubm, adapt_speakers(ubm, pad_sequence(joined, batch_first=True), lengths, relevance), None, threshold
        )

    def log_likelihood_ratios(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Average log-likelihood ratios of trials `(trials, frames, d)`: `(trials, speakers + cohort)`."""
        background = self.ubm.average_log_prob(x, lengths).unsqueeze(-1)
        models = [self.speakers] if self.cohort is None else [self.speakers, self.cohort]
        return torch.cat([model.average_log_prob(x, lengths) for model in models], dim=-1) - background

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Normed scores of trials `(trials, frames, d)` against every speaker, `(trials, speakers)`."""
        scores = (self.log_likelihood_ratios(x, lengths) - self.impostor_mean) / self.impostor_std
        known = self.speakers.batch[0]
        if self.cohort is None:
            return scores
        return t_norm(scores[:, :known], scores[:, known:])

    @torch.no_grad()
    def calibrate_(self, x: Tensor, lengths: Tensor | None = None) -> None:
        """Learn the Z-norm from trials `(impostors, frames, d)` of two or more people, none of them enrolled."""
        mean, std = cohort_moments(self.log_likelihood_ratios(x, lengths).mT)
        self.impostor_mean.copy_(mean)
        self.impostor_std.copy_(std)

    def verify(self, x: Tensor, claimed: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Whether each trial is accepted as the speaker it claims to be; `claimed` and result `(trials,)`."""
        scores = self(x, lengths).gather(-1, claimed.unsqueeze(-1)).squeeze(-1)
        return torch.ge(scores, self.threshold)

    def identify(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """The best speaker of each trial, or -1 where even the best is below the threshold; `(trials,)`."""
        best = self(x, lengths).max(-1)
        return torch.where(best.values >= self.threshold, best.indices, REJECTED)


def cohort_moments(scores: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of scores `(..., cohort)`. Raises ModelError if they are too few or all equal."""
    if scores.ndim < 1 or scores.shape[-1] < SMALLEST_COHORT:
        size = scores.shape[-1] if scores.ndim else 0
        raise ModelError(f"a cohort needs at least {SMALLEST_COHORT} members to have a spread, got {size}")
    if not bool(scores.isfinite().all()):
        raise ModelError("cohort scores must be finite")
    std, mean = torch.std_mean(scores, dim=-1)
    if not bool((std > 0).all()):
        raise ModelError("the cohort's scores are all equal, so they give no scale: use other impostors")
    return mean, std


def t_norm(scores: Tensor, cohort_models: Tensor) -> Tensor:
    """Scores `(trials, speakers)` in units of those the trials get from models of impostors, `(trials, cohort)`."""
    mean, std = cohort_moments(cohort_models)
    return (scores - mean.unsqueeze(-1)) / std.unsqueeze(-1)


def adapt_speakers(
    ubm: GaussianMixture, x: Tensor, lengths: Tensor | None = None, relevance: float = 16.0
) -> GaussianMixture:
    """Models of people of whom there is speech: means adapted from `(speakers, frames, d)`."""
    mask = None if lengths is None else frame_mask(lengths, x.shape[-2])
    return map_adapt(ubm, mixture_statistics(ubm, x, mask), relevance=relevance)


def supervector_scores(
    ubm: GaussianMixture,
    speakers: GaussianMixture,
    trials: GaussianMixture,
    kernel: Literal["linear", "cosine"] = "cosine",
) -> Tensor:
    """Inner products of supervectors, measured from the UBM's: a scorer that is linear in the trial.

    Returns `(trials, speakers)`. `cosine` leaves out how far a model moved (and so how long it spoke). Speakers and
    trials are models adapted from the UBM, batch shapes `(speakers,)` and `(trials,)`.
    """
    middle = supervectors(ubm, ubm)
    known, asked = supervectors(ubm, speakers) - middle, supervectors(ubm, trials) - middle
    if kernel == "cosine":
        known, asked = functional.normalize(known, dim=-1), functional.normalize(asked, dim=-1)
    elif kernel != "linear":
        raise ModelError(f"kernel must be linear or cosine, got {kernel!r}")
    return asked @ known.mT
