import pytest
import torch

from ppspeech.errors import ModelError
from ppspeech.models.score_norm import cohort_statistics, t_norm, z_norm, zt_norm

GENERATOR = torch.Generator().manual_seed(0)
SCORES, IMPOSTORS = torch.randn(5, 3, generator=GENERATOR), torch.randn(7, 3, generator=GENERATOR)
COHORT, IMPOSTORS_ON_COHORT = torch.randn(5, 4, generator=GENERATOR), torch.randn(7, 4, generator=GENERATOR)


def test_z_norm_is_by_speaker() -> None:
    found = z_norm(SCORES, IMPOSTORS)
    for speaker in range(3):
        mean, std = IMPOSTORS[:, speaker].mean(), IMPOSTORS[:, speaker].std()
        torch.testing.assert_close(found[:, speaker], (SCORES[:, speaker] - mean) / std)


def test_t_norm_is_by_trial() -> None:
    found = t_norm(SCORES, COHORT)
    for trial in range(5):
        torch.testing.assert_close(found[trial], (SCORES[trial] - COHORT[trial].mean()) / COHORT[trial].std())


def test_zt_norm_normalizes_the_cohort_as_well() -> None:
    found = zt_norm(SCORES, IMPOSTORS, COHORT, IMPOSTORS_ON_COHORT)
    torch.testing.assert_close(found, t_norm(z_norm(SCORES, IMPOSTORS), z_norm(COHORT, IMPOSTORS_ON_COHORT)))


def test_norms_undo_shifts_and_scales_of_speakers_and_trials() -> None:
    speaker_scale, speaker_shift = torch.rand(3) + 0.5, torch.randn(3)
    moved = z_norm(SCORES * speaker_scale + speaker_shift, IMPOSTORS * speaker_scale + speaker_shift)
    torch.testing.assert_close(moved, z_norm(SCORES, IMPOSTORS), rtol=1e-4, atol=1e-5)
    trial_shift = torch.randn(5, 1)
    torch.testing.assert_close(
        t_norm(SCORES + trial_shift, COHORT + trial_shift), t_norm(SCORES, COHORT), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (torch.zeros(3, 1), "at least 2 members to have a spread, got 1"),
        (torch.zeros(3, 0), "got 0"),
        (torch.tensor(1.0), "got 0"),
        (torch.ones(3, 4), "all equal"),
        (torch.tensor([0.0, torch.nan]), "finite"),
    ],
)
def test_refusals(scores: torch.Tensor, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        cohort_statistics(scores)
