"""Filters on frames: learned on single frames, judged on whole utterances by attackers on speech.

A frame says little about who speaks; the frames of an utterance together say much. A filter that is learned frame by
frame is therefore attacked utterance by utterance: with statistics over time, a GMM-UBM and an embedding network.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ppspeech.audio import Frames, length_mask, utterance_statistics
from ppspeech.figures import Figure
from ppspeech.filters import Learning
from ppspeech.filters.attack import UNKNOWN, AttackReport, attack

ATTACKERS = ("logistic", "svm", "neighbors", "gmm_ubm", "embedding")


@dataclass(frozen=True, eq=False)
class Speech:
    """Utterances with their labels, divided."""

    frames: Frames
    private: Tensor  # who, `(utterances,)`; -1 for people of whom there are only test utterances
    task: Tensor  # what, `(utterances,)`
    target: Tensor  # what the filter shall keep of every frame, `(utterances, frames)`
    is_test: Tensor


def learn_on_frames(speech: Speech, dimension: int, learning: Learning, frames: int, seed: int) -> nn.Module:
    """A linear filter learned on so many training frames, drawn at random."""
    inside = length_mask(speech.frames.lengths, speech.frames.features.shape[1]) & ~speech.is_test.unsqueeze(-1)
    places = inside.nonzero()
    chosen = places[torch.randperm(len(places), generator=torch.Generator().manual_seed(seed))[:frames]]
    utterance, time = chosen.unbind(-1)
    inputs, target = speech.frames.features[utterance, time], speech.target[utterance, time]
    return learning.fit(inputs, speech.private[utterance], target, dimension, seed).filter


@torch.no_grad()
def filtered(speech: Speech, module: nn.Module) -> tuple[Frames, Frames]:
    """The training and the test utterances behind the filter, with padding at 0."""
    x, lengths = speech.frames
    y = module(x) * length_mask(lengths, x.shape[1]).unsqueeze(-1)
    train, test = ~speech.is_test, speech.is_test
    return Frames(y[train], lengths[train]), Frames(y[test], lengths[test])


def attack_speech(speech: Speech, module: nn.Module, seed: int = 0) -> AttackReport:
    """Attack the utterances behind a filter."""
    train, test = filtered(speech, module)
    return attack(train, speech.private[~speech.is_test], test, speech.private[speech.is_test], ATTACKERS, seed=seed)


def frame_figures(name: str, speech: Speech, learned: nn.Module, setting: str) -> list[Figure]:
    """Task accuracy from statistics over time, and what attackers found, behind the filter and without it."""
    made = []
    for label, module in ((f"{name}.frames", learned), (f"{name}.frames.no_filter", nn.Identity())):
        known = speech.private != UNKNOWN
        train, test = filtered(speech, module)
        told = attack(
            utterance_statistics(train),
            speech.task[~speech.is_test],
            utterance_statistics(test)[known[speech.is_test]],
            speech.task[speech.is_test & known],
            ("logistic",),
            clips=(1,),
        ).worst
        report = attack_speech(speech, module)
        found = ", ".join(f"{finding.attacker} {finding.accuracy:.3f}" for finding in report.at(1))
        eer = ", ".join(f"{finding.attacker} {finding.eer:.3f}" for finding in report.at(1))
        unknown = int((~known).sum())
        made += [
            Figure(f"{label}.task", told.accuracy, note=f"logistic on statistics over time; {setting}"),
            Figure(
                f"{label}.private", report["logistic"].accuracy, note=f"logistic on statistics over time; {setting}"
            ),
            Figure(f"{label}.private_worst", report.worst.accuracy, note=f"{found}; chance {report.chance:.3f}"),
            Figure(
                f"{label}.verification_eer",
                min(finding.eer for finding in report.at(1)),
                note=f"{eer}; {unknown} of the test utterances by people the attackers never met",
            ),
        ]
    return made
