"""Speaker verification on AudioMNIST with a GMM-UBM: 20 people against each other's models, with a DET plot.

Fixed in advance: speakers 01-40 train the background model, 41-60 are enrolled with takes 0-3 of all ten digits
and tested with takes 4-7, each trial against every model. A trial is the ten digits of one take (about 6 s), or
one digit (0.6 s). Cepstral means and variances are normalized over each take, or each single digit in its trial.
The people said the digits in one session each, so this measures speakers within a session, not across channels.

A part of `ppspeech reproduce speakers` (`embedded_speakers`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ppspeech.audio import Frames, MfccConfig, normalize_utterance
from ppspeech.data import FeatureStore
from ppspeech.data.corpora import DIGIT_WORDS, load_audiomnist
from ppspeech.figures import Figure
from ppspeech.models import SpeakerVerifier, adapt_speakers, equal_error_rate, minimum_dcf, plot_det, supervector_scores
from ppspeech.models.gaussian import GaussianMixture, fit_mixture
from ppspeech.pictures import blank, save

BACKGROUND = 40
ENROLLMENT, TRIALS = (0, 1, 2, 3), (4, 5, 6, 7)
DRAWS = 200  # of people, for intervals
FLOOR = 1e-2  # of variances; features have variance 1 over an utterance

Clips = dict[tuple[str, int, str], Tensor]


@dataclass(frozen=True)
class Experiment:
    """Scores of one kind of trial, `(trials, speakers)` each, by scorer; and which trials are targets."""

    name: str
    scores: dict[str, Tensor]
    targets: Tensor


def run(quick: bool, folder: Path) -> list[Figure]:
    """Save DET curves, `speakers.png`, in `folder`; `quick`: 32 components instead of 64, and fewer iterations."""
    components, iterations = (32, 8) if quick else (64, 20)
    clips, speakers = load_clips()
    background, enrolled = speakers[:BACKGROUND], speakers[BACKGROUND:]
    pool = torch.cat([one_take(clips, who, take) for who in background for take in ENROLLMENT + TRIALS])
    ubm = fit_mixture(pool, components, floor=FLOOR, iterations=iterations)
    plain = SpeakerVerifier(ubm, speaker_models(ubm, clips, enrolled))
    normed = SpeakerVerifier(ubm, plain.speakers, cohort=speaker_models(ubm, clips, background))

    takes = [(who, one_take(clips, who, take)) for who in enrolled for take in TRIALS]
    digits = [(who, normalize(clips[who, take, word])) for who in enrolled for take in TRIALS for word in DIGIT_WORDS]
    experiments = [
        _experiment("ten digits", takes, enrolled, plain, normed),
        _experiment("one digit", digits, enrolled, plain, normed),
    ]
    picture = folder / "speakers.png"
    _plot(experiments, picture)
    setting = f"{components} diagonal components on {len(pool):,} frames of {BACKGROUND} other people; {picture}"
    figures = [figure for experiment in experiments for figure in _figures(experiment, setting)]
    first = "ten digits, llr: no score normalization; interval by bootstrap over people"
    return [replace(figures[0], metric="speakers.eer", note=first), *figures]


def normalize(features: Tensor) -> Tensor:
    """Mean 0 and variance 1 over the frames `(frames, d)` of one utterance."""
    frames = Frames(features.unsqueeze(0), torch.tensor([len(features)]))
    return normalize_utterance(frames).features.squeeze(0)


def load_clips() -> tuple[Clips, tuple[str, ...]]:
    """Cepstra with derivatives of every recording, by speaker, take and word; and the speakers in order."""
    corpus = load_audiomnist()
    store = FeatureStore(MfccConfig(cmvn="none"))
    features = store.load(corpus.utterances)
    clips = {(u.speaker, u.take, str(u.word)): x for u, x in zip(corpus, features, strict=True)}
    return clips, corpus.speakers


def one_take(clips: Clips, speaker: str, take: int) -> Tensor:
    """The ten digits of one take as one utterance."""
    return normalize(torch.cat([clips[speaker, take, word] for word in DIGIT_WORDS]))


def speaker_models(ubm: GaussianMixture, clips: Clips, speakers: tuple[str, ...]) -> GaussianMixture:
    """The background model adapted to every speaker's enrollment takes."""
    speech = [torch.cat([one_take(clips, who, take) for take in ENROLLMENT]) for who in speakers]
    return adapt_speakers(ubm, *padded(speech))


def targets_of(trials: list[tuple[str, Tensor]], enrolled: tuple[str, ...]) -> Tensor:
    """Which trials are of the model's own speaker, `(trials, speakers)`."""
    return torch.tensor([[who == model for model in enrolled] for who, _ in trials])


def padded(utterances: list[Tensor]) -> tuple[Tensor, Tensor]:
    """In one tensor, and their lengths."""
    return pad_sequence(utterances, batch_first=True), torch.tensor([len(u) for u in utterances])


@torch.no_grad()
def _experiment(
    name: str,
    trials: list[tuple[str, Tensor]],
    enrolled: tuple[str, ...],
    plain: SpeakerVerifier,
    normed: SpeakerVerifier,
) -> Experiment:
    x, lengths = padded([features for _, features in trials])
    trial_models = adapt_speakers(plain.ubm, x, lengths)
    scores = {
        "llr": plain(x, lengths),
        "t_norm": normed(x, lengths),
        "cosine": supervector_scores(plain.ubm, plain.speakers, trial_models),
    }
    return Experiment(name, scores, targets_of(trials, enrolled))


def _figures(experiment: Experiment, setting: str) -> list[Figure]:
    targets = experiment.targets
    prefix = f"speakers.{experiment.name.replace(' ', '_')}"
    note = f"{targets.numel():,} trials, {int(targets.sum()):,} of them targets; {setting}"
    figures = []
    over = "interval by bootstrap over people"
    for scorer, scores in experiment.scores.items():
        right = int(targets.gather(1, scores.argmax(1, keepdim=True)).sum())
        again = [[rate(*drawn) for drawn in drawn_again(scores, targets)] for rate in (equal_error_rate, minimum_dcf)]
        eer, dcf = (np.quantile(rates, [0.025, 0.975]).tolist() for rates in again)
        figures += [
            Figure(f"{prefix}.{scorer}.eer", equal_error_rate(scores, targets), note=f"{note}; {over}").between(*eer),
            Figure(
                f"{prefix}.{scorer}.min_dcf", minimum_dcf(scores, targets), note=f"p_target 0.01; {note}; {over}"
            ).between(*dcf),
            Figure.share(f"{prefix}.{scorer}.identification", right, len(targets), "utterances", note=note),
        ]
    return figures


def drawn_again(scores: Tensor, targets: Tensor, draws: int = DRAWS) -> Iterator[tuple[Tensor, Tensor]]:
    """Scores `(trials, people)` and targets as if other people were tried and enrolled: the same, with repeats."""
    generator, whose, count = np.random.default_rng(0), targets.int().argmax(1), targets.shape[1]
    while draws:
        people = torch.from_numpy(generator.integers(count, size=count))
        if int(people.min()) == int(people.max()):  # who is a stranger to nobody
            continue
        rows = torch.cat([(whose == who).nonzero().squeeze(1) for who in people])
        yield scores[rows][:, people], whose[rows].unsqueeze(1) == people
        draws -= 1


def _plot(experiments: list[Experiment], path: Path) -> None:
    picture = blank(6, 6)
    axes = picture.subplots()
    for experiment in experiments:
        for scorer, scores in experiment.scores.items():
            rate = equal_error_rate(scores, experiment.targets)
            plot_det(axes, scores, experiment.targets, f"{experiment.name}, {scorer}: EER {rate:.2%}")
    axes.set_title("AudioMNIST, 20 speakers, GMM-UBM")
    axes.legend()
    save(picture, path)
