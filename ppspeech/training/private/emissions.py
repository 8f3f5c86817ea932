"""Discriminative emissions of word models with differential privacy: states told apart by a margin.

Every frame is labeled with the state that a public (or privately released) bank aligns it to, and large-margin
Gaussians learn to tell the states apart by objective perturbation. A frame's label depends on its own utterance and on
released numbers only, so one unit's frames are all that changes with the unit; each unit counts once, as the average
over its frames.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from ppspeech.audio import length_mask
from ppspeech.models.gaussian import svec
from ppspeech.models.hmm import HiddenMarkovModel
from ppspeech.models.margin import LargeMarginGaussians, LargeMarginHmm, MarginLoss
from ppspeech.privacy.gradients import clip_norm
from ppspeech.training.private.convex import ConvexHook, PrivateFit, fit_privately


@dataclass(frozen=True)
class PrivateEmissions:
    """What private training of emissions gives.

    Attributes:
        model: scores frames that were clipped to `radius`; its transitions are the bank's.
        radius: the public bound on a frame's norm.
        fit: the guarantee of the emissions. Where the bank was released privately from the same speech, its events
            must be composed with these.
    """

    model: LargeMarginHmm
    radius: float
    fit: PrivateFit

    def __call__(self, features: Tensor, lengths: Tensor) -> Tensor:
        """Scores of utterances `(batch, frames, d)` under every word, `(batch, words)`."""
        scores: Tensor = self.model(clip_norm(features, self.radius), lengths)
        return scores


def fit_private_emissions(
    bank: HiddenMarkovModel,
    features: Tensor,
    lengths: Tensor,
    words: Tensor,
    units: Tensor,
    hook: ConvexHook,
    *,
    radius: float,
    width: float = 0.5,
) -> PrivateEmissions:
    """Train the emissions of every state of every word.

    Args:
        bank: aligns the frames; it must be public or released, never trained on this speech without privacy.
        features: `(utterances, frames, d)`.
        lengths: `(utterances,)`.
        words: what was said, `(utterances,)`.
        units: whose utterance it is, or its own number, `(utterances,)`: the hook's unit.
        hook: the budget; its unit must be `utterance` or `speaker`.
        radius: frames are clipped to this norm; a public constant.
        width: of the Huber hinge.

    Raises:
        PrivacyError: for a hook whose unit owns one row only, or that cannot hold.
        ModelError: for speech that does not fit the bank.
    """
    clipped = clip_norm(features, radius)
    with torch.no_grad():
        paths = bank.best_path(features, lengths, words).states
    inside = length_mask(lengths, features.shape[1])
    state = (words.unsqueeze(-1) * bank.states + paths)[inside]
    whose = units.unsqueeze(-1).expand_as(paths)[inside]
    module = LargeMarginGaussians(
        bank.models * bank.states,
        features.shape[-1],
        loss=MarginLoss(width, competitor="lse"),
        radius=radius,
        dtype=torch.double,
    ).to(features.device)
    fit = fit_privately(module, clipped[inside].double(), state, hook, groups=whose)
    model = LargeMarginHmm(bank.topology, bank.models, features.shape[-1]).to(features.device)
    with torch.no_grad():
        vectors = svec(module.phi()).view(bank.models, bank.states, -1)
        model.vector.copy_(vectors)
        model.initial_logits.copy_(bank.initial_logits)
        model.transition_logits.copy_(bank.transition_logits)
    return PrivateEmissions(model, radius, fit)
