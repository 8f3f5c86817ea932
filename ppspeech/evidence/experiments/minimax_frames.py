"""Filters on frames: learned on single frames, judged on whole utterances by attackers on speech.

A frame says little about who speaks; the frames of an utterance together say much. A filter that is learned frame by
frame is therefore attacked utterance by utterance: with statistics over time, a GMM-UBM and an embedding network, from
one utterance and from ten. A frame may also be replaced by the mean frame of its code, a unit like a phone's: what
comes out is speech features again, for hidden Markov models, with a few bits a frame and not a few a clip. How fast
someone speaks, and which units they prefer, is still there.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ppspeech.audio import Frames, length_mask, utterance_statistics
from ppspeech.evidence.experiments.minimax import worst_figure
from ppspeech.figures import Figure
from ppspeech.filters import Learning, codes_of, learn_codes
from ppspeech.filters.attack import UNKNOWN, AttackReport, attack
from ppspeech.intervals import clopper_pearson

ATTACKERS = ("logistic", "svm", "neighbors", "gmm_ubm", "embedding", "plda", "lda")
CLIPS = (1, 10)


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
    inputs, private, target = _some_frames(speech, frames, seed)
    return learning.fit(inputs, private, target, dimension, seed).filter


class FrameCodes(nn.Module):
    """Every frame replaced by the mean training frame of its code: `(..., D)` to `(..., D)`, at most K different."""

    codes: Tensor
    book: Tensor

    def __init__(self, filter: nn.Module, inputs: Tensor) -> None:
        super().__init__()
        codes = codes_of(filter)
        assert codes is not None
        self.filter, self.features = filter, inputs.shape[-1]
        self.register_buffer("codes", codes)
        which = self.which(inputs)
        counts = torch.bincount(which, minlength=len(codes)).clamp_min(1).unsqueeze(-1)
        sums = inputs.new_zeros(len(codes), inputs.shape[-1]).index_add_(0, which, inputs)
        self.register_buffer("book", sums / counts)

    def which(self, x: Tensor) -> Tensor:
        """The code of every frame."""
        with torch.no_grad():
            return torch.cdist(self.filter(x).flatten(0, -2), self.codes).argmin(-1).reshape(x.shape[:-1])

    def forward(self, x: Tensor) -> Tensor:
        """The mean frames."""
        return self.book[self.which(x)]


def learn_frame_codes(speech: Speech, frames: int, seed: int) -> FrameCodes:
    """One code for each target of a frame, learned on so many training frames, drawn at random."""
    inputs, _, target = _some_frames(speech, frames, seed)
    return FrameCodes(learn_codes(inputs, target, seed=seed), inputs)


def _some_frames(speech: Speech, frames: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Training frames `(frames, D)`, whose they are and what to keep of them."""
    inside = length_mask(speech.frames.lengths, speech.frames.features.shape[1]) & ~speech.is_test.unsqueeze(-1)
    places = inside.nonzero()
    chosen = places[torch.randperm(len(places), generator=torch.Generator().manual_seed(seed))[:frames]]
    utterance, time = chosen.unbind(-1)
    return speech.frames.features[utterance, time], speech.private[utterance], speech.target[utterance, time]


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
    sides = (~speech.is_test, speech.is_test)
    private, words = ((labels[sides[0]], labels[sides[1]]) for labels in (speech.private, speech.task))
    return attack(train, private[0], test, private[1], ATTACKERS, words=words, clips=CLIPS, seed=seed)


def frame_figures(name: str, speech: Speech, learned: Mapping[str, nn.Module], setting: str) -> list[Figure]:
    """Task accuracy from statistics over time, and what attackers found, behind filters by name and without one."""
    made = []
    for method, module in ({**learned, "no_filter": nn.Identity()}).items():
        label = f"{name}.frames.{method}" if method else f"{name}.frames"
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
        unknown, tested = int((~known).sum()), int((speech.is_test & known).sum())
        how = f"logistic on statistics over time; {setting}"
        made += [
            Figure(f"{label}.task", told.accuracy, note=f"{how}; interval over {tested:,} utterances").between(
                *clopper_pearson(told.accuracy * tested, tested)
            ),
            worst_figure(f"{label}.private", [report["logistic"]], f"{how}; "),
            worst_figure(f"{label}.private_worst", [report.worst], f"{found}; chance {report.chance:.3f}; "),
            *(worst_figure(f"{label}.worst_{clips}", [worst]) for clips, worst in report.headline.items()),
            Figure(
                f"{label}.verification_eer",
                min(finding.eer for finding in report.at(1)),
                note=f"{eer}; {unknown} of the test utterances by people the attackers never met",
            ),
        ]
    return made
