from pathlib import Path

import pytest
import torch

from ppspeech.errors import ModelError
from ppspeech.models.gaussian.em import fit_mixture
from ppspeech.models.gaussian.mixture import GaussianMixture
from ppspeech.models.gaussian.ubm import supervectors
from ppspeech.models.speakers import SpeakerVerifier, adapt_speakers, cohort_moments, supervector_scores, t_norm

SPEAKERS, FEATURES = 6, 4


def people(frames: int, seed: int, takes: int = 1) -> torch.Tensor:
    """Speech of six people, `(6 * takes, frames, 4)`: each has an own mean and little else."""
    middle = torch.randn(SPEAKERS, 1, FEATURES, generator=torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(SPEAKERS * takes, frames, FEATURES, generator=generator)
    return middle.repeat_interleave(takes, 0) + noise


@pytest.fixture(scope="module")
def ubm() -> GaussianMixture:
    return fit_mixture(people(200, seed=1).reshape(-1, FEATURES), 8, iterations=5)


def ragged(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    lengths = torch.arange(len(x)) % 5 + x.shape[1] - 5
    return torch.where(torch.arange(x.shape[1]).unsqueeze(-1) < lengths.reshape(-1, 1, 1), x, torch.nan), lengths


@torch.no_grad()
def test_scores_are_average_log_likelihood_ratios(ubm: GaussianMixture) -> None:
    verifier = SpeakerVerifier.enroll(ubm, *ragged(people(80, seed=2)))
    x, lengths = ragged(people(20, seed=3))
    scores = verifier(x, lengths)
    assert scores.shape == (SPEAKERS, SPEAKERS)
    for trial in range(SPEAKERS):
        valid = x[trial, : lengths[trial]]
        for speaker in range(SPEAKERS):
            model = verifier.speakers.select(speaker)
            slow = (model.log_prob(valid) - ubm.log_prob(valid)).mean()
            torch.testing.assert_close(scores[trial, speaker], slow, rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_people_are_told_apart_and_strangers_rejected(ubm: GaussianMixture) -> None:
    verifier = SpeakerVerifier.enroll(ubm, people(100, seed=2)[:4])
    trials = people(60, seed=3)
    assert verifier.identify(trials[:4]).tolist() == [0, 1, 2, 3]
    scores = verifier(trials)
    verifier.threshold.copy_((scores[:4].diag().min() + scores[4:].max()) / 2)
    assert verifier.identify(trials).tolist() == [0, 1, 2, 3, -1, -1]
    assert verifier.verify(trials[:4], torch.tensor([0, 1, 2, 3])).all()
    assert not verifier.verify(trials, torch.tensor([1, 2, 3, 0, 0, 1])).any()


@torch.no_grad()
def test_norms_are_those_of_the_functions(ubm: GaussianMixture) -> None:
    cohort = adapt_speakers(ubm, people(50, seed=5) + 0.3)
    plain = SpeakerVerifier.enroll(ubm, people(100, seed=2))
    normed = SpeakerVerifier(ubm, plain.speakers, cohort)
    trials, impostors = people(30, seed=3), people(30, seed=4) - 0.5
    normed.calibrate_(impostors)
    on_cohort = SpeakerVerifier(ubm, cohort)
    normal = [_z_norm(model(trials), model(impostors)) for model in (plain, on_cohort)]
    expected = (normal[0] - normal[1].mean(1, keepdim=True)) / normal[1].std(1, keepdim=True)
    torch.testing.assert_close(normed(trials), expected, rtol=1e-3, atol=1e-4)
    plain.calibrate_(impostors)
    scores = plain(impostors)
    torch.testing.assert_close(scores.mean(0), torch.zeros(SPEAKERS), rtol=0, atol=1e-4)
    torch.testing.assert_close(scores.std(0), torch.ones(SPEAKERS), rtol=1e-3, atol=0)


@torch.no_grad()
def test_a_verifier_is_saved_whole(ubm: GaussianMixture, tmp_path: Path) -> None:
    cohort = adapt_speakers(ubm, people(50, seed=5))
    verifier = SpeakerVerifier.enroll(ubm, people(100, seed=2), cohort=cohort)
    verifier.calibrate_(people(30, seed=4) - 0.5)
    verifier.threshold.fill_(1.25)
    torch.save(verifier.state_dict(), tmp_path / "verifier.pt")
    blank = SpeakerVerifier(
        GaussianMixture(8, FEATURES),
        GaussianMixture(8, FEATURES, batch=(SPEAKERS,)),
        GaussianMixture(8, FEATURES, batch=(SPEAKERS,)),
    )
    blank.load_state_dict(torch.load(tmp_path / "verifier.pt", weights_only=True))
    trials = people(20, seed=6)
    assert torch.equal(blank(trials), verifier(trials))
    assert torch.equal(blank.identify(trials), verifier.identify(trials))
    assert float(blank.threshold) == 1.25


def test_supervector_scores(ubm: GaussianMixture) -> None:
    known, asked = adapt_speakers(ubm, people(100, seed=2)), adapt_speakers(ubm, people(40, seed=3))
    middle = supervectors(ubm, ubm)
    a, b = supervectors(ubm, asked) - middle, supervectors(ubm, known) - middle
    torch.testing.assert_close(supervector_scores(ubm, known, asked, "linear"), a @ b.mT)
    cosine = supervector_scores(ubm, known, asked)
    torch.testing.assert_close(cosine, torch.cosine_similarity(a.unsqueeze(1), b, dim=-1))
    assert cosine.argmax(-1).tolist() == list(range(SPEAKERS))
    with pytest.raises(ModelError, match="linear or cosine"):
        supervector_scores(ubm, known, asked, "rbf")  # type: ignore[arg-type]


def test_refusals(ubm: GaussianMixture) -> None:
    models = adapt_speakers(ubm, people(10, seed=2))
    with pytest.raises(ModelError, match="one UBM and models"):
        SpeakerVerifier(ubm, ubm)
    with pytest.raises(ModelError, match="one UBM and models"):
        SpeakerVerifier(models, models)
    with pytest.raises(ModelError, match="one UBM and models"):
        SpeakerVerifier(ubm, GaussianMixture(8, 3, batch=(2,)))
    with pytest.raises(ModelError, match="at least 2 models"):
        SpeakerVerifier(ubm, models, GaussianMixture(8, FEATURES, batch=(1,)))
    verifier = SpeakerVerifier(ubm, models)
    with pytest.raises(ModelError, match="at least 2 members"):
        verifier.calibrate_(people(10, seed=2)[:1])
    with pytest.raises(ModelError, match="all equal"):
        verifier.calibrate_(people(10, seed=2)[:1].expand(3, -1, -1))
    with pytest.raises(ModelError, match="needs a length"):
        verifier(people(10, seed=3), torch.zeros(SPEAKERS, dtype=torch.long))


def _z_norm(scores: torch.Tensor, impostors: torch.Tensor) -> torch.Tensor:
    """By speaker, in units of what impostors get from that speaker's model."""
    return (scores - impostors.mean(0)) / impostors.std(0)


GENERATOR = torch.Generator().manual_seed(0)
SCORES, COHORT = torch.randn(5, 3, generator=GENERATOR), torch.randn(5, 4, generator=GENERATOR)


def test_t_norm_is_by_trial() -> None:
    found = t_norm(SCORES, COHORT)
    for trial in range(5):
        torch.testing.assert_close(found[trial], (SCORES[trial] - COHORT[trial].mean()) / COHORT[trial].std())


def test_t_norm_undoes_shifts_of_trials() -> None:
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
def test_a_cohort_without_a_scale_is_refused(scores: torch.Tensor, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        cohort_moments(scores)
